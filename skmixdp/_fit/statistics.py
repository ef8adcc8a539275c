"""Statistics of private rows: who asks, what a mean is worth, counts, histograms, and comparisons of heads.

A statistic is a generator: it yields queries with the mechanisms that answer them, and returns what it has
learned from the noisy answers. Full-batch Gaussian releases compose exactly: their ``1 / sigma**2`` add up.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .._engine import GaussianMechanism, NoisyQuery, Released, draw_batch
from .._linear.losses import Loss
from .._rows.source import Block, Contribution
from .._utils.process import warn_later
from ..components import FullBatch
from ..components.clipping import clipped, scalars, weighted_query
from ..components.protocols import FloatArray, PrivateQuery, PublicInfo, ReleasedArray, Sampling
from ..components.public import RandomSource
from ..privacy import NoiseSource

_Learned = TypeVar("_Learned")
#: Yields noisy queries, receives their answers, and returns a statistic.
Learning = Generator[NoisyQuery, Released, _Learned]
_ALL_ROWS = FullBatch()


@dataclass(frozen=True)
class Learner:
    """The private rows to query, and the noise source.

    ``members`` masks these ``n_rows`` among the rows of the source; None is all. A query takes a batch of the
    ``sampling``. Rows count by their weights if ``loss`` is a WeightedLoss; ``n_rows`` estimates their total.
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
        """The noisy answer to a query that takes a step of a mechanism, or of one with this multiplier.

        The scale of its noise comes second.
        """
        if not isinstance(mechanism, GaussianMechanism):
            mechanism = GaussianMechanism(mechanism, 1, self.noise)
        mechanism.begin_step(self.members, draw_batch(self.sampling, self.n_rows, self.noise, self.members))
        released = yield mechanism, query if self.loss is None else weighted_query(query, self.loss)
        return released.arrays[0], mechanism.noise_scale(released.stated[0])


class Worth(NamedTuple):
    """What a mean over the rows is worth: the target for its noise, and the largest that is useful.

    ``limits`` are the smallest and the largest share of mu squared.
    """

    wanted: float
    most: float
    limits: tuple[float, float]


#: A difference of accuracies.
OF_ACCURACIES = Worth(0.006, 0.03, (0.002, 0.02))


def share_for(mu: float, n_rows: int, moved: float, worth: Worth = OF_ACCURACIES) -> float:
    """Share of mu squared for a mean to which a row adds ``moved``, by public facts; 0 if noise hides it."""
    error = moved / (mu * n_rows)
    share = min(max(min(error / worth.wanted, 1.0) ** 2, worth.limits[0]), worth.limits[1])
    return share if error <= worth.most * math.sqrt(share) else 0.0


def james_stein_factor(noise: float, values: FloatArray) -> float:
    """The factor of James and Stein (1961): the part of the squared length that is not ``noise``."""
    energy = float(np.vdot(values, values))
    return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def signal_part(usual: FloatArray | float, error: FloatArray | float) -> FloatArray:
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

    ``flags(Z, block)`` (rows, n_counts) are scores in [0, 1], at most one in a row, by products with
    ``points``.

    *Guarantee*: one row changes one count by at most 1.
    """
    return PrivateQuery(
        points, lambda Z, block: (None, flags(Z, block).astype(np.float64)), (ReleasedArray(1.0, share),)
    )


def in_class(Z: FloatArray, block: Block, n_classes: int) -> NDArray[np.bool_]:
    """Flags (rows, n_classes) of the class of each row."""
    return np.asarray(block.classes[:, np.newaxis] == np.arange(n_classes))


#: Differences of losses are clipped at this quantile of the differences on public rows.
_QUANTILE_OF_GAINS = 0.9

#: Noise in a mean difference of losses, in units of the clip.
OF_LOSSES = Worth(0.03, 0.1, (0.002, 0.02))

#: A difference is clear if it exceeds this number of its standard deviations.
CLEARLY = 2.0

#: Fewest public rows from which to compute a clip and the spread of held-out gains.
FEWEST = 10


def comparison_query(first: FloatArray, others: Sequence[FloatArray], share: float = 1.0) -> PrivateQuery:
    """The query for how many more private rows each other head classifies correctly than the first.

    *Guarantee*: one row changes each of the m differences by at most 1, so the sensitivity is ``sqrt(m)``.
    """
    gains = partial(_more_correct, n_heads=1 + len(others))
    stated = ReleasedArray(sensitivity_of(len(others)), share)
    return PrivateQuery(np.concatenate([first, *others]), gains, (stated,))


def _more_correct(Z: FloatArray, block: Block, n_heads: int) -> Contribution:
    """For each row and each other head: whether it is correct, minus whether the first head is."""
    outputs = np.split(np.asarray(Z), n_heads, axis=1)
    first, *others = (block.is_correct(each).astype(np.float64) for each in outputs)
    return None, np.concatenate([each - first for each in others], axis=1)


def expected_losses(losses: FloatArray, error: float, expected: FloatArray, spread: FloatArray) -> FloatArray:
    """Posterior means (m,) of losses of accuracy, from noisy ones and the mean and spread of a prior."""
    weight = signal_part(spread, error)
    return np.asarray(weight * losses + (1 - weight) * expected)


def gains_query(first: FloatArray, others: Sequence[FloatArray], limit: float, loss: Loss) -> PrivateQuery:
    """The query for the sums (m,) of :func:`gains` of other heads in units of ``limit``, clipped to [-1, 1].

    *Guarantee*: one row changes each sum by at most 1, so the sensitivity is ``sqrt(m)``.
    """
    return PrivateQuery(
        points=np.concatenate([first, *others]),
        contribute=partial(_gains, loss=loss, limit=limit),
        releases=(scalars(1.0, len(others), 1.0),),
    )


def _gains(Z: FloatArray, block: Block, loss: Loss, limit: float) -> Contribution:
    """Clipped gains (rows, m) from outputs (rows, (m + 1) k) of all heads."""
    return None, clipped(gains(np.asarray(Z), np.asarray(block.y), loss) / limit, 1.0)


def gains(Z: FloatArray, y: FloatArray, loss: Loss) -> FloatArray:
    """Losses of the first head minus those of each other head, (rows, m); squared errors are not halved.

    ``Z`` (rows, (m + 1) k) holds the outputs of all heads. Weights after the labels in ``y`` are ignored.
    """
    targets = y[:, : loss.n_outputs].astype(np.float64)
    first, *others = np.split(Z.astype(np.float64), Z.shape[1] // loss.n_outputs, axis=1)
    if not loss.quadratic:
        return np.stack([loss.values(first, targets) - loss.values(Z, targets) for Z in others], axis=1)
    # Written as a product, since a difference of large squares loses precision.
    return np.stack([np.sum((first - Z) * (first + Z - 2 * targets), axis=1) for Z in others], axis=1)


def usual_gain(values: FloatArray) -> float:
    """A quantile of the absolute gains. Gains that are not finite count as 0."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    return float(np.quantile(np.abs(finite), _QUANTILE_OF_GAINS))


def held_out_gains(info: PublicInfo, W: FloatArray) -> FloatArray:
    """Losses of a head minus losses of the starts, on held-out public rows."""
    outputs = [np.hstack([judge.X @ W.T, judge.X @ start.T]) for start, judge in info.held_out]
    halves = [gains(Z, judge.y, judge.loss) for Z, (_, judge) in zip(outputs, info.held_out, strict=True)]
    return np.concatenate(halves)


def warn_of_sufficient_public_rows(n_public: int) -> None:
    """Warn that a fit returns its start, which predicts better than the trained head."""
    warn_later(
        f"the {n_public} public rows suffice: the start of the fit does better than the trained head under "
        "this budget, so the start is returned; pass more private rows or a larger epsilon, or do without "
        "the private rows."
    )


#: Probability that noise makes an empty bin of any histogram look occupied.
_FALSE_RATE = 0.01
#: The same probability for a histogram of magnitudes, where such a bin does more harm.
_FALSE_MAGNITUDE = 1e-6
#: Largest threshold for magnitudes, as a fraction of the rows, unless ``_FALSE_RATE`` needs a larger one.
_MISSED = 0.05
#: Widths of the windows of neighbouring bins whose sums are tested.
_WIDTHS = (1, 2, 4, 8)
#: Fewest rows, on average, in the part of a large dataset that is used.
_FEWEST_ROWS = 28_000
#: A part is used only of a dataset at least this many times as large: else all rows take about as long.
_LEAST_STEP = 4
#: The part has enough rows for this noise in a count, as a fraction of them.
_THINNED_ERROR = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class _Part:
    """The same part of the rows in every query, each of which is in it with probability ``chance``.

    ``taken`` (n_private,) is SECRET. Given the coins, releases are as private as those over all rows.
    """

    taken: NDArray[np.bool_]
    chance: float

    def rate(self, n_private: int) -> float:
        return self.chance

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_]:
        return self.taken


def thinned(
    learner: Learner,
    n_features: int,
    multiplier: float,
    fewest: int | None = None,
    error: float = _THINNED_ERROR,
) -> Learner:
    """The learner on a part of the rows, if noise stays small enough; public facts decide.

    At least ``fewest`` rows are left on average, and ``error`` is the target for the noise in a count, as a
    part of them. A secret coin for each row, which holds for all queries, decides whether it takes part.
    Batches, whose rate is accounted for, are left as they are.
    """
    needed = multiplier * math.sqrt(3 * n_features) / error
    least = _FEWEST_ROWS if fewest is None else fewest
    step = int(learner.n_rows // max(needed, least)) if math.isfinite(needed) else 1
    if step < _LEAST_STEP or learner.n_expected < learner.n_rows:
        return learner
    coins = learner.noise.coins(learner.n_rows, 1 / step)
    return replace(learner, sampling=_Part(coins, 1 / step))


def noise_threshold(counts: FloatArray, noise: float, false: float = _FALSE_RATE) -> float:
    """Threshold that noise alone exceeds with small probability, in any bin or window of all histograms."""
    return -noise * float(ndtri(false / (len(_WIDTHS) * counts.size)))


def magnitude_threshold(counts: FloatArray, noise: float, n_rows: float) -> float:
    """The threshold :func:`noise_threshold` for histograms of magnitudes of ``n_rows`` rows."""
    most = noise_threshold(counts, noise, _FALSE_MAGNITUDE)
    return max(min(most, _MISSED * n_rows), noise_threshold(counts, noise))


def windows_of(
    column: FloatArray, certain: float, without: Sequence[int] = ()
) -> Iterator[tuple[int, int, float]]:
    """Start, width and count of windows that hold more rows than noise explains, narrow ones first."""
    taken = np.zeros(len(column), bool)
    taken[list(without)] = True
    for width in _WIDTHS:
        sums = np.convolve(column, np.ones(width), "valid")
        free = np.convolve(taken, np.ones(width), "valid") == 0
        while True:
            sums = np.where(free, sums, -np.inf)
            start = int(sums.argmax())
            if not sums[start] > certain * math.sqrt(width):
                break
            taken[start : start + width] = True
            free[max(start - width + 1, 0) : start + width] = False
            yield start, width, float(sums[start])


def shown_counts(column: FloatArray, certain: float, without: Sequence[int] = ()) -> FloatArray:
    """Counts (bins,) of a histogram where they exceed the noise, averaged over windows, and 0 elsewhere."""
    counts = np.zeros(len(column))
    for start, width, count in windows_of(column, certain, without):
        counts[start : start + width] = count / width
    return counts
