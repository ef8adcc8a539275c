"""The event of ModelMix, its accountants, and its epsilon."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._utils.validation import COUNT, POSITIVE, check
from ...components.protocols import FloatArray
from ...privacy import GaussianEvent, epsilon_of_event, mu_of_event, rdp_of_event, register_event
from ...privacy.accounting.budgets import amplified_epsilon
from ...privacy.accounting.events import Neighboring, Noise, check_releases, check_terms, shift_of
from . import accountant
from .accountant import CONVERSION, Conversion


@register_event("modelmix")
@dataclass(frozen=True)
class ModelMixEvent:
    """Gaussian releases, each of which starts from a secret random mix of the last two heads.

    Parameters
    ----------
    noise_multiplier, n_steps, sampling_rate, noise
        As in :class:`~skmixdp.privacy.GaussianEvent`.
    width : float
        Smallest width of the mixing in each coordinate, divided by the L2 sensitivity of the sum.
    linf_split : int, default=1
        ``s``, if one row moves no coordinate by more than the L2 sensitivity divided by ``sqrt(s)``.
    conversion : {"tight", "classic"}, default="tight"
        Conversion from Renyi orders to (epsilon, delta).

    Raises
    ------
    ValueError
        If a field is outside its range.
    """

    noise_multiplier: float
    n_steps: int
    sampling_rate: float = 1.0
    noise: Noise = "float"
    width: float = field(kw_only=True)
    linf_split: int = field(default=1, kw_only=True)
    conversion: Conversion = field(default="tight", kw_only=True)

    def __post_init__(self) -> None:
        check_releases(self)
        check("width", self.width, POSITIVE)
        check("linf_split", self.linf_split, COUNT)
        check("conversion", self.conversion, *CONVERSION)
        vars(self).update(width=float(self.width), linf_split=int(self.linf_split))

    @property
    def unamplified(self) -> GaussianEvent:
        """The same releases without mixing."""
        return GaussianEvent(self.noise_multiplier, self.n_steps, self.sampling_rate, self.noise)

    def mu(self, neighboring: Neighboring) -> float | None:
        """None: mixed releases are not Gaussian."""
        return None


def _amplification_of(event: ModelMixEvent, neighboring: Neighboring) -> dict[str, Any]:
    """The arguments of :func:`accountant.epsilon_for`, in units of the noise, if it covers the event."""
    if event.noise == "discrete":
        raise ValueError("noise='discrete' cannot be accounted for with ModelMix; use noise='float'.")
    if neighboring == "replace_one" and event.sampling_rate < 1:
        raise ValueError(
            f"neighboring='replace_one' cannot be accounted for with ModelMix on batches of rate "
            f"{event.sampling_rate:g}; use the full batch, or 'add_or_remove_one'."
        )
    return {
        "shift": shift_of(neighboring) / (event.noise_multiplier * math.sqrt(event.linf_split)),
        "width": event.width / event.noise_multiplier,
        "sampling_rate": event.sampling_rate,
        "linf_split": event.linf_split,
    }


@epsilon_of_event.register
def _(event: ModelMixEvent, delta: float, neighboring: Neighboring) -> float:
    amplified = amplified_epsilon(event, delta, neighboring)
    return min(amplified, epsilon_of_event(event.unamplified, delta, neighboring))


@amplified_epsilon.register
def _(event: ModelMixEvent, delta: float, neighboring: Neighboring) -> float:
    return accountant.epsilon_for(
        n_steps=event.n_steps,
        delta=delta,
        conversion=event.conversion,
        **_amplification_of(event, neighboring),
    )


@rdp_of_event.register
def _(event: ModelMixEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    amplified = accountant.renyi(orders, event.n_steps, **_amplification_of(event, neighboring))
    return np.asarray(np.minimum(amplified, rdp_of_event(event.unamplified, orders, neighboring)))


@mu_of_event.register
def _(event: ModelMixEvent, neighboring: Neighboring) -> float:
    return mu_of_event(event.unamplified, neighboring)  # mixing is post-processing


def modelmix_epsilon(
    noise_multiplier: float,
    n_steps: int,
    *,
    delta: float,
    width: float,
    sampling_rate: float = 1.0,
    linf_split: int = 1,
    conversion: Conversion = "tight",
    neighboring: Neighboring = "add_or_remove_one",
) -> float:
    """Epsilon of ``n_steps`` Gaussian releases, each from a secret mix of two heads.

    Parameters
    ----------
    noise_multiplier, n_steps, delta
        As in :func:`~skmixdp.privacy.epsilon_of`.
    width : float
        Smallest width of the mixing in each coordinate, in units of the clip and on the scale of the clipped
        SUM: ``tau_mix * b / (step_size * (1 - a) * clip)``.
    sampling_rate : float, default=1.0
        Probability that a row is in the batch of a step (Poisson sampling).
    linf_split : int, default=1
        ``s``, if no coordinate of a row's contribution exceeds ``clip / sqrt(s)``.
    conversion : {"tight", "classic"}, default="tight"
        Conversion from Renyi orders to (epsilon, delta); ``"classic"`` is the paper's.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours; ``"replace_one"`` only at the full batch.

    Returns
    -------
    float
        The smaller of the amplified epsilon and the epsilon without mixing, which is valid with mixing too.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or for ``"replace_one"`` on sampled batches.

    Notes
    -----
    *Guarantee*: the amplification rests on two properties that are tested on grids and not proved (see
    ``skmixdp/_papers/modelmix/accountant.py``). Without it, the bound is that of :func:`epsilon_of`. The
    amplified bound takes some 0.03 seconds. On sampled batches, :func:`epsilon_of` takes additional time (0.4
    seconds around epsilon 3, 5 seconds around 200).

    Source: ModelMix, Theorem 4.1 and Corollary 4.1, which misprint the sign of ``alpha - 1`` and omit the
    number of steps.

    Examples
    --------
    >>> from skmixdp.algorithms.modelmix import modelmix_epsilon
    >>> round(modelmix_epsilon(0.364, 500, delta=1e-5, width=15, sampling_rate=0.02, linf_split=25), 2)
    2.52
    """
    check_terms(delta, neighboring)
    event = ModelMixEvent(
        noise_multiplier, n_steps, sampling_rate, width=width, linf_split=linf_split, conversion=conversion
    )
    return epsilon_of_event(event, delta, neighboring)
