"""Which faults are planted, and where.

Cosmic Ray's operators change a number by one, an arithmetic operator, a comparison, a Boolean, a loop, a
decorator or an exception that is caught. Of the eleven operators that could replace an arithmetic one, the
nearest is taken, and of the seven that could replace a comparison the nearest and the opposite; the others
are easier to notice. Three operators of our own delete a statement, drop a keyword argument, and swap
``min`` with ``max`` and their likes.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import parso.python.tree
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

_OF_COSMIC_RAY = (
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in (
            "Add_Sub",
            "Sub_Add",
            "Mul_Div",
            "Div_Mul",
            "FloorDiv_Div",
            "Pow_Mul",
            "BitAnd_BitOr",
            "BitOr_BitAnd",
            "LShift_RShift",
        )
    ),
    *(
        f"ReplaceComparisonOperator_{pair}"
        for pair in (
            "Lt_LtE",
            "Lt_GtE",
            "LtE_Lt",
            "LtE_Gt",
            "Gt_GtE",
            "Gt_LtE",
            "GtE_Gt",
            "GtE_Lt",
            "Eq_NotEq",
            "NotEq_Eq",
            "Is_IsNot",
            "IsNot_Is",
        )
    ),
    "ReplaceUnaryOperator_USub_UAdd",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_Invert",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "RemoveDecorator",
    "ZeroIterationForLoop",
)

_SWAPS = {"min": "max", "minimum": "maximum", "fmin": "fmax", "floor": "ceil", "any": "all"}
_SWAPS |= {new: old for old, new in _SWAPS.items()}

#: Decorators that only save time, or that only tools read.
_IDLE_DECORATORS = {"cache", "lru_cache", "cached_property", "overload", "abstractmethod"}

#: Arguments that only check what cannot differ, or only save time.
_IDLE_ARGUMENTS = {"strict", "copy"}


class _Ours(Operator):
    """An operator that makes at most one mutant of a node."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if self.applies(node):
            yield node.start_pos, node.end_pos

    def applies(self, node: Any) -> bool:
        raise NotImplementedError

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class DeleteStatement(_Ours):
    """A statement whose absence leaves no name undefined becomes ``pass``."""

    def applies(self, node: Any) -> bool:
        if node.type == "keyword":
            return node.value == "raise" and node.parent.type == "simple_stmt"
        if node.parent is None or node.parent.type != "simple_stmt":
            return False
        if node.type in ("raise_stmt", "atom_expr"):
            return True
        if node.type != "expr_stmt":
            return False
        target, sign = node.children[0], node.children[1]
        augmented = sign.type == "operator" and sign.value != "="
        return augmented or (target.type in ("atom_expr", "power") and sign.type == "operator")

    def mutate(self, node: Any, index: int) -> Any:
        return parso.python.tree.Keyword("pass", node.start_pos, node.get_first_leaf().prefix)


class DropKeywordArgument(_Ours):
    """A call is made without one of its keyword arguments."""

    def applies(self, node: Any) -> bool:
        if node.type != "argument" or len(node.children) != 3 or node.children[1] != "=":
            return False
        outer = node.parent.parent if node.parent.type == "arglist" else node.parent
        return bool(outer.type == "trailer")

    def mutate(self, node: Any, index: int) -> Any:
        if node.parent.type == "arglist":
            siblings = node.parent.children
            place = siblings.index(node)
            comma = place + 1 if place + 1 < len(siblings) else place - 1
            siblings[comma].value = ""
        return None


class SwapExtremes(_Ours):
    """Least for largest, down for up, all for any; and the other way round."""

    def applies(self, node: Any) -> bool:
        if node.type != "name" or node.value not in _SWAPS:
            return False
        following = node.get_next_leaf()
        return bool(following is not None and following.value == "(")

    def mutate(self, node: Any, index: int) -> Any:
        node.value = _SWAPS[node.value]
        return node


_OURS = {kind.__name__: kind() for kind in (DeleteStatement, DropKeywordArgument, SwapExtremes)}


def operators() -> dict[str, Any]:
    """All operators by name."""
    theirs = {name: get_operator(f"core/{name}")() for name in _OF_COSMIC_RAY}
    return theirs | _OURS


@dataclass(frozen=True, order=True)
class Mutant:
    """The ``occurrence``-th place of a file at which an operator applies.

    Attributes
    ----------
    path : str
        The file, from the root of the project.
    line, column : int
        Where the fault is.
    operator : str
        Name of the operator.
    occurrence : int
        How many places of the same file come before it.
    """

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def name(self) -> str:
        """What the command line takes to run this one."""
        return f"{self.path}:{self.operator}:{self.occurrence}"


class Source:
    """A file and its mutants.

    Parameters
    ----------
    root : Path
        Of the project.
    path : str
        The file, from the root.
    """

    def __init__(self, root: Path, path: str) -> None:
        self.path = path
        self.text = (root / path).read_text("utf-8")

    def mutated(self, mutant: Mutant) -> str:
        """The file's text with the fault in it."""
        text = mutate_code(self.text, operators()[mutant.operator], mutant.occurrence)
        assert text is not None
        return str(text)

    def changed_line(self, mutant: Mutant) -> tuple[str, str]:
        """The first line that differs, without and with the fault."""
        before, after = self.text.splitlines(), self.mutated(mutant).splitlines()
        for old, new in zip(before, after, strict=False):
            if old != new:
                return old.strip(), new.strip()
        return before[mutant.line - 1].strip(), ""

    def mutants(self) -> list[Mutant]:
        """All mutants that could matter: see the module, and :func:`_excluded`."""
        nodes = list(ast_nodes(get_ast(self.text)))
        found = []
        for name, operator in operators().items():
            positions = [(node, spot) for node in nodes for spot in operator.mutation_positions(node)]
            for occurrence, (node, ((line, column), _)) in enumerate(positions):
                if not (_excluded(name, node) or self._unimportant(line, column)):
                    found.append(Mutant(self.path, line, column, name, occurrence))
        return sorted(found)

    def statement_lines(self, line: int) -> range:
        """Lines of the innermost statement at a line, its body left out."""
        best = range(line, line + 1)
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.stmt | ast.excepthandler):
                continue
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            span = range(start, max(end, node.lineno) + 1)
            if line in span and (len(best) == 1 or len(span) < len(best)):
                best = span
        return best

    def runs_at_import(self, line: int) -> bool:
        """Whether the statement at a line lies in no function: then it runs in whichever test comes first."""
        return not any(
            isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= (node.end_lineno or 0)
            for node in ast.walk(self._tree)
        )

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def _unimportant_spans(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Spans of annotations, of texts, of messages, and of what only prints."""
        parts: list[ast.AST] = []
        for node in ast.walk(self._tree):
            match node:
                case ast.arg(annotation=annotation) if annotation is not None:
                    parts.append(annotation)
                case ast.AnnAssign():
                    parts.append(node.annotation)
                case ast.FunctionDef():
                    parts += [node.returns] if node.returns is not None else []
                    parts += [node] if node.name in ("__repr__", "__str__", "_repr_html_") else []
                case ast.Raise(exc=ast.Call() as call):
                    parts += [*call.args, *call.keywords]
                case ast.JoinedStr():
                    parts.append(node)
                case ast.Assert():  # for type checkers; the guarantee never rests on one
                    parts.append(node)
                case ast.Assign(targets=[ast.Name(id="__all__" | "Conversion" | "Composition")]):
                    parts.append(node)
                case ast.ClassDef(bases=[ast.Name(id="Protocol")]):
                    parts.append(node)
                case ast.Import() | ast.ImportFrom():
                    parts.append(node)
        return [((p.lineno, p.col_offset), (p.end_lineno, p.end_col_offset)) for p in parts]  # type: ignore[attr-defined]

    def _unimportant(self, line: int, column: int) -> bool:
        return any(start <= (line, column) < end for start, end in self._unimportant_spans)


def _excluded(operator: str, node: Any) -> bool:
    """Places that an operator takes for something else, twins of other mutants, and what does nothing."""
    if operator == "RemoveDecorator":
        return any(word in node.get_code() for word in _IDLE_DECORATORS)
    if operator.startswith("ReplaceBinaryOperator"):
        return node.parent.type not in ("arith_expr", "term", "power", "expr", "and_expr", "shift_expr")
    if operator == "AddNot":  # of a comparison it is its opposite, of a negation its absence
        test = node.children[2 if node.type in ("test", "ternary") else 1]
        return test.type in ("comparison", "not_test")
    if operator in ("DropKeywordArgument", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"):
        argument = node if node.type == "argument" else node.parent
        return argument.type == "argument" and argument.get_first_leaf().value in _IDLE_ARGUMENTS
    return False
