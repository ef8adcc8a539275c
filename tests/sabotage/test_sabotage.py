"""Tests of the guarantee fail where the guarantee is broken."""

import ast
import builtins
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from .harness import LIMIT, PACKAGE, ROOT, Outcome, apply, copy_to, outcome_of, place_of, run_tests
from .outcomes import by_assertion
from .page import PAGE, cells, rows_of
from .sabotages import SABOTAGES, Edit, Sabotage, read
from .source import sources_in, tokens

TESTS = sorted({test for sabotage in SABOTAGES for test in sabotage.tests})


@pytest.mark.slow
@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.name)
def test_a_sabotage_is_found(sabotage, tmp_path):
    outcome = outcome_of(sabotage, tmp_path)
    if outcome.skipped and not (outcome.passed or outcome.failed or outcome.broken):
        pytest.skip("the tests that would find it need an extra that is not installed")
    assert outcome.caught, f"{outcome.broken or 'all named tests passed'}\n{outcome.output}"


@pytest.mark.slow
def test_without_sabotage_the_same_tests_pass(tmp_path):
    copy_to(tmp_path)
    outcome = run_tests(tmp_path, TESTS, patience=900)
    assert not outcome.failed and not outcome.broken, outcome.output
    assert outcome.passed >= len(TESTS) - outcome.skipped


def test_every_edit_finds_its_place_and_what_comes_of_it_is_python():
    sources = sources_in(ROOT / PACKAGE)
    for sabotage in SABOTAGES:
        stored = {*dir(builtins)}  # also by another edit
        for edit in sabotage.edits:
            assert [token.key for token in tokens(edit.old)] != [token.key for token in tokens(edit.new)]
            place = place_of(edit, sources)
            before, after = ast.parse(place.text), ast.parse(place.replaced(edit.old, edit.new))
            stored |= stored_in(after)
            unknown = names_in(after) - names_in(before) - stored - names_of_file(place.path)
            assert not unknown, (sabotage.name, unknown)


def names_in(tree):
    """All names of variables and arguments."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.arg)]
    return {node.id if isinstance(node, ast.Name) else node.arg for node in nodes}


def stored_in(tree):
    """Names that are assigned or imported, and arguments."""
    loaded = {id(node) for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Load)}
    nodes = [
        node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.arg) and id(node) not in loaded
    ]
    imported = {node.asname or node.name for node in ast.walk(tree) if isinstance(node, ast.alias)}
    return imported | {node.id if isinstance(node, ast.Name) else node.arg for node in nodes}


@cache
def names_of_file(path):
    """What a file imports or defines at its top."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif hasattr(node, "name"):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found |= stored_in(node)
    return found


def test_every_named_test_exists():
    bodies = {
        path: ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        for path in {test.partition("::")[0] for test in TESTS}
    }
    for test in TESTS:
        path, *names = test.partition("[")[0].split("::")
        body = bodies[path]
        for name in names:
            (found,) = [node for node in body if getattr(node, "name", None) == name]
            body = found.body
    assert max(Counter(sabotage.name for sabotage in SABOTAGES).values()) == 1


def test_the_page_lists_all_sabotages():
    """``python -m tests.sabotage --write`` writes it anew."""
    rows = rows_of(PAGE.read_text(encoding="utf-8"))
    assert [row[:3] for row in rows] == list(map(cells, SABOTAGES))
    assert all(len(row) == 4 and 0 < float(row[3]) <= LIMIT for row in rows)


@pytest.mark.slow
class TestHarness:
    """It takes nothing for a failed test that is none."""

    @pytest.fixture
    def folder(self, tmp_path):
        """A copy of what the harness itself consists of, with tests of every kind."""
        (tmp_path / "tests" / "sabotage").mkdir(parents=True)
        for path in (
            "tests/__init__.py",
            *(f"tests/sabotage/{name}.py" for name in ("__init__", "outcomes")),
        ):
            (tmp_path / path).write_text((ROOT / path).read_text(encoding="utf-8"), encoding="utf-8")
        (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        return tmp_path

    @pytest.mark.parametrize(
        ("code", "caught"),
        [
            ("def test(): assert 1 == 2", True),
            pytest.param("def test(): assert 1 == 1", False, marks=pytest.mark.slow),
            pytest.param("def test(): raise ValueError", False, marks=pytest.mark.slow),
            pytest.param(
                "import pytest\n@pytest.fixture\ndef x(): assert 1 == 2\ndef test(x): pass",
                False,
                marks=pytest.mark.slow,
            ),
            pytest.param(
                "import nothing_of_the_kind\ndef test(): assert 1 == 2", False, marks=pytest.mark.slow
            ),
            pytest.param("import os\ndef test(): os._exit(1)", False, marks=pytest.mark.slow),
            pytest.param("def another(): assert 1 == 2", False, marks=pytest.mark.slow),
            ("import time\ndef test():\n    time.sleep(60)", False),
        ],
    )
    def test_only_failed_tests_count(self, folder, code, caught):
        (folder / "test_it.py").write_text(code, encoding="utf-8")
        patience = 1 if "sleep" in code else 60
        outcome = run_tests(folder, ["test_it.py::test"], patience)
        assert outcome.caught == caught
        assert caught or outcome.broken or outcome.passed == 1

    def test_what_takes_too_long_is_not_caught(self):
        found = Outcome(0, 0, ("a test",), (), LIMIT - 1, "")
        assert found.caught and not replace(found, seconds=LIMIT + 1).caught
        assert not replace(found, broken=("another",)).caught and not replace(found, failed=()).caught

    def test_only_assertions_are_failures(self):
        def raised_by(function):
            try:
                function()
            except BaseException as error:
                return error

        def nothing_raised():
            with pytest.raises(ValueError, match="nothing"):
                pass

        asserted, other = AssertionError("1 == 2"), ValueError("1")
        assert by_assertion(raised_by(nothing_raised)) and by_assertion(asserted)
        assert by_assertion(ExceptionGroup("two examples", [other, asserted]))
        assert not by_assertion(other) and not by_assertion(ExceptionGroup("two examples", [other, other]))

    def test_paragraphs_are_sabotages(self):
        text = "# -- heading\n\nname\nwhy\n@ a\n- x\n-     y\n+ z\n@ b\n- 1\n+ 2\n! t::u[- @]\n! v\n"
        edits = (Edit("a", "x\n    y", "z"), Edit("b", "1", "2"))
        assert read(text) == (Sabotage("name", "why", edits, ("t::u[- @]", "v")),)

    def test_an_edit_finds_a_name_in_any_file_however_it_is_formatted(self, tmp_path):
        package = tmp_path / PACKAGE
        (package / "inner").mkdir(parents=True)
        (package / "other.py").write_text("def other():\n    return total(1, 2)\n", encoding="utf-8")
        for code in (
            "def outer(x):\n    a = 1\n    return total(a, 'x', 2.0)\n",
            "@cached\ndef outer(\n    x,\n):\n    a = 1  # one\n"
            '    return (total(\n        a,  # two\n        "x", 2.,\n    ))\n',
        ):
            (package / "inner" / "code.py").write_text(code, encoding="utf-8")
            edit = Edit("outer", "return total(a, 'x', 2.0)", "if x:\n    return 3\nreturn total(a, 1)")
            apply(Sabotage("", "", (edit,), ()), tmp_path)
            text = (package / "inner" / "code.py").read_text(encoding="utf-8")
            assert text.endswith("    a = 1\n    if x:\n        return 3\n    return total(a, 1)\n")
        for name, old, count in (
            ("outer", "1", 2),
            ("outer", "2", 0),
            ("inner", "1", 0),
            ("A.outer", "1", 0),
        ):
            with pytest.raises(ValueError, match=f"'{old}' occurs {count} times in what is named {name}"):
                place_of(Edit(name, old, "9"), sources_in(package))

    def test_methods_and_constants_are_found_by_their_qualified_names(self, tmp_path):
        code = "A = 1\nclass B:\n    A: int = 1\n    def f(self):\n        return (\n            1)\n"
        (tmp_path / "code.py").write_text(code, encoding="utf-8")
        for name, expected in (
            ("A", code.replace("A = 1", "A = 2")),
            ("B.A", code.replace("int = 1", "int = 2")),
            ("B.f", code.replace("(\n            1)", "2")),
        ):
            assert place_of(Edit(name, "1", "2"), sources_in(tmp_path)).edited("1", "2") == expected
