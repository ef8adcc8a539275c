"""The graph of an ONNX model: nodes, constants and operations on rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .operations import Affine, Change, Cut, Marked, Operation, Project, ShortRows, Squared, Take, UnitRows

#: Inner names begin with this, which is forbidden in names of columns.
_INNER = "skmixdp/"


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
        if not name or name.startswith(_INNER) or name.encode(errors="ignore").decode() != name:
            raise TypeError(f"to_onnx cannot name an input after the column {name!r}; rename it before fit.")
        helper = self.onnx.helper
        kind = self.onnx.TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(self.dtype)
        entry = helper.make_tensor_value_info(name, kind, [None, width])
        if self.inputs.setdefault(name, entry) != entry:
            raise TypeError(
                f"to_onnx cannot read the column {name!r} as a number and as a text; give each a column."
            )
        return name

    def _constant(self, value: ArrayLike) -> str:
        """Name of a constant; real numbers are stored in the precision of the graph."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        name = f"{_INNER}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def labels(self, entries: list[Any], kind: int) -> str:
        """Name of a constant of labels."""
        name = f"{_INNER}classes"
        self.constants.append(self.onnx.helper.make_tensor(name, kind, [len(entries)], entries))
        return name

    def node(self, operator: str, *inputs: ArrayLike, **attributes: Any) -> str:
        """Name of the output of a new node; inputs are names, or values of constants."""
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        output = f"{_INNER}{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def output(self, name: str, inner: str, kind: int, shape: list[int | None]) -> Any:
        """An output, whose name ends in ``_`` if a column has the same name."""
        while name in self.inputs:
            name += "_"
        self.nodes.append(self.onnx.helper.make_node("Identity", [inner], [name]))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def number(self, truth: str) -> str:
        """Truth values as numbers."""
        return self.node("Cast", truth, to=self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype))

    def joined(self, blocks: list[str]) -> str:
        """Blocks of columns, concatenated."""
        return blocks[0] if len(blocks) == 1 else self.node("Concat", *blocks, axis=1)

    def norms(self, rows: str, norm: str = "l2") -> str:
        """Norms (n, 1) of rows, with 1 instead of 0."""
        axes = np.array([1])
        if norm == "l2":
            squares = self.node("Mul", rows, rows)
            norms = self.node("Sqrt", self.node("ReduceSum", squares, axes, keepdims=1))
        else:
            reduce = "ReduceMax" if norm == "max" else "ReduceSum"
            norms = self.node(reduce, self.node("Abs", rows), axes, keepdims=1)
        return self.node("Where", self.node("Equal", norms, 0.0), 1.0, norms)

    def applied(self, operations: Iterable[tuple[str, Operation]], rows: str) -> str:
        """Rows after operations."""
        for _, operation in operations:
            rows = self._applied(operation, rows)
        return rows

    def _applied(self, operation: Operation, rows: str) -> str:
        match operation:
            case Affine(center, scale):
                for operator, values in (("Sub", center), ("Div", scale)):
                    if values is not None:
                        rows = self.node(operator, rows, np.asarray(values, dtype=np.float64))
                return rows
            case Cut(low, high) if isinstance(low, np.ndarray):
                return self.node("Min", self.node("Max", rows, low), high)
            case Cut(low, high):
                return self.node("Clip", rows, float(low), float(high))
            case Marked():
                missing = self.node("IsNaN", rows)
                filled = self.node("Where", missing, 0.0, rows)
                return self.joined([filled, self.number(missing)])
            case Take(places):
                return self.node("Gather", rows, places, axis=1)
            case Squared(start):
                axes = np.array([1])
                ends = [np.array([end]) for end in (0, start, np.iinfo(np.int64).max)]
                first = self.node("Slice", rows, ends[0], ends[1], axes)
                last = self.node("Slice", rows, ends[1], ends[2], axes)
                return self.joined([first, self.node("Mul", last, last)])
            case UnitRows(norm):
                return self.node("Div", rows, self.norms(rows, norm))
            case ShortRows(bound):
                # The largest entry is divided out first, since the square of a huge or tiny one is inf or 0.
                largest = self.norms(rows, "max")
                rows = self.node("Div", rows, largest)
                bounds = self.node("Div", bound, largest)
                return self.node("Div", rows, self.node("Max", self.norms(rows), bounds))
            case Project(components):
                return self.node("MatMul", rows, components.T)
            case Change(factors, rest):
                change = rows
                for factor in factors:
                    change = self.node("MatMul", change, factor)
                return self.node("Add", self.node("Mul", rows, rest), change)
