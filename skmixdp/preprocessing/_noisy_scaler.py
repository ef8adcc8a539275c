"""A scaler that learns from private rows within a privacy budget."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine.transaction import Transaction, refuse_without_room
from .._fit.stages.columns import released_columns
from .._fit.sums import ComputedTable, PrivateTable, noisy_sum, private_table
from .._utils.process import finite, own_state, warn
from .._utils.validation import FLAG, check_params, passed, rows_to_transform
from ..privacy import LedgerDataset, PrivacyReport
from ..privacy.notebook import CaptionMixin, GuaranteeBoxMixin
from ..privacy.units import Units, units_of
from ._leaks._enclosing import enclosing_pipeline, warn_of_leaks

Array = NDArray[np.floating[Any]]

#: Constants of the weights of a number and its square t in [0, 1], which is released less C. The squared
#: length A t + B (t - C)^2 of the pair is convex in t and 1 at both ends, so at most 1.
_C = math.sqrt(0.5)
_B = 1 / _C**2
_A = 1 - _B * (1 - _C) ** 2


@dataclass(eq=False, repr=False)
class NoisyScaler(OneToOneFeatureMixin, TransformerMixin, CaptionMixin, GuaranteeBoxMixin, BaseEstimator):  # type: ignore[misc]
    """Standardise columns by noisy means and deviations, within a privacy budget.

    Use it if there are no public rows, and if what follows does not scale columns by itself, as the default
    estimators do. Declare bounds of each column from prior knowledge, never from the private rows, and
    entries are clipped to them for the means and deviations. Without bounds, noisy histograms of each column
    tell both. They need more rows: about ``200 sqrt(d) / epsilon`` or more for d columns.

    Parameters
    ----------
    epsilon : float, default=0.1
        Privacy budget of the means and deviations. A later estimator spends its own budget in addition.
    delta : float, default=1e-5
        The delta of the guarantee. Choose it well below 1/n.
    bounds : (low, high) or None, default=None
        Two numbers, or two arrays of shape (n_features,). The noise grows with ``high - low``. If None, noisy
        histograms find the range of each column.
    with_mean : bool, default=True
        Whether to subtract the noisy mean of each column.
    with_std : bool, default=True
        Whether to divide by the noisy standard deviation of each column.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` computes sums without rounding and adds discrete Gaussian noise on the same
        grid. It needs ``skmixdp[discrete]``.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``, such as
        ``PrivacyLedger("ledger.sqlite")["patients"]``. Each fit is charged before anything is released.
    random_state : None, int or RandomState, default=None
        If None, noise comes from a cryptographic generator. A seed makes the fit reproducible and
        NOT private: a NotPrivateWarning and the report say so.

    Attributes
    ----------
    mean_ : array of shape (n_features,) or None
        Noisy means of the columns, clipped to their bounds; None without ``with_mean``.
    scale_ : array of shape (n_features,) or None
        Noisy standard deviations; None without ``with_std``. A column whose variance is below the
        noise is divided by a larger number, set by the noise. Without bounds, it is the larger of a standard
        deviation and an interquartile range over 1.349, or 1 where noise hides it.
    mean_noise_ : array of shape (n_features,) or None
        Standard deviation of the noise in the means. If it is not well below ``scale_``, the
        budget is too small or the bounds are too wide. None without bounds.
    privacy_ : PrivacyReport
        The guarantee of the fit and its assumptions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X was a data frame with string columns.

    See Also
    --------
    PublicOnly : Fits a scaler such as ``StandardScaler`` on public rows, and spends no budget.

    Notes
    -----
    *Guarantee*: the fitted attributes are (epsilon, delta)-differentially private in the rows of ``X``, or
    in the persons of ``groups``. A person contributes the mean of what their rows do, which is no longer.
    :meth:`transform` maps each row by itself. Each fit spends the budget again. This budget and that of
    an estimator after it compose. At full batch, the squares of their ``mu`` add up.

    Let u be the clipped entry of a column, shifted and scaled to [-1, 1], and ``c = sqrt(1/2)``. One
    Gaussian release gives the sums of ``a u`` and of ``b (u^2 - c)`` over the rows, with ``b^2 = 2`` and
    ``a^2 = 2 sqrt(2) - 2``. For t in [0, 1], ``a^2 t + b^2 (t - c)^2`` is at most 1. So a row of d columns
    adds a vector of length at most ``sqrt(d)``, which is the sensitivity. The means have 10% more noise
    than if they were released alone.

    Without bounds, each row adds 1 to one bin of a histogram of each column, so the sensitivity of a
    histogram is ``sqrt(d)``. The first counts magnitudes by powers of two from 2^-63 to 2^63. Two more divide
    the range that was found, if the noise allows it. The spread is the standard deviation within the bins
    that noise does not hide, or the interquartile range over 1.349 if that is larger. Without these two
    histograms, the mean is 0 and the spread is the root mean square. Columns whose spread is not found, such
    as columns that are mostly 0, keep their unit, and a warning names them.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp.preprocessing import NoisyScaler
    >>> ages = np.linspace(20, 60, 5000)[:, np.newaxis]
    >>> scaler = NoisyScaler(epsilon=1.0, bounds=(0, 100)).fit(ages)
    >>> bool(abs(scaler.mean_[0] - 40) < 1 and abs(scaler.scale_[0] - 11.5) < 1)
    True
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"groups": True}

    epsilon: float = 0.1
    delta: float = 1e-5
    _: KW_ONLY
    bounds: Any = None
    with_mean: bool = True
    with_std: bool = True
    neighboring: Any = "add_or_remove_one"
    noise: Any = "float"
    ledger: Any = None
    random_state: Any = None

    def fit(self, X: object, y: object = None, groups: object = None) -> "NoisyScaler":
        """Release noisy means and variances of the clipped columns.

        Parameters
        ----------
        X : array-like, memory map or RowFiles of shape (n_samples, n_features)
            PRIVATE rows. Rows that are not in memory are read in parts.
        y : array-like, default=None
            Ignored.
        groups : array-like of shape (n_samples,) or None, default=None
            Ids of the persons whose rows these are. The guarantee is then for all rows of one person, and
            means and deviations are those of persons, each of whom counts once.

        Returns
        -------
        self : NoisyScaler
            Fitted transformer.

        Raises
        ------
        ValueError, TypeError
            For a parameter outside its range, for bounds that do not match the columns, for discrete noise
            without bounds or with groups, and for rows that are not a finite table. No noise was drawn or
            budget charged by then.
        BudgetExceededError
            If the ledger does not allow the fit; nothing is released or charged. Within a plain ``Pipeline``,
            also if it does not allow the later steps.
        """
        with own_state():
            check_params(self, {"with_mean": (FLAG,), "with_std": (FLAG,)})
            if not (self.with_mean or self.with_std):
                raise ValueError(
                    "with_mean=False and with_std=False leave nothing to scale by; set one of them."
                )
            transaction = Transaction.of_release(
                type(self).__name__,
                epsilon=self.epsilon,
                delta=self.delta,
                neighboring=self.neighboring,
                noise=self.noise,
                random_state=self.random_state,
                ledger=self.ledger,
            )
            table, header, groups = private_table(X, groups)
            transaction.leaks = warn_of_leaks(X, public_rows=False, persons=groups is not None)
            n_rows, n_features = table.shape
            units = units_of(groups, n_rows, self.noise)
            if self.bounds is None and self.noise == "discrete":
                raise ValueError(
                    "noise='discrete' needs bounds, which put entries on a grid; pass bounds=(low, high), or "
                    "noise='float'."
                )
            public: tuple[str, ...] = (
                f"the numbers of {units.plural} and of features, and the features' names",
                passed("shapes", "finiteness", *(() if units.codes is None else ("ids of persons",))),
            )
            bounds = None
            if self.bounds is not None:
                bounds, public = _check_bounds(self.bounds, n_features), (*public, "the bounds (declared)")
            if isinstance(self.ledger, LedgerDataset) and (pipe := enclosing_pipeline()) is not None:
                refuse_without_room(self, pipe, None if groups is not None else n_rows)
            arguments = table, transaction, public, units
            if bounds is None:
                mean, scale, self.mean_noise_, self.privacy_ = self._by_histograms(*arguments)
            else:
                mean, scale, self.mean_noise_, self.privacy_ = self._within(bounds, *arguments)
            self.mean_ = mean if self.with_mean else None
            self.scale_ = scale if self.with_std else None
            validate_data(self, header, skip_check_array=True)
            return self

    def _within(
        self,
        bounds: tuple[Array, Array],
        table: PrivateTable,
        transaction: Transaction,
        public: tuple[str, ...],
        units: Units,
    ) -> tuple[Array, Array | None, Array | None, PrivacyReport]:
        """Mean, deviation, noise and report, from noisy sums of clipped entries and of their squares."""
        center, half = bounds
        n_features, n_terms = table.shape[1], units.n_units
        weight = math.sqrt(_A) if self.with_std else 1.0

        def moments(X: Array) -> Array:
            unit = np.clip((np.clip(X, center - half, center + half) - center) / half, -1, 1)
            return np.hstack([weight * unit, math.sqrt(_B) * (unit**2 - _C)] if self.with_std else [unit])

        contributions = ComputedTable(table, moments, (1 + self.with_std) * n_features)
        noisy, report = noisy_sum(contributions, math.sqrt(n_features), transaction, public, units)
        noise_std = report.noise_multiplier * math.sqrt(n_features) / n_terms
        mean = np.clip(noisy[:n_features] / (weight * n_terms), -1, 1)
        deviation: Array | None = None
        if self.with_std:
            square = _C + noisy[n_features:] / (math.sqrt(_B) * n_terms)
            # A variance below its noise is unknown, so the noise bounds it from below.
            floor = min(noise_std / math.sqrt(_B), 1.0)
            deviation = half * np.sqrt(np.clip(square - mean**2, floor, 1.0))
        return center + half * mean, deviation, half * noise_std / weight, report

    def _by_histograms(
        self, table: PrivateTable, transaction: Transaction, public: tuple[str, ...], units: Units
    ) -> tuple[Array, Array | None, Array | None, PrivacyReport]:
        """Mean, deviation, no noise and report, from noisy histograms of each column."""
        columns, report = released_columns(table, transaction, public, units)
        unknown = np.flatnonzero(columns.spread == 0)
        hidden = ""
        if len(unknown):
            of_all = f"{len(unknown)} of the {len(columns.spread)} columns"
            hidden = f"the spread of {of_all}, such as column {unknown[0]}"
        elif self.with_mean and not columns.center.any():
            hidden = "the centres of all columns"
        if hidden:
            warn(
                f"noise hides {hidden}, so they stay as they are in that; pass bounds, more rows or a larger "
                "epsilon."
            )
        return columns.center, np.where(columns.spread > 0, columns.spread, 1.0), None, report

    @own_state()
    def transform(self, X: object) -> Array:
        """Rows (n_samples, n_features), shifted and scaled; arrays of float32 stay so.

        Numbers too large for their type become its largest, so that rows that ``fit`` took stay finite.
        """
        return self._changed(X, mean_=np.subtract, scale_=np.divide)

    @own_state()
    def inverse_transform(self, X: object) -> Array:
        """Undo :meth:`transform` on rows (n_samples, n_features)."""
        return self._changed(X, scale_=np.multiply, mean_=np.add)

    def _changed(self, X: object, **changes: np.ufunc) -> Array:
        """Rows after functions of them and of fitted attributes that are not None, in this order."""
        check_is_fitted(self)
        rows = rows_to_transform(self, X)
        for name, change in changes.items():
            if (numbers := getattr(self, name)) is not None:
                rows = change(rows, numbers.astype(rows.dtype))
        return finite(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_bounds(bounds: Any, n_features: int) -> tuple[Array, Array]:
    """Centre and half width of each column's range, both (n_features,)."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (n_features,)) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds={bounds!r} must be a pair (low, high) of numbers or of arrays with one number for each "
            f"of the {n_features} features."
        ) from None
    # Halved first, since the difference of finite bounds may be infinite.
    center, half = low / 2 + high / 2, high / 2 - low / 2
    if not (np.all(np.isfinite(half)) and np.all(half > 0)):
        column = int(np.argmin(np.isfinite(half) & (half > 0)))
        raise ValueError(
            f"bounds of feature {column} are ({low[column]:g}, {high[column]:g}); pass finite ones with "
            "low < high."
        )
    return center, half
