"""What every data set gives and every method gets."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics import r2_score, roc_auc_score

from skmixdp.features import ZeroShotHead

Array = NDArray[Any]

#: Of every guarantee that has one; also the library's default.
DELTA = 1e-5

PUBLIC, ZEROS, NAMES, BOTH = "public", "zeros", "names", "names and public"

#: Where private training starts: the fit of the public rows, zero, the class names' head, and the
#: fit of the public rows anchored at that head.
STARTS = (PUBLIC, ZEROS, NAMES, BOTH)


@dataclass(frozen=True)
class Measures:
    """How good predictions are. NaN where a measure does not apply.

    Attributes
    ----------
    accuracy : float
        Share of the test rows that are right, where these have the shares of the classes that are expected.
    balanced_accuracy : float
        Mean of that share over the classes.
    r2 : float
        Share of the targets' variance that is explained; regression alone has it.
    log_loss : float
        Mean of minus the logarithm of the probability of a row's own class.
    calibration_error : float
        Mean difference between the probability of the predicted class and how often it is right, over 15
        bins of that probability (expected calibration error).
    auc : float
        Area under the ROC curve; two classes alone have it.
    """

    accuracy: float = math.nan
    balanced_accuracy: float = math.nan
    r2: float = math.nan
    log_loss: float = math.nan
    calibration_error: float = math.nan
    auc: float = math.nan


#: Columns of the results that hold them.
MEASURES = ("accuracy", "balanced_accuracy", "r2", "log_loss", "calibration_error", "auc")

#: Bins of the calibration error, and the smallest probability that the log-loss takes.
_BINS, _LEAST = 15, 1e-12


@dataclass(frozen=True)
class Rows:
    """A data set, before anybody has said which training rows are public.

    Attributes
    ----------
    X, y : arrays of shape (n, n_features) and (n,)
        Training rows, float32, and their labels.
    X_test, y_test : arrays of shape (n_test, n_features) and (n_test,)
        Rows that nothing may be chosen on. They are the same for every seed; there are none where each seed
        draws its own.
    names : tuple of str or None
        Names of the classes in the order of the sorted labels, where text is a public source.
    encodings : array of shape (n_classes, n_features) or None
        Those names in the space of the rows.
    bounds : (float, float) or None
        Declared bounds of the targets of a regression; None for labels.
    shares : array of shape (n_classes,) or None
        Shares of the classes for which the accuracy is reported; None are those of the test rows.
    n_test : int
        Rows that each seed draws from the training rows for its test; 0 where the test rows are given.
    texts : tuple of tuples of int
        Columns of 0 and 1 that are the categories of one text each.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...] | None = None
    encodings: Array | None = None
    bounds: tuple[float, float] | None = None
    shares: Array | None = None
    n_test: int = 0
    texts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Problem:
    """Rows of one split, and where training starts.

    Attributes
    ----------
    X, y : arrays of shape (n, n_features) and (n,)
        Private rows and labels.
    X_pub, y_pub : arrays of shape (n_pub, n_features) and (n_pub,)
        Public rows and labels; none where there are no shots.
    X_test, y_test : arrays
        Rows and labels for the score that is reported.
    classes : array of shape (n_classes,)
        All labels, declared; empty for a regression.
    init : str or ZeroShotHead
        The classifier's ``init``; "public" is its default.
    seed : int
        Of the split and of the noise.
    bounds : (float, float) or None
        Declared bounds of the targets of a regression; None for labels.
    shares : array of shape (n_classes,) or None
        Shares of the classes for which the accuracy is reported; None are those of the test rows.
    longest : float or None
        Where rows are centred already, the length to which peers shorten them. None is for peers that centre
        rows by the public ones and scale each to unit length.
    texts : tuple of tuples of int
        Columns of 0 and 1 that are the categories of one text each.
    """

    X: Array
    y: Array
    X_pub: Array
    y_pub: Array
    X_test: Array
    y_test: Array
    classes: Array
    init: Any
    seed: int
    bounds: tuple[float, float] | None = None
    shares: Array | None = None
    longest: float | None = None
    texts: tuple[tuple[int, ...], ...] = ()

    def measures(self, model: Any) -> Measures:
        """How good a fitted model is on the test rows."""
        proba = model.predict_proba(self.X_test) if hasattr(model, "predict_proba") else None
        return self.measures_of(model.predict(self.X_test), proba)

    def measures_of(self, predicted: Array, proba: Array | None = None) -> Measures:
        """How good predictions for the test rows are, and probabilities of shape (n_test, n_classes)."""
        if self.bounds is not None:
            return Measures(r2=float(r2_score(self.y_test, predicted)))
        right = predicted == self.y_test
        # A small table's test rows may lack a class.
        present = np.isin(self.classes, self.y_test)
        recalls = np.array([right[self.y_test == label].mean() for label in self.classes[present]])
        accuracy = right.mean() if self.shares is None else self.shares @ recalls
        balanced = float(recalls.mean())
        if proba is None:
            return Measures(float(accuracy), balanced)
        y = np.searchsorted(self.classes, self.y_test)
        log_loss = -np.log(np.maximum(proba[np.arange(len(y)), y], _LEAST)).mean()
        both = len(self.classes) == 2 and present.all()
        auc = float(roc_auc_score(y, proba[:, 1])) if both else math.nan
        error = calibration_error(proba.max(axis=1), right)
        return Measures(float(accuracy), balanced, math.nan, float(log_loss), error, auc)

    def measures_of_logits(self, logits: Array) -> Measures:
        """How good the logits of the test rows are, of shape (n_test, n_classes)."""
        return self.measures_of(self.classes[logits.argmax(axis=1)], softmax(logits, axis=1))


def calibration_error(confidence: Array, right: Array) -> float:
    """Mean distance over bins of how sure predictions are and how often they are right."""
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    excess = np.bincount(bins, confidence - right, minlength=_BINS)
    return float(np.abs(excess).sum() / len(right))


def make_problem(rows: Rows, shots: int, seed: int, start: str = PUBLIC) -> Problem:
    """The first ``shots`` rows of each class of ``default_rng(seed).permutation(n)`` are public.

    Where each seed draws its own test rows, these are the permutation's first ones, and the public rows are
    among the others.

    Parameters
    ----------
    rows : Rows
        The data set.
    shots : int
        Public rows of each class, or public rows of a regression; 0 leaves all rows private.
    seed : int
        Of the permutation.
    start : str
        One of ``STARTS``.

    Raises
    ------
    ValueError
        If ``start`` is unknown, or needs class names where there are none.
    """
    order = np.random.default_rng(seed).permutation(len(rows.X))
    test, order = order[: rows.n_test], order[rows.n_test :]
    X_test, y_test = (rows.X[test], rows.y[test]) if rows.n_test else (rows.X_test, rows.y_test)
    if rows.bounds is None:
        classes = np.unique(rows.y)
        public = np.concatenate([order[rows.y[order] == label][:shots] for label in classes])
    else:
        classes, public = np.empty(0), order[:shots]
    private = order[~np.isin(order, public)]
    return Problem(
        rows.X[private],
        rows.y[private],
        rows.X[public],
        rows.y[public],
        X_test,
        y_test,
        classes,
        _init(rows, start),
        seed,
        rows.bounds,
        rows.shares,
        texts=rows.texts,
    )


def _init(rows: Rows, start: str) -> Any:
    if start not in STARTS:
        raise ValueError(f"starts holds {start!r}; name some of {', '.join(map(repr, STARTS))}.")
    if start in (PUBLIC, ZEROS):
        return start
    if rows.names is None:
        raise ValueError(f"starts holds {start!r} for data without class names; leave it out.")
    return ZeroShotHead(list(rows.names), embeddings=rows.encodings, beta="auto", few_shot=start == BOTH)
