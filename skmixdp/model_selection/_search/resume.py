"""Resume a search after an interruption.

The trials of one search may not be drawn twice. Somebody who could have a result drawn again would choose
between two results and be charged for one. So a search is resumed only if it released nothing yet.

Its plan (which candidates, how many) is on disk from before its charge until its end, under a lock that dies
with the process. The token of the plan goes into the charge, so that the ledger tells whether it was made. If
so, finished trials come from the cache and the others run, without a second charge. When the search ends, its
folder is deleted before any result is handed out. Until then it is as confidential as the private rows, and
only its owner can read it: it holds unreleased results, and a hash of the rows by which the search is found
again. Its name is random, so that it tells others nothing.

An interruption shows nothing, so the search goes on. An error is a result, since it may depend on what the
failed trial released. It ends the search, and the next call is charged again.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import joblib
from joblib import Memory

from ..._utils.files import sync_folder, written_whole
from ...privacy import Charge, LedgerDataset


class Progress:
    """The state of a search in a folder; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def load(self) -> Any:
        """The plan of an interrupted search; None if there is none."""
        return joblib.load(self._plan) if self.is_begun else None

    @property
    def is_begun(self) -> bool:
        """Whether there is a plan, so that the search can be resumed."""
        return self._folder is not None and self._plan.exists()

    def save(self, plan: object) -> None:
        """Keep a plan."""
        if self._folder is not None:
            with written_whole(self._plan) as file:
                joblib.dump(plan, file)

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
            sync_folder(self._folder)
            self._memory.clear(warn=False)

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """Forget plan and trials after an error in the block, but not after interruptions or dead workers."""
        try:
            yield
        except BrokenExecutor:
            raise RuntimeError(
                "a process of n_jobs died, often since the memory is full; pass a smaller n_jobs, and search "
                "again."
            ) from None
        except Exception:
            self.finish()
            raise

    @property
    def _plan(self) -> Path:
        assert self._folder is not None
        return self._folder / "plan.joblib"

    @property
    def _memory(self) -> Memory:
        return Memory(self._folder, verbose=0)


def interrupted_plan(search: Any, progress: Progress) -> tuple[Any, Charge | None]:
    """The plan of an interrupted search, and its charge in the search's ledger; None without it."""
    plan = progress.load()
    if plan is None or search.ledger is None:
        return plan, None
    charge = search.ledger._charge_of(plan[0]) if isinstance(search.ledger, LedgerDataset) else None
    return (None, None) if charge is None else (plan, charge)


@contextmanager
def progress_of(memory: Any, key: str) -> Iterator[Progress]:
    """The progress of the search ``key`` in a folder, locked against other processes."""
    location = memory.location if isinstance(memory, Memory) else memory
    if location is None:
        yield Progress(None)
        return
    home = Path(location) / "private_search"
    for new in (home.parent, home):
        new.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = next((path.parent for path in home.glob("*/key") if path.read_text() == key), None)
    if folder is None:
        folder = Path(tempfile.mkdtemp(dir=home))
        (folder / "key").write_text(key)
    with ExitStack() as stack:
        try:
            lock = sqlite3.connect(folder / "lock.sqlite", timeout=0, isolation_level=None)
            stack.enter_context(closing(lock)).execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise RuntimeError(
                f"memory={str(location)!r} holds this search, and another process is at it; wait for it, or "
                "pass another memory for a search of its own."
            ) from None
        progress = Progress(folder)
        try:
            yield progress
        finally:
            if not progress.is_begun:
                shutil.rmtree(folder, ignore_errors=True)
