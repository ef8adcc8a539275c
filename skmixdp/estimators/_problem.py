"""Parameters and checked inputs of a fit of a linear head, and their checks."""

import math
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NoReturn, Protocol, TypeVar, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._engine import NoisyQuery, Procedure, Released, RowsKey, Transaction, bind_rows
from .._linear import Loss, WeightedLoss, with_weights
from .._rows import (
    TABLE_TYPES,
    UNCHANGED,
    ArrayTable,
    Columns,
    PersonTable,
    PrivateRows,
    RowMap,
    Table,
    TargetMap,
    check_classes,
    check_indices,
    encode_labels,
    from_device,
    n_groups,
)
from .._utils.frames import numeric_frame
from .._utils.validation import (
    NON_NEGATIVE,
    Kind,
    Number,
    check_column_names,
    check_table,
    is_empty,
    listed,
    passed,
    public_sources,
    shown,
)
from ..algorithms import Algorithm, Auto
from ..algorithms.auto import AutoRegression
from ..components.public import PublicData
from ..privacy import PerInstanceRecord, PrivacyLeakWarning
from ..privacy.accounting.budgets import Budget
from ._callbacks import FitTasks

Array = NDArray[Any]
T = TypeVar("T")

#: A function of ``(y, name, n_rows, rows_name)`` that returns ``n_rows`` checked labels or targets.
CheckTarget = Callable[[Any, str, int, str], Array]


def public_facts(table: Table, loss: Loss, *, finite: bool, lengths: bool, weights: bool) -> tuple[str, ...]:
    """Texts for the report: numbers, and checks of private rows, that are treated as public."""
    numbers = ["private rows" if table.unit == "row" else "persons", "of features"]
    numbers += ["of targets"] if loss.quadratic else []
    known = f"the numbers of {', '.join(numbers[:-1])} and {numbers[-1]}, and the features' names"
    all_checks = {
        "shapes": True,
        "finiteness": finite,
        "lengths": lengths,
        "ids of persons": table.unit != "row",
        "targets" if loss.quadratic else "labels": True,
        "weights": weights,
    }
    facts = known, passed(*(name for name, made in all_checks.items() if made))
    return facts if table.declared is None else (*facts, f"that X is an array of {table.declared} (declared)")


def check_target_map(center: Any, scale: Any, n_targets: int, public: Array | None) -> TargetMap:
    """Centre and scale of the targets: declared, or from the public targets, or 0 and 1."""
    known = TargetMap.of(public) if public is not None else TargetMap(np.zeros(n_targets), np.ones(n_targets))
    values = []
    for name, value, default in (("center", center, known.center), ("scale", scale, known.scale)):
        if value is None:
            values.append(default)
            continue
        try:
            array = np.asarray(value, dtype=np.float64)
        except Exception:
            array = np.array(math.nan)
        fits = array.shape in ((), (n_targets,)) and np.all(np.isfinite(array))
        if not fits or isinstance(value, bool) or (name == "scale" and not np.all(array > 0)):
            raise ValueError(
                f"target_{name}={shown(value)} must be None, a {'positive ' if name == 'scale' else ''}"
                f"finite number, or an array of {n_targets} of them, one for each target."
            )
        values.append(np.broadcast_to(array, (n_targets,)).copy())
    return TargetMap(*values)


def collect_public(
    X: object, y: object, names: object, n_features: int, check_target: CheckTarget, *, finite: bool = True
) -> tuple[Array, Array] | None:
    """Public rows and targets of one array each, or of tuples of several sources; None without rows."""
    if is_empty(X) and is_empty(y):
        return None
    sources, labels = public_sources(X, y)
    rows, targets = [], []
    for source, label in zip(sources, labels, strict=True):
        part = public_rows(source, "X_pub", names, n_features, finite=finite)
        rows.append(part)
        targets.append(check_target(from_device(label), "y_pub", len(part), "X_pub"))
        if targets[-1].shape[1:] != targets[0].shape[1:]:
            raise ValueError("the sources of y_pub differ in their number of targets; pass the same ones.")
    return np.concatenate(rows), np.concatenate(targets)


def public_rows(source: object, name: str, names: object, n_features: int, *, finite: bool = True) -> Array:
    """Public rows (n, n_features) of one source as a dense array."""
    source = numeric_frame(source, name)
    check_column_names(source, names, name)
    held: Any = from_device(source)
    if isinstance(source, Table):
        held = np.concatenate(list(source.blocks()))
    if sp.issparse(source):
        check_indices(held, name)
        held = (held.astype(np.float32) if held.dtype == np.float16 else held).toarray()
    part: Array = check_table(held, name, minimum=1, finite=finite)
    if part.shape[1] != n_features:
        raise ValueError(
            f"{name} has {part.shape[1]} features and X has {n_features}; pass public rows "
            "through the same feature extraction as the private ones."
        )
    return part


#: Values of ``max_sample_weight``, and of ``class_weight``.
WEIGHT = Number("a finite number from 1e-100 to 1e100", low=1e-100, high=1e100, closed="both")
WEIGHTS_BY_CLASS = Kind("a dict of weights", lambda value: isinstance(value, Mapping))


def check_sample_weight(
    sample_weight: object, n_rows: int, name: str = "sample_weight", of: str = "X"
) -> Array | None:
    """Weights of the rows of ``of`` as a float64 array (n_rows,); None stays None."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(from_device(sample_weight)).astype(np.float64)
    except Exception:  # the original message would quote the entry
        raise ValueError(f"{name} must hold real numbers; pass one weight for each row.") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {weights.shape} and {of} {n_rows} rows; pass a flat array of one weight "
            "for each row."
        )
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0)):
        raise ValueError(
            f"{name} must hold finite numbers of at least 0; pass 0 for a row that is not to count."
        )
    if not np.any(weights):
        raise ValueError(f"{name} is zero for all rows; pass a positive weight for some of them.")
    return weights


def refuse_sample_weight(estimator: BaseEstimator, sample_weight: object) -> None:
    """Refuse weights of private rows for an estimator that clips losses instead of gradients."""
    if sample_weight is not None:
        raise ValueError(
            f"sample_weight cannot be used with {type(estimator).__name__}, which clips losses of rows; "
            "leave it out, or use MixedDPLogisticRegression."
        )


def check_class_weight(class_weight: Mapping[Any, Any], classes: Array) -> Array:
    """Weights (k,) of the classes from a mapping."""
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
    if not np.any(weights):
        raise ValueError("class_weight is zero for all classes; give some class a positive weight.")
    return weights


def check_device(device: object) -> str | None:
    """The name of a device, or None for ``"auto"``; all but ``"cpu"`` need torch."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return None if device == "auto" else device
    try:
        tensors = TABLE_TYPES["torch.Tensor"]
    except ModuleNotFoundError as error:
        raise ImportError(
            f"device={shown(device)} needs the torch package; install skmixdp[features], or pass "
            "device='auto'."
        ) from error
    name: str = tensors.device_name(device)
    return name


def refuse_record(value: object, obstacle: str, remedy: str) -> NoReturn:
    """Refuse the record of each row's own privacy loss."""
    raise ValueError(
        f"record_per_instance={value!r} cannot be combined with {obstacle}; pass {remedy}, or "
        "record_per_instance=False."
    )


# -- classes ---------------------------------------------------------------------------------


def encode_classes(
    estimator: BaseEstimator, y: Array, y_pub: Array | None
) -> tuple[Array, Array | None, str]:
    """Set ``classes_``, sorted; return encoded private and public labels, and the origin of the classes."""
    declared, source, model = estimator.classes, "classes", estimator._released_start
    if model is not None:
        classes, origin = model.classes_, "those of the start"
        if declared is not None and check_classes(declared).tolist() != classes.tolist():
            raise ValueError(f"classes={shown(declared)} are not those of init; pass {listed(classes)}.")
        declared = classes
    elif declared is not None:
        classes, origin = check_classes(declared), "declared"
    elif y_pub is not None:
        classes, origin, source = np.unique(y_pub), "those of the public labels", "y_pub"
    else:
        classes, origin = np.unique(y), "READ FROM THE PRIVATE LABELS"
        estimator._leaks = (*estimator._leaks, "the classes were read from the private labels")
        warnings.warn(
            "classes were read from the private labels y, which the guarantee does not cover; "
            "pass classes=[...] or public rows.",
            PrivacyLeakWarning,
            stacklevel=5,
        )
    if len(classes) < 2:
        # The message names no class, since classes were read from private labels.
        named = "" if declared is None and y_pub is None else f": {classes.tolist()}"
        raise ValueError(
            f"classification needs at least two classes, but classes holds {len(classes)} class{named}; list "
            "all classes in classes."
        )
    if source == "y_pub":
        check_same_numbering(y, classes)
    estimator.classes_ = classes
    y = encode_labels(y, classes, "y", private=True, source=source)
    y = y.astype(np.min_scalar_type(-len(classes)))  # a narrow type is faster to read
    if y_pub is None:
        return y, None, origin
    y_pub = encode_labels(y_pub, classes, "y_pub", private=False)
    counts = np.bincount(y_pub, minlength=len(classes))
    if np.any(counts == 0):
        warnings.warn(
            f"no public row has a label in {classes[counts == 0].tolist()}; the outputs of these "
            "classes start from the rows of the other classes, so add a public row of each class if you can.",
            UserWarning,
            stacklevel=5,
        )
    return y, y_pub, origin


def check_same_numbering(y: Array, classes: Array) -> None:
    """Refuse labels that an ensemble has renumbered while the public labels kept their values."""
    if y.dtype.kind not in "iu":
        return
    labels, known = set(np.unique(y).tolist()), set(classes.tolist())
    from_zero = labels == set(range(len(labels)))
    spelt_out = all(isinstance(label, str) and label.isdecimal() for label in classes.tolist())
    if from_zero and not labels <= known and not known <= labels and not spelt_out:
        raise ValueError(
            f"y is numbered from 0, but y_pub holds {listed(classes)}; ensembles such as "
            "BaggingClassifier, VotingClassifier and StackingClassifier renumber y and do not change "
            "y_pub, so number both from 0 beforehand."
        )


#: Minimum degrees of freedom of public rows within classes for whitening.
FEWEST_FREE = 20

#: For whitening by rows of unknown classes: the largest weight of their scatter.
_MOST_WEIGHT = 0.1
#: The weight times the number of outputs. With more classes, more of that scatter separates classes.
_WEIGHT_OF_ALL = 0.5

#: Minimum number of columns for unit length: with fewer, rows lose too much information.
_FEWEST_AT_UNIT_LENGTH = 4


@runtime_checkable
class NamedStart(Protocol):
    """A start that is computed from the names of the classes."""

    def start(self, classes: Array, data: PublicData, widen: Callable[[Array], Array]) -> Array:
        """The head (k, d_in); ``widen`` turns coefficients (k, n_features) into a head."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelledRows:
    """Private rows with class indices or scaled targets ``y``, and how their sums are computed.

    ``exact`` sums are on a grid. ``record`` records the privacy loss of each row.
    """

    table: Table
    y: Array
    dtype: np.dtype[Any]
    exact: bool
    record: PerInstanceRecord | None = None


@dataclass(frozen=True, repr=False)
class MappedRows(RowsKey):
    """Private rows after a row map, as a linear head gets them; without a map, their labels alone.

    Two of these are equal if they have the same two objects: nothing compares private rows.
    """

    private: LabelledRows
    row_map: RowMap | None

    def open(self) -> PrivateRows:
        private, row_map = self.private, self.row_map
        table, y, dtype = private.table, private.y, private.dtype
        if row_map is None:
            bare: Table = ArrayTable(np.empty((len(y), 0), dtype))
            table = table.holding(bare) if isinstance(table, PersonTable) else bare
            row_map = UNCHANGED
        opened = table.private_rows(y, row_map, dtype, exact=private.exact)
        opened.record = private.record
        return opened


@dataclass(frozen=True, repr=False)
class FitInputs:
    """The checked inputs of a head's fit, and its parameters by their names in the estimators.

    Rows: ``y_pub`` holds class indices or scaled targets, and ``members`` (n_rows,) masks the private rows to
    fit to; None is all. ``X_unlabeled`` are public rows without labels. ``X_scale`` are public rows that only
    tell the scale of the columns; None stands for ``X_known``.

    Parameters: ``init`` is a name, coefficients in the units of the labels or targets, or a start by names of
    classes. ``known_map`` is the map of the released head from which the fit continues. Where noisy counts
    tell a length that most private rows do not exceed, rows are cut at ``length_factor`` times it.

    Labels and targets: ``classes`` are labels in the order of their indices, or names of several labels.
    ``target_map`` scales targets, whose centre may be learned if ``learns_center``.

    Shares of the squared budget: ``label_share`` is for the logits (k,) at which several labels start, which
    are ``label_logits`` once they are released. ``target_share`` is for centre and scale of the targets, and
    ``relearned_share`` if the units of public targets turn out to be others. ``target_steps`` is a number of
    releases of the plan for them instead. ``spent`` is the cost of releases before the fit of the head.

    Weights: ``sample_weight`` (n_rows,) are PRIVATE, as passed, and ``largest_weight`` counts as 1; None is a
    noisy one. ``class_weight`` (k,) are public. Noisy counts of ``n_counted`` classes tell them instead; 0
    counts none. ``mean_weight`` is a released mean.
    """

    transaction: Transaction
    tasks: FitTasks
    algorithm: Algorithm
    loss: Loss
    private: LabelledRows
    X_pub: Array
    y_pub: Array
    members: NDArray[np.bool_] | None
    treated_as_public: tuple[str, ...]
    learning_rate: float | Literal["auto"]
    l2: float | Literal["auto"]
    public_l2: float | Literal["auto"]
    fit_intercept: bool
    center: bool
    whiten: bool | Literal["auto"]
    geometry: bool | Literal["auto"]
    row_norm: str | None
    scale: bool | Literal["auto"]
    batch_size: int | None
    init: str | Array | NamedStart
    known_map: RowMap | None
    logit_adjustment: float | Literal["auto"] = 0
    learns_center: bool = False
    length_factor: float = 1.0
    classes: Array | None = None
    target_map: TargetMap | None = None
    X_scale: Array | None = None
    n_counted: int = 0
    sample_weight: Array | None = None
    largest_weight: float | None = None
    class_weight: Array | None = None
    mean_weight: float = 1.0
    label_share: float = 0.0
    label_logits: Array | None = None
    X_unlabeled: Array | None = None
    target_share: float = 0.0
    target_steps: int = 0
    spent: dict[str, float] = field(default_factory=dict)
    relearned_share: float = 0.0

    @cached_property
    def X_known(self) -> Array:
        """Public rows (n_known, n_features) from which the map is computed; rows with labels come first."""
        return self.X_pub if self.X_unlabeled is None else np.concatenate([self.X_pub, self.X_unlabeled])

    @cached_property
    def groups(self) -> tuple[Array, float | None]:
        """Groups of the first known rows for whitening; weight of the identity, None for the usual one."""
        # If few rows have labels, all known rows are one group.
        few = len(self.y_pub) - n_groups(self.y_pub) < FEWEST_FREE
        if not self.loss.quadratic and not (few and self.X_unlabeled is not None):
            return self.y_pub, None
        weight = min(_MOST_WEIGHT, _WEIGHT_OF_ALL / self.loss.n_outputs)
        return np.zeros(len(self.X_known), dtype=np.intp), None if self.loss.quadratic else 1 - weight

    @property
    def budget(self) -> Budget:
        """The budget of the fit."""
        return self.transaction.budget

    @property
    def is_default(self) -> bool:
        """Whether "auto" turns on whitening and checks: for the default algorithm of the loss."""
        return isinstance(self.algorithm, AutoRegression if self.loss.quadratic else Auto)

    @property
    def divides(self) -> bool:
        """Whether releases over all rows can share the budget with the steps."""
        return self.batch_size is None and self.budget.is_divisible

    @property
    def preconditions(self) -> bool:
        """Whether the budget allows noisy columns or a second moment."""
        return self.divides and self.is_default and self.row_norm is not None

    @property
    def whitens_alone(self) -> bool:
        """Whether rows of unit length are whitened by private directions, without public rows."""
        return self.whiten is True and len(self.X_known) == 0

    @property
    def centres_columns(self) -> bool:
        """Whether columns are centred before rows are scaled; rows of unit length are centred afterwards."""
        unit = self.row_norm == "unit" or self.geometry is True or self.whitens_alone
        return self.center and not unit

    def clips(self, columns: Columns | None) -> bool:
        """Whether rows keep their length, up to a bound."""
        # If the centre of columns is unknown, rows of unit length are centred. That loses too much of a few.
        if self.row_norm != "auto" or columns is None:
            return self.row_norm == "clip"
        few = len(columns.center) < _FEWEST_AT_UNIT_LENGTH
        return bool(columns.center.any()) or not self.center or few

    @property
    def n_rows(self) -> int:
        """Number of private rows to fit to."""
        return self.private.table.shape[0] if self.members is None else int(self.members.sum())

    def stage(self, rows: MappedRows, asked: Generator[NoisyQuery, Released, T]) -> Procedure[T]:
        """The result of a generator that queries some rows, as a stage of the fit before its training."""
        result = yield from bind_rows(rows, asked)
        self.tasks.stage_ended()
        return result

    def weighted(self, largest_weight: float = 1.0, by_class: Array | None = None) -> "FitInputs":
        """The inputs with a weight in [0, 1] for each private row: by its class, times its sample weight."""
        y = self.private.y
        weights = np.ones(len(y))
        if by_class is not None:
            weights *= (by_class / by_class.max())[y]
        if self.sample_weight is not None:
            weights *= np.minimum(self.sample_weight / largest_weight, 1.0)
        private = replace(self.private, y=with_weights(y, weights))
        return replace(self, loss=WeightedLoss(self.loss), private=private)

    def without_public_rows(self) -> "FitInputs":
        """The inputs without public rows, which still determine the scale of some columns."""
        X_pub, y_pub = self.X_pub[:0], self.y_pub[:0]
        return replace(self, X_pub=X_pub, y_pub=y_pub, X_scale=self.X_known, X_unlabeled=None)
