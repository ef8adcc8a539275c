"""What every data set gives and every method gets."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

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
    """

    accuracy: float = math.nan
    balanced_accuracy: float = math.nan
    r2: float = math.nan


#: Columns of the results that hold them.
MEASURES = ("accuracy", "balanced_accuracy", "r2")


@dataclass(frozen=True)
class Rows:
    """A data set, before anybody has said which training rows are public.

    Attributes
    ----------
    X, y : arrays of shape (n, n_features) and (n,)
        Training rows, float32, and their labels.
    X_test, y_test : arrays of shape (n_test, n_features) and (n_test,)
        Rows that nothing may be chosen on. They are the same for every seed.
    names : tuple of str or None
        Names of the classes in the order of the sorted labels, where text is a public source.
    encodings : array of shape (n_classes, n_features) or None
        Those names in the space of the rows.
    bounds : (float, float) or None
        Declared bounds of the targets of a regression; None for labels.
    shares : array of shape (n_classes,) or None
        Shares of the classes for which the accuracy is reported; None are those of the test rows.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...] | None = None
    encodings: Array | None = None
    bounds: tuple[float, float] | None = None
    shares: Array | None = None


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

    def measures(self, model: Any) -> Measures:
        """How good a fitted model is on the test rows."""
        return self.measures_of(model.predict(self.X_test))

    def measures_of(self, predicted: Array) -> Measures:
        """How good predictions for the test rows are."""
        if self.bounds is not None:
            return Measures(r2=float(r2_score(self.y_test, predicted)))
        right = predicted == self.y_test
        recalls = np.array([right[self.y_test == label].mean() for label in self.classes])
        accuracy = right.mean() if self.shares is None else self.shares @ recalls
        return Measures(float(accuracy), float(recalls.mean()))


def make_problem(rows: Rows, shots: int, seed: int, start: str = PUBLIC) -> Problem:
    """The first ``shots`` rows of each class of ``default_rng(seed).permutation(n)`` are public.

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
        rows.X_test,
        rows.y_test,
        classes,
        _init(rows, start),
        seed,
        rows.bounds,
        rows.shares,
    )


def _init(rows: Rows, start: str) -> Any:
    if start not in STARTS:
        raise ValueError(f"starts holds {start!r}; name some of {', '.join(map(repr, STARTS))}.")
    if start in (PUBLIC, ZEROS):
        return start
    if rows.names is None:
        raise ValueError(f"starts holds {start!r} for data without class names; leave it out.")
    return ZeroShotHead(list(rows.names), embeddings=rows.encodings, beta="auto", few_shot=start == BOTH)
