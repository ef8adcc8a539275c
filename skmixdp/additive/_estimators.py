"""The additive models: default heads on a basis of each column."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from .._engine import Procedure
from .._fit.procedure import prepared
from .._fit.stage import Data, Fit, Price, PublicRows, Stage
from .._fit.stages.columns import NoisyColumnScales
from .._rows.row_map import RowMap, TargetMap
from .._rows.sparse import SparseTable
from .._utils.models import classes_of, names_of_features
from .._utils.process import own_state
from .._utils.validation import POSITIVE, Allowed, Number, check, listed, shown
from ..components.protocols import StepContext
from ..estimators import RowMapping
from ..estimators._base import EstimatorProcedure, FitData
from ..estimators._callbacks import FitTasks
from ..estimators._linear import LinearHead
from ..estimators._logistic import LogisticHead
from ..estimators._outputs import head_outputs
from ..estimators._ridge import RidgeHead
from ..estimators._row_mapping import DECLARED, current_pipeline
from ..preprocessing import TableColumn
from ..preprocessing._cells import TableColumns
from ..preprocessing._table_encoder import table_of
from ..privacy.accounting.budgets import Budget
from ..privacy.accounting.events import Noise
from ._basis import Basis, Column, Pairs, unchanged
from ._effects import Effects
from ._knots import ENOUGH, Knots, count_error, knots_share, line, public_columns
from ._pairs import ChosenPairs
from ._parts import Part

Array = NDArray[Any]

_N_KNOTS = Number("a whole number from 2 to 64", low=2, high=64, closed="both", whole=True)

#: Pieces of a curve by default, and where the number of rows times mu is at least the last number.
_PIECES, _MORE_PIECES, _MANY_ROWS_TIMES_MU = 8, 16, 5_000
#: With public rows, there is one piece for each such number of them, and at least this number of pieces.
_ROWS_OF_PIECE, _FEWEST_PIECES = 5, 3

#: Fewest rows times mu for curves of a regression. With fewer, the noise in them costs more than they gain.
_FEWEST_ROWS_TIMES_MU = 1_000

#: Noise in a count, as a fraction of the rows, up to which private rows determine knots better than public
#: rows that are fewer than the second number.
_HARDLY_NOISY, _FEW_KNOWN = 0.0025, 200

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
    """Shorter steps of curves of classes that start from public rows, by the map of the rows alone; free.

    A few public rows, equally many of each class, tell less than half of the second moment of hats in private
    ones. Steps of that size swing about the optimum, and predictions are too sure.
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


@dataclass(repr=False)
class _MeasuredTasks(FitTasks):
    """The tasks of a fit, which also add up its steps and their noise, and keep the last head."""

    def __call__(self, ctx: StepContext, W: Array) -> bool:
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

    shrunk: Callable[[Fit], Array]

    name = ""

    def price(self, fit: Fit) -> Price | None:
        return 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        yield from ()  # no queries
        assert fit.head is not None
        return fit.spent(self, price, head=replace(fit.head, W=self.shrunk(fit)))


@dataclass(eq=False, repr=False)
class AdditiveHead(LinearHead):
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
        self._basis: Basis | None = None
        self._steps: tuple[float, float | Array, float, Array] | None = None
        stages = replace(fit.stages, before=(*fit.stages.before, GentleSteps()))
        fit = replace(fit, tasks=_MeasuredTasks(self, self._attributes_at), stages=stages)
        linear = self._linear_columns(fit.data.n_features)
        automatic = isinstance(self.interactions, str) and self.interactions == "auto"
        self._pairs = () if automatic else self._pairs_of(fit.data.n_features)
        mu, n_rows = fit.budget.mu, fit.data.n_rows
        few_rows = fit.data.loss.quadratic and mu * n_rows < _FEWEST_ROWS_TIMES_MU
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

    # -- what is shown of each column ------------------------------------------------------

    def _attributes_at(self, W: Array, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        noise = self._noise_of(W)
        if target_map is not None:
            noise[: len(W)] *= target_map.scale
        row_map = replace(row_map, basis=self._basis)
        return super()._attributes_at(W, row_map, target_map) | {"_noise": noise}

    def _noise_of(self, W: Array) -> Array:
        """What is known of the noise of a head (k, d_in); see :class:`Effects`."""
        assert self._steps is not None
        total_step, variance, clip, last = self._steps
        length = float(np.vdot(last, last))
        factor = abs(float(np.vdot(W, last))) / length if length > 0 else 1.0
        return np.array([*(np.sqrt(variance) * factor * np.ones(len(W))), total_step, factor or 1.0, clip])

    def _shrunk(self, fit: Fit) -> Array:
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
    def knots_(self) -> list[Array]:
        """Knots of each column."""
        return [each.copy() for each in self._effects.usual().knots]

    @property
    def effects_(self) -> list[Array]:
        """The effect of each column at its knots, (n_knots, k)."""
        effects = self._effects.usual()
        return [effects.curve(j, knots) for j, knots in enumerate(effects.knots)]

    @property
    def importances_(self) -> Array:
        """The standard deviation of each effect over the released distribution, (n_columns,)."""
        effects = self._effects.usual()
        return np.array([effects.importance(j) for j in range(self.n_features_in_)])

    @own_state()
    def explain(self, X: object) -> Array:
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
