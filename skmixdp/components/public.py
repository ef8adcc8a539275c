"""Public rows and the quantities computed from them. Nothing here uses private rows.

:class:`PublicData` holds the rows. :class:`PublicView` holds their gradient, norms and bases at one head
``W`` of shape (k, d_in), each computed on first use. Everything is float64, except the products of a view,
which may use the dtype of the private products.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .._linear.arrays import (
    FloatArray,
    finite,
    largest_singular_value,
    orthonormal_columns,
    principal_axes,
    row_norms,
)
from .._linear.losses import Loss, WeightedLoss
from .._linear.products import add_products, row_products
from .._linear.sums import Cascade
from .._utils.process import one_thread

Labels = NDArray[Any]

#: Default strength of the public objective, on the scale of the SUM of the public losses, for rows of unit
#: length. On images, text and tables, and for few or many rows per class, 0.1 to 0.3 worked well. With weaker
#: penalties few-shot fits are bad starts, and with stronger ones the start is near 0.
_L2 = 0.2

#: Singular values below this fraction of the largest count as zero.
_RANK_TOLERANCE = 1e-8

#: Largest row length for float32 products; longer rows use float64.
_LONG = 1e18

#: Multiplications from which a product uses several threads.
_MUCH_WORK = 2**24


class PublicData:
    """Labelled public rows, mapped as for a head.

    Parameters
    ----------
    X : array of shape (n_pub, d_in)
        Rows after the :class:`~skmixdp._rows.row_map.RowMap`; ``n_pub`` may be 0.
    y : array of shape (n_pub,), or (n_pub, k) for squared loss
        Class indices or targets. With a WeightedLoss, they may carry weights, of mean 1.
    loss : Loss
        The loss of the head.
    l2 : float or None
        Strength of the public objective ``sum_j loss_j(W) + l2 / 2 |W|^2``, on the scale of the
        SUM of the losses; None is 0.2 for rows of unit length.
    dtype : dtype
        Dtype of the products in views. It is that of the private products, since more precision would be
        lost in their rounding. None is float64.
    shift : float or array of shape (k,)
        What private rows have more in their outputs, since their classes have other shares. Views subtract
        it from the outputs of public rows. The solution is that of the public rows alone.
    """

    def __init__(
        self,
        X: FloatArray,
        y: Labels,
        loss: Loss,
        l2: float | None = None,
        dtype: np.dtype[Any] | None = None,
        shift: FloatArray | float = 0.0,
    ) -> None:
        self.X = np.asarray(X, dtype=np.float64)
        self.n_rows = len(self.X)
        self.norms: FloatArray = np.asarray(row_norms(self.X))
        self.y = y
        self.loss = loss
        if l2 is None:
            l2 = _L2 * max(float(np.mean(self.norms**2)), 1e-12) if len(self.X) else _L2
        self.l2 = l2
        self.shift = shift
        short = dtype is not None and float(self.norms.max(initial=0.0)) <= _LONG
        #: The rows in the dtype of private products, in which views compute.
        self.multiplied = self.X.astype(dtype, copy=False) if short else self.X

    @property
    def labels(self) -> Labels:
        """Class indices (n_pub,) or targets, without weights."""
        return self.loss.split(self.y)[0] if isinstance(self.loss, WeightedLoss) else self.y

    @cached_property
    def products(self) -> FloatArray:
        """Products (n_pub, n_pub) of the rows with each other."""
        return np.asarray(self.X @ self.X.T)

    def largest_second_moment(self, row_norm_bound: float) -> float:
        """Largest eigenvalue of the second moment of the rows; without rows, a bound.

        A few public rows may miss directions in which private rows are long. With squared loss, whose
        residuals have no bound, steps that are too long for these rows diverge. The estimate is then
        multiplied by ``1 + d_in / n_pub``, up to the bound.
        """
        if not self.n_rows:
            return row_norm_bound**2
        seen = largest_singular_value(self.X) ** 2 / self.n_rows
        if not self.loss.quadratic:
            return seen
        hidden = min(seen * (1 + self.X.shape[1] / self.n_rows), row_norm_bound**2)
        return float(max(seen, hidden))

    @cached_property
    def typical_second_moment(self) -> float:
        """Mean eigenvalue of the rows' second moment, weighted by eigenvalue; infinite for rows of zeros."""
        M = self.X.T @ self.X if self.n_rows > self.X.shape[1] else self.products
        trace = float(np.trace(M))
        return float(np.vdot(M, M)) / (self.n_rows * trace) if trace > 0 else math.inf

    @cached_property
    def principal_directions(self) -> FloatArray:
        """Unit directions (r, d_in) of the rows' second moment, the strongest first."""
        _, values, directions = np.linalg.svd(self.X, full_matrices=False)
        return np.asarray(directions[values > _RANK_TOLERANCE * values[:1]])

    def view(self, W: FloatArray) -> "PublicView":
        """The view of the rows at the head ``W``."""
        return PublicView(self, W)

    @cached_property
    def solution(self) -> FloatArray:
        """Minimiser (k, d_in) of the public objective: the warm start."""
        if not self.loss.quadratic:
            return self.fit(self.l2)
        n_rows = max(self.n_rows, 1)
        axes, moments, rows = principal_axes(self.X)
        return np.asarray((self.labels.T @ rows / n_rows / (moments + self.l2 / n_rows)) @ axes.T)

    @cached_property
    def halves(self) -> tuple["PublicData", "PublicData"]:
        """The rows in two halves. With classes, each class is divided in half."""
        labels = self.labels
        order = np.argsort(labels, kind="stable") if labels.ndim == 1 else np.arange(self.n_rows)
        first, second = (
            PublicData(self.X[i], self.y[i], self.loss, self.l2) for i in (order[::2], order[1::2])
        )
        return first, second

    def fit(self, l2: float, center: FloatArray | None = None) -> FloatArray:
        """Minimiser (k, d_in) of ``sum_j loss_j(W) + l2 / 2 |W - center|^2``, for a positive ``l2``.

        The centre (k, d_in), by default the origin, is also the start of the search.
        """
        shape = (self.loss.n_outputs, self.X.shape[1])
        # Rows are scaled to unit size, so that tolerances do not depend on their scale.
        scale = float(np.sqrt(np.mean(self.norms**2))) or 1.0
        X, strength = self.X / scale, l2 / scale**2
        middle = np.zeros(shape) if center is None else center * scale

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            W = flat.reshape(shape)
            Z = X @ W.T
            away = W - middle
            value = self.loss.values(Z, self.y).sum() + 0.5 * strength * float(np.vdot(away, away))
            gradient = self.loss.residuals(Z, self.y).T @ X + strength * away
            return value, gradient.ravel()

        # The distance to the minimiser is at most |gradient| / strength.
        options: Any = {"maxiter": 5000, "maxfun": 10000, "gtol": 1e-4 * strength, "ftol": 0.0}
        with one_thread() if X.size * len(middle) < _MUCH_WORK else nullcontext():
            solved = minimize(objective, middle.ravel(), jac=True, method="L-BFGS-B", options=options)
        return np.asarray(solved.x.reshape(shape) / scale)


@dataclass(eq=False)
class PublicView:
    """Public rows at one head ``W`` of shape (k, d_in). Everything is computed on demand."""

    data: PublicData
    W: FloatArray
    #: What queries compute from the view, by keys of their own.
    computed: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def residuals(self) -> FloatArray:
        """Residuals of the public rows, shape (n_pub, k)."""
        X = self.data.multiplied
        points = self.W.astype(X.dtype, order="F")
        Z = row_products(X, points, np.empty((len(X), len(self.W)), X.dtype))
        Z -= self.data.shift
        return np.asarray(self.data.loss.residuals(Z, self.data.y), dtype=np.float64)

    @cached_property
    def gradient(self) -> FloatArray:
        """Mean gradient (k, d_in); zero without public rows."""
        X, total = self.data.multiplied, Cascade()
        add_products(X, self.residuals.astype(X.dtype, copy=False), total)
        return np.asarray(total.value / max(self.data.n_rows, 1))

    @cached_property
    def gradient_norms(self) -> FloatArray:
        """L2 norm of each row's gradient, shape (n_pub,)."""
        return np.asarray(row_norms(self.residuals) * self.data.norms)

    def basis(self, n_components: int) -> FloatArray:
        """Orthonormal (d_in, P) basis that starts with the directions of the gradient.

        The gradient has rank at most min(k, d_in). Further columns are the principal directions of the public
        rows, in their order. This completion is deterministic; AdaMix leaves it arbitrary. P is at most the
        rank of both together.
        """
        _, values, directions = np.linalg.svd(finite(self.gradient), full_matrices=False)
        rounding = 16 * float(np.finfo(self.data.multiplied.dtype).eps)
        leading = directions[values > max(_RANK_TOLERANCE, rounding) * values[:1]]
        candidates = np.concatenate([leading, self.data.principal_directions])
        return orthonormal_columns(candidates, min(n_components, candidates.shape[1]))

    # -- the interface for zeroth-order steps, which the view of a module has too -----------

    @property
    def n_parameters(self) -> int:
        """Number of coefficients of the head."""
        return self.W.size

    def random_directions(
        self, source: "RandomSource", count: int, radius: float, *, sphere: bool
    ) -> FloatArray:
        """Random directions (count, k, d_in): uniform on the sphere of a radius, or Gaussian.

        The root mean square length of the Gaussian directions is ``radius``.
        """
        draws = source.normal((count, self.n_parameters))
        lengths = row_norms(draws) if sphere else np.full(count, np.sqrt(self.n_parameters))
        return (draws * (radius / lengths)[:, np.newaxis]).reshape(count, *self.W.shape)

    def combine(self, weights: FloatArray, directions: FloatArray) -> FloatArray:
        """``sum_j weights_j directions_j``, (k, d_in)."""
        return np.tensordot(weights, directions, axes=1)

    def batch_gradients(self, batches: Sequence[NDArray[np.intp]]) -> FloatArray:
        """Mean gradient over each batch of public rows, (m, k, d_in)."""
        R, X = self.residuals, self.data.X
        return np.stack([R[batch].T @ X[batch] / len(batch) for batch in batches])

    def orthonormal(self, directions: FloatArray) -> FloatArray:
        """Orthonormal directions with the same span; fewer if the directions are linearly dependent."""
        flat = self.unit(directions).reshape(len(directions), -1)
        basis = orthonormal_columns(flat, len(flat))
        return basis.T.reshape(basis.shape[1], *self.W.shape)

    def unit(self, directions: FloatArray) -> FloatArray:
        """Each direction at length 1; a direction of zeros stays as it is."""
        lengths = row_norms(directions.reshape(len(directions), -1))
        return directions / np.where(lengths == 0, 1, lengths)[:, np.newaxis, np.newaxis]

    def moved(self, direction: FloatArray, step: float) -> FloatArray:
        """The head plus ``step`` times a direction."""
        return self.W + step * direction

    def probe(self, directions: FloatArray, moves: Sequence[tuple[int, float]]) -> "Probe":
        """The query for losses at ``W + step * directions[j]``, for each ``(j, step)`` in ``moves``."""
        k, loss = len(self.W), self.data.loss  # no public rows, since Dask workers may get the query

        def losses(Z: FloatArray, y: Labels) -> FloatArray:
            heads = (Z[:, :k] + step * Z[:, (j + 1) * k : (j + 2) * k] for j, step in moves)
            return np.stack([loss.values(head, y) for head in heads], axis=1)

        return Probe(np.concatenate([self.W, *directions]), losses)


class RandomSource(Protocol):
    """A source of random numbers for directions."""

    def normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent standard normal draws."""

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent draws from [0, 1)."""


@dataclass(frozen=True)
class Probe:
    """A query for the losses of each row at several heads, by its points for the row source.

    ``losses(Z, y)`` (rows, m) computes them from the source's answer ``Z`` for a block of rows.
    """

    points: Any
    losses: Callable[[FloatArray, Labels], FloatArray]
