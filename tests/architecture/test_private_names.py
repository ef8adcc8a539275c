"""scikit-learn's private names that the library relies on: few, listed, and there."""

import ast
import inspect
import pkgutil
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import sklearn
import sklearn.base

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "skmixdp").rglob("*.py"))

#: Private names of scikit-learn, and the module of scikit-learn that has each.
LISTED = {
    "_html_repr": "sklearn.base",
    "_get_doc_link": "sklearn.base",
    "_init_callback_context": "sklearn.callback",
    "_callback_fit_ctx": "sklearn.callback",
    "_BaseStacking": "sklearn.ensemble._stacking",
    "_fit_binary": "sklearn.multiclass",
    "_fit_ovo_binary": "sklearn.multiclass",
    "_fit_estimator": "sklearn.multioutput",
}

#: Names that Jupyter asks for.
OURS = {"_repr_html_", "_repr_mimebundle_"}


@cache
def words():
    """Names of attributes and functions, and texts, in all modules of the package."""
    found = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.FunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def private_names():
    """Private names of the classes of scikit-learn that the library extends."""
    rooms = [sklearn.base]
    if any(module.name == "callback" for module in pkgutil.iter_modules(sklearn.__path__)):
        rooms.append(import_module("sklearn.callback"))
    classes = [value for room in rooms for value in vars(room).values() if inspect.isclass(value)]
    found = {name for kind in classes for base in kind.__mro__ for name in vars(base)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def test_nothing_private_is_imported():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [
                    part
                    for alias in node.names
                    if alias.name.startswith("sklearn")
                    for part in alias.name.split(".")
                ]
            assert not [name for name in names if name.startswith("_")], f"{path}: {names}"


def test_every_private_name_that_is_used_is_listed():
    used = words() & private_names()
    assert used - OURS <= set(LISTED), "list them, or use public names"


@pytest.mark.parametrize("name", LISTED)
def test_every_listed_name_is_used_and_there(name):
    assert name in words()
    if LISTED[name] == "sklearn.callback" and not hasattr(sklearn, "callback"):
        pytest.importorskip("sklearn.callback")
    package = import_module(LISTED[name])
    folder = Path(inspect.getfile(package)).parent
    sources = [
        Path(inspect.getfile(package)),
        *(folder.glob("*.py") if LISTED[name] == "sklearn.callback" else ()),
    ]
    sources += [folder / "utils" / "_repr_html" / "base.py"] if LISTED[name] == "sklearn.base" else []
    assert any(re.search(rf"\b{name}\b", path.read_text()) for path in sources if path.exists())


def test_the_page_of_promises_lists_them():
    page = (ROOT / "docs" / "promises.md").read_text()
    assert [name for name in LISTED if f"`{name}`" not in page] == []
