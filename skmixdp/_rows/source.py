"""Private rows, kept behind one method that answers queries about them in sums.

A *query* is a set of ``points`` and a function ``contribute``. For a linear head, points are a
matrix (m, d_in): for each block of rows the source computes ``Z = X points^T`` (rows, m), the
function turns it into weighted residuals ``C`` (rows, k) and per-row statistics ``S`` (rows, s),
and the answer is the pair ``(C^T X, sum S)``. A head's gradient has ``points = W``; several heads,
public centres or random directions are more rows of ``points``. Whoever writes another source
(sparse, memory-mapped, distributed) implements these two products. A source whose model is no
linear head says what its points are, and what ``contribute`` gets in the place of ``Z``.

The sums that come out are NOT private. Only ``engine/release.py`` may ask.

Two promises of every source are part of the guarantee. What a row contributes is a function of that row
alone, bit for bit: no shift, scale, precision or code path is chosen by looking at a whole block. And the
source states how far the rounding of its sums can move when a row is zeroed out, in
:meth:`PrivateRows.sum_error`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._kernels import SumError
from .._linear import largest_entries

FloatArray = NDArray[np.floating[Any]]
Labels = NDArray[Any]


class Block:
    """What a query may know of a block of rows besides its products.

    Attributes
    ----------
    y : array of shape (rows,)
        Labels.
    norms : array of shape (rows,)
        L2 norm of each row, float64: the true one to rounding, or an upper bound.
    """

    def __init__(self, X: FloatArray, y: Labels, norms: FloatArray) -> None:
        self._X = X
        self.y = y
        self.norms = norms

    @cached_property
    def rounding_scale(self) -> FloatArray:
        """Lengths (rows,) in proportion to which products may be rounded: the norms, or more.

        More, where a row is a difference that is never formed and its products are
        differences too.
        """
        return self.norms

    @cached_property
    def max_abs(self) -> FloatArray:
        """Largest absolute entry of each row, shape (rows,), float64."""
        return largest_entries(self._X)


Contribution = tuple[FloatArray | None, FloatArray | None]
Contribute = Callable[[FloatArray, Block], Contribution]
#: ``(Z, block)`` as above, but of tensors where they lie: ``block`` is a :class:`TensorBlock`.
ContributeTensors = Callable[[Any, Any], tuple[Any, Any]]
#: The sums of one query: ``C^T X`` (k, d_in) and ``sum S`` (s,), float64.
Sums = tuple[FloatArray | None, FloatArray | None]


class TensorContribution(Protocol):
    """A ``contribute`` that knows how to do without the host.

    A source whose rows are on a device asks for ``for_tensors``; what has no such attribute, or
    None there, is called on the host with arrays.
    """

    def __call__(self, Z: FloatArray, block: Block) -> Contribution:
        """Contributions of a block in arrays."""

    @property
    def for_tensors(self) -> ContributeTensors | None:
        """What computes the same on tensors, under the same bounds; None if a piece cannot."""


@dataclass(frozen=True)
class Request:
    """The part of a query that a row source answers.

    Attributes
    ----------
    points : array of shape (m, d_in), or what else the source understands
        Directions whose products with the rows are needed.
    contribute : callable
        ``(Z, block) -> (C, S)``; either may be None. ``Z`` is its own to overwrite. It may have
        ``bounds_itself = True``: ``S`` is None, and each row's ``c_i x_i^T`` obeys its bounds whatever
        error ``Z`` has, with any entries of ``c_i`` made shorter too. It may have ``beside(other)``:
        see :mod:`skmixdp._rows.joining`.
    mask : boolean array of shape (n_rows,) or None
        Rows that take part; None is all of them.
    resolution : float or None
        Power of two; contributions are rounded towards zero to multiples of it, so that
        their sums are exact. None rounds nothing.
    wide_sums : bool
        Whether weighted residuals are multiplied with the rows and added in double precision, whatever the
        precision of the rows; for sums whose terms are longer than what is released of them.
    n_head : int
        Number of leading points that are a head which its run moves along the other points; 0
        promises nothing.
    run : object
        Whose head that is: the source may keep its products until the next request.
    n_joined : int
        Number of queries that this is made of; see :mod:`skmixdp._rows.joining`.
    """

    points: Any
    contribute: Contribute
    mask: NDArray[np.bool_] | None = None
    resolution: float | None = None
    wide_sums: bool = False
    n_head: int = 0
    run: object = None
    n_joined: int = 1


class PrivateRows(Protocol):
    """A source of private rows.

    It may have a method ``training()``: a context within which a fit makes all its passes.
    """

    n_rows: int
    #: Power of two of which every entry of the rows is a multiple; None where none is known.
    grid: float | None

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        """Unprotected sums of all requests, from one pass over the rows."""

    def sum_error(self, request: Request) -> SumError:
        """How far the rounding of a request's sums can move when one row is zeroed out."""


def truncated(contributions: FloatArray, resolution: float) -> FloatArray:
    """Contributions rounded towards zero, which lengthens none, to multiples of a resolution."""
    return np.asarray(np.trunc(contributions / resolution) * resolution)
