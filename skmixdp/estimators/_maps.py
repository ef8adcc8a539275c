"""The map of the rows of a fit: from public rows, or learned from private rows in several releases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Procedure
from .._learning.columns import columns_share, noisy_columns, unmapped
from .._learning.noisy_statistics import (
    LENGTH_LIMIT,
    Learner,
    Shares,
    intercept_constant,
    leading_directions,
    length_share,
    noisy_length,
    noisy_mean,
    noisy_second_moment,
    second_moment_share,
    variance_of_mean,
    warn_of_few_columns,
)
from .._rows import ArrayTable, Columns, RowMap, Whitening, columns_of, n_groups
from ._problem import FEWEST_FREE, FitInputs, LabelledRows, MappedRows

Array = NDArray[Any]

#: Entries are cut at this, so that squares do not overflow: after a release, no row may be refused.
_LARGEST_ENTRY = 1e150

#: Minimum number of public rows for the spread of columns.
_FEWEST_KNOWN = 10

#: Largest noise at which private directions are useful, as a fraction of the variance of the rows.
_LARGEST_FLOOR = 0.25

#: The bound on rows of a regression is raised if ``n_features / (mu * n_rows)`` is below this.
_HARDLY_NOISY = 1e-4
#: Largest factor by which the bound is raised.
_MOST_TIMES = 5.0

#: The mean is learned from private rows if that of public rows has more than this many times its variance.
_TIMES_AS_GOOD = 2.0


@dataclass(frozen=True)
class MapStage:
    """The next release of a fit that learns a map, and what earlier releases tell of the map; else None.

    ``asked_map`` is that of the rows of the query, and ``row_map`` the map as far as it is known. ``shares``
    of the squared budget are for the releases of this stage, and ``most`` for these and all that may follow.
    ``second_moment`` is the largest second moment of the mapped rows, and ``preconditioner`` (d_in, d_in) a
    matrix for directions of descent. Few gradients of private rows are longer than ``gradient_bound``.
    """

    asked_map: RowMap
    row_map: RowMap
    shares: dict[str, float]
    most: dict[str, float]
    second_moment: float | None = None
    preconditioner: Array | None = None
    gradient_bound: float | None = None

    def rows(self, private: LabelledRows) -> MappedRows:
        """The rows of the query."""
        return MappedRows(private, self.asked_map)


def first_stage(inputs: FitInputs, known_maps: Sequence[RowMap] = ()) -> MapStage:
    """The first release that learns the map, if public facts call for one. A given map needs none."""
    private = inputs.private
    if inputs.known_map is not None:
        return MapStage(inputs.known_map, inputs.known_map, {}, {})
    known = inputs.X_known if inputs.X_scale is None else inputs.X_scale
    columns, n_features = None, private.table.shape[1]
    scales = inputs.row_norm is not None if inputs.scale == "auto" else inputs.scale
    if scales:
        # Unlabelled rows have rare values, which would become long entries of a few rows if scaled to spread
        # 1.
        columns = columns_of(known, centred=inputs.centres_columns, balanced=inputs.X_unlabeled is not None)
    stage = _stage_with(inputs, columns)
    # A few public rows give a poor estimate of the spread of columns. Public rows that were left out may have
    # other units.
    poor = len(known) < _FEWEST_KNOWN or inputs.X_scale is not None
    learned = poor and scales and inputs.preconditions and not private.exact
    share = columns_share(inputs.budget.mu, inputs.n_rows, n_features) if learned else 0.0
    if share:
        # What follows depends on the columns, which are not known yet: the dearest case counts.
        shares, ones = {"columns": share}, np.ones(n_features)
        cases = [map_shares(inputs, Columns(center, ones, 1.0)) for center in (0 * ones, ones)]
        most = max(_stage_with(inputs, None).shares, *cases, key=lambda case: sum(case.values()))
        stage = MapStage(unmapped(n_features), stage.row_map, shares, shares | most)

    # Fits share passes if their maps are the same object.
    asked_map, row_map = (
        next((other for other in known_maps if other.same_as(one)), one)
        for one in (stage.asked_map, stage.row_map)
    )
    return replace(stage, asked_map=asked_map, row_map=row_map)


def _stage_with(inputs: FitInputs, columns: Columns | None) -> MapStage:
    """The stage after the columns: learning the rest of the map, or training with a public map."""
    shares, n_features = map_shares(inputs, columns), inputs.private.table.shape[1]
    if "mean" in shares:
        row_map = RowMap(None, True, None, unit_first=True, columns=columns)
    elif inputs.whitens_alone:
        raise ValueError("whiten=True needs public rows; pass X_pub and y_pub, or whiten=False.")
    elif "length of the rows" in shares:
        # Rows of any length are measured, since refusing a long one would reveal that it exists. They have no
        # intercept, which would add to their length; the start may have one.
        row_map = RowMap(None, True, None, columns=columns, bound=LENGTH_LIMIT)
        return MapStage(row_map, _with_intercept(inputs, row_map), shares, shares)
    else:
        whiten = inputs.whiten
        if whiten == "auto":  # a regression needs more public rows
            enough = not inputs.loss.quadratic or len(inputs.X_known) > FEWEST_FREE
            whiten = inputs.is_default and enough
        groups, shrinkage = inputs.groups
        row_map = RowMap.of(
            inputs.X_known,
            inputs.center and not (columns is not None and columns.center.any()),
            inputs.row_norm is not None,
            inputs.fit_intercept,
            groups if whiten and len(groups) else None,
            clip=inputs.clips(columns),
            columns=columns,
            shrinkage=shrinkage,
        )
        times = math.sqrt(_HARDLY_NOISY * inputs.budget.mu * inputs.n_rows / n_features)
        if times > 1 and row_map.bound is not None and inputs.loss.quadratic and inputs.is_default:
            row_map = row_map.widened(min(times, _MOST_TIMES))
        centred_units = row_map.mean is not None and row_map.normalize and row_map.bound is None
        if inputs.X_unlabeled is not None and centred_units and inputs.fit_intercept:
            row_map = replace(row_map, intercept_value=intercept_constant(inputs.loss.n_outputs))
    return MapStage(row_map, row_map, shares, shares)


def map_shares(inputs: FitInputs, columns: Columns | None) -> dict[str, float]:
    """Shares of the squared budget for learning the map from private rows, after the columns."""
    if learns_geometry(inputs, columns):
        shares = Shares.of(inputs.budget.mu, inputs.n_rows, inputs.private.table.shape[1])
        learned = {"mean": shares.mean}
        groups, _ = inputs.groups
        few = len(groups) - n_groups(groups) < FEWEST_FREE and shares.floor < _LARGEST_FLOOR
        if few or not len(groups):  # public rows whiten worse than directions of private rows
            learned["directions"] = shares.directions
        return learned
    if columns is not None and inputs.clips(columns) and inputs.preconditions:
        share = second_moment_share(inputs.budget.mu, inputs.n_rows, inputs.private.table.shape[1])
        return {"second moment": share} if share else {}
    needed = inputs.row_norm == "clip" and len(inputs.X_known) == 0 and columns is None
    possible = inputs.divides and not inputs.private.exact
    share = length_share(inputs.budget.mu, inputs.n_rows) if needed and possible else 0.0
    return {"length of the rows": share} if share else {}


def learned_map(inputs: FitInputs, stage: MapStage, learner: Learner) -> Procedure[MapStage]:
    """The map, learned from private rows if public rows do not determine it; its shares are all that it cost.

    What noisy columns tell decides what else is released. The squared budgets of adaptive Gaussian releases
    add up as those of fixed ones, if their sum is bounded: Smith and Thakurta 2022, "Fully adaptive
    composition for Gaussian differential privacy".
    """
    cost: dict[str, float] = {}
    private, n_features = inputs.private, inputs.private.table.shape[1]
    if "columns" in stage.shares:
        cost = stage.shares
        multiplier = inputs.budget.multiplier(cost["columns"])
        noisy = yield from inputs.stage(stage.rows(private), noisy_columns(learner, n_features, multiplier))
        columns = noisy.standardised(centred=inputs.centres_columns)
        stage = _stage_with(inputs, columns)
        if columns is None and not isinstance(private.table, ArrayTable):
            # A refusal of a row whose length overflows would now reveal that it exists.
            limits = Columns(np.zeros(n_features), np.ones(n_features), cut=_LARGEST_ENTRY)
            asked_map, row_map = (replace(one, columns=limits) for one in (stage.asked_map, stage.row_map))
            stage = replace(stage, asked_map=asked_map, row_map=row_map)
    rows, shares = stage.rows(private), stage.shares
    stage = replace(stage, shares=cost | shares)
    multipliers = {name: inputs.budget.multiplier(share) for name, share in shares.items()}
    if not shares:
        return stage
    if "length of the rows" in shares:
        measured = noisy_length(learner, n_features, multipliers["length of the rows"])
        bound = yield from inputs.stage(rows, measured)
        bounded = replace(stage.asked_map, bound=inputs.length_factor * bound)
        return replace(stage, row_map=_with_intercept(inputs, bounded))

    if "second moment" in shares:
        bare = stage.row_map
        if bare.intercept_value is not None:
            bare = replace(bare, intercept_value=None)
        asked = noisy_second_moment(learner, n_features, multipliers["second moment"])
        moment = yield from inputs.stage(MappedRows(private, bare), asked)
        matrix, second_moment = moment.preconditioner(stage.row_map.intercept_value)
        return replace(stage, second_moment=second_moment, preconditioner=matrix)

    mean = yield from inputs.stage(rows, noisy_mean(learner, n_features, multipliers["mean"]))
    warn_of_few_columns(mean.energies)
    unit_pub = RowMap(None, True, None, columns=stage.row_map.columns)(inputs.X_known, np.float64)
    center = mean.shrunk()
    if len(unit_pub) > 1:  # a variance needs two rows
        center = mean.combined(unit_pub.mean(axis=0), variance_of_mean(unit_pub))
    row_map = replace(stage.row_map, mean=center)
    largest: float | None = None
    if "directions" in shares:
        directed = leading_directions(learner, n_features, multipliers["directions"])
        directions = yield from inputs.stage(MappedRows(private, row_map), directed)
        warn_of_few_columns(directions.energies)
        lasting, factors = directions.shortened()
        whitening = Whitening(lasting, factors) if inputs.whiten is not False and len(factors) else None
        largest = directions.largest_second_moment(None if whitening is None else factors)
        row_map = replace(row_map, whitening=whitening)
    elif inputs.whiten is not False:
        groups, shrinkage = inputs.groups
        known = row_map(inputs.X_known[: len(groups)], np.float64)
        whitening = Whitening.of(known, groups, shrinkage)
        row_map = replace(row_map, whitening=whitening)
    if inputs.fit_intercept:
        row_map = replace(row_map, intercept_value=intercept_constant(inputs.loss.n_outputs))
    return replace(stage, row_map=row_map, second_moment=largest)


def _with_intercept(inputs: FitInputs, row_map: RowMap) -> RowMap:
    """A map with an intercept column, if the head has an intercept."""
    return row_map.with_intercept_for(inputs.X_known) if inputs.fit_intercept else row_map


def learns_geometry(inputs: FitInputs, columns: Columns | None) -> bool:
    """Whether to learn the centre and the leading directions of the rows from private rows."""
    possible = {
        "center": inputs.center,
        "row_norm": inputs.row_norm in ("unit", "auto"),
        "batch_size": inputs.batch_size is None,
        "n_steps and noise_multiplier": inputs.budget.is_divisible,
        "init": not isinstance(inputs.init, np.ndarray),
    }
    if inputs.geometry == "auto":
        keeps_lengths = inputs.clips(columns) and not inputs.whitens_alone
        wanted = inputs.is_default and not (inputs.loss.quadratic or keeps_lengths)
        if not (wanted and all(possible.values())):
            return False
        if not len(inputs.X_known):
            return True
        unit_pub = RowMap(None, True, None)(inputs.X_known, np.float64)
        n_features = inputs.private.table.shape[1]
        share = Shares.of(inputs.budget.mu, inputs.n_rows, n_features).mean
        noise = n_features / (inputs.n_rows * inputs.budget.mu) ** 2 / share
        return variance_of_mean(unit_pub) > _TIMES_AS_GOOD * noise
    if inputs.geometry and not all(possible.values()):
        obstacle = next(name for name, fits in possible.items() if not fits)
        raise ValueError(
            f"geometry=True cannot be combined with the given {obstacle}: it divides epsilon among "
            "full-batch releases of centred unit rows; leave that parameter at its default, or pass "
            "geometry=False."
        )
    return inputs.geometry
