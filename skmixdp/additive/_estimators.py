"""The additive models: default heads on a basis of each column."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._engine import Procedure
from .._fit.procedure import prepared
from .._fit.stage import Data, Fit, Price, PublicRows, Stage
from .._fit.stages.columns import NoisyColumnScales
from .._rows.row_map import RowMap, TargetMap
from .._rows.sparse import SparseTable
from .._utils.models import names_of_features
from .._utils.validation import POSITIVE, Allowed, Number, check, listed, shown
from ..estimators import RowMapping
from ..estimators._base import EstimatorProcedure, FitData
from ..estimators._logistic import LogisticHead
from ..estimators._ridge import RidgeHead
from ..estimators._row_mapping import DECLARED, current_pipeline
from ..preprocessing._cells import TableColumns
from ..preprocessing._table_encoder import table_of
from ..privacy.accounting.budgets import Budget
from ..privacy.accounting.events import Noise
from ._basis import Basis, Column, Pairs, unchanged
from ._effects import SeenHead, Shrinkage
from ._knots import ENOUGH, Knots, count_error, knots_share, line, public_columns
from ._pairs import ChosenPairs

Array = NDArray[Any]

_N_KNOTS = Number("a whole number from 2 to 64", low=2, high=64, closed="both", whole=True)

#: Pieces of a curve by default.
_PIECES = 8
#: Pieces of a curve with many rows.
_MORE_PIECES = 16
#: Number of rows times mu from which rows are many.
_MANY_ROWS_TIMES_MU = 5_000
#: With public rows, there is one piece for each such number of them.
_ROWS_OF_PIECE = 5
#: Fewest pieces with public rows.
_FEWEST_PIECES = 3

#: Rows times mu from which a regression has curves. With fewer, the noise in them costs more than they gain.
_FEWEST_NUMBERS = 1_000

#: Noise in a count, as a fraction of the rows, up to which private rows determine knots better than few
#: public rows.
_HARDLY_NOISY = 0.0025
#: Public rows are few below this number.
_FEW_KNOWN = 200

#: Noise grows in proportion to the longest row. Classes lose little accuracy if the longest rows are cut.
_LENGTH_FACTOR = 0.7

#: With public rows, the second moment of rows is taken to be the first number times the longest squared
#: length. That needs a number of rows times mu of at least the second number.
_SECOND_MOMENT, _LONG_STEPS = 2.5, 500

#: Number of quantiles that stand for a declared column.
_USUAL_ROWS = 100


def pieces(mu: float, n_rows: int, n_known: int | None = None) -> int:
    """Number of pieces of a curve, from public facts; ``n_known`` public rows may allow fewer."""
    if n_known is None:
        return _MORE_PIECES if mu * n_rows >= _MANY_ROWS_TIMES_MU else _PIECES
    return min(max(n_known // _ROWS_OF_PIECE, _FEWEST_PIECES), _PIECES)


class GentleSteps(Stage):
    """Shorter steps of curves of classes that start from public rows; free.

    A few public rows, equally many of each class, tell less than half of the second moment of hats in private
    ones. Steps of that size swing about the optimum, and predictions are too sure.

    *Guarantee*: it depends on the map of the rows alone, which is public or released.
    """

    name = ""

    def price(self, fit: Fit) -> Price | None:
        curves = not fit.data.loss.quadratic and fit.settings.rows.norm == "clip"
        long = fit.budget.mu * fit.data.n_rows >= _LONG_STEPS
        return 0.0 if curves and long and len(fit.public.X) else None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        yield from ()  # no queries
        moment = _SECOND_MOMENT * fit.mapping.row_map.norm_bound**2
        return fit.spent(self, price).mapped(second_moment=moment)


@dataclass(eq=False, repr=False)
class AdditiveHead(SeenHead):
    """Base class of the additive models: their parameters, and the stage that learns the basis."""

    _additive: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "n_knots": (_N_KNOTS, "auto"),
        "scale": ("auto", DECLARED),
    }

    _takes_missing: ClassVar[bool] = True

    #: The usual number of pieces is divided by this.
    _coarseness: ClassVar[int] = 1

    # With rows of unit length, the effect of a column on an output would depend on other columns.
    rows = RowMapping(norm="clip")

    _: KW_ONLY
    noise: Noise = "float"
    n_knots: Any = "auto"
    linear: Any = "auto"
    interactions: Any = False

    def _check_parameters(self) -> Budget:
        check("epsilon", self.epsilon, POSITIVE)
        return super()._check_parameters()

    def _prepared(self, fit: Fit, data: FitData) -> EstimatorProcedure:
        """The procedure of a fit, after everything that can be refused: the basis, and then the head."""
        self._basis = None
        stages = replace(fit.stages, before=(*fit.stages.before, GentleSteps()))
        fit = replace(fit, tasks=self._measured_tasks(), stages=stages)
        linear = self._linear_columns(fit.data.n_features)
        automatic = isinstance(self.interactions, str) and self.interactions == "auto"
        self._pairs = () if automatic else self._pairs_of(fit.data.n_features)
        mu, n_rows = fit.budget.mu, fit.data.n_rows
        few_rows = fit.data.loss.quadratic and mu * n_rows < _FEWEST_NUMBERS
        if few_rows and self.n_knots == "auto":
            return self._curved(self._linear(fit))
        unpaired = fit
        if automatic:
            fit = self._with_chosen_pairs(fit)
        if self._pairs:
            fit = _with_fact(fit, "the pairs of columns with products (interactions)")
        curved, n_known = np.flatnonzero(~linear), len(fit.public.known)
        clear = count_error(mu, n_rows, len(curved)) <= _HARDLY_NOISY and n_known < _FEW_KNOWN
        rows_tell, rows = n_known >= ENOUGH and not clear, fit.public.known
        declared = fit.settings.rows.declared
        if declared is not None and n_known < ENOUGH and not np.isnan(declared[:, ~linear]).any():
            # Quantiles of normal distributions of the declared centres and spreads.
            center, spread = np.nan_to_num(declared)
            rows = center + spread * ndtri((np.arange(_USUAL_ROWS) + 0.5) / _USUAL_ROWS)[:, np.newaxis]
            n_known, rows_tell = len(rows), not clear
        n_knots = self.n_knots
        if n_knots == "auto":
            n_knots = pieces(mu, n_rows, n_known if rows_tell else None) // self._coarseness
            n_knots = max(n_knots, _FEWEST_PIECES)
        if rows_tell:
            named = not isinstance(self.linear, str)
            columns = public_columns(rows, n_knots, linear, standardise=named)
            source = "public rows" if rows is fit.public.known else "declared scales"
            fit = _with_fact(fit, f"the knots of the columns (from {source})")
            return self._curved(self._on_basis(fit, columns))
        if not knots_share(mu, n_rows, len(curved)):
            return self._curved(self._linear(unpaired))
        typical = np.full((2, len(linear)), np.nan) if declared is None else declared
        has_scale = linear & ~np.isnan(typical[0])
        declared_lines = {j: line(*typical[:, j].tolist()) for j in np.flatnonzero(has_scale).tolist()}
        # Columns that are named in ``linear`` may be numbers of any unit.
        named, numbers = not isinstance(self.linear, str), _encoded().numbers
        straight = linear & ~has_scale & (numbers if len(numbers) == len(linear) else True) & named
        knots = Knots(curved, n_knots, self._on_basis, np.flatnonzero(straight), declared_lines)
        return self._curved(replace(fit, stages=replace(fit.stages, before=(knots, *fit.stages.before))))

    def _curved(self, fit: Fit) -> EstimatorProcedure:
        """The procedure of a fit to a basis, or of one that learns it."""
        return self._measured(self._released(prepared(fit)))

    def _linear(self, fit: Fit) -> Fit:
        """The linear default, without curves."""
        if not fit.data.loss.quadratic:  # classifiers may scale rows to unit length
            fit = replace(fit, settings=replace(fit.settings, rows=replace(fit.settings.rows, norm="auto")))
        if not isinstance(fit.data.private.table, SparseTable):  # sparse rows have no missing values
            fit = self._on(fit, unchanged(fit.data.n_features))
        return fit

    def _on_basis(self, fit: Fit, columns: Sequence[Column]) -> Fit:
        """A fit to the basis of the columns."""
        factor = 1.0 if fit.data.loss.quadratic else _LENGTH_FACTOR
        rows = replace(fit.settings.rows, scale=False, length_factor=factor)
        comparison, *others = fit.stages.after  # the comparison returns the mean of steps, for example
        after = (comparison, Shrinkage(self._shrunk), *others)
        settings, stages = replace(fit.settings, rows=rows), replace(fit.stages, after=after)
        fit = replace(fit, settings=settings, stages=stages)
        return self._on(fit, Basis.of(columns, pairs=self._pairs))

    def _with_chosen_pairs(self, fit: Fit) -> Fit:
        """A fit that chooses pairs of columns before its map of the rows is learned."""
        d, encoded = fit.data.n_features, _encoded().owners
        owners = (*encoded,) if len(encoded) == d else (*range(d),)

        def basis() -> Basis:
            assert self._basis is not None
            return self._basis

        pairs = ChosenPairs(owners, basis, partial(self._on, bare=fit))
        before = fit.stages.before
        place = [each.name for each in before].index(NoisyColumnScales.name)
        return replace(fit, stages=replace(fit.stages, before=(*before[:place], pairs, *before[place:])))

    def _on(self, fit: Fit, basis: Basis, bare: Fit | None = None) -> Fit:
        """A fit to a basis of its rows, or of those of a ``bare`` fit, which are not on a basis."""
        self._basis = basis  # the basis of the attributes at a head
        bare = fit if bare is None else bare
        public, table = replace(bare.public, y=fit.public.y), bare.data.private.table.transformed(basis)

        def moved(data: Data) -> Data:
            return replace(data, private=replace(data.private, table=table))

        unlabeled = None if public.unlabeled is None else basis(public.unlabeled)
        return fit.learned(
            data=moved(fit.data),
            weights=replace(fit.weights, bare=moved(fit.weights.bare)),
            public=PublicRows(basis(public.X), public.y, unlabeled),
        )

    def _linear_columns(self, n_features: int) -> NDArray[np.bool_]:
        """Flags (d,) of the columns that are declared to have no curve."""
        flags = np.zeros(n_features, dtype=bool)
        if isinstance(self.linear, str) and self.linear == "auto":
            numbers = _encoded().numbers
            return ~numbers if len(numbers) == n_features else flags
        for each in [None] if isinstance(self.linear, str) else list(self.linear):
            if not (places := self._places(each, n_features)):
                raise ValueError(
                    f"linear={shown(self.linear)} must be 'auto', or a list of names or numbers of columns "
                    f"of X, which has {self._names(n_features)}."
                )
            flags[places] = True
        return flags

    def _pairs_of(self, n_features: int) -> Pairs:
        """Numbers of the columns of each pair in ``interactions``."""
        wanted = self.interactions
        pairs: list[tuple[int, int]] = []
        for pair in () if wanted is False else wanted if isinstance(wanted, (list, tuple)) else (wanted,):
            named = pair if isinstance(pair, (list, tuple)) and len(pair) == 2 else (None, None)
            first, second = (self._places(each, n_features) for each in named)
            both = list(product(first, second))
            if not both or {*first} & {*second} or {*both, *product(second, first)} & {*pairs}:
                raise ValueError(
                    f"interactions={shown(wanted)} must be False, 'auto', or a list of distinct pairs of "
                    f"names or numbers of two columns of X, which has {self._names(n_features)}."
                )
            pairs += both
        return tuple(pairs)

    def _names(self, n_features: int) -> str:
        names = names_of_features(self) if not _encoded() else [*_encoded()]
        return listed([*(range(n_features) if names is None else names)])

    def _places(self, column: object, n_features: int) -> list[int]:
        """Numbers of the columns of a name or number; behind an encoder, the name is that of the frame."""
        if isinstance(column, str):
            owners = _encoded().owners
            names = owners if len(owners) == n_features else names_of_features(self)
            return [place for place, name in enumerate(() if names is None else names) if name == column]
        if isinstance(column, bool) or not isinstance(column, (int, np.integer)):
            return []
        return [int(column)] if 0 <= column < n_features else []

    def _attributes_at(self, W: Array, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        return super()._attributes_at(W, replace(row_map, basis=self._basis), target_map)


def _encoded() -> TableColumns:
    """The columns of the frame, if the fit is that of a pipeline with an encoder before the head."""
    return table_of(current_pipeline.get())


def _with_fact(fit: Fit, fact: str) -> Fit:
    """A fit with one more fact that is treated as public."""
    return replace(fit, settings=replace(fit.settings, facts=(*fit.settings.facts, fact)))


@dataclass(eq=False, repr=False)
class DescendedHead(AdditiveHead):
    """Base class of the additive models that descend, with the parameters of descent."""

    _: KW_ONLY
    record_per_instance: Any = False
    device: Any = "auto"
    dtype: str = "float32"
    verbose: int = 0


@dataclass(eq=False, repr=False)
class AdditiveDPClassifier(DescendedHead, LogisticHead):
    """Differentially private additive model for classes: a curve for each numeric column.

    The logits are sums of one function of each column: a line, and a curve through a few knots. It is
    :class:`MixedDPLogisticRegression` on a basis of hat functions, so that a fit takes the same rows, and
    costs one epsilon. Knots are quantiles of the columns: of public rows if there are 10 or more, else of
    noisy histograms, for up to 10% of the squared budget. Columns with two values stay linear, and so do
    columns that noise hides. Where rows are so few that noise would blur the histograms, the model is the
    linear one.

    Missing values (NaN) have an effect of their own where public rows or the histograms show some, and else
    none. Numbers beyond the outermost knots go on along the line up to 4 spreads, infinite ones too.

    Parameters
    ----------
    epsilon, delta, neighboring, noise, classes, class_weight, logit_adjustment, max_sample_weight
        As in :class:`MixedDPLogisticRegression`.
    n_knots : int or "auto", default="auto"
        Number of pieces of a curve, 2 to 64. ``"auto"`` is 8, and 16 where the number of rows times mu is at
        least 5,000. Public rows tell a piece for each 5 of them, 3 to 8.
    linear : "auto" or list of names or numbers of columns, default="auto"
        Columns without curves, standardised and cut at 4 on both sides, but for those of 0 and 1.
        ``"auto"`` finds columns of two values, and takes all but numbers and days
        of a :class:`~skmixdp.preprocessing.TableEncoder` just before the model in a ``private_pipeline``.
        Behind it, names here and in ``interactions`` are those of the frame, for all that a column becomes.
    interactions : False, "auto" or list of pairs of names or numbers of columns, default=False
        Pairs of columns whose effects depend on each other, as public knowledge tells. Each adds up to 16
        products of coarse hats, except in a linear model. ``"auto"`` chooses up to four pairs by noisy
        scores, for 8 to 13% of the squared budget, if the number of rows times mu is at least 2,000.
    scale : "auto" or dict of column: Typical(value, distance), default="auto"
        Typical values of columns, as in :class:`MixedDPLogisticRegression`. If all columns but linear ones
        are declared, knots are quantiles of normal distributions with these, which costs nothing, unless
        histograms are clear.
    ledger, record_per_instance, device, dtype, random_state, verbose
        As in :class:`MixedDPLogisticRegression`.

    Attributes
    ----------
    knots_ : list of n_columns arrays
        Where the curve of each column may bend, in the units of the column. A column without a curve has the
        two ends of its usual values, or 0 and 1 if nothing tells them.
    effects_ : list of n_columns arrays of shape (n_knots, k)
        What each column adds to the logits at its knots, in a row of usual length. The mean of a curve is 0
        over the distribution of the column: of public rows, or of the released histograms.
    importances_ : array of shape (n_columns,)
        Standard deviation of each curve over this distribution, root mean square over the outputs. Noise
        alone gives columns without an effect some importance.
    interactions_ : list of (int, int)
        Numbers of the columns of each pair with products, none in a linear model. ``effects_`` and
        ``importances_`` leave out what products add; ``explain`` has it.
    coef_ : array of shape (k, width)
        Coefficients of the basis.
    classes_, multilabel_, intercept_, class_shares_, privacy_, n_iter_, learning_rate_, per_instance_
        As in :class:`MixedDPLogisticRegression`.
    n_features_in_, feature_names_in_
        As in :class:`MixedDPLogisticRegression`.

    Notes
    -----
    *Guarantee*: that of :class:`MixedDPLogisticRegression`. A row adds 1 to one bin of each column in each
    of up to three histograms, of sensitivity ``sqrt(n_columns)``; knots are functions of the noisy counts.
    Chosen pairs are functions of noisy scores, which a row moves by ``sqrt(n_pairs + 1) / 2`` at most.

    Examples
    --------
    >>> from sklearn.datasets import make_gaussian_quantiles
    >>> from skmixdp import AdditiveDPClassifier
    >>> X, y = make_gaussian_quantiles(n_samples=20_000, n_features=3, n_classes=2, random_state=0)
    >>> clf = AdditiveDPClassifier(classes=[0, 1]).fit(X[:15_000], y[:15_000])
    >>> bool(clf.score(X[15_000:], y[15_000:]) > 0.85)
    True
    """

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {**LogisticHead._allowed, **AdditiveHead._additive}
    _saved: ClassVar[tuple[str, ...]] = (*LogisticHead._saved, "_noise")


@dataclass(eq=False, repr=False)
class AdditiveDPRegressor(DescendedHead, RidgeHead):
    """Differentially private additive model for numbers: a curve for each numeric column.

    It is to :class:`MixedDPRidge` what :class:`AdditiveDPClassifier` is to logistic regression. Where the
    number of rows times mu is below 1,000, it is :class:`MixedDPRidge` itself, unless ``n_knots`` is given.

    Parameters
    ----------
    epsilon, delta, neighboring, noise, target_center, target_scale, max_sample_weight
        As in :class:`MixedDPRidge`.
    n_knots, linear, interactions, scale
        As in :class:`AdditiveDPClassifier`.
    ledger, record_per_instance, device, dtype, random_state, verbose
        As in :class:`MixedDPRidge`.

    Attributes
    ----------
    knots_, effects_, importances_, interactions_
        As in :class:`AdditiveDPClassifier`, in the units of the targets.
    coef_ : array of shape (width,) or (k, width)
        Coefficients of the basis, in the units of the targets; flat if ``y`` is.
    intercept_, privacy_, n_iter_, learning_rate_, per_instance_, n_features_in_, feature_names_in_
        As in :class:`MixedDPRidge`.

    Notes
    -----
    *Guarantee*: that of :class:`MixedDPRidge`, with the histograms of :class:`AdditiveDPClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman3
    >>> from skmixdp import AdditiveDPRegressor
    >>> X, y = make_friedman3(20_000, random_state=0)
    >>> reg = AdditiveDPRegressor().fit(X[:15_000], y[:15_000])
    >>> bool(reg.score(X[15_000:], y[15_000:]) > 0.8)
    True
    """

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {**RidgeHead._allowed, **AdditiveHead._additive}
    _saved: ClassVar[tuple[str, ...]] = (*RidgeHead._saved, "_noise")
