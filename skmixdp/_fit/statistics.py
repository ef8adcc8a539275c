"""Statistics of private rows: who asks, what a mean is worth, counts of rows.

A statistic is a generator: it yields queries with the mechanisms that answer them, and returns what it has
learned from the noisy answers. Full-batch Gaussian releases compose exactly: their ``1 / sigma**2`` add up.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism, NoisyQuery, Released, drawn
from .._linear import Loss
from .._rows import Block
from ..components import FullBatch
from ..components.clipping import weighted_query
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray, Sampling
from ..privacy import NoiseSource

_Learned = TypeVar("_Learned")
#: Yields noisy queries, receives their answers, and returns a statistic.
Learning = Generator[NoisyQuery, Released, _Learned]
_ALL_ROWS = FullBatch()


@dataclass(frozen=True)
class Learner:
    """The private rows to query, and the noise source.

    ``members`` masks these ``n_rows`` among the rows of the source; None is all. ``dtype`` is that of the
    products with rows. A query takes a batch of the ``sampling``. Rows count by the weights in their labels
    if ``loss`` is a WeightedLoss, and ``n_rows`` is then an estimate of their total weight.
    """

    n_rows: int
    members: NDArray[np.bool_] | None
    noise: NoiseSource
    dtype: np.dtype[Any]
    sampling: Sampling = _ALL_ROWS
    loss: Loss | None = None

    @property
    def n_expected(self) -> float:
        """Expected number of rows that take part, a public divisor of sums; the actual number is secret."""
        return self.n_rows * self.sampling.rate(self.n_rows)

    def ask(
        self, mechanism: GaussianMechanism | float, query: PrivateQuery
    ) -> Learning[tuple[FloatArray, float]]:
        """The noisy answer to a query that takes a whole step, and the scale of its noise.

        A number is the noise multiplier of a mechanism for this query alone.
        """
        if not isinstance(mechanism, GaussianMechanism):
            mechanism = GaussianMechanism(mechanism, 1, self.noise)
        mechanism.begin_step(self.members, drawn(self.sampling, self.n_rows, self.noise, self.members))
        released = yield mechanism, query if self.loss is None else weighted_query(query, self.loss)
        return released.arrays[0], mechanism.noise_scale(released.stated[0])


class Worth(NamedTuple):
    """What a mean over the rows is worth: the target for the noise in it, and the largest that is useful.

    ``limits`` are the smallest and the largest share of mu squared.
    """

    wanted: float
    most: float
    limits: tuple[float, float]


#: A difference of accuracies.
OF_ACCURACIES = Worth(0.006, 0.03, (0.002, 0.02))


def share_for(mu: float, n_rows: int, moved: float, worth: Worth = OF_ACCURACIES) -> float:
    """Share of mu squared for a mean over the rows, from public facts; 0 if noise would hide the mean.

    A row moves the sum by at most ``moved``.
    """
    error = moved / (mu * n_rows)
    share = min(max(min(error / worth.wanted, 1.0) ** 2, worth.limits[0]), worth.limits[1])
    return share if error <= worth.most * math.sqrt(share) else 0.0


def kept_part(noise: float, values: FloatArray) -> float:
    """The factor of James and Stein (1961): the part of the squared length that is not ``noise``."""
    energy = float(np.vdot(values, values))
    return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def likely_part(usual: FloatArray | float, error: FloatArray | float) -> FloatArray:
    """The part of noisy numbers that is likely, by their standard deviations without and of the noise."""
    return np.asarray(usual**2 / (usual**2 + error**2))


def sensitivity_of(n_sums: int) -> float:
    """Sensitivity of ``n_sums`` sums if a row adds at most 1 to each."""
    # rounded up
    return 1.0 if n_sums == 1 else math.sqrt(n_sums) * (1 + 1e-9)


def counts_query(
    points: FloatArray, flags: Callable[[FloatArray, Block], NDArray[Any]], share: float = 1.0
) -> PrivateQuery:
    """The query for the numbers (n_counted,) of private rows that meet conditions, or for sums of scores.

    ``flags(Z, block)`` (rows, n_counts) says which count each row is added to, at most one, from products
    with ``points`` (m, d_in). Scores in [0, 1] may take the place of flags.

    *Guarantee*: one row changes one count by at most 1.
    """
    return PrivateQuery(
        points, lambda Z, block: (None, flags(Z, block).astype(np.float64)), (ReleasedArray(1.0, share),)
    )


def in_class(Z: FloatArray, block: Block, n_classes: int) -> NDArray[np.bool_]:
    """Flags (rows, n_classes) of the class of each row."""
    return np.asarray(block.classes[:, np.newaxis] == np.arange(n_classes))
