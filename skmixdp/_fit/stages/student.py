"""A student of the released head: rows without labels, labelled by it, correct it."""

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.special import softmax

from ..._engine import Procedure
from ...components.protocols import FloatArray
from ..stage import Fit, Price, Stage

#: Fewest rows without labels for each class.
_FEWEST_PER_CLASS = 10
#: Rows of more columns are reduced to this number of directions of largest variance.
_MANY_COLUMNS, _MOST_DIRECTIONS = 400, 256
#: Directions below this fraction of the largest variance count as flat.
_FLAT = 1e-10
#: Rounds in which the student labels the rows anew.
_ROUNDS = 2
#: Weight of the discriminant, and the largest spread of its logits in units of those of the head.
_WEIGHT, _MOST_SPREAD = 0.3, 0.5
#: Smallest weight of the identity in the covariance within classes.
_LEAST_SHRINKAGE = 0.1
#: Number of halvings of the range of the factor, from 1e-3 to 1e3.
_HALVINGS = 60


def with_student(
    W: FloatArray, U: FloatArray, X: FloatArray, Y: FloatArray, span: FloatArray | None = None
) -> FloatArray:
    """The head ``W`` (k, d_in) plus a linear discriminant of rows that it labels itself.

    ``U`` (n, d_in) are mapped rows without labels, ``X`` (m, d_in) with labels ``Y`` (m, k), which are 1 for
    the class and 0 for others; the last column of both is the intercept's. The columns of ``span`` (d, r)
    are orthonormal directions of all rows, if they are known to be few. The discriminant has the class
    means and the covariance within classes under the probabilities of the head. Its logits spread at most
    half as much as those of the head. The sum is scaled until it is as sure of the rows as the head.

    *Guarantee*: post-processing of a released head by public rows.
    """
    rows, labelled, constant = U[:, :-1], X[:, :-1], float(U[0, -1])
    directions = _directions(rows) if span is None else span
    rows, labelled = rows @ directions, labelled @ directions
    Z = U @ W.T
    n, d = rows.shape
    probabilities = softmax(Z, axis=1)
    shrinkage = max(_LEAST_SHRINKAGE, d / (d + n))
    total = (rows.T @ rows + labelled.T @ labelled) / (n + len(labelled))
    for _ in range(_ROUNDS):
        sizes = probabilities.sum(axis=0) + Y.sum(axis=0) + 1e-3
        means = (probabilities.T @ rows + Y.T @ labelled) / sizes[:, np.newaxis]
        within = total - (means.T * (sizes / sizes.sum())) @ means
        within = (1 - shrinkage) * within + shrinkage * np.trace(within) / d * np.eye(d)
        of_rows = np.linalg.solve(within, means.T)
        offsets = 0.5 * (means.T * of_rows).sum(axis=0)
        logits = rows @ of_rows - offsets
        weight = min(_WEIGHT, _MOST_SPREAD * _spread(Z) / max(_spread(logits), 1e-300))
        probabilities = softmax(weight * logits + Z, axis=1)
    student = np.column_stack([of_rows.T @ directions.T, -offsets / constant])
    return _matched(weight * logits + Z, Z) * (W + weight * student)


def _directions(rows: FloatArray) -> FloatArray:
    """Orthonormal directions (d, r) of rows (n, d) that vary, as columns."""
    few, many = len(rows) < rows.shape[1], rows.shape[1] > _MANY_COLUMNS
    rows = rows.astype(np.float32) if many else rows  # half the time
    gram = rows @ rows.T if few else rows.T @ rows
    most = min(len(gram), _MOST_DIRECTIONS if many else len(gram))
    values, vectors = eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    leading = vectors[:, values > max(_FLAT, float(np.finfo(values.dtype).eps)) * values[-1]]
    directions = np.linalg.qr(rows.T @ leading)[0] if few else leading
    return directions.astype(np.float64)


def _spread(logits: FloatArray) -> float:
    """Standard deviation of logits (n, k) less the mean of each row."""
    return float((logits - logits.mean(axis=1, keepdims=True)).std())


def _matched(logits: FloatArray, of_head: FloatArray) -> float:
    """The factor of logits (n, k) at which their mean top probability is that of the head."""
    wanted, low, high = _sureness(of_head), 1e-3, 1e3
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _sureness(middle * logits) < wanted else (low, middle)
    return math.sqrt(low * high)


def _sureness(logits: FloatArray) -> float:
    return float(softmax(logits, axis=1).max(axis=1).mean())


class Student(Stage):
    """Corrects the head by public rows without labels, which the head labels. It costs nothing."""

    name = ""

    def price(self, fit: Fit) -> Price | None:
        if not fit.settings.self_training:
            return None
        n_classes = fit.data.loss.n_outputs
        if n_classes < 3:
            raise ValueError("self_training=True needs three classes or more; pass self_training=False.")
        if not fit.settings.rows.fit_intercept:
            raise ValueError("self_training=True needs fit_intercept=True; pass it, or self_training=False.")
        if fit.public.of_scales is not None:
            return None  # public rows were left out
        n_rows = 0 if fit.public.unlabeled is None else len(fit.public.unlabeled)
        if n_rows < _FEWEST_PER_CLASS * n_classes:
            raise ValueError(
                f"self_training=True needs {_FEWEST_PER_CLASS} rows of X_unlabeled for each of the "
                f"{n_classes} classes, and got {n_rows} in all; pass more, or self_training=False."
            )
        return 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        yield from ()  # no queries
        assert fit.head is not None and fit.public.unlabeled is not None
        row_map = fit.mapping.row_map
        rows, labelled = (row_map(each, np.float64) for each in (fit.public.unlabeled, fit.public.X))
        of_classes = np.eye(fit.data.loss.n_outputs)[fit.public.y]
        whitening = row_map.whitening
        span = whitening.directions.T if whitening is not None and whitening.rest == 0 else None
        W = with_student(fit.head.W, rows, labelled, of_classes, span)
        return fit.spent(self, price, head=replace(fit.head, W=W))
