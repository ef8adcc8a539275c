"""Noisy Newton steps for least squares; see ``_estimating``."""

from functools import partial

import numpy as np

from .._fit.statistics import Learning
from .._rows.source import BinCounts, OuterStatistics
from ..components.protocols import FloatArray, ReleasedArray
from ._estimating import OUTER_SHARE, Curvature, Estimate, Regression, Rows, positive, square, summed
from ._tails import N_BINS, Tail, bins_of

#: Shares of the squared budget for the curvature and for the variance of the residuals.
_CURVATURE, _VARIANCE = 0.22, 0.08
#: Shares for the scores of each step.
_STEPS = 0.05, 0.1, 0.45
#: Shares for the histograms of absolute residuals before the second and the third step.
_HISTOGRAMS = 0.04, 0.06

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
    regression: Regression, target: tuple[float, float], *, robust: bool
) -> Learning[Estimate]:
    """Coefficients of least squares, for targets relative to their centre, in units of their spread.

    ``target`` is this centre and spread. Residuals are cut where noise outweighs what is cut off: a noisy
    histogram of their sizes tells where. The estimate allows for a bias by what the last cut may have taken
    away. Rows with sample weights need robust errors.

    *Guarantee*: one Gaussian release of the regression's multiplier. A row adds a curvature ``v x x^T`` of
    norm at most ``R^2``, scores of length at most R times the cut, 1 to one bin of each histogram, and a
    squared residual up to its cut or an outer product of its score.
    """
    curvature_share, step_shares, histogram_shares, last_share = least_squares_shares(robust)
    radius = regression.radius

    def residuals(rows: Rows, beta: FloatArray) -> FloatArray:
        y = np.clip((rows.y[:, 0] - target[0]) / target[1], -_FARTHEST, _FARTHEST)
        return np.asarray(y - (rows.x * beta).sum(axis=1))

    def bins(rows: Rows, beta: FloatArray) -> BinCounts | FloatArray:
        return rows.histograms(bins_of(residuals(rows, beta)), n_bins=N_BINS)

    def scores(rows: Rows, beta: FloatArray, cut: float) -> FloatArray:
        return (rows.v * np.clip(residuals(rows, beta), -cut, cut))[:, np.newaxis] * rows.x

    def outer_products(rows: Rows) -> OuterStatistics:
        of_rows = scores(rows, beta, cut)
        return OuterStatistics(of_rows, of_rows, of_means=True)

    def squares(rows: Rows) -> FloatArray:
        return np.minimum(residuals(rows, beta) ** 2, cut**2)[:, np.newaxis]

    (moment,), (scale,) = yield from regression.sums(
        Rows.moments, curvature_share, ReleasedArray(radius**2), split=square
    )
    curvature = Curvature.of(moment, scale)

    beta, cut, cut_off = np.zeros(regression.design.width), _FIRST_CUT, 0.0
    for number, share in enumerate(step_shares):
        if number:
            part = histogram_shares[number - 1]
            (counts,), (scale,) = yield from regression.noisy(
                partial(bins, beta=beta), part, ReleasedArray(1.0)
            )
            tail = Tail.of(counts, scale, summed(bins(regression.public, beta)))
            cut, cut_off = tail.cut(regression.scale(radius, share))
        (score,), (score_scale,) = yield from regression.sums(
            partial(scores, beta=beta, cut=cut), share, ReleasedArray(radius * cut)
        )
        step = curvature.inverse @ score
        beta = beta + step

    if robust:
        largest = ReleasedArray((radius * cut) ** 2)
        (products,), (scale,) = yield from regression.sums(outer_products, last_share, largest, split=square)
        outer = positive(products, scale)
    else:
        (total,), (scale,) = yield from regression.sums(squares, last_share, ReleasedArray(cut**2))
        n_rows = regression.learner.n_rows + len(regression.public.x)
        outer = curvature.matrix * max(float(total[0]), scale) / n_rows
    return curvature.estimate(beta, step, score_scale, outer, regression.design.width, cut_off)
