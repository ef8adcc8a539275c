"""The graph of an ONNX model: nodes and constants."""

from typing import Any

import numpy as np


class Graph:
    """Nodes and constants of an ONNX graph, in one precision."""

    def __init__(self, onnx: Any, dtype: str) -> None:
        self.onnx = onnx
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Any] = {}

    def input(self, name: str, width: int, *, text: bool = False) -> str:
        """Name of an input of numbers or texts, (n, width)."""
        helper = self.onnx.helper
        kind = self.onnx.TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(self.dtype)
        made = helper.make_tensor_value_info(name, kind, [None, width])
        if self.inputs.setdefault(name, made) != made:
            raise TypeError(
                f"to_onnx cannot read the column {name!r} as a number and as a text; give each a column."
            )
        return name

    def constant(self, value: Any, name: str | None = None) -> str:
        """Name of a constant; real numbers are stored in the precision of the graph."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        name = name or f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Name of the output of a new node."""
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def positive(self, lengths: str) -> str:
        """Lengths with 1 in place of 0."""
        zero = self.node("Equal", lengths, self.constant(0.0))
        return self.node("Where", zero, self.constant(1.0), lengths)

    def largest_entries(self, rows: str) -> str:
        """Largest absolute entry of each row, with 1 in place of 0."""
        axes = self.constant(np.array([1]))
        return self.positive(self.node("ReduceMax", self.node("Abs", rows), axes, keepdims=1))

    def lengths(self, rows: str) -> str:
        """L2 norm of each row."""
        squares = self.node("Mul", rows, rows)
        sums = self.node("ReduceSum", squares, self.constant(np.array([1])), keepdims=1)
        return self.node("Sqrt", sums)
