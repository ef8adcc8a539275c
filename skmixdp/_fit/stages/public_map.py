"""The map that public rows give, and that of the next release where they give none."""

import math
from dataclasses import replace

import numpy as np

from ..._engine import Procedure
from ..._rows import Columns, RowMap, Whitening, columns_of, is_spread_out, second_moment
from ..mapping import (
    LENGTH_LIMIT,
    centres_columns,
    clips,
    intercept_constant,
    known_kinds,
    scales_columns,
    whitening_groups,
    whitens_alone,
    widening,
    with_intercept,
)
from ..stage import FEWEST_FREE, Fit, Price, Stage
from .length import length_price
from .mean import Shares, learns_mean

#: Noise in private directions from which those of many public rows are better.
_LEAST_FLOOR = 0.08


class PublicMap(Stage):
    """The map of the rows by public ones; free."""

    name = ""
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        return 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        yield from ()  # no queries
        if fit.settings.known_map is not None:
            return fit.spent(self, price).mapped(row_map=fit.settings.known_map)
        public, columns = fit.public, None
        if scales_columns(fit):
            rows = public.known if public.of_scales is None else public.of_scales
            # Unlabelled rows have rare values, which would become long entries of a few rows if scaled to
            # spread 1.
            columns = columns_of(rows, centred=centres_columns(fit), balanced=public.unlabeled is not None)
            columns = _with_declared(fit, columns)
        row_map = _spread_out(fit, columns)
        if row_map is not None and not _is_precise(fit, row_map):
            fit, row_map = fit.learned(public=public.left_out()), None
        row_map = fit.data.private.same(row_map or next_map(fit, columns))
        return fit.spent(self, price).mapped(row_map=row_map, columns=columns)


def _with_declared(fit: Fit, columns: Columns | None) -> Columns | None:
    """How columns are standardised, with the centre and the spread of those that are declared."""
    declared = fit.settings.rows.declared
    if declared is None:
        return columns
    is_declared, (center, spread) = ~np.isnan(declared[0]), declared
    if columns is None:
        columns = Columns(np.zeros(len(is_declared)), np.ones(len(is_declared)))
    center = np.where(is_declared, center, columns.center) if centres_columns(fit) else columns.center
    return Columns(center, np.where(is_declared, 1 / spread, columns.factor))


def _spread_out(fit: Fit, columns: Columns | None) -> RowMap | None:
    """The map by public rows without labels whose variance is spread out; None if it is not, or by choice.

    Whitening as one group would shorten what separates classes. Rows are projected instead. Those of two
    classes are only centred, since one direction of little variance may separate them.
    """
    settings, public, loss = fit.settings, fit.public, fit.data.loss
    rows = settings.rows
    if public.unlabeled is None or len(public.X):
        return None  # with labelled rows, a projection gains on some data and loses on others
    of_classes = settings.is_default and not loss.quadratic and public.y.ndim == 1
    chosen = rows.whiten == "auto" and rows.geometry is not True and rows.center and rows.norm is not None
    if not (of_classes and chosen) or clips(fit, columns):
        return None
    row_map = RowMap.of(public.unlabeled, True, True, False, columns=columns)
    unit = row_map(public.unlabeled, np.float64)
    if not is_spread_out(moment := second_moment(unit)):
        return None
    if loss.n_outputs > 1:
        # That of the default algorithm for this budget, which starts at zero.
        total_step = max(1.0, math.log(loss.n_outputs) / 3) * fit.mu * fit.n_rows / settings.algorithm.clip
        row_map = replace(row_map, whitening=Whitening.projection(unit, moment, loss.n_outputs, total_step))
    value = intercept_constant(loss.n_outputs) if rows.fit_intercept else None
    return replace(row_map, intercept_value=value)


def _is_precise(fit: Fit, row_map: RowMap) -> bool:
    """Whether a map by rows without labels is better than one by noisy releases."""
    assert fit.public.unlabeled is not None
    if fit.settings.rows.geometry is False:
        return True
    n_kept = 0 if row_map.whitening is None else len(row_map.whitening.factors)
    floor = Shares.of(fit.mu, fit.n_rows, fit.data.n_features).floor
    return floor >= _LEAST_FLOOR * (1 + n_kept / len(fit.public.unlabeled))


def next_map(fit: Fit, columns: Columns | None) -> RowMap:
    """The map of the release that follows these columns: one that learns the map, or the training."""
    settings, public, loss = fit.settings, fit.public, fit.data.loss
    if learns_mean(fit, public, columns):
        return RowMap(None, True, None, unit_first=True, columns=columns)
    if whitens_alone(fit):
        raise ValueError(
            "rows=RowMapping(whiten=True) needs public rows; pass X_pub and y_pub, or whiten=False."
        )
    if length_price(fit, columns):
        # Rows of any length are measured, since refusing a long one would reveal that it exists.
        return with_intercept(fit, RowMap(None, True, None, columns=columns, bound=LENGTH_LIMIT))
    whiten = settings.rows.whiten
    if whiten == "auto":  # a regression needs more public rows
        enough = not loss.quadratic or len(public.known) > FEWEST_FREE
        whiten = settings.is_default and enough
    groups, shrinkage = whitening_groups(fit)
    kinds = known_kinds(fit)
    row_map = RowMap.of(
        public.known,
        settings.rows.center and not (columns is not None and columns.center.any()),
        settings.rows.norm is not None,
        settings.rows.fit_intercept,
        groups if whiten and len(groups) else None,
        clip=clips(fit, columns),
        columns=columns,
        shrinkage=shrinkage,
        square=None if kinds is None else kinds.square + int(kinds.numbers.sum()),
    )
    times = widening(fit)
    if times > 1 and row_map.bound is not None and loss.quadratic and settings.is_default:
        row_map = row_map.widened(times)
    centred_units = row_map.mean is not None and row_map.normalize and row_map.bound is None
    if public.unlabeled is not None and centred_units and settings.rows.fit_intercept:
        row_map = replace(row_map, intercept_value=intercept_constant(loss.n_outputs))
    return row_map
