"""How the rows of a fit are mapped, as far as its settings and public rows tell, and by which release."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engine import Procedure
from ..._rows.row_map import RowMap
from ..._rows.scaling import Columns, Whitening, columns_of, is_spread_out, n_groups, second_moment
from ..stage import FEWEST_FREE, Fit, Kinds, Price, PublicRows, Stage
from ..statistics import Worth, share_for

Array = NDArray[Any]

#: For whitening by rows of unknown classes: the largest weight of their scatter.
_MOST_WEIGHT = 0.1
#: The weight times the number of outputs. With more classes, more of that scatter separates classes.
_WEIGHT_OF_ALL = 0.5

#: Minimum number of columns for unit length: with fewer, rows lose too much information.
_FEWEST_AT_UNIT_LENGTH = 4

#: Fewest rows that keep their lengths, times mu and divided by the root of the number of columns. With fewer,
#: noise hides second moments, so steps are short. On eight tables and five made ones, 60 and 80 lost without
#: directions, and 140 gained.
_FEWEST_OF_LENGTHS = 90.0

#: Minimum number of public rows for the spread of columns.
FEWEST_KNOWN = 10

#: Bins of magnitudes end at powers of two, from minus this exponent to this exponent.
EXPONENT = 63

#: Upper end of the search for a length, a power of two. Lengths are divided by it without rounding.
#: Longer rows are shortened to it.
LENGTH_LIMIT = 2.0**64
#: The bound on rows of a regression is raised if ``n_features / (mu * n_rows)`` is below this.
_HARDLY_NOISY = 1e-4
#: Largest factor by which the bound is raised.
_MOST_TIMES = 5.0

#: Smallest constant of the intercept column. Centred rows have no common direction, so a small constant is
#: enough and adds little noise.
_LEAST_INTERCEPT = 0.1
#: The constant for two classes, which may differ more in size.
_INTERCEPT_OF_TWO = 0.3

#: Target for the length of the noise in the mean, for unit rows.
_MEAN_ERROR = 0.15
#: Smallest share of mu squared for the mean.
LEAST_SHARE = 0.01
#: Largest share of mu squared, each for the mean and for the directions.
MOST_SHARE = 0.05

#: Number of directions, and rounds of the power method that finds them.
DIRECTIONS, ROUNDS = 20, 3

#: The mean is learned from private rows if that of public rows has more than this many times its variance.
_TIMES_AS_GOOD = 2.0

#: Rounds of the binary search for a length.
SEARCH_ROUNDS = 8
#: Noise in the count of rows up to a length, as a fraction of the rows.
WORTH_OF_LENGTH = Worth(0.05, 0.2, (0.01, 0.05))


def intercept_constant(n_outputs: int) -> float:
    """Constant of the intercept column of centred rows of unit length."""
    return max(_LEAST_INTERCEPT, _INTERCEPT_OF_TWO * math.sqrt(2 / max(n_outputs, 2)))


def known_kinds(fit: Fit) -> Kinds | None:
    """The kinds of the columns, where too few public rows tell their spread."""
    kinds = fit.settings.rows.kinds
    fits = kinds is not None and len(kinds.numbers) == fit.data.n_features
    return kinds if fits and len(fit.public.known) < FEWEST_KNOWN else None


@lru_cache(maxsize=8)  # so that fits have the same object
def unmapped(n_features: int) -> RowMap:
    """The row map for histograms of columns: entries are unchanged, but clipped at the largest magnitude."""
    columns = Columns(np.zeros(n_features), np.ones(n_features), cut=2.0**EXPONENT)
    return RowMap(None, False, None, columns=columns)


def whitening_groups(fit: Fit) -> tuple[Array, float | None]:
    """Groups of the first known rows for whitening; weight of the identity, None for the usual one."""
    public, loss = fit.public, fit.data.loss
    # If few rows have labels, all known rows are one group.
    few_labelled = len(public.y) - n_groups(public.y) < FEWEST_FREE
    if not loss.quadratic and not (few_labelled and public.unlabeled is not None):
        return public.y, None
    weight = min(_MOST_WEIGHT, _WEIGHT_OF_ALL / loss.n_outputs)
    return np.zeros(len(public.known), dtype=np.intp), None if loss.quadratic else 1 - weight


def whitens_alone(fit: Fit) -> bool:
    """Whether rows of unit length are whitened by private directions, without public rows."""
    return fit.settings.rows.whiten is True and len(fit.public.known) == 0


def centres_columns(fit: Fit) -> bool:
    """Whether columns are centred before rows are scaled; rows of unit length are centred afterwards."""
    settings = fit.settings.rows
    return settings.center and not (
        settings.norm == "unit" or settings.geometry is True or whitens_alone(fit)
    )


def scales_columns(fit: Fit) -> bool:
    """Whether columns are standardised if their units differ."""
    settings = fit.settings.rows
    return settings.norm is not None if settings.scale == "auto" else settings.scale


def clips(fit: Fit, columns: Columns | None) -> bool:
    """Whether rows keep their length, up to a bound."""
    settings = fit.settings.rows
    # If the centre of columns is unknown, rows of unit length are centred. That loses too much of a few.
    if settings.norm != "auto" or columns is None:
        return settings.norm == "clip"
    few_columns = len(columns.center) < _FEWEST_AT_UNIT_LENGTH
    return bool(columns.center.any()) or not settings.center or few_columns


def with_intercept(fit: Fit, row_map: RowMap) -> RowMap:
    """A map with an intercept column, if the head has an intercept."""
    return row_map.with_intercept_for(fit.public.known) if fit.settings.rows.fit_intercept else row_map


def widening(fit: Fit) -> float:
    """The factor, at least 1, by which the bound on rows of a regression is raised, from public facts."""
    return min(
        max(math.sqrt(_HARDLY_NOISY * fit.budget.mu * fit.data.n_rows / fit.data.n_features), 1.0),
        _MOST_TIMES,
    )


def length_price(fit: Fit, columns: Columns | None) -> float:
    """Share of mu squared for the length of rows whose columns are known as far as these; 0 without need."""
    needed = fit.settings.rows.norm == "clip" and columns is None and not len(fit.public.known)
    possible = fit.settings.known_map is None and fit.divides and not fit.data.private.exact
    if not (needed and possible):
        return 0.0
    return share_for(fit.budget.mu, fit.data.n_rows, math.sqrt(SEARCH_ROUNDS), WORTH_OF_LENGTH)


@dataclass(frozen=True)
class Shares:
    """Parts of mu squared for the mean and the directions; noise hides second moments up to ``floor``."""

    mean: float
    directions: float
    floor: float

    @classmethod
    def of(cls, mu: float, n_rows: int, n_features: int) -> "Shares":
        """The shares for a budget, from public facts."""
        wanted = n_features / (_MEAN_ERROR * mu * n_rows) ** 2
        mean = min(max(wanted, LEAST_SHARE), MOST_SHARE)
        directions = min(2 * mean, MOST_SHARE)
        scale = math.sqrt(ROUNDS / directions) / (mu * n_rows)
        floor = scale * (math.sqrt(n_features) + math.sqrt(min(DIRECTIONS, n_features)))
        return cls(mean, directions, floor)


def _directions_count_more(fit: Fit, columns: Columns | None) -> bool:
    """Whether few rows, of noisily centred columns, gain more by directions than by their lengths."""
    settings, n_features = fit.settings.rows, fit.data.n_features
    if columns is None or n_features < _FEWEST_AT_UNIT_LENGTH or settings.norm != "auto":
        return False
    is_noisy = settings.declared is None and known_kinds(fit) is None and not len(fit.public.known)
    return is_noisy and fit.budget.mu * fit.data.n_rows < _FEWEST_OF_LENGTHS * math.sqrt(n_features)


def learns_mean(fit: Fit, public: PublicRows, columns: Columns | None) -> bool:
    """Whether to learn the centre and the leading directions of the rows from private rows."""
    settings = fit.settings
    if settings.known_map is not None:
        return False
    possible = {
        "center": settings.rows.center,
        "norm": settings.rows.norm in ("unit", "auto"),
        "batch_size": settings.batch_size is None,
        "n_steps and noise_multiplier": fit.budget.is_divisible,
        "init": not isinstance(settings.init, np.ndarray),
    }
    if settings.rows.geometry == "auto":
        whitens = settings.rows.whiten is True and not len(public.known)
        keeps_lengths = clips(fit, columns) and not (whitens or _directions_count_more(fit, columns))
        wanted = settings.is_default and not (fit.data.loss.quadratic or keeps_lengths)
        if not (wanted and all(possible.values())):
            return False
        if not len(public.known):
            return True
        n_features = fit.data.n_features
        share = Shares.of(fit.budget.mu, fit.data.n_rows, n_features).mean
        noise = n_features / (fit.data.n_rows * fit.budget.mu) ** 2 / share
        return public.error_of_mean > _TIMES_AS_GOOD * noise
    if settings.rows.geometry and not all(possible.values()):
        obstacle = next(name for name, fits in possible.items() if not fits)
        raise ValueError(
            f"rows=RowMapping(geometry=True) cannot be combined with the given {obstacle}: it divides "
            "epsilon among full-batch releases of centred unit rows; leave that parameter at its default, or "
            "pass geometry=False."
        )
    return settings.rows.geometry


#: Noise in private directions from which those of many public rows are better.
_LEAST_FLOOR = 0.08


class PublicMap(Stage):
    """The map of the rows that follows from public rows alone. It costs nothing."""

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
            if fit.settings.rows.declared is not None:
                center, spread = fit.settings.rows.declared
                is_declared = ~np.isnan(center)
                if columns is None:
                    columns = Columns(np.zeros(len(center)), np.ones(len(center)))
                if centres_columns(fit):
                    columns = replace(columns, center=np.where(is_declared, center, columns.center))
                columns = replace(columns, factor=np.where(is_declared, 1 / spread, columns.factor))
        # With labelled rows, a projection gains on some data and loses on others.
        row_map = None if public.unlabeled is None or len(public.X) else _spread_out(fit, columns)
        if row_map is not None and not _is_precise(fit, row_map):
            fit, row_map = fit.learned(public=public.left_out()), None
        row_map = fit.data.private.shared_map(row_map or next_map(fit, columns))
        return fit.spent(self, price).mapped(row_map=row_map, columns=columns)


def _spread_out(fit: Fit, columns: Columns | None) -> RowMap | None:
    """The map by public rows without labels whose variance is spread out; None if it is not, or by choice.

    Rows are projected, since whitening as one group would shorten what separates classes. Those of two
    classes are only centred: one direction of little variance may separate them.
    """
    settings, public, loss = fit.settings, fit.public, fit.data.loss
    rows = settings.rows
    of_classes = settings.is_default and not loss.quadratic and public.y.ndim == 1
    chosen = rows.whiten == "auto" and rows.geometry is not True and rows.center and rows.norm is not None
    if not (of_classes and chosen) or clips(fit, columns):
        return None
    assert public.unlabeled is not None
    row_map = RowMap.of(public.unlabeled, True, True, False, columns=columns)
    unit = row_map(public.unlabeled, np.float64)
    if not is_spread_out(moment := second_moment(unit)):
        return None
    if loss.n_outputs > 1:
        # The total step of the default algorithm for this budget, from a head of zeros.
        total_step = (
            max(1.0, math.log(loss.n_outputs) / 3) * fit.budget.mu * fit.data.n_rows / settings.algorithm.clip
        )
        row_map = replace(row_map, whitening=Whitening.projection(unit, moment, loss.n_outputs, total_step))
    value = intercept_constant(loss.n_outputs) if rows.fit_intercept else None
    return replace(row_map, intercept_value=value)


def _is_precise(fit: Fit, row_map: RowMap) -> bool:
    """Whether a map by rows without labels is better than one by noisy releases."""
    assert fit.public.unlabeled is not None
    if fit.settings.rows.geometry is False:
        return True
    n_kept = 0 if row_map.whitening is None else len(row_map.whitening.factors)
    floor = Shares.of(fit.budget.mu, fit.data.n_rows, fit.data.n_features).floor
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
    if row_map.bound is not None and loss.quadratic and settings.is_default and widening(fit) > 1:
        row_map = row_map.widened(widening(fit))
    centred_units = row_map.mean is not None and row_map.normalize and row_map.bound is None
    if public.unlabeled is not None and centred_units and settings.rows.fit_intercept:
        row_map = replace(row_map, intercept_value=intercept_constant(loss.n_outputs))
    return row_map
