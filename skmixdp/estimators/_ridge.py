"""The ridge regression."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._engine import Budget
from .._linear import SquaredLoss
from .._rows import is_dask
from ..algorithms import BY_NAME, AdaMix, Algorithm
from ..privacy import LedgerDataset
from ._checks import (
    check_sample_weight,
    check_target_map,
    check_targets,
    collect_public,
    given_labels,
    passed,
)
from ._course import course
from ._fit import FitCourse, FitData, fit_one
from ._linear import LinearHead
from ._outputs import lazy_result

Array = NDArray[Any]

#: Mean squared error of the trained head on the public rows, in variances of the public targets, beyond which
#: the fit warns. Fits of targets in the same units stayed below 0.2 on tables with 100 to 5000 private rows
#: and epsilons from 0.01 to 10; targets that only the private side had scaled or logarithmised gave 1.6 to
#: 7 at epsilon 1.
_WORST_FIT = 1.5

#: Public targets that vary less, relative to their scale, count as constant and tell nothing.
_CONSTANT = 1e-12


class MixedDPRidge(RegressorMixin, LinearHead):  # type: ignore[misc]
    """Differentially private linear least squares on private and public rows.

    ``X, y`` are the private rows. Public rows ``X_pub, y_pub`` make the model much more accurate, and give
    the scale of the targets. The objective is half the mean squared error of all rows. Features are centred
    by the public mean and bounded in length. Targets are centred and divided by their scale. Clipping the
    gradient of the squared loss gives the gradient of Huber's loss. A target far from its prediction
    therefore adds no more than the clip.

    Parameters
    ----------
    algorithm : str or object, default="auto"
        One of "auto", "adamix", "noisy-gd", "coupling", "pda-dpmd", "dope-sgd", "gep" and "modelmix",
        or an object from :mod:`skmixdp.algorithms`. A name selects the algorithm with its default settings.
        "auto" stands for "adamix".
    epsilon : float or None, default=1.0
        Privacy budget of one fit. If None, ``noise_multiplier`` and ``n_steps`` determine the epsilon.
    delta : float, default=1e-5
        The delta of the guarantee. Choose it well below 1/n.
    n_steps : int or None, default=None
        Number of steps. If None, the algorithm chooses it.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise divided by the sensitivity. If ``epsilon`` is given too, both
        determine the number of steps, rounded down. The rest of the budget then lowers the noise.
    learning_rate : float or "auto", default="auto"
        Step size for the mean objective. ``"auto"`` derives it from public quantities.
    l2 : float or "auto", default="auto"
        Strength of the penalty ``l2 / 2 |W - center|^2`` in the mean objective, for targets of unit scale.
        ``"auto"`` is 0, except for decaying steps, which need a penalty.
    public_l2 : float or "auto", default="auto"
        Strength of the L2 penalty in the mean public objective, whose minimiser is the warm start.
        ``"auto"`` is 0.2 / n_pub for rows of unit length.
    target_center, target_scale : float, array of shape (k,) or None, default=None
        Centre and scale of the targets, in their own units. The fit uses
        ``(y - target_center) / target_scale``. None takes the mean and the standard deviation of
        ``y_pub``, or scale 1 for constant targets. Without public rows, None means 0 and 1, with a
        warning unless a scale is declared. With ``fit_intercept=False``, nothing is subtracted and
        ``target_center`` must be None.
    fit_intercept : bool, default=True
        Whether to add a constant column after centring and scaling.
    center : bool, default=True
        Whether to subtract the mean of the public rows. Without public rows, nothing is subtracted.
    whiten : bool or "auto", default="auto"
        Whether to shrink, after centring, the directions in which public rows differ most. ``"auto"`` is
        False.
    geometry : bool or "auto", default="auto"
        Whether to learn the centre and the leading directions of the rows from the private rows. This takes 3
        to 10% of the squared budget (``mu**2``). Rows are scaled to unit length first. Whitening uses the
        directions. ``"auto"`` is False. True needs ``row_norm="unit"``, the full batch, and a
        budget given by ``epsilon`` alone.
    row_norm : {"unit", "clip", None}, default="clip"
        How the lengths of rows are bounded. ``"unit"`` divides each row by its L2 norm. ``"clip"`` divides
        all rows by one length, and shortens longer rows to it. Most rows then keep their relative lengths.
        The length is close to the largest of the public rows. Without public rows, it is a noisy quantile,
        for a small part of the budget. That excludes ``n_steps``, ``noise_multiplier``, ``batch_size`` and
        discrete noise. With one of these, or too few rows, rows get unit length. None leaves rows unchanged.
    scale : bool or "auto", default="auto"
        Whether to scale columns to unit spread by the public rows, if a few columns dominate. ``"auto"`` does
        so unless ``row_norm`` is None. Without public rows, columns are not scaled, and a warning says if a
        few of them dominate.
    batch_size : int or None, default=None
        Expected number of private rows in a step. Each row is drawn independently (Poisson sampling).
        If None, every step uses all rows; this is accounted for exactly and is better for most heads.
    init : {"public", "zeros"} or array of shape (k, n_features) or (k, n_features + 1)
        The head before the first step. ``"public"`` is the public fit. ``"zeros"`` predicts the centre of
        the targets, as ``"public"`` does without public rows. An array holds coefficients in the units of
        the targets, with or without intercepts; it may be flat if ``y`` is.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` computes sums without rounding and adds discrete Gaussian noise on the same grid.
        This protects against attacks on low-order bits; see :class:`MixedDPLogisticRegression`.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``, such as ``PrivacyLedger(path)["patients"]``. The fit is
        charged to it after all checks and before the first release.
    record_per_instance : bool or "picklable", default=False
        Whether to record each private row's own privacy loss, for
        :func:`~skmixdp.audit.per_instance_epsilon`. The record is itself PRIVATE. It is neither printed nor
        pickled; ``"picklable"`` allows pickling. It needs the full batch, and one number per row.
    device : "auto" or torch device, default="auto"
        The device that holds and multiplies dense rows. ``"auto"`` leaves the rows where they are.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the products with private rows; discrete noise always uses float64.
    random_state : None, int or RandomState, default=None
        If None, noise comes from a cryptographic generator that the operating system seeds. A given seed
        makes the run reproducible and NOT private: a NotPrivateWarning and the report say so.
    verbose : int, default=0
        1 shows a progress bar at once, in any output. 0 shows it on terminals after 2 seconds.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (k, n_features)
        Coefficients in the units of the targets. They apply to the centred and scaled row, and are
        flat if ``y`` is.
    intercept_ : float or array of shape (k,)
        Intercepts in the targets' units.
    privacy_ : PrivacyReport
        The guarantee of the fit and its assumptions.
    n_iter_ : int
        Number of steps taken.
    learning_rate_ : float
        Step size of the first step.
    per_instance_ : PerInstanceRecord
        Privacy loss of each private row. PRIVATE. Present only with ``record_per_instance``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X was a data frame with string columns.

    Notes
    -----
    *Guarantee*: the fitted head is (epsilon, delta)-differentially private in the rows of ``X, y``. This
    covers features and targets, however large they are. The centre and the scale of the targets are public:
    declare them from prior knowledge, never from ``y``. The ``sample_weight`` of a row may depend on that row
    alone; weights computed from all private rows leak. Predictions and scores computed on private rows are
    further releases, which this does not cover.

    With ``row_norm="unit"``, all rows have unit length, and the model cannot use their lengths.

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

    #: Shrinkage towards the public fit loses accuracy for squared loss, so "auto" is AdaMix here.
    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = {**BY_NAME, "auto": AdaMix}
    _saved: ClassVar[tuple[str, ...]] = (*LinearHead._saved, "_target_map", "_flat")

    def __init__(
        self,
        algorithm: Any = "auto",
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        n_steps: int | None = None,
        noise_multiplier: float | None = None,
        learning_rate: Any = "auto",
        l2: Any = "auto",
        public_l2: Any = "auto",
        target_center: Any = None,
        target_scale: Any = None,
        fit_intercept: bool = True,
        center: bool = True,
        whiten: Any = "auto",
        geometry: Any = "auto",
        row_norm: str | None = "clip",
        scale: Any = "auto",
        batch_size: int | None = None,
        init: Any = "public",
        neighboring: str = "add_or_remove_one",
        noise: str = "float",
        ledger: LedgerDataset | None = None,
        record_per_instance: Any = False,
        device: Any = "auto",
        dtype: str = "float32",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            algorithm,
            epsilon=epsilon,
            delta=delta,
            n_steps=n_steps,
            noise_multiplier=noise_multiplier,
            learning_rate=learning_rate,
            l2=l2,
            public_l2=public_l2,
            fit_intercept=fit_intercept,
            center=center,
            whiten=whiten,
            geometry=geometry,
            row_norm=row_norm,
            scale=scale,
            batch_size=batch_size,
            init=init,
            neighboring=neighboring,
            noise=noise,
            ledger=ledger,
            record_per_instance=record_per_instance,
            device=device,
            dtype=dtype,
            random_state=random_state,
            verbose=verbose,
        )
        self.target_center = target_center
        self.target_scale = target_scale

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_pub: Any = None,
        y_pub: Any = None,
        sample_weight: Any = None,
        **unsupported: Any,
    ) -> "MixedDPRidge":
        """Fit the model to private rows and, if there are any, public rows.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            PRIVATE rows. Rows that are not in memory are read in parts, see
            :func:`~skmixdp.datasets.open_rows`.
        y : array-like of shape (n_samples,) or (n_samples, k), or None
            Targets of the private rows. If None, the targets in the files of ``X`` are used.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,) or (n_pub, k), tuple of such, or None
            Targets of the public rows.
        sample_weight : array-like of shape (n_samples,) or None
            Non-negative weights of the private rows. They are PRIVATE, like labels. The weighted gradient of
            a row is clipped, and the sum is still divided by the number of rows, so use weights near 1.
            Public rows have weight 1. Learning the geometry ignores weights.

        Returns
        -------
        self : MixedDPRidge
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn.
        BudgetExceededError
            If the ledger does not allow the fit; nothing is released or charged.
        """
        fit_one(self, FitData(X, y, X_pub, y_pub, sample_weight), unsupported)
        self._warn_of_other_units(X_pub, y_pub)
        return self

    def _warn_of_other_units(self, X_pub: Any, y_pub: Any) -> None:
        """Warn if the trained head fits the public rows worse than a constant.

        Only the released head and public rows are looked at, so this costs no privacy.
        """
        names = getattr(self, "feature_names_in_", None)
        public = collect_public(X_pub, y_pub, names, self.n_features_in_, check_targets)
        if public is None:
            return
        # In the units of the fit, in which no square overflows.
        y_pub = self._target_map(public[1], np.float64)
        rows = self._row_map(public[0], np.float64)[:, : self.n_features_in_]
        coef = self.coef_.reshape(y_pub.shape[1], -1)
        predicted = self._target_map(rows @ coef.T + self.intercept_, np.float64)
        constant = y_pub.mean(axis=0) if self.fit_intercept else 0.0
        spread = np.mean((y_pub - constant) ** 2, axis=0)
        error = np.mean((predicted - y_pub) ** 2, axis=0)
        if np.any((error > _WORST_FIT * spread) & (spread > _CONSTANT)):
            warnings.warn(
                "the trained head fits the public rows worse than a constant would; check that y and y_pub "
                "are in the same units and were transformed alike, or give more budget, since strong noise "
                "does this too.",
                UserWarning,
                stacklevel=3,
            )

    def _course(self, budget: Budget, data: FitData) -> FitCourse:
        self._flat = np.asarray(given_labels(data.X, data.y)).ndim == 1
        table, y, X_pub, y_pub, members = self._check_rows(data, check_targets)
        if y_pub is not None and y_pub.shape[1] != y.shape[1]:
            raise ValueError(
                f"y_pub has {y_pub.shape[1]} targets per row and y has {y.shape[1]}; pass the same ones."
            )
        origin = self._check_target_scale(y.shape[1], y_pub)
        if y_pub is not None:
            y_pub = self._target_map(y_pub, np.float64)
        treated_as_public = (
            "the numbers of private rows, of features and of targets, and the features' names",
            passed(
                table,
                lengths=self.row_norm is None,
                labels=False,
                weights=data.sample_weight is not None,
            ),
            f"centre and scale of the targets ({origin})",
        )
        y = self._target_map(y, self._products_dtype())
        loss = SquaredLoss(y.shape[1])
        weights = check_sample_weight(data.sample_weight, len(y))
        rows = table, y, X_pub, y_pub, members
        labels = (*self._target_map.center.tolist(), *self._target_map.scale.tolist())
        given = self._inputs(
            budget, loss, *rows, data=data, treated_as_public=treated_as_public, labels=labels
        )
        return course(self, given if weights is None else given.weighted(weights))

    def _as_trained(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Mapped rows and scaled targets, as the fit used them; for audits."""
        return self._row_map(X, np.float64), self._target_map(y.reshape(len(y), -1), np.float64)

    def _coefficients(self, W: Array) -> tuple[Any, Any]:
        coef, intercept = self._target_map.to_units(*super()._coefficients(W))
        return (coef[0], intercept[0]) if self._flat else (coef, intercept)

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
        if self.target_scale is None and y_pub is None:
            self._warn_of_unknown_scale()
        if center is None and self.target_scale is None:
            return derived
        words = {True: "declared", False: "of the public targets" if y_pub is not None else "by default"}
        origin = "0" if not self.fit_intercept else words[center is not None]
        return f"centre {origin}, scale {words[self.target_scale is not None]}"

    def _warn_of_unknown_scale(self) -> None:
        warnings.warn(
            "the scale of the targets y is unknown, so the fit assumes a scale of 1; pass target_scale and "
            "target_center from prior knowledge, or public rows.",
            UserWarning,
            stacklevel=6,
        )

    def _given_start(self) -> Array:
        start = np.atleast_2d(super()._given_start())
        if start.shape[0] != len(self._target_map.scale):
            return start  # refused by its shape
        start = start / self._target_map.scale[:, np.newaxis]
        if start.shape[1] == self.n_features_in_ + 1:
            start[:, -1] -= self._target_map.center / self._target_map.scale
        return start

    def predict(self, X: Any) -> Any:
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
