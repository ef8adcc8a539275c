"""Rules for the steps, from public quantities only: private rows, number, size and public weight.

Each rule is bound once to public facts, when the plan is made. The public weight ``a`` is that of the
direction ``a public + (1 - a) private``. Without public rows, every rule gives 0.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from .._linear.arrays import FloatArray
from .protocols import PublicInfo, ReleaseFacts
from .public import PublicData, PublicView, RandomSource

# -- private rows of a step ------------------------------------------------------------------


class FullBatch:
    """All rows in every step. Accounting is exact, and linear heads are usually more accurate with it.

    Source: AdaMix, section 3.1.
    """

    def rate(self, n_private: int) -> float:
        return 1.0

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_] | None:
        return None


@dataclass(frozen=True)
class PoissonBatch:
    """Poisson sampling: each row is in the batch with the same probability, independently of the others.

    A batch may be empty or large. Sums are divided by the expected size, never by the actual size, which is
    private.

    Parameters
    ----------
    batch_size : int
        Expected number of rows in a step.

    Source: Abadi et al. 2016; PDA-DPMD, Algorithm 1.
    """

    batch_size: int

    def rate(self, n_private: int) -> float:
        return self.batch_size / n_private

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_] | None:
        return noise.uniform((n_private,)) < self.rate(n_private)


# -- number and size -------------------------------------------------------------------------

#: Factor of the total step without public rows. Rows are not centred then: their common mean takes up part of
#: their length, so a longer total step is worth its noise.
_UNCENTRED = 1.5


@dataclass(frozen=True)
class BalancedSteps:
    """A total step size in proportion to the noise that the outputs tolerate.

    One step adds noise of standard deviation ``eta sigma S / b`` to every output of a unit row. ``S`` is the
    sensitivity of the sum. ``b`` is the expected private batch size, divided by the root mean square of its
    weight ``1 - a``. T steps add ``sqrt(T)`` times that noise. The learning rate
    ``eta = c b / (sigma S sqrt(T))`` makes the total noise equal to ``c``, for any n, d_in, k and epsilon.
    ``c`` is the loss's ``noise_per_output``, times 1.5 without public rows. With few private rows the total
    step corrects only the part ``r h`` of the start's errors. Here ``h`` is the typical curvature: that of
    equally probable classes, for the mean eigenvalue of the public second moment, weighted by itself. Then a
    noise of ``c`` costs more than it gains, and ``c`` is multiplied by ``min(1, r h)``.

    At full batch ``sigma = sqrt(T) / mu``, so the total step is ``r = eta T = c mu n / S``. Sampled batches
    come close to it unless sigma is small. T is just large enough to keep each step gentle:
    ``eta * curvature`` is at most 1.5, or half of the stability limit if that is smaller. If the last heads
    are averaged, ``factor * sqrt(r * curvature)`` steps are enough.

    Parameters
    ----------
    learning_rate : float or "auto"
        A number fixes the step size; the number of steps still follows the rule.
    momentum : float
        The update's momentum; it widens the range of stable step sizes.
    l2 : float
        Strength of the regulariser, which adds to the curvature.
    noise_factor : float
        Multiplies the loss's ``noise_per_output``, for clips whose rows stay below their sensitivity.
    curvature : float or None
        Largest factor by which a step of rate 1 can change the direction. None is the curvature of gradient
        descent, from the public facts.
    minimum, maximum : int
        Range of T. With momentum, T is also at least ``4 / (1 - momentum)``, up to the maximum.
    effective_step : float
        Distance that the update moves the head per unit of step size, averaged over many steps.
    averaged : bool
        Whether the update averages its last heads.
    factor : float
        Multiplies the number of steps with averaged heads.
    max_step_scale : float
        Factor by which the loss's curvature is taken to lie below its bound, for the learning rate.
    longest : float
        Largest ``c mu`` by which the total step grows. A larger budget lowers the noise instead. Stopping
        there regularises the head, much like a penalty ``l2 = S / (longest n)``.

    Notes
    -----
    The rule depends on mu, n, the public rows and the clip at the start. Nothing is tuned on private rows.
    For few rows: noise c leaves errors of variance ``(1 - r h)^2 + c^2`` if the start's have variance 1, the
    noise that outputs tolerate. With ``r h = c g``, this is least at ``c = g / (1 + g^2)``, about g if small.
    The curvature is that of the public rows; for softmax, it is half of the largest eigenvalue of their
    second moment. Half of the stability limit of gradient descent with momentum is
    ``(1 + momentum) / ((1 - momentum) curvature)``.
    """

    learning_rate: float | str
    momentum: float
    l2: float
    _: KW_ONLY
    noise_factor: float = 1.0
    curvature: float | None = None
    minimum: int = 15
    maximum: int = 150
    effective_step: float = 1.0
    averaged: bool = False
    factor: float = 1.0
    max_step_scale: float = 1.0
    longest: float = math.inf

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        stiffness = self._stiffness(info, sensitivity)
        # At most half of the stability limit, which is below 1.5 for descent with little momentum.
        gentle = min(1.5, (1 + self.momentum) / (1 - self.momentum))
        wanted = self.factor * math.sqrt(stiffness) if self.averaged else stiffness / gentle
        # With momentum, the head follows the gradients with a delay.
        least = max(self.minimum, round(4 / (1 - self.momentum)) if self.momentum > 0 else 0)
        return math.ceil(min(max(wanted, least), self.maximum))

    def least_momentum(self, info: PublicInfo, sensitivity: float, most: float) -> float:
        """Smallest momentum, at most ``most``, with which stable steps cover the total step."""
        n_steps = self.count(info, sensitivity)
        # Length of the steps, in units of half of the stability limit without momentum.
        ratio = self._stiffness(info, sensitivity) / (n_steps * self.max_step_scale)
        # Without public rows, the curvature of rows of any length has no bound.
        return min(max(0.0, (ratio - 1) / (ratio + 1)), most) if ratio < math.inf else most

    def excess(self, info: PublicInfo, sensitivity: float) -> float:
        """Fraction of the total step that the noise would allow and ``longest`` forbids, from 0 to 1."""
        allowed = self._noise(info, sensitivity) * info.mu
        return 1 - self.longest / allowed if allowed > self.longest else 0.0

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        if isinstance(self.learning_rate, str):
            spread = facts.noise_multiplier * facts.sensitivity * math.sqrt(facts.n_steps)
            # The public gradient dilutes the noise. With public weight 1 there is no noise.
            noise = spread * facts.private_weight / info.batch_size
            balanced = self._noise(info, facts.sensitivity) / noise if noise else math.inf
            longest = self.longest * (info.n_effective + info.view.data.n_rows) / facts.sensitivity
            balanced = min(balanced, longest / facts.n_steps)
            curvature = info.curvature if self.curvature is None else self.curvature
            curvature = curvature / self.max_step_scale + self.l2
            # Without curvature there is no limit: public rows may be zeros, without an intercept.
            limit = (1 + self.momentum) / ((1 - self.momentum) * curvature) if curvature else math.inf
            # With momentum, the last gradients have not moved the head by their full steps yet.
            behind = self.momentum / (1 - self.momentum) if self.momentum > 0 else 0.0
            balanced *= facts.n_steps / max(facts.n_steps - behind, facts.n_steps / 2)
            rate = min(balanced, limit) / self.effective_step
            rate = rate if rate < math.inf else 1.0  # nothing moves the head, so any step size works
        else:
            rate = float(self.learning_rate)
        return lambda t: rate

    def _stiffness(self, info: PublicInfo, sensitivity: float) -> float:
        """The total step in units of the inverse curvature."""
        n_rows = info.n_effective + info.view.data.n_rows
        total_step = min(self._noise(info, sensitivity) * info.mu, self.longest) * n_rows / sensitivity
        return total_step * (info.curvature if self.curvature is None else self.curvature)

    def _noise(self, info: PublicInfo, sensitivity: float) -> float:
        """Standard deviation of the total noise in an output."""
        data, loss = info.view.data, info.view.data.loss
        uncentred = not (info.centered or data.n_rows or loss.quadratic)
        noise = self.noise_factor * loss.noise_per_output * (_UNCENTRED if uncentred else 1)
        if not isinstance(self.learning_rate, str) or self.curvature is not None:
            return noise
        if info.start is None or data.n_rows == 0 or loss.quadratic or not info.view.W.any():
            return noise  # no start whose accuracy noise could lower
        total_step = noise * info.mu * (info.n_effective + data.n_rows) / sensitivity
        typical = min(loss.curvature, 1 / loss.n_outputs) * data.typical_second_moment
        return noise * min(1.0, total_step * typical)


@dataclass(frozen=True)
class DecayingSteps:
    """Decaying step sizes ``eta_t = 2 / (l2 (t + 1))``, with steps for a fixed noise multiplier.

    The first step is ``1 / l2``, so the heads must be kept in a ball.

    Source: AdaMix, Theorem 3 and Algorithm 3; sigma = 20 as in its section 4.
    """

    l2: float
    _: KW_ONLY
    noise_multiplier: float = 20.0

    def count(self, info: PublicInfo, sensitivity: float) -> int:
        return max(1, math.floor((info.mu * self.noise_multiplier) ** 2))

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Callable[[int], float]:
        return lambda t: 2 / (self.l2 * (t + 1))


# -- public weight ---------------------------------------------------------------------------

Rule = Callable[[int, PublicView], float]


@dataclass(frozen=True)
class SampleWeight:
    """The same weight for every public and private row: ``a = n_pub / (n_pub + n_priv)``.

    The direction then estimates the gradient of the mean loss over all rows, for any batch size.

    Source: AdaMix, Algorithm 2 (sum of both losses), restated for means.
    """

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Rule:
        weight = info.view.data.n_rows / (info.view.data.n_rows + info.n_private)
        return lambda t, view: weight


@dataclass(frozen=True)
class ConstantWeight:
    """A constant public weight; 1 trains on public rows alone and releases nothing.

    Parameters
    ----------
    weight : float
        Share of the public gradient, from 0 to 1.

    Source: Coupling, section 3.
    """

    weight: float

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Rule:
        return constant_rule(self.weight, info)


def constant_rule(weight: float, info: PublicInfo) -> Rule:
    """The rule of a constant weight, which is 0 without public rows."""
    weight = weight if info.view.data.n_rows else 0.0
    return lambda t, view: weight


@dataclass(frozen=True)
class CosineWeight:
    """A growing public weight ``a_t = 1 - max(0, cos(pi t / (2 K)))``, which is 1 from step K on.

    Parameters
    ----------
    n_steps : float or None
        ``K``. None is twice the number of steps of the run, which then ends with a private weight of 0.71.
        Among K = T, 2 T and 4 T, the last two gave the same accuracy on digits; K = T lost 1.5 points.

    Source: PDA-DPMD, equation 1. There t starts at 0, and the private weight turns negative after step K.
    Here t starts at 1, and that weight stays at 0.
    """

    n_steps: float | None = None

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Rule:
        if info.view.data.n_rows == 0:
            return constant_rule(0.0, info)
        turn = float(2 * facts.n_steps if self.n_steps is None else self.n_steps)
        return lambda t, view: 1 - (math.cos(math.pi * t / (2 * turn)) if t < turn else 0.0)


@dataclass(frozen=True)
class CouplingWeight:
    """The weight of Coupling: ``a = 1 / (1 + (b / S) sqrt(2 L L0 / (b^2 + sigma^2 p)))``.

    It falls with the batch size b, the smoothness L and the initial value L0 of the mean loss. It rises with
    the noise multiplier sigma and the number p of parameters. ``S`` is the sensitivity. It is 1 for
    automatic clipping, for which the paper states the rule, and the threshold otherwise.

    Parameters
    ----------
    smoothness : float or None
        L; None bounds it by the second moment of the public rows.
    initial_loss : float or None
        L0; None is the mean loss of the public rows at ``W = 0``. At a start that was fitted to these rows,
        the loss would be near 0, and the rule would almost ignore the private rows.

    Source: Coupling, equation 5.
    """

    smoothness: float | None = None
    initial_loss: float | None = None

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Rule:
        if info.view.data.n_rows == 0:
            return constant_rule(0.0, info)
        L = info.curvature if self.smoothness is None else self.smoothness
        data = info.view.data
        at_zero = data.loss.values(np.zeros((data.n_rows, data.loss.n_outputs)), data.y)
        L0 = float(at_zero.mean()) if self.initial_loss is None else self.initial_loss
        b, noise = info.batch_size, facts.noise_multiplier**2 * info.view.n_parameters
        ratio = b / facts.sensitivity * math.sqrt(2 * L * L0 / (b**2 + noise))
        return constant_rule(1 / (1 + ratio), info)


@dataclass(frozen=True)
class ConvexWeight:
    """The weight in [0, 1] that minimises a bound on optimisation and generalisation error.

    The bound is ``S D (1 - a) sqrt(p) / (mu n_priv) + sqrt(((1 - a)^2 / n_priv + a^2 / n_pub) V p)``. S is
    the sensitivity, D the distance of the start to the optimum, and V the variance of a row's loss. The
    weight is never below ``n_pub / (n_pub + n_priv)`` and may be 1. ``mu n_priv`` is written as
    ``sqrt(T) b / sigma``, its value in the theorem's proof.

    Parameters
    ----------
    distance : float or None
        D; None estimates it from the public rows. It combines the distance of their solution to the start
        with the error of this solution, estimated from two halves.
    variance : float or None
        V; None is the variance of the public rows' losses, each half under the solution of the other half.

    Source: Coupling, Theorem 3.1 (p in place of the VC dimension).
    """

    distance: float | None = None
    variance: float | None = None

    def bind(self, info: PublicInfo, facts: ReleaseFacts) -> Rule:
        data, n_priv = info.view.data, info.n_private
        if (n_pub := data.n_rows) < 2:  # the error and the variance need two rows
            return SampleWeight().bind(info, facts)
        D, V = self.distance, self.variance
        if D is None:
            D = math.hypot(float(np.linalg.norm(info.view.W - data.solution)), solution_error(data))
        if V is None:
            V = float(np.var(held_out_losses(data)))
        p = info.view.n_parameters
        budget = math.sqrt(facts.n_steps) * info.batch_size / facts.noise_multiplier
        slope = facts.sensitivity * D * math.sqrt(p) / budget
        return constant_rule(_minimizer(slope, math.sqrt(V * p), n_priv, n_pub), info)


def _minimizer(slope: float, spread: float, n_priv: int, n_pub: int) -> float:
    """Minimiser over [0, 1] of ``slope (1 - a) + spread sqrt((1 - a)^2 / n_priv + a^2 / n_pub)``.

    In ``u = a - n_pub / N``, the root is ``spread sqrt(1 / N + k u^2)`` with ``k = 1 / n_priv + 1 / n_pub``.
    """
    total = n_priv + n_pub
    k = 1 / n_priv + 1 / n_pub
    steepest = k * (k * spread**2 - slope**2)
    if slope == 0:
        return n_pub / total
    if steepest <= 0:
        return 1.0
    return min(1.0, n_pub / total + slope / math.sqrt(total * steepest))


def held_out_losses(data: PublicData) -> FloatArray:
    """Loss of each row under the solution of the other half; needs two rows."""
    first, second = data.halves
    pairs = ((first, second.solution), (second, first.solution))
    return np.concatenate([rows.loss.values(rows.X @ W.T, rows.y) for rows, W in pairs])


def solution_error(data: PublicData) -> float:
    """Distance of the solution to that of infinitely many rows: half of the distance of two halves."""
    first, second = data.halves
    return float(np.linalg.norm(first.solution - second.solution)) / 2
