"""The ridge regression."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._fit.stage import Labels, Price, Steps
from .._fit.stages.labels import TARGET_RELEASES, target_share, unknown_scale
from .._linear.losses import SquaredLoss
from .._rows.row_map import RowMap, TargetMap
from .._rows.table import check_columns, check_targets, is_dask, labels_of, named_columns
from .._utils.models import names_of_features
from .._utils.process import warn
from ..algorithms import BY_NAME, Algorithm
from ..algorithms.auto import AutoRegression
from ..privacy.accounting.budgets import Budget
from ._base import EstimatorProcedure, FitData, fit_one
from ._linear import LinearHead, TrainedHead
from ._outputs import lazy_result
from ._private_score import PrivateErrorMixin
from ._problem import check_target_map, check_width, collect_public

Array = NDArray[Any]

#: Mean squared error of the trained head on public rows, in variances of the public targets, above which the
#: fit warns. With targets in the same units, it stayed below 0.2 on tables with 100 to 5000 private rows and
#: epsilons from 0.01 to 10. If only private targets were scaled or logarithmised, it was 1.6 to 7 at epsilon
#: 1.
_WORST_FIT = 1.5

#: Minimum number of given steps of which some can learn the scale of the targets.
_FEWEST_STEPS = 12

#: Public targets count as constant if they vary less than this, relative to their scale.
_CONSTANT = 1e-12


def _refuse_constant(y_pub: Array) -> None:
    """Refuse public targets (n_pub, k) with a column that is constant, and so has no scale."""
    with np.errstate(over="ignore"):
        differs = np.any(np.abs(y_pub - y_pub[0]) > _CONSTANT * np.abs(y_pub[0]), axis=0)
    if not np.all(differs):
        which = "" if len(differs) == 1 else f" for target {int(differs.argmin())}"
        raise ValueError(
            f"target_scale=None takes the scale of the targets from y_pub, which is "
            f"{y_pub[0, int(differs.argmin())]:g} in all {len(y_pub)} rows{which}; pass public rows with "
            "different targets, or a target_scale from prior knowledge."
        )


@dataclass(eq=False, repr=False)
class RidgeHead(RegressorMixin, PrivateErrorMixin, LinearHead):  # type: ignore[misc]
    """Base class of the heads for numbers: linear ones, and those on a basis of each column."""

    _norm: ClassVar[str] = "clip"
    #: Shrinkage towards the public fit loses accuracy for squared loss, so "auto" is another algorithm here.
    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = BY_NAME | {"auto": AutoRegression}
    _saved: ClassVar[tuple[str, ...]] = (*LinearHead._saved, "_target_map", "_flat", "_target_names")

    _: KW_ONLY
    target_center: Any = None
    target_scale: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        *,
        sample_weight: object = None,
        groups: object = None,
        X_unlabeled: object = None,
        **unsupported: object,
    ) -> Self:
        """Fit the model to private rows and, if there are any, public rows.

        Parameters
        ----------
        X
            PRIVATE rows, as for :meth:`MixedDPLogisticRegression.fit`.
        y : array-like of shape (n_samples,) or (n_samples, k), or None
            Targets of the private rows. If None, the targets in the files of ``X`` are used.
        X_pub
            Public rows, as for :meth:`MixedDPLogisticRegression.fit`.
        y_pub : array-like of shape (n_pub,) or (n_pub, k), tuple of such, or None
            Targets of the public rows.
        sample_weight, groups, X_unlabeled
            As for :meth:`MixedDPLogisticRegression.fit`.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn.
        BudgetExceededError
            If the ledger does not allow the fit; nothing is released or charged.
        """
        fit_one(
            self, FitData(X, y, X_pub, y_pub, sample_weight, groups, X_unlabeled=X_unlabeled), unsupported
        )
        self._warn_of_other_units(X_pub, y_pub)
        return self

    def _warn_of_other_units(self, X_pub: object, y_pub: Any) -> None:
        """Warn if the trained head, which is released, fits public rows worse than a constant does."""
        if self.privacy_.n_public == 0:
            return  # no public rows, or they were left out with a warning
        names = names_of_features(self)
        finite = not self._takes_missing
        public = collect_public(X_pub, y_pub, names, self.n_features_in_, check_targets, finite=finite)
        assert public is not None
        # In the units of the fit, so that no square overflows.
        y_pub = self._target_map(public[1], np.float64)
        coef = self.coef_.reshape(y_pub.shape[1], -1)
        rows = self._row_map(public[0], np.float64)[:, : coef.shape[1]]
        predicted = self._target_map(rows @ coef.T + self.intercept_, np.float64)
        constant = y_pub.mean(axis=0) if self.fit_intercept else 0.0
        spread = np.mean((y_pub - constant) ** 2, axis=0)
        error = np.mean((predicted - y_pub) ** 2, axis=0)
        if np.any((error > _WORST_FIT * spread) & (spread > _CONSTANT)):
            warn(
                "the trained head fits the public rows worse than a constant would; check that y and y_pub "
                "are in the same units and were transformed alike, or give more budget, since strong noise "
                "does this too."
            )

    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        self._flat = np.asarray(labels_of(data.X, data.y)).ndim == 1
        rows = self._check_rows(data, check_targets)
        columns = [] if self._flat else named_columns(data.y, data.y_pub)
        self._target_names = [str(name) for name in columns[0]] if columns else None
        n_rows = rows.table.shape[0] if rows.selected is None else int(rows.selected.sum())
        n_targets = rows.y.shape[1]
        price: Price | None = None
        alone = 0.0
        if (model := self._released_start) is None:
            origin = self._check_target_scale(n_targets, rows.y_pub)
            price = self._price_of_scale(budget, n_rows, n_targets, rows.y_pub)
            if self.target_scale is None and budget.is_divisible and price is None:
                alone = target_share(budget.mu, n_rows, n_targets)
        else:
            self._target_map, origin = model._target_map, "those of the start"
            check_width(rows.y, len(self._target_map.scale), "targets", "init")
        if price is not None:
            origin = "noisy"
        else:
            if rows.y_pub is not None:
                rows.y_pub = self._target_map(rows.y_pub, np.float64)
            rows.y = self._target_map(rows.y, self._products_dtype())
        labels = Labels(
            self._target_map,
            is_scaled=price is None,
            learns_center=self.fit_intercept and self.target_center is None,
            price=price,
            price_alone=alone,
        )
        fact = f"centre and scale of the targets ({origin})"
        fit = self._fit_of(rows, SquaredLoss(n_targets), budget, data, fact)
        return self._prepared(replace(fit, labels=labels), data)

    def _training_rows(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Mapped rows and scaled targets, as the fit used them; for audits."""
        return self._row_map(X, np.float64), self._target_map(y.reshape(len(y), -1), np.float64)

    def _attributes_at(self, W: Array, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        attributes = super()._attributes_at(W, row_map, target_map)
        assert target_map is not None
        coef, intercept = target_map.to_units(attributes["coef_"], attributes["intercept_"])
        if self._flat:
            coef, intercept = coef[0], intercept[0]
        return attributes | {"coef_": coef, "intercept_": intercept, "_target_map": target_map}

    def _check_target_scale(self, n_targets: int, y_pub: Array | None) -> str:
        """Set the centre and scale of the targets, and return their origin for the report."""
        center = self.target_center
        if not self.fit_intercept:
            if center is not None:
                raise ValueError(
                    f"target_center={center!r} cannot be combined with fit_intercept=False, which adds "
                    "nothing to a prediction; leave it at None."
                )
            center = 0.0
        self._target_map = check_target_map(center, self.target_scale, n_targets, y_pub)
        derived = (
            "those of the public targets" if y_pub is not None else "0 and 1, since nothing else is known"
        )
        if self.target_scale is None and y_pub is not None and len(y_pub) > 1:
            _refuse_constant(y_pub)
        if center is None and self.target_scale is None:
            return derived
        words = {True: "declared", False: "of the public targets" if y_pub is not None else "by default"}
        origin = "0" if not self.fit_intercept else words[center is not None]
        return f"centre {origin}, scale {words[self.target_scale is not None]}"

    def _price_of_scale(
        self, budget: Budget, n_rows: int, n_targets: int, y_pub: Array | None
    ) -> Price | None:
        """What it costs to learn the scale of the targets; None if it is known, or cannot be learned."""
        if self.target_scale is not None or (y_pub is not None and len(y_pub) > 1):
            return None
        if self.batch_size is None and budget.is_divisible:
            price = target_share(budget.mu, n_rows, n_targets) or None
        else:
            # With one public row the scale is not learned, since the plan would change once it is known.
            enough = budget.n_steps is None or budget.n_steps >= _FEWEST_STEPS
            possible = enough and y_pub is None and self._chosen_algorithm().admits_releases
            price = Steps(TARGET_RELEASES) if possible else None
        if price is None:
            warn(unknown_scale("is unknown"))
        return price

    def predict(self, X: object) -> Any:
        """Predicted targets of each row.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            Rows. For a Dask array, the result is a lazy Dask array.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, k)
            In the units of the targets; flat if ``y`` was.
        """
        if is_dask(X):
            check_is_fitted(self)
            return lazy_result(self, "predict", X, None if self.coef_.ndim == 1 else len(self.coef_), float)
        return self._outputs(X)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Coefficient of determination R² of the predictions for rows with their targets.

        Of several targets, it is the mean. A data frame ``y`` of several needs the columns of the fit.
        """
        self._check_targets_named(y)
        return float(super().score(X, y, sample_weight))

    def _check_targets_named(self, y: object) -> None:
        """Refuse a frame of targets whose columns are not those of the fit."""
        if (names := vars(self).get("_target_names")) is not None:
            check_columns(y, names, "this regression has")


@dataclass(eq=False, repr=False)
class MixedDPRidge(RidgeHead, TrainedHead):
    """Differentially private linear least squares on private and public rows.

    ``X, y`` are the private rows. Public rows ``X_pub, y_pub`` make the model much more accurate, and give
    the scale of the targets. Without them, the scale is learned within the budget. The objective is half the
    mean squared error of all rows. Features are centred and scaled by public or noisy values, and bounded in
    length. Targets are centred and divided by their scale. Clipping the gradient of the squared loss gives
    the gradient of Huber's loss: a target far from its prediction adds no more than the clip. The default
    learns a clip that cuts few rows, and none as the budget grows, so that its loss is then least squares.
    With fewer than ``100 (n_features + 1) / mu`` private rows, noise is too large for that. Noisy sums of
    residuals then correct the mean and the slope of the predictions. With fewer than ``600 / mu`` rows, and
    with other algorithms, predictions of skewed targets are too low on average. ``coef_`` applies to the
    mapped rows, not to ``X``: give explainers such as SHAP the function ``predict``; those of linear models
    multiply ``coef_`` by ``X``. Effects per unit of a column, with intervals, come from
    :func:`~skmixdp.inference.private_inference`.

    The groups of parameters are those of :class:`MixedDPLogisticRegression`, and :doc:`/parameters` explains
    them.

    Parameters
    ----------
    algorithm : str or object, default="auto"
        As in :class:`MixedDPLogisticRegression`, but "auto" stands for "adamix" with a clip that follows
        noisy lengths of gradients, and with noisy checks on private rows. The first tells whether public rows
        are of use, and the last whether the trained head is better than its start.
    epsilon, delta, n_steps, noise_multiplier, neighboring, noise
        As in :class:`MixedDPLogisticRegression`.
    target_center, target_scale : float, array of shape (k,) or None, default=None
        Centre and scale of the targets in their own units; the fit uses ``(y - center) / scale``, and None is
        the mean and the standard deviation of ``y_pub``, which must not be constant. With fewer than two
        public rows, a scale of None learns both within the budget, see :doc:`/guarantee`, and the centre of a
        declared scale is 0. With ``fit_intercept=False``, ``target_center`` must be None.
    fit_intercept : bool, default=True
        Whether to add a constant column after centring and scaling.
    rows, scale, learning_rate
        As in :class:`MixedDPLogisticRegression`.
    l2 : float or "auto", default="auto"
        Strength of the penalty ``l2 / 2 |W - center|^2`` in the mean objective, for targets of unit scale.
        ``"auto"`` is 0, except for decaying steps, which need a penalty.
    public_l2, batch_size, max_sample_weight
        As in :class:`MixedDPLogisticRegression`.
    init : {"public", "zeros"}, array (k, n_features) or (k, n_features + 1), or fitted MixedDPRidge
        The head before the first step. ``"public"`` is the public fit; ``"zeros"`` predicts the centre of
        the targets, as ``"public"`` does without public rows. An array holds coefficients in the units of
        the targets, with or without intercepts; it may be flat if ``y`` is.
    device, dtype, random_state, verbose, ledger, record_per_instance
        As in :class:`MixedDPLogisticRegression`.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (k, n_features)
        Coefficients in the units of the targets. They apply to the centred and scaled row, and are
        flat if ``y`` is.
    intercept_ : float or array of shape (k,)
        Intercepts in the targets' units.
    privacy_, n_iter_, learning_rate_, per_instance_, n_features_in_, feature_names_in_
        As in :class:`MixedDPLogisticRegression`.

    Notes
    -----
    *Guarantee*: the fitted head is (epsilon, delta)-differentially private in the rows of ``X, y``. This
    covers features and targets, however large they are. The centre and the scale of the targets are released
    with noise or public: declare them from prior knowledge, never from ``y``. The ``sample_weight`` of a row
    may depend on that row alone; weights computed from all private rows leak. Predictions and scores computed
    on private rows are further releases, which this does not cover.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix).

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skmixdp import MixedDPRidge
    >>> X, y = make_regression(5000, 10, noise=20.0, random_state=0)
    >>> reg = MixedDPRidge(epsilon=1.0).fit(X[100:4000], y[100:4000], X_pub=X[:100], y_pub=y[:100])
    >>> bool(reg.score(X[4000:], y[4000:]) > 0.7)
    True
    """
