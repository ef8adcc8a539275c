"""From events to epsilon.

Each kind of event is registered with :func:`epsilon_of_event`; an event that nobody registered
is refused, never guessed at.
"""

from functools import singledispatch

from . import concentrated, gaussian
from .events import GaussianEvent, Neighboring


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
    if event.noise == "hardened":
        if event.sampling_rate < 1:
            raise TypeError("no accountant knows discrete Gaussian noise on sampled batches.")
        return concentrated.epsilon_for(event.rho(neighboring), delta)
    from . import sampled  # dp-accounting takes a second to import and full batches never need it

    return sampled.epsilon_of(event, delta, neighboring)


def accountant_name(event: GaussianEvent) -> str:
    """The words by which the report names the accountant of ``event``."""
    if event.sampling_rate < 1:
        return "privacy loss distribution (dp-accounting)"
    if event.noise == "hardened":
        return "zero-concentrated DP (discrete Gaussian)"
    return "exact Gaussian (closed form)"
