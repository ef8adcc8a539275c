"""Warnings of trials: all are withheld, and those that reveal nothing secret are shown later.

How often a trial warns, and of what, tells how many trials there were and which. A search whose trials are
secret may therefore show the warnings of the winner alone, which is released with all that belongs to it.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ..._utils.process import warn
from ...exceptions import NotPrivateWarning

#: Category and text of a warning.
Key = tuple[type[Warning], str]

#: The warnings of the current trial; None outside trials. Each thread has its own list.
_caught: ContextVar[list[Warning] | None] = ContextVar("_caught", default=None)


def _catch(message: Warning | str, category: type[Warning], *args: object, **kwargs: Any) -> None:
    """Replaces :func:`warnings.showwarning` during a search."""
    if (caught := _caught.get()) is not None:
        caught.append(message if isinstance(message, Warning) else category(message))


@contextmanager
def quiet() -> Iterator[None]:
    """Show no warnings from the block, in any thread."""
    # Filters belong to the process, so the calling thread sets them once for all. Worker processes copy them
    # (sklearn.utils.parallel), and `recorded` does the rest.
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _catch
        yield


@contextmanager
def recorded() -> Iterator[list[Warning]]:
    """Collect the warnings of a trial in a list, and show none."""
    caught: list[Warning] = []
    token = _caught.set(caught)
    try:
        with nullcontext() if warnings.showwarning is _catch else quiet():  # in a process of its own
            yield caught
    finally:
        _caught.reset(token)


def _no_repeats(caught: Iterable[Warning]) -> dict[Key, Warning]:
    """Warnings by class and text, each once. Those of seeds are left out, which the search itself gives."""
    of_trials = (warning for warning in caught if not isinstance(warning, NotPrivateWarning))
    return {(type(warning), str(warning)): warning for warning in of_trials}


def common(lists: Sequence[Iterable[Warning]]) -> list[Warning]:
    """Warnings common to all lists."""
    first, *others = map(_no_repeats, lists)
    return [warning for key, warning in first.items() if all(key in distinct for distinct in others)]


def show(caught: Iterable[Warning], shown: set[Key]) -> None:
    """Show each warning that is not among those ``shown``, and add it there."""
    for key, warning in _no_repeats(caught).items():
        if key not in shown:
            shown.add(key)
            warn(warning)
