"""Whatever looks at arrays as a whole, where private rows are seen, is on a list with the reason why it may.

No private label, count, equality or maximum may decide how anything is computed before noise is added. Calls
that turn an array into one answer are found by name in the source, and so are comparisons of what a sum or a
mean gives (``X.std(axis=0) == 0``), or of arrays whose names say that they hold rows (``self.codes == k``). A
new one fails here, until someone who has looked at it adds it to ``decisions.py``. ``docs/decisions.md``
lists those that see private rows. Arrays of private rows by any other name are found where they arrive, by
``tests/property/test_public_helpers.py``.
"""

import ast
from collections import Counter

import pytest

from .decisions import ALLOWED, PRIVATE, PUBLIC
from .test_architecture import PACKAGE

#: Where private rows are seen: folders, and files.
ROOMS = (
    *("_files", "_rows", "_linear", "_engine", "_fit", "additive", "estimators", "preprocessing"),
    *("inference", "model_selection", "_dask.py", "_export", "_papers", "_resuming.py", "_torch", "_utils"),
    "privacy/units.py",
)
#: What turns an array into an answer about all of it, as a method or as a function of NumPy or torch.
_NAMES = """
hash array_equal array_equiv allclose equal unique count_nonzero bincount nonzero flatnonzero argwhere any all
max min amax amin nanmax nanmin argmax argmin ptp median quantile percentile isin in1d intersect1d setdiff1d
union1d nunique duplicated value_counts drop_duplicates
"""
OF_ARRAYS = frozenset(_NAMES.split())
#: The same by built-in functions. (``max`` and ``min`` of several numbers are no such thing.)
BUILT_IN = frozenset(("any", "all", "hash", "Counter", "set", "frozenset"))
#: What turns an array into numbers that may then be compared.
REDUCING = frozenset(
    ["mean", "std", "var", "sum", "norm", "nanmean", "nanstd", "nansum", "average", "vdot", "prod", "cumsum"]
)
#: Names of arrays with a number for each row, or several.
_ROWS = "X y codes labels targets groups weights answers table ids norms lengths sizes values"
OF_ROWS = frozenset(_ROWS.split())
PAGE = PACKAGE.parent / "docs" / "decisions.md"


def is_decision(call):
    """Whether a call looks at a whole array, or may do so."""
    name = call.func
    if isinstance(name, ast.Attribute):
        return name.attr in OF_ARRAYS
    if not isinstance(name, ast.Name) or not call.args:
        return False
    several = len(call.args) > 1 or isinstance(call.args[0], ast.List | ast.Tuple | ast.Starred)
    return name.id in BUILT_IN or (name.id in ("max", "min") and not several)


def is_comparison(node):
    """Whether numbers of rows are compared, one by one or in sum."""
    if not isinstance(node, ast.Compare) or all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
        return False
    sides = [node.left, *node.comparators]
    calls = [part.func for side in sides for part in ast.walk(side) if isinstance(part, ast.Call)]
    return any(getattr(call, "attr", None) in REDUCING for call in calls) or any(map(holds_rows, sides))


def holds_rows(side):
    """Whether the name of an array, or of what its entries are taken from, is that of rows."""
    while isinstance(side, ast.Subscript):
        side = side.value
    return getattr(side, "attr", getattr(side, "id", None)) in OF_ROWS


def counted_in(tree, count):
    """For each function of a module, by qualified name, the sum of a count of its nodes, if it is not 0."""
    counts = Counter()

    def visit(node, name):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                visit(child, f"{name}.{child.name}".lstrip("."))
                continue
            counts[name or "module"] += count(child)
            visit(child, name)

    visit(tree, "")
    return +counts


def counted_in_rooms(rooms, count):
    """The counts of :func:`counted_in` for each file of some rooms, by its path."""
    paths = [path for room in rooms for path in sorted((PACKAGE / room).rglob("*.py")) or [PACKAGE / room]]
    return {
        path.relative_to(PACKAGE).as_posix(): counted_in(ast.parse(path.read_text(encoding="utf-8")), count)
        for path in paths
    }


def n_decisions(node):
    """How many such calls and comparisons a node is."""
    if not isinstance(node, ast.Call):
        return is_comparison(node)
    of_set = getattr(node.func, "id", None) == "len" and isinstance(node.args[0], ast.Set | ast.SetComp)
    return is_decision(node) + of_set


def decisions():
    """All functions of the rooms with such calls, by file and name, and how many they have."""
    return {
        f"{path}::{name}": count
        for path, counts in counted_in_rooms(ROOMS, n_decisions).items()
        for name, count in counts.items()
    }


def test_every_decision_is_on_the_list():
    known = {name: count for name, (count, _) in ALLOWED.items()}
    found = decisions()
    more = {name: count for name, count in found.items() if count > known.get(name, 0)}
    assert not more, f"new looks at whole arrays; look at what they decide: {more}"
    gone = {name for name, count in known.items() if count != found.get(name)}
    assert not gone, f"decisions.py lists more calls than there are in {gone}"


def test_every_reason_is_a_known_one():
    assert {reason for _, reason in ALLOWED.values()} == PRIVATE.keys() | PUBLIC.keys()


def test_the_page_lists_all_that_see_private_rows():
    text = PAGE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    listed = {line.split("`")[1]: line.split("|")[3] for line in rows}
    assert listed.keys() == {name for name, (_, reason) in ALLOWED.items() if reason in PRIVATE}
    for name, cell in listed.items():
        assert cell.strip() == ALLOWED[name][1], name
    assert all(f"- **{name}**: {reason[0].upper()}{reason[1:]}." in text for name, reason in PRIVATE.items())


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("if np.array_equal(y, other): pass", 1),
        ("if (y == 2).any(): pass", 2),
        ("if any(label == 2 for label in y): pass", 1),
        ("n = len({label for label in y})", 1),
        ("n = len(set(y)) + hash(y.tobytes())", 2),
        ("big = max(norms) > 3", 1),
        ("size = max(n, 1)", 0),
        ("found = torch.unique(y)", 1),
        ("class A:\n    def f(self):\n        return self.y.max()", 1),
        ("flat = X.std(axis=0) == 0", 1),
        ("flat = np.flatnonzero(X.std(axis=0) == 0)", 2),
        ("if 0 < np.linalg.norm(rows - center) < 3: pass", 1),
        ("own = self.codes == k", 1),
        ("own = block.y[:, 0] != 0.0", 1),
        ("if 2 in y: pass", 1),
        ("if y is None: pass", 0),
        ("if n_rows == 2: pass", 0),
    ],
)
def test_what_counts_as_a_decision(code, count):
    assert counted_in(ast.parse(code), n_decisions).total() == count
