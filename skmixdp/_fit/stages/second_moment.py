"""The second moment of rows of standardised columns, which preconditions descent."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._engine import Procedure
from ...components.protocols import FloatArray
from ..mapping import clips
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning
from .directions import moments_query

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
    query = moments_query(np.eye(n_features), learner.dtype)  # products with the identity: all entries
    total, scale = yield from learner.ask(multiplier, query)
    values, vectors = np.linalg.eigh((total + total.T) / (2 * learner.n_rows))
    return SecondMoment(np.maximum(values, 0), vectors, scale / learner.n_rows * math.sqrt(2 * n_features))


class Preconditioner(Stage):
    """A matrix for directions of descent, and how long steps may be with it."""

    name = "second moment"
    limits = (_MOMENT_SHARE, _MOMENT_SHARE)
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        columns = fit.columns
        bare = columns is None or fit.row_map.unit_first
        if bare or not (clips(fit, columns) and fit.preconditions):
            return None
        return second_moment_share(fit.mu, fit.n_rows, fit.data.n_features) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        constant = fit.row_map.intercept_value
        asked = noisy_second_moment(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        moment = yield from fit.ask(asked, replace(fit.row_map, intercept_value=None))
        matrix, largest = moment.preconditioner(constant)
        return fit.spent(self, price).mapped(second_moment=largest, preconditioner=matrix)
