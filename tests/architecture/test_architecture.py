"""The rules of the house, checked on the source."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks import structure

PACKAGE = Path(__file__).parents[2] / "skmixdp"
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


def calls_of(path, name):
    return [
        node
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) == name
    ]


def test_only_the_release_asks_private_rows():
    asking = [path.relative_to(PACKAGE).as_posix() for path in MODULES if calls_of(path, "private_sums")]
    # A source of rows in several places asks each of them, and answers for them all. An audit asks
    # rows that it was given as known, by a record of queries, and its result is declared not private.
    assert set(asking) == {"_engine/release.py", "_engine/recording.py", "_dask.py"}


def test_the_driver_is_the_only_caller_of_the_release():
    callers = [path.relative_to(PACKAGE).as_posix() for path in MODULES if calls_of(path, "release")]
    assert callers == ["_engine/loop.py"]


def test_noise_is_added_in_the_release_alone():
    callers = [path.relative_to(PACKAGE).as_posix() for path in MODULES if calls_of(path, "add_noise")]
    assert callers == ["_engine/release.py"]


#: What a release outside of the transaction would have to call, and the files that may.
_OF_TRANSACTIONS = {
    "NoiseSource": {"_engine/transaction.py"},
    "DiscreteNoise": {"_engine/transaction.py"},
    "charge": {"privacy/ledger/_charging.py"},
    "charge_together": {"_engine/transaction.py"},
    "drive": {"_engine/transaction.py"},
    "recorded_outcome": {"_engine/transaction.py"},
    "PrivacyReport": {"_engine/transaction.py"},
    "SearchReport": {"_engine/transaction.py"},
}


def callers_of(name, modules=MODULES, package=PACKAGE):
    return {path.relative_to(package).as_posix() for path in modules if calls_of(path, name)}


def test_the_transaction_alone_draws_charges_drives_records_and_reports():
    found = {name: callers_of(name) for name in _OF_TRANSACTIONS}
    assert found == _OF_TRANSACTIONS
    assert structure.charging() == {"_engine.transaction"}


def test_a_second_copy_of_the_transaction_is_found(tmp_path):
    copy = tmp_path / "copy.py"
    copy.write_text(
        "noise = privacy.noise.NoiseSource()\n"
        "charge = self.ledger.charge(event, neighboring='replace_one')\n"
        "with recorded_outcome(self.ledger, charge):\n"
        "    (result,) = drive([asked])\n"
        "report = PrivacyReport(epsilon=1.0)\n"
    )
    for name in ("NoiseSource", "charge", "recorded_outcome", "drive", "PrivacyReport"):
        assert callers_of(name, [copy], tmp_path) == {"copy.py"}


def test_no_random_numbers_but_from_the_noise_source():
    for path in MODULES:
        if path.name == "noise.py":
            continue
        source = path.read_text()
        for name in ("default_rng", "np.random.normal", "import random", "np.random.rand"):
            assert name not in source, f"{path} uses {name}"


def test_imports_are_light():
    modules = [
        *("skmixdp", "skmixdp.audit", "skmixdp.inspection", "skmixdp.model_selection"),
        *("skmixdp.preprocessing", "skmixdp.privacy", "skmixdp._rows.table", "skmixdp.algorithms"),
        *("skmixdp.features", "skmixdp.datasets"),
    ]
    heavy = [
        *("torch", "torchvision", "timm", "open_clip", "matplotlib", "dask", "distributed"),
        *("pyarrow.parquet", "dp_accounting", "opendp", "onnx"),
    ]
    code = f"import sys, {', '.join(modules)}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_deep_learning_libraries_are_imported_where_they_are_needed_alone():
    """Statements anywhere in a module count, also those inside functions."""
    heavy = {"torch", "torchvision", "timm", "open_clip"}
    importing = set()
    for path in MODULES:
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if {name.partition(".")[0] for name in names} & heavy:
                importing.add(path.parent.relative_to(PACKAGE).as_posix())
    # _torch/tensors.py is loaded for tensors only, and modules by a fit that is given one.
    assert importing == {"features/backends", "_torch/modules", "_torch"}


def test_files_have_one_topic():
    """Files are cut by topic and not by a number of lines; one that is longer than this has several."""
    long = {path.name: n for path in MODULES if (n := len(path.read_text().splitlines())) > 600}
    assert long == {}


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions count: a circle that is loaded late is one all the same."""
    assert structure.circles() == []


def test_a_circle_is_found(monkeypatch):
    below = {"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": set(), "e": {"f"}, "f": {"e"}}
    monkeypatch.setattr(structure, "imports", lambda: below)
    assert sorted(structure.circles()) == [["a", "b", "c"], ["e", "f"]]


def test_no_import_goes_upwards():
    """Nor does anything import the package as a whole, which gathers names for its users."""
    assert structure.upwards() == []
    assert {room for rooms in structure.FLOORS for room in rooms} >= {
        name.split(".")[0] for name in structure.paths() if name
    }


def test_an_import_that_goes_upwards_is_found(monkeypatch):
    below = {"_linear.sums": {"_rows.blockwise", "_utils.files"}, "_cli.fit": {"estimators"}, "privacy": {""}}
    monkeypatch.setattr(structure, "imports", lambda: below)
    assert structure.upwards() == [("_linear.sums", "_rows.blockwise"), ("privacy", "")]


def test_lines_only_fall():
    """What a capability adds raises the total by a decision record; all else takes out what it adds."""
    assert sum(structure.lines_of_rooms().values()) <= structure.MOST_LINES
    tests = subprocess.check_output(["git", "ls-files", "tests/*.py"], text=True, cwd=PACKAGE.parent).split()
    lines = sum(len((PACKAGE.parent / path).read_text().splitlines()) for path in tests)
    assert lines <= structure.MOST_TEST_LINES


def test_every_module_has_a_room():
    assert structure.room_of("privacy.ledger._sql").name == "ledger"
    assert structure.room_of("_export.onnx_model").name == "export"
    assert structure.room_of("").name == "utilities and top"
    named = {begin for room in structure.ROOMS for begin in room.modules}
    assert {name.split(".")[0] for name in structure.paths()} <= named | {"model_selection"}


def test_parameters_that_may_be_anything_and_questions_about_attributes_do_not_grow():
    anything, asked = structure.looks()
    assert anything <= structure.MOST_ANYTHING and asked <= structure.MOST_ASKED


def test_the_core_imports_no_annex():
    assert structure.to_annexes() == []


def test_an_import_of_an_annex_by_its_public_name_is_found(monkeypatch):
    """Also if the package imports that name on first use."""
    imported = {
        ("estimators._ridge", False): [("algorithms", "ModelMix"), ("algorithms", "Algorithm")],
        ("_rows.table", False): [("_dask", "DaskTable")],
        ("_papers.pazo", False): [("_papers.dpzero", "DIRECTIONS")],
        ("algorithms", True): [("_papers.modelmix", "ModelMix")],
    }
    monkeypatch.setattr(structure, "_imported", lambda name, only_types: imported.get((name, only_types), []))
    assert structure.to_annexes() == [("_rows.table", "_dask"), ("estimators._ridge", "_papers.modelmix")]


def test_the_core_and_default_fits_load_no_annex():
    """Neither an import of any module of the core nor what a usual user runs imports an annex."""
    code = """
import sys
from importlib import import_module
from benchmarks import structure
for name in structure.paths():
    if structure.room_of(name).is_core:
        import_module(f"skmixdp.{name}" if name else "skmixdp")
from sklearn.datasets import load_digits
from skmixdp import MixedDPLogisticRegression, MixedDPRidge
X, y = load_digits(return_X_y=True)
head = MixedDPLogisticRegression().fit(X[100:], y[100:], X[:100], y[:100])
head.predict_proba(X), str(head.privacy_)
MixedDPRidge(target_center=0, target_scale=1).fit(X[100:], y[100:], X[:100], y[:100]).predict(X)
loaded = [name.removeprefix("skmixdp.") for name in sys.modules if name.startswith("skmixdp.")]
print([name for name in loaded if not structure.room_of(name).is_core])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert done.stdout.strip() == "[]"


def test_import_contracts_hold():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports"],
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def pins(name):
    """Package and version of each line of a constraints file."""
    lines = (PACKAGE.parent / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_the_oldest_versions_are_the_lower_bounds():
    import tomllib

    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    oldest = pins("constraints-oldest.txt")
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *extras["discrete"], *extras["onnx"]]:
        name, bound = requirement.split(">=")
        pinned = oldest[name].split(".")
        assert pinned[: len(bound.split("."))] == bound.split("."), name
        assert set(pinned[len(bound.split(".")) :]) <= {"0"}, name


def test_no_type_needs_a_later_scipy():
    """The oldest SciPy has no ``csr_array[Any]``: such types are texts."""
    subscripted = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).startswith(("sp.", "scipy."))
    ]
    assert subscripted == []


def test_every_dependency_and_test_tool_has_a_pinned_version():
    import re
    import tomllib

    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    newest = {name.lower().replace("_", "-") for name in pins("constraints.txt")}
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        name = re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")
        assert name in newest, name


def test_the_citation_has_the_version():
    from skmixdp import __version__

    assert f"version: {__version__}\n" in (PACKAGE.parent / "CITATION.cff").read_text()


def test_extras_exist():
    import tomllib

    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    assert {"features", "plot", "dask", "discrete", "test", "docs"} <= set(project["optional-dependencies"])


def test_tests_reach_private_names_through_one_file():
    """So that code can move: imports, and the paths of attributes that are replaced."""
    private = re.compile(r"skmixdp[\w.]*\._[a-z]\w*(\.\w+)*")
    # Apart from the list itself, these look up names of the package by their texts.
    names = {"private_names.py", "test_annexes.py", "test_docstrings.py", "test_architecture.py"}
    files = [path for path in Path(__file__).parents[1].rglob("*.py") if path.name not in names]
    uses = {
        f"{path.name}: {name}"
        for path in files
        if "sabotage" not in path.parts
        for node in nodes_of(path)
        for name in names_in(node)
        if private.fullmatch(name)
    }
    assert uses == set()


def names_in(node):
    """Dotted names that a node imports, or a text that may be one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


#: Names that do not say what they hold.
PRONOUNS = {"asked", "found", "given", "held", "kept", "known", "one", "other", "told"}


def test_variables_say_what_they_hold():
    bindings = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in nodes_of(path)
        if (isinstance(node, ast.arg) and node.arg in PRONOUNS)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in PRONOUNS)
    }
    assert bindings == set()
