"""Warnings of trials: kept from the user, and those that may be shown shown later.

How often a trial warns, and of what, tells how many trials there were and which. A search whose trials are
secret may therefore show the warnings of the winner alone, which is released with all that belongs to it.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..exceptions import NotPrivateWarning

#: Where the warnings of the current trial go; None outside trials. Threads have one each.
_caught: ContextVar[list[Warning] | None] = ContextVar("_caught", default=None)


def _catch(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
    """Replaces :func:`warnings.showwarning` during a search."""
    if (caught := _caught.get()) is not None:
        caught.append(message if isinstance(message, Warning) else category(message))


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing that is warned of within is shown, whatever the user's filters say.

    Filters belong to the process and not to a thread, so this is to be entered by the thread that waits for
    the others. Processes take the filters from here (see ``sklearn.utils.parallel``), and :func:`recorded`
    there does the rest.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _catch
        yield


@contextmanager
def recorded() -> Iterator[list[Warning]]:
    """The warnings of a trial, in a list that fills up; none of them is shown."""
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
    """Each of them once, by category and text.

    That a fit has a seed is left out: the search says so itself, before anything is drawn.
    """
    kept = (warning for warning in caught if not isinstance(warning, NotPrivateWarning))
    return list({_key(warning): warning for warning in kept}.values())


def common(lists: Sequence[Iterable[Warning]]) -> list[Warning]:
    """Those that are in every list."""
    keys = [{_key(warning) for warning in caught} for caught in lists]
    return [warning for warning in distinct(lists[0]) if all(_key(warning) in other for other in keys)]


def show(caught: Iterable[Warning], shown: list[Warning], stacklevel: int) -> None:
    """Warn of each that is not among those ``shown``, and add it to them."""
    known = {_key(warning) for warning in shown}
    for warning in distinct(caught):
        if _key(warning) not in known:
            shown.append(warning)
            warnings.warn(warning, stacklevel=stacklevel)


def _key(warning: Warning) -> tuple[type[Warning], str]:
    return type(warning), str(warning)
