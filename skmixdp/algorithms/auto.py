"""The default algorithm."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from .._engine import Options, Recipe
from .._fit.stages.comparison import PublicShrinkage, start_comparison
from .._utils.validation import CLIP, FLAG
from ..components import SGD, BalancedSteps, GradientQuery, L2Clip
from ..components.protocols import FloatArray, PublicInfo
from ..components.updates import Preconditioned, TailAverage
from ._base import CLIPPED_STEP_SCALE, Algorithm, descent
from .adamix import AdaMix

#: Largest momentum. Its oscillations decay within a few steps, and the average of the last heads damps them.
_MOST_MOMENTUM = 0.8

#: Largest total step, for ``longest`` of BalancedSteps. Without noise, heads overfit beyond it: on texts,
#: digits and a table, two and five times as much lost up to 0.6 points.
_LONGEST = 3.0

#: Inverse strength of the penalty that limits heads where noise would allow a longer step, in scikit-learn's
#: terms for rows of unit length. 50 to 300 were compared on tables.
_PENALTY_C = 100.0

#: Fewest steps.
_FEWEST = 12

#: Most steps with few features. With fewer features, second moments of rows are larger, and descent reaches
#: the optimum sooner.
_MOST_OF_FEW = 50
#: Most steps with many features.
_MOST = 100

#: Most steps for targets after those of a first head.
_MOST_AFTER_FIRST = 135

#: Smallest and largest clip after a map by second moments, in usual lengths of rows. With many rows, noise is
#: too small for a short clip to gain anything, and would cut the rare targets of skewed ones.
_LEAST_LENGTHS, _MOST_LENGTHS = 0.7, 5.0
#: Number of rows times mu, divided by the number of columns, at which the clip is one usual length.
_ROWS_OF_LENGTH = 170.0
#: Variance of the noise in usual outputs after such a map, for targets of unit scale.
_NOISE_VARIANCE = 0.004
#: Largest deviation of the noise in the output of a row of the largest length.
_MOST_NOISE = 2.5
#: Smallest second moment, relative to the largest.
_LEAST_MOMENT = 1e-9
#: Largest total step after such a map, in units of the one beyond which no noise grows.
_CONVERGED_MAP = 5.0
#: Factor of the number of steps after such a map, with averaged heads.
_MORE_STEPS_OF_MAP = 2.5

#: Total step, in units of the inverse curvature, above which the clip rises.
_CONVERGED = 10_000.0

#: Largest mu at which the clip still rises. With few rows, a clip that cuts hard rows is always better.
_MOST_RAISED = 40.0

#: Clip factor for per-person mean gradients, which are shorter than gradients of rows.
_OF_MEANS = 2 / 3

#: Bound on the curvature divided by the curvature, with preconditioned directions. The curvature is then
#: about the same in all directions, so that none damps the oscillations of another.
_PRECONDITIONED_SCALE = 4.0

#: Factor of the number of steps with preconditioned directions. With fewer and longer steps, outputs of rows
#: whose class is nearly certain would overshoot, and later steps would not correct that.
_MORE_STEPS = 2.0


@dataclass(eq=False, repr=False)
class Auto(Algorithm):
    """Noisy gradient descent whose settings follow from public quantities; the default algorithm.

    The head starts at the public fit. Each step follows the clipped gradients of private rows and the
    gradients of public rows, and gives every row the same weight. There are few, long steps, and the last
    heads are averaged. If held-out public rows favour it, the result is shrunk towards the start; a noisy
    comparison on private rows checks this choice. In :class:`~skmixdp.MixedDPLogisticRegression`, this
    algorithm also turns on whitening, and a private temperature of the probabilities. Where public rows are
    few or missing, it turns on noisy columns (``scale="auto"``) and private geometry
    (:class:`~skmixdp.RowMapping`).

    With little noise, as at epsilon above about 15, a weak penalty on the distance from the start takes the
    place of noise as the limit of the steps: ``l2`` grows towards 0.01 / n where it is ``"auto"``.

    Parameters
    ----------
    clip : float, default=0.3
        Smallest L2 threshold on each row's gradient, and 1.5 times that on the mean gradient of a person.
        Rows have at most unit length unless the estimator has ``RowMapping(norm=None)``. With many rows, the
        threshold rises with the budget, up to the longest gradient, which is not cut.
    shrink : bool, default=True
        Whether to shrink the result towards the start, and to balance the classes, by public rows. If up to
        2% of the squared budget tell the accuracy of a head on private rows within a tenth, noisy comparisons
        check these choices.

    Notes
    -----
    *Guarantee*: one full-batch Gaussian release per step, whose sensitivity is the threshold, and one of m
    differences of counts, of sensitivity ``sqrt(m)``. Start, whitening, step size and number of steps depend
    on public or released quantities. Shrinkage depends on released heads, released differences and public
    rows.

    The total step size is chosen so that the accumulated noise in a logit has a standard deviation of about
    1. This holds for any n, number of features, epsilon and clip. Seven total step sizes were compared in
    hindsight on eight problems (images, texts, a table; 2 to 77 classes, 800 to 40,000 rows, epsilon 0.3 to
    3). This one was within a point of the best on each problem.

    References
    ----------
    Panda et al. 2024, "A new linear scaling rule for private adaptive hyperparameter
    optimization" (the total step in proportion to epsilon); Golatkar et al. 2022, "Mixed
    Differential Privacy in Computer Vision", section 3.2 (the public start); Sun et al. 2024,
    "The importance of feature preprocessing for differentially private linear optimization".
    """

    _allowed: ClassVar = {"clip": (CLIP,), "shrink": (FLAG,)}

    clip: float = 0.3
    _: KW_ONLY
    shrink: bool = True

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        data, loss = info.view.data, info.view.data.loss
        # With a larger budget, the clip rises towards the longest gradient.
        least = clip = self.clip * _OF_MEANS if info.of_persons else self.clip
        # Weights are to count by their ratios, so that the gradients of heavy rows are not cut for ever.
        most = _MOST_RAISED if info.mean_weight == 1 else math.inf
        raised = min(info.mu, most) * info.n_effective * info.curvature / _CONVERGED
        if math.isfinite(raised):
            clip = max(clip, min(raised, loss.lipschitz * info.row_norm_bound))
        query = GradientQuery(L2Clip(clip), None, sum_to_zero=True)
        # A head of many classes that starts far from its optimum tolerates more noise in its outputs.
        from_zero = data.n_rows == 0 and info.centered
        noise_factor = max(1.0, math.log(loss.n_outputs) / 3) if from_zero else 1.0
        scale = 1.0 if loss.quadratic else CLIPPED_STEP_SCALE
        if info.of_persons:
            # Mean gradients are rarely clipped, so only the step size limits oscillations. The curvature of k
            # classes with equal probabilities is 1/k, and its bound is 1/2.
            scale = min(scale, max(1.0, loss.n_outputs / 2))
        if info.preconditioner is not None:
            scale = min(scale, _PRECONDITIONED_SCALE)
        steps = BalancedSteps(
            options.learning_rate,
            0.0,
            options.l2 or 0.0,
            noise_factor=noise_factor,
            minimum=_FEWEST,
            maximum=_MOST if info.of_persons else min(max(_MOST_OF_FEW, info.view.W.shape[1]), _MOST),
            averaged=not info.of_persons,
            factor=1.0 if info.preconditioner is None else _MORE_STEPS,
            max_step_scale=scale,
            longest=_LONGEST,
        )
        sensitivity = query.sensitivity(info.view, np.dtype(np.float64))
        excess = 0.0 if loss.quadratic else steps.excess(info, sensitivity)
        if excess and options.l2 is None:
            # Gradients that are no longer clipped damp oscillations less.
            scale = max(1.0, scale * least / clip)
            l2 = excess / (_PENALTY_C * (info.n_effective + data.n_rows))
            options = replace(options, l2=l2)
            steps = replace(steps, l2=l2, longest=math.inf, max_step_scale=scale)
        steps = replace(steps, momentum=steps.least_momentum(info, sensitivity, _MOST_MOMENTUM))
        recipe = descent(info, options, query, momentum=steps.momentum, anchored=True, steps=steps)
        update = recipe.update
        if info.preconditioner is not None:
            update = Preconditioned(update, info.preconditioner)
        update = TailAverage(update)
        if not self.shrink:
            return replace(recipe, update=update)
        shrinkage = PublicShrinkage(update, info, options.balancing_intercept)
        return replace(recipe, update=shrinkage, comparison=shrinkage.comparison)


class AutoRegression(AdaMix):
    """The default algorithm for targets: AdaMix, followed by a comparison of the head with its start.

    The clip is a length that few gradients exceed, if it is known. If second moments of the rows are, the
    smallest clip is a multiple of their usual length, the steps follow them, and the last heads are averaged.

    *Guarantee*: as for :class:`AdaMix`, and one more release at the end, of sensitivity 1.
    """

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        floor, moments = self.clip_floor, info.moments
        if moments is not None:
            rows_per_feature = info.mu * info.n_effective / len(moments)
            times = min(max((rows_per_feature / _ROWS_OF_LENGTH) ** 1.5, _LEAST_LENGTHS), _MOST_LENGTHS)
            floor = times * math.sqrt(float(moments.sum()))
        recipe = AdaMix.pieces(replace(self, clip_floor=floor), info, options)
        steps = recipe.steps
        assert isinstance(steps, BalancedSteps)
        if info.gradient_bound is not None:
            query = GradientQuery(L2Clip(max(floor, info.gradient_bound)), None, sum_to_zero=True)
            steps = replace(steps, maximum=_MOST_AFTER_FIRST)
            recipe = replace(recipe, query=query, steps=steps)
        if moments is not None:
            sensitivity = recipe.query.sensitivity(info.view, np.dtype(np.float64))
            factor = _tolerated_noise(info, moments, sensitivity) / info.view.data.loss.noise_per_output
            steps = replace(
                steps, momentum=0.0, noise_factor=factor, averaged=True, factor=_MORE_STEPS_OF_MAP
            )
            momentum = steps.least_momentum(info, sensitivity, self.momentum)
            steps = replace(steps, momentum=momentum)
            recipe = replace(recipe, steps=steps, update=TailAverage(SGD(momentum)))
        return replace(recipe, comparison=start_comparison(recipe.update, info))


def _tolerated_noise(info: PublicInfo, moments: FloatArray, sensitivity: float) -> float:
    """Noise in the output of a row of unit length, for which noise in usual outputs is small.

    After a total step r, averaged heads have noise of variance ``s^2 min(1 / m, r / 2)`` in the outputs along
    a direction of second moment m; s is that of a sum over all steps.
    """
    unit = sensitivity / (info.mu * (info.n_effective + info.view.data.n_rows))
    ends = np.sort(2 / np.maximum(moments, _LEAST_MOMENT * moments.max()))  # of growth with r
    variances = np.minimum(ends[:, np.newaxis], ends).sum(axis=1) / 2
    points, totals = np.append(0, variances), np.append(0, ends)
    total = np.interp(_NOISE_VARIANCE / unit**2, points, totals, right=_CONVERGED_MAP * ends[-1])
    return min(max(float(total), float(ends[0]) / 2) * unit, _MOST_NOISE)
