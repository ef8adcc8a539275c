"""Events: the data that accounting needs about a mechanism.

They are independent of training. Their fields are checked when they are made, so accountants and ledgers
never see invalid numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from ..._utils.validation import COUNT, POSITIVE, PROBABILITY, Number, check, number

Neighboring = Literal["add_or_remove_one", "zero_out", "replace_one"]
Noise = Literal["float", "discrete"]

#: Names of the relations between neighbours. Zeroing out a row (REPLACE_SPECIAL in dp-accounting) gives the
#: same numbers as adding or removing one.
NEIGHBORING: tuple[Neighboring, ...] = get_args(Neighboring)

#: Names of kinds of Gaussian noise.
NOISE: tuple[Noise, ...] = get_args(Noise)

#: Noise multipliers. Their squares, times the largest number of steps, must not overflow.
MULTIPLIER = Number("a number from 1e-120 to 1e120", low=1e-120, high=1e120, closed="both")

#: Deltas of releases of other tools, 0 for pure differential privacy.
_DELTA = number(0, 1, closed="left")

_RATE = Number("a number above 0 and at most 1, which is the full batch", low=0, high=1, closed="right")


def relation_name(neighboring: Neighboring) -> Neighboring:
    """The name under which ledgers store a relation. Relations with the same numbers share a name."""
    return "add_or_remove_one" if neighboring == "zero_out" else neighboring


def shift_of(neighboring: Neighboring) -> float:
    """Largest distance of the sums of neighbours, divided by the L2 sensitivity of one zeroed-out row."""
    return 2.0 if neighboring == "replace_one" else 1.0


def check_terms(delta: float, neighboring: Neighboring, noise: Noise = "float") -> None:
    """Refuse terms of a guarantee that are outside their range."""
    check("delta", delta, PROBABILITY, remedy="choose it well below 1/n, such as 1e-5")
    check("neighboring", neighboring, *NEIGHBORING)
    check("noise", noise, *NOISE)


@dataclass(frozen=True)
class GaussianEvent:
    """``n_steps`` releases of ``sum + N(0, (noise_multiplier * sensitivity)**2 I)``.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of the sum when one
        row is zeroed out.
    n_steps : int
        Number of releases. Each may depend on the earlier ones.
    sampling_rate : float, default=1.0
        Probability that a row is in the batch of a release, independently of other rows (Poisson sampling).
        1 is the full batch.
    noise : {"float", "discrete"}, default="float"
        Continuous Gaussian noise, or discrete Gaussian noise on the grid of the sums.

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
        check("noise_multiplier", self.noise_multiplier, MULTIPLIER)
        check("n_steps", self.n_steps, COUNT)
        check("sampling_rate", self.sampling_rate, _RATE)
        check("noise", self.noise, *NOISE)
        if self.noise == "discrete" and self.sampling_rate < 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} cannot be accounted for with noise='discrete'; use "
                "the full batch (1) or noise='float'."
            )
        vars(self).update(
            noise_multiplier=float(self.noise_multiplier),
            n_steps=int(self.n_steps),
            sampling_rate=float(self.sampling_rate),
        )

    @property
    def unamplified(self) -> "GaussianEvent":
        """The Gaussian releases of the event, which a subclass may amplify; here itself."""
        return self

    def mu(self, neighboring: Neighboring) -> float | None:
        """Gaussian-DP parameter of the composition; None if no exact one exists.

        A discrete Gaussian has the zero-concentrated guarantee ``rho = mu**2 / 2`` of the
        continuous one, but not its Gaussian-DP curve.
        """
        if self.sampling_rate < 1 or self.noise == "discrete":
            return None
        return self.full_mu(neighboring)

    def full_mu(self, neighboring: Neighboring) -> float:
        """Gaussian-DP parameter of the same releases at full batch with continuous noise."""
        return shift_of(neighboring) * math.sqrt(self.n_steps) / self.noise_multiplier

    def rho(self, neighboring: Neighboring) -> float:
        """Zero-concentrated DP parameter at full batch: ``sum_t 1 / (2 sigma_t**2)``."""
        return 0.5 * self.n_steps * (shift_of(neighboring) / self.noise_multiplier) ** 2


@dataclass(frozen=True)
class OtherRelease:
    """An (epsilon, delta)-differentially private release of another tool, such as Laplace noise on a count.

    Parameters
    ----------
    epsilon : float
        Epsilon that the other tool states.
    delta : float, default=0.0
        Its delta; 0 for pure differential privacy.

    Raises
    ------
    ValueError
        If a field is outside its range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check("epsilon", self.epsilon, POSITIVE)
        check("delta", self.delta, _DELTA)

    @classmethod
    def of(cls, event: object, delta: float) -> "OtherRelease":
        """The release of an event of dp-accounting, at a delta.

        Parameters
        ----------
        event : dp_accounting.DpEvent
            What the other tool releases, under the neighbouring relation of the data set to be charged.
        delta : float
            The delta at which to state its epsilon, above 0. Pass the epsilon of a pure mechanism by itself.

        Returns
        -------
        OtherRelease
            The release with the epsilon that the accountant of privacy loss distributions finds.

        Raises
        ------
        ValueError
            If the event has no finite epsilon at this delta.
        """
        from dp_accounting.pld import PLDAccountant  # takes a second to import

        check("delta", delta, PROBABILITY)
        epsilon = float(PLDAccountant().compose(event).get_epsilon(delta))
        if not math.isfinite(epsilon):
            raise ValueError(f"delta={delta!r} gives {event!r} no finite epsilon; pass a larger delta.")
        return cls(epsilon, delta)


#: A function from noise multiplier, steps, sampling rate and kind of noise to the event of a run.
EventFamily = Callable[[float, int, float, Noise], GaussianEvent]


def accountant_name(event: GaussianEvent) -> str:
    """The report's name for the accountant of ``event``."""
    releases = event.unamplified
    if releases.sampling_rate < 1:
        name = "privacy loss distribution (dp-accounting)"
    elif releases.noise == "discrete":
        name = "zero-concentrated DP (discrete Gaussian)"
    else:
        name = "exact Gaussian (closed form)"
    return name if releases is event else f"the smaller of Renyi DP with amplification and {name}"
