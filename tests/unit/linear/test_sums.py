"""What is stated of rounding, term by term, and the order in which sums are added."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.private_names import (
    BLOCK_ROWS,
    EXACT,
    PANEL_ROWS,
    Cascade,
    SumError,
    any_order,
    panel_rows_for,
    sum_error,
)

SINGLE, DOUBLE = Fraction(1, 2**24), Fraction(1, 2**53)


def serial_roundings(n):
    """Leaves below all additions of one term after the other: each is rounded in proportion to these."""
    return sum(range(2, n + 1))


@pytest.mark.parametrize("n", [1, 2, 7, 368])
def test_any_order_counts_the_leaves_below_each_addition_of_both_sums(n):
    expected = 2 * (serial_roundings(n) + n + 1)  # and the rounded products; 1 to spare
    assert any_order(n, 1e-12) == pytest.approx(1e-12 * expected, rel=1e-8)


def test_any_order_includes_the_growth_of_partial_sums():
    assert any_order(9, 0.01) == pytest.approx(0.01 * 108 * math.exp(0.1), rel=1e-12)


@pytest.mark.parametrize("n", [1, 1000, BLOCK_ROWS, 10**7])
def test_sums_in_double_precision_are_off_by_all_blocks_and_the_cascade(n):
    error = sum_error(n, np.float64)
    in_block = min(n, BLOCK_ROWS)
    expected = DOUBLE * (-(-n // BLOCK_ROWS) * (in_block**2 + 3 * in_block) + 64 * n)
    assert error.relative == pytest.approx(float(expected), rel=1e-9)
    assert (error.absolute, error.n_rows) == (0.0, n)


@pytest.mark.parametrize("panel", [48, PANEL_ROWS])
def test_sums_in_single_precision_are_off_by_a_panel_and_the_six_that_are_added(panel):
    later = 2 * serial_roundings(6)  # in panels: of one after the other, in both sums
    constants = 2  # a column that is added up separately
    roundings = panel**2 + 3 * panel + (later + constants) * panel
    growth = math.exp((panel + 1) * float(SINGLE))
    in_double = sum_error(1000, np.float64, block_rows=panel).relative
    error = sum_error(1000, np.float32, panel_rows=panel, block_rows=panel)
    assert error.relative - in_double == pytest.approx(float(SINGLE * roundings) * growth, rel=1e-5)
    assert error.absolute == 4 * panel * 2.0**-126 * 1e6


def test_a_panel_of_384_rows_adds_about_one_hundredth():
    assert (PANEL_ROWS, BLOCK_ROWS) == (384, 65_536)
    assert 0.0095 < sum_error(10**6, np.float32).relative < 0.0101


def test_terms_that_are_stretched_are_off_by_as_much_more():
    plain, stretched = sum_error(500, np.float32), sum_error(500, np.float32, stretch=3.0)
    assert stretched.relative == 3 * plain.relative
    assert stretched.absolute == 3 * plain.absolute
    assert stretched.n_rows == 500


def test_the_change_in_rounding_of_what_is_computed_later():
    error = SumError(0.25, 0.5, 10)
    assert error.of(4.0) == 0.25 * 4 + 0.5
    # 10 terms of length 4, longer by a quarter at most, rounded in both sums.
    assert error.of(4.0, 0.01) == pytest.approx(1.5 + 2 * 0.01 * 10 * 1.25 * 4, rel=1e-14)
    later = error.plus_later(0.01)
    assert (later.absolute, later.n_rows) == (0.5, 10)
    assert later.of(4.0) == pytest.approx(error.of(4.0, 0.01), rel=1e-14)
    assert EXACT.of(1e9, 1.0) == 0.0
    with pytest.raises(AttributeError):
        error.relative = 0.0


def test_panels_are_the_largest_in_steps_of_sixteen_that_stay_near_one_hundredth():
    assert panel_rows_for(1) == PANEL_ROWS
    for stretch in (1.0001, 1.2, 3.0, 10.0, 20.0):
        rows = panel_rows_for(stretch)
        assert sum_error(0, np.float32, panel_rows=rows, stretch=stretch).relative <= 0.01
        assert (PANEL_ROWS - rows) % 16 == 0
        if rows < PANEL_ROWS:
            larger = sum_error(0, np.float32, panel_rows=rows + 16, stretch=stretch)
            assert larger.relative > 0.01
    smallest = sum_error(0, np.float32, panel_rows=48).relative
    assert panel_rows_for(0.0099 / smallest) == 48
    assert panel_rows_for(0.0101 / smallest) == 0


class Traced:
    """A term that remembers how it was added up."""

    def __init__(self, dtype, tree):
        self.dtype, self.tree, self.shape = np.dtype(dtype), tree, ()

    def __iadd__(self, other):
        assert self.dtype == other.dtype
        self.tree = (self.dtype.itemsize, self.tree, other.tree)
        return self

    def __add__(self, other):
        return Traced(np.result_type(self.dtype, other.dtype), (8, self.tree, other.tree))

    def astype(self, dtype):
        return Traced(dtype, self.tree)


def additions(tree, rounded=()):
    """For each leaf, precisions of the additions between it and the root, the innermost first."""
    if not isinstance(tree, tuple):
        yield tree, rounded
        return
    precision, left, right = tree
    yield from additions(left, (precision, *rounded))
    yield from additions(right, (precision, *rounded))


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 15, 16, 17, 96, 256, 5000])
def test_few_additions_lie_between_a_term_and_the_sum(dtype, n):
    total = Cascade()
    for leaf in range(n):
        total.add(Traced(dtype, leaf))
    value = total.value
    assert value.dtype == np.float64
    paths = dict(additions(value.tree))
    assert sorted(paths) == list(range(n))
    in_single = 6 if dtype == np.float32 else 1
    levels = 1 if n < 16 * in_single else math.floor(math.log(n / in_single, 16)) + 1
    for leaf, path in paths.items():
        single, double = path.count(4), path.count(8)
        assert path == (4,) * single + (8,) * double  # never back to single precision
        assert double <= 15 * levels + levels + 1
        # One after the other, in groups of six: the first two of a group are added first.
        group = min(in_single, n - leaf // in_single * in_single)
        assert single == group - max(1, leaf % in_single)


def test_a_level_of_double_precision_hands_on_sixteen_terms():
    for n, counts in ((15, [15]), (16, [0, 1]), (17, [1, 1]), (16 * 16, [0, 0, 1])):
        total = Cascade()
        for _ in range(n):
            total.add(np.ones(()))
        assert [count for _, count in total._levels[1:]] == counts
        assert total.value == n


def test_rows_that_move_cost_the_rounding_of_all_blocks():
    """A row that is removed, or is in a random batch, moves those after it to other blocks."""
    n = 10 * BLOCK_ROWS - 5
    assert sum_error(n, np.float64).relative >= 10 * any_order(BLOCK_ROWS, 2.0**-53)
