"""What a search needs to go on after an interruption.

The trials of one search may not be drawn twice. Somebody who could have a result drawn again would choose
between two results and be charged for one. So a search is resumed only if it released nothing yet.

Its plan (which candidates, how many) is on disk from its charge until its end, under a lock that dies with
the process. While the plan is there, finished trials come from the cache and the others run, without a
second charge. When the search ends, plan and trials are deleted before any result is handed out. Until then
the folder is as confidential as the private rows.
"""

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import joblib
from joblib import Memory


class Progress:
    """A search's place on disk.

    Parameters
    ----------
    folder : Path or None
        Where it lies; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def load(self) -> Any:
        """The plan of an interrupted search; None if there is none."""
        if self._folder is None or not self._plan.exists():
            return None
        return joblib.load(self._plan)

    def save(self, plan: Any) -> None:
        """Keep a plan, now that it is charged."""
        if self._folder is not None:
            unfinished = self._folder / f"{uuid.uuid4().hex}.tmp"
            joblib.dump(plan, unfinished)
            unfinished.replace(self._plan)

    def cached(self, function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
        """The function with its results on disk, by the values of all arguments but ``names``."""
        if self._folder is None:
            return function
        cached: Callable[..., Any] = self._memory.cache(function, ignore=names)
        return cached

    def finish(self) -> None:
        """Forget the plan, then the trials."""
        if self._folder is not None:
            self._plan.unlink()
            self._memory.clear(warn=False)

    @property
    def _plan(self) -> Path:
        assert self._folder is not None
        return self._folder / "plan.joblib"

    @property
    def _memory(self) -> Memory:
        return Memory(self._folder, verbose=0)


@contextmanager
def progress_of(memory: Any, key: str) -> Iterator[Progress]:
    """The progress of the search ``key``, while nobody else has it.

    Parameters
    ----------
    memory : str, Path, joblib.Memory or None
        Folder for all searches; None keeps nothing.
    key : str
        Tells searches apart.

    Raises
    ------
    RuntimeError
        If another process or thread is at this search.
    """
    location = memory.location if isinstance(memory, Memory) else memory
    if location is None:
        yield Progress(None)
        return
    folder = Path(location) / "private_search" / key
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "lock.sqlite", timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise RuntimeError(
                f"memory={str(location)!r} holds this search, and another process is at it; wait for it, or "
                "pass another memory for a search of its own."
            ) from None
        yield Progress(folder)
