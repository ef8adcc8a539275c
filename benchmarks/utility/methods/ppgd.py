"""PPGD: a private model first, then a public one that stays near it.

As AdaMix describes it (section 2, "Adaptive clipping", and section 4, "Baselines"): the clip is the
length of the mean public gradient, a model is trained on private rows alone, and a further one on
public rows with the private one as regulariser. With the full batch in place of random ones, which
is what turns PPSGD into PPGD.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skmixdp import MixedDPLogisticRegression
from skmixdp._engine import Options, Recipe
from skmixdp.algorithms import Algorithm
from skmixdp.algorithms._base import descent
from skmixdp.components import ConstantWeight, GradientQuery
from skmixdp.components.clipping import PublicQuantileClip
from skmixdp.components.protocols import PublicInfo, StepContext, Update
from skmixdp.components.public import PublicData, PublicView

from ..problems import Array, Problem
from .contract import Score
from .heads import describe, fit_together

#: Keeps the threshold from zero, for rows of unit length.
_CLIP_FLOOR = 0.05

#: Strengths of the pull towards the private head, in units of that of the library's public fit.
_STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)


class PPGD(Algorithm):
    """Public-private gradient descent, made of the library's pieces.

    The strength of the regulariser is that of :data:`_STRENGTHS` with which either half of the public
    rows predicts the other best: no private row is looked at for it. The step size is the library's.

    References
    ----------
    Wang and Zhou 2020, "Differentially Private Learning with Small Public Data" (PPSGD), as described
    by Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix), sections 2 and 4.
    """

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        clipper = PublicQuantileClip(0.5, _CLIP_FLOOR, _length_of_mean)
        query = GradientQuery(clipper, None, sum_to_zero=True)
        recipe = descent(info, options, query, momentum=0.9, anchored=False, weighting=ConstantWeight(0.0))
        return replace(recipe, update=Reuse(recipe.update))


def _length_of_mean(view: PublicView) -> Array:
    return np.array([np.linalg.norm(view.gradient)])


@dataclass(frozen=True)
class Reuse:
    """An update whose result is the public fit with its penalty centred at the private head."""

    inner: Update

    def init(self, W: Array) -> tuple[Array, Any]:
        W, state = self.inner.init(W)
        return W, (state, None)

    def step(self, ctx: StepContext, direction: Array, state: Any) -> tuple[Array, Any]:
        W, inner = self.inner.step(ctx, direction, state[0])
        return W, (inner, ctx.view.data)

    def result(self, W: Array, state: Any) -> Array:
        inner, data = state
        W = self.inner.result(W, inner)
        strength = min(_STRENGTHS, key=lambda factor: _held_out_loss(data, W, factor))
        return data.fit(strength * data.l2, W)


def _held_out_loss(data: PublicData, W: Array, factor: float) -> float:
    total = 0.0
    for fitted, other in (data.halves, data.halves[::-1]):
        logits = other.X @ fitted.fit(factor * data.l2, W).T
        total += float(data.loss.values(logits, other.y).sum())
    return total


def fit(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """A head for each budget; the private model starts from zero."""
    heads = [
        MixedDPLogisticRegression(PPGD(), epsilon=epsilon, init="zeros", random_state=problem.seed)
        for epsilon in epsilons
    ]
    fit_together(heads, problem)
    return [
        Score(epsilon, problem.measures(head), note=describe(head))
        for epsilon, head in zip(epsilons, heads, strict=True)
    ]
