"""Two of (epsilon and delta, noise multiplier, steps) determine the third."""

import math
from dataclasses import dataclass
from numbers import Integral, Real

from . import concentrated, gaussian
from .accountants import epsilon_of_event
from .events import NEIGHBORING, NOISE, GaussianEvent, Neighboring, Noise


def epsilon_of(
    noise_multiplier: float,
    n_steps: int,
    *,
    delta: float,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
) -> float:
    """Epsilon spent by ``n_steps`` Gaussian releases.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of one row.
    n_steps : int
        Number of releases.
    delta : float
        The delta at which epsilon is stated, in (0, 1).
    sampling_rate : float, default=1.0
        Probability with which a row takes part in a step (Poisson sampling); 1 is the full
        batch.
    neighboring : {"add_or_remove_one", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours.
    noise : {"float", "hardened"}, default="float"
        Continuous Gaussian noise; or discrete Gaussian noise on a grid, accounted for by
        zero-concentrated DP and at full batch only.

    Returns
    -------
    float
        Exact for continuous noise at full batch (closed form); an upper bound otherwise.

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
    _check_positive("noise_multiplier", noise_multiplier)
    _check_steps(n_steps)
    return _Terms(delta, sampling_rate, neighboring, noise).epsilon(noise_multiplier, n_steps)


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    n_steps: int,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
) -> float:
    """Smallest noise multiplier with which ``n_steps`` releases stay within the budget.

    Parameters and errors are those of :func:`epsilon_of`; ``epsilon`` is positive. The
    result is rounded up, so ``epsilon_of`` of it never exceeds ``epsilon``.
    """
    _check_positive("epsilon", epsilon)
    _check_steps(n_steps)
    terms = _Terms(delta, sampling_rate, neighboring, noise)
    full_batch = math.sqrt(n_steps) / terms.mu(epsilon)
    if sampling_rate == 1:
        return full_batch

    from . import sampled  # late, as in accountants.py

    # Sampling never costs privacy, so what the full batch needs is enough.
    return sampled.noise_multiplier_for(
        epsilon,
        delta,
        n_steps=n_steps,
        sampling_rate=sampling_rate,
        neighboring=neighboring,
        upper=full_batch,
    )


def steps_for(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
) -> int:
    """Largest number of releases of this noise multiplier that stays within the budget.

    Parameters are those of :func:`epsilon_of`; ``epsilon`` is positive.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the budget does not pay for one step: the
        sentence names a noise multiplier that would do.
    """
    _check_positive("epsilon", epsilon)
    _check_positive("noise_multiplier", noise_multiplier)
    terms = _Terms(delta, sampling_rate, neighboring, noise)

    def affordable(n_steps: int) -> bool:
        return terms.epsilon(noise_multiplier, n_steps) <= epsilon

    if not affordable(1):
        enough = noise_multiplier_for(
            epsilon,
            delta,
            n_steps=1,
            sampling_rate=sampling_rate,
            neighboring=neighboring,
            noise=noise,
        )
        raise ValueError(
            f"the budget epsilon={epsilon:g}, delta={delta:g} does not pay for one step at "
            f"noise_multiplier={noise_multiplier:g}; use noise_multiplier >= "
            f"{math.ceil(enough * 1000) / 1000:g} or a larger epsilon."
        )
    # What the full batch affords is affordable, since sampling only lowers the cost; the
    # margin by which budgets are rounded down may have cost a step.
    low = max(1, math.floor((terms.mu(epsilon) * noise_multiplier) ** 2))
    high = low + 1
    while affordable(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low


def mu_of_budget(
    epsilon: float,
    delta: float,
    *,
    neighboring: Neighboring = "add_or_remove_one",
    noise: Noise = "float",
) -> float:
    """Largest ``sqrt(sum_t 1 / sigma_t**2)`` that full-batch releases may reach.

    Parameters and errors are those of :func:`epsilon_of`; ``epsilon`` is positive.
    """
    _check_positive("epsilon", epsilon)
    return _Terms(delta, 1.0, neighboring, noise).mu(epsilon)


@dataclass(frozen=True)
class _Terms:
    """Everything about releases but their number and their noise; checked when made."""

    delta: float
    sampling_rate: float
    neighboring: Neighboring
    noise: Noise

    def __post_init__(self) -> None:
        if not (isinstance(self.delta, Real) and 0 < self.delta < 1):
            raise ValueError(f"delta={self.delta!r} must lie strictly between 0 and 1, well below 1/n.")
        if not (isinstance(self.sampling_rate, Real) and 0 < self.sampling_rate <= 1):
            raise ValueError(f"sampling_rate={self.sampling_rate!r} must lie in (0, 1]; 1 is the full batch.")
        for name, choices in (("neighboring", NEIGHBORING), ("noise", NOISE)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(choices)}.")
        if self.noise == "hardened" and self.sampling_rate < 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} cannot be accounted for with noise='hardened'; "
                "use the full batch (1) or noise='float'."
            )

    def epsilon(self, noise_multiplier: float, n_steps: int) -> float:
        event = GaussianEvent(noise_multiplier, n_steps, self.sampling_rate, self.noise)
        return epsilon_of_event(event, self.delta, self.neighboring)

    def mu(self, epsilon: float) -> float:
        """Full-batch budget ``sqrt(sum_t 1 / sigma_t**2)``."""
        if self.noise == "hardened":
            mu = math.sqrt(2 * concentrated.rho_for(epsilon, self.delta))
        else:
            mu = gaussian.mu_for(epsilon, self.delta)
        return mu / 2 if self.neighboring == "replace_one" else mu


def _check_steps(n_steps: int) -> None:
    if not isinstance(n_steps, Integral) or n_steps < 1:
        raise ValueError(f"n_steps={n_steps!r} must be a whole number of at least 1.")


def _check_positive(name: str, value: float) -> None:
    if not (isinstance(value, Real) and 0 < value < math.inf):
        raise ValueError(f"{name}={value!r} must be a positive finite number.")
