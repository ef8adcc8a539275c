"""Scores and confusions on private rows, from noisy sums."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._engine import GaussianMechanism, Transaction, released
from .._fit.statistics import Learner, all_right, counts_query
from .._linear import predicted_classes
from .._rows import Block, PersonTable, check_private_rows, check_targets, groups_of, labels_of
from .._utils.process import own_state
from .._utils.validation import POSITIVE, check
from ..privacy import epsilon_of_event
from ..privacy.accounting.budgets import Budget, warn_of_epsilon
from ..privacy.ledger._ledger import LEDGER
from ..privacy.noise import seed_of, warn_of_seed
from ..privacy.units import units_of

Array = NDArray[Any]

#: Added to seeds of counts, so that a count never has the noise of a fit: seeds of fits are smaller.
_SEEDS_OF_COUNTS = 2**64

#: Absolute errors are cut at this many scales of the targets.
_CUT_IN_SCALES = 2.0


class PrivateSumsMixin:
    """Mixin that releases noisy sums of the scores of private rows under a linear head."""

    def _noisy_sums(
        self: Any, X: object, y: Any, budget: Budget, scores: Callable[[Array, Block], Array], groups: Any
    ) -> tuple[Array, int]:
        """Noisy sums (n_sums,) of scores of the rows, or of persons' mean scores, and the number of terms.

        Scores are in [0, 1], and a row has a positive one in one sum at most. ``groups`` are ids of persons.
        """
        with own_state():
            check_is_fitted(self)
            y = labels_of(X, y)
            table = check_private_rows(self, X, minimum=1, reset=False)
            targets = self._scored_targets(y, table.shape[0])
            if (groups := groups_of(X, groups)) is not None:
                table = PersonTable(table, *units_of(groups, table.shape[0], self.noise))
            n_rows = table.shape[0]
            head = self._scored_head()
            warn_of_seed(self.random_state)
            seed = seed_of(self.random_state)
            random_state = None if seed is None else _SEEDS_OF_COUNTS + seed
            transaction = Transaction(budget, type(self).__name__, self.ledger, random_state)
            noise = transaction.noise
            row_map = self._row_map
            if row_map.basis is not None:
                table, row_map = table.transformed(row_map.basis), replace(row_map, basis=None)
            # Rows that are not in memory are read and checked here, before the charge.
            rows = table.private_rows(targets, row_map, self._products_dtype(), exact=noise.needs_grid)
            if budget.epsilon is None:
                warn_of_epsilon(epsilon_of_event(budget.whole, budget.delta, self.neighboring))
            learner = Learner(n_rows, None, noise, self._products_dtype())
            mechanism = GaussianMechanism(budget.whole.noise_multiplier, 1, noise)
            asked = learner.ask(mechanism, counts_query(head, scores))
            sums, _ = released(transaction, rows, table.unit, asked)
            return sums, n_rows

    def _scored_head(self: Any) -> Array:
        """The coefficients as a head (k, d_in) for mapped rows."""
        if self._row_map.intercept_value is None:
            return np.asarray(self.coef_)
        return np.column_stack([self.coef_, self.intercept_ / self._row_map.intercept_value])


class PrivateScoreMixin(PrivateSumsMixin):
    """Mixin that adds noisy scores on private rows to a classifier with a linear head."""

    def private_score(
        self: Any,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> float:
        """Accuracy on PRIVATE rows, from a noisy count of correctly classified rows.

        Of rows with several labels, those count whose labels are all right, as in :meth:`score`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows, which may differ from those of the fit.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or None
            Labels of the rows. If None, the labels in the files of ``X`` are used.
        groups : array-like of shape (n_samples,) or None, default=None
            Ids of the persons whose rows these are. The guarantee is then for all rows of one person, and the
            score is the mean over persons of the mean over their rows.
        noise_multiplier : float or None, default=None
            Standard deviation of the noise, in rows or persons. One of them changes the count by at most 1.
        epsilon : float or None, default=None
            Privacy budget of the count, in place of ``noise_multiplier``.
        delta : float or None, default=None
            The delta that goes with ``epsilon``; None is that of the estimator.

        Returns
        -------
        float
            The noisy count divided by the number of rows or persons; it may lie outside [0, 1].

        Raises
        ------
        ValueError
            For bad input, before any noise is drawn or budget charged.

        Notes
        -----
        *Guarantee*: one Gaussian release of this multiplier, ``1 / noise_multiplier``-Gaussian-DP, in
        addition to the budget of the fit. ``ledger``, ``neighboring``, ``noise`` and ``random_state``
        are those of the estimator. The number of rows, or that of persons, is treated as public.
        """
        flags = all_right if self.multilabel_ else lambda Z, block: block.is_correct(Z)
        budget = budget_of(self, noise_multiplier, epsilon, delta)
        (count,), n_rows = self._noisy_sums(X, y, budget, flags, groups)
        return float(count / n_rows)

    def private_confusion(
        self: Any,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> Array:
        """Confusion matrix on PRIVATE rows, from noisy counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows, which may differ from those of the fit.
        y : array-like of shape (n_samples,) or None
            As for :meth:`private_score`.
        groups : array-like of shape (n_samples,) or None, default=None
            As for :meth:`private_score`: a person adds 1 in all, and to each count their share of rows in it.
        noise_multiplier : float or None, default=None
            Standard deviation of the noise in each count, in rows or persons. One of them adds 1 in all.
        epsilon, delta : float or None, default=None
            As for :meth:`private_score`, for the whole matrix.

        Returns
        -------
        array of shape (n_classes, n_classes)
            Noisy numbers of rows of each class (first axis) that are predicted as each class (second axis).
            They may be negative. :class:`~skmixdp.inspection.ConfusionDisplay` plots them.

        Raises
        ------
        ValueError
            For bad input, before any noise is drawn or budget charged.

        Notes
        -----
        *Guarantee*: as that of :meth:`private_score`, for the whole matrix.
        """
        budget = budget_of(self, noise_multiplier, epsilon, delta)
        check_is_fitted(self)
        if self.multilabel_:
            raise ValueError(
                "private_confusion needs one class per row, and this classifier was fitted to several labels "
                "per row; use private_score."
            )
        k = len(self.classes_)
        counts, _ = self._noisy_sums(X, y, budget, partial(_in_cell, n_classes=k), groups)
        return np.asarray(counts.reshape(k, k))

    def _scored_targets(self: Any, y: Any, n_rows: int) -> Array:
        return np.asarray(self._encoded(y, n_rows))


class PrivateErrorMixin(PrivateSumsMixin):
    """Mixin that adds noisy scores on private rows to a regression with a linear head."""

    def private_score(
        self: Any,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> float:
        """Closeness of predictions on PRIVATE rows: 1 minus a noisy mean of cut absolute errors.

        An error is divided by twice the scale of the targets in the fit, and cut at 1. So a perfect
        prediction scores 1, and one that is off by twice the scale or more scores 0. A constant near the mean
        of normal targets scores about 0.6.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows, which may differ from those of the fit.
        y : array-like of shape (n_samples,) or (n_samples, k), or None
            Targets of the rows, or None for those in the files of ``X``. Scores of several are averaged.
        groups : array-like of shape (n_samples,) or None, default=None
            Ids of the persons whose rows these are. The guarantee is then for all rows of one person, and the
            score is the mean over persons of the mean over their rows.
        noise_multiplier : float or None, default=None
            Standard deviation of the noise in the sum. One row or person changes the sum by at most 1.
        epsilon : float or None, default=None
            Privacy budget of the sum, in place of ``noise_multiplier``.
        delta : float or None, default=None
            The delta that goes with ``epsilon``; None is that of the estimator.

        Returns
        -------
        float
            The noisy sum divided by the number of rows or persons; it may lie outside [0, 1].

        Raises
        ------
        ValueError
            For bad input, before any noise is drawn or budget charged.

        Notes
        -----
        *Guarantee*: one Gaussian release of this multiplier, ``1 / noise_multiplier``-Gaussian-DP, in
        addition to the budget of the fit. ``ledger``, ``neighboring``, ``noise`` and ``random_state``
        are those of the estimator. The number of rows, or that of persons, is treated as public. So is
        ``target_scale``, or the scale of the public targets if it is None.
        """
        budget = budget_of(self, noise_multiplier, epsilon, delta)
        (total,), n_rows = self._noisy_sums(X, y, budget, _closeness, groups)
        return float(total / n_rows)

    def _scored_targets(self: Any, y: Any, n_rows: int) -> Array:
        targets = check_targets(y, "y", n_rows, "X")
        self._check_targets_named(y)
        if targets.shape[1] != len(self._target_map.scale):
            raise ValueError(
                f"y has {targets.shape[1]} targets per row and the fit had {len(self._target_map.scale)}; "
                "pass the same ones."
            )
        return np.asarray(self._target_map(targets, self._products_dtype()))

    def _scored_head(self: Any) -> Array:
        scale = self._target_map.scale[:, np.newaxis]
        coef = np.reshape(self.coef_, (len(scale), -1)) / scale
        if self._row_map.intercept_value is None:
            return np.asarray(coef)
        intercept = (np.reshape(self.intercept_, -1) - self._target_map.center) / scale[:, 0]
        return np.column_stack([coef, intercept / self._row_map.intercept_value])


def budget_of(estimator: BaseEstimator, noise_multiplier: Any, epsilon: Any, delta: Any) -> Budget:
    """The budget of one release, from its epsilon and delta or from its noise multiplier."""
    if (noise_multiplier is None) == (epsilon is None):
        raise ValueError(
            f"noise_multiplier={noise_multiplier!r} and epsilon={epsilon!r} must be one number and one None; "
            "pass epsilon as the budget of the release, or noise_multiplier as its noise in rows or persons."
        )
    check("ledger", estimator.ledger, None, LEDGER)
    if epsilon is None:
        check("delta", delta, None, remedy="it goes with epsilon")
        remedy = "it is the standard deviation of a count's noise, in rows"
        check("noise_multiplier", noise_multiplier, POSITIVE, remedy=remedy)
    return Budget(
        epsilon,
        estimator.delta if delta is None else delta,
        1 if epsilon is None else None,
        noise_multiplier,
        estimator.neighboring,
        estimator.noise,
    )


def _in_cell(Z: Array, block: Block, n_classes: int) -> Array:
    """One column for each pair of a class and a predicted class, 1 in the cell of the row."""
    cells = np.asarray(block.y, dtype=np.intp) * n_classes + predicted_classes(Z)
    return np.asarray(cells[:, np.newaxis] == np.arange(n_classes**2))


def _closeness(Z: Array, block: Block) -> Array:
    """Scores (rows, 1) in [0, 1] of scaled predictions ``Z`` (rows, k); 0 for NaN."""
    errors = np.abs(np.asarray(Z, dtype=np.float64) - np.asarray(block.y, dtype=np.float64)) / _CUT_IN_SCALES
    # Unlike np.clip, this replaces NaN.
    return np.asarray(1 - np.fmin(errors, 1.0).mean(axis=1, keepdims=True))
