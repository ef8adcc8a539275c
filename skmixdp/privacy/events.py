"""What a mechanism did to its private rows, as data.

An event says nothing about trainers: it is what accounting needs and no more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from .mixing import Conversion
from .trials import TrialLaw, shape_of

Neighboring = Literal["add_or_remove_one", "replace_one"]
Noise = Literal["float", "hardened"]
NOISE: tuple[Noise, ...] = get_args(Noise)
NEIGHBORING: tuple[Neighboring, ...] = get_args(Neighboring)


class Event(Protocol):
    """What plans and reports ask of an event of any kind."""

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over the L2 sensitivity of one zeroed-out row."""

    @property
    def n_steps(self) -> int:
        """Number of releases."""

    @property
    def sampling_rate(self) -> float:
        """Probability with which a row takes part in a release."""

    @property
    def unamplified(self) -> "GaussianEvent":
        """The Gaussian releases that it consists of; itself, if there is nothing else to it."""

    def mu(self, neighboring: Neighboring) -> float | None:
        """Gaussian-DP parameter of the composition; None where it has none exactly."""


#: Makes the event of a run from its noise multiplier, steps, sampling rate and kind of noise.
EventFamily = Callable[[float, int, float, Noise], Event]


@dataclass(frozen=True)
class GaussianEvent:
    """``n_steps`` releases of ``sum + N(0, (noise_multiplier * sensitivity)**2 I)``.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of the sum when one
        row is zeroed out.
    n_steps : int
        Number of releases, each allowed to depend on the earlier ones.
    sampling_rate : float, default=1.0
        Probability with which each row takes part in a release, independently (Poisson
        sampling). 1 is the full batch.
    noise : {"float", "hardened"}, default="float"
        Continuous Gaussian noise; or, on sums that are multiples of a grid, discrete
        Gaussian noise on that grid.
    """

    noise_multiplier: float
    n_steps: int
    sampling_rate: float = 1.0
    noise: Noise = "float"

    @property
    def unamplified(self) -> "GaussianEvent":
        """Itself."""
        return self

    def mu(self, neighboring: Neighboring) -> float | None:
        """Gaussian-DP parameter of the composition; None where it has none exactly.

        A discrete Gaussian has the zero-concentrated guarantee ``rho = mu**2 / 2`` of the
        continuous one, but not its Gaussian-DP curve.
        """
        if self.sampling_rate < 1 or self.noise == "hardened":
            return None
        return math.sqrt(2 * self.rho(neighboring))

    def rho(self, neighboring: Neighboring) -> float:
        """Zero-concentrated DP parameter at full batch: ``sum_t 1 / (2 sigma_t**2)``."""
        # Replacing a row moves the sum by at most twice what zeroing it out does.
        factor = 4.0 if neighboring == "replace_one" else 1.0
        return factor * self.n_steps / (2 * self.noise_multiplier**2)


@dataclass(frozen=True)
class ModelMixEvent:
    """Gaussian releases, each hidden in a head that mixes the last two with secret weights.

    Parameters
    ----------
    noise_multiplier, n_steps, sampling_rate, noise
        As in :class:`GaussianEvent`.
    width : float
        Least width of the mixing in each coordinate over the L2 sensitivity of the sum.
    linf_split : int, default=1
        ``s``, if one row moves no coordinate by more than the L2 sensitivity over ``sqrt(s)``.
    conversion : {"tight", "classic"}, default="tight"
        From Renyi orders to (epsilon, delta).
    """

    noise_multiplier: float
    n_steps: int
    sampling_rate: float = 1.0
    noise: Noise = "float"
    width: float = field(kw_only=True)
    linf_split: int = field(default=1, kw_only=True)
    conversion: Conversion = field(default="tight", kw_only=True)

    @property
    def unamplified(self) -> GaussianEvent:
        """The same releases in the open."""
        return GaussianEvent(self.noise_multiplier, self.n_steps, self.sampling_rate, self.noise)

    def mu(self, neighboring: Neighboring) -> float | None:
        """None: mixed releases are not Gaussian."""
        return None


@dataclass(frozen=True)
class SelectionEvent:
    """The best of a random number of trials, each of them Gaussian releases at full batch.

    Only the best trial is released: neither the others nor their number.

    Parameters
    ----------
    noise_multiplier : float
        Of one Gaussian release that stands for all releases of a trial:
        ``1 / sqrt(sum_t 1 / sigma_t**2)``.
    mean : float
        Expected number of trials.
    distribution : str or float
        Law of that number, as :func:`~skmixdp.privacy.trials.shape_of` understands it.
    noise : {"float", "hardened"}, default="float"
        As in :class:`GaussianEvent`.
    refit_multiplier : float or None, default=None
        In the same way, of a fit with the parameters of the best trial; None is no such fit.
    """

    noise_multiplier: float
    mean: float
    distribution: str | float
    noise: Noise = "float"
    refit_multiplier: float | None = None

    @property
    def law(self) -> TrialLaw:
        """Law of the number of trials."""
        return TrialLaw(self.mean, shape_of(self.distribution))
