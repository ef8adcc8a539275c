"""Lower bounds on privacy parameters from the success of an attacker.

All of them are one-sided confidence bounds. If a value is true of the mechanism, the bound exceeds it
with a probability of at most ``1 - confidence``, for any attacker. Scalars are plain floats; ``level``
is that probability.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

FloatArray = NDArray[np.float64]

#: Largest bound that is searched for; no audit of a feasible size gives more.
_LARGEST_MU = 40.0
_LARGEST_EPSILON = 60.0
_EPSILON_STEP = 0.05


def proportion_lower(successes: int, trials: int, level: float) -> float:
    """Clopper-Pearson lower bound on a probability, wrong with a probability of at most ``level``."""
    return float(betaincinv(successes, trials - successes + 1, level)) if successes > 0 else 0.0


def proportion_upper(successes: int, trials: int, level: float) -> float:
    """Clopper-Pearson upper confidence bound on a probability."""
    return 1.0 - proportion_lower(trials - successes, trials, level)


def epsilon_from_rates(true_positive: float, false_positive: float, delta: float) -> float:
    """Smallest epsilon at which a test may have these rates or better (Kairouz et al. 2015, Theorem 2.1)."""

    def one_way(hit: float, miss: float) -> float:
        if hit <= delta:
            return 0.0
        return math.inf if miss == 0 else max(0.0, math.log((hit - delta) / miss))

    return max(one_way(true_positive, false_positive), one_way(1 - false_positive, 1 - true_positive))


def mu_from_rates(true_positive: float, false_positive: float) -> float:
    """Smallest Gaussian-DP parameter at which a test may have these rates (Dong, Roth and Su 2022, 2.2)."""
    return max(0.0, float(ndtri(true_positive) - ndtri(false_positive)))


def threshold_bound(
    included: FloatArray, excluded: FloatArray, level: float, bound_of_rates: Callable[[float, float], float]
) -> float:
    """Lower bound from scores (n_in,), (n_out,) of fits with and without one canary.

    The first quarter of the fits chooses sign and threshold of the test, by normal scores of the same mean
    and spread. The others estimate its two rates, each by a Clopper-Pearson bound of half the level.
    """
    n_choose = max(2, len(included) // 4), max(2, len(excluded) // 4)
    choose_in, choose_out = included[: n_choose[0]], excluded[: n_choose[1]]
    test_in, test_out = included[n_choose[0] :], excluded[n_choose[1] :]
    sign = 1.0 if choose_in.mean() >= choose_out.mean() else -1.0
    means = sign * float(choose_in.mean()), sign * float(choose_out.mean())
    spread = math.sqrt((choose_in.var(ddof=1) + choose_out.var(ddof=1)) / 2)

    def bound(hits: int, false_alarms: int) -> float:
        return bound_of_rates(
            proportion_lower(hits, len(test_in), level / 2),
            proportion_upper(false_alarms, len(test_out), level / 2),
        )

    def promised(threshold: float) -> float:
        rates = [float(ndtr((mean - threshold) / (spread or 1.0))) for mean in means]
        return bound(round(rates[0] * len(test_in)), round(rates[1] * len(test_out)))

    # From the middle outwards, since max takes the first of several best thresholds.
    offsets = sorted(np.linspace(-3, 3, 61), key=abs)
    threshold = max(((means[0] + means[1]) / 2 + k * spread for k in offsets), key=promised)
    return bound(int(np.sum(sign * test_in > threshold)), int(np.sum(sign * test_out > threshold)))


def one_run_p_value(n_canaries: int, n_guesses: int, n_correct: int, epsilon: float, delta: float) -> float:
    """Upper bound on the probability of so many correct guesses under an (epsilon, delta) guarantee.

    ``P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i``, for v correct guesses of r on m canaries and B
    binomial with r trials of probability ``e^epsilon / (1 + e^epsilon)`` (Steinke et al. 2023, Theorem 5.2).
    """
    right = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(n_correct - 1, n_guesses, right))
    slack = 0.0
    if delta > 0 and n_correct > 0:
        i = np.arange(1, n_correct + 1)
        slack = float(np.max(np.cumsum(binom.pmf(n_correct - i, n_guesses, right)) / i))
    return min(1.0, tail + 2 * n_canaries * delta * slack)


def one_run_epsilon(n_canaries: int, n_guesses: int, n_correct: int, delta: float, level: float) -> float:
    """Largest epsilon up to which :func:`one_run_p_value` rejects all values at ``level``."""

    def rejected(epsilon: float) -> bool:
        return one_run_p_value(n_canaries, n_guesses, n_correct, epsilon, delta) < level

    low = 0.0
    if not rejected(low):
        return 0.0
    while low < _LARGEST_EPSILON and rejected(low + _EPSILON_STEP):
        low += _EPSILON_STEP
    return _last_true(rejected, low, low + _EPSILON_STEP)


def one_run_mu(n_canaries: int, n_guesses: int, n_correct: int, level: float) -> float:
    """Lower bound on the Gaussian-DP parameter from the guesses of one fit.

    Let ``p_l`` be the probability of l correct guesses among r. With ``a = sum_{l >= i} (l / m) p_l`` (a
    random canary was guessed right, and at least i in all) and ``b = sum_{l >= i - 1} ((r - l) / m) p_l`` (it
    was guessed wrong, and at least i - 1 others right), moving that canary in or out turns one event into the
    other, so that ``b >= Phi(Phi^-1(a) - mu)``. If v or more had probability ``level``, each constraint, from
    i = v down, would ask for some probability of fewer. If the least that will do exceeds 1, mu is rejected
    (Mahloujifar, Melis and Chaudhuri 2024, for a fixed number of guesses).
    """

    def rejected(mu: float) -> bool:
        return _rules_out(n_canaries, n_guesses, n_correct, mu, level)

    return _last_true(rejected, 0.0, _LARGEST_MU) if rejected(0.0) else 0.0


def _rules_out(m: int, r: int, v: int, mu: float, level: float) -> bool:
    """Whether v or more correct guesses have a probability below ``level`` under mu-Gaussian DP."""
    right, wrong, whole = v / m * level, (r - v) / m * level, r / m
    for i in range(v - 1, -1, -1):
        missing = float(ndtr(ndtri(right) - mu)) - wrong
        if missing > 0:
            wrong += missing
            right += missing * i / (r - i)
        if right + wrong > whole:
            return True
    return right + wrong > whole


def _last_true(condition: Callable[[float], bool], low: float, high: float) -> float:
    """Largest point, by bisection, up to which ``condition`` holds; it holds at ``low``."""
    while high - low > 1e-4:
        middle = (low + high) / 2
        if condition(middle):
            low = middle
        else:
            high = middle
    return low


def separation(
    included: FloatArray, excluded: FloatArray, confidence: float
) -> tuple[float, tuple[float, float]]:
    """Difference of two samples' means in pooled standard deviations, and its confidence interval.

    The interval is that of large normal samples (Hedges and Olkin 1985). Fewer than two scores tell nothing.
    """
    n_in, n_out = len(included), len(excluded)
    if min(n_in, n_out) < 2:
        return math.nan, (-math.inf, math.inf)
    freedom = n_in + n_out - 2
    squares = (n_in - 1) * included.var(ddof=1) + (n_out - 1) * excluded.var(ddof=1)
    difference = float(included.mean() - excluded.mean())
    if squares == 0:
        value = math.copysign(math.inf, difference) if difference else 0.0
        return value, (value, value)
    value = difference / math.sqrt(squares / freedom)
    half = float(ndtri((1 + confidence) / 2)) * math.sqrt(1 / n_in + 1 / n_out + value**2 / (2 * freedom))
    return value, (value - half, value + half)
