"""Progress bars of everything that may take more than a moment."""

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

#: Seconds after which a bar appears on a terminal.
_PATIENCE = 2.0

_hidden: ContextVar[bool] = ContextVar("_hidden", default=False)


def progress_bar(
    items: Iterable[Any] | None = None, *, verbose: object, hidden: bool = False, **options: object
) -> Any:
    """A bar of ``tqdm`` with its ``options``; without ``items``, it is updated by hand.

    With ``verbose``, it is shown at once and everywhere. Otherwise it appears on terminals after 2 seconds
    and goes away at the end, except within :func:`no_bars`. ``hidden`` shows nothing in any case. Where
    nobody would see a bar, there is none: the result is ``items``, or None.
    """
    # In a notebook, tqdm shows bars that are no output of a terminal.
    seen = verbose or (not _hidden.get() and (sys.stderr.isatty() or "ipykernel" in sys.modules))
    if hidden or not seen:
        # A hidden bar of tqdm would take a lock that forked processes share. If one of them is killed while
        # it holds the lock, all others wait forever.
        return items
    if not verbose:
        options |= {"delay": _PATIENCE, "leave": False}
    # Each update looks at the clock, so no thread has to watch for bars that stand still.
    return _bar_class()(items, miniters=1, **options)


@cache
def _bar_class() -> Any:
    """The class of tqdm's bars, with a lock for this process alone, and without a thread."""
    from tqdm.auto import tqdm  # only where a bar may appear: importing it takes time

    return type("Bar", (tqdm,), {"_lock": threading.RLock(), "monitor_interval": 0})


@contextmanager
def no_bars() -> Iterator[None]:
    """Within this context, no bar appears by itself: it would count fits whose number is secret."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)
