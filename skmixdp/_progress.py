"""Progress bars of everything that may take more than a moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: Seconds after which a bar appears on a terminal.
_PATIENCE = 2.0

_hidden: ContextVar[bool] = ContextVar("_hidden", default=False)


def bar_options(verbose: Any) -> dict[str, Any]:
    """Options of ``tqdm`` for a bar with an estimate of the remaining time.

    If ``verbose``, the bar is shown at once and everywhere. Otherwise, it appears on terminals after 2
    seconds and goes away at the end, except within :func:`no_bars`.
    """
    if verbose:
        return {}
    return {"delay": _PATIENCE, "disable": True if _hidden.get() else None, "leave": False}


@contextmanager
def no_bars() -> Iterator[None]:
    """Within this context, no bar appears by itself: it would count fits whose number is secret."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)
