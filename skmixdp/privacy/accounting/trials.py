"""Distributions of a random, secret number of trials of a search.

Source: Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy", Definitions 1 and
5. The parameters are those of ``dp-accounting``: a mean and a shape. Shape 0 is the logarithmic distribution,
1 is geometric, any positive number is truncated negative binomial, and infinity is Poisson.
"""

import math
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.stats import poisson

from ..._utils.validation import Kind, Number, as_float, check

#: Shapes of the distributions that have names.
SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}

#: Ranges of the mean and of finite shapes. Outside of them, the probability of one trial is below the range
#: of floats, and drawing a number may take minutes.
_MEAN = Number("a number from 1 to 1e6", low=1, high=1e6, closed="both")
_SHAPE = Number("a number from 0 to 50", low=0, high=50, closed="both")
_POISSON = Kind("infinity, which is Poisson", lambda value: as_float(value) == math.inf)

#: Relative precision of ``halting_probability``, which errs towards fewer trials.
_PRECISION = 1e-9


@dataclass(frozen=True)
class TrialLaw:
    """Distribution of a random number of trials.

    Parameters
    ----------
    mean : float
        Expected number of trials, from 1 to 1e6.
    shape : float
        0 is logarithmic, 1 is geometric, infinity is Poisson. All other numbers up to 50 are truncated
        negative binomial. Poisson may give no trial at all; the others give at least one.

    Raises
    ------
    ValueError
        If a parameter is outside its range.
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        check("mean", self.mean, _MEAN)
        check("shape", self.shape, _SHAPE, _POISSON)
        object.__setattr__(self, "mean", float(self.mean))
        object.__setattr__(self, "shape", float(self.shape))

    @property
    def name(self) -> str | float:
        """The name of the shape for :func:`shape_of`, or the shape itself if it has no name."""
        return next((name for name, shape in SHAPES.items() if shape == self.shape), self.shape)

    @property
    def halting_probability(self) -> float:
        """The parameter ``gamma`` of all distributions except Poisson.

        It is rounded up. The mean of the draws is then at most the stated mean, which accounting uses.
        """
        if self.mean == 1:
            return 1.0
        if self.shape == 1:
            return 1 / self.mean
        # The mean falls from infinity at gamma 0 to 1 at gamma 1, so the bracket holds the root.
        least = -2 * math.log(self.mean) - 2
        most = -0.25 * math.log1p((self.mean - 1) / (1 + self.shape))
        root = brentq(
            lambda log_gamma: math.log(_mean(log_gamma, self.shape) / self.mean),
            least,
            most,
            xtol=_PRECISION / 4,
        )
        return min(1.0, math.exp(root) * (1 + _PRECISION))

    @property
    def least_halting_probability(self) -> float:
        """``halting_probability`` rounded down, with which accounting charges more."""
        return self.halting_probability * (1 - 2 * _PRECISION)

    def number(self, u: float) -> int:
        """The quantile function: number of trials for a uniform number ``u`` in [0, 1)."""
        if self.shape == math.inf:
            return max(0, int(poisson.ppf(u, self.mean)))
        gamma = self.halting_probability
        if gamma == 1:
            return 1
        # Definition 1: P(K = k + 1) / P(K = k) = (1 - gamma) (k + shape) / (k + 1).
        number, probability = 1, (1 - gamma) / _power(-math.log(gamma), self.shape)
        below = probability
        while u >= below:
            probability *= (1 - gamma) * (number + self.shape) / (number + 1)
            number += 1
            if number > self.mean and below + probability == below:
                break  # the other numbers have less probability than the precision of u
            below += probability
        return number


def shape_of(distribution: object) -> float:
    """The shape of a distribution that is passed by name or as a number.

    Raises
    ------
    ValueError
        If it is neither a known name nor a number from 0 to 50, nor infinity.
    """
    if isinstance(distribution, str) and distribution in SHAPES:
        return SHAPES[distribution]
    if (shape := as_float(distribution)) is not None and (_SHAPE.admits(shape) or _POISSON.admits(shape)):
        return shape
    raise ValueError(
        f"distribution={distribution!r} must be one of {', '.join(map(repr, SHAPES))}, or a number from 0 "
        "to 50, the shape of a truncated negative binomial law."
    )


def _mean(log_gamma: float, shape: float) -> float:
    """Mean of the truncated negative binomial law."""
    return math.expm1(-log_gamma) / -_power(log_gamma, shape)


def _power(log: float, shape: float) -> float:
    """``(exp(log)**shape - 1) / shape`` of Definition 1; its limit at 0 belongs to the logarithmic law."""
    return math.expm1(shape * log) / shape if shape > 1e-200 else log
