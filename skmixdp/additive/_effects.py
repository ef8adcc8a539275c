"""What a fitted additive model shows of each column: its curve, the noise in it, its part in an output."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .._fit.statistics import james_stein_factor
from .._linear.arrays import FloatArray, row_norms
from .._rows.row_map import RowMap
from ._basis import NORMAL, Basis, Column
from ._parts import Panel, Part

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

    Rows longer than a bound are shortened, and those of a linear model may have unit length, so each row
    multiplies the curves of all columns by a factor of its own. Curves are those of the median factor of the
    :attr:`rows` here, which is that of all rows up to the bound.
    """

    #: The map, coefficients (k, width) and intercepts (k,) of the head.
    row_map: RowMap
    coef: FloatArray
    intercept: FloatArray
    #: The noise of training (k + 3,): its standard deviation in each coefficient if no step damped it, the
    #: sum of the step sizes, the factor of the head after the last step, and the longest gradient of a row.
    #: For rates, its covariance (width, width) in the coefficients.
    noise: FloatArray
    #: How outputs are read: "one" of several classes, "each" by itself, or None for a regression.
    classes: str | None
    #: The columns of the table, each of which may be several of the model.
    parts: Mapping[str, Part] = field(default_factory=dict)

    @cached_property
    def basis(self) -> Basis:
        """The basis of the model. For standardised columns, it has linear terms only."""
        scales, basis = self.row_map.columns, self.row_map.basis
        if scales is None:
            plain = Basis.of([Column()] * self.coef.shape[1], np.inf)
            return basis if isinstance(basis, Basis) else plain
        pairs = zip(scales.center.tolist(), scales.factor.tolist(), strict=True)
        return Basis.of([Column(c, f, quantiles=c + NORMAL / f) for c, f in pairs], scales.cut)

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

        Columns without any are 0, or the sign of their mean, as often as this mean says, or half of the time.
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
        """What columns together add to a usual row at values (m, c), (m, k), about their mean over rows."""
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
        curved, missing = any(map(len, self.basis.knots)), first in self.basis.missing_entries
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
        """For each output: directions (r, width), and by how much damping changes the variance along each."""
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

        A curve is a line and a rest. The rest is multiplied by 1 less the expected fraction of noise in its
        mean square, 0 at least: James and Stein 1961, "Estimation with quadratic loss".
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
        """Standard deviations (m, k) of the training noise in a curve, at some values (m,) or (m, c)."""
        if not any(map(len, self.basis.knots)):
            # Noisy numbers that standardise columns move lines more than the noise of training.
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

    ``growth`` is the total step times the curvature. The sum over steps is an integral of ``exp(-growth t)``.
    """
    growth = np.maximum(growth, 1e-3)  # differences of small terms would cancel
    last = _TAIL * growth
    within = _TAIL + (2 * np.expm1(-last) - np.expm1(-2 * last) / 2) / growth
    before = np.expm1(-last) ** 2 * -np.expm1(2 * (last - growth)) / (2 * growth)
    return np.asarray((within + before) / last**2)


def _even(column: int) -> FloatArray:
    """Evenly spaced numbers (n,) from [0, 1), in a different order for each column."""
    return np.arange(_N_ROWS) * pow(_ROOT, column, _N_ROWS) % _N_ROWS / _N_ROWS
