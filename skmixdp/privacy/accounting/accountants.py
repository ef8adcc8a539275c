"""Epsilon of events.

Each event class registers its accountant with :func:`epsilon_of_event`. Events of other classes are refused.
"""

import math
from functools import singledispatch

from . import gaussian
from .events import Event, GaussianEvent, Neighboring


@singledispatch
def epsilon_of_event(event: object, delta: float, neighboring: Neighboring) -> float:
    """Smallest epsilon that can be claimed for ``event`` at ``delta``.

    Raises
    ------
    TypeError
        If no accountant is registered for this kind of event.
    """
    raise TypeError(f"no accountant knows the event {event!r}; register one with epsilon_of_event.")


@epsilon_of_event.register
def _(event: GaussianEvent, delta: float, neighboring: Neighboring) -> float:
    mu = event.mu(neighboring)
    if mu is not None:
        return gaussian.epsilon_for(mu, delta)
    if event.noise == "discrete":
        return gaussian.epsilon_of_rho(event.rho(neighboring), delta)
    from . import sampled  # dp-accounting takes a second to import and full batches never need it

    return sampled.epsilon_of(event, delta, neighboring)


@singledispatch
def amplified_epsilon(event: object, delta: float, neighboring: Neighboring) -> float:
    """Epsilon of ``event`` by amplification beyond its Gaussian releases; infinite if there is none.

    An event class with such an amplification registers its accountant here and with
    :func:`epsilon_of_event`.

    Raises
    ------
    ValueError
        If the amplification is not known under these terms.
    """
    return math.inf


def accountant_name(event: Event) -> str:
    """The report's name for the accountant of ``event``."""
    releases = event.unamplified
    if releases.sampling_rate < 1:
        name = "privacy loss distribution (dp-accounting)"
    elif releases.noise == "discrete":
        name = "zero-concentrated DP (discrete Gaussian)"
    else:
        name = "exact Gaussian (closed form)"
    return name if releases is event else f"the smaller of Renyi DP with amplification and {name}"
