"""Parameters and fitted attributes as JSON and arrays, and back.

Only plain values and the classes in :data:`CLASSES` and :data:`FITTED` are encoded. A file holds the name of
a class, never code or a module to import. Reading a file therefore creates nothing but plain values and
objects of these classes.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..._rows.row_map import RowMap, TargetMap
from ..._rows.scaling import check_kind, check_numbers
from ..._utils.models import classes_of, names_of_features, predicts_rates, report_of
from ..._utils.validation import COUNT, FLAG, NON_NEGATIVE, check, check_params, listed
from ...preprocessing import TableColumn, TableEncoder
from ...privacy import LedgerDataset, PrivacyLedger, PrivacyReport, SearchReport

Array = NDArray[Any]

_ALGORITHMS = (
    *("Auto", "AdaMix", "Coupling", "DOPE", "DPZero", "GEP", "ModelMix", "NoisyGD", "PAZO", "PDADPMD"),
)
_WEIGHTS = ("SampleWeight", "ConstantWeight", "CosineWeight", "CouplingWeight", "ConvexWeight")

#: Classes of objects that a file may hold, and their modules, which are imported when needed.
CLASSES: Mapping[str, str] = {
    **dict.fromkeys(_ALGORITHMS, "skmixdp.algorithms"),
    **dict.fromkeys(_WEIGHTS, "skmixdp.components"),
    **dict.fromkeys(("ZeroShotHead", "OpenClipFeatures", "SentenceFeatures"), "skmixdp.features"),
    **dict.fromkeys(("Columns", "Whitening"), "skmixdp._rows.scaling"),
    **dict.fromkeys(("RowMap", "TargetMap"), "skmixdp._rows.row_map"),
    **dict.fromkeys(("PrivacyReport", "SearchReport"), "skmixdp.privacy"),
    "Basis": "skmixdp.additive._basis",
    "RowMapping": "skmixdp",
    "TableColumn": "skmixdp.preprocessing",
}

#: The heads that a file may hold, all of them public names of :mod:`skmixdp`.
HEADS = (
    "AdditiveDPClassifier",
    "AdditiveDPPoissonRegressor",
    "AdditiveDPRegressor",
    "FirstOrderDPModuleClassifier",
    "MixedDPLogisticRegression",
    "MixedDPPoissonRegressor",
    "MixedDPRidge",
    "ZerothOrderDPModuleClassifier",
)
_OWN = ("NoisyScaler", "PublicOnly", "PublicWhitener", "RowNormalizer", "TableEncoder")
_PREPROCESSING = (
    *("Binarizer", "FunctionTransformer", "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer"),
    *("OneHotEncoder", "OrdinalEncoder", "PolynomialFeatures", "PowerTransformer", "QuantileTransformer"),
    *("RobustScaler", "StandardScaler"),
)
_OF_TEXTS = ("CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer")

#: Estimators that a file may hold with their fitted attributes, and the module of each.
FITTED: Mapping[str, str] = {
    **dict.fromkeys((*HEADS, "PrivatePipeline"), "skmixdp"),
    **dict.fromkeys(_OWN, "skmixdp.preprocessing"),
    **dict.fromkeys(_PREPROCESSING, "sklearn.preprocessing"),
    **dict.fromkeys(("ColumnTransformer", "make_column_selector"), "sklearn.compose"),
    **dict.fromkeys(("FeatureUnion", "Pipeline"), "sklearn.pipeline"),
    **dict.fromkeys(("MissingIndicator", "SimpleImputer"), "sklearn.impute"),
    **dict.fromkeys(("PCA", "TruncatedSVD"), "sklearn.decomposition"),
    **dict.fromkeys(_OF_TEXTS, "sklearn.feature_extraction.text"),
    "VarianceThreshold": "sklearn.feature_selection",
}

#: Types of arrays that are stored unchanged.
_NUMERIC = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    }
)


#: What labels and ranges may take in memory: bytes for each byte of the file, and for any file. One long
#: label makes an array of texts wide, so a small file could fill the memory.
_BYTES_PER_BYTE, _LEAST_BYTES = 16, 2**26


@runtime_checkable
class Checked(Protocol):
    """A type that checks itself when it is read from a file."""

    def check_fields(self) -> None:
        """Raise ValueError for values of fields that only a forged file has."""


class NotEncodableError(TypeError):
    """A value that no file can hold; the message says where it is and what it is."""


def class_named(name: Any, classes: Mapping[str, str] = CLASSES) -> type:
    """The class with this name; a ValueError if ``classes`` lacks it."""
    require(isinstance(name, str) and name in classes, f"the class {name!r} is unknown")
    kind: type = getattr(import_module(classes[name]), name)
    return kind


def is_known(value: object, classes: Mapping[str, str]) -> bool:
    """Whether the class of an object is one of the ``classes``; a class derived from one is not."""
    name = type(value).__name__
    return name in classes and class_named(name, classes) is type(value)


def restore_estimator(name: object, parameters: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """An estimator of :data:`FITTED` with checked parameters and attributes."""
    kind = class_named(name, FITTED)
    with _errors_of(kind):
        estimator = kind(**parameters)
    saved = getattr(kind, "_saved", None)
    unknown = sorted(set(attributes) - set(saved)) if saved is not None else []
    require(not unknown, f"the attributes {listed(unknown)} are unknown")
    vars(estimator).update(attributes)
    check_loaded(estimator)
    return estimator


class Encoder:
    """Encodes values as JSON. Numeric arrays go to :attr:`arrays`, and the JSON refers to them by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def encode(self, value: object, where: str) -> Any:
        """A value as JSON; ``where`` is the name of the attribute, for messages and for its array."""
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic):
            if value.dtype.name not in _NUMERIC:
                raise NotEncodableError(f"{where} is a scalar of type {value.dtype}")
            return {"scalar": self.encode(value.item(), where), "dtype": value.dtype.name}
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.encode(entry, f"{where}[{_label(entry, i)}]") for i, entry in enumerate(value)]
        if isinstance(value, tuple):
            return {"tuple": self.encode(list(value), where)}
        if isinstance(value, dict):
            return {"dict": self.encode([[*pair] for pair in value.items()], where)}
        if isinstance(value, (range, slice)):
            return {type(value).__name__: self.encode([value.start, value.stop, value.step], where)}
        if isinstance(value, Path):
            return {"path": str(value)}
        if isinstance(value, LedgerDataset):
            if value.ledger.path is None:
                raise NotEncodableError(f"{where} is in memory")
            return {"ledger": str(value.ledger.path), "dataset": value.name, "purpose": value.purpose}
        if isinstance(value, np.dtype) and value.name in (*_NUMERIC, "object"):
            return {"type": value.name, "is_dtype": True}
        if isinstance(value, type) and issubclass(value, np.generic) and value.__name__ in _NUMERIC:
            return {"type": value.__name__, "is_dtype": False}
        if is_known(value, FITTED):
            return {"fitted": type(value).__name__, **self.estimator(value, where)}
        if not is_known(value, CLASSES):
            raise NotEncodableError(f"{where} is a {type(value).__qualname__}")
        if is_dataclass(value):
            values = {field.name: vars(value)[field.name] for field in fields(value)}
        else:
            values = value.get_params(deep=False)  # type: ignore[attr-defined]
        return {"class": type(value).__name__, "values": self.named(values, where)}

    def estimator(self, value: Any, where: str = "") -> dict[str, Any]:
        """Parameters and fitted attributes of an estimator of :data:`FITTED`."""
        if not hasattr(value, "get_params"):  # a selector of columns: its attributes are its parameters
            return {"parameters": self.named(vars(value), where), "attributes": {}}
        parameters = value.get_params(deep=False)
        saved = getattr(type(value), "_saved", None)
        names = sorted(set(vars(value)) - {*parameters, "_metadata_request"}) if saved is None else saved
        attributes = {name: getattr(value, name) for name in names if hasattr(value, name)}
        if "device" in parameters:
            parameters["device"] = str(parameters["device"])  # it may be a torch.device
        if type(value).__name__ == "TableEncoder" and isinstance(value.columns, Mapping):
            parameters["columns"] = {name: _dates_as_texts(column) for name, column in value.columns.items()}
        if hasattr(value, "module_") and not where:
            del parameters["module"]
            attributes["module_"] = value._module_state()
        return {"parameters": self.named(parameters, where), "attributes": self.named(attributes, where)}

    def _array(self, array: Array, where: str) -> Any:
        if array.dtype.name in _NUMERIC:
            # Products of the same numbers in another memory layout may be rounded differently.
            column_major = array.flags.f_contiguous and not array.flags.c_contiguous
            stored = np.array(array.T if column_major else array, order="C")
            self.arrays[where] = stored.astype(stored.dtype.newbyteorder("="), copy=False)
            return {"array": where, "transposed": column_major}
        if array.dtype.kind in "OU" and array.ndim == 1:
            dtype = "object" if array.dtype.kind == "O" else array.dtype.str
            return {"labels": self.encode(array.tolist(), where), "dtype": dtype}
        raise NotEncodableError(f"{where} is an array of type {array.dtype}")

    def named(self, values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
        """Encoded values by name; ``where`` is the object that they belong to."""
        prefix = f"{where}." if where else ""
        return {name: self.encode(value, f"{prefix}{name}") for name, value in values.items()}


def _label(entry: Any, place: int) -> str:
    """The name of a step, or its place in a list."""
    named = isinstance(entry, tuple) and len(entry) > 1 and hasattr(entry[1], "get_params")
    return repr(entry[0]) if named else str(place)


def _dates_as_texts(declared: Any) -> Any:
    """What is declared of a column of a table, with dates and moments as ISO 8601 texts."""
    if not isinstance(declared, (tuple, list)):
        return declared
    return type(declared)(str(each) if isinstance(each, date) else each for each in declared)


class Decoder:
    """Decodes what :class:`Encoder` made, and raises an error for most that it did not make."""

    def __init__(self, arrays: Mapping[str, Array], size: int) -> None:
        """``arrays`` are those of a file of ``size`` bytes."""
        #: Decoded classes of scikit-learn.
        self.foreign: list[str] = []
        self._arrays = arrays
        self._left = max(_LEAST_BYTES, _BYTES_PER_BYTE * size)
        self._kinds: dict[frozenset[str], Callable[..., Any]] = {
            frozenset({"scalar", "dtype"}): lambda value: _numeric(value["dtype"]).type(
                self.decode(value["scalar"])
            ),
            frozenset({"float"}): lambda value: float(_text(value["float"])),
            frozenset({"tuple"}): lambda value: tuple(self._list(value["tuple"])),
            frozenset({"dict"}): lambda value: {key: entry for key, entry in self._list(value["dict"])},  # noqa: C416 - lists are not pairs for dict()
            frozenset({"range"}): self._range,
            frozenset({"path"}): lambda value: Path(_text(value["path"])),
            frozenset({"array", "transposed"}): self._array,
            frozenset({"labels", "dtype"}): self._labels,
            frozenset({"ledger", "dataset", "purpose"}): _ledger,
            frozenset({"class", "values"}): self._object,
            frozenset({"fitted", "parameters", "attributes"}): self._fitted,
            frozenset({"slice"}): lambda value: slice(*self._list(value["slice"])),
            frozenset({"type", "is_dtype"}): _type,
        }

    def decode(self, value: object) -> Any:
        """The value that was encoded."""
        if isinstance(value, list):
            return self._list(value)
        if not isinstance(value, dict):
            return value
        decode = self._kinds.get(frozenset(value))
        if decode is None:
            raise ValueError(f"an entry has the keys {sorted(value)}")
        return decode(value)

    def named(self, values: Any) -> dict[str, Any]:
        """Decoded values by name."""
        require(isinstance(values, dict), "names and values are missing")
        return {name: self.decode(value) for name, value in values.items()}

    def _list(self, values: Any) -> list[Any]:
        require(isinstance(values, list), "a list is missing")
        return [self.decode(value) for value in values]

    def _range(self, value: Any) -> range:
        numbers = range(*self._list(value["range"]))
        self._take(8 * max(0, (numbers.stop - numbers.start) // numbers.step))
        return numbers

    def _take(self, n_bytes: int) -> None:
        """Refuse files whose labels and ranges take much more memory than the file."""
        self._left -= n_bytes
        problem = "it is too large, since its labels or ranges take far more memory than the file"
        require(self._left >= 0, problem)

    def _array(self, value: Any) -> Array:
        name = value["array"]
        require(name in self._arrays, f"the array {name!r} is missing")
        array = self._arrays[name]
        return array.T if value["transposed"] else array

    def _labels(self, value: Any) -> Array:
        labels, dtype = self._list(value["labels"]), _text(value["dtype"])
        if dtype == "object":
            array = np.empty(len(labels), dtype=object)
            array[:] = labels
            return array
        are_texts = np.dtype(dtype).kind == "U" and all(isinstance(label, str) for label in labels)
        require(are_texts, f"{dtype!r} is no type of labels")
        self._take(4 * len(labels) * max(map(len, labels), default=0))
        return np.array(labels, dtype=str)  # as wide as the longest label, whatever the file says

    def _object(self, value: Any) -> Any:
        kind, values = class_named(value["class"]), self.named(value["values"])
        with _errors_of(kind):
            decoded = kind(**values)
            if isinstance(decoded, Checked):
                decoded.check_fields()
            return decoded

    def _fitted(self, value: Any) -> Any:
        name = value["fitted"]
        if FITTED.get(name, "").startswith("sklearn."):
            self.foreign.append(name)
        return restore_estimator(name, self.named(value["parameters"]), self.named(value["attributes"]))


@contextmanager
def _errors_of(kind: type) -> Iterator[None]:
    """Name the class whose constructor fails."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"a {kind.__name__} in it is not valid: {error}") from error


def _text(value: object) -> str:
    require(isinstance(value, str), f"{value!r} is not a text")
    return str(value)


def _numeric(name: Any) -> np.dtype[Any]:
    require(_text(name) in _NUMERIC, f"{name!r} is no type of numbers")
    dtype: np.dtype[Any] = np.dtype(name)
    return dtype


def _type(value: Any) -> Any:
    dtype: np.dtype[Any] = np.dtype(object) if value["type"] == "object" else _numeric(value["type"])
    return dtype if value["is_dtype"] is True else dtype.type


def _ledger(value: Any) -> LedgerDataset:
    """A data set of a ledger, whose file is never created, and opened only by a charge."""
    ledger = PrivacyLedger.__new__(PrivacyLedger)
    ledger.__setstate__({"path": Path(_text(value["ledger"]))})
    dataset, purpose = LedgerDataset(ledger, _text(value["dataset"])), _text(value["purpose"])
    return dataset.for_purpose(purpose) if purpose else dataset


def require(holds: object, problem: str) -> None:
    """Refuse what only a damaged or forged file has; ``problem`` says what is wrong."""
    if not holds:
        raise ValueError(problem)


def check_loaded(estimator: BaseEstimator) -> None:
    """Check types and shapes of the parameters and fitted attributes that were read from a file."""
    # Transformers of scikit-learn are not checked: a forged one makes predictions fail or wrong, but runs no
    # code.
    if isinstance(estimator, TableEncoder):
        columns = vars(estimator).get("columns_", {})  # only fitted encoders have columns
        named = isinstance(columns, dict) and all(isinstance(name, str) for name in columns)
        require(named, "columns_ is not a dict of columns")
        for column in columns.values():
            check_kind("a column", column, TableColumn)
    if type(estimator).__name__ == "PrivatePipeline":
        _check_steps(estimator.steps)
    if not hasattr(estimator, "_allowed") or not hasattr(estimator, "_saved"):
        return
    check_params(estimator, estimator._allowed)
    check("n_iter_", estimator.n_iter_, COUNT)
    check("learning_rate_", estimator.learning_rate_, NON_NEGATIVE)
    require(type(estimator.privacy_) in (PrivacyReport, SearchReport), "privacy_ is not a report")
    classes = classes_of(estimator)
    if classes is not None:
        check("multilabel_", estimator.multilabel_, FLAG)
        flat = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 1
        require(flat, "classes_ is not a flat array of two or more labels")
        require(len(np.unique(classes)) == len(classes), "classes_ has a label twice")
        in_order = estimator.multilabel_ or np.array_equal(np.unique(classes), classes)
        require(in_order, "classes_ is not sorted")
    # Modules have them if they were fitted to a data frame.
    of_features = {"n_features_in_", "feature_names_in_"}
    if "coef_" in estimator._saved or of_features & vars(estimator).keys():
        d, names = estimator.n_features_in_, names_of_features(estimator)
        check("n_features_in_", d, COUNT)
        named = names is None or (names.shape == (d,) and all(isinstance(name, str) for name in names))
        require(named, "feature_names_in_ does not name the features")
    if "coef_" in estimator._saved:
        _check_head(estimator, classes)


def _check_steps(steps: Any) -> None:
    """Check that a pipeline has named steps, and a fitted head at its end."""
    named = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    ends_in_head = named and steps and report_of(steps[-1][1]) is not None
    require(ends_in_head, "steps is not a list of named steps with a fitted head at its end")


def _check_head(estimator: BaseEstimator, classes: Array | None) -> None:
    d = estimator.n_features_in_
    shape: tuple[int, ...]
    if classes is None:
        outputs = len(estimator._target_map.center)
        shape = () if estimator._flat else (outputs,)
        check_kind("_target_map", estimator._target_map, TargetMap)
        estimator._target_map.check_for(outputs)
        names = vars(estimator).get("_target_names") or [""] * outputs
        named = [type(each) for each in names] == [str] * outputs
        require(named, "_target_names does not name the targets")
    else:
        shape = (1,) if len(classes) == 2 and not estimator.multilabel_ else (len(classes),)
        if "class_shares_" in vars(estimator):
            check_numbers("class_shares_", estimator.class_shares_, (len(classes),))
    check_kind("_row_map", row_map := estimator._row_map, RowMap)
    if row_map.basis is not None:
        require(type(row_map.basis).__name__ == "Basis", "basis is not a Basis")
        row_map.basis.check_for(d)
    d = row_map.check_for(d)
    check_numbers("coef_", estimator.coef_, (*shape, d))
    check_numbers("intercept_", estimator.intercept_, shape)
    if "_noise" in type(estimator)._saved:
        k = len(np.atleast_1d(estimator.intercept_))
        check_numbers("_noise", estimator._noise, (d, d) if predicts_rates(estimator) else (k + 3,))
