"""Accuracy and confusions on private rows, from noisy counts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._engine import OpenRows, charge_event, drive, of_rows
from .._learning.comparison import is_correct
from .._learning.geometry import Learner, noisy_counts
from .._linear import predicted_classes
from .._rows import Block
from .._utils.validation import POSITIVE, check
from ..privacy import GaussianEvent, NoiseSource, recorded_outcome
from ..privacy.noise import noise_source, seed_of, warn_of_seed
from ._checks import check_labels, check_private_rows, given_labels
from ._classifier import encode_labels

Array = NDArray[Any]

#: Added to the seeds of counts. Seeds of fits are smaller, so a count never reuses the noise of a fit.
_SEEDS_OF_COUNTS = 2**64


class PrivateScoreMixin:
    """Mixin that adds noisy scores on private rows to a classifier with a linear head."""

    def private_score(self: Any, X: Any, y: Any, *, noise_multiplier: float) -> float:
        """Accuracy on PRIVATE rows, from a noisy count of correctly classified rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows, which may differ from those of the fit.
        y : array-like of shape (n_samples,)
            Labels of the rows.
        noise_multiplier : float
            Standard deviation of the noise, in rows. One row changes the count by at most 1.

        Returns
        -------
        float
            The noisy count divided by the number of rows; it may lie outside [0, 1].

        Raises
        ------
        ValueError
            For bad input, before any noise is drawn or budget charged.

        Notes
        -----
        *Guarantee*: one Gaussian release of this multiplier, ``1 / noise_multiplier``-Gaussian-DP, in
        addition to the budget of the fit. ``ledger``, ``neighboring``, ``noise`` and ``random_state``
        are those of the estimator. The number of rows is treated as public.
        """
        (count,), n_rows = self._noisy_counts(X, y, float_multiplier(noise_multiplier), is_correct, 1)
        return float(count / n_rows)

    def private_confusion(self: Any, X: Any, y: Any, *, noise_multiplier: float) -> Array:
        """Confusion matrix on PRIVATE rows, from noisy counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            PRIVATE rows, which may differ from those of the fit.
        y : array-like of shape (n_samples,)
            Labels of the rows.
        noise_multiplier : float
            Standard deviation of the noise in each count, in rows. One row changes one count by 1.

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
        k = len(self.classes_)
        flags = partial(_in_cell, n_classes=k)
        counts, _ = self._noisy_counts(X, y, float_multiplier(noise_multiplier), flags, k * k)
        return np.asarray(counts.reshape(k, k))

    def _noisy_counts(
        self: Any,
        X: Any,
        y: Any,
        noise_multiplier: float,
        flags: Callable[[Array, Block], Array],
        n_counts: int,
    ) -> tuple[Array, int]:
        """Noisy sums (n_counts,) of flags of the rows, of which a row has at most one, and their number."""
        check_is_fitted(self)
        y = given_labels(X, y)
        table = check_private_rows(self, X, minimum=1, reset=False)
        n_rows = table.shape[0]
        labels = encode_labels(check_labels(y, "y", n_rows, "X"), self.classes_, "y", private=True)
        head = self.coef_
        if self._row_map.intercept_value is not None:
            head = np.column_stack([self.coef_, self.intercept_ / self._row_map.intercept_value])
        warn_of_seed(self.random_state)
        noise = noise_source(self.noise, self.random_state)
        if noise.kind == "seeded":
            noise = NoiseSource(_SEEDS_OF_COUNTS + (seed_of(self.random_state) or 0))
        # This reads and checks rows that are not in memory, so do it before the charge.
        with np.errstate(all="ignore"):  # the user's own state could tell of tiny or huge rows
            rows = table.private_rows(labels, self._row_map, self._products_dtype(), exact=noise.needs_grid)
        event = GaussianEvent(noise_multiplier, 1, noise=self.noise)
        charge = charge_event(
            self.ledger,
            event,
            neighboring=self.neighboring,
            description=f"{type(self).__name__}, {n_rows} rows",
            private=noise.kind != "seeded",
        )

        learner = Learner(n_rows, None, noise, self._products_dtype())
        with recorded_outcome(self.ledger, charge):
            counts = of_rows(OpenRows(rows), noisy_counts(learner, head, flags, noise_multiplier))
            return drive([counts])[0], n_rows


def float_multiplier(noise_multiplier: Any) -> float:
    """The checked standard deviation of the noise in counts."""
    remedy = "it is the standard deviation of a count's noise, in rows"
    check("noise_multiplier", noise_multiplier, POSITIVE, remedy=remedy)
    return float(noise_multiplier)


def _in_cell(Z: Array, block: Block, n_classes: int) -> Array:
    """One column for each pair of a class and a predicted class."""
    cells = np.asarray(block.y, dtype=np.intp) * n_classes + predicted_classes(Z)
    return np.asarray(cells[:, np.newaxis] == np.arange(n_classes**2))
