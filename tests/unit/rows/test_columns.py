"""Standardised columns, when columns are worth it, and histograms that are counted without being formed."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.asking import request_of
from tests.private_names import IQR, BinCounts, Columns, RowMap, columns_of, special_table, worth_scaling
from tests.rounding import assert_close

rng = np.random.default_rng(0)
LARGEST, TINY = np.finfo("f8").max, np.finfo("f8").smallest_subnormal
CENTER, FACTOR = np.array([1.0, -2.0, 1e6, 0.0]), np.array([0.5, 3.0, 1e-6, 1e9])
COLUMNS = Columns(CENTER, FACTOR)

ENTRIES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, TINY, -TINY, LARGEST, -LARGEST, 1e6, 1e-9]),
)
CENTERS = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([0.0, LARGEST, -LARGEST, TINY]))
FACTORS = st.one_of(st.floats(TINY, LARGEST), st.sampled_from([1.0, TINY, LARGEST]))


FEW = st.integers(0, 5)


def drawn(data, n_rows=FEW):
    """Rows and any columns that can be of them."""
    d = data.draw(st.integers(1, 5))
    X = data.draw(hnp.arrays(np.float64, st.tuples(n_rows, st.just(d)), elements=ENTRIES))
    center = data.draw(hnp.arrays(np.float64, d, elements=CENTERS))
    return X, Columns(center, data.draw(hnp.arrays(np.float64, d, elements=FACTORS)))


class TestColumns:
    @given(data=st.data())
    def test_entries_of_any_size_end_within_the_cut(self, data):
        X, columns = drawn(data)
        Z = columns(X)
        assert Z.shape == X.shape and np.all(np.abs(Z) <= columns.cut)
        with np.errstate(over="ignore"):
            exact = np.clip((X - columns.center) * columns.factor, -8, 8)
        np.testing.assert_array_equal(Z, exact)

    @given(data=st.data())
    def test_written_over_the_rows_it_is_the_same(self, data):
        X, columns = drawn(data)
        Z = columns(X)
        out = X.copy()
        assert columns(out, out) is out
        np.testing.assert_array_equal(out, Z)

    @given(data=st.data())
    def test_single_entries_and_zeros_are_those_of_rows(self, data):
        X, columns = drawn(data, st.just(1))
        places = np.arange(X.shape[1])
        np.testing.assert_array_equal(columns.at(X[0], places), columns(X)[0])
        np.testing.assert_array_equal(columns.at(X[0][::-1], places[::-1]), columns(X)[0][::-1])
        np.testing.assert_array_equal(columns.of_zeros(), columns(np.zeros_like(X))[0])

    @pytest.mark.parametrize("entry", [LARGEST, -LARGEST])
    def test_what_overflows_is_cut_on_its_side_without_a_warning(self, entry):
        far = Columns(np.array([-entry]), np.array([LARGEST]))
        with np.errstate(all="raise"):
            np.testing.assert_array_equal(far(np.array([[entry]])), [[math.copysign(8, entry)]])

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool"])
    def test_rows_of_every_dtype_are_standardised_in_double_precision(self, dtype):
        X = np.array([[0, 1, 1, 0], [1, 0, 1, 1]]).astype(dtype)
        Z = COLUMNS(X)
        assert Z.dtype == np.float64
        np.testing.assert_array_equal(Z, COLUMNS(X.astype("f8")))

    @given(data=st.data())
    def test_tensors_have_the_same_columns(self, data):
        torch = pytest.importorskip("torch", reason="needs skmixdp[features]")
        X, columns = drawn(data)
        Z = columns(torch.from_numpy(X))
        np.testing.assert_array_equal(Z.numpy(), columns(X))

    @pytest.mark.parametrize("bound", [None, 3.0])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_the_sums_of_sparse_rows_are_those_of_dense_ones(self, dtype, bound):
        """Zeros of centred columns are no zeros; they join the mean."""
        X = np.where(rng.random((300, 4)) < 0.6, 0.0, CENTER + rng.normal(size=(300, 4)) / FACTOR)
        X[0], X[1] = 1e30, -1e30  # which are cut
        row_map = RowMap(None, True, 0.4, columns=COLUMNS, bound=bound)
        dense = row_map(X, np.float64)
        rows = special_table(sp.csr_array(X)).private_rows(
            np.zeros(len(X)), row_map, np.dtype(dtype), exact=False
        )
        points = rng.normal(size=(2, 5))
        ((total, products),) = rows.private_sums(
            [request_of(points, lambda Z, block: (Z, np.asarray(Z) ** 2))]
        )
        Z = dense @ points.T
        # Rows have length 1.1 at most; sums of 300 products of them are rounded by this part of 300.
        rounding = 300 * 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(total, Z.T @ dense, rtol=0, atol=rounding)
        np.testing.assert_allclose(products, (Z**2).sum(axis=0), rtol=0, atol=rounding)


class TestOfPublicRows:
    X = rng.normal(size=(4000, 6))

    def test_columns_have_mean_0_and_spread_1(self):
        X = self.X * [1e-9, 1e-3, 1.0, 5.0, 1e3, 1e12] + [3e-9, 0.0, -7.0, 50.0, 0.0, 1e12]
        Z = columns_of(X)(X)
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
        # The larger one of two estimates of the spread, which differ by their errors.
        assert np.all((Z.std(axis=0) >= 0.95) & (Z.std(axis=0) <= 1 + 1e-9))

    def test_the_spread_is_the_larger_one_of_two(self):
        heavy = np.where(np.arange(4000) % 100 == 0, 1000.0, self.X[:, 0])  # few entries far out
        wide = np.sign(self.X[:, 1])  # half of the entries at each end
        found = columns_of(np.column_stack([heavy, wide]))
        assert 1 / found.factor[0] == pytest.approx(heavy.std())
        assert 1 / found.factor[1] == pytest.approx(2 / IQR)

    def test_without_a_centre_rows_keep_their_zeros(self):
        found = columns_of(self.X + 5, centred=False)
        assert not found.center.any() and not found.of_zeros().any()
        assert_close(found.factor, columns_of(self.X + 5).factor)

    @pytest.mark.parametrize("level", [0.0, 0.1, 1 / 3, -1e300, 1e-300, TINY, LARGEST])
    def test_constant_columns_keep_their_unit(self, level):
        """The mean of equal entries may be rounded, which is no spread."""
        X = np.column_stack([np.full(37, level), self.X[:37, 0]])
        found = columns_of(X)
        assert found.factor[0] == 1 and found.factor[1] == pytest.approx(1, rel=0.5)
        assert found.center[0] == pytest.approx(level, rel=1e-12)

    @pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
    def test_two_values_are_at_least_as_far_from_the_centre_as_balanced_ones(self, unit):
        X = np.column_stack([np.arange(100.0) == 7, np.arange(100) % 4 == 0, np.arange(100), np.ones(100)])
        X = unit * (2 * X - 1)
        plain, balanced = columns_of(X), columns_of(X, balanced=True)
        assert_close(unit * balanced.factor[0], 1.0)
        assert unit * plain.factor[0] > 5
        # Quartiles of a quarter of ones, and columns of more values or of one, decide as before.
        np.testing.assert_array_equal(balanced.factor[2:], plain.factor[2:])
        assert balanced.factor[1] == min(plain.factor[1], balanced.factor[0])
        np.testing.assert_array_equal(balanced.center, plain.center)

    def test_one_row_and_constant_rows_tell_nothing(self):
        assert columns_of(self.X[:1]) is None and columns_of(self.X[:0]) is None
        assert columns_of(np.repeat(self.X[:1], 9, axis=0)) is None

    def test_two_rows_tell_their_spread(self):
        assert_close(columns_of(np.array([[1.0], [5.0]])).center, [3.0])
        assert_close(1 / columns_of(np.array([[1.0], [5.0]])).factor, [2.0])

    @pytest.mark.parametrize("unit", [1e-320, 1e-300, 1e-6, 1e6, 1e300, LARGEST / 8])
    def test_the_unit_of_the_rows_does_not_matter(self, unit):
        """A number below 1e-307 has fewer digits than others, and its inverse is infinite."""
        found, one = columns_of(self.X * unit), columns_of(self.X)
        if unit < 1e-307:
            assert found is None or np.all(found.factor == 1)
            return
        assert_close(found.factor * unit, one.factor, 1e-9)
        # The mean is near 0, so its rounding is relative to the spread.
        np.testing.assert_allclose(found.center / unit, one.center, rtol=0, atol=1e-12)

    @given(
        X=hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(1, 13)), elements=ENTRIES),
        centred=st.booleans(),
    )
    def test_whatever_the_rows_centre_and_factors_are_finite(self, X, centred):
        found = columns_of(X, centred=centred)
        if found is not None:
            assert np.all(np.isfinite(found.center)) and np.all(np.isfinite(found.factor))
            assert np.all(found.factor > 0)
            assert np.all(np.isfinite(found(X)))

    def test_a_centre_far_from_0_costs_no_digits(self):
        X = self.X * 1e-4 + 1.0
        Z = columns_of(X)(X)
        assert_close(Z, (X - X.mean(axis=0)) / (self.X * 1e-4).std(axis=0), 0.1)
        np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)


class TestWorthScaling:
    @pytest.mark.parametrize("d", [1, 2, 10])
    def test_few_columns_always_are(self, d):
        assert worth_scaling(np.zeros(d), np.ones(d))

    def test_many_alike_are_not(self):
        assert not worth_scaling(np.zeros(11), np.ones(11))
        assert not worth_scaling(np.zeros(1000), np.linspace(0.5, 2, 1000))

    def test_a_few_long_ones_among_many_are(self):
        for n_long in (1, 5, 6):
            spread = np.where(np.arange(100) < n_long, 1e3, 1.0)
            assert worth_scaling(np.zeros(100), spread) == (n_long < 6)
        # Of 12 columns, fewer than 4.8.
        assert worth_scaling(np.zeros(12), np.where(np.arange(12) < 4, 1.0, 1e-3))
        assert not worth_scaling(np.zeros(12), np.where(np.arange(12) < 5, 1.0, 1e-3))

    def test_a_far_centre_is(self):
        spread = np.ones(100)
        assert not worth_scaling(9.9 * spread, spread)
        assert worth_scaling(10.1 * spread, spread) and worth_scaling(-10.1 * spread, spread)
        assert worth_scaling(np.where(np.arange(100) == 3, 101.0, 0.0), spread)

    @pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e100, 1e300])
    def test_by_no_unit(self, unit):
        for d, spread in ((100, np.ones(100)), (100, np.where(np.arange(100) < 3, 1.0, 0.01))):
            for far in (0.0, 9.0, 11.0):
                center = np.full(d, far)
                assert worth_scaling(unit * center, unit * spread) == worth_scaling(center, spread)

    def test_columns_of_very_different_size(self):
        for small in (1e-70, 1e-100, 1e-170, 1e-300):
            assert worth_scaling(np.zeros(50), np.where(np.arange(50) < 2, 1.0, small))
            assert worth_scaling(np.ones(50), np.full(50, small))
            assert not worth_scaling(np.full(50, small), np.ones(50))

    def test_nothing_known_is_not(self):
        assert not worth_scaling(np.ones(3), np.zeros(3))
        assert not worth_scaling(np.zeros(0), np.zeros(0))
        for bad in (np.inf, np.nan):
            assert not worth_scaling(np.array([0.0, 1.0]), np.array([1.0, bad]))
            assert not worth_scaling(np.array([0.0, bad]), np.array([1.0, 1.0]))


class TestBinCounts:
    @given(n=st.integers(0, 30), h=st.integers(1, 5), n_bins=st.integers(1, 9), data=st.data())
    def test_sums_and_lengths_are_those_of_the_array_that_is_formed(self, n, h, n_bins, data):
        bins = data.draw(hnp.arrays(np.intp, (n, h), elements=st.integers(-1, n_bins - 1)))
        left_out = data.draw(hnp.arrays(bool, n))
        counts = BinCounts(bins, n_bins)
        formed = np.asarray(counts)
        assert formed.shape == (n, h * n_bins) and len(counts) == n
        by_hand = np.zeros((n, h, n_bins))
        for i, j in np.argwhere(bins >= 0):
            by_hand[i, j, bins[i, j]] = 1
        np.testing.assert_array_equal(formed, by_hand.reshape(n, h * n_bins))
        for some, kept in ((counts, np.ones(n, bool)), (counts.without(left_out), ~left_out)):
            np.testing.assert_array_equal(some.sums(), formed[kept].sum(axis=0))
            np.testing.assert_array_equal(np.asarray(some), formed * kept[:, np.newaxis])
            assert_close(some.lengths(), np.linalg.norm(np.asarray(some), axis=1))
            assert some.sums().dtype == np.asarray(some).dtype == np.float64 and len(some) == n
        assert np.array_equal(counts.bins, bins)  # which others may share
        other = BinCounts(np.asfortranarray(bins, np.int8), n_bins)
        weights = np.arange(n) + 0.5
        for some in (other, other.without(np.zeros(n, bool))):
            np.testing.assert_array_equal(some.sums(), formed.sum(axis=0))
            np.testing.assert_array_equal(some.sums(weights), weights @ formed)

    def test_a_row_is_as_long_as_the_root_of_the_number_of_histograms(self):
        counts = BinCounts(np.zeros((3, 7), np.intp), 4)
        assert_close(counts.lengths(), np.full(3, math.sqrt(7)))
        assert_close(counts.without(np.array([True, False, True])).lengths(), [0.0, math.sqrt(7), 0.0])
