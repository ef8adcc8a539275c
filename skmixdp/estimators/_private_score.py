"""Scores and confusions on private rows, from noisy sums and histograms of what a head predicts for them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Transaction
from .._fit.predictions import predicted
from .._fit.sums import noisy_histograms, noisy_sum, poisson_deviances
from .._linear.losses import predicted_classes
from .._rows.table import check_counts, check_exposure, check_targets
from .._utils.models import predicts_rates
from .._utils.process import own_state
from .._utils.validation import POSITIVE, check
from ..preprocessing._leaks._enclosing import warn_of_leaks
from ..privacy.noise import seed_of
from ._problem import check_width

Array = NDArray[Any]

#: Added to seeds of counts, so that a count never has the noise of a fit: seeds of fits are smaller.
_SEEDS_OF_COUNTS = 2**64

#: Absolute errors are cut at this many scales of the targets.
_CUT_IN_SCALES = 2.0

#: Deviances of counts are cut at this.
_LARGEST_DEVIANCE = 8.0


class PrivateScoreMixin:
    """Mixin that adds noisy scores on private rows to a linear head."""

    def private_score(
        self: Any,
        X: object,
        y: object = None,
        *,
        exposure: object = None,
        groups: object = None,
        noise_multiplier: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> float:
        """A score of the predictions for PRIVATE rows, from one noisy sum: 1 if all are right.

        The score of a classifier is its accuracy. Of rows with several labels, those count whose labels are
        all right, as in :meth:`score`. The score of a regression is 1 minus the mean of its absolute errors,
        divided by twice the scale of the targets in the fit and cut at 1. So predictions that are off by
        twice the scale or more score 0, and a constant near the mean of normal targets about 0.6. The score
        of counts is 1 minus the mean Poisson deviance, cut at 8 and divided by 8: about 0.87 for right means
        of 1 or more. :func:`~skmixdp.model_selection.private_evaluation` has their D2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows, which may differ from those of the fit.
        y : array-like of shape (n_samples,) or (n_samples, k), or None
            Labels or targets of the rows, or None for those in the files of ``X``. Scores of several targets
            are averaged.
        exposure : array-like of shape (n_samples,) or None, default=None
            Exposures of counts, for ``MixedDPPoissonRegressor`` alone. PRIVATE. None is 1 for each row.
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
        with own_state():
            if not predicts_rates(self):
                check("exposure", exposure, None, remedy="it is for counts")
            transaction = _transaction_of(self, noise_multiplier, epsilon, delta, groups is not None)
            outputs, y, units = predicted(self, self._scored_output, X, y, groups, self.noise)
            scores = np.asarray(self._scores(outputs, y, exposure), np.float64)[:, np.newaxis]
            total, _ = noisy_sum(scores, 1.0, transaction, (), units)
            return float(total[0] / units.n_units)


class PrivateConfusionMixin(PrivateScoreMixin):
    """Mixin that adds noisy scores and confusions on private rows to a classifier with a linear head."""

    _scored_output = "decision_function"

    def private_confusion(
        self: Any,
        X: object,
        y: object = None,
        *,
        groups: object = None,
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
        with own_state():
            transaction = _transaction_of(self, noise_multiplier, epsilon, delta, groups is not None)
            if self.multilabel_:
                raise ValueError(
                    "private_confusion needs one class per row, and this classifier was fitted to several "
                    "labels per row; use private_score."
                )
            outputs, y, units = predicted(self, self._scored_output, X, y, groups, self.noise)
            k = len(self.classes_)
            cells = self._encoded(y, len(outputs)) * k + predicted_classes(outputs.reshape(len(outputs), -1))
            counts, *_ = noisy_histograms(cells[:, np.newaxis], k**2, transaction, (), units)
            return counts.reshape(k, k)

    def _scores(self: Any, logits: Array, y: object, exposure: object) -> Array:
        """Whether the predictions of rows are right."""
        answers = self._encoded(y, len(logits))
        if self.multilabel_:
            return np.asarray(((logits > 0) == (answers == 1)).all(axis=1))
        return np.asarray(predicted_classes(logits.reshape(len(logits), -1)) == answers)


class PrivateErrorMixin(PrivateScoreMixin):
    """Mixin that adds noisy scores on private rows to a regression with a linear head."""

    _scored_output = "predict"

    def _scores(self: Any, predictions: Array, y: object, exposure: object) -> Array:
        """Closeness in [0, 1] of the predictions for rows to their targets."""
        targets, scale = check_targets(y, "y", len(predictions), "X"), self._target_map.scale
        self._check_targets_named(y)
        check_width(targets, len(scale), "targets", "the fit had")
        errors = np.abs(predictions.reshape(targets.shape) - targets) / (_CUT_IN_SCALES * scale)
        return np.asarray(1 - np.fmin(errors, 1.0).mean(axis=1))


class PrivateDevianceMixin(PrivateScoreMixin):
    """Mixin that adds noisy scores on private rows to a regression of counts."""

    _scored_output = "predict"

    def _scores(self: Any, rates: Array, y: object, exposure: object) -> Array:
        """Closeness in [0, 1] of predicted counts."""
        counts = check_counts(y, "y", len(rates), "X")
        exposures = check_exposure(exposure, "exposure", len(rates), "X")
        deviances = poisson_deviances(counts, exposures * rates)
        return np.asarray(1 - np.minimum(deviances, _LARGEST_DEVIANCE) / _LARGEST_DEVIANCE)


def _transaction_of(
    estimator: Any, noise_multiplier: Any, epsilon: Any, delta: Any, persons: bool
) -> Transaction:
    """The transaction of one release, from its epsilon and delta or from its noise multiplier."""
    if (noise_multiplier is None) == (epsilon is None):
        raise ValueError(
            f"noise_multiplier={noise_multiplier!r} and epsilon={epsilon!r} must be one number and one None; "
            "pass epsilon as the budget of the release, or noise_multiplier as its noise in rows or persons."
        )
    if epsilon is None:
        check("delta", delta, None, remedy="it goes with epsilon")
        check("noise_multiplier", noise_multiplier, POSITIVE, remedy="it is the noise, in rows or persons")
    transaction = Transaction.of_release(
        type(estimator).__name__,
        epsilon=epsilon,
        delta=estimator.delta if delta is None else delta,
        noise_multiplier=noise_multiplier,
        neighboring=estimator.neighboring,
        noise=estimator.noise,
        random_state=estimator.random_state,
        ledger=estimator.ledger,
    )
    if (seed := seed_of(estimator.random_state)) is not None:
        transaction.random_state = _SEEDS_OF_COUNTS + seed
    transaction.leaks = warn_of_leaks(None, public_rows=False, persons=persons)
    return transaction
