"""Rates of counts: a Poisson regression with exposures, for predictions."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_is_fitted

from .._engine import Procedure, RowsKey
from .._fit.procedure import procedure
from .._fit.stage import Fit, Head, Order, Price, Stage
from .._fit.stages.columns import MOST_SPENT, columns_share, noisy_columns
from .._fit.stages.labels import MeanWeight, ScaleOfWeights
from .._fit.stages.mapping import unmapped
from .._linear.losses import SquaredLoss
from .._rows.row_map import UNCHANGED, RowMap, TargetMap
from .._rows.scaling import Columns
from .._rows.table import check_counts, check_exposure, is_dask, labels_of
from .._utils.process import warn
from .._utils.validation import POSITIVE, Allowed, check
from ..estimators import RowMapping
from ..estimators._base import EstimatorProcedure, FitData, fit_one
from ..estimators._linear import LinearHead
from ..estimators._outputs import lazy_result
from ..estimators._private_score import PrivateDevianceMixin
from ..estimators._row_mapping import DECLARED
from ..privacy.accounting.budgets import Budget
from ..privacy.accounting.events import Noise
from ._encoded import OF_RANGE
from ._estimating import ENOUGH, Design, Regression, public_scales
from ._generalized import N_STEPS, poisson_steps
from ._outcomes import exposures_of

Array = NDArray[Any]


#: Standardised columns are cut at this: effects seldom go on as exponentials in long tails.
CUT = 2.5


class CountColumns(Stage):
    """Centre and spread of columns: declared, of public rows, or by noisy histograms of all others."""

    name = "columns"
    limits = (0.0, 1.0)

    def price(self, fit: Fit) -> Price | None:
        if fit.mapping.moments is not None:
            return None  # rows are on a basis
        unknown = np.isnan(known_columns(fit)[1])
        return MOST_SPENT * columns_share(fit.budget.mu, fit.data.n_rows, int(unknown.sum()))

    def rows(self, fit: Fit) -> RowsKey:
        return fit.data.private.mapped(unmapped(fit.data.n_features))

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        center, spread = known_columns(fit)
        unknown = np.flatnonzero(np.isnan(spread))
        if price:
            usual = price / MOST_SPENT
            multiplier, d = fit.budget.multiplier(usual), fit.data.n_features
            # In a part of all rows, few rows that differ from the others would be lost.
            histograms = noisy_columns(fit.learner, d, multiplier, wanted=unknown, thins=False)
            noisy = yield from fit.ask(histograms, unmapped(d))
            center[unknown] = noisy.center[unknown]
            spread[unknown] = np.where(noisy.unclear, 0.0, noisy.spread)[unknown]
            price = usual * noisy.spent
        elif len(unknown):  # they keep their units
            center[unknown], spread[unknown] = 0.0, 1.0
        shown = spread > 0
        columns = Columns(np.where(shown, center, 0.0), 1 / np.where(shown, spread, 1.0), CUT)
        row_map = RowMap(None, False, None, columns=columns)
        # Columns that noise hides have no moment.
        return fit.spent(self, price).mapped(row_map=row_map, columns=columns, moments=shown.astype(float))


def known_columns(fit: Fit) -> Array:
    """Centres and spreads (2, n_features) from public rows or declarations; NaN where neither tells."""
    rows, d = fit.settings.rows, fit.data.n_features
    columns = np.full((2, d), np.nan)
    if rows.kinds is not None and len(rows.kinds.numbers) == d:
        columns[:, ~rows.kinds.numbers] = np.array(OF_RANGE)[:, np.newaxis]
    if len(fit.public.X) >= ENOUGH:
        for j, pair in public_scales(fit.public.X).items():
            columns[:, j] = pair
    return columns if rows.declared is None else np.where(np.isnan(rows.declared), columns, rows.declared)


class CountSteps(Stage):
    """Noisy Newton steps, and the level of the predictions, for what is left of the budget."""

    name = "training"
    limits = (0.0, 1.0)

    def price(self, fit: Fit) -> Price | None:
        return fit.share_left

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        d, moments = fit.data.n_features, fit.mapping.moments
        assert moments is not None
        shown = np.flatnonzero(moments)
        weighted = fit.data.private.y.shape[1] > fit.weights.bare.loss.n_outputs
        # Rows are standardised by the map, and weights are relative to the largest, so neither is done again.
        square = 1 + float(moments.sum())
        design = Design(shown, np.zeros(len(shown)), np.ones(len(shown)), 1.0 if weighted else None, square)
        labels = fit.public.y
        if weighted:
            labels = np.column_stack([labels, np.full(len(labels), fit.weights.mean)])
        public = design.rows(fit.mapping.row_map(fit.public.X, np.float64), labels)
        regression = Regression(fit.learner, d, fit.budget.multiplier(price), design, public)
        steps = poisson_steps(regression, robust=False, predicts=True)
        estimate = yield from fit.ask(steps, fit.mapping.row_map)
        W = np.zeros((1, d + 1))
        W[0, np.append(shown, d)] = np.roll(estimate.values, -1)
        noise = np.zeros((d, d))
        noise[np.ix_(shown, shown)] = estimate.noise[1:, 1:]
        return replace(fit.spent(self, price), head=Head(W, noise, N_STEPS))


def warn_of_units(fit: Fit) -> None:
    """Warn of columns that keep their units, since noise would hide their spread; public facts tell it."""
    if np.isnan(known_columns(fit)[1]).any() and not _COLUMNS.price(fit):
        warn(
            "noise hides the spread of the columns, so they keep their units; pass "
            "scale={column: Typical(value, distance)}, a larger epsilon, or more rows."
        )


_COLUMNS = CountColumns()

#: The words of scikit-learn for such counts.
_COLUMN = "A column-vector y was passed when a 1d array was expected; pass y.ravel()."

#: The stages of a fit, in the order of its report.
_STAGES = Order(before=(ScaleOfWeights(), MeanWeight(), _COLUMNS), training=CountSteps(), after=())


@dataclass(eq=False, repr=False)
class MixedDPPoissonRegressor(RegressorMixin, PrivateDevianceMixin, LinearHead):  # type: ignore[misc]
    """Differentially private Poisson regression: the log of a rate of counts is linear in the columns.

    ``X, y`` are the private rows and their counts, ``exposure`` the time or number at risk behind each count.
    Rates are per unit of exposure. Counts may vary more than Poisson's, as claims and visits do. Public rows
    ``X_pub, y_pub`` are a known part of the same regression. Residuals are cut where a noisy histogram shows
    hardly any, so that a few large counts add little noise. The slopes lose what noise explains of them, and
    the mean of all predictions is that of the counts. Effects with intervals come from
    :func:`~skmixdp.inference.private_inference` with ``family="poisson"``.

    Parameters
    ----------
    epsilon, delta : float, default=1.0 and 1e-5
        The budget of all releases together. Choose delta well below 1/n.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    scale : "auto" or dict of column: Typical(value, distance), default="auto"
        Typical values of columns, as in :class:`~skmixdp.MixedDPLogisticRegression`. Noisy histograms tell
        those of others, unless there are thirty public rows or more.
    max_sample_weight : float or "auto", default="auto"
        The ``sample_weight`` that counts as 1, as in :class:`~skmixdp.MixedDPLogisticRegression`.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` adds discrete Gaussian noise to exact sums; see :doc:`/guarantee`. It needs
        ``skmixdp[discrete]``, and dense rows without ``groups``.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``. It is charged before anything is released.
    random_state : None, int or RandomState, default=None
        None is private. A seed makes the result reproducible and NOT private.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients of the log of the rate. They apply to the centred and scaled row; 0 for columns that
        noise hides.
    intercept_ : float
        The log of the rate in a row at the centre.
    privacy_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`~skmixdp.MixedDPLogisticRegression`.

    Notes
    -----
    *Guarantee*: the fitted model is (epsilon, delta)-differentially private in the rows of ``X``, ``y`` and
    ``exposure``, or in the persons of ``groups``. All releases are full-batch Gaussian releases that share
    one budget. A row x of d standardised columns and a constant has weight ``v = min(1, (d + 1) / |x|^2)``.
    It adds a score ``v clip(y - e mu, -c, c) x`` of length at most ``sqrt(d + 1) c``, and a curvature of norm
    at most ``(d + 1) m``. It adds 1 to histograms of columns, counts, exposures and residuals, from which the
    cuts c and m follow. With a ``sample_weight`` w, all of that is multiplied by ``min(1, w / w_max)``.

    References
    ----------
    M. Avella-Medina, C. Bradshaw and P.-L. Loh (2023). Differentially private inference via noisy
    optimization. Annals of Statistics 51(5), 2067-2092.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp import MixedDPPoissonRegressor
    >>> from sklearn.datasets import make_regression
    >>> X, _ = make_regression(20_000, 3, random_state=0)
    >>> years = np.linspace(0.1, 2, 20_000)
    >>> claims = np.floor(years * np.exp(0.5 * X[:, 0] - 1) + np.arange(20_000) * 0.618 % 1)
    >>> reg = MixedDPPoissonRegressor(epsilon=1.0).fit(X, claims, exposure=years)
    >>> bool(abs(reg.predict(X, exposure=years).mean() / claims.mean() - 1) < 0.05)
    True
    """

    _saved: ClassVar[tuple[str, ...]] = (*LinearHead._saved, "_target_map", "_flat")

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {**LinearHead._allowed, "scale": ("auto", DECLARED)}

    # Exposures are routed by default, like groups.
    __metadata_request__fit: ClassVar = {"exposure": True, "exposure_pub": True}

    rows = RowMapping(whiten=False, geometry=False, norm="clip")
    init, device, dtype = "zeros", "cpu", "float64"

    _: KW_ONLY
    noise: Noise = "float"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        # Scikit-learn checks scores on a few hundred rows, where noise makes them poor.
        tags.regressor_tags.poor_score = True
        return tags

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        *,
        exposure: object = None,
        exposure_pub: object = None,
        sample_weight: object = None,
        groups: object = None,
        **unsupported: object,
    ) -> "MixedDPPoissonRegressor":
        """Fit the model to private rows and, if there are any, public rows.

        Parameters
        ----------
        X
            PRIVATE rows, as for :meth:`MixedDPLogisticRegression.fit`.
        y : array-like of shape (n_samples,) or None
            Counts of the private rows. If None, the targets in the files of ``X`` are used.
        X_pub, y_pub
            Public rows and their counts, as for :meth:`MixedDPLogisticRegression.fit`.
        exposure : array-like of shape (n_samples,) or None, default=None
            The positive time or number at risk behind each count. PRIVATE. None is 1 for each row.
        exposure_pub : array-like of shape (n_pub,) or None, default=None
            Exposures of the public rows in the same units; required where both have exposures.
        sample_weight, groups
            As for :meth:`MixedDPLogisticRegression.fit`. A weight counts a row several times, and an exposure
            says how many events to expect in it.

        Returns
        -------
        self : MixedDPPoissonRegressor
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn.
        BudgetExceededError
            If the ledger does not allow the fit; nothing is released or charged.
        """
        data = FitData(
            X, y, X_pub, y_pub, sample_weight, groups, exposure=exposure, exposure_pub=exposure_pub
        )
        fit_one(self, data, unsupported)
        return self

    def _check_parameters(self) -> Budget:
        check("epsilon", self.epsilon, POSITIVE)
        return super()._check_parameters()

    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        rows = self._check_rows(data, check_counts)
        if np.asarray(labels_of(data.X, data.y)).ndim == 2:
            warn(_COLUMN, DataConversionWarning)
        counts_pub = np.empty(0) if rows.y_pub is None else rows.y_pub
        of_rows = data.exposure, data.exposure_pub, "poisson", len(rows.y), len(rows.X_pub)
        exposures, exposures_pub = exposures_of(*of_rows)
        # Counts and exposures are two numbers of each row, as two targets of a regression are.
        rows.y = np.column_stack([rows.y, exposures])
        rows.y_pub = np.column_stack([counts_pub, exposures_pub])
        fact = "that counts are not negative, and exposures positive"
        fit = self._fit_of(rows, SquaredLoss(2), budget, data, fact)
        return self._prepared(replace(fit, stages=_STAGES), data)

    def _prepared(self, fit: Fit, data: FitData) -> EstimatorProcedure:
        warn_of_units(fit)
        return self._released(fit)

    def _released(self, fit: Fit) -> EstimatorProcedure:
        if fit.weights.sample_weight is not None:
            fit = replace(fit, data=fit.weights.applied(None))
        transaction, private = fit.transaction, fit.data.private
        keys = (stage.rows(fit) for _, stage, _ in fit.priced(fit.stages.all))
        transaction.rows = next((rows for rows in keys if rows is not None), private.mapped(UNCHANGED))
        transaction.event, transaction.n_units = fit.budget.whole, fit.data.n_rows
        transaction.unit = private.table.unit
        transaction.public = self, fit.public.X, fit.public.y
        fit = yield from procedure(fit)
        report = transaction.report(fit.settings.facts, n_public=len(fit.public.X), shares=fit.shares)
        return self._fitted(fit) | {"learning_rate_": 1.0, "n_iter_": N_STEPS, "privacy_": report}

    def _fitted(self, fit: Fit) -> dict[str, Any]:
        """The attributes of a trained head."""
        assert fit.head is not None
        return self._attributes_at(fit.head.W, fit.mapping.row_map, None)

    def _attributes_at(self, W: Array, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        return {
            "coef_": W[0, :-1].copy(),
            "intercept_": float(W[0, -1]),
            "_row_map": row_map,
            "_target_map": TargetMap(np.zeros(1), np.ones(1)),
            "_flat": True,
        }

    def predict(self, X: object, exposure: object = None) -> Any:
        """Predicted counts of each row.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            Rows. For a Dask array, the result is a lazy Dask array.
        exposure : array-like of shape (n_samples,) or None, default=None
            Exposures of the rows. None is 1 for each row, so that the result are rates.

        Returns
        -------
        array of shape (n_samples,)
            Expected counts, which are positive.
        """
        check_is_fitted(self)
        if is_dask(X):
            rates = lazy_result(self, "predict", X, None, float)
            return rates if exposure is None else rates * exposure
        rates = np.exp(self._outputs(X))
        return rates * check_exposure(exposure, "exposure", len(rates), "X")

    def score(self, X: object, y: object, sample_weight: object = None, exposure: object = None) -> float:
        """D², the fraction of the Poisson deviance of the rates that the model explains, on PUBLIC rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows whose score may be published.
        y : array-like of shape (n_samples,)
            Their counts.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.
        exposure : array-like of shape (n_samples,) or None, default=None
            Exposures of the rows. A constant rate scores 0.

        Returns
        -------
        float
            At most 1; negative if a constant rate is better.
        """
        rates = np.asarray(self.predict(X))
        e = weights = check_exposure(exposure, "exposure", len(rates), "X")
        if sample_weight is not None:
            weights = e * np.asarray(sample_weight, np.float64)
        return float(d2_tweedie_score(np.asarray(y) / e, rates, sample_weight=weights, power=1))
