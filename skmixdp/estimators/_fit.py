"""Training prepared heads: one by itself, or several that share every pass over the rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from .._engine import Run, train
from .._rowmap import RowMap
from .._rows import PrivateRows, Table
from ..privacy import Charge
from ..privacy.seeds import said_of_seeds, warn_of_seed
from ._charging import pay
from ._devices import placed
from ._members import fitted_to
from ._rows import bfloat16_rows

Array = NDArray[Any]


@dataclass(frozen=True, repr=False)
class PreparedHead:
    """A fit after its checks and before its first release.

    Attributes
    ----------
    estimator : estimator
        Whose head it is; it says who pays.
    table : Table
        The private rows.
    y : array of shape (n_rows,) or (n_rows, k)
        Class indices or targets on which the head is trained.
    row_map : RowMap
        What the head sees of the rows.
    run : Run
        How it is trained.
    device : str or None
        Where the rows are to be held; None is where they are.
    finish : callable
        Takes the trained head (k, d_in) and the charge.
    """

    estimator: Any
    table: Table
    y: Array
    row_map: RowMap
    run: Run
    device: str | None
    finish: Callable[[Array, Charge | None], None]

    def rows(self) -> PrivateRows:
        """The source that answers; rows that are not in memory are read, and refused if need be."""
        exact = self.run.noise.needs_grid
        table = placed(self.table, self.device)
        if self.estimator.dtype == "bfloat16":
            return bfloat16_rows(table, self.y, self.row_map, exact=exact)
        return table.private_rows(self.y, self.row_map, self.run.dtype, exact=exact)

    def shares_rows(self, other: "PreparedHead") -> bool:
        """Whether a head that was given the same rows and labels sees the same of them."""
        return (
            (self.estimator.dtype, self.run.dtype) == (other.estimator.dtype, other.run.dtype)
            and self.device == other.device
            and self.run.noise.needs_grid == other.run.noise.needs_grid
            and self.row_map.same_as(other.row_map)
            and np.array_equal(self.y, other.y)
        )


_waiting: ContextVar[list[PreparedHead] | None] = ContextVar("_waiting", default=None)


@contextmanager
def all_or_nothing(*estimators: Any) -> Iterator[None]:
    """A fit that fails leaves estimators as they were, earlier results included."""
    before = [dict(vars(estimator)) for estimator in estimators]
    try:
        yield
    except BaseException:
        for estimator, state in zip(estimators, before, strict=True):
            estimator.__dict__.clear()
            estimator.__dict__.update(state)
        raise


def train_or_wait(head: PreparedHead) -> None:
    """Train a head, or leave that to the :func:`fit_many` within which it is prepared."""
    waiting = _waiting.get()
    if waiting is None:
        _train([head])
    else:
        waiting.append(head)


def fit_many(
    estimators: Sequence[Any],
    X: Any,
    y: Any = None,
    X_pub: Any = None,
    y_pub: Any = None,
    *,
    rows: Sequence[Any] | None = None,
) -> list[Any]:
    """Fit several estimators to the same rows, in shared passes over them.

    Each is fitted as its own ``fit`` would have fitted it: algorithms, budgets, step sizes and
    seeds may differ. Heads that see the same rows (``center``, ``normalize``, ``fit_intercept``,
    ``dtype``, ``classes`` and the kind of noise alike) are trained side by side: one pass over the
    rows answers all of them, at less than half the time of as many passes.

    Parameters
    ----------
    estimators : sequence of estimators
        ``MixedDPLogisticRegression``, ``MixedDPRidge`` or ``ZerothOrderDPClassifier``, none of them
        twice.
    X, y, X_pub, y_pub : array-like
        As ``fit`` takes them.
    rows : sequence or None, default=None
        One entry for each estimator: indices or a boolean mask of those rows of ``X`` that it is fitted
        to, such as the folds of a cross-validation, or None for all. None has all fitted to all.

    Returns
    -------
    list
        The estimators, fitted.

    Raises
    ------
    ValueError, TypeError
        For bad input, before any noise is drawn or any ledger charged.
    BudgetExceededError
        If a ledger does not pay for all of the fits that it has to pay for; nothing is released,
        and what was charged for earlier ones of them stays charged.

    Notes
    -----
    *Guarantee*: each estimator's ``privacy_`` speaks of that estimator alone. They are as many
    releases: whoever publishes several, or chooses among them by looking at private rows, spends
    the sum, which a ledger adds up. With ``rows`` the guarantee of each is about its own rows, whose
    number is public, and a ledger charges it to the data set as if it had seen them all: that folds do
    not overlap earns nothing. All rows of ``X`` and ``y`` are checked for each, its own or not.

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
    estimators = list(estimators)
    for estimator in estimators:
        if not hasattr(estimator, "_fit_head"):
            raise TypeError(
                f"fit_many trains this library's linear heads, and {estimator!r} is none; fit it by itself."
            )
        if getattr(estimator, "module", None) is not None:
            raise TypeError("fit_many trains linear heads, and an estimator has a module; fit it by itself.")
    rows = [None] * len(estimators) if rows is None else list(rows)
    if len(rows) != len(estimators):
        raise ValueError(
            f"rows has {len(rows)} entries and there are {len(estimators)} estimators; pass one for each, "
            "None for all rows."
        )
    if len({id(estimator) for estimator in estimators}) < len(estimators):
        raise ValueError("fit_many was given an estimator twice; pass a clone of it.")
    warn_of_seed(*(estimator.random_state for estimator in estimators))
    prepared: list[PreparedHead] = []
    with all_or_nothing(*estimators), said_of_seeds():
        token = _waiting.set(prepared)
        try:
            for i, (estimator, own) in enumerate(zip(estimators, rows, strict=True)):
                with fitted_to(own, f"rows[{i}]"):
                    estimator.fit(X, y, X_pub=X_pub, y_pub=y_pub)
        finally:
            _waiting.reset(token)
        _train(prepared)
    return estimators


def _train(heads: Sequence[PreparedHead]) -> None:
    """Read the rows, pay, train: in this order for all heads."""
    groups: list[list[PreparedHead]] = []
    for head in heads:
        group = next((group for group in groups if group[0].shares_rows(head)), None)
        if group is None:
            groups.append([head])
        else:
            group.append(head)
    sources = [group[0].rows() for group in groups]
    charges = {
        id(head): pay(
            head.estimator,
            head.run.plan.event,
            n_rows=head.run.info.n_private,
            private=head.run.noise.kind != "seeded",
        )
        for head in heads
    }
    for group, rows in zip(groups, sources, strict=True):
        with ExitStack() as bars:
            trained = train([_with_bar(head, bars) for head in group], rows)
        for head, W in zip(group, trained, strict=True):
            head.finish(W, charges[id(head)])


def _with_bar(head: PreparedHead, bars: ExitStack) -> Run:
    """The head's run with a progress bar, where its estimator is verbose."""
    bar = bars.enter_context(
        tqdm(
            total=head.run.plan.n_steps,
            desc=type(head.estimator).__name__,
            disable=not head.estimator.verbose,
        )
    )
    return replace(head.run, callback=lambda t, W: bar.update())
