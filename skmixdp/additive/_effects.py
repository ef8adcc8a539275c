"""What a fitted additive model shows of each column: its curve, the noise in it, its part in an output."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from .._engine import Procedure
from .._fit.stage import Fit, Price, Stage
from .._fit.statistics import james_stein_factor
from .._linear.arrays import FloatArray, row_norms
from .._rows.row_map import RowMap, TargetMap
from .._utils.models import classes_of, names_of_features
from .._utils.process import own_state
from ..components.protocols import StepContext
from ..estimators._base import EstimatorProcedure
from ..estimators._callbacks import FitTasks
from ..estimators._linear import LinearHead
from ..estimators._outputs import head_outputs
from ..preprocessing import TableColumn
from ..preprocessing._table_encoder import table_of
from ._basis import Basis
from ._parts import NORMAL, Panel, Part

#: Number of lattice points that represent the private rows, a prime.
_N_ROWS = 1021
#: A primitive root of this prime, whose powers spread any two of 60 columns evenly.
_ROOT = 385

#: Variance inflation factor that is assumed for the noise of correlated columns.
_INFLATION = 5.0

#: The part of the steps, the last ones, whose heads are averaged.
_TAIL = 0.25

#: Standard deviation of the scale of all curves of a classifier, as a fraction of the scale.
_SCALE_ERROR = 0.08


#: The number of a column, or the numbers (c,) of several that are parts of one.
Columns = int | NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Effects:
    """Curves of the columns of a fitted model, from its released numbers.

    ``row_map`` and ``coef`` (k, width) are those of the head, and ``intercept`` (k,) its intercepts.
    ``noise`` (k + 3,) is what is known of the noise of training: its standard deviation in each coefficient
    if no step damped it, the sum of the step sizes, the factor of the head after the last step, and the
    longest gradient of a row. For rates it is its covariance (width, width) in the coefficients.
    ``classes`` says how outputs are read: "one" of several, "each" by itself, or None for a regression.
    ``parts`` are the columns of the table, each of which may be several of the model.

    Rows longer than a bound are shortened, and those of a linear model may have unit length, so each row
    multiplies the curves of all columns by a factor of its own. Curves are those of the median factor of the
    :attr:`rows` here, which is that of all rows up to the bound.
    """

    row_map: RowMap
    coef: FloatArray
    intercept: FloatArray
    noise: FloatArray
    classes: str | None
    parts: Mapping[str, Part] = field(default_factory=dict)

    @cached_property
    def basis(self) -> Basis:
        """The basis of the model. For standardised columns, it has linear terms only."""
        scales, d = self.row_map.columns, self.coef.shape[1]
        none = (np.zeros(0),) * d
        plain = Basis(np.zeros(d), np.ones(d), none, none, np.zeros(d, bool), cut=np.inf, quantiles=none)
        if scales is None:
            return self.row_map.basis if isinstance(self.row_map.basis, Basis) else plain
        quantiles = tuple(c + NORMAL / f for c, f in zip(scales.center, scales.factor, strict=True))
        return replace(plain, center=scales.center, factor=scales.factor, cut=scales.cut, quantiles=quantiles)

    def usual(self) -> "Effects":
        """These effects, if the distribution of some column is known."""
        declared = any(part.column is not None for part in self.parts.values())
        if not declared and not any(map(len, self.basis.quantiles)):
            raise AttributeError(
                "there are no effects, since nothing that was released tells how the columns are "
                "distributed; fit with public rows or a larger epsilon, or use explain."
            )
        return self

    @cached_property
    def _slope_map(self) -> RowMap:
        """The map of rows of the basis, without the intercept."""
        return replace(self.row_map, basis=None, columns=None, intercept_value=None)

    @cached_property
    def _theta(self) -> FloatArray:
        """Coefficients (k, width) for rows that are not whitened."""
        return self._whitened(self.coef)

    def _whitened(self, rows: FloatArray) -> FloatArray:
        whitening = self._slope_map.whitening
        return rows if whitening is None else np.asarray(whitening(np.array(rows)))

    def contributions(self, X: FloatArray) -> FloatArray:
        """What each column, and each pair, adds to the outputs of rows (n, d), (n, d + n_pairs, k)."""
        if self.row_map.columns is not None and self.row_map.basis is not None:
            X = self.row_map.basis(X)  # for missing values
        rows = self._slope_map.before_whitening(self.basis(X))
        places = [self.basis.entries(j) for j in range(X.shape[1])]
        places += [[*range(each.start, each.stop)] for each in self.basis.products]
        parts = [rows[:, own] @ self._theta[:, own].T for own in places]
        return np.stack(parts, axis=1)

    # -- the distribution of the columns -------------------------------------------------------

    @cached_property
    def rows(self) -> FloatArray:
        """Rows (n, d) with the released or public quantiles of each column, as if columns were independent.

        Columns without any are 0, or the sign of their released or public mean, as often as this mean says.
        Columns of which nothing is known are taken to be 0 or 1, equally often.
        """
        d, bare = len(self.basis.quantiles), self._slope_map
        mean = np.full(d, np.nan)
        if bare.mean is not None and not bare.unit_first:
            mean = self.basis.center + bare.mean[:d] / self.basis.factor
        rows = np.empty((_N_ROWS, d))
        for j, quantiles in enumerate(self.basis.quantiles):
            rows[:, j] = _even(j) < np.nan_to_num(np.abs(mean[j]), nan=0.5)
            rows[:, j] *= -1.0 if mean[j] < 0 else 1.0
            if len(quantiles):
                rows[:, j] = quantiles[(_even(j) * len(quantiles)).astype(int)]
        for part in self.parts.values():
            own, is_known = part.places, len(self.basis.quantiles[part.places[0]]) > 0
            chances = np.stack([_even(int(own[0])), _even(int(own[-1]) + d)])
            rows[:, own] = part.usual(rows[:, own], is_known, mean[own], chances)
        return rows

    @cached_property
    def _usual_factor(self) -> float:
        """The median factor by which a row multiplies the curves of all columns."""
        entries = self.basis(self.rows)
        mapped = self._slope_map.before_whitening(entries)
        lengths = np.ones(len(entries))
        if self._slope_map.mean is not None:
            if self._slope_map.unit_first:
                lengths = row_norms(entries)
            entries = entries / np.where(lengths > 0, lengths, 1.0)[:, np.newaxis] - self._slope_map.mean
        before = row_norms(entries) * np.where(lengths > 0, lengths, 1.0)
        return float(np.median(row_norms(mapped)[before > 0] / before[before > 0]))

    @cached_property
    def knots(self) -> list[FloatArray]:
        """Knots of each column; for those without any, the lowest and the highest of their usual values."""
        ends = np.nanquantile(self.rows, [0, 1], axis=0).T
        columns = zip(self.basis.knots, ends, strict=True)
        return [knots if len(knots) else np.unique(end) for knots, end in columns]

    # -- curves --------------------------------------------------------------------------------

    def _centred(self, columns: Columns, values: FloatArray) -> tuple[FloatArray, list[int]]:
        """The entries of columns at some values (m, c), minus their mean, times the usual factor; places."""
        columns, parts = np.atleast_1d(columns), []
        for j, column in zip(columns.tolist(), values.reshape(len(values), -1).T, strict=True):
            basis = self.basis.of_column(j)
            usual = basis(self.rows[:, [j]]).mean(axis=0)
            parts.append(basis(column[:, np.newaxis]) - usual)
        entries = [entry for j in columns.tolist() for entry in self.basis.entries(j)]
        return self._usual_factor * np.hstack(parts), entries

    def curve(self, columns: Columns, values: FloatArray) -> FloatArray:
        """What a column adds at some values (m,) in a usual row, (m, k), about its mean over the rows.

        Several ``columns`` add a sum, at values (m, c).
        """
        entries, own = self._centred(columns, values)
        return np.asarray(entries @ self._theta[:, own].T)

    def importance(self, columns: Columns) -> float:
        """Standard deviation of a curve over the rows, root mean square over the outputs."""
        return float(np.sqrt(np.mean(self.curve(columns, self.rows[:, np.atleast_1d(columns)]) ** 2)))

    def importances(self) -> dict[str, float]:
        """The importance of each of the parts, most first."""
        each = {name: self.importance(part.places) for name, part in self.parts.items()}
        return dict(sorted(each.items(), key=lambda item: -item[1]))

    def panel(self, name: str) -> Panel:
        """What is drawn of a part."""
        part = self.parts[name]
        first = int(part.places[0])
        curved, missing = any(map(len, self.basis.knots)), first in self.basis.of_missing
        cells, rows, short = part.panel(self.rows[:, part.places], self.basis.knots[first], curved, missing)
        waves = {period: self.curve(part.places, each) for period, each in short.items()}
        hidden = [
            f"time of the {period}: up to {float(f'{np.hypot(sine - zero, cosine - zero).max():.2g}'):g}"
            for period, (sine, cosine, zero) in waves.items()
        ]
        if part.column is not None and part.column.format == "seconds":
            hidden = ["seconds"]
        effects, errors = self.curve(part.places, rows), self.errors(part.places, rows)
        if part.width:
            order, of_words = np.argsort(effects, axis=0), part.kind == "text"
            effects, errors = (np.take_along_axis(each, order, axis=0) for each in (effects, errors))
            hidden = [f"% of {'words' if of_words else 'entries'}, sorted by effect"]
        return Panel(cells, effects, errors, "\n".join(hidden))

    @cached_property
    def _damped(self) -> list[tuple[FloatArray, FloatArray]]:
        """The result of :meth:`_damping` for the assumed inflation of variances."""
        return self._damping(_INFLATION)

    def _damping(self, inflation: float, averaged: bool = False) -> list[tuple[FloatArray, FloatArray]]:
        """For each output: directions (r, width), and by how much damping changes the variance along each.

        The heads of the last quarter of the steps may be ``averaged``.
        """
        Z = np.asarray(self.row_map(self.rows, np.float64))
        changes = []
        *spreads, total_step, factor, clip = self.noise.tolist()
        for weights, spread in zip(self._curvatures(Z, factor, clip), spreads, strict=True):
            moment = (Z.T * (weights / len(Z))) @ Z
            curvatures, vectors = np.linalg.eigh(moment)
            # At curvature h, the noise of t steps of size s has the variance of one, times the sum of
            # (1 - s h)^(2 i), about (1 - exp(-2 t s h)) / (2 s h). ``ratios`` are that sum over t, inflated.
            decay = np.maximum(2 * total_step * curvatures, 1e-9)
            ratios = np.minimum(inflation * -np.expm1(-decay) / decay, 1.0)
            if averaged:
                ratios = _ratios_of_averages(decay / 2)
            directions = self._whitened(vectors.T[:, : self.coef.shape[1]])
            changes.append((directions, spread**2 * (ratios - 1)))
        return changes

    def _curvatures(self, Z: FloatArray, factor: float, clip: float) -> FloatArray:
        """Second derivatives (k, n) of losses of mapped rows by each output; 0 if the gradient is clipped."""
        if self.classes is None:
            return np.ones((len(self.coef), len(Z)))
        logits = Z[:, : self.coef.shape[1]] @ self.coef.T + self.intercept
        chances = _even(len(self.basis.knots))[:, np.newaxis]

        def probabilities(Z: FloatArray) -> FloatArray:
            return np.asarray(softmax(Z, axis=1) if self.classes == "one" else expit(Z))

        usual, trained = probabilities(logits), probabilities(logits / factor)
        drawn: NDArray[np.bool_] = chances < usual
        if self.classes == "one":
            drawn = np.diff(chances < usual.cumsum(axis=1), axis=1, prepend=False)
        lengths = row_norms(trained - drawn) * row_norms(Z)
        return np.asarray((trained * (1 - trained) * (lengths <= clip)[:, np.newaxis]).T)

    def shrunk(self, averaged: bool = False) -> FloatArray:
        """Coefficients (k, width) whose curves are shrunk towards lines by what their noise explains.

        A curve over the released distribution of its column is a line and a rest. The mean square of the rest
        is that without noise plus that of the noise, so it is multiplied by 1 less the expected fraction of
        noise, 0 at least.

        *Guarantee*: post-processing of released numbers.

        Source: James and Stein 1961, "Estimation with quadratic loss".
        """
        theta, whitening = self._theta.copy(), self._slope_map.whitening
        if whitening is not None and not whitening.rest:
            return self.coef  # a projection cannot be undone
        damping = self._damping(1.0, averaged)
        for j, hats in enumerate(self.basis.hats):
            if hats.stop == hats.start:
                continue
            entries = self._centred(j, self.rows[:, j])[0] / self._usual_factor
            line, own = entries[:, 0], slice(1, 1 + hats.stop - hats.start)
            slopes = line @ entries[:, own] / (line @ line)
            rests = entries[:, own] - np.outer(line, slopes)
            whole = np.zeros((len(rests), theta.shape[1]))
            whole[:, hats] = rests
            lengths = row_norms(self._whitened(whole)) ** 2
            noise = sum(
                spread**2 * lengths.mean() + ((rests @ directions[:, hats].T) ** 2 @ change).mean()
                for spread, (directions, change) in zip(self.noise, damping, strict=False)
            )
            factor = james_stein_factor(noise * len(rests), rests @ theta[:, hats].T)
            theta[:, j] += (1 - factor) * (theta[:, hats] @ slopes)
            theta[:, hats] *= factor
        if whitening is not None:
            theta = replace(whitening, factors=1 / whitening.factors, rest=1 / whitening.rest)(theta)
        return theta

    def errors(self, columns: Columns, values: FloatArray) -> FloatArray:
        """Standard deviations (m, k) of the training noise in a curve, at some values (m,) or (m, c).

        They are NaN in a linear model. Its columns are standardised by noisy numbers, which move its lines
        more than the noise of training.
        """
        if not any(map(len, self.basis.knots)):
            return np.full((len(values), len(self.coef)), np.nan)
        entries, own = self._centred(columns, values)
        if self.noise.ndim == 2:
            squared = ((entries @ self.noise[np.ix_(own, own)]) * entries).sum(axis=1, keepdims=True)
            return np.asarray(np.sqrt(np.maximum(squared, 0.0)))
        # One-hot columns are collinear, so the noise of each is not damped. They have no hats.
        damped = any(len(self.basis.knots[j]) > 0 for j in np.atleast_1d(columns).tolist())
        whole = np.zeros((len(values), self.coef.shape[1]))
        whole[:, own] = entries
        squares, variance = row_norms(self._whitened(whole)) ** 2, []
        for spread, (directions, change) in zip(self.noise, self._damped, strict=False):
            along = (entries @ directions[:, own].T) ** 2
            variance.append(np.maximum(spread**2 * squares + damped * (along @ change), 0.0))
        scale = 0.0 if self.classes is None else _SCALE_ERROR
        return np.asarray(np.hypot(np.sqrt(np.stack(variance, axis=1)), scale * self.curve(columns, values)))


def _ratios_of_averages(growth: FloatArray) -> FloatArray:
    """Variances of the mean of the heads of the last steps, in units of those of the last head undamped.

    ``growth`` is the total step times the curvature. The sum of the steps of one size is an integral of
    ``exp(-growth t)``, for the noise before and within the last steps.
    """
    growth = np.maximum(growth, 1e-3)  # differences of small terms would cancel
    last = _TAIL * growth
    within = _TAIL + (2 * np.expm1(-last) - np.expm1(-2 * last) / 2) / growth
    before = np.expm1(-last) ** 2 * -np.expm1(2 * (last - growth)) / (2 * growth)
    return np.asarray((within + before) / last**2)


def _even(column: int) -> FloatArray:
    """Evenly spaced numbers (n,) from [0, 1), in a different order for each column."""
    return np.arange(_N_ROWS) * pow(_ROOT, column, _N_ROWS) % _N_ROWS / _N_ROWS


class SeenHead(LinearHead):
    """Base class of the heads that show what each column adds."""

    _basis: Basis | None

    def _measured_tasks(self) -> FitTasks:
        """The tasks of a fit, which measure the noise of its steps."""
        self._steps: tuple[float, float | FloatArray, float, FloatArray] | None = None
        return _MeasuredTasks(self, self._attributes_at)

    def _attributes_at(self, W: FloatArray, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        noise = self._noise_of(W)
        if target_map is not None:
            noise[: len(W)] *= target_map.scale
        return super()._attributes_at(W, row_map, target_map) | {"_noise": noise}

    def _noise_of(self, W: FloatArray) -> FloatArray:
        """What is known of the noise of a head (k, d_in); see :class:`Effects`."""
        assert self._steps is not None
        total_step, variance, clip, last = self._steps
        length = float(np.vdot(last, last))
        factor = abs(float(np.vdot(W, last))) / length if length > 0 else 1.0
        return np.array([*(np.sqrt(variance) * factor * np.ones(len(W))), total_step, factor or 1.0, clip])

    def _shrunk(self, fit: Fit) -> FloatArray:
        """The head (k, d_in) of a fit whose curves are shrunk towards lines."""
        assert fit.head is not None and self._steps is not None
        loss, W = fit.data.loss, fit.head.W.copy()
        if not np.all(np.isfinite(W)):
            return W  # refused later
        exclusive = "one" if loss.has_classes and loss.n_outputs > 2 else "each"
        classes = None if loss.quadratic else exclusive
        row_map, noise = replace(fit.mapping.row_map, basis=self._basis), self._noise_of(W)
        effects = Effects(row_map, *row_map.split(W), noise, classes)
        total_step, _, clip, last = self._steps
        # Heads that are not averaged have the direction of the last one.
        averaged = abs(np.vdot(W, last)) < (1 - 1e-9) * np.linalg.norm(W) * np.linalg.norm(last)
        W[:, : effects.coef.shape[1]] = effects.shrunk(bool(averaged))
        self._steps = (total_step, noise[: len(W)] ** 2, clip, W)
        return W

    def _measured(self, procedure: EstimatorProcedure) -> EstimatorProcedure:
        """The procedure of a fit whose tasks measure the noise of its steps."""
        fitted = yield from procedure
        del self._steps
        return fitted

    @property
    def _effects(self) -> Effects:
        """The effects. Only those of given rows do not need the distribution of the columns."""
        check_is_fitted(self)
        classes = classes_of(self)
        exclusive = classes is not None and len(classes) > 2 and not self.multilabel_
        return Effects(
            self._row_map,
            np.atleast_2d(self.coef_),
            np.atleast_1d(self.intercept_),
            self._noise,
            None if classes is None else "one" if exclusive else "each",
        )

    def _effects_on(self, pipeline: Any) -> Effects:
        """The effects by the columns of the table that a pipeline gets, or by those of the model."""
        effects, table = self._effects, table_of(pipeline)
        encoded = {name: each for name, each in table.items() if each.kind != "drop"}
        columns: list[TableColumn | None] = [*encoded.values()] or [None] * self.n_features_in_
        steps, names = getattr(pipeline, "steps", [self]), [*encoded] or None
        if not table:
            names = names_of_features(self) if len(steps) == 1 else pipeline[:-1].get_feature_names_out()
        names = [f"x{j}" for j in range(len(columns))] if names is None else [*map(str, names)]
        ends = np.cumsum([0, *(1 if each is None else len(each.names("")) for each in columns)])
        places = [np.arange(*each) for each in pairwise(ends.tolist())]
        return replace(effects, parts=dict(zip(names, map(Part, places, columns), strict=True)))

    @property
    def interactions_(self) -> list[tuple[int, int]]:
        """Numbers of the columns of each pair with products."""
        return [*self._effects.basis.pairs]

    @property
    def knots_(self) -> list[FloatArray]:
        """Knots of each column."""
        return [each.copy() for each in self._effects.usual().knots]

    @property
    def effects_(self) -> list[FloatArray]:
        """The effect of each column at its knots, (n_knots, k)."""
        effects = self._effects.usual()
        return [effects.curve(j, knots) for j, knots in enumerate(effects.knots)]

    @property
    def importances_(self) -> FloatArray:
        """The standard deviation of each effect over the released distribution, (n_columns,)."""
        effects = self._effects.usual()
        return np.array([effects.importance(j) for j in range(self.n_features_in_)])

    @own_state()
    def explain(self, X: object) -> FloatArray:
        """What each column adds to the outputs, for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns), or what else ``predict`` takes
            Rows. What is explained of PRIVATE rows is a release that no budget covers.

        Returns
        -------
        array of shape (n_samples, n_columns + n_interactions, k)
            Parts of the k outputs: of each column, and then of each pair in ``interactions_``, what its
            products add. The sum over these and ``intercept_`` is ``decision_function(X)``,
            or ``predict(X)`` of a regression, up to rounding.

        Raises
        ------
        ValueError, TypeError
            For rows that ``predict`` refuses.

        Notes
        -----
        Rows longer than a bound are shortened: all parts of such a row are multiplied by the same factor. All
        other rows add ``effects_``. In a linear model, without any knots, rows may have unit length.

        *Guarantee*: none for the rows that are explained; keep what is explained as private as they are.
        """
        return head_outputs(self, X, self._effects.contributions)

    def _explained(self, X: object, pipeline: Any) -> pd.DataFrame:
        """What each column of a table, and each pair, adds to the outputs for each encoded row."""
        each, effects = self.explain(X), self._effects_on(pipeline)
        owners = {int(j): name for name, part in effects.parts.items() for j in part.places}
        names = [*owners.values()]
        names += [" x ".join(map(str, (owners[i], owners[j]))) for i, j in effects.basis.pairs]
        classes = classes_of(self)
        outputs = list(range(each.shape[2]) if classes is None else classes)[-each.shape[2] :]
        tables = [pd.DataFrame(each[:, :, i], columns=names) for i in range(each.shape[2])]
        tables = [table.T.groupby(level=0, sort=False).sum().T for table in tables]
        return tables[0] if len(tables) == 1 else pd.concat(dict(zip(outputs, tables, strict=True)), axis=1)


@dataclass(repr=False)
class _MeasuredTasks(FitTasks):
    """The tasks of a fit, which also add up its steps and their noise, and keep the last head."""

    def __call__(self, ctx: StepContext, W: FloatArray) -> bool:
        total_step, variance, *_ = self.estimator._steps or (0.0, 0.0)
        part = ctx.step_size * (1 - ctx.public_weight) * ctx.noise_multiplier / ctx.batch_size
        variance += sum((each.sensitivity * part) ** 2 / each.share for each in ctx.released)
        self.estimator._steps = (total_step + ctx.step_size, variance, ctx.released[0].sensitivity, W)
        return super().__call__(ctx, W)


@dataclass(frozen=True, eq=False)
class Shrinkage(Stage):
    """Shrinks curves towards lines, by what the noise of training explains; free.

    *Guarantee*: post-processing of released numbers.
    """

    shrunk: Callable[[Fit], FloatArray]

    name = ""

    def price(self, fit: Fit) -> Price | None:
        return 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        yield from ()  # no queries
        assert fit.head is not None
        return fit.spent(self, price, head=replace(fit.head, W=self.shrunk(fit)))
