"""A seed takes the guarantee away: said by every fit that has one, once."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..exceptions import NotPrivateWarning

#: Whether a caller that makes several fits has said it for all of them.
_said: ContextVar[bool] = ContextVar("_said", default=False)


def warn_of_seed(*random_states: Any, name: str = "random_state", stacklevel: int = 3) -> None:
    """Warn, before anything is drawn, where a seed takes the guarantee away.

    Parameters
    ----------
    *random_states : None, int or RandomState
        One for each release that is about to be made.
    name : str, default="random_state"
        What the user calls the seed.
    stacklevel : int, default=3
        As in :func:`warnings.warn`; 3 is whoever called the caller.
    """
    if _said.get() or all(random_state is None for random_state in random_states):
        return
    warnings.warn(
        f"{name} is set, so whoever knows it can remove the noise and the result is NOT private; "
        "set none for what is to be published.",
        NotPrivateWarning,
        stacklevel=stacklevel,
    )


@contextmanager
def said_of_seeds() -> Iterator[None]:
    """Fits within do not repeat the warning."""
    token = _said.set(True)
    try:
        yield
    finally:
        _said.reset(token)
