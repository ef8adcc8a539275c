"""Synthetic problems, one for each size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skmixdp._linear.products import row_memory

Array = NDArray[Any]

#: Distance of a class centre from the origin, in standard deviations of a row about it.
_SEPARATION = 4.0


@dataclass(frozen=True)
class Size:
    """Shape of a problem.

    Attributes
    ----------
    n, n_pub : int
        Number of private and of public rows.
    d_in : int
        Features of a row.
    k : int
        Number of classes; at least 3, so that a head has k outputs.
    """

    n: int
    d_in: int
    k: int
    n_pub: int


@dataclass(frozen=True)
class Problem:
    """Rows of unit length in float32, labels, and a head that is not special in any way.

    Attributes
    ----------
    size : Size
        The shape.
    X, y : arrays of shape (n, d_in) and (n,)
        Private rows and class indices.
    X_pub, y_pub : arrays of shape (n_pub, d_in) and (n_pub,)
        Public rows and class indices; every class occurs if ``n_pub >= k``.
    W : array of shape (k, d_in)
        A head, float64.
    """

    size: Size
    X: Array
    y: Array
    X_pub: Array
    y_pub: Array
    W: Array

    def held(self) -> Array:
        """A copy of the private rows, in memory as a fit holds them."""
        rows = row_memory(len(self.X), self.size.d_in, self.X.dtype)
        rows[:] = self.X
        return rows


def make_problem(size: Size, seed: int = 0) -> Problem:
    """Gaussian classes around random centres, scaled to unit length."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((size.k, size.d_in), dtype=np.float32)
    centres *= _SEPARATION / np.linalg.norm(centres, axis=1, keepdims=True)

    def rows(y: Array) -> Array:
        X = generator.standard_normal((len(y), size.d_in), dtype=np.float32)
        X += centres[y]
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X

    y = generator.integers(size.k, size=size.n)
    y_pub = np.arange(size.n_pub) % size.k
    return Problem(size, rows(y), y, rows(y_pub), y_pub, generator.standard_normal((size.k, size.d_in)))
