"""The epsilon of events, and the noise or number of steps that a budget allows.

Each event class registers its accountant with :func:`epsilon_of_event`. Events of other classes are refused.
Of epsilon, noise multiplier and number of steps, any two determine the third.
"""

import math
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any

from ..._utils.process import warn
from ..._utils.validation import COUNT, POSITIVE, check
from . import gaussian
from .events import EventFamily, GaussianEvent, Neighboring, Noise, check_terms, shift_of

#: Epsilon above which a fit warns. At delta 1e-5, 84% of an attacker's guesses about a row may be right.
LARGE_EPSILON = 10.0

#: Largest number of steps, above which whole numbers are not exact as floats.
_MOST_STEPS = 2**53

#: Relative precision of the noise multiplier of an amplified event, which is rounded up.
_PRECISION = 1e-4


# -- epsilon of events ------------------------------------------------------------------


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
    from . import sampled  # imported here, since dp-accounting takes a second and full batches never need it

    return sampled.epsilon_of(event, delta, neighboring)


@singledispatch
def amplified_epsilon(event: object, delta: float, neighboring: Neighboring) -> float:
    """Epsilon of ``event`` by amplification beyond its Gaussian releases; infinite if there is none."""
    return math.inf


def epsilon_of(
    noise_multiplier: float,
    n_steps: int,
    *,
    delta: float,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
) -> float:
    """Epsilon of ``n_steps`` Gaussian releases.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of one row.
    n_steps : int
        Number of releases.
    delta : float
        The delta at which epsilon is stated, in (0, 1).
    sampling_rate : float, default=1.0
        Probability that a row is in the batch of a step (Poisson sampling); 1 is the full batch.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours; the first two have the same numbers.
    noise : {"float", "discrete"}, default="float"
        Continuous Gaussian noise, or discrete Gaussian noise on a grid. Discrete noise is accounted for by
        zero-concentrated DP, at full batch only.

    Returns
    -------
    float
        Epsilon: exact for continuous noise at full batch (closed form), an upper bound otherwise.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    Examples
    --------
    >>> from skmixdp.privacy import epsilon_of
    >>> round(epsilon_of(20, 240, delta=1e-5), 6)
    3.26455
    """
    check_terms(delta, neighboring)
    event = GaussianEvent(noise_multiplier, n_steps, sampling_rate, noise)
    return epsilon_of_event(event, delta, neighboring)


def warn_of_epsilon(epsilon: float) -> None:
    """Warn of an epsilon, given or derived, that guarantees next to nothing."""
    if epsilon > LARGE_EPSILON:
        warn(
            f"epsilon={epsilon:.4g} guarantees next to nothing, since a guess of whether a row took part may "
            "mostly be right; use a smaller epsilon or more noise, such as epsilon=1, or 8 at most."
        )


# -- budgets ----------------------------------------------------------------------------


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    n_steps: int,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
    family: EventFamily = GaussianEvent,
) -> float:
    """Smallest noise multiplier with which ``n_steps`` releases stay within the budget.

    Parameters and errors are those of :func:`epsilon_of`; ``epsilon`` is positive. The result is rounded up,
    so its epsilon never exceeds ``epsilon``. ``family`` makes the event of the releases from noise
    multiplier, steps, sampling rate and kind of noise. Pass it if the releases are more than Gaussian noise.
    """
    GaussianEvent(1.0, n_steps, sampling_rate, noise)  # refuses what is out of range

    def amplified_within(multiplier: float) -> bool:
        event = family(multiplier, n_steps, sampling_rate, noise)
        return amplified_epsilon(event, delta, neighboring) <= epsilon

    # The multiplier that suffices without amplification also suffices with it.
    mu = mu_of_budget(epsilon, delta, neighboring=neighboring, noise=noise)
    enough = math.sqrt(n_steps) / mu
    if sampling_rate < 1:
        from . import sampled  # imported here, since dp-accounting takes a second

        # Sampling never costs privacy, so the multiplier of the full batch is sufficient.
        enough = sampled.noise_multiplier_for(
            epsilon,
            delta,
            n_steps=n_steps,
            sampling_rate=sampling_rate,
            neighboring=neighboring,
            upper=enough,
        )
    if not amplified_within(enough):
        return enough
    low = enough / 2
    while amplified_within(low):
        low, enough = low / 2, low
    while enough > low * (1 + _PRECISION):
        middle = math.sqrt(low * enough)
        if amplified_within(middle):
            enough = middle
        else:
            low = middle
    return enough


def steps_for(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
    family: EventFamily = GaussianEvent,
) -> int:
    """Largest number of releases, up to 2**53, with this noise multiplier that stays within the budget.

    Parameters are those of :func:`epsilon_of`; ``epsilon`` is positive. ``family`` is as in
    :func:`noise_multiplier_for`.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the budget is too small for one step. The message then
        names a sufficient noise multiplier.
    """
    check("epsilon", epsilon, POSITIVE)
    check_terms(delta, neighboring)
    GaussianEvent(noise_multiplier, 1, sampling_rate, noise)  # refuses what is out of range

    def affordable(n_steps: int) -> bool:
        # The amplified bound comes first, since it is faster.
        releases = noise_multiplier, n_steps, sampling_rate, noise
        if amplified_epsilon(family(*releases), delta, neighboring) <= epsilon:
            return True
        return epsilon_of_event(GaussianEvent(*releases), delta, neighboring) <= epsilon

    if not affordable(1):
        terms: dict[str, Any] = {"neighboring": neighboring, "noise": noise, "family": family}
        enough = noise_multiplier_for(epsilon, delta, n_steps=1, sampling_rate=sampling_rate, **terms)
        raise ValueError(
            f"the budget epsilon={epsilon:g}, delta={delta:g} is too small for one step at "
            f"noise_multiplier={noise_multiplier:g}; use noise_multiplier >= "
            f"{enough * (1 + 1e-5):.6g} or a larger epsilon."
        )
    # The number of steps of the full batch is within the budget, since sampling only lowers the cost. It may
    # be one too small, since budgets are rounded down.
    mu = mu_of_budget(epsilon, delta, neighboring=neighboring, noise=noise)
    low = min(max(1, math.floor((mu * noise_multiplier) ** 2)), _MOST_STEPS)
    high = low + 1
    while high <= _MOST_STEPS and affordable(high):
        low, high = high, 2 * high
    high = min(high, _MOST_STEPS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low


def mu_of_budget(
    epsilon: float, delta: float, *, neighboring: Neighboring = "add_or_remove_one", noise: Noise = "float"
) -> float:
    """Largest ``sqrt(sum_t 1 / sigma_t**2)`` that full-batch releases may reach.

    Parameters and errors are those of :func:`epsilon_of`; ``epsilon`` is positive.
    """
    check("epsilon", epsilon, POSITIVE)
    check_terms(delta, neighboring, noise)
    if noise == "discrete":
        mu = math.sqrt(2 * gaussian.rho_for(epsilon, delta))
    else:
        mu = gaussian.mu_for(epsilon, delta)
    return mu / shift_of(neighboring)


@dataclass(frozen=True)
class Budget:
    """The privacy budget of a fit, checked when it is made; values to be computed are None."""

    epsilon: float | None
    delta: float
    n_steps: int | None
    noise_multiplier: float | None
    neighboring: Neighboring
    noise: Noise

    def __post_init__(self) -> None:
        check("epsilon", self.epsilon, POSITIVE, None)
        check("noise_multiplier", self.noise_multiplier, POSITIVE, None)
        check("n_steps", self.n_steps, COUNT, None)
        check_terms(self.delta, self.neighboring, self.noise)
        open_terms = [name for name in ("noise_multiplier", "n_steps") if vars(self)[name] is None]
        if self.epsilon is not None and not open_terms:
            raise ValueError(
                f"epsilon={self.epsilon!r}, noise_multiplier={self.noise_multiplier!r} and "
                f"n_steps={self.n_steps!r} cannot all be given, since two of them determine the third; pass "
                "epsilon=None to fix the other two."
            )
        if self.epsilon is not None:
            warn_of_epsilon(self.epsilon)
        if self.epsilon is None and open_terms:
            raise ValueError(
                f"epsilon=None needs both noise_multiplier (now {self.noise_multiplier!r}) and n_steps "
                f"(now {self.n_steps!r}); give them, or an epsilon."
            )

    @cached_property
    def mu(self) -> float:
        """The budget as a full-batch Gaussian-DP parameter, for one zeroed-out row."""
        if self.epsilon is not None:
            return mu_of_budget(self.epsilon, self.delta, neighboring=self.neighboring, noise=self.noise)
        assert self.n_steps is not None and self.noise_multiplier is not None
        return math.sqrt(self.n_steps) / self.noise_multiplier

    @property
    def is_divisible(self) -> bool:
        """Whether epsilon alone fixes the budget, so that releases of any size can share it."""
        return self.epsilon is not None and self.n_steps is None and self.noise_multiplier is None

    @cached_property
    def whole(self) -> GaussianEvent:
        """One full-batch Gaussian event of the whole budget; parts of it add up by ``1 / sigma**2``."""
        if self.epsilon is None:
            assert self.n_steps is not None and self.noise_multiplier is not None
            return GaussianEvent(self.noise_multiplier, self.n_steps, noise=self.noise)
        return GaussianEvent(1 / self.mu, 1, noise=self.noise)

    def multiplier(self, share: float, n_releases: int = 1) -> float:
        """Noise multiplier of each of ``n_releases`` that together spend a share of mu squared."""
        # The last factor covers the rounding of the sum of shares.
        return self.whole.noise_multiplier * math.sqrt(n_releases / share) * (1 + 1e-12)
