"""The additive model of rates of counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._fit.stage import Fit
from .._linear.arrays import FloatArray
from .._rows.row_map import UNCHANGED, RowMap, TargetMap
from .._utils.validation import Allowed
from ..estimators._base import EstimatorProcedure
from ..inference._count_regressor import CUT, MixedDPPoissonRegressor, warn_of_units
from ..privacy.accounting.budgets import Budget
from ._basis import Basis, Column
from ._effects import Effects
from ._estimators import AdditiveHead

#: The length up to which rows count in full, as a multiple of the squared mean one. Chosen on six tables.
_LONG = 1.5
#: Smallest mean square of an entry, such as that of missing values that no quantile shows.
_LEAST_SQUARE = 1e-3


@dataclass(eq=False, repr=False)
class AdditiveDPPoissonRegressor(AdditiveHead, MixedDPPoissonRegressor):
    """Differentially private additive model for counts: a curve for each numeric column.

    The log of the rate is a sum of one function of each column. It is to
    :class:`~skmixdp.MixedDPPoissonRegressor` what :class:`~skmixdp.AdditiveDPRegressor` is to
    :class:`~skmixdp.MixedDPRidge`: the same steps on a basis of each column. Where the number of rows times
    mu is below 1,000, or noise hides the knots, it has no curves, unless ``n_knots`` is given.

    Parameters
    ----------
    epsilon, delta, neighboring, noise, max_sample_weight
        As in :class:`~skmixdp.MixedDPPoissonRegressor`.
    n_knots : int or "auto", default="auto"
        Number of pieces of a curve, 2 to 64. ``"auto"`` is half of that of
        :class:`~skmixdp.AdditiveDPClassifier`, and 3 at least, since curves of counts get more noise.
    linear, scale
        As in :class:`~skmixdp.AdditiveDPClassifier`.
    interactions : False or list of pairs of names or numbers of columns, default=False
        As in :class:`~skmixdp.AdditiveDPClassifier`, but for ``"auto"``.
    ledger, random_state
        As in :class:`~skmixdp.MixedDPPoissonRegressor`.

    Attributes
    ----------
    knots_, importances_, interactions_
        As in :class:`~skmixdp.AdditiveDPClassifier`.
    effects_ : list of n_columns arrays of shape (n_knots, 1)
        What each column adds to the log of the rate at its knots. Exponentials of differences are rate
        ratios.
    coef_ : array of shape (width,)
        Coefficients of the basis.
    intercept_, privacy_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`~skmixdp.MixedDPPoissonRegressor`.

    Notes
    -----
    *Guarantee*: that of :class:`~skmixdp.MixedDPPoissonRegressor`, with the histograms of
    :class:`~skmixdp.AdditiveDPClassifier`. A row x of the basis and a constant has weight
    ``min(1, R^2 / |x|^2)``, where R^2 is 1.5 times the mean square length of rows that follow from public or
    released quantiles. R takes the place of ``sqrt(d + 1)`` in all sensitivities.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp import AdditiveDPPoissonRegressor
    >>> from sklearn.datasets import make_regression
    >>> X, _ = make_regression(20_000, 3, random_state=0)
    >>> years = np.linspace(0.1, 2, 20_000)
    >>> claims = np.floor(years * np.exp(np.abs(X[:, 0]) - 1) + np.arange(20_000) * 0.618 % 1)
    >>> reg = AdditiveDPPoissonRegressor(epsilon=1.0).fit(X, claims, exposure=years)
    >>> bool(reg.score(X, claims, exposure=years) > 0.2)
    True
    """

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **MixedDPPoissonRegressor._allowed,
        **AdditiveHead._additive,
    }
    _coarseness: ClassVar[int] = 2
    _saved: ClassVar[tuple[str, ...]] = (*MixedDPPoissonRegressor._saved, "_noise")

    def _check_parameters(self) -> Budget:
        if isinstance(self.interactions, str) and self.interactions == "auto":
            raise ValueError("interactions='auto' is not for counts; pass False, or a list of pairs.")
        return super()._check_parameters()

    def _curved(self, fit: Fit) -> EstimatorProcedure:
        return self._measured(self._released(fit))

    def _linear(self, fit: Fit) -> Fit:
        fit = super()._linear(fit)
        warn_of_units(fit)
        return fit

    def _on_basis(self, fit: Fit, columns: Sequence[Column]) -> Fit:
        basis = Basis.of(columns, CUT, self._pairs)
        nothing = np.zeros((1, basis.width))
        usual = Effects(replace(UNCHANGED, basis=basis), nothing, nothing[0, :1], nothing, None)
        squares = (basis(usual.rows) ** 2).mean(axis=0)
        return self._on(fit, basis).mapped(moments=_LONG * np.maximum(squares, _LEAST_SQUARE))

    def _fitted(self, fit: Fit) -> dict[str, Any]:
        assert fit.head is not None
        return super()._fitted(fit) | {"_noise": fit.head.state}

    def _attributes_at(self, W: FloatArray, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        row_map = replace(row_map, basis=self._basis)
        return MixedDPPoissonRegressor._attributes_at(self, W, row_map, target_map)
