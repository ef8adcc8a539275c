"""Losses of a linear head, as functions of its outputs.

Shapes used throughout: ``Z`` (n, k) outputs (logits); ``y`` (n,) whole-number class indices, or
(n, k) labels or targets; ``R`` (n, k) residuals ``d loss / d Z``. The gradient of one
row is ``r_i x_i^T``, of shape (k, d_in), so a loss needs no more than its residuals, which are computed for
NumPy arrays and torch tensors alike. Everything works in the dtype of ``Z``.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from .arrays import Array, FloatArray, astype, dtype_of, logistic, namespace_of

Labels = NDArray[Any]

#: Exponentials of outputs between minus this and this are far from the limits of float32.
_SAFE_OUTPUT = 40.0

#: Smallest output; smaller ones are raised to it. The largest output of a row is at least
#: ``-_SAFE_OUTPUT``, so the change is negligible in any precision.
_LEAST_OUTPUT = -81.0
#: Smallest probability; smaller ones are raised to it, likewise.
_LEAST_PROBABILITY = 2.0**-58

#: Up to this number of outputs, comparing labels with each is faster than indexing.
_FEW_OUTPUTS = 10

#: From this number of rows, comparing outputs column by column takes at most a third of the time of
#: ``argmax``.
_MANY_ROWS = 4096


class Loss(Protocol):
    """The interface of losses. Losses of one class with the same number of outputs are equal."""

    name: str  # in messages
    n_outputs: int
    curvature: float  # largest eigenvalue of the Hessian in one row's outputs
    lipschitz: float  # largest L2 norm of a residual
    #: Whether residuals sum to zero over the outputs, so that the noise's component outside that subspace
    #: carries nothing and may be removed after the release.
    sum_to_zero: bool
    #: Target of balanced steps for the standard deviation of the noise in an output.
    noise_per_output: float
    quadratic: bool  # whether the Hessian is the identity for all outputs
    #: Whether ``y`` holds class indices (n,); else it holds a label or target for each output, (n, k).
    has_classes: bool

    def residuals(self, Z: Array, y: Labels) -> Array:
        """Derivative (n, k) of each row's loss in its outputs, which may overwrite ``Z``.

        A row's residuals depend on that row alone, bit for bit.
        """

    def values(self, Z: FloatArray, y: Labels) -> FloatArray:
        """Loss of each row, shape (n,)."""


@dataclass(unsafe_hash=True)
class SoftmaxLoss:
    """Cross-entropy of ``n_outputs`` >= 3 classes."""

    # The Hessian diag(p) - p p^T never exceeds 1/2; |p - onehot| never exceeds sqrt(2).
    name = "cross-entropy"
    curvature = 0.5
    lipschitz = float(np.sqrt(2.0))
    sum_to_zero = True
    noise_per_output = 1.0
    quadratic = False
    has_classes = True

    n_outputs: int

    def residuals(self, Z: Array, y: Labels) -> Array:
        if len(Z) == 0:
            return Z
        xp, (n, k) = namespace_of(Z), Z.shape
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = float(Z.min()), float(Z.max())
            # A row within the limits is the same in either case: 0 is subtracted from it. NaN fails the test.
            if not (low >= -_SAFE_OUTPUT and high <= _SAFE_OUTPUT):
                largest = xp.amax(Z, axis=1)
                Z -= (largest - largest.clip(-_SAFE_OUTPUT, _SAFE_OUTPUT))[:, None]
                _at_least(_LEAST_OUTPUT, Z)
            R = xp.exp(Z, out=Z)
            R *= (1 / (R @ xp.ones(k, dtype=Z.dtype, device=Z.device)))[:, None]
            # Slightly smaller, so that no rounding takes a probability below the smallest one.
            if not high - low + math.log(k) <= -math.log(_LEAST_PROBABILITY) - 0.01:
                _at_least(_LEAST_PROBABILITY, R)
        # The probability of the class of each row, minus 1.
        if xp is np and R.flags.f_contiguous and k <= _FEW_OUTPUTS:
            narrow = np.asarray(y).astype(np.int8, copy=False)  # faster to compare
            np.subtract(R.T, narrow == np.arange(k, dtype=np.int8)[:, np.newaxis], out=R.T)
        else:
            R[xp.arange(n, device=R.device), y] -= 1
        return R

    def values(self, Z: FloatArray, y: Labels) -> FloatArray:
        largest = Z.max(axis=1)
        total = np.log(np.exp(Z - largest[:, np.newaxis]).sum(axis=1))
        return np.asarray(total + largest - Z[np.arange(len(Z)), y])


def _at_least(least: float, R: Array) -> None:
    """Raise smaller entries of an array to ``least``, in place; tensors stay as they are."""
    # Processors take a hundred times as long for subnormal numbers, which such probabilities or their squares
    # would be. Other entries stay the same in either case. NaN fails the test.
    if isinstance(R, np.ndarray) and not R.min() >= least:
        np.clip(R, least, np.inf, out=R)  # with both bounds, a third of the time of np.maximum


@dataclass(unsafe_hash=True)
class LogisticLoss:
    """Cross-entropy of two classes with one output: the logit of class 1."""

    name = "logistic loss"
    n_outputs = 1
    curvature = 0.25
    lipschitz = 1.0
    sum_to_zero = False
    noise_per_output = 1.0
    quadratic = False
    has_classes = True

    def residuals(self, Z: Array, y: Labels) -> Array:
        logistic(Z)[:, 0] -= astype(y, dtype_of(Z))
        return Z

    def values(self, Z: FloatArray, y: Labels) -> FloatArray:
        return np.asarray(-log_expit(np.where(y == 1, Z[:, 0], -Z[:, 0])))


@dataclass(unsafe_hash=True)
class MultilabelLoss(LogisticLoss):
    """Sum of the cross-entropies of labels, each with its own logit; ``y`` (n, k) is 1 for those of a row."""

    name = "logistic loss of several labels"
    has_classes = False

    n_outputs: int

    def __post_init__(self) -> None:
        # Each entry of a residual is at most 1.
        self.lipschitz = math.sqrt(self.n_outputs)

    def residuals(self, Z: Array, y: Labels) -> Array:
        Z = logistic(Z)
        Z -= y
        return Z

    def values(self, Z: FloatArray, y: Labels) -> FloatArray:
        return np.asarray(-log_expit(np.where(y == 1, Z, -Z)).sum(axis=1))


@dataclass(unsafe_hash=True)
class SquaredLoss:
    """Half the squared error of targets ``y`` (n, k) of unit scale."""

    name = "squared loss"
    curvature = 1.0
    lipschitz = float("inf")
    sum_to_zero = False
    noise_per_output = 0.4
    quadratic = True
    has_classes = False

    n_outputs: int

    def residuals(self, Z: Array, y: Labels) -> Array:
        Z -= y
        return Z

    def values(self, Z: FloatArray, y: Labels) -> FloatArray:
        return np.asarray(0.5 * np.sum((Z - y) ** 2, axis=1))


@dataclass(unsafe_hash=True)
class WeightedLoss:
    """A loss that is multiplied by the weight of each row, if labels have one, see :func:`with_weights`.

    Constants and Hessians are those of the inner loss. Gradients of private rows are clipped before they are
    weighted: see :func:`~skmixdp.components.clipping.weighted_query`.
    """

    inner: Loss

    def __post_init__(self) -> None:
        inner = self.inner
        self.name = inner.name
        self.n_outputs = inner.n_outputs
        self.curvature = inner.curvature
        self.lipschitz = inner.lipschitz  # without weights
        self.sum_to_zero = inner.sum_to_zero
        self.noise_per_output = inner.noise_per_output
        self.quadratic = inner.quadratic
        self.has_classes = inner.has_classes

    def residuals(self, Z: Array, y: Labels) -> Array:
        labels, weights = self.split(y)
        R = self.inner.residuals(Z, labels)
        if weights is not None:
            R *= astype(weights, dtype_of(R))[:, None]
        return R

    def values(self, Z: FloatArray, y: Labels) -> FloatArray:
        labels, weights = self.split(y)
        values = self.inner.values(Z, labels)
        return values if weights is None else values * weights

    def split(self, y: Labels) -> tuple[Labels, Labels | None]:
        """Labels and weights (n,) of rows; the weights are None if ``y`` has none."""
        if self.has_classes:
            return (astype(y[:, 0], np.int64), y[:, 1]) if y.ndim == 2 else (y, None)
        carried = y.shape[1] > self.n_outputs
        return (y[:, :-1], y[:, -1]) if carried else (y, None)

    def joined(self, y: Labels, weights: Labels) -> Labels:
        """Labels ``y`` with weights (n,) in place of their own."""
        joined: Labels = namespace_of(y).concat([y[:, :-1], weights[:, None]], axis=1)
        return joined


def with_weights(y: Labels, weights: FloatArray) -> Labels:
    """Labels (n,) or targets (n, k) with the weight of each row as a last column, for a WeightedLoss."""
    if y.ndim == 2:
        return np.column_stack([y, weights.astype(np.result_type(y, np.float32))])
    return np.column_stack([y.astype(np.float64), weights])


def predicted_classes(Z: FloatArray) -> NDArray[np.intp]:
    """Class index of each row, (n,), from its outputs (n, k); one output is the logit of class 1."""
    n, k = Z.shape
    if k == 1:
        return np.asarray(Z[:, 0] > 0, dtype=np.intp)
    if k > _FEW_OUTPUTS or n < _MANY_ROWS or Z.strides[0] != Z.itemsize:
        return np.asarray(Z.argmax(axis=1))
    # Comparisons of whole columns are vectorised over rows. If outputs are equal, the first one counts.
    largest, best = Z[:, 0].copy(), np.zeros(n, np.int8)
    for index in range(1, k):
        larger = (Z[:, index] > largest).view(np.int8)
        larger *= index
        np.maximum(best, larger, out=best)
        np.maximum(largest, Z[:, index], out=largest)
    return np.asarray(Z.argmax(axis=1) if np.isnan(largest).any() else best, dtype=np.intp)


def classification_loss(n_classes: int) -> SoftmaxLoss | LogisticLoss:
    """Loss of a head for ``n_classes`` >= 2 classes: two classes share one output."""
    return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)
