"""Two of (epsilon and delta, noise multiplier, steps) determine the third."""

import math
from collections.abc import Callable
from numbers import Integral, Real

from scipy.optimize import brentq

from . import gaussian
from .events import NEIGHBORING, GaussianEvent, Neighboring, epsilon_of_event


def epsilon_of(
    noise_multiplier: float,
    n_steps: int,
    *,
    delta: float,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
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

    Returns
    -------
    float
        Exact at full batch (closed form); otherwise an upper bound by dp-accounting's
        privacy loss distribution.

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
    _check(
        noise_multiplier=noise_multiplier, delta=delta, sampling_rate=sampling_rate, neighboring=neighboring
    )
    _check_steps(n_steps)
    return epsilon_of_event(GaussianEvent(noise_multiplier, n_steps, sampling_rate), delta, neighboring)


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    n_steps: int,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
) -> float:
    """Smallest noise multiplier with which ``n_steps`` releases stay within the budget.

    Parameters and errors are those of :func:`epsilon_of`; ``epsilon`` is positive. The
    result is rounded up, so ``epsilon_of`` of it never exceeds ``epsilon``.
    """
    _check(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate, neighboring=neighboring)
    _check_steps(n_steps)
    full_batch = math.sqrt(n_steps) / mu_of_budget(epsilon, delta, neighboring)
    if sampling_rate == 1:
        return full_batch

    def excess(log_sigma: float) -> float:
        event = GaussianEvent(math.exp(log_sigma), n_steps, sampling_rate)
        return math.log(max(epsilon_of_event(event, delta, neighboring), 1e-12) / epsilon)

    # Sampling never costs privacy, so the full batch is an upper bound for the search.
    high = math.log(full_batch)
    low = high - 0.5
    while excess(low) < 0:
        low, high = low - 0.5, low
    root = math.exp(brentq(excess, low, high, xtol=1e-5))
    return _grow(
        root,
        lambda s: epsilon_of_event(GaussianEvent(s, n_steps, sampling_rate), delta, neighboring),
        epsilon,
    )


def steps_for(
    epsilon: float,
    delta: float,
    *,
    noise_multiplier: float,
    sampling_rate: float = 1.0,
    neighboring: Neighboring = "add_or_remove_one",
) -> int:
    """Largest number of releases of this noise multiplier that stays within the budget.

    Parameters are those of :func:`epsilon_of`; ``epsilon`` is positive.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or if the budget does not pay for one step: the
        sentence names a noise multiplier that would do.
    """
    _check(
        epsilon=epsilon,
        noise_multiplier=noise_multiplier,
        delta=delta,
        sampling_rate=sampling_rate,
        neighboring=neighboring,
    )

    def affordable(n_steps: int) -> bool:
        event = GaussianEvent(noise_multiplier, n_steps, sampling_rate)
        return epsilon_of_event(event, delta, neighboring) <= epsilon

    if not affordable(1):
        enough = noise_multiplier_for(
            epsilon, delta, n_steps=1, sampling_rate=sampling_rate, neighboring=neighboring
        )
        raise ValueError(
            f"the budget epsilon={epsilon:g}, delta={delta:g} does not pay for one step at "
            f"noise_multiplier={noise_multiplier:g}; use noise_multiplier >= "
            f"{math.ceil(enough * 1000) / 1000:g} or a larger epsilon."
        )
    full_batch = (mu_of_budget(epsilon, delta, neighboring) * noise_multiplier) ** 2
    low = max(1, math.floor(full_batch))  # affordable: sampling only lowers the cost
    if not affordable(low):
        low = 1
    high = low + 1
    while affordable(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low


def mu_of_budget(epsilon: float, delta: float, neighboring: Neighboring) -> float:
    """Full-batch Gaussian-DP budget per zeroed-out row: ``sqrt(sum 1/sigma_t**2)``."""
    mu = gaussian.mu_for(epsilon, delta)
    return mu / 2 if neighboring == "replace_one" else mu


def _grow(value: float, cost: Callable[[float], float], budget: float) -> float:
    """Raise ``value`` by small factors until its cost is within the budget."""
    while cost(value) > budget:
        value *= 1 + 1e-5
    return value


def _check_steps(n_steps: int) -> None:
    if not isinstance(n_steps, Integral) or n_steps < 1:
        raise ValueError(f"n_steps={n_steps!r} must be a whole number of at least 1.")


def _check(
    *,
    delta: float,
    sampling_rate: float,
    neighboring: str,
    epsilon: float | None = None,
    noise_multiplier: float | None = None,
) -> None:
    for name, value in (("epsilon", epsilon), ("noise_multiplier", noise_multiplier)):
        if value is not None and not (isinstance(value, Real) and 0 < value < math.inf):
            raise ValueError(f"{name}={value!r} must be a positive finite number.")
    if not (isinstance(delta, Real) and 0 < delta < 1):
        raise ValueError(f"delta={delta!r} must lie strictly between 0 and 1, well below 1/n.")
    if not (isinstance(sampling_rate, Real) and 0 < sampling_rate <= 1):
        raise ValueError(f"sampling_rate={sampling_rate!r} must lie in (0, 1]; 1 is the full batch.")
    if neighboring not in NEIGHBORING:
        raise ValueError(f"neighboring={neighboring!r} must be one of {', '.join(NEIGHBORING)}.")
