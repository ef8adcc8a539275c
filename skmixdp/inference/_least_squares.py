"""Noisy Newton steps for least squares; see ``_estimating``."""

from functools import partial

import numpy as np

from .._fit.statistics import Learning
from .._rows.source import BinCounts, Block, OuterStatistics
from ..components.protocols import FloatArray, ReleasedArray
from ._estimating import OUTER_SHARE, UP, Curvature, Design, Estimate, Known, Mechanisms, positive, square
from ._tails import N_BINS, Tail, bins_of

#: Share of the squared budget for the curvature.
_CURVATURE = 0.22
#: Shares of the squared budget for the scores of each step.
_STEPS = 0.05, 0.1, 0.45
#: Shares for the histograms of absolute residuals before the second and the third step.
_HISTOGRAMS = 0.04, 0.06
#: Share for the variance of the residuals.
_VARIANCE = 0.08

#: Cut of residuals before the first histogram, in spreads of the targets.
_FIRST_CUT = 4.0

#: Cut of targets, in spreads, so that squares stay finite.
_FARTHEST = 1e30


def least_squares_shares(robust: bool) -> tuple[float, FloatArray, FloatArray, float]:
    """Shares of curvature, steps, histograms, and of the variance, or of outer products if ``robust``."""
    last = OUTER_SHARE if robust else _VARIANCE
    unit = (1 - last) / (_CURVATURE + sum(_STEPS) + sum(_HISTOGRAMS))
    return unit * _CURVATURE, unit * np.array(_STEPS), unit * np.array(_HISTOGRAMS), last


def least_squares_steps(
    mechanisms: Mechanisms, design: Design, target: tuple[float, float], public: Known, *, robust: bool
) -> Learning[Estimate]:
    """Coefficients of least squares, for targets relative to their centre, in units of their spread.

    ``target`` is this centre and spread; those of ``public`` rows are in these units already. Residuals are
    cut where noise outweighs what is cut off: a noisy histogram of their sizes tells where. The estimate
    allows for a bias by what the last cut may have taken away.

    Rows with sample weights need robust errors.

    *Guarantee*: one Gaussian release of the mechanisms' multiplier. A row adds a curvature ``v x x^T`` of
    norm at most ``R^2``, scores of length at most R times the cut, 1 to one bin of each histogram, and a
    squared residual up to its cut or an outer product of its score.
    """
    curvature_share, step_shares, histogram_shares, last_share = least_squares_shares(robust)
    radius = design.radius * UP

    def curvatures(Z: FloatArray, block: Block) -> OuterStatistics:
        x, v = design.private(Z, block)
        return OuterStatistics(v[:, np.newaxis] * x, x)

    def residuals(x: FloatArray, block: Block, beta: FloatArray) -> FloatArray:
        y = (np.asarray(block.y, np.float64)[:, 0] - target[0]) / target[1]
        return np.asarray(np.clip(y, -_FARTHEST, _FARTHEST) - (x * beta).sum(axis=1))

    def bins(Z: FloatArray, block: Block, beta: FloatArray) -> BinCounts | FloatArray:
        x, _ = design.rows(Z)
        return design.counted(bins_of(residuals(x, block, beta))[:, np.newaxis], N_BINS, block)

    def scores(Z: FloatArray, block: Block, beta: FloatArray, cut: float) -> FloatArray:
        x, v = design.private(Z, block)
        return (v * np.clip(residuals(x, block, beta), -cut, cut))[:, np.newaxis] * x

    def outer_products(Z: FloatArray, block: Block) -> OuterStatistics:
        rows = scores(Z, block, beta, cut)
        return OuterStatistics(rows, rows, of_means=True)

    def squares(Z: FloatArray, block: Block) -> FloatArray:
        x, _ = design.rows(Z)
        return np.minimum(residuals(x, block, beta) ** 2, cut**2)[:, np.newaxis]

    largest = ReleasedArray(radius**2)
    (noisy,), (scale,) = yield from mechanisms.sums(curvatures, curvature_share, largest, split=square)
    curvature = Curvature.of(noisy + (public.v[:, np.newaxis] * public.x).T @ public.x, scale)

    beta, cut, cut_off = np.zeros(design.width), _FIRST_CUT, 0.0
    for number, share in enumerate(step_shares):
        if number:
            part = histogram_shares[number - 1]
            (counts,), (scale,) = yield from mechanisms.sums(
                partial(bins, beta=beta), part, ReleasedArray(1.0)
            )
            of_known = np.bincount(bins_of(public.y - public.x @ beta), public.u, minlength=N_BINS)
            cut, cut_off = Tail.of(counts, scale, of_known).cut(mechanisms.scale(radius, share))
        (score,), (score_scale,) = yield from mechanisms.sums(
            partial(scores, beta=beta, cut=cut), share, ReleasedArray(radius * cut)
        )
        cut_known = np.clip(public.y - public.x @ beta, -cut, cut)
        step = curvature.inverse @ (score + (public.v * cut_known) @ public.x)
        beta = beta + step

    cut_known = np.clip(public.y - public.x @ beta, -cut, cut)
    if robust:
        largest = ReleasedArray((radius * cut) ** 2)
        (noisy,), (scale,) = yield from mechanisms.sums(outer_products, last_share, largest, split=square)
        scored = (public.v * cut_known)[:, np.newaxis] * public.x
        outer = positive(noisy + scored.T @ scored, scale)
    else:
        (total,), (scale,) = yield from mechanisms.sums(squares, last_share, ReleasedArray(cut**2))
        n_rows = mechanisms.learner.n_rows + len(public.y)
        outer = curvature.matrix * max(float(total[0]) + float(cut_known @ cut_known), scale) / n_rows
    return curvature.estimate(beta, step, score_scale, outer, design.width, cut_off=cut_off)
