"""Noisy statistics of private rows: counts, class and label shares, a mean, a length, leading directions.

Rows that are centred and whitened need fewer steps and less noise. Public rows can tell how to centre and
whiten. This module learns it from the private rows, for a small part of the budget.

Each function is a generator: it yields queries with the mechanisms that answer them, and returns what it has
learned from the noisy answers. Full-batch Gaussian releases compose exactly: their ``1 / sigma**2`` add up.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._engine import GaussianMechanism, NoisyQuery, Released, drawn
from .._linear import Loss
from .._rows import Block, Contribution, effective_columns
from .._utils.process import warn_later
from ..components import FullBatch, L2Clip
from ..components.clipping import clip_rows, weighted_query
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray, Sampling
from ..privacy import NoiseSource

_Learned = TypeVar("_Learned")

#: Yields noisy queries, receives their answers, and returns a statistic.
Learning = Generator[NoisyQuery, Released, _Learned]

#: Target for the length of the noise in the mean, for unit rows.
_MEAN_ERROR = 0.15

#: Smallest share of mu squared for the mean.
_LEAST_SHARE = 0.01
#: Largest share of mu squared, each for the mean and for the directions.
_MOST_SHARE = 0.05

#: Number of directions.
_DIRECTIONS = 20
#: Rounds of the power method.
_ROUNDS = 3

#: Weight of the identity that is added to the second moment before whitening, as for public whitening.
_SHRINKAGE = 0.9

#: Factor of the estimated curvature, to be on the safe side.
_MARGIN = 1.1

#: Smallest constant of the intercept column. Centred rows have no common direction, so a small constant is
#: enough and adds little noise.
_LEAST_INTERCEPT = 0.1
#: The constant for two classes, which may differ more in size.
_INTERCEPT_OF_TWO = 0.3

_ALL_ROWS = FullBatch()

#: The clip enforces that rows have at most unit length.
_CLIP = L2Clip(1.0)


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


def kept_part(noise: float, values: FloatArray) -> float:
    """The factor of James and Stein (1961): the part of the squared length that is not ``noise``."""
    energy = float(np.vdot(values, values))
    return max(0.0, 1 - noise / energy) if energy > 0 else 0.0


def warn_of_sufficient_public_rows(n_public: int) -> None:
    """Warn that a fit returns its start, which predicts better than the trained head."""
    warn_later(
        f"the {n_public} public rows suffice: the start of the fit does better than the trained head under "
        "this budget, so the start is returned; pass more private rows or a larger epsilon, or do without "
        "the private rows."
    )


# -- shares of the budget, and counts --------------------------------------------------------


#: Target for the noise in a difference of accuracies.
_ERROR = 0.006
#: A difference with more noise than this is not released.
_MOST_ERROR = 0.03

#: Smallest and largest share of mu squared for a comparison.
_LIMITS = 0.002, 0.02


def share_for(
    mu: float,
    n_rows: int,
    moved: float,
    wanted: float = _ERROR,
    largest: float = _MOST_ERROR,
    limits: tuple[float, float] = _LIMITS,
) -> float:
    """Share of mu squared for a mean over the rows, from public facts; 0 if noise would hide the mean.

    A row moves the sum by at most ``moved``. ``wanted`` is the target for the noise in the mean, ``largest``
    the largest noise that is still useful, and ``limits`` the smallest and the largest share. By default,
    they are those of a comparison of accuracies.
    """
    error = moved / (mu * n_rows)
    share = min(max(min(error / wanted, 1.0) ** 2, limits[0]), limits[1])
    return share if error <= largest * math.sqrt(share) else 0.0


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


def all_right(Z: FloatArray, block: Block) -> NDArray[np.bool_]:
    """Flags (rows, 1) of the rows (rows, k) whose outputs all have the sign of their label."""
    return np.asarray(((np.asarray(Z) > 0) == (np.asarray(block.y) == 1)).all(axis=1, keepdims=True))


# -- shares of classes and labels ------------------------------------------------------------


#: Target for the noise in a class count, as a fraction of the mean count.
_COUNT_ERROR = 0.1
#: Largest noise in it if private rows compare adjustments.
MOST_COUNT_ERROR = 0.5
#: Largest noise in it otherwise.
_MOST_UNCOMPARED = 0.3

#: Smallest and largest share of mu squared for class counts.
COUNT_LIMITS = 0.005, 0.02

#: Factor by which noise in the counts may exceed its expected squared length.
_NOISE_FACTOR = 2.0

#: Multiples of the default adjustment that private rows compare, from weak to strong.
MULTIPLES = np.array([0.5, 1.0, 1.5])


def count_share(mu: float, n_rows: int, n_classes: int) -> float:
    """Share of mu squared for class counts, from public facts; 0 if noise would hide the class shares."""
    compared = share_for(mu, n_rows, math.sqrt(len(MULTIPLES)))
    largest = MOST_COUNT_ERROR if compared else _MOST_UNCOMPARED
    return share_for(mu, n_rows, n_classes, _COUNT_ERROR, largest, COUNT_LIMITS)


def class_shares(counts: FloatArray, scale: float, n_rows: float) -> FloatArray:
    """Estimated class shares (k,), all positive, from noisy counts (k,) of ``n_rows`` rows.

    ``scale`` is the standard deviation of the noise. Counts are shrunk towards equal ones by a factor as
    James and Stein's, so shares that differ by no more than noise come out equal. No count is taken to be
    below the standard deviation of its noise.
    """
    mean = n_rows / len(counts)
    away = counts - mean
    kept = kept_part(_NOISE_FACTOR * (len(counts) - 1) * scale**2, away)
    # A class whose noisy count is not positive gets a small positive share.
    shrunk = np.maximum(mean + kept * away, min(max(scale, 1.0), mean))
    return np.asarray(shrunk / shrunk.sum())


#: Target for the noise in the fraction of rows with a label.
_LABEL_ERROR = 0.003
#: Fractions with more noise than this are not released.
_MOST_LABEL_ERROR = 0.25

#: Smallest and largest share of mu squared for the shares of labels.
_LABEL_LIMITS = 0.002, 0.03


def label_share(mu: float, n_rows: int, n_labels: int) -> float:
    """Share of mu squared for :func:`noisy_logits`, from public facts; 0 if noise would hide them."""
    moved = sensitivity_of(n_labels) / 2
    return share_for(mu, n_rows, moved, _LABEL_ERROR, _MOST_LABEL_ERROR, _LABEL_LIMITS)


def noisy_logits(learner: Learner, n_labels: int, multiplier: float) -> Learning[FloatArray]:
    """Logits (k,) of the fraction of rows that have each label, from noisy sums of labels.

    Shares are shrunk towards their mean as by James and Stein. The remaining standard deviation of their
    noise is the least distance that they keep from 0 and 1.

    *Guarantee*: one Gaussian release of this multiplier. A row adds ``y_i - 1/2`` to the sums, whose length
    is ``sqrt(k) / 2`` for any labels.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        return None, np.asarray(block.y)[:, :n_labels] - 0.5

    stated = ReleasedArray(sensitivity_of(n_labels) / 2)
    query = PrivateQuery(np.zeros((0, 0)), contribute, (stated,))  # without products
    sums, scale = yield from learner.ask(multiplier, query)
    shares, error = 0.5 + sums / learner.n_rows, scale / learner.n_rows
    away = shares - shares.mean()
    kept = kept_part((n_labels - 1) * error**2, away)
    least = max(error * math.sqrt(kept + (1 - kept) / n_labels), 1 / learner.n_rows)
    least = min(least, 0.5)
    return np.asarray(logit(np.clip(shares.mean() + kept * away, least, 1 - least)))


# -- geometry --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shares:
    """Parts of mu squared for the mean and for the leading directions.

    The noise of the power method hides second moments up to ``floor``; see :class:`LeadingDirections`.
    """

    mean: float
    directions: float
    floor: float

    @classmethod
    def of(cls, mu: float, n_rows: int, n_features: int) -> "Shares":
        """The shares for a budget, from public facts.

        The noise in a mean of unit rows has length ``sqrt(n_features) / (n mu_1)``.
        """
        wanted = n_features / (_MEAN_ERROR * mu * n_rows) ** 2
        mean = min(max(wanted, _LEAST_SHARE), _MOST_SHARE)
        directions = min(2 * mean, _MOST_SHARE)
        scale = math.sqrt(_ROUNDS / directions) / (mu * n_rows)
        floor = scale * (math.sqrt(n_features) + math.sqrt(min(_DIRECTIONS, n_features)))
        return cls(mean, directions, floor)


#: Largest noise at which dominant columns can be seen: its squared length in a mean of unit rows, or its
#: second moment.
_CLEAR_NOISE = 0.25


def intercept_constant(n_outputs: int) -> float:
    """Constant of the intercept column of centred rows of unit length."""
    return max(_LEAST_INTERCEPT, _INTERCEPT_OF_TWO * math.sqrt(2 / max(n_outputs, 2)))


@dataclass(frozen=True)
class NoisyMean:
    """A released mean (n_features,) of unit rows, and the variance of the noise in each entry."""

    value: FloatArray
    variance: float

    def shrunk(self) -> FloatArray:
        """The positive-part estimate of James and Stein (1961), which moves the mean towards zero."""
        return self.value * kept_part(max(len(self.value) - 2, 0) * self.variance, self.value)

    @property
    def energies(self) -> FloatArray:
        """Estimated square of each entry of the mean, at least 0; zeros if noise could have caused them."""
        if len(self.value) * self.variance > _CLEAR_NOISE:
            return np.zeros_like(self.value)
        return np.asarray(np.maximum(self.value**2 - self.variance, 0))

    def combined(self, public_mean: FloatArray, public_variance: float) -> FloatArray:
        """The average with the mean of public rows, weighted by the inverse of their total variances."""
        variance = len(self.value) * self.variance
        weight = public_variance / (variance + public_variance) if variance + public_variance > 0 else 1.0
        return weight * self.value + (1 - weight) * public_mean


def variance_of_mean(unit_pub: FloatArray) -> float:
    """Estimated squared length of the error of the mean of unit rows (n, d); infinite for one row."""
    mean = unit_pub.mean(axis=0)
    return (1 - float(mean @ mean)) / (len(unit_pub) - 1) if len(unit_pub) > 1 else math.inf


def noisy_mean(learner: Learner, n_features: int, multiplier: float) -> Learning[NoisyMean]:
    """The noisy mean of rows of at most unit length and of this width, without an intercept column.

    ``multiplier`` is the standard deviation of the noise in the sum, in units of its sensitivity 1.

    *Guarantee*: one Gaussian release of this multiplier. Rows longer than 1 are clipped.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        weights = _CLIP.weights(block.norms, lambda: block.max_abs)
        # Weights in double precision would make the sum convert all rows.
        return weights.astype(Z.dtype)[:, None], None

    stated = ReleasedArray(_CLIP.sensitivity(learner.dtype))
    query = PrivateQuery(np.zeros((0, n_features)), contribute, (stated,))
    total, scale = yield from learner.ask(multiplier, query)
    return NoisyMean(total[0] / learner.n_rows, (scale / learner.n_rows) ** 2)


#: Candidates for the length are powers of two: the lowest exponent.
_LOWEST_EXPONENT = -64.0
#: Number of exponents, in steps of a half.
_EXPONENTS = 256

#: Upper end of the search for a length, a power of two. It is the unit of lengths, which causes no rounding.
#: Longer rows are shortened to it.
LENGTH_LIMIT = 2.0**64

#: Rounds of the binary search for a length.
_SEARCH_ROUNDS = 8

#: Factor by which stated lengths of rows may exceed the true ones, due to rounding.
_ROUNDED = 1 + 1e-6

#: Quantile of the lengths to search for.
_QUANTILE = 0.9
#: Smallest quantile where noise lowers it.
_LEAST_QUANTILE = 0.5

#: Target for the noise in the count of rows up to a length, as a fraction of the rows.
_LENGTH_ERROR = 0.05
#: Largest noise allowed in it, as a fraction of the rows.
_MOST_LENGTH_ERROR = 0.2


def length_share(mu: float, n_rows: int) -> float:
    """Share of mu squared for :func:`noisy_length`, from public facts; 0 if noise would hide it."""
    moved, limits = math.sqrt(_SEARCH_ROUNDS), (_LEAST_SHARE, _MOST_SHARE)
    return share_for(mu, n_rows, moved, _LENGTH_ERROR, _MOST_LENGTH_ERROR, limits)


def noisy_length(learner: Learner, n_features: int, multiplier: float) -> Learning[float]:
    """A length that most rows do not exceed, by a binary search with noisy counts.

    Rows are in units of :data:`LENGTH_LIMIT`. ``multiplier`` is that of one Gaussian release which is as
    private as the whole search.

    *Guarantee*: ``_SEARCH_ROUNDS`` Gaussian releases of counts. A row changes each count by at most 1.
    """
    n_rows = learner.n_rows
    mechanism = GaussianMechanism(multiplier * math.sqrt(_SEARCH_ROUNDS), _SEARCH_ROUNDS, learner.noise)
    error = multiplier * math.sqrt(_SEARCH_ROUNDS) / n_rows
    wanted = max(_QUANTILE - 2 * error, _LEAST_QUANTILE) * n_rows
    low, high = 0, _EXPONENTS - 1
    for _ in range(_SEARCH_ROUNDS):
        middle = (low + high) // 2
        not_longer = partial(_not_longer, length=_length(middle) / LENGTH_LIMIT)
        query = counts_query(np.zeros((0, n_features)), not_longer)
        count, _ = yield from learner.ask(mechanism, query)
        if float(count[0]) >= wanted:
            high = middle
        else:
            low = min(middle + 1, high)
    return _length(high)


def _length(index: int) -> float:
    return float(2 ** (_LOWEST_EXPONENT + index / 2))


def _not_longer(Z: FloatArray, block: Block, length: float) -> NDArray[np.bool_]:
    """Flags (rows, 1) of the rows whose length is at most ``length``."""
    return np.asarray(block.norms <= length * _ROUNDED)[:, np.newaxis]


@dataclass(frozen=True)
class LeadingDirections:
    """Released orthonormal directions (r, n_features) in which centred rows of unit length vary most.

    ``moments`` (r,) are estimated second moments along them, 0 where noise hides them: below ``floor``.
    """

    directions: FloatArray
    moments: FloatArray
    floor: float

    @property
    def energies(self) -> FloatArray:
        """Mean square of each entry of the rows, from directions that noise does not hide."""
        return np.asarray((self.moments * (self.floor < _CLEAR_NOISE)) @ self.directions**2)

    def shortened(self) -> tuple[FloatArray, FloatArray]:
        """Directions (s, n_features) that noise does not hide, and factors (s,) by which to whiten them."""
        seen = self.moments > 0
        sphere = _SHRINKAGE / self.directions.shape[1]
        shortened = (1 - _SHRINKAGE) * self.moments[seen] + sphere
        return self.directions[seen], np.sqrt(sphere / shortened)

    def largest_second_moment(self, factors: FloatArray | None) -> float:
        """Estimated largest second moment of rows that are whitened and scaled to unit length again.

        ``factors`` are those of :meth:`shortened`; None does not whiten.
        """
        moments = self.moments[self.moments > 0]
        kept = moments if factors is None else moments * factors**2
        length = 1 - float(np.sum(moments - kept))
        largest = max(float(kept.max(initial=0.0)), self.floor) / max(length, self.floor, 1e-3)
        return min(1.0, _MARGIN * largest)


def leading_directions(learner: Learner, n_features: int, multiplier: float) -> Learning[LeadingDirections]:
    """Leading directions of rows of at most unit length, by the noisy power method.

    ``multiplier`` is that of one Gaussian release which is as private as all rounds together.

    *Guarantee*: ``_ROUNDS`` Gaussian releases, together as private as one of this multiplier. In each, a row
    adds ``(Q x) x^T``, clipped to length 1; Q has orthonormal rows.

    Source: Hardt and Price 2014, "The noisy power method: a meta algorithm with applications".
    """
    n_rows, count = learner.n_rows, min(_DIRECTIONS, n_features)
    mechanism = GaussianMechanism(multiplier * math.sqrt(_ROUNDS), _ROUNDS, learner.noise)
    Q = np.linalg.qr(learner.noise.normal((n_features, count)))[0].T
    scale = 0.0
    for _ in range(_ROUNDS):
        total, scale = yield from learner.ask(mechanism, _moments_query(Q, learner.dtype))
        _, moments, Q = np.linalg.svd(total / n_rows, full_matrices=False)
    floor = scale / n_rows * (math.sqrt(n_features) + math.sqrt(count))
    return LeadingDirections(Q, np.sqrt(np.maximum(moments**2 - floor**2, 0)), floor)


def _moments_query(points: FloatArray, dtype: np.dtype[Any]) -> PrivateQuery:
    """The query for the sum of :func:`_second_moments`, with products in a dtype."""
    stated = ReleasedArray(_CLIP.sensitivity(dtype))
    return PrivateQuery(points, _second_moments, (stated,), takes_tensors=_CLIP.takes_tensors)


def _second_moments(Z: FloatArray, block: Block) -> Contribution:
    """The products of each row with the directions, scaled so that ``(Q x) x^T`` has length at most 1."""
    clip_rows(Z, block, _CLIP)
    return Z, None


#: Fraction of the squared length of unit rows in a few columns above which a fit warns.
_MOST_OF_A_ROW = 0.5

#: Effective number of columns below which they count as few.
_FEW_COLUMNS = 3.0
#: Number of columns from which a table has many more.
_MANY_COLUMNS = 9


def warn_of_few_columns(energies: FloatArray) -> None:
    """Warn if a few columns make up most of the length of unit rows, by released mean squares."""
    most = len(energies) >= _MANY_COLUMNS and float(energies.sum()) > _MOST_OF_A_ROW
    if most and effective_columns(energies) < _FEW_COLUMNS:
        warn_later(
            "a few columns of X make up nearly all of the length of its rows, so the others hardly count; "
            "scale the columns by public rows (pass X_pub), by known ranges, or by NoisyScaler."
        )


#: Share of mu squared for a second moment.
_MOMENT_SHARE = 0.03
#: Largest noise in it, as a fraction of the mean eigenvalue of rows with half the largest length.
_MOST_NOISE = 0.6

#: Eigenvalues are raised by this fraction of the noise.
_RAISED_BY_NOISE = 0.5
#: They are raised by this fraction of their mean if that is larger.
_RAISED = 0.05


def second_moment_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for :func:`noisy_second_moment`, from public facts; 0 if noise would hide it."""
    noise = math.sqrt(2 * n_features / _MOMENT_SHARE) / (mu * n_rows)
    return _MOMENT_SHARE if noise <= _MOST_NOISE / (4 * n_features) else 0.0


@dataclass(frozen=True)
class SecondMoment:
    """Estimated eigenvalues (n_features,) and eigenvectors (in columns) of the mean of ``x x^T``.

    ``noise`` is the largest eigenvalue of the noise alone.
    """

    values: FloatArray
    vectors: FloatArray
    noise: float

    def preconditioner(self, intercept: float | None) -> tuple[FloatArray, float]:
        """A matrix (d_in, d_in) that preconditions descent, and a bound on the moments of rows under it.

        It is ``a (M + r I)^-1`` with the second moment M. The factor ``a`` keeps the mean square of the
        outputs of noise as without the matrix.
        """
        added = max(_RAISED_BY_NOISE * self.noise, _RAISED * float(self.values.mean()))
        values = self.values if intercept is None else np.append(self.values, intercept**2)
        factors = 1 / (values + added)
        outputs = float(np.sum(values * factors**2))
        factors *= math.sqrt(values.sum() / outputs) if outputs > 0 else added
        n_features = len(self.values)
        matrix = np.diag(factors)
        matrix[:n_features, :n_features] = (self.vectors * factors[:n_features]) @ self.vectors.T
        return matrix, float((factors * (values + self.noise)).max())


def noisy_second_moment(learner: Learner, n_features: int, multiplier: float) -> Learning[SecondMoment]:
    """The second moment of rows of at most unit length and of this width, without an intercept column.

    *Guarantee*: one Gaussian release of this multiplier. A row adds ``x x^T``, clipped to length 1.

    Source: Dwork, Talwar, Thakurta and Zhang 2014, "Analyze Gauss: optimal bounds for privacy-preserving
    principal component analysis".
    """
    query = _moments_query(np.eye(n_features), learner.dtype)  # products with the identity: all entries
    total, scale = yield from learner.ask(multiplier, query)
    values, vectors = np.linalg.eigh((total + total.T) / (2 * learner.n_rows))
    return SecondMoment(np.maximum(values, 0), vectors, scale / learner.n_rows * math.sqrt(2 * n_features))
