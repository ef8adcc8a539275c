"""How large the library is, how its rooms depend on each other, and what a default fit runs through.

``python -m benchmarks.structure`` prints the lines of the package, whose number may only fall, and those of
its :data:`ROOMS`. The core is what a linear head needs: preprocessing, fits, budgets, searches and
evaluation. The rest is in annexes. The core imports none: one table (``_utils/lazy_imports.py``) imports them
on first use.

It also prints circles of modules, imports from a lower floor to a higher one, and imports from the core to
annexes. Imports inside functions count. Then follow the files that charge and report, the parameters that
may be anything, and the attributes that are asked for by name.

At the end are the functions and files that default fits of a small classifier call, with public rows and
without, and the changes of file between first calls. Then follow the frames of the package from ``fit`` to a
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
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import skmixdp
from skmixdp import MixedDPLogisticRegression

PACKAGE = Path(skmixdp.__file__).parent


@dataclass(frozen=True)
class Room:
    """Modules of one purpose, by the beginnings of their dotted names."""

    name: str
    modules: tuple[str, ...]
    is_core: bool = True


#: A module belongs to the room whose beginning of its name is longest.
ROOMS = (
    Room("privacy", ("privacy",)),
    Room("ledger", ("privacy.ledger",)),
    Room("utilities and top", ("", "_utils", "_version", "exceptions")),
    Room("linear", ("_linear",)),
    Room("rows", ("_rows",)),
    Room("components", ("components",)),
    Room("algorithms", ("algorithms",)),
    Room("engine", ("_engine",)),
    Room("fit", ("_fit",)),
    Room("estimators", ("estimators",)),
    Room("saving", ("estimators._saving",)),
    Room("preprocessing", ("preprocessing",)),
    Room("leaks", ("preprocessing._leaks",)),
    Room("search", ("model_selection._search",)),
    Room("evaluation", ("model_selection._evaluation",)),
    Room("public scoring", ("model_selection",)),
    Room("additive", ("additive",), is_core=False),
    Room("inference", ("inference",), is_core=False),
    Room("files", ("_files", "datasets"), is_core=False),
    Room("papers", ("_papers",), is_core=False),
    Room("torch", ("_torch",), is_core=False),
    Room("dask", ("_dask",), is_core=False),
    Room("resuming", ("_resuming",), is_core=False),
    Room("features", ("features",), is_core=False),
    Room("export", ("_export",), is_core=False),
    Room("inspection", ("inspection",), is_core=False),
    Room("audit", ("audit",), is_core=False),
    Room("command line", ("_cli", "__main__"), is_core=False),
)

#: Folders and files at the top, from the highest floor down. None imports from a higher one.
FLOORS = (
    ("__main__",),
    ("_cli",),
    ("_torch", "additive", "audit", "datasets", "features", "inference", "inspection", "model_selection"),
    ("_dask", "_export", "_papers", "_resuming"),
    ("estimators",),
    ("preprocessing",),
    ("algorithms",),
    ("_fit",),
    ("_engine",),
    ("components",),
    ("_files",),
    ("_rows",),
    ("_linear",),
    ("exceptions",),
    ("privacy",),
    ("_utils", "_version"),
)

#: Most lines of the package and of its tests. A capability raises them by its own lines, less those that it
#: makes needless, with a decision record; everything else lowers them.
MOST_LINES, MOST_TEST_LINES = 48_470, 64_780

#: Most imports from the core to annexes, parameters of type ``Any``, and attributes that are asked for by
#: name (see :func:`looks`). These limits are only ever lowered.
MOST_TO_ANNEXES, MOST_ANYTHING, MOST_ASKED = 0, 313, 183

#: Calls of which only the transaction makes one.
CHARGING = frozenset(
    {"charge", "charge_together", "drive", "recorded_outcome", "PrivacyReport", "SearchReport"}
)


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
def paths() -> dict[str, Path]:
    """The files of the package, by their dotted names below it; the package itself is ``""``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> dict[str, set[str]]:
    """For each module of the package, by its dotted name below it, the modules that it imports anywhere.

    Public names of annexes that the core lists for type checkers do not count.
    """
    return {
        name: {
            module
            for only_types in (True, False)
            for module, _ in _imported(name, only_types=only_types)
            if not (only_types and room_of(name).is_core and not room_of(module).is_core)
        }
        for name in paths()
    }


def _imported(name: str, *, only_types: bool) -> list[tuple[str, str]]:
    """Modules from which a module imports, each with the name that it imports.

    ``only_types`` chooses imports for type checkers, under ``if TYPE_CHECKING``; otherwise all others.
    """
    names, path = paths(), paths()[name]
    package = name.split(".") if path.name == "__init__.py" and name else name.split(".")[:-1]
    tree = ast.parse(path.read_text())
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    typed = [
        node for node in conditions if isinstance(node.test, ast.Name) and "TYPE_CHECKING" in node.test.id
    ]
    for_types = {inner for node in typed for one in node.body for inner in ast.walk(one)}
    found = []
    for node in ast.walk(tree):
        if (node in for_types) is not only_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)] + (node.module or "").split(".")
            base = [part for part in base if part]
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                found.append((whole if whole in names else ".".join(base), alias.name))
    return found


def room_of(module: str) -> Room:
    """The room of a module, by its dotted name below the package."""

    def matched(room: Room) -> int:
        fits = (begin for begin in room.modules if module == begin or (begin and module.startswith(begin)))
        return max((len(begin) for begin in fits), default=-1)

    return max(ROOMS, key=matched)


def lines_of_rooms() -> dict[Room, int]:
    """Lines of each room."""
    found = dict.fromkeys(ROOMS, 0)
    for name, path in paths().items():
        found[room_of(name)] += len(path.read_text().splitlines())
    return found


def upwards() -> list[tuple[str, str]]:
    """Imports of a module from a higher floor, or from the package as a whole."""
    floor = {room: number for number, rooms in enumerate(reversed(FLOORS)) for room in rooms}
    return [
        (one, other)
        for one, others in imports().items()
        for other in others
        if one and (not other or floor[one.split(".")[0]] < floor[other.split(".")[0]])
    ]


def to_annexes() -> list[tuple[str, str]]:
    """Imports of a module of the core from an annex; those for type checkers alone do not count.

    A public name of an annex that a package imports on first use is in the annex, whoever imports it.
    """
    packages = [name for name, path in paths().items() if path.name == "__init__.py"]
    late = {(name, what): module for name in packages for module, what in _imported(name, only_types=True)}
    pairs = {
        (name, late.get((module, what), module))
        for name in paths()
        if room_of(name).is_core
        for module, what in _imported(name, only_types=False)
    }
    return sorted((one, other) for one, other in pairs if other and not room_of(other).is_core)


def charging() -> set[str]:
    """Modules outside of the ledger that charge, run what was charged, or build a report."""
    return {
        name
        for name, path in paths().items()
        if not name.startswith("privacy.ledger") and CHARGING & set(_calls(path))
    }


def _calls(path: Path) -> list[str]:
    """Names of the functions that a file calls."""
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [getattr(function, "attr", getattr(function, "id", "")) for function in calls]


def looks() -> tuple[int, int]:
    """Number of parameters whose type is ``Any``, and of attributes that are asked for by name.

    These are calls of ``getattr`` and ``hasattr``, and ``vars(x)[name]`` and ``vars(x).get(name)``.
    """
    anything, asked = 0, 0
    for path in paths().values():
        asked += sum(name in ("getattr", "hasattr") for name in _calls(path))
        nodes = list(ast.walk(ast.parse(path.read_text())))
        types = [node.annotation for node in nodes if isinstance(node, ast.arg)]
        anything += sum(isinstance(one, ast.Name) and one.id == "Any" for one in types)
        held = [node.value for node in nodes if isinstance(node, ast.Subscript)]
        held += [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "get"]
        asked += sum(isinstance(one, ast.Call) and getattr(one.func, "id", "") == "vars" for one in held)
    return anything, asked


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


def called_by(run: Any, inside: Path) -> tuple[int, int, int]:
    """Number of named functions, of files and of changes of file, in the order of first calls, of a call.

    Functions and files are those below a folder.
    """
    seen: dict[tuple[str, str], None] = {}

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(inside)) and "<" not in code.co_name:
            seen[code.co_filename, code.co_qualname] = None

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    files = [file for file, _ in seen]
    return len(seen), len(set(files)), sum(first != second for first, second in pairwise(files))


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
    sizes = lines_of_rooms()
    for core in (True, False):
        chosen = {room: n for room, n in sizes.items() if room.is_core is core}
        print(f"{'core' if core else 'annexes'}: {sum(chosen.values()):,} lines")
        for room, n in chosen.items():
            print(f"  {room.name:<18}{n:>7,}")
    anything, asked = looks()
    print(f"circles of modules: {len(circles())}, imports upwards: {len(upwards())}")
    print(f"imports from the core to annexes: {len(to_annexes())} of {MOST_TO_ANNEXES}")
    print(f"modules that charge, run and report: {len(charging())}")
    print(f"parameters of type Any: {anything} of {MOST_ANYTHING}")
    print(f"attributes asked for by name: {asked} of {MOST_ASKED}")
    for name, run, folder in (
        ("skmixdp", lambda: private.fit(X[60:], y[60:], X[:60], y[:60]), PACKAGE),
        ("skmixdp without public rows", lambda: alone.fit(X, y), PACKAGE),
        ("scikit-learn", lambda: plain.fit(X, y), Path(sys.modules["sklearn"].__file__ or "").parent),
    ):
        run()  # imports and caches
        functions, files, changes = called_by(run, folder)
        frames = f", {deepest_product(run)} frames to a product" if folder == PACKAGE else ""
        print(f"a default fit of {name}: {functions} functions in {files} files, {changes} changes{frames}")
    assert np.isfinite(private.coef_).all()


if __name__ == "__main__":
    main()
