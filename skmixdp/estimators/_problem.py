"""Checks of the rows, labels and parameters of a fit."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._linear.losses import Loss
from .._rows.row_map import TargetMap
from .._rows.source import Table
from .._rows.sparse import check_indices
from .._rows.table import check_classes, encode_labels, from_device
from .._utils.frames import numeric_frame
from .._utils.lazy_imports import annex
from .._utils.process import warn
from .._utils.validation import (
    NON_NEGATIVE,
    Kind,
    Number,
    check_column_names,
    check_table,
    how_to_install,
    is_empty,
    listed,
    passed,
    public_sources,
    shown,
)
from ..exceptions import PrivacyLeakWarning

Array = NDArray[Any]
T = TypeVar("T")

#: A function of ``(y, name, n_rows, rows_name)`` that returns ``n_rows`` checked labels or targets.
CheckTarget = Callable[[Any, str, int, str], Array]


def public_facts(table: Table, loss: Loss, *, finite: bool, lengths: bool, weights: bool) -> tuple[str, ...]:
    """Texts for the report: numbers, and checks of private rows, that are treated as public."""
    numbers = ["private rows" if table.unit == "row" else "persons", "of features"]
    numbers += ["of targets"] if loss.quadratic else []
    counts = f"the numbers of {', '.join(numbers[:-1])} and {numbers[-1]}, and the features' names"
    all_checks = {
        "shapes": True,
        "finiteness": finite,
        "lengths": lengths,
        "ids of persons": table.unit != "row",
        "targets" if loss.quadratic else "labels": True,
        "weights": weights,
    }
    facts = counts, passed(*(name for name, is_made in all_checks.items() if is_made))
    return facts if table.declared is None else (*facts, f"that X is an array of {table.declared} (declared)")


def check_target_map(center: Any, scale: Any, n_targets: int, public: Array | None) -> TargetMap:
    """Centre and scale of the targets: declared, or from the public targets, or 0 and 1."""
    usual = TargetMap.of(public) if public is not None else TargetMap(np.zeros(n_targets), np.ones(n_targets))
    values = []
    for name, value, default in (("center", center, usual.center), ("scale", scale, usual.scale)):
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


def check_width(y: Array, width: int, kind: str, whose: str, name: str = "y") -> None:
    """Refuse labels or targets (n, k) if there are not ``width`` in each row, as in ``whose`` they are."""
    if y.shape[1] != width:
        raise ValueError(f"{name} has {y.shape[1]} {kind} per row and {whose} {width}; pass the same ones.")


def public_rows(source: object, name: str, names: object, n_features: int, *, finite: bool = True) -> Array:
    """Public rows (n, n_features) of one source as a dense array."""
    source = numeric_frame(source, name)
    check_column_names(source, names, name)
    array: Any = from_device(source)
    if isinstance(source, Table):
        array = np.concatenate(list(source.blocks()))
    if sp.issparse(source):
        check_indices(array, name)
        array = (array.astype(np.float32) if array.dtype == np.float16 else array).toarray()
    part: Array = check_table(array, name, minimum=1, finite=finite)
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
    indices = {label: index for index, label in enumerate(classes.tolist())}
    weights = np.ones(len(classes))
    for label, weight in class_weight.items():
        if label not in indices:
            raise ValueError(
                f"class_weight has a weight for {label!r}, which is not one of the classes "
                f"{listed(classes)}; use their labels as keys."
            )
        if not NON_NEGATIVE.admits(weight):
            raise ValueError(
                f"class_weight[{label!r}]={weight!r} must be {NON_NEGATIVE.text}; classes without an entry "
                "have weight 1."
            )
        weights[indices[label]] = weight
    if not np.any(weights):
        raise ValueError("class_weight is zero for all classes; give some class a positive weight.")
    return weights


def check_device(device: object) -> str | None:
    """The name of a device, or None for ``"auto"``; all but ``"cpu"`` need torch."""
    if isinstance(device, str) and device in ("auto", "cpu"):
        return None if device == "auto" else device
    try:
        tensors = annex("TorchTable")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"device={shown(device)} needs the torch package; {how_to_install('features')}, or "
            "pass device='auto'."
        ) from error
    name: str = tensors.device_name(device)
    return name


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
        warn(
            "classes were read from the private labels y, which the guarantee does not cover; "
            "pass classes=[...] or public rows.",
            PrivacyLeakWarning,
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
        warn(
            f"no public row has a label in {classes[counts == 0].tolist()}; the outputs of these "
            "classes start from the rows of the other classes, so add a public row of each class if you can."
        )
    return y, y_pub, origin


def check_same_numbering(y: Array, classes: Array) -> None:
    """Refuse labels that an ensemble has renumbered while the public labels kept their values."""
    if y.dtype.kind not in "iu":
        return
    labels, of_classes = set(np.unique(y).tolist()), set(classes.tolist())
    from_zero = labels == set(range(len(labels)))
    spelt_out = all(isinstance(label, str) and label.isdecimal() for label in classes.tolist())
    if from_zero and not labels <= of_classes and not of_classes <= labels and not spelt_out:
        raise ValueError(
            f"y is numbered from 0, but y_pub holds {listed(classes)}; ensembles such as "
            "BaggingClassifier, VotingClassifier and StackingClassifier renumber y and do not change "
            "y_pub, so number both from 0 beforehand."
        )
