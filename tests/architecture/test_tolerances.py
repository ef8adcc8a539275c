"""Comparisons of floating-point arrays hold on every processor: they state an absolute tolerance."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def without_atol(source):
    """Lines of calls of ``assert_allclose`` that leave its absolute tolerance at zero."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "assert_allclose"
        and not any(keyword.arg == "atol" for keyword in node.keywords)
    ]


def test_arrays_are_compared_with_an_absolute_tolerance():
    """`assert_close` and `assert_relative` of ``tests.rounding`` say which kind of values they are for."""
    found = {path: without_atol(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert {str(path.relative_to(TESTS)): lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("np.testing.assert_allclose(a, b)", True),
        ("assert_allclose(a, b, rtol=1e-3)", True),
        ("np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)", False),
        ("assert_close(a, b)", False),
    ],
)
def test_calls_without_one_are_found(code, refused):
    assert without_atol(code) == [1] * refused
