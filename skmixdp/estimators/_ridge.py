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
from ..algorithms import BY_NAME, AdaMix, Algorithm
from ..privacy import LedgerDataset
from ._checks import check_target_map, check_targets
from ._linear import LinearHead, PreparedHead
from ._rows import given_labels, is_dask, lazy_result, passed

Array = NDArray[Any]


class MixedDPRidge(RegressorMixin, LinearHead):  # type: ignore[misc]
    """Least squares, differentially private in its private rows.

    ``X, y`` are the private rows. Public rows ``X_pub, y_pub`` make it much more accurate, and tell the
    scale of the targets. The objective is half the mean squared error of all rows, on features centred by
    the public mean and scaled to unit length and on targets of unit scale. A clipped gradient of squared
    loss is that of Huber's loss: targets far from their prediction count no more than the clip.

    Parameters
    ----------
    algorithm : str or object, default="auto"
        "adamix", "noisy-gd", "coupling", "pda-dpmd", "dope-sgd", "gep" or "modelmix", which stand for their
        defaults, or an object from :mod:`skmixdp.algorithms`. "auto" stands for "adamix".
    epsilon : float or None, default=1.0
        Privacy budget of one fit. None spends what ``noise_multiplier`` and ``n_steps`` cost.
    delta : float, default=1e-5
        The guarantee's delta, well below 1/n.
    n_steps : int or None, default=None
        Number of steps; None leaves it to the algorithm's rule.
    noise_multiplier : float or None, default=None
        Noise standard deviation over sensitivity. With ``epsilon``, it sets the number of
        steps (rounded down; the remainder of the budget then lowers the noise).
    learning_rate : float or "auto", default="auto"
        Step size for the mean objective; ``"auto"`` follows from public quantities.
    l2 : float or "auto", default="auto"
        Strength of ``l2 / 2 |W - center|^2`` in the mean objective on targets of unit scale;
        ``"auto"`` is 0 except for decaying steps, which need it.
    public_l2 : float or "auto", default="auto"
        Strength of the public warm start's L2 penalty, in the mean public objective;
        ``"auto"`` is 0.2 / n_pub for rows of unit length.
    target_center, target_scale : float, array of shape (k,) or None, default=None
        Where targets lie and how far they spread, in their own units: the fit works on
        ``(y - target_center) / target_scale``. None takes the mean and the standard deviation
        of ``y_pub`` (scale 1 where they are constant); without public rows 0 and 1, with a
        warning unless a scale is declared. With ``fit_intercept=False`` nothing is subtracted
        and no centre may be declared.
    fit_intercept : bool, default=True
        Whether to add a constant column after centring and scaling.
    center : bool, default=True
        Subtract the mean of the public rows (nothing without public rows).
    whiten : bool or "auto", default="auto"
        Shorten, after centring, the directions in which public rows differ most. ``"auto"`` is False.
    normalize : bool, default=True
        Divide each row by its L2 norm.
    batch_size : int or None, default=None
        Expected number of private rows in a step, each drawn independently (Poisson
        sampling); None takes all rows in every step, which is accounted for exactly and is
        better for most heads.
    init : {"public", "zeros"} or array of shape (k, n_features) or (k, n_features + 1)
        Start: the public fit, the target's centre (``"zeros"``, or no public rows), or given
        coefficients with or without intercepts, in the targets' units. A flat array will do
        for a flat ``y``.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is public in both.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` computes sums without rounding and adds discrete Gaussian noise on
        their grid, so that no low-order bits can be attacked; see
        :class:`MixedDPLogisticRegression`.
    ledger : LedgerDataset or None, default=None
        The data set to which the rows of ``X`` belong, such as ``PrivacyLedger(path)["patients"]``. It is
        charged after all checks and before the first release.
    device : "auto" or what torch takes for a device, default="auto"
        Where dense rows are held and multiplied; ``"auto"`` is where they are given.
    dtype : {"float32", "float64", "bfloat16"}, default="float32"
        Precision of the products with private rows; discrete noise uses float64. "bfloat16" holds
        dense rows in half the memory of float32 and adds up in float32; ``skmixdp[onednn]`` makes
        it faster too, where the processor can.
    random_state : None, int or RandomState, default=None
        None draws noise from a cryptographic generator keyed by the operating system. A seed
        makes the run reproducible and NOT private: a NotPrivateWarning and the report say so.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (k, n_features)
        Coefficients in the targets' units, acting on the centred and scaled row; flat for a
        flat ``y``.
    intercept_ : float or array of shape (k,)
        Intercepts in the targets' units.
    privacy_ : PrivacyReport
        What the fit guarantees, and under which assumptions.
    n_iter_ : int
        Number of steps taken.
    learning_rate_ : float
        Step size of the first step.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X was a data frame with string columns.

    Notes
    -----
    *Guarantee*: the fitted head is (epsilon, delta)-differentially private in the rows of
    ``X, y``, features and targets alike, however large they are. The centre and the scale of
    the targets are public: declare them from what is known beforehand, never from ``y``.
    Predictions and scores computed on private rows are releases of their own.

    Without an intercept column of its own, least squares on unit rows cannot tell a row's
    length; scale features so that their directions carry the signal.

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
        normalize: bool = True,
        batch_size: int | None = None,
        init: Any = "public",
        neighboring: str = "add_or_remove_one",
        noise: str = "float",
        ledger: LedgerDataset | None = None,
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
            normalize=normalize,
            batch_size=batch_size,
            init=init,
            neighboring=neighboring,
            noise=noise,
            ledger=ledger,
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
        self, X: Any, y: Any = None, X_pub: Any = None, y_pub: Any = None, **unsupported: Any
    ) -> "MixedDPRidge":
        """Train the head.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            PRIVATE rows; those that are not in memory are read in parts, see
            :func:`~skmixdp.datasets.open_rows`.
        y : array-like of shape (n_samples,) or (n_samples, k), or None
            Targets of the private rows; None takes those in the files.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,) or (n_pub, k), tuple of such, or None
            Targets of the public rows.

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
        self._fit(X, y, X_pub, y_pub, unsupported)
        return self

    def _prepare(
        self, budget: Budget, X: Any, y: Any, X_pub: Any, y_pub: Any, rows: tuple[str, Any] | None
    ) -> PreparedHead:
        y = given_labels(X, y)
        self._flat = np.asarray(y).ndim == 1
        table, y, public, own = self._check_rows(X, y, X_pub, y_pub, check_targets, rows)
        if public is not None and public[1].shape[1] != y.shape[1]:
            raise ValueError(
                f"y_pub has {public[1].shape[1]} targets a row and y has {y.shape[1]}; pass the same ones."
            )
        origin = self._check_target_scale(y.shape[1], None if public is None else public[1])
        if public is not None:
            public = public[0], self._target_map(public[1], np.float64)
        treated_as_public = (
            "the numbers of private rows, of features and of targets, and the features' names",
            passed(table, labels=False),
            f"centre and scale of the targets ({origin})",
        )
        y = self._target_map(y, self._products_dtype())
        loss = SquaredLoss(y.shape[1])
        return self._prepare_head(budget, loss, table, y, public, own, treated_as_public)

    def _whitens_by_default(self) -> bool:
        return False

    def _groups(self, y_pub: Array) -> Array:
        """All public rows are one group: targets form no classes."""
        return np.zeros(len(y_pub), dtype=np.intp)

    def _as_trained(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Rows and scaled targets as the fitted head saw them, for an audit to ask."""
        return self._row_map(X, np.float64), self._target_map(y.reshape(len(y), -1), np.float64)

    def _coefficients(self, W: Array) -> tuple[Any, Any]:
        coef, intercept = self._target_map.to_units(*super()._coefficients(W))
        return (coef[0], intercept[0]) if self._flat else (coef, intercept)

    def _check_target_scale(self, n_targets: int, y_pub: Array | None) -> str:
        """Fix the targets' centre and scale; for the report, where they came from."""
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
            "the scale of the targets y is unknown, so they are taken to spread by about 1; pass "
            "target_scale and target_center from what is known beforehand, or public rows.",
            UserWarning,
            stacklevel=8,
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
        """Predicted targets.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            Rows; the result for a Dask array is one too, computed when asked for.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, k)
            In the units of the targets; flat if ``y`` was.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_result(self, "predict", X, None if self.coef_.ndim == 1 else len(self.coef_), float)
        return self._outputs(X)
