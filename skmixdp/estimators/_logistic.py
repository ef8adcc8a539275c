"""The logistic regression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Budget
from .._linear import classification_loss
from ..privacy import LedgerDataset
from ..public import PublicData
from ._checks import check_labels
from ._classifier import Classifier, encode_labels
from ._linear import LinearHead, PreparedHead
from ._private_score import PrivateScoreMixin
from ._rows import given_labels, passed

Array = NDArray[Any]


class MixedDPLogisticRegression(Classifier, PrivateScoreMixin, LinearHead):
    """Logistic regression, differentially private in its private rows.

    ``X, y`` are the private rows. A few labelled public rows ``X_pub, y_pub`` make it much more accurate.
    The objective is the mean cross-entropy of all rows (softmax for three or more classes, one output for
    two). Rows are centred by the public mean, whitened by public rows and scaled to unit length.

    Parameters
    ----------
    algorithm : str or object, default="auto"
        One of "auto", "adamix", "noisy-gd", "coupling", "pda-dpmd", "dope-sgd", "gep" and "modelmix",
        which stand for their defaults, or an object from :mod:`skmixdp.algorithms`.
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
        Strength of ``l2 / 2 |W - center|^2`` in the mean objective; ``"auto"`` is 0 except
        for decaying steps, which need it.
    public_l2 : float or "auto", default="auto"
        Strength of the public warm start's L2 penalty, in the mean public objective (which is
        also the mirror map of PDA-DPMD); ``"auto"`` is 0.2 / n_pub for rows of unit length.
    classes : array-like or None, default=None
        All class labels. None takes those of ``y_pub``; without public rows they are read
        from ``y``, which the guarantee does not cover, with a PrivacyLeakWarning.
    fit_intercept : bool, default=True
        Whether to add a constant column after centring and scaling.
    center : bool, default=True
        Subtract the mean of the public rows (nothing without public rows).
    whiten : bool or "auto", default="auto"
        Shorten, after centring, the directions in which public rows of one class differ. More of each
        row's unit length is then left for what tells classes apart. ``"auto"`` is True for
        ``algorithm="auto"`` alone.
    normalize : bool, default=True
        Divide each row by its L2 norm.
    batch_size : int or None, default=None
        Expected number of private rows in a step, each drawn independently (Poisson
        sampling); None takes all rows in every step, which is accounted for exactly and is
        better for most heads.
    init : {"public", "zeros"}, array of shape (k, n_features) or (k, n_features + 1), or object
        Start: the public fit (zeros without public rows), zeros, given coefficients with
        or without intercepts (k is the number of classes, or 1 for two), or a
        :class:`~skmixdp.features.ZeroShotHead`.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is public in both.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` computes sums without rounding and adds discrete Gaussian noise on
        their grid, so that no low-order bits can be attacked. It needs
        ``skmixdp[discrete]``, takes some ten microseconds a coefficient and step, and 5 to
        20% more noise for the same epsilon.
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
    classes_ : array of shape (n_classes,)
        Sorted class labels.
    coef_ : array of shape (k, n_features)
        Coefficients, acting on the centred, whitened and scaled row.
    intercept_ : array of shape (k,)
        Intercepts.
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
    ``X, y``, by exact accounting of full-batch Gaussian releases, or by dp-accounting's
    privacy loss distributions for sampled batches. Public rows, the number of
    private rows, that validation passed, and what else ``privacy_`` lists are not
    protected. Predictions and scores computed on private rows are releases of their own.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = MixedDPLogisticRegression(epsilon=1.0)
    >>> clf = clf.fit(X[100:1400], y[100:1400], X_pub=X[:100], y_pub=y[:100])
    >>> clf.privacy_.n_private, clf.privacy_.n_public
    (1300, 100)
    >>> bool(clf.score(X[1400:], y[1400:]) > 0.8)
    True
    """

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
        classes: Any = None,
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
        self.classes = classes

    def fit(
        self, X: Any, y: Any = None, X_pub: Any = None, y_pub: Any = None, **unsupported: Any
    ) -> "MixedDPLogisticRegression":
        """Train the head.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            PRIVATE rows; those that are not in memory are read in parts, see
            :func:`~skmixdp.datasets.open_rows`.
        y : array-like of shape (n_samples,), or None
            Labels of the private rows; None takes those in the files.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,), tuple of such, or None
            Labels of the public rows.

        Returns
        -------
        self : MixedDPLogisticRegression
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
        table, y, public, own = self._check_rows(X, y, X_pub, y_pub, check_labels, rows)
        y, y_pub, origin = self._encode(y, None if public is None else public[1])
        treated_as_public = (
            "the numbers of private rows and of features, and the features' names",
            passed(table, labels=True),
            f"the classes ({origin})",
        )
        loss = classification_loss(len(self.classes_))
        if public is not None:
            public = public[0], y_pub
        return self._prepare_head(budget, loss, table, y, public, own, treated_as_public)

    def _as_trained(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Rows and class indices as the fitted head saw them, for an audit to ask."""
        return self._row_map(X, np.float64), encode_labels(y, self.classes_, "y", private=True)

    def _start(self, data: PublicData) -> Array:
        if not callable(getattr(self.init, "start", None)):
            return super()._start(data)

        def widen(coef: Array) -> Array:
            if coef.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"init has encodings of {coef.shape[1]} features and X has {self.n_features_in_}; encode "
                    "the names by the network that the rows came from."
                )
            return self._row_map.join(coef, len(coef), self.n_features_in_)

        return np.asarray(self.init.start(self.classes_, data, widen))
