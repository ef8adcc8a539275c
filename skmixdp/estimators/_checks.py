"""Checks of what a user passes in, each ending in one sentence that names the remedy."""

import math
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._arrays import CONVERSION_ERRORS, check_table
from .._engine import Budget
from .._rows import ArrayTable, RowFiles, Table, from_device
from ..algorithms import BY_NAME, Algorithm
from ..privacy import Neighboring, Noise

Array = NDArray[Any]
#: ``(y, name, n_rows, rows_name)`` to an array of ``n_rows`` checked labels or targets.
CheckTarget = Callable[[Any, str, int, str], Array]

#: Share of distinct rows below which repeated private rows are reported: a bootstrap of a set
#: keeps 63% of it.
_DISTINCT_SHARE = 0.75


def check_budget(
    *,
    epsilon: Any,
    delta: Any,
    n_steps: Any,
    noise_multiplier: Any,
    neighboring: Neighboring,
    noise: Noise,
) -> Budget:
    """The budget that an estimator's parameters describe."""
    for name, value in (("epsilon", epsilon), ("noise_multiplier", noise_multiplier)):
        if value is not None and not (_is_number(value) and 0 < value < math.inf):
            raise ValueError(f"{name}={value!r} must be a positive finite number or None.")
    if not (_is_number(delta) and 0 < delta < 1):
        raise ValueError(f"delta={delta!r} must lie strictly between 0 and 1; 1e-5 is usual.")
    if isinstance(n_steps, str) and n_steps == "auto":
        n_steps = None
    if n_steps is not None and not (_is_whole(n_steps) and n_steps >= 1):
        raise ValueError(f"n_steps={n_steps!r} must be a whole number of at least 1, or None.")
    check_choice("neighboring", neighboring, ("add_or_remove_one", "replace_one"))
    check_choice("noise", noise, ("float", "hardened"))
    if epsilon is not None and n_steps is not None and noise_multiplier is not None:
        raise ValueError(
            f"epsilon={epsilon!r}, noise_multiplier={noise_multiplier!r} and n_steps={n_steps!r} "
            "cannot all be given, since two of them determine the third; pass epsilon=None to "
            "fix the other two."
        )
    if epsilon is None and (n_steps is None or noise_multiplier is None):
        raise ValueError(
            f"epsilon=None needs both noise_multiplier (now {noise_multiplier!r}) and n_steps "
            f"(now {n_steps!r}); give them, or an epsilon."
        )
    return Budget(epsilon, delta, n_steps, noise_multiplier, neighboring, noise)


def check_algorithm(algorithm: Any) -> Algorithm:
    """An algorithm object; a name stands for its defaults."""
    if isinstance(algorithm, Algorithm):
        return algorithm
    if isinstance(algorithm, str) and algorithm in BY_NAME:
        return BY_NAME[algorithm]()
    raise ValueError(
        f"algorithm={algorithm!r} must be one of {', '.join(map(repr, BY_NAME))} or an object "
        "from skmixdp.algorithms."
    )


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """A parameter that is one of ``choices``."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}.")


def check_batch_size(batch_size: Any, noise: Noise) -> None:
    """None for the full batch, or an expected size."""
    if batch_size is None:
        return
    if not (_is_whole(batch_size) and batch_size >= 1):
        raise ValueError(f"batch_size={batch_size!r} must be a whole number of at least 1, or None.")
    if noise == "hardened":
        raise ValueError(
            f"batch_size={batch_size} cannot be accounted for with noise='hardened'; pass None for the "
            "full batch, or noise='float'."
        )


def check_verbose(verbose: Any) -> None:
    """A bool or a whole number of at least 0."""
    if not (isinstance(verbose, (bool, np.bool_)) or (_is_whole(verbose) and verbose >= 0)):
        raise ValueError(f"verbose={verbose!r} must be True, False or a whole number of at least 0.")


def check_auto(name: str, value: Any, *, zero: bool) -> None:
    """A parameter that is ``"auto"`` or a positive number; ``zero`` admits 0."""
    if isinstance(value, str) and value == "auto":
        return
    if not _is_number(value) or not (0 < value < math.inf or (zero and value == 0)):
        raise ValueError(
            f"{name}={value!r} must be 'auto' or a {'non-negative' if zero else 'positive'} number."
        )


def seed_of(random_state: Any) -> int | None:
    """The seed that a ``random_state`` stands for; None for secure noise."""
    if random_state is None:
        return None
    if _is_whole(random_state) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state={random_state!r} must be None for private noise, or a non-negative whole "
        "number or numpy RandomState for a reproducible run that is NOT private."
    )


def check_labels(y: Any, name: str, n_rows: int, rows_name: str) -> Array:
    """Labels as a flat array of ``n_rows`` entries without missing ones."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    try:
        shape = np.asarray(y).shape
    except CONVERSION_ERRORS:
        raise ValueError(
            f"{name} should be a 1d array of labels of one kind; pass one label a row."
        ) from None
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(f"{name} should be a 1d array, got an array of shape {shape}; pass one label a row.")
    labels = np.asarray(column_or_1d(y, warn=True))
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has {len(labels)} labels and {rows_name} {n_rows} rows; pass one label for each row."
        )
    if _has_missing(labels):
        raise ValueError(f"{name} contains NaN, None or infinity; drop the rows without a label.")
    return labels


def check_class_labels(y: Array, name: str) -> None:
    """Labels of classes, rather than measured values."""
    kinds = {isinstance(label, str) for label in y.tolist()} if y.dtype.kind == "O" else {True}
    try:
        if len(kinds) > 1:
            raise ValueError("text and numbers")
        check_classification_targets(y)
    except CONVERSION_ERRORS:
        raise ValueError(
            f"Unknown label type: {name} holds measured values or labels of mixed kinds; pass whole "
            "numbers, bools or strings."
        ) from None


def check_classes(classes: Any) -> Array:
    """Sorted declared classes."""
    labels = np.asarray(classes)
    mixed = len({type(label) for label in labels.ravel().tolist()}) > 1
    if labels.ndim != 1 or len(labels) == 0 or mixed or _has_missing(labels):
        raise ValueError(
            f"classes={classes!r} must be a flat list of labels, all of one kind and none missing."
        )
    return np.unique(labels)


def _has_missing(labels: Array) -> bool:
    if labels.dtype.kind == "f":
        return not np.all(np.isfinite(labels))
    # What is missing in pandas is neither equal to itself nor different, and says so by an error.
    return labels.dtype.kind == "O" and bool(pd.isna(labels).any())


def collect_public(
    X: Any, y: Any, names: Any, n_features: int, check_target: CheckTarget
) -> tuple[Array, Array] | None:
    """Public rows and targets from one array each, or from tuples of several sources."""
    if X is None and y is None:
        return None
    if X is None or y is None:
        missing, given = ("X_pub", "y_pub") if X is None else ("y_pub", "X_pub")
        raise ValueError(f"{given} was given without {missing}; public rows need both.")
    sources = X if isinstance(X, tuple) else (X,)
    labels = y if isinstance(y, tuple) else (y,)
    if len(sources) != len(labels):
        raise ValueError(
            f"X_pub has {len(sources)} sources and y_pub {len(labels)}; pass as many label "
            "arrays as row arrays."
        )
    if not sources:
        raise ValueError("X_pub=() holds no source; pass None where there are no public rows.")
    rows, targets = [], []
    for source, label in zip(sources, labels, strict=True):
        _check_names(source, names)
        part = check_table(_in_memory(source), "X_pub", minimum=1)
        if part.shape[1] != n_features:
            raise ValueError(
                f"X_pub has {part.shape[1]} features and X has {n_features}; pass public rows "
                "through the same feature extraction as the private ones."
            )
        rows.append(part)
        targets.append(check_target(from_device(label), "y_pub", len(part), "X_pub"))
        if targets[-1].shape[1:] != targets[0].shape[1:]:
            raise ValueError("the sources of y_pub differ in their number of targets; pass the same ones.")
    return np.concatenate(rows), np.concatenate(targets)


def _in_memory(source: Any) -> Any:
    """Public rows are few: sparse and stored ones become an array, and so do tensors."""
    if isinstance(source, RowFiles):
        return np.concatenate(list(source.blocks()))
    held: Any = from_device(source)
    return held.toarray() if sp.issparse(source) else held


def _check_names(source: Any, names: Any) -> None:
    """Columns of a public data frame must be those of the private one."""
    columns = getattr(source, "columns", None)
    if names is not None and columns is not None and list(columns) != list(names):
        raise ValueError(
            f"X_pub has the columns {_short(columns)} and X has {_short(names)}; pass the same "
            "columns in the same order."
        )


def encode_labels(y: Array, classes: Array, name: str, *, private: bool) -> NDArray[np.intp]:
    """Index of each label in the sorted ``classes``."""
    positions = {label: position for position, label in enumerate(classes.tolist())}
    index = np.array([positions.get(label, -1) for label in y.tolist()], dtype=np.intp)
    unknown = index < 0
    if np.any(unknown):
        # Of a private label nothing is said, not even whose it is: it may be an entry of a wrong column.
        row = int(np.argmax(unknown))
        label = f"{name} holds a label that" if private else f"{name}[{row}] = {y.tolist()[row]!r}"
        raise ValueError(f"{label} is not one of the classes {_short(classes)}; name every class in classes.")
    return index


def refuse_unsupported(arguments: dict[str, Any]) -> None:
    """Refuse what other estimators' ``fit`` takes."""
    if arguments:
        raise TypeError(
            f"fit does not take {', '.join(sorted(arguments))}; weighting private rows would "
            "change the sensitivity, so repeat or drop public rows instead."
        )


def warn_of_delta(delta: float, n_rows: int, stacklevel: int = 4) -> None:
    """Warn of a delta that promises a row little."""
    if delta >= 1 / n_rows:
        warnings.warn(
            f"delta={delta:g} is not below 1/n = {1 / n_rows:g}, so the guarantee allows a "
            "row to be published outright with that probability; use a smaller delta.",
            UserWarning,
            stacklevel=stacklevel,
        )


def check_same_numbering(y: Array, classes: Array) -> None:
    """Refuse labels that an ensemble numbered anew, beside public labels that it left as they were."""
    numbers = set(y.tolist()) if y.dtype.kind in "iu" else set()
    if numbers and numbers == set(range(len(numbers))) and not numbers <= set(classes.tolist()):
        raise ValueError(
            f"y is numbered from 0 and y_pub holds {_short(classes)}; ensembles such as BaggingClassifier, "
            "VotingClassifier and StackingClassifier number the labels y anew and leave y_pub as it is, so "
            "number both from 0 beforehand."
        )


def warn_of_repeats(X: Array | Table) -> None:
    """Warn where private rows repeat as bootstrap makes them repeat."""
    table = ArrayTable(X) if isinstance(X, np.ndarray) else X
    distinct, n_rows = table.n_distinct(), table.shape[0]
    if distinct < _DISTINCT_SHARE * n_rows:
        warnings.warn(
            "many private rows occur several times; the guarantee is per row, so someone who appears in "
            "several rows is protected less; do not bootstrap private rows.",
            UserWarning,
            stacklevel=4,
        )


def _short(values: Any, limit: int = 8) -> str:
    shown = ", ".join(repr(value) for value in np.asarray(values).tolist()[:limit])
    return f"[{shown}{', ...' if len(values) > limit else ''}]"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
