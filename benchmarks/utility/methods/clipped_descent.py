"""Private gradient descent of softmax heads at full batch, several heads in each pass over the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skmixdp.privacy import NoiseSource

from ..problems import Array
from .releases import bounded

#: Columns of logits that are computed together, and entries of a block of them, which stays in the cache.
_COLUMNS, _ENTRIES = 800, 2**18


@dataclass
class Run:
    """A head in training.

    Attributes
    ----------
    setting : str
        What tells it from the others.
    epsilon : float
        Its budget.
    multiplier : float
        Noise multiplier of each of its gradients.
    noise : NoiseSource
        Where its noise comes from.
    W : array of shape (n_classes, n_features)
        The head, which training changes.
    step : callable
        From the noisy mean gradient to what is subtracted from the head.
    """

    setting: str
    epsilon: float
    multiplier: float
    noise: NoiseSource
    W: Array
    step: Callable[[Array], Array]


def descend(runs: Sequence[Run], X: Array, y: Array, public: tuple[Array, Array], n_steps: int) -> None:
    """Train heads in place; the gradient of each row has length 1 at most, by clipping.

    Public rows add their own gradients without noise. Sensitivity of a sum of gradients: 1.
    """
    X = bounded(X)
    size = max(1, _COLUMNS // len(runs[0].W))
    n = len(X) + len(public[0])
    for first in range(0, len(runs), size):
        chunk = runs[first : first + size]
        for _ in range(n_steps):
            heads = np.stack([run.W for run in chunk]).astype(np.float32)
            totals = clipped_gradients(heads, X, y).astype(np.float64)
            exact = clipped_gradients(heads, *public) if len(public[0]) else np.zeros_like(totals)
            for run, total, other in zip(chunk, totals, exact, strict=True):
                run.W = run.W - run.step((run.noise.add_noise(total, run.multiplier, None) + other) / n)


def clipped_gradients(heads: Array, X: Array, y: Array) -> Array:
    """Sums of the rows' gradients of the logistic loss, each shortened to length 1, for several heads.

    Parameters
    ----------
    heads : array of shape (m, k, d), float32
        The heads.
    X, y : arrays of shape (n, d) and (n,)
        Rows and codes of labels.

    Returns
    -------
    array of shape (m, k, d), float32
    """
    m, k, d = heads.shape
    # Rows are the last axis of logits: sums over classes are then sums of long vectors.
    columns = np.ascontiguousarray(heads.transpose(1, 0, 2)).reshape(k * m, d)
    total = np.zeros((k * m, d), dtype=np.float32)
    size = max(64, _ENTRIES // (m * k))
    for first in range(0, len(X), size):
        total += _block(columns, k, X[first : first + size], y[first : first + size])
    return total.reshape(k, m, d).transpose(1, 0, 2)


def _block(columns: Array, k: int, X: Array, y: Array) -> Array:
    """The same for a block of rows; columns and sums are of shape (k * m, d)."""
    residuals = (columns @ X.T).reshape(k, -1, len(X))
    residuals -= residuals.max(axis=0)
    np.exp(residuals, out=residuals)
    residuals /= residuals.sum(axis=0)
    residuals[y, :, np.arange(len(X))] -= 1
    lengths = np.sqrt(np.square(residuals).sum(axis=0)) * np.linalg.norm(X, axis=1)
    residuals /= np.maximum(lengths, 1)
    return np.asarray(residuals.reshape(-1, len(X)) @ X)
