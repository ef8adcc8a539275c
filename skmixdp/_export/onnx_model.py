"""A fitted linear head, or a pipeline, as an ONNX model from raw rows to labels and probabilities."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._utils.models import LinearModel, Model, classes_of, predicts_rates, report_of
from .._utils.validation import check, how_to_install
from .onnx_graph import Graph
from .operations import of_row_map

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
        from .onnx_steps import rows_of_steps  # imported here, since it imports much of scikit-learn

        *steps, (_, head) = estimator.steps
        rows = rows_of_steps(graph, steps)
    rows = graph.applied(of_row_map(head._row_map), rows or graph.input("X", head.n_features_in_))
    coef, intercept = np.atleast_2d(head.coef_), np.atleast_1d(head.intercept_)
    scores = graph.node("MatMul", rows, graph.constant(coef.T))
    scores = graph.node("Add", scores, graph.constant(intercept))
    if predicts_rates(head):
        scores = graph.node("Exp", scores)
    number = onnx.helper.np_dtype_to_tensor_dtype(graph.dtype)
    if classes_of(head) is not None:
        classified = _labelled if head.multilabel_ else _classified
        outputs = classified(graph, scores, head.classes_, number)
    else:
        shape: list[int | None] = [None, len(coef)]
        if head.coef_.ndim == 1:  # one-dimensional, as the targets of the fit were
            scores, shape = graph.node("Squeeze", scores, graph.constant(np.array([1]))), [None]
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
        second = graph.node("Greater", scores, graph.constant(0.0))
        index = graph.node(
            "Cast", graph.node("Squeeze", second, graph.constant(np.array([1]))), to=proto.INT64
        )
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
    positive = graph.node("Cast", graph.node("Greater", scores, graph.constant(0.0)), to=kind)
    return [
        graph.output("label", positive, kind, [None, len(names)]),
        graph.output("probabilities", graph.node("Sigmoid", scores), number, [None, len(names)]),
    ]
