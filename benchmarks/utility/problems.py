"""What every data set gives and every method gets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skmixdp.features import ZeroShotHead

Array = NDArray[Any]

#: Of every guarantee that has one; also the library's default.
DELTA = 1e-5

PUBLIC, ZEROS, NAMES, BOTH = "public", "zeros", "names", "names and public"

#: Where private training starts: the fit of the public rows, zero, the class names' head, and the
#: fit of the public rows anchored at that head.
STARTS = (PUBLIC, ZEROS, NAMES, BOTH)


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
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...] | None = None
    encodings: Array | None = None


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
        All labels, declared.
    init : str or ZeroShotHead
        The classifier's ``init``; "public" is its default.
    seed : int
        Of the split and of the noise.
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

    def accuracy(self, model: Any) -> float:
        """Share of the test rows that a fitted model gets right."""
        return float(np.mean(model.predict(self.X_test) == self.y_test))


def make_problem(rows: Rows, shots: int, seed: int, start: str = PUBLIC) -> Problem:
    """The first ``shots`` rows of each class of ``default_rng(seed).permutation(n)`` are public.

    Parameters
    ----------
    rows : Rows
        The data set.
    shots : int
        Public rows of each class; 0 leaves all rows private.
    seed : int
        Of the permutation.
    start : str
        One of ``STARTS``.

    Raises
    ------
    ValueError
        If ``start`` is unknown, or needs class names where there are none.
    """
    classes = np.unique(rows.y)
    order = np.random.default_rng(seed).permutation(len(rows.X))
    public = np.concatenate([order[rows.y[order] == label][:shots] for label in classes])
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
    )


def _init(rows: Rows, start: str) -> Any:
    if start not in STARTS:
        raise ValueError(f"starts holds {start!r}; name some of {', '.join(map(repr, STARTS))}.")
    if start in (PUBLIC, ZEROS):
        return start
    if rows.names is None:
        raise ValueError(f"starts holds {start!r} for data without class names; leave it out.")
    return ZeroShotHead(list(rows.names), embeddings=rows.encodings, beta="auto", few_shot=start == BOTH)
