"""Docstrings name the parameters that functions and classes have, in their order."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import skmixdp
from skmixdp.features import FrozenFeatures

PACKAGE = Path(skmixdp.__file__).parent


def public_objects():
    """Functions and classes in ``__all__`` of the public packages, and the public methods of the classes."""
    names = ["skmixdp"]
    names += [
        f"skmixdp.{found.name}" for found in pkgutil.iter_modules(skmixdp.__path__) if found.name[0] != "_"
    ]
    objects = {}
    for name in names:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            value = getattr(module, public)
            if inspect.isclass(value) and issubclass(value, Exception):
                continue  # what it takes is its message
            if inspect.isclass(value) or inspect.isfunction(value):
                objects[f"{value.__module__}.{value.__qualname__}"] = value
            if inspect.isclass(value):
                for key, method in vars(value).items():
                    function = getattr(method, "__func__", method)
                    if key[0] != "_" and inspect.isfunction(function):
                        objects[f"{value.__module__}.{value.__qualname__}.{key}"] = function
    return objects


def documented(docstring, title="Parameters"):
    """Names in a section of a numpydoc docstring, without stars; None without the section."""
    text = inspect.cleandoc(docstring or "")
    pattern = rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^\S[^\n]*\n-{{3,}}\n|\Z)"
    section = re.search(pattern, text, flags=re.M | re.S)
    if section is None:
        return None
    heads = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$", section[1], flags=re.M)
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


def parameters(value):
    """Names of what is passed to a function, or to the constructor of a class."""
    hidden = ("self", "cls", "unsupported")
    return [name for name in inspect.signature(value).parameters if name not in hidden]


def inherited(value):
    """What the abstract base of features documents once for all of them."""
    is_features = inspect.isclass(value) and issubclass(value, FrozenFeatures) and value is not FrozenFeatures
    return documented(FrozenFeatures.__doc__) if is_features else []


OBJECTS = public_objects()
DOCUMENTED = sorted(name for name, value in OBJECTS.items() if documented(value.__doc__) is not None)


def in_order(names, value):
    """Names with those of keyword-only parameters last and sorted, since their order has no meaning."""
    known = inspect.signature(value).parameters
    keywords = {name for name in names if name in known and known[name].kind is known[name].KEYWORD_ONLY}
    return [name for name in names if name not in keywords] + sorted(keywords)


def test_parameters_are_those_of_the_signature():
    wrong = {
        name: (said, there)
        for name in DOCUMENTED
        if (said := in_order(documented(OBJECTS[name].__doc__) + inherited(OBJECTS[name]), OBJECTS[name]))
        != (there := in_order(parameters(OBJECTS[name]), OBJECTS[name]))
    }
    assert wrong == {}
    assert len(DOCUMENTED) > 100


def test_what_takes_parameters_documents_them():
    """As parameters, or as the attributes that the fields of a data class are."""
    silent = {
        name
        for name, value in OBJECTS.items()
        if parameters(value)
        and inspect.isclass(value)
        and not getattr(value, "_is_protocol", False)
        and documented(value.__doc__) is None
        and documented(value.__doc__, "Attributes") is None
    }
    assert not silent


def test_the_parser_sees_stars_several_names_and_sections():
    docstring = """Sum.

    Parameters
    ----------
    a, b : int
        Some.
    *more, **options
        Others: named

        twice.

    Returns
    -------
    c : int
    """
    assert documented(docstring) == ["a", "b", "more", "options"]
    assert documented(docstring, "Returns") == ["c"] and documented("Sum.") is None


def entries(docstring, title="Parameters"):
    """Name and description of each entry of a section of a numpydoc docstring."""
    section = inspect.cleandoc(docstring or "").partition(f"\n{title}\n{'-' * len(title)}\n")[2]
    section = re.split(r"^\S[^\n]*\n-{3,}\n", section, maxsplit=1, flags=re.M)[0]
    parts = re.findall(r"^(\S[^\n]*)\n((?:[ \n][^\n]*\n?)*)", section, flags=re.M)
    return {head.partition(" : ")[0]: " ".join(text.split()) for head, text in parts}


def n_sentences(text):
    """Number of sentences: full stops before a capital letter, a literal or the end."""
    return len(re.findall(r"(?<!\.)[.?!](?=\s+[A-Z`:\d]|$)", text))


def test_sentences_are_counted():
    assert n_sentences('One, as in 0.5. ``"auto"`` is ``a.b``; so. Two or ``...``.') == 3
    assert n_sentences("No full stop") == 0
    docstring = (
        "Sum.\n\nParameters\n----------\na : int\n    Some.\n    More.\nb\n    One.\n\nNotes\n-----\nEnd."
    )
    assert entries(docstring) == {"a": "Some. More.", "b": "One."}


def test_parameters_of_estimators_are_explained_in_three_sentences():
    """What needs more is explained in the guide, such as docs/parameters.md."""
    estimators = {
        name: value
        for name, value in OBJECTS.items()
        if inspect.isclass(value) and {"fit", "get_params"} <= set(dir(value))
    }
    long = {
        (name.rpartition(".")[2], entry): count
        for name, value in estimators.items()
        for entry, text in entries(value.__doc__).items()
        if (count := n_sentences(text)) > 3
    }
    assert long == {}
    assert len(estimators) > 15


def exists(name):
    """Whether a dotted name is that of a module, or of an object within one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[n:])
    return False


def test_dotted_references_name_what_exists():
    assert exists("skmixdp._rows.row_map.RowMap") and not exists("skmixdp._linear.RowMap")
    for path in PACKAGE.rglob("*.py"):
        names = re.findall(r":\w+:`~?(skmixdp\.[\w.]+)`", path.read_text())
        assert [name for name in names if not exists(name)] == [], path
