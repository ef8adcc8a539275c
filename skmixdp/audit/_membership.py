"""The loss-threshold membership attack."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import mannwhitneyu
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from .._utils.models import classes_of, has_several_labels
from .._utils.validation import PROBABILITY, check
from ._rows import check_length

FloatArray = NDArray[np.float64]

#: Lower bound of probabilities, whose logarithm is finite.
_LEAST_PROBABILITY = 1e-300


def losses_of(estimator: BaseEstimator, X: Any, y: object, name: str) -> FloatArray:
    """Loss (n,) of each row: cross-entropy of a classifier, squared error of a regressor."""
    targets = np.asarray(y)
    if is_regressor(estimator):
        predicted = np.asarray(estimator.predict(X), dtype=np.float64)
        check_length(targets, len(predicted), name)
        errors = predicted.reshape(len(predicted), -1) - targets.reshape(len(predicted), -1)
        return np.asarray(np.sum(errors**2, axis=1))
    if not (hasattr(estimator, "predict_proba") and classes_of(estimator) is not None):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba and is no regressor; pass a classifier that "
            "predicts probabilities, or a regressor."
        )
    probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    check_length(targets, len(probabilities), name)
    if has_several_labels(estimator):
        likelihoods = np.where(targets == 1, probabilities, 1 - probabilities)
        return np.asarray(-np.log(np.maximum(likelihoods, _LEAST_PROBABILITY)).sum(axis=1))
    positions = {label: column for column, label in enumerate(np.asarray(estimator.classes_).tolist())}
    columns = np.array([positions.get(label, -1) for label in targets.ravel().tolist()], dtype=np.intp)
    if np.any(columns < 0):
        raise ValueError(f"{name} has a label that is none of the estimator's classes_; drop such rows.")
    probability = probabilities[np.arange(len(columns)), columns]
    return np.asarray(-np.log(np.maximum(probability, _LEAST_PROBABILITY)))


_END = 1e-12


@dataclass(frozen=True)
class MembershipResult:
    """Result of a membership attack: how well a threshold on the loss detects training rows.

    Attributes
    ----------
    auc : float
        Probability that a random training row has a smaller loss than a random other row, ties
        counting half: 0.5 is guessing.
    auc_interval : tuple of float
        Confidence interval of ``auc``: Newcombe's, from the Hanley-McNeil variance.
    confidence : float
        Confidence of the interval.
    n_in, n_out : int
        Numbers of training rows and of other rows.
    """

    auc: float
    auc_interval: tuple[float, float]
    confidence: float
    n_in: int
    n_out: int

    def __str__(self) -> str:
        low, high = self.auc_interval
        return (
            f"Membership attack: AUC {self.auc:.3f}, {100 * self.confidence:g}% interval {low:.3f} to "
            f"{high:.3f} ({self.n_in} rows in, {self.n_out} out)"
        )


def membership_attack(
    estimator: BaseEstimator,
    X_in: object,
    y_in: object,
    X_out: object,
    y_out: object,
    *,
    confidence: float = 0.95,
) -> MembershipResult:
    """AUC of an attack that predicts membership in the training rows from a small loss.

    The loss is the cross-entropy of
    ``predict_proba`` for classifiers, and the squared error for regressors.

    Parameters
    ----------
    estimator : fitted classifier with ``predict_proba``, or regressor
        Any estimator in scikit-learn's style, pipelines included.
    X_in, y_in : array-like of shape (n_in, n_features), array-like of shape (n_in,) or (n_in, k)
        Rows on which it was fitted, in whole or in part: at least 2.
    X_out, y_out : array-like of shape (n_out, n_features), array-like of shape (n_out,) or (n_out, k)
        Rows of the same distribution on which it was not fitted: at least 2.
    confidence : float, default=0.95
        Confidence of the interval, in (0, 1).

    Returns
    -------
    MembershipResult
        The area under the attack's ROC curve, with its interval.

    Raises
    ------
    ValueError, TypeError
        For bad input, and for an estimator that is not fitted.

    Notes
    -----
    *Guarantee*: none. The result is computed from private rows without noise. Keep it as private as the
    rows. An AUC near 0.5 does not show that the estimator is private: this attack looks at average rows,
    while privacy protects the worst one. :func:`audit_epsilon` tests the guarantee itself.

    The interval treats both groups of rows as samples. It inverts the test with the Hanley-McNeil
    variance ``A (1 - A) (1 + N (1 - A) / (2 - A) + N A / (1 + A)) / (n_in n_out)`` where
    ``N = (n_in + n_out) / 2 - 1``, and is not degenerate at an AUC of 0 or 1.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix), Figure 1; Yeom et
    al. 2018, "Privacy Risk in Machine Learning"; Newcombe 2006, "Confidence intervals for an effect
    size measure based on the Mann-Whitney statistic, part 2", method 5.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skmixdp.audit import membership_attack
    >>> X, y = load_digits(return_X_y=True)
    >>> memory = KNeighborsClassifier(weights="distance").fit(X[:500], y[:500])
    >>> result = membership_attack(memory, X[:500], y[:500], X[500:1000], y[500:1000])
    >>> result.auc_interval[0] > 0.5
    True
    """
    check("confidence", confidence, PROBABILITY)
    check_is_fitted(estimator)
    losses = []
    for X, y, ending in ((X_in, y_in, "in"), (X_out, y_out, "out")):
        losses.append(losses_of(estimator, X, y, f"y_{ending}"))
        if len(losses[-1]) < 2:
            raise ValueError(f"X_{ending} has {len(losses[-1])} row(s) and the attack needs at least 2.")
    auc = area_under_curve(-losses[0], -losses[1])
    n_in, n_out = len(losses[0]), len(losses[1])
    return MembershipResult(auc, auc_interval(auc, n_in, n_out, confidence), float(confidence), n_in, n_out)


def area_under_curve(included: FloatArray, excluded: FloatArray) -> float:
    """Probability that an included score is larger than an excluded one, ties counting half."""
    statistic = mannwhitneyu(included, excluded, method="asymptotic").statistic
    return float(statistic / (len(included) * len(excluded)))


def auc_interval(auc: float, n_in: int, n_out: int, confidence: float) -> tuple[float, float]:
    """Newcombe's confidence interval of an area under the curve; see :func:`membership_attack`."""
    z = float(ndtri((1 + confidence) / 2))
    N = (n_in + n_out) / 2 - 1

    def excess(area: float, side: float) -> float:
        variance = area * (1 - area) * (1 + N * (1 - area) / (2 - area) + N * area / (1 + area))
        return side * (area - auc) - z * math.sqrt(max(variance, 0.0) / (n_in * n_out))

    # The ends are excluded, since the variance is 0 there and they would be roots.
    low = 0.0 if auc == 0 else float(brentq(excess, 0.0, min(auc, 1 - _END), args=(-1.0,)))
    high = 1.0 if auc == 1 else float(brentq(excess, max(auc, _END), 1.0, args=(1.0,)))
    return low, high
