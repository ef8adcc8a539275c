"""The map that public rows give, and that of the next release where they give none."""

import math
from dataclasses import replace

from ..._engine import Procedure
from ..._rows import Columns, RowMap, columns_of
from ..mapping import (
    LENGTH_LIMIT,
    centres_columns,
    clips,
    intercept_constant,
    scales_columns,
    whitening_groups,
    whitens_alone,
    with_intercept,
)
from ..stage import FEWEST_FREE, Fit, Price, Stage
from .length import length_price
from .mean import learns_mean

#: The bound on rows of a regression is raised if ``n_features / (mu * n_rows)`` is below this.
_HARDLY_NOISY = 1e-4
#: Largest factor by which the bound is raised.
_MOST_TIMES = 5.0


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
        row_map = fit.data.private.same(next_map(fit, columns))
        return fit.spent(self, price).mapped(row_map=row_map, columns=columns)


def next_map(fit: Fit, columns: Columns | None) -> RowMap:
    """The map of the release that follows these columns: one that learns the map, or the training."""
    settings, public, loss = fit.settings, fit.public, fit.data.loss
    if learns_mean(fit, public, columns):
        return RowMap(None, True, None, unit_first=True, columns=columns)
    if whitens_alone(fit):
        raise ValueError("whiten=True needs public rows; pass X_pub and y_pub, or whiten=False.")
    if length_price(fit, columns):
        # Rows of any length are measured, since refusing a long one would reveal that it exists.
        return with_intercept(fit, RowMap(None, True, None, columns=columns, bound=LENGTH_LIMIT))
    whiten = settings.rows.whiten
    if whiten == "auto":  # a regression needs more public rows
        enough = not loss.quadratic or len(public.known) > FEWEST_FREE
        whiten = settings.is_default and enough
    groups, shrinkage = whitening_groups(fit)
    row_map = RowMap.of(
        public.known,
        settings.rows.center and not (columns is not None and columns.center.any()),
        settings.rows.row_norm is not None,
        settings.rows.fit_intercept,
        groups if whiten and len(groups) else None,
        clip=clips(fit, columns),
        columns=columns,
        shrinkage=shrinkage,
    )
    times = math.sqrt(_HARDLY_NOISY * fit.mu * fit.n_rows / fit.data.n_features)
    if times > 1 and row_map.bound is not None and loss.quadratic and settings.is_default:
        row_map = row_map.widened(min(times, _MOST_TIMES))
    centred_units = row_map.mean is not None and row_map.normalize and row_map.bound is None
    if public.unlabeled is not None and centred_units and settings.rows.fit_intercept:
        row_map = replace(row_map, intercept_value=intercept_constant(loss.n_outputs))
    return row_map
