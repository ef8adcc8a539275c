"""The base class of all estimators, and the steps that ``fit``, :func:`fit_many` and searches share.

Each fit works on a copy of its estimator, and all that it asks of rows is one generator, its procedure. The
estimators get their results only after all fits have finished.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from .._engine import ChargedProcedure, transact
from .._utils.process import late_warnings, own_state, warn
from .._utils.validation import (
    COUNT,
    FLAG,
    POSITIVE,
    Allowed,
    Kind,
    check,
    check_params,
    refuse_arguments,
    shown,
    suggestion,
    whole_from,
)
from ..algorithms import Algorithm
from ..preprocessing._leaks._enclosing import seeding_ensemble
from ..privacy.accounting.budgets import Budget
from ..privacy.ledger._ledger import LEDGER
from ..privacy.noise import check_noise, warn_of_seed
from ..privacy.notebook import CaptionMixin, GuaranteeBoxMixin
from ._callbacks import PrivateCallbackMixin, run_with_callbacks
from ._problem import check_device
from ._row_mapping import RowMapping
from ._saving.saving import SavingMixin

Array = NDArray[Any]

#: Arguments of ``fit`` that some estimators accept, and their descriptions.
_SOME_ACCEPT = {
    "sample_weight": "weights of rows",
    "groups": "ids of persons",
    "X_unlabeled": "public rows without labels",
}


@dataclass(frozen=True, repr=False)
class FitData:
    """The rows of one fit as they were passed; ``rows`` is the name and the value of a selection of rows.

    ``groups`` are ids of the persons whose rows these are; None if each row is protected by itself.
    ``exposure`` and ``exposure_pub`` are those of counts. ``earlier`` takes the fits of the same call, whose
    rows later ones may share.
    """

    X: Any
    y: Any
    X_pub: Any
    y_pub: Any
    sample_weight: Any = None
    groups: Any = None
    rows: tuple[str, Any] | None = None
    X_unlabeled: Any = None
    exposure: Any = None
    exposure_pub: Any = None
    earlier: list[Any] = field(default_factory=list)


#: The checkpoint of the fits in this context, set by ``resumable``.
current_checkpoint: ContextVar[Any] = ContextVar("current_checkpoint", default=None)

#: The procedure of a fit, which returns the fitted attributes.
EstimatorProcedure = ChargedProcedure[dict[str, Any]]


def fit_one(estimator: BaseEstimator, data: FitData, unsupported: Collection[str]) -> None:
    """Fit an estimator, or refuse ``unsupported`` arguments. If the fit fails, the estimator is unchanged."""
    for name in unsupported:
        if name in _SOME_ACCEPT:
            raise TypeError(
                f"fit of {type(estimator).__name__} does not accept {name}; leave it out, or use "
                f"MixedDPLogisticRegression or MixedDPRidge, which accept {_SOME_ACCEPT[name]}."
            )
    if unsupported:
        offered = (*("X", "y", "X_pub", "y_pub"), *_SOME_ACCEPT)
        accepted = [name for name in offered if has_fit_parameter(estimator, name)]
        otherwise = f"leave it out, or pass it as one of {', '.join(accepted)}"
        refuse_arguments(estimator, unsupported, accepted, otherwise)
    _fit_together([estimator], [data])


def _fit_together(estimators: Sequence[Any], rows: Sequence[FitData]) -> None:
    """Fit estimators, each to its rows, in shared passes. If a fit fails, all of them are unchanged."""
    watched = [estimator for estimator in estimators if vars(estimator).get("_skl_callbacks")]
    if watched and "_callback_fit_ctx" not in vars(watched[0]):
        run_with_callbacks(watched, partial(_fit_together, estimators, rows))
        return
    fitted = [copy.copy(estimator) for estimator in estimators]
    with own_state(), late_warnings() as late:
        budgets = [copied._check_parameters() for copied in fitted]
        seeds = [estimator.random_state for estimator in estimators]
        if seeds != [None] * len(seeds):
            warn_of_seed(*seeds, set_by=seeding_ensemble())
        procedures = [
            copied._fit_procedure(budget, data)
            for copied, budget, data in zip(fitted, budgets, rows, strict=True)
        ]
        results = transact(procedures, current_checkpoint.get())
    for estimator, copied, attributes in zip(estimators, fitted, results, strict=True):
        replace_attributes(estimator, copied, attributes)
    for message in late:
        warn(message)


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
    them. They must agree in ``rows``, ``scale``, ``fit_intercept``, ``dtype``, ``classes``, ``device`` and
    the kind of noise. Heads that learn the geometry of their rows have different mapped rows, so they are
    trained one after the other.

    Parameters
    ----------
    estimators : sequence of estimators
        ``MixedDPLogisticRegression``, ``MixedDPRidge`` or additive models. No object may occur twice.
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
        if not isinstance(estimator, PrivateEstimator):
            raise TypeError(
                f"fit_many accepts only estimators of this library, and {shown(estimator)} is not one of "
                "them; fit it separately."
            )
    rows = [None] * len(estimators) if rows is None else list(rows)
    if len(rows) != len(estimators):
        raise ValueError(
            f"rows has {len(rows)} entries, but there are {len(estimators)} estimators; pass one entry for "
            "each, None for all rows."
        )
    if len({id(estimator) for estimator in estimators}) < len(estimators):
        raise ValueError("fit_many got the same estimator twice; pass a clone of it.")
    selections = [None if chosen is None else (f"rows[{i}]", chosen) for i, chosen in enumerate(rows)]
    data = FitData(X, y, X_pub, y_pub, sample_weight, groups, None, X_unlabeled)
    _fit_together(estimators, [replace(data, rows=selection) for selection in selections])
    return estimators


def replace_attributes(estimator: BaseEstimator, fitted: object, attributes: dict[str, Any]) -> None:
    """Replace an estimator's attributes by those of its fitted copy, in one uninterruptible assignment."""
    estimator.__dict__ = vars(fitted) | attributes


def selected_rows(name: str, rows: object, n_rows: int) -> NDArray[np.bool_]:
    """Mask (n_rows,) of the rows of ``X`` to fit to; ``name`` is the name of the selection in messages."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.ndim == 1:
        if len(chosen) != n_rows:
            raise ValueError(
                f"{name} is a mask of {len(chosen)} rows, but X has {n_rows}; pass one entry for each row."
            )
        mask = chosen
    else:
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise ValueError(
                f"{name} of shape {chosen.shape} and type {chosen.dtype} must be row numbers, a boolean mask "
                "or None."
            )
        if np.any((chosen < 0) | (chosen >= n_rows)):
            raise ValueError(
                f"{name} holds a number that is not a row of X, which has rows 0 to {n_rows - 1}; select "
                "rows of X."
            )
        mask = np.bincount(chosen.astype(np.intp), minlength=n_rows) > 0
        if int(mask.sum()) < len(chosen):
            raise ValueError(
                f"{name} selects a row twice, which would double its contribution to every sum; select it "
                "once."
            )
    if (n_members := int(mask.sum())) < 2:
        raise ValueError(f"{name} selects {n_members} row(s), but a fit needs at least 2; select more rows.")
    return mask


#: Names of parameters in other libraries, and our names for them.
_EQUIVALENTS = {
    "C": "l2",
    "accountant": "ledger",
    "alpha": "l2",
    "bounds_y": "target_scale",
    "data_norm": "rows",
    "epochs": "n_steps",
    "eps": "epsilon",
    "eta0": "learning_rate",
    "lr": "learning_rate",
    "max_iter": "n_steps",
    "normalize": "rows",
    "sigma": "noise_multiplier",
    "warm_start": "init",
}


class PrivateEstimator(PrivateCallbackMixin, SavingMixin, CaptionMixin, GuaranteeBoxMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all estimators: subclasses define the queries of a fit, and this class runs it.

    A fit runs on a copy of the estimator. A fit that fails therefore leaves the estimator and the results of
    its earlier fits unchanged.
    """

    #: Names that ``algorithm`` accepts, and their algorithms.
    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]]

    #: Objects that ``algorithm`` accepts as well, and what the error for any other value advises.
    _objects: ClassVar[Kind] = Kind(
        "an object from skmixdp.algorithms", lambda value: isinstance(value, Algorithm)
    )
    _remedy: ClassVar[str] = ""

    #: The allowed values of each parameter. Checks of several parameters are made elsewhere.
    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "learning_rate": (POSITIVE, "auto"),
        "batch_size": (COUNT, None),
        "verbose": (FLAG, whole_from(0)),
        "ledger": (None, LEDGER),
    }

    #: The released head that a fit continues from.
    _released_start: Any = None

    #: The names that ``init`` accepts.
    _starts: ClassVar[tuple[str, ...]] = ("public", "zeros")

    #: The fitted attributes that :meth:`save` writes, and no others.
    _saved: ClassVar[tuple[str, ...]] = ("n_iter_", "learning_rate_", "privacy_")

    #: By this attribute, searches recognise estimators that can be fitted together.
    _fit_many = staticmethod(fit_many)

    def __new__(cls, *args: object, **parameters: object) -> Self:  # noqa: ARG004
        """Refuse unknown parameters, and name ours for those of other libraries."""
        accepted = signature(cls).parameters if parameters else {}  # copy and pickle pass none
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
        for name in () if takes_any else parameters:
            if name not in accepted:
                equivalent, close = _EQUIVALENTS.get(name), suggestion(name, accepted)
                hint = f"{close}?" if close else "leave it out."
                if equivalent in accepted:
                    hint = f"{equivalent} is what comes closest."
                raise TypeError(f"{cls.__name__} has no parameter {name!r}; {hint}")
        instance: Self = super().__new__(cls)
        return instance

    #: Known leaks of the present fit, and of the scikit-learn calls around it.
    _leaks: tuple[str, ...]

    # Routed to fit by default, without set_fit_request.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True, "groups": True}

    def set_params(self, **params: object) -> "PrivateEstimator":
        """Set parameters; ``algorithm__<name>`` and ``rows__<name>`` set those of the objects.

        Raises
        ------
        ValueError
            For an unknown parameter. Also for ``algorithm__<name>`` and ``rows__<name>`` if ``algorithm`` or
            ``rows`` is a string, which has no parameters.
        """
        values = self.get_params(deep=False) | params
        for nested in params:
            owner, _, name = nested.partition("__")
            if name and owner in ("algorithm", "rows") and isinstance(value := values.get(owner), str):
                # Name the chosen algorithm if it has the parameter, or else the first one that has it.
                makers = sorted(self._algorithms.items(), key=lambda item: item[0] != value)
                objects = [RowMapping()] if owner == "rows" else [make() for _, make in makers]
                fitting = next((made for made in objects if name in made.get_params(deep=False)), objects[0])
                module = "" if owner == "rows" else "algorithms."
                raise ValueError(
                    f"{nested} needs an object, but {owner}={value!r} is a name; "
                    f"pass {owner}=skmixdp.{module}{type(fitting).__name__}()."
                )
        super().set_params(**params)
        return self

    # -- fitting ---------------------------------------------------------------------------

    @abstractmethod
    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        """Check the rows, and return the procedure of the fit."""

    def _check_parameters(self) -> Budget:
        """Check every parameter that needs no data."""
        budget = Budget(
            self.epsilon, self.delta, self.n_steps, self.noise_multiplier, self.neighboring, self.noise
        )
        self._chosen_algorithm()
        check_params(self, self._allowed)
        if self.batch_size is not None and self.noise == "discrete":
            raise ValueError(
                f"batch_size={self.batch_size} cannot be accounted for with noise='discrete'; pass None for "
                "the full batch, or noise='float'."
            )
        if isinstance(self.init, str):
            check("init", self.init, *self._starts)
        check_device(self.device)
        check_noise(self.noise, self.random_state)
        return budget

    def _chosen_algorithm(self) -> Algorithm:
        """The algorithm object, created with default settings if ``algorithm`` is a name."""
        algorithm = self.algorithm
        if isinstance(algorithm, type) and issubclass(algorithm, Algorithm):
            raise ValueError(
                f"algorithm={algorithm.__name__} is a class; pass an object, such as {algorithm.__name__}()."
            )
        named = self._algorithms.get(algorithm) if isinstance(algorithm, str) else None
        if named is not None:
            return named()
        check("algorithm", algorithm, *self._algorithms, self._objects, remedy=self._remedy)
        chosen: Algorithm = algorithm
        return chosen
