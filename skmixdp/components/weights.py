"""Rules of papers for the public weight."""

import math
from dataclasses import dataclass

import numpy as np

from .._linear.arrays import FloatArray
from .protocols import PublicInfo, ReleaseFacts
from .public import PublicData
from .steps import Rule, SampleWeight, constant_rule


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

    Written in ``u = a - n_pub / N``, the root is ``spread sqrt(1 / N + k u^2)`` with
    ``k = 1 / n_priv + 1 / n_pub``; its slope in u never reaches ``spread sqrt(k)``.
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
    """Estimated distance of the solution to the one for infinitely many rows; needs two rows.

    The difference of the solutions of two halves has four times its variance.
    """
    first, second = data.halves
    return float(np.linalg.norm(first.solution - second.solution)) / 2
