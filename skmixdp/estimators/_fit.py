"""The steps of a fit: check it, charge the ledger, run its procedure, and copy the results to the estimator.

``fit``, :func:`fit_many` and the searches share these steps. Each fit works on a copy of its estimator, and
all that it asks is one generator, its procedure. The estimators get their results only after all fits have
finished.
"""

import copy
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from .._engine import ChargedProcedure, transact
from .._utils.numerics import own_state
from .._utils.validation import refuse_arguments, shown
from ..preprocessing._leaks import seeding_ensemble
from ..privacy.noise import warn_of_seed
from ._callbacks import managed

Array = NDArray[Any]

#: Arguments of ``fit`` that some estimators accept, in words.
_SOME_ACCEPT = {
    "sample_weight": "weights of rows",
    "groups": "ids of persons",
    "X_unlabeled": "public rows without labels",
}


@dataclass(frozen=True, repr=False)
class FitData:
    """The rows of one fit as they were passed; ``rows`` is a name and a selection of rows of ``X``, None all.

    ``groups`` are ids of the persons whose rows these are; None if each row is protected by itself.
    ``X_unlabeled`` are public rows without labels. ``earlier`` takes the problems of fits of the same call,
    whose rows later ones may share.
    """

    X: Any
    y: Any
    X_pub: Any
    y_pub: Any
    sample_weight: Any = None
    groups: Any = None
    rows: tuple[str, Any] | None = None
    X_unlabeled: Any = None
    earlier: list[Any] = field(default_factory=list)


#: Where the fits of this context keep their released numbers, within ``resumable``.
current_checkpoint: ContextVar[Any] = ContextVar("current_checkpoint", default=None)

#: All that a fit asks. It sets the results by itself.
EstimatorProcedure = ChargedProcedure[None]


def fit_one(estimator: BaseEstimator, data: FitData, unsupported: Iterable[str]) -> None:
    """Fit an estimator, or refuse ``unsupported`` arguments. If the fit fails, the estimator is unchanged."""
    unsupported = tuple(unsupported)
    offered = (*("X", "y", "X_pub", "y_pub"), *_SOME_ACCEPT)
    known = tuple(name for name in offered if has_fit_parameter(estimator, name))
    for name in unsupported:
        if name in _SOME_ACCEPT:
            raise TypeError(
                f"fit of {type(estimator).__name__} does not accept {name}; leave it out, or use "
                f"MixedDPLogisticRegression or MixedDPRidge, which accept {_SOME_ACCEPT[name]}."
            )
    refuse_arguments(estimator, unsupported, known, f"leave it out, or pass it as one of {', '.join(known)}")
    if getattr(estimator, "_skl_callbacks", None) and not hasattr(estimator, "_callback_fit_ctx"):
        managed([estimator], partial(fit_one, estimator, data, ()))
        return
    fitted = copy.copy(estimator)
    with own_state():
        budget = fitted._check_parameters()
        if estimator.random_state is not None:
            warn_of_seed(estimator.random_state, set_by=seeding_ensemble(), stacklevel=4)
        transact([fitted._fit_procedure(budget, data)], current_checkpoint.get())
    adopt(estimator, fitted)


def fit_many(
    estimators: Sequence[Any],
    X: object,
    y: object = None,
    X_pub: object = None,
    y_pub: object = None,
    *,
    rows: Sequence[Any] | None = None,
    sample_weight: object = None,
    groups: object = None,
    X_unlabeled: object = None,
) -> list[Any]:
    """Fit several estimators to the same rows, in shared passes over the data.

    Each estimator is fitted as its own ``fit`` would do it. Algorithms, budgets, step sizes and seeds may
    differ. Heads that use the same mapped rows are trained together: one pass over the rows serves all of
    them. They must agree in ``center``, ``whiten``, ``row_norm``, ``scale``, ``fit_intercept``, ``dtype``,
    ``classes``, ``device`` and the kind of noise. Heads that learn their ``geometry`` have different mapped
    rows, so they are trained one after the other.

    Parameters
    ----------
    estimators : sequence of estimators
        ``MixedDPLogisticRegression``, ``MixedDPRidge`` or ``ZerothOrderDPClassifier`` objects. No object
        may occur twice.
    X, y, X_pub, y_pub : array-like
        The arguments of ``fit``.
    rows : sequence or None, default=None
        One entry per estimator: indices or a boolean mask of the rows of ``X`` to fit it to, such as the
        folds of a cross-validation. An entry None selects all rows. None fits every estimator to all rows.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the private rows, for all estimators. See ``fit`` of the estimators.
    groups : array-like of shape (n_samples,) or None, default=None
        Ids of the persons whose rows these are, for all estimators. See ``fit`` of the estimators.
    X_unlabeled : array-like of shape (n_unlabeled, n_features), tuple of such, or None, default=None
        Public rows without labels, for all estimators. See ``fit`` of the estimators.

    Returns
    -------
    list
        The estimators, fitted.

    Raises
    ------
    ValueError, TypeError
        For bad input, before any noise is drawn or any ledger charged.
    BudgetExceededError
        If a ledger does not allow all fits that are charged to it. Nothing is released then, and nothing is
        charged to that ledger. Charges to another ledger stay.

    Notes
    -----
    *Guarantee*: the ``privacy_`` of each estimator covers that estimator alone. Publishing several of them,
    or choosing among them by looking at private rows, spends the budget of all of them. A ledger composes
    these charges. With ``rows``, the guarantee of each estimator covers its own rows, whose number is public.
    A ledger charges each fit as if it used all rows, even if folds do not overlap. All rows of ``X`` and
    ``y`` are checked for each estimator, including rows that it is not fitted to.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression, fit_many
    >>> X, y = load_digits(return_X_y=True)
    >>> heads = [MixedDPLogisticRegression(epsilon=epsilon) for epsilon in (0.5, 1.0)]
    >>> weak, strong = fit_many(heads, X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    >>> weak.privacy_.epsilon < strong.privacy_.epsilon
    True

    Three heads for cross-validation, each on two thirds of the rows:

    >>> from sklearn.model_selection import KFold
    >>> train = [fold for fold, _ in KFold(3).split(X[100:])]
    >>> heads = [MixedDPLogisticRegression(epsilon=0.3) for _ in train]
    >>> heads = fit_many(heads, X[100:], y[100:], X_pub=X[:100], y_pub=y[:100], rows=train)
    >>> [head.privacy_.n_private for head in heads]
    [1131, 1131, 1132]
    """
    if hasattr(estimators, "fit"):
        raise TypeError(
            f"estimators must be a list of estimators, and {shown(estimators)} is one; pass it in a list."
        )
    estimators = list(estimators)
    for estimator in estimators:
        if not callable(getattr(estimator, "_fit_procedure", None)):
            raise TypeError(
                f"fit_many accepts only estimators of this library, and {shown(estimator)} is not one of "
                "them; fit it separately."
            )
    watched = [estimator for estimator in estimators if getattr(estimator, "_skl_callbacks", None)]
    if watched and not hasattr(watched[0], "_callback_fit_ctx"):
        again = partial(
            fit_many, rows=rows, sample_weight=sample_weight, groups=groups, X_unlabeled=X_unlabeled
        )
        return managed(watched, partial(again, estimators, X, y, X_pub, y_pub))  # type: ignore[no-any-return]
    rows = [None] * len(estimators) if rows is None else list(rows)
    if len(rows) != len(estimators):
        raise ValueError(
            f"rows has {len(rows)} entries, but there are {len(estimators)} estimators; pass one entry for "
            "each, None for all rows."
        )
    if len({id(estimator) for estimator in estimators}) < len(estimators):
        raise ValueError("fit_many got the same estimator twice; pass a clone of it.")
    fitted = [copy.copy(estimator) for estimator in estimators]
    selections = [None if chosen is None else (f"rows[{i}]", chosen) for i, chosen in enumerate(rows)]
    with own_state():
        budgets = [copied._check_parameters() for copied in fitted]
        warn_of_seed(*(estimator.random_state for estimator in estimators))
        data = FitData(X, y, X_pub, y_pub, sample_weight, groups, None, X_unlabeled)
        procedures = [
            copied._fit_procedure(budget, replace(data, rows=selection))
            for copied, budget, selection in zip(fitted, budgets, selections, strict=True)
        ]
        transact(procedures, current_checkpoint.get())
    for estimator, copied in zip(estimators, fitted, strict=True):
        adopt(estimator, copied)
    return estimators


def adopt(estimator: BaseEstimator, fitted: object) -> None:
    """Replace an estimator's attributes by those of its fitted copy, in one uninterruptible assignment."""
    estimator.__dict__ = dict(vars(fitted))


def members(name: str, rows: object, n_rows: int) -> NDArray[np.bool_]:
    """Mask (n_rows,) of the rows of ``X`` to fit to; ``name`` is that of the selection in messages."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.ndim == 1:
        if len(chosen) != n_rows:
            raise ValueError(
                f"{name} is a mask of {len(chosen)} rows, but X has {n_rows}; pass one entry for each row."
            )
        mask = chosen
    else:
        mask = _mask_of_numbers(name, chosen, n_rows)
    if (n_members := int(mask.sum())) < 2:
        raise ValueError(f"{name} selects {n_members} row(s), but a fit needs at least 2; select more rows.")
    return mask


def _mask_of_numbers(name: str, numbers: Array, n_rows: int) -> NDArray[np.bool_]:
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} of shape {numbers.shape} and type {numbers.dtype} must be row numbers, a boolean mask "
            "or None."
        )
    if np.any((numbers < 0) | (numbers >= n_rows)):
        raise ValueError(
            f"{name} holds a number that is not a row of X, which has rows 0 to {n_rows - 1}; select rows "
            "of X."
        )
    mask = np.zeros(n_rows, dtype=bool)
    mask[numbers.astype(np.intp)] = True
    if int(mask.sum()) < len(numbers):
        raise ValueError(
            f"{name} selects a row twice, which would double its contribution to every sum; select it once."
        )
    return mask
