"""Weights of rows and of classes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import noisy_counts
from .._linear import WeightedLoss, with_weights
from .._rowmap import RowMap
from .._rows import PrivateRows, from_device
from .._validation import CONVERSION_ERRORS, NON_NEGATIVE, listed
from ..components.class_shares import class_shares, count_share, in_class
from ._fit import PreparedFit
from ._geometry import HeadInputs, Stage

Array = NDArray[Any]


def check_sample_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Weights of the private rows as a float64 array (n_rows,); None stays None.

    Raises
    ------
    ValueError
        Unless there is one finite, non-negative number for each row, not all of them zero. No message quotes
        a weight.
    """
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(from_device(sample_weight)).astype(np.float64)
    except CONVERSION_ERRORS:  # the original message would quote the entry
        raise ValueError("sample_weight must hold real numbers; pass one weight for each row.") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} and X {n_rows} rows; pass a flat array of one weight "
            "for each row."
        )
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0)):
        raise ValueError(
            "sample_weight must hold finite numbers of at least 0; pass 0 for a row that is not to count."
        )
    if not np.any(weights):
        raise ValueError("sample_weight is zero for all rows; pass a positive weight for some of them.")
    return weights


def refuse_sample_weight(estimator: Any, sample_weight: Any) -> None:
    """Refuse weights of private rows for an estimator that clips losses instead of gradients."""
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight cannot be used with {type(estimator).__name__}, which clips losses of rows; "
            "leave it out, or use MixedDPLogisticRegression."
        )


def check_class_weight(class_weight: Any, classes: Array) -> Array | None:
    """Weights (k,) of the classes from a mapping; None for None and "balanced".

    Raises
    ------
    ValueError
        If a key is no class, or a weight is not a finite non-negative number.
    """
    if not isinstance(class_weight, Mapping):
        return None
    known = {label: index for index, label in enumerate(classes.tolist())}
    weights = np.ones(len(classes))
    for label, weight in class_weight.items():
        if label not in known:
            raise ValueError(
                f"class_weight has a weight for {label!r}, which is not one of the classes "
                f"{listed(classes)}; use their labels as keys."
            )
        if not NON_NEGATIVE.admits(weight):
            raise ValueError(
                f"class_weight[{label!r}]={weight!r} must be {NON_NEGATIVE.text}; classes without an entry "
                "have weight 1."
            )
        weights[known[label]] = weight
    return weights


def weighted(inputs: HeadInputs, weights: Array) -> HeadInputs:
    """The inputs of a fit with a weight for each private row."""
    return replace(inputs, loss=WeightedLoss(inputs.loss), y=with_weights(inputs.y, weights))


@dataclass(frozen=True)
class ClassCounter:
    """Releases noisy class counts before the training, for balanced class weights.

    Attributes
    ----------
    inputs : HeadInputs
        The inputs of the fit, without weights.
    n_classes : int
        Number of classes.
    sample_weight : array of shape (n_rows,) or None
        Further weights of the private rows.
    prepare : callable
        ``(inputs, stage) -> fit``.
    then : callable
        ``inputs -> fit``: the fit with its weights.
    """

    inputs: HeadInputs
    n_classes: int
    sample_weight: Array | None
    prepare: Callable[[HeadInputs, Stage], PreparedFit]
    then: Callable[[HeadInputs], PreparedFit]

    @property
    def share(self) -> float:
        """Share of the squared budget for the counts."""
        return count_share(self.inputs.budget.mu, self.inputs.n_rows, self.n_classes)

    def first(self) -> PreparedFit:
        """The fit before the counts are released."""
        # Counting looks at labels alone, so rows of unit length do for this stage.
        row_map = RowMap(None, True, None)
        stage = Stage(row_map, row_map(self.inputs.X_pub, np.float64), second_moment=1.0)
        return replace(self.prepare(self._spending(), stage), learn=self._after_counts)

    def _spending(self) -> HeadInputs:
        return replace(self.inputs, spent=(("class counts", self.share),))

    def _after_counts(self, rows: PrivateRows) -> PreparedFit:
        given = self.inputs
        multiplier = given.budget.multiplier(self.share)
        nowhere = np.zeros((0, given.table.shape[1]))  # labels need no products
        flags = partial(in_class, n_classes=self.n_classes)
        counts = noisy_counts(rows, nowhere, flags, multiplier, given.noise, given.own)
        weights = balanced_weights(class_shares(counts, multiplier, given.n_rows))[given.y]
        if self.sample_weight is not None:
            weights = weights * self.sample_weight
        return self.then(weighted(self._spending(), weights))


def balanced_weights(shares: Array) -> Array:
    """Class weights (k,) in inverse proportion to class shares, of mean 1 over the rows."""
    return np.asarray(1 / (len(shares) * shares))
