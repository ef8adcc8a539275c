"""Knots from public rows, and from noisy histograms of private ones."""

import numpy as np
import pytest
from scipy.stats import lognorm

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor, MixedDPLogisticRegression
from tests.private_names import Bins, count_error, knots_share, most_knots, pieces, public_columns

RNG = np.random.default_rng(0)
N = 20_000


def basis_of(x, epsilon=8.0, **parameters):
    y = RNG.normal(size=len(x))
    reg = AdditiveDPRegressor(epsilon=epsilon, target_scale=1.0, random_state=0, **parameters)
    with pytest.warns(UserWarning, match="random_state"):
        return reg.fit(np.column_stack([x, RNG.normal(size=len(x))]), y)._row_map.basis


def test_knots_of_private_rows_are_near_the_quantiles():
    x = RNG.normal(size=N)
    knots = basis_of(x, n_knots=8).knots[0]
    assert len(knots) == 9
    np.testing.assert_allclose(knots[1:-1], np.quantile(x, np.arange(1, 8) / 8), atol=0.06)
    basis = basis_of(x)
    assert np.all(np.abs(basis(np.column_stack([x, x])).mean(axis=0)[basis.hats[0]]) < 0.02)


def test_units_and_places_of_columns_do_not_matter():
    x = RNG.normal(size=N)
    ranks = [
        np.searchsorted(np.sort(column), basis_of(column, n_knots=8).knots[0][1:-1]) / N
        for column in (x, 1e6 * x, 1e-6 * x, 50_000 + 100 * x, np.exp(3 * x))
    ]
    for found in ranks:
        np.testing.assert_allclose(found, np.arange(1, 8) / 8, atol=0.05)


@pytest.mark.parametrize("values", [(0, 1), (-1, 1), (3.5, 1000.0), (0, 1e-6)])
def test_columns_of_two_values_have_no_knots_and_distance_one(values):
    x = RNG.choice(values, N, p=[0.8, 0.2])
    basis = basis_of(x)
    assert len(basis.knots[0]) == 0
    low, high = basis(np.array([[min(values), 0.0], [max(values), 0.0]]))[:, 0]
    assert high - low == pytest.approx(1, abs=0.15)
    assert len(basis.knots[1]) > 2


def test_most_knots_bounds_what_comes_out_and_a_spike_leaves_knots_for_the_rest():
    spike = np.where(RNG.random(N) < 0.8, 0.0, RNG.lognormal(size=N))
    for n_knots in (2, 64):
        for x in (RNG.normal(size=N), spike):
            assert len(basis_of(x, n_knots=n_knots).knots[0]) <= most_knots(n_knots)
    assert (basis_of(spike).knots[0] > 0.2).sum() >= 4


def test_values_in_a_narrow_range_far_from_zero_are_told_apart():
    years = RNG.integers(1990, 2021, N)
    knots = basis_of(years.astype(float), n_knots=8).knots[0]
    np.testing.assert_allclose(knots[[0, -1]], [1990, 2021], atol=10)
    assert len(knots) >= 9
    assert len(basis_of(RNG.choice([1990.0, 2010.0], N)).knots[0]) == 0


def test_constant_columns_have_no_knots():
    for value in (0.0, 5.0, -1e6):
        basis = basis_of(np.full(N, value))
        assert len(basis.knots[0]) == 0
        assert basis.center[0] == pytest.approx(value, rel=0.1)


def test_a_third_histogram_costs_only_if_it_is_asked_for():
    shares = []
    for x in (RNG.normal(size=N), RNG.integers(1990, 2021, N)):
        reg = AdditiveDPRegressor(target_scale=1.0).fit(
            np.column_stack([x, x + RNG.normal(size=N)]), RNG.normal(size=N)
        )
        shares.append(dict(reg.privacy_.shares)["knots"])
    assert shares[0] == pytest.approx(2 / 3 * shares[1])


def test_one_row_far_away_moves_no_knot_far():
    x = RNG.normal(size=N)
    far = np.append(x[:-1], 1e30)
    np.testing.assert_allclose(basis_of(x).knots[0][:-1], basis_of(far).knots[0][:-1], atol=0.1)


def test_knots_of_public_rows():
    X = np.column_stack(
        [RNG.normal(size=200), RNG.integers(0, 2, 200), np.full(200, 7.0), RNG.integers(0, 4, 200)]
    )
    X[:3, 0] = np.nan
    normal, two, constant, few = public_columns(X, 8, np.zeros(4, bool))
    np.testing.assert_allclose(normal.knots, np.nanquantile(X[:, 0], np.linspace(0, 1, 9)), atol=1e-12)
    assert normal.missing
    assert not two.missing
    assert (two.center, two.factor, len(two.knots)) == (pytest.approx(X[:, 1].mean()), 1.0, 0)
    np.testing.assert_allclose(few.mean, np.bincount(X[:, 3].astype(int)) / 200, atol=1e-12)
    assert (constant.center, constant.factor, len(constant.knots)) == (7.0, 1.0, 0)
    np.testing.assert_array_equal(few.knots, [0, 1, 2, 3])


def test_huge_and_tiny_public_values_give_a_finite_basis():
    for values in ([1e308, -1e308, 0], [1e-320, 0, -1e-320], [np.inf, 1, 2], [np.nan] * 3):
        (column,) = public_columns(np.array(values)[:, None], 8, np.zeros(1, bool))
        assert np.all(np.isfinite([column.center, column.factor, *column.knots]))


@pytest.mark.parametrize("width", [4, 30])
def test_where_noise_hides_the_histograms_the_model_is_the_linear_default(width):
    X, y = RNG.normal(size=(60, width)), np.arange(60) % 2
    coefs = []
    for kind in (AdditiveDPClassifier, MixedDPLogisticRegression):
        with pytest.warns(UserWarning, match="random_state"):
            clf = kind(epsilon=0.5, classes=[0, 1], delta=1e-3, random_state=0).fit(X, y)
        assert "knots" not in dict(clf.privacy_.shares)
        coefs.append(clf.coef_)
    np.testing.assert_array_equal(*coefs)


def test_the_rules_are_of_public_facts():
    assert (pieces(0.25, 20_000), pieces(0.25, 19_999), pieces(5.0, 1000)) == (16, 8, 16)
    assert [pieces(5.0, 10**6, n_known) for n_known in (10, 20, 30, 1000)] == [3, 4, 6, 8]
    assert count_error(0.1, 1000, 3) == pytest.approx(90**0.5 / 100)
    assert knots_share(1.0, 10**6, 10) == 0.1
    assert knots_share(0.1, 6200, 10) == 0.1
    assert knots_share(0.1, 6100, 10) == 0
    assert knots_share(1.0, 10**6, 0) == 0


def test_small_regressions_have_curves_only_if_they_are_asked_for():
    X, y = RNG.normal(size=(900, 2)), RNG.normal(size=900)
    for n_knots, curved in (("auto", False), (8, True)):
        reg = AdditiveDPRegressor(epsilon=3.0, target_scale=1.0, n_knots=n_knots).fit(X, y)
        assert any(map(len, reg._row_map.basis.knots)) == curved


def test_few_public_rows_tell_knots_where_noise_would_blur_them():
    X = RNG.normal(size=(N, 2))
    y = (X[:, 0] > 0).astype(int)
    for epsilon, from_public in ((0.5, True), (8.0, False)):
        clf = AdditiveDPClassifier(epsilon=epsilon).fit(X[30:], y[30:], X_pub=X[:30], y_pub=y[:30])
        assert ("knots" not in dict(clf.privacy_.shares)) == from_public
        assert len(clf._row_map.basis.knots[0]) == (7 if from_public else 17)


def test_the_line_has_the_mean_and_the_spread_of_the_rows():
    # A tenth are quantiles of a log-normal distribution. A few long draws would decide the spread by chance.
    x = np.zeros(N)
    x[::10] = lognorm.ppf((np.arange(N // 10) + 0.5) / (N // 10), 1, scale=np.exp(3))
    basis = basis_of(x)
    assert basis.center[0] == pytest.approx(x.mean(), rel=0.2)
    assert 1 / basis.factor[0] == pytest.approx(x.std(), rel=0.25)
    (known,) = public_columns(x[:, np.newaxis], 8, np.zeros(1, bool))
    assert (known.center, 1 / known.factor) == pytest.approx((x.mean(), x.std()))


def test_bins_are_exact_in_single_precision():
    bins = Bins(np.array([1]), (np.arange(700.0),))
    X = np.column_stack([np.zeros(5), [-np.inf, 0.0, 699.0, np.inf, np.nan]])
    places = bins(X)
    np.testing.assert_array_equal(places.astype(np.float32).astype(float), places)
    np.testing.assert_array_equal(places[:, 0] * 1024, [0, 1, 700, 700, 701])
    assert bins.n_bins == 702
