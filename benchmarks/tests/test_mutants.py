"""The faults that `make mutants` plants, and how it draws and counts them."""

from collections import Counter

import pytest

pytest.importorskip("cosmic_ray", reason="mutants need skmixdp[mutants]")

from benchmarks.mutants.operators import Source
from benchmarks.mutants.run import ROOT, TARGETS, Outcome, draw, interval, table

TEXT = '''"""A module of 3 lines."""

from functools import cache


@cache
def add(a: int | None, *, b: float = 2.0) -> int | float:
    """Add 1."""
    if not a:
        raise ValueError(f"a={a + 1} of at most {max(1, 2)}.")
    assert a > 0
    return sorted([a, min(a, b)], reverse=True)[0]


def grow(rows, strict):
    rows[0] = 1
    rows += zip(rows, rows, strict=True)
    rows.append(strict)
'''


@pytest.fixture
def source(tmp_path):
    (tmp_path / "module.py").write_text(TEXT)
    return Source(tmp_path, "module.py")


def test_what_is_planted_and_what_is_left_out(source):
    changes = {(m.operator, *source.changed_line(m)) for m in source.mutants()}
    best = "return sorted([a, min(a, b)], reverse=True)[0]"
    first = "def add(a: int | None, *, b: float = 2.0) -> int | float:"
    refusal = 'raise ValueError(f"a={a + 1} of at most {max(1, 2)}.")'
    expected = {
        ("NumberReplacer", first, first.replace("2.0", " 3.0")),
        ("NumberReplacer", first, first.replace("2.0", " 1.0")),
        ("ReplaceUnaryOperator_Delete_Not", "if not a:", "if  a:"),
        ("DeleteStatement", refusal, "pass"),
        ("SwapExtremes", best, best.replace("min", "max")),
        ("DropKeywordArgument", best, best.replace(", reverse=True", "")),
        ("ReplaceTrueWithFalse", best, best.replace("True", "False")),
        ("NumberReplacer", best, best.replace("[0]", "[ 1]")),
        ("NumberReplacer", best, best.replace("[0]", "[ -1]")),
        ("DeleteStatement", "rows[0] = 1", "pass"),
        ("NumberReplacer", "rows[0] = 1", "rows[ 1] = 1"),
        ("NumberReplacer", "rows[0] = 1", "rows[ -1] = 1"),
        ("NumberReplacer", "rows[0] = 1", "rows[0] =  2"),
        ("NumberReplacer", "rows[0] = 1", "rows[0] =  0"),
        ("DeleteStatement", "rows += zip(rows, rows, strict=True)", "pass"),
        ("DeleteStatement", "rows.append(strict)", "pass"),
    }
    assert {(name, " ".join(new.split())) for name, _, new in changes} == {
        (name, " ".join(new.split())) for name, _, new in expected
    }
    assert {old for _, old, _ in changes} == {old for _, old, _ in expected}


def test_every_mutant_is_another_program(source):
    texts = [source.mutated(mutant) for mutant in source.mutants()]
    for text in texts:
        compile(text, "module.py", "exec")
    assert len({*texts, TEXT}) == len(texts) + 1


def test_a_statement_is_known_by_its_lines(source):
    assert source.statement_lines(9) == range(9, 10)  # of an `if`, its condition
    assert source.statement_lines(7) == range(6, 8)  # with its decorator
    assert source.statement_lines(12) == range(12, 13)


def test_what_is_mutated_and_its_tests_exist():
    assert all(list(ROOT.glob(pattern)) for pattern in TARGETS)
    assert all((ROOT / test).exists() for tests in TARGETS.values() for test in tests)


def test_a_sample_is_stratified_and_repeatable(source):
    mutants = source.mutants()
    others = [type(m)("other.py", m.line, m.column, m.operator, m.occurrence) for m in mutants[:4]]
    drawn = draw([*mutants, *others], 10, seed=1)
    assert Counter(m.path for m in drawn) == {"module.py": 8, "other.py": 2}
    assert drawn == draw([*mutants, *others], 10, seed=1) != draw([*mutants, *others], 10, seed=2)
    assert len(set(drawn)) == 10


def test_figures(source):
    kinds = ["killed", "killed", "timed out", "survived", "not run"]
    outcomes = [Outcome(m, ("", ""), k) for m, k in zip(source.mutants(), kinds, strict=False)]
    text = table(outcomes, Counter({"module.py": 16}))
    assert "| module.py | 16 | 5 | 2 | 1 | 2 |" in text
    assert "Noticed: 3 of 5, 60.0%" in text
    # Wilson 1927, for 9 of 10.
    assert interval(9, 10) == pytest.approx((0.596, 0.982), abs=1e-3)
