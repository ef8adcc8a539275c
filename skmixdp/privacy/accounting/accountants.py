"""From events to epsilon.

Each kind of event is registered with :func:`epsilon_of_event`; an event that nobody registered
is refused, never guessed at.
"""

import math
from functools import singledispatch
from typing import TypedDict

from . import concentrated, gaussian, mixing
from .events import Event, GaussianEvent, ModelMixEvent, Neighboring


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


@epsilon_of_event.register
def _(event: ModelMixEvent, delta: float, neighboring: Neighboring) -> float:
    amplified = amplified_epsilon(event, delta, neighboring)
    return min(amplified, epsilon_of_event(event.unamplified, delta, neighboring))


@singledispatch
def amplified_epsilon(event: object, delta: float, neighboring: Neighboring) -> float:
    """Epsilon of ``event`` by what it is beyond its Gaussian releases; infinite if nothing.

    Raises
    ------
    ValueError
        If the amplification is not known under these terms.
    """
    return math.inf


@amplified_epsilon.register
def _(event: ModelMixEvent, delta: float, neighboring: Neighboring) -> float:
    return mixing.epsilon_for(
        n_steps=event.n_steps,
        delta=delta,
        conversion=event.conversion,
        **amplification_of(event, neighboring),
    )


class Amplification(TypedDict):
    """What mixing is accounted for by, as in :func:`mixing.epsilon_for`."""

    shift: float
    width: float
    sampling_rate: float
    linf_split: int


def amplification_of(event: ModelMixEvent, neighboring: Neighboring) -> Amplification:
    """The terms of a mixed event in units of its noise.

    Raises
    ------
    ValueError
        If the amplification is not known under these terms.
    """
    if event.noise == "hardened":
        raise ValueError("noise='hardened' cannot be accounted for with ModelMix; use noise='float'.")
    if neighboring == "replace_one" and event.sampling_rate < 1:
        raise ValueError(
            f"neighboring='replace_one' cannot be accounted for with ModelMix on batches of rate "
            f"{event.sampling_rate:g}; use the full batch, or 'add_or_remove_one'."
        )
    # Replacing a row moves the sum by at most twice what zeroing it out does.
    factor = 2.0 if neighboring == "replace_one" else 1.0
    return Amplification(
        shift=factor / (event.noise_multiplier * math.sqrt(event.linf_split)),
        width=event.width / event.noise_multiplier,
        sampling_rate=event.sampling_rate,
        linf_split=event.linf_split,
    )


def accountant_name(event: Event) -> str:
    """The words by which the report names the accountant of ``event``."""
    releases = event.unamplified
    if releases.sampling_rate < 1:
        name = "privacy loss distribution (dp-accounting)"
    elif releases.noise == "hardened":
        name = "zero-concentrated DP (discrete Gaussian)"
    else:
        name = "exact Gaussian (closed form)"
    return name if releases is event else f"the smaller of Renyi DP with amplification and {name}"
