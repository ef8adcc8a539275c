"""The steps of a fit: prepare a copy, charge the ledger, train, and copy the results to the estimator.

``fit``, :func:`fit_many` and the searches share these steps. A :class:`PreparedFit` is a fit after its
checks and before its first release. :func:`run_fits` reads the rows, charges the ledgers, and trains. The
estimators get their results only after all fits have finished.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import Run, charge_event, train
from .._rows import PrivateRows, one_thread, worker_session
from .._utils.validation import refuse_arguments, shown
from ..preprocessing._leaks import seeding_ensemble
from ..privacy import Charge, recorded_outcome
from ..privacy.noise import warn_of_seed
from ._callbacks import FitTasks, have_callbacks, managed

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class FitData:
    """The rows of one fit, as they were passed.

    Attributes
    ----------
    X, y, X_pub, y_pub : array-like
        PRIVATE rows with their labels or targets, and public ones.
    sample_weight : array-like of shape (n_samples,) or None
        Weights of all private rows; only linear heads take them.
    rows : tuple of str and array, or None
        Name and value of a selection of rows of ``X`` to fit to; None selects all rows.
    """

    X: Any
    y: Any
    X_pub: Any
    y_pub: Any
    sample_weight: Any = None
    rows: tuple[str, Any] | None = None


@dataclass(frozen=True, repr=False)
class PreparedFit(ABC):
    """A fit after its checks and before its first release.

    Attributes
    ----------
    estimator : estimator
        The copy that receives the results.
    run : Run
        The training run of the head or module.
    learn : callable or None, default=None
        ``rows -> fit``: learns something from the private rows, and prepares the next stage of the fit. None
        if the next stage is the training.
    """

    estimator: Any
    run: Run
    learn: Callable[[PrivateRows], "PreparedFit"] | None = field(default=None, kw_only=True)

    @property
    def shares_threads(self) -> bool:
        """Whether threads share the passes over the rows; BLAS then has one thread."""
        return False

    @property
    def is_small(self) -> bool:
        """Whether the whole fit is over sooner with one thread."""
        return False

    @abstractmethod
    def rows(self) -> PrivateRows:
        """The source of private rows. Rows that are not in memory are read and checked here."""

    def continued(self, earlier: "PreparedFit", rows: PrivateRows) -> PrivateRows | None:
        """The source of this stage in the memory of an earlier one; None if that is not possible."""
        return None

    @abstractmethod
    def shares_rows(self, other: "PreparedFit") -> bool:
        """Whether another fit to the same rows and labels can use the same source."""

    @abstractmethod
    def finish(self, W: Any, charge: Charge | None) -> None:
        """Set the results on the copy: the trained parameters and the report with its charge."""

    def train(self, runs: Sequence[Run], rows: PrivateRows) -> list[Any]:
        """Train this fit and those that share its rows, in the order of ``runs``."""
        return train(runs, rows)


def fit_one(estimator: Any, data: FitData, unsupported: Iterable[str]) -> None:
    """Fit an estimator, or refuse ``unsupported`` arguments. If the fit fails, the estimator is unchanged."""
    refuse_arguments(estimator, unsupported, ("X", "y", "X_pub", "y_pub", "sample_weight"), "leave it out")
    if (watched := have_callbacks([estimator])) and not hasattr(estimator, "_callback_fit_ctx"):
        managed(watched, partial(fit_one, estimator, data, ()))
        return
    fitted = copy.copy(estimator)
    budget = fitted._check_parameters()
    warn_of_seed(estimator.random_state, set_by=seeding_ensemble(), stacklevel=4)
    run_fits([fitted._prepare(budget, data)])
    adopt(estimator, fitted)


def fit_many(
    estimators: Sequence[Any],
    X: Any,
    y: Any = None,
    X_pub: Any = None,
    y_pub: Any = None,
    *,
    rows: Sequence[Any] | None = None,
    sample_weight: Any = None,
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

    Returns
    -------
    list
        The estimators, fitted.

    Raises
    ------
    ValueError, TypeError
        For bad input, before any noise is drawn or any ledger charged.
    BudgetExceededError
        If a ledger does not allow all fits that are charged to it. Nothing is released then. Charges
        already made for earlier fits in the list stay.

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
        if not callable(getattr(estimator, "_prepare", None)):
            raise TypeError(
                f"fit_many accepts only estimators of this library, and {shown(estimator)} is not one of "
                "them; fit it separately."
            )
    if (watched := have_callbacks(estimators)) and not hasattr(watched[0], "_callback_fit_ctx"):
        again = partial(fit_many, rows=rows, sample_weight=sample_weight)
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
    budgets = [copied._check_parameters() for copied in fitted]
    warn_of_seed(*(estimator.random_state for estimator in estimators))
    selections = [None if own is None else (f"rows[{i}]", own) for i, own in enumerate(rows)]
    run_fits(
        [
            copied._prepare(budget, FitData(X, y, X_pub, y_pub, sample_weight, selection))
            for copied, budget, selection in zip(fitted, budgets, selections, strict=True)
        ]
    )
    for estimator, copied in zip(estimators, fitted, strict=True):
        adopt(estimator, copied)
    return estimators


def run_fits(fits: Sequence[PreparedFit]) -> None:
    """Read the rows of all fits, then charge all fits, then train them.

    Raises
    ------
    BudgetExceededError
        If a ledger does not allow a fit; nothing is released then.
    """
    groups = _grouped(fits)
    with ExitStack() as outcomes:
        if all(fit.shares_threads for fit in fits):
            outcomes.enter_context(worker_session())
        elif all(fit.is_small for fit in fits):
            outcomes.enter_context(one_thread())
        sources = [group[0].rows() for group in groups]
        charges: dict[int, Charge | None] = {}
        for fit in fits:
            charge = charge_event(
                fit.estimator.ledger,
                fit.run.plan.event,
                neighboring=fit.estimator.neighboring,
                description=f"{type(fit.estimator).__name__}, {fit.run.info.n_private} rows",
                private=fit.run.noise.kind != "seeded",
                leaks=fit.estimator._leaks,
            )
            charges[id(fit.estimator)] = charge
            if charge is not None:
                outcomes.enter_context(recorded_outcome(fit.estimator.ledger, charge))
        for group in groups:
            _train_together(group, sources.pop(0), charges)


def _grouped(fits: Sequence[PreparedFit]) -> list[list[PreparedFit]]:
    """Fits that share their rows, and are at the same point, together."""
    groups: list[list[PreparedFit]] = []
    for fit in fits:
        for group in groups:
            if (group[0].learn is None) == (fit.learn is None) and group[0].shares_rows(fit):
                group.append(fit)
                break
        else:
            groups.append([fit])
    return groups


def _train_together(
    group: Sequence[PreparedFit], rows: PrivateRows, charges: dict[int, Charge | None]
) -> None:
    """Train fits that share a source; first, each learns what its later stages need."""
    if group[0].learn is not None:
        later = _grouped([fit.learn(rows) for fit in group if fit.learn is not None])
        for fit in group:
            FitTasks(fit.estimator, fit.run.plan.n_steps).stage()
        same = [group[0].shares_rows(each[0]) for each in later]
        # The source is let go before the next one is made.
        for each in [each for each, kept in zip(later, same, strict=True) if kept]:
            _train_together(each, rows, charges)
        others = [each for each, kept in zip(later, same, strict=True) if not kept]
        source = others[0][0].continued(group[0], rows) if len(later) == len(others) == 1 else None
        del rows
        for each in others:
            _train_together(each, each[0].rows() if source is None else source, charges)
        return
    tasks = [FitTasks(fit.estimator, fit.run.plan.n_steps) for fit in group]
    with ExitStack() as entered:
        runs = [
            replace(fit.run, callback=entered.enter_context(task))
            for fit, task in zip(group, tasks, strict=True)
        ]
        trained = group[0].train(runs, rows)
    for fit, task, W in zip(group, tasks, trained, strict=True):
        fit.finish(W, charges[id(fit.estimator)])
        del fit.estimator._leaks  # the report has them
        fit.estimator.n_iter_ = task.n_done  # fewer than planned if a callback has stopped it


def adopt(estimator: Any, fitted: Any) -> None:
    """Give an estimator every attribute of its fitted copy, and none that the fit removed.

    One assignment, so that an interruption leaves the estimator as it was or fitted, and nothing in between.
    """
    estimator.__dict__ = dict(vars(fitted))


def members(rows: tuple[str, Any] | None, n_rows: int) -> NDArray[np.bool_] | None:
    """Mask (n_rows,) of the rows of ``X`` to fit to; None means all rows.

    Parameters
    ----------
    rows : tuple of str and array, or None
        The name of the selection in messages, and its row numbers or mask.
    n_rows : int
        Number of rows of ``X``.

    Raises
    ------
    ValueError
        If the selection has fewer than two rows, or names a row twice.
    """
    if rows is None:
        return None
    name, chosen = rows[0], np.asarray(rows[1])
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
