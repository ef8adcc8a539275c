"""The mean of rows at unit length, where public rows determine it badly."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._engine import Procedure, bind_rows
from ..._rows import Block, Columns, Contribution, RowMap, effective_columns
from ..._utils.process import warn_later
from ...components import L2Clip
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..mapping import clips
from ..rows import MappedRows, PublicRows, variance_of_mean
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning, kept_part

#: The clip enforces that rows have at most unit length.
UNIT_CLIP = L2Clip(1.0)

#: Target for the length of the noise in the mean, for unit rows.
_MEAN_ERROR = 0.15
#: Smallest share of mu squared for the mean.
LEAST_SHARE = 0.01
#: Largest share of mu squared, each for the mean and for the directions.
MOST_SHARE = 0.05

#: Number of directions, and rounds of the power method that finds them.
DIRECTIONS, ROUNDS = 20, 3

#: Largest noise at which dominant columns can be seen: its squared length in a mean of unit rows, or its
#: second moment.
CLEAR_NOISE = 0.25

#: The mean is learned from private rows if that of public rows has more than this many times its variance.
_TIMES_AS_GOOD = 2.0

#: Fraction of the squared length of unit rows in a few columns above which a fit warns.
_MOST_OF_A_ROW = 0.5
#: Effective number of columns below which they count as few.
_FEW_COLUMNS = 3.0
#: Number of columns from which a table has many more.
_MANY_COLUMNS = 9


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
        mean = min(max(wanted, LEAST_SHARE), MOST_SHARE)
        directions = min(2 * mean, MOST_SHARE)
        scale = math.sqrt(ROUNDS / directions) / (mu * n_rows)
        floor = scale * (math.sqrt(n_features) + math.sqrt(min(DIRECTIONS, n_features)))
        return cls(mean, directions, floor)


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
        if len(self.value) * self.variance > CLEAR_NOISE:
            return np.zeros_like(self.value)
        return np.asarray(np.maximum(self.value**2 - self.variance, 0))

    def combined(self, public_mean: FloatArray, public_variance: float) -> FloatArray:
        """The average with the mean of public rows, weighted by the inverse of their total variances."""
        variance = len(self.value) * self.variance
        weight = public_variance / (variance + public_variance) if variance + public_variance > 0 else 1.0
        return weight * self.value + (1 - weight) * public_mean


def noisy_mean(learner: Learner, n_features: int, multiplier: float) -> Learning[NoisyMean]:
    """The noisy mean of rows of at most unit length and of this width, without an intercept column.

    ``multiplier`` is the standard deviation of the noise in the sum, in units of its sensitivity 1.

    *Guarantee*: one Gaussian release of this multiplier. Rows longer than 1 are clipped.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        weights = UNIT_CLIP.weights(block.norms, lambda: block.max_abs)
        # Weights in double precision would make the sum convert all rows.
        return weights.astype(Z.dtype)[:, None], None

    stated = ReleasedArray(UNIT_CLIP.sensitivity(learner.dtype))
    query = PrivateQuery(np.zeros((0, n_features)), contribute, (stated,))
    total, scale = yield from learner.ask(multiplier, query)
    return NoisyMean(total[0] / learner.n_rows, (scale / learner.n_rows) ** 2)


def warn_of_few_columns(energies: FloatArray) -> None:
    """Warn if a few columns make up most of the length of unit rows, by released mean squares."""
    most = len(energies) >= _MANY_COLUMNS and float(energies.sum()) > _MOST_OF_A_ROW
    if most and effective_columns(energies) < _FEW_COLUMNS:
        warn_later(
            "a few columns of X make up nearly all of the length of its rows, so the others hardly count; "
            "declare typical values of columns (pass scale), which costs nothing, or scale them by public "
            "rows (pass X_pub), by known ranges, or by NoisyScaler."
        )


class Mean(Stage):
    """The centre of rows at unit length: a noisy mean, averaged with that of public rows."""

    name = "mean"
    limits = (LEAST_SHARE, MOST_SHARE)
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        if not fit.row_map.unit_first or fit.settings.known_map is not None:
            return None
        return Shares.of(fit.mu, fit.n_rows, fit.data.n_features).mean

    def rows(self, fit: Fit) -> MappedRows:
        return fit.data.private.mapped(fit.row_map)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        queries = noisy_mean(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        mean = yield from bind_rows(self.rows(fit), queries)
        warn_of_few_columns(mean.energies)
        unit_pub = RowMap(None, True, None, columns=fit.columns)(fit.public.known, np.float64)
        center = mean.shrunk()
        if len(unit_pub) > 1:  # a variance needs two rows
            center = mean.combined(unit_pub.mean(axis=0), variance_of_mean(unit_pub))
        return fit.spent(self, price).mapped(row_map=replace(fit.row_map, mean=center))


def learns_mean(fit: Fit, public: PublicRows, columns: Columns | None) -> bool:
    """Whether to learn the centre and the leading directions of the rows from private rows."""
    settings = fit.settings
    if settings.known_map is not None:
        return False
    possible = {
        "center": settings.rows.center,
        "norm": settings.rows.norm in ("unit", "auto"),
        "batch_size": settings.batch_size is None,
        "n_steps and noise_multiplier": fit.budget.is_divisible,
        "init": not isinstance(settings.init, np.ndarray),
    }
    if settings.rows.geometry == "auto":
        keeps_lengths = clips(fit, columns) and not (settings.rows.whiten is True and not len(public.known))
        wanted = settings.is_default and not (fit.data.loss.quadratic or keeps_lengths)
        if not (wanted and all(possible.values())):
            return False
        if not len(public.known):
            return True
        n_features = fit.data.n_features
        share = Shares.of(fit.mu, fit.n_rows, n_features).mean
        noise = n_features / (fit.n_rows * fit.mu) ** 2 / share
        return public.error_of_mean > _TIMES_AS_GOOD * noise
    if settings.rows.geometry and not all(possible.values()):
        obstacle = next(name for name, fits in possible.items() if not fits)
        raise ValueError(
            f"rows=RowMapping(geometry=True) cannot be combined with the given {obstacle}: it divides "
            "epsilon among full-batch releases of centred unit rows; leave that parameter at its default, or "
            "pass geometry=False."
        )
    return settings.rows.geometry
