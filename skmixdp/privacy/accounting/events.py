"""What a mechanism did to its private rows, as data.

An event says nothing about trainers: it is what accounting needs and no more. Its fields are checked when
it is made, so that no accountant, and no ledger that reads it back, meets a number that makes no sense.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from .checks import check_choice, check_count, check_positive, check_rate
from .mixing import CONVERSION, Conversion
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

    Raises
    ------
    ValueError
        If a field is outside its range.
    """

    noise_multiplier: float
    n_steps: int
    sampling_rate: float = 1.0
    noise: Noise = "float"

    def __post_init__(self) -> None:
        _check_releases(self)

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
        # Divided twice, since the square of a tiny or huge multiplier is no float.
        return factor / 2 * self.n_steps / self.noise_multiplier / self.noise_multiplier


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
        _check_releases(self)
        _keep(self, "width", check_positive("width", self.width))
        _keep(self, "linf_split", check_count("linf_split", self.linf_split))
        check_choice("conversion", self.conversion, CONVERSION)

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
        Law of that number, as :func:`~skmixdp.privacy.accounting.trials.shape_of` understands it.
    noise : {"float", "hardened"}, default="float"
        As in :class:`GaussianEvent`.
    refit_multiplier : float or None, default=None
        In the same way, of a fit with the parameters of the best trial; None is no such fit.

    Raises
    ------
    ValueError
        If a field is outside its range.
    """

    noise_multiplier: float
    mean: float
    distribution: str | float
    noise: Noise = "float"
    refit_multiplier: float | None = None

    def __post_init__(self) -> None:
        _keep(self, "noise_multiplier", check_positive("noise_multiplier", self.noise_multiplier))
        law = self.law
        _keep(self, "mean", law.mean)
        _keep(self, "distribution", law.name)
        check_choice("noise", self.noise, NOISE)
        if self.refit_multiplier is not None:
            _keep(self, "refit_multiplier", check_positive("refit_multiplier", self.refit_multiplier))

    @property
    def law(self) -> TrialLaw:
        """Law of the number of trials."""
        return TrialLaw(self.mean, shape_of(self.distribution))


def _check_releases(event: GaussianEvent | ModelMixEvent) -> None:
    """Check the fields that Gaussian releases of any kind have."""
    _keep(event, "noise_multiplier", check_positive("noise_multiplier", event.noise_multiplier))
    _keep(event, "n_steps", check_count("n_steps", event.n_steps))
    _keep(event, "sampling_rate", check_rate(event.sampling_rate))
    check_choice("noise", event.noise, NOISE)


def _keep(event: object, name: str, value: Any) -> None:
    """Put a checked number into a frozen event, as a number of Python: equal events then look alike."""
    object.__setattr__(event, name, value)
