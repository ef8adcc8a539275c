"""Warnings of trials: all are withheld, and those that reveal nothing secret are shown later.

How often a trial warns, and of what, tells how many trials there were and which. A search whose trials are
secret may therefore show the warnings of the winner alone, which is released with all that belongs to it.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..privacy import NotPrivateWarning

#: The warnings of the current trial; None outside trials. Each thread has its own list.
_caught: ContextVar[list[Warning] | None] = ContextVar("_caught", default=None)


def _catch(message: Warning | str, category: type[Warning], *args: object, **kwargs: Any) -> None:
    """Replaces :func:`warnings.showwarning` during a search."""
    if (caught := _caught.get()) is not None:
        caught.append(message if isinstance(message, Warning) else category(message))


@contextmanager
def quiet() -> Iterator[None]:
    """Show no warnings from the block, in any thread.

    Filters belong to the process, so the thread that waits for the others enters this. Worker processes copy
    the filters (``sklearn.utils.parallel``), and :func:`recorded` does the rest.
    """
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
        if warnings.showwarning is _catch:
            yield caught
        else:  # in a process of its own
            with quiet():
                yield caught
    finally:
        _caught.reset(token)


def distinct(caught: Iterable[Warning]) -> list[Warning]:
    """Each warning without repeats, by category and text; the search itself warns of seeds."""
    kept = (warning for warning in caught if not isinstance(warning, NotPrivateWarning))
    return list({_key(warning): warning for warning in kept}.values())


def common(lists: Sequence[Iterable[Warning]]) -> list[Warning]:
    """Warnings common to all lists."""
    keys = [{_key(warning) for warning in caught} for caught in lists]
    return [warning for warning in distinct(lists[0]) if all(_key(warning) in other for other in keys)]


def show(caught: Iterable[Warning], shown: list[Warning], stacklevel: int) -> None:
    """Show each warning that is not in ``shown``, and add it there."""
    known = {_key(warning) for warning in shown}
    for warning in distinct(caught):
        if _key(warning) not in known:
            shown.append(warning)
            warnings.warn(warning, stacklevel=stacklevel)


def _key(warning: Warning) -> tuple[type[Warning], str]:
    return type(warning), str(warning)
