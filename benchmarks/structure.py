"""How much of the library a default fit runs through, and how its rooms depend on each other.

``python -m benchmarks.structure`` prints the lines of the package, those of code (neither blank, nor
comments, nor docstrings) and of docstrings among them, its rooms (folders and files at the top), the floors
on which they stand and the imports between them, and the functions and files that default fits of a small
classifier call, with public rows and without. It also prints the frames of the package from ``fit`` to a
matrix product of a step, where the stack is deepest. Before Python 3.12, comprehensions are frames too.
"""

import ast
import sys
import tokenize
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import skmixdp
from skmixdp import MixedDPLogisticRegression

PACKAGE = Path(skmixdp.__file__).parent


#: The file in which rows are multiplied, and the function below which all that is done with private rows is.
_PRODUCTS, _RELEASE = PACKAGE / "_linear" / "products.py", "release"

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


@dataclass(frozen=True)
class Lines:
    """Numbers of lines: all, those of code, and those of docstrings with their blank ones."""

    all: int
    code: int
    docstrings: int

    @classmethod
    def of(cls, source: str) -> "Lines":
        """Of one file."""
        described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        documented = [node for node in ast.walk(ast.parse(source)) if isinstance(node, described)]
        texts = [node.body[0] for node in documented if ast.get_docstring(node, clean=False) is not None]
        docstrings = {number for text in texts for number in range(text.lineno, (text.end_lineno or 0) + 1)}
        lines = source.splitlines()
        code = {
            number
            for token in tokenize.generate_tokens(StringIO(source).readline)
            if token.type not in _NO_CODE
            for number in range(token.start[0], token.end[0] + 1)
            if lines[number - 1].strip()
        }
        return cls(len(lines), len(code - docstrings), len(docstrings))


def lines() -> Lines:
    """Lines of the package."""
    each = [Lines.of(path.read_text()) for path in PACKAGE.rglob("*.py")]
    return Lines(*(sum(numbers) for numbers in zip(*map(astuple, each), strict=True)))


@cache
def imports() -> dict[str, set[str]]:
    """For each module of the package, by its dotted name below it, the modules that it imports anywhere."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        package = name.split(".") if path.name == "__init__.py" and name else name.split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = package[: len(package) - (node.level - 1)] + (node.module or "").split(".")
                base = [part for part in base if part]
                for alias in node.names:
                    whole = ".".join([*base, alias.name])
                    found[name].add(whole if whole in names else ".".join(base))
    return found


def circles() -> list[list[str]]:
    """Groups of modules that import from each other in a circle."""
    below, found = dict(imports()), []
    while True:
        try:
            TopologicalSorter(below).prepare()
        except CycleError as error:
            circle = sorted(set(error.args[1]))
            found.append(circle)
            below = {name: set() if name in circle else others for name, others in below.items()}
        else:
            return found


def arrows() -> set[tuple[str, str]]:
    """Pairs of rooms of which the first imports from the second; a module at the top is a room."""
    rooms = {(one.split(".")[0], other.split(".")[0]) for one in imports() if one for other in imports()[one]}
    return {(one, other) for one, other in rooms if one != other}


def floors(pairs: set[tuple[str, str]]) -> int:
    """Number of floors: a room stands one above the highest from which it imports.

    Raises
    ------
    graphlib.CycleError
        If rooms import from each other in a circle.
    """
    below: dict[str, set[str]] = {}
    for one, other in pairs:
        below.setdefault(one, set()).add(other)
    floor: dict[str, int] = {}
    for room in TopologicalSorter(below).static_order():
        floor[room] = 1 + max((floor[other] for other in below.get(room, ())), default=0)
    return max(floor.values())


def called_by(run: Any, inside: Path) -> tuple[int, int]:
    """Number of named functions, and of files, below a folder that a call runs through."""
    seen: set[tuple[str, str]] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(inside)) and "<" not in code.co_name:
            seen.add((code.co_filename, code.co_qualname))

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return len(seen), len({file for file, _ in seen})


def deepest_product(run: Callable[[], object]) -> int:
    """Frames of the package at the deepest product with private rows in a call; 0 without any."""
    deepest = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal deepest
        if event != "call" or frame.f_code.co_filename != str(_PRODUCTS):
            return
        names, above = [], frame
        while above is not None:
            if above.f_code.co_filename.startswith(str(PACKAGE)):
                names.append(above.f_code.co_name)
            above = above.f_back
        if _RELEASE in names:
            deepest = max(deepest, len(names))

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return deepest


def main() -> None:
    """Print the figures."""
    X, y = make_classification(600, 20, n_informative=8, n_classes=3, random_state=0)
    private, alone = MixedDPLogisticRegression(), MixedDPLogisticRegression(classes=[0, 1, 2])
    plain = LogisticRegression()
    rooms = {room for pair in arrows() for room in pair}
    found = lines()
    print(f"lines: {found.all:,}, of code: {found.code:,}, of docstrings: {found.docstrings:,}")
    print(f"rooms: {len(rooms)}, floors: {floors(arrows())}, imports between them: {len(arrows())}")
    print(f"circles of modules: {len(circles())}")
    for name, run, folder in (
        ("skmixdp", lambda: private.fit(X[60:], y[60:], X[:60], y[:60]), PACKAGE),
        ("skmixdp without public rows", lambda: alone.fit(X, y), PACKAGE),
        ("scikit-learn", lambda: plain.fit(X, y), Path(sys.modules["sklearn"].__file__ or "").parent),
    ):
        run()  # imports and caches
        functions, files = called_by(run, folder)
        frames = f", {deepest_product(run)} frames to a product" if folder == PACKAGE else ""
        print(f"a default fit of {name}: {functions} functions in {files} files{frames}")
    assert np.isfinite(private.coef_).all()


if __name__ == "__main__":
    main()
