"""A fitted linear head, or a pipeline, as an ONNX model from raw rows to labels and probabilities."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._utils.models import LinearModel, Model, classes_of, names_of_features, predicts_rates, report_of
from .._utils.validation import check, how_to_install, shown
from ..preprocessing import TableColumn
from .onnx_graph import Graph
from .operations import OWN, Affine, Cut, Operations, Project, Take, of_categories, of_numbers, of_row_map

Array = NDArray[Any]

#: The oldest operator set with all operators of these models, for older runtimes.
_OPSET = 18

#: The version of the file format that has this operator set.
_IR_VERSION = 8


def to_onnx(estimator: LinearModel, dtype: str) -> Any:
    """The ONNX model of a fitted estimator; see :meth:`LinearHead.to_onnx`."""
    check("dtype", dtype, "float32", "float64")
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ImportError(f"to_onnx needs the onnx package; {how_to_install('onnx')}.") from error
    graph, head, rows = Graph(onnx, dtype), estimator, ""
    if isinstance(estimator, Pipeline):
        *steps, (_, head) = estimator.steps
        rows = rows_of_steps(graph, steps)
    rows = graph.applied(of_row_map(head._row_map), rows or graph.input("X", head.n_features_in_))
    coef, intercept = np.atleast_2d(head.coef_), np.atleast_1d(head.intercept_)
    scores = graph.node("MatMul", rows, coef.T)
    scores = graph.node("Add", scores, intercept)
    if predicts_rates(head):
        scores = graph.node("Exp", scores)
    number = onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    if classes_of(head) is not None:
        classified = _labelled if head.multilabel_ else _classified
        outputs = classified(graph, scores, head.classes_, number)
    else:
        shape: list[int | None] = [None, len(coef)]
        if head.coef_.ndim == 1:  # one-dimensional, as the targets of the fit were
            scores, shape = graph.node("Squeeze", scores, np.array([1])), [None]
        outputs = [graph.output("predictions", scores, number, shape)]
    built = onnx.helper.make_graph(
        graph.nodes, type(head).__name__, [*graph.inputs.values()], outputs, initializer=graph.constants
    )
    model = onnx.helper.make_model(
        built,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=_IR_VERSION,
        producer_name="skmixdp",
    )
    onnx.helper.set_model_props(model, _reports(estimator))
    onnx.checker.check_model(model, full_check=True)
    return model


def _reports(estimator: Model) -> dict[str, str]:
    """The privacy reports of an estimator, or of all steps of a pipeline that have one, as JSON."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    reports = {name: step.privacy_.to_json(indent=None) for name, step in steps if report_of(step)}
    if len(reports) == 1:
        return {"privacy": reports.popitem()[1]}
    return {f"privacy of {name}": report for name, report in reports.items()}


def _classified(graph: Graph, scores: str, classes: Array, number: int) -> list[Any]:
    """Labels and probabilities as the outputs of a classifier."""
    proto = graph.onnx.TensorProto
    if len(classes) == 2:
        opposite = graph.node("Neg", scores)
        shares = graph.joined([graph.node("Sigmoid", opposite), graph.node("Sigmoid", scores)])
        second = graph.node("Greater", scores, 0.0)
        index = graph.node("Cast", graph.node("Squeeze", second, np.array([1])), to=proto.INT64)
    else:
        shares = graph.node("Softmax", scores, axis=1)
        index = graph.node("ArgMax", scores, axis=1, keepdims=0)
    entries: list[Any] = classes.tolist()
    kinds = {bool: proto.BOOL, int: proto.INT64, float: proto.DOUBLE, str: proto.STRING}
    kind = kinds.get(type(entries[0]))
    if kind is None or len({type(entry) for entry in entries}) > 1:
        raise TypeError(
            f"classes of type {type(entries[0]).__name__} have no type in ONNX; fit to integers, bools or "
            "strings."
        )
    label = graph.node("Gather", graph.labels(entries, kind), index)
    return [
        graph.output("label", label, kind, [None]),
        graph.output("probabilities", shares, number, [None, len(classes)]),
    ]


def _labelled(graph: Graph, scores: str, names: Array, number: int) -> list[Any]:
    """Labels (n, k) of zeros and ones and their probabilities as the outputs of a classifier."""
    kind = graph.onnx.TensorProto.INT64
    positive = graph.node("Cast", graph.node("Greater", scores, 0.0), to=kind)
    return [
        graph.output("label", positive, kind, [None, len(names)]),
        graph.output("probabilities", graph.node("Sigmoid", scores), number, [None, len(names)]),
    ]


@dataclass(frozen=True)
class _Columns:
    """Columns of a table, each of which becomes an input of the graph when a step reads it."""

    names: Sequence[str]


#: The rows before a step: a matrix of the graph, or columns that were not read yet.
_Rows = str | _Columns


def rows_of_steps(graph: Graph, steps: Sequence[tuple[str, Any]]) -> str:
    """Name of the rows (n, d) after all steps. Tables have one input per column, arrays the input ``X``."""
    steps = [(name, step) for name, step in steps if step not in (None, "passthrough")]
    if not steps:
        return ""
    first = steps[0][1]
    names = names_of_features(first)
    rows: _Rows = graph.input("X", first.n_features_in_) if names is None else _Columns([*names])
    for name, step in steps:
        rows = _applied(graph, step, rows, name)
    return _matrix(graph, rows)


def _applied(graph: Graph, step: object, rows: _Rows, path: str) -> _Rows:
    """Rows after a step; ``path`` names it in messages."""
    if step == "passthrough" or step is None:
        return rows
    rule = next((_RULES[kind.__name__] for kind in type(step).__mro__ if kind.__name__ in _RULES), None)
    usual = _USUAL.get(type(step).__name__, {}).items()
    odds = (f" with {name}={shown(v)}" for name, only in usual if (v := getattr(step, name)) != only)
    odd = next(odds, "")
    if rule is None or odd:
        raise TypeError(
            f"to_onnx has no form of the step {path!r}, a {type(step).__name__}{odd}; save the "
            "pipeline with save, or transform rows before the model."
        )
    return rule(graph, step, rows, path)


#: By class: parameters, and the only value of each that can be exported.
_USUAL: dict[str, dict[str, Any]] = {
    "OneHotEncoder": {"drop": None, "min_frequency": None, "max_categories": None},
    "PCA": {"whiten": False},
    "FunctionTransformer": {"func": None},
    "ColumnTransformer": {"transformer_weights": None},
    "FeatureUnion": {"transformer_weights": None},
}


def _matrix(graph: Graph, rows: _Rows) -> str:
    """Rows as one matrix of numbers."""
    if isinstance(rows, str):
        return rows
    return graph.joined([graph.input(name, 1) for name in rows.names])


def _one_hot(graph: Graph, texts: str, categories: Sequence[str]) -> str:
    """Zeros and ones (n, k) for texts (n, 1)."""
    coded = graph.node("OneHotEncoder", texts, domain="ai.onnx.ml", cats_strings=[*categories], zeros=1)
    return graph.number(graph.node("Reshape", coded, np.array([-1, len(categories)])))


def _of_table(graph: Graph, encoder: Any, rows: _Rows, path: str) -> str:
    blocks = []
    for name, column in encoder.columns_.items():
        if column.kind == "text":
            raise TypeError(
                f"to_onnx has no form of hashed words, as of the column {name!r} in the step {path!r}; "
                "declare its categories, or save the pipeline with save."
            )
        if column.kind == "category":
            texts = graph.input(name, 1, text=True)
            indicators = _one_hot(graph, texts, [*column.categories, *([""] if column.indicator else [])])
            blocks.append(graph.applied(of_categories(column), indicators))
        elif column.kind == "list":
            if column.indicator:
                raise TypeError(
                    f"to_onnx has no form of missing lists, as of the column {name!r} in the step {path!r}; "
                    "pass indicators=False to the encoder, or save the pipeline with save."
                )
            blocks.append(_of_column(graph, column, graph.input(name, column.length)))
        elif column.kind != "drop":
            blocks.append(_of_column(graph, column, graph.input(name, 1)))
    return graph.joined(blocks)


def _of_column(graph: Graph, column: TableColumn, values: str) -> str:
    """A column of numbers, truth values (0, 1) or days since 1970."""
    if column.kind == "boolean":  # other numbers are missing values
        sign = graph.applied([("sign", Affine(np.array([0.5]), np.array([0.5])))], values)
        is_boolean = graph.node("Equal", graph.node("Abs", sign), 1.0)
        values = graph.node("Where", is_boolean, sign, math.nan)
    missing = graph.node("IsNaN", values)
    blocks = [graph.applied(of_numbers(column), values)]
    for _, length in column.periods:
        turns = graph.node("Div", values, float(length))
        turns = graph.node("Sub", turns, graph.node("Floor", turns))
        angles = graph.node("Mul", turns, 2 * math.pi)
        quarter = graph.node("Add", angles, math.pi / 2)
        blocks += [graph.node("Sin", angle) for angle in (angles, quarter)]
    filled = graph.node("Where", missing, 0.0, graph.joined(blocks))
    return graph.joined([filled, graph.number(missing)]) if column.indicator else filled


def _of_columns(graph: Graph, step: Any, rows: _Rows, path: str) -> str:
    blocks = []
    for name, part, _ in step.transformers_:
        columns = step._transformer_to_input_indices[name]
        if part != "drop" and len(columns):
            block = _applied(graph, part, _chosen(graph, rows, columns), f"{path}__{name}")
            blocks.append(_matrix(graph, block))
    return graph.joined(blocks)


def _chosen(graph: Graph, rows: _Rows, columns: Any) -> _Rows:
    """Some columns, by their names or places."""
    if isinstance(rows, _Columns):
        if isinstance(columns, str):
            return _Columns([columns])
        return _Columns([each if isinstance(each, str) else rows.names[each] for each in columns])
    return graph.applied([("columns", Take(np.asarray(columns, dtype=np.int64)))], rows)


def _of_pipeline(graph: Graph, step: Any, rows: _Rows, path: str) -> _Rows:
    for name, part in step.steps:
        rows = _applied(graph, part, rows, f"{path}__{name}")
    return rows


def _of_union(graph: Graph, step: Any, rows: _Rows, path: str) -> str:
    parts = [(name, part) for name, part in step.transformer_list if part != "drop"]
    return graph.joined(
        [_matrix(graph, _applied(graph, part, rows, f"{path}__{name}")) for name, part in parts]
    )


def _of_imputer(graph: Graph, step: Any, rows: _Rows, path: str) -> str:
    statistics = np.asarray(step.statistics_)
    if statistics.dtype.kind != "f" or np.isnan(statistics).any() or step.missing_values is not np.nan:
        raise TypeError(
            f"to_onnx has no form of the step {path!r}, which fills other cells than NaN in numbers; save "
            "the pipeline with save."
        )
    matrix = _matrix(graph, rows)
    missing = graph.node("IsNaN", matrix)
    filled = graph.node("Where", missing, statistics, matrix)
    if step.indicator_ is None:
        return filled
    chosen = _chosen(graph, graph.number(missing), step.indicator_.features_)
    return graph.joined([filled, _matrix(graph, chosen)])


def _of_categories(graph: Graph, step: Any, rows: _Rows, path: str) -> str:
    blocks = []
    for place, categories in enumerate(step.categories_):
        values = [*categories.tolist()]
        if isinstance(rows, _Columns) and any(isinstance(value, str) for value in values):
            texts = ["" if value is None or value != value else str(value) for value in values]
            blocks.append(_one_hot(graph, graph.input(rows.names[place], 1, text=True), texts))
        else:
            numbers = _matrix(graph, _chosen(graph, rows, [place]))
            numbers_present = [value for value in values if value == value]
            equal = graph.node("Equal", numbers, np.array(numbers_present, dtype=np.float64))
            blocks.append(graph.number(equal))
            if len(numbers_present) < len(values):
                blocks.append(graph.number(graph.node("IsNaN", numbers)))
    return graph.joined(blocks)


def _of_min_max(step: Any) -> Operations:
    scaled: Operations = [("scaled", Affine(-step.min_ / step.scale_, 1 / step.scale_))]
    return [*scaled, ("cut", Cut(*step.feature_range))] if step.clip else scaled


#: Transformers that consist of operations.
_OPERATIONS: dict[str, Callable[[Any], Operations]] = {
    **OWN,
    "Normalizer": OWN["RowNormalizer"],
    "MinMaxScaler": _of_min_max,
    "MaxAbsScaler": lambda step: [("scale", Affine(scale=step.scale_))],
    "RobustScaler": lambda step: [("scale", Affine(step.center_, step.scale_))],
    # Without with_mean, the mean is computed and not used.
    "StandardScaler": lambda step: [("scale", Affine(step.mean_ if step.with_mean else None, step.scale_))],
    "PCA": OWN["PublicWhitener"],
    "TruncatedSVD": lambda step: [("project", Project(step.components_))],
}


def _operated(graph: Graph, step: object, rows: _Rows, path: str) -> str:
    kind = next(kind.__name__ for kind in type(step).__mro__ if kind.__name__ in _OPERATIONS)
    return graph.applied(_OPERATIONS[kind](step), _matrix(graph, rows))


#: The function that turns each class into nodes.
_RULES: dict[str, Callable[[Graph, Any, Any, str], _Rows]] = {
    "TableEncoder": _of_table,
    "PublicOnly": lambda graph, step, rows, path: _applied(graph, step.transformer_, rows, path),
    "ColumnTransformer": _of_columns,
    "Pipeline": _of_pipeline,
    "FeatureUnion": _of_union,
    "SimpleImputer": _of_imputer,
    "OneHotEncoder": _of_categories,
    "FunctionTransformer": lambda graph, step, rows, path: rows,
    **dict.fromkeys(_OPERATIONS, _operated),
}
