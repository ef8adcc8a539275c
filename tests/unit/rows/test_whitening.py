"""Whitening by what public rows of one class differ in."""

import numpy as np
import pytest

from tests.private_names import RowMap, Whitening, n_groups, row_norms
from tests.rounding import assert_close

rng = np.random.default_rng(0)
K, D = 4, 12


def rows_of_classes(n, seed=0, d=D, stretch=5.0):
    """Rows whose classes differ in some directions, and whose own spread is mostly in others."""
    own = np.random.default_rng(seed)
    y = np.arange(n) % K
    spread = np.where(np.arange(d) < d // 2, 1.0, stretch)
    return np.eye(K, d)[y] * 3 + own.normal(size=(n, d)) * spread, y


@pytest.mark.parametrize("n", [6, 10, 40, 400], ids=lambda n: f"{n} rows")
def test_it_is_the_inverse_root_of_the_shrunk_scatter(n):
    X, y = rows_of_classes(n)
    whitening = Whitening.of(X, y)
    deviations = X - np.stack([X[y == c].mean(axis=0) for c in range(K)])[y]
    scatter = deviations.T @ deviations / (n - K)
    shrunk = 0.1 * scatter + 0.9 * np.trace(scatter) / D * np.eye(D)
    matrix = whitening(np.eye(D))
    # Up to a factor, that of directions without scatter.
    product = matrix @ shrunk @ matrix.T
    np.testing.assert_allclose(
        product, 0.9 * np.trace(scatter) / D * np.eye(D), atol=1e-9 * np.trace(scatter)
    )
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(
        whitening.directions @ whitening.directions.T, np.eye(min(n - K, D)), atol=1e-9
    )
    assert np.all(whitening.factors > 0) and np.all(whitening.factors <= 1)


@pytest.mark.parametrize("n", [10, 400], ids=lambda n: f"{n} rows")
def test_one_label_per_row_is_its_class(n):
    X, y = rows_of_classes(n)
    several = (y[:, np.newaxis] == np.arange(1, K)).astype(np.int8)  # the first class has no label
    one, other = Whitening.of(X, y), Whitening.of(X, several)
    np.testing.assert_allclose(other(np.eye(D)), one(np.eye(D)), atol=1e-9)
    assert n_groups(y) == n_groups(several) == K


def test_what_labels_tell_of_a_row_is_no_scatter():
    own = np.random.default_rng(0)
    labels = own.integers(2, size=(60, 4), dtype=np.int8)
    X = 3 * labels @ own.normal(size=(4, D)) + 0.01 * own.normal(size=(60, D))
    found, noise = Whitening.of(X, labels), X - 3 * labels @ np.linalg.lstsq(labels, X / 3)[0]
    assert np.abs(noise).max() < 0.1  # next to labels of size 3
    np.testing.assert_allclose(found.factors, 1, atol=0.3)  # the rest has no direction of its own
    assert Whitening.of(X[:5], labels[:5]) is None  # four labels and a constant tell all of five rows


@pytest.mark.parametrize("n", [5, 15, 400], ids=lambda n: f"{n} rows")
@pytest.mark.parametrize("stretch", [1.0, 5.0])
def test_a_single_group_is_shrunk_as_far_as_its_rows_ask_for(n, stretch):
    """By the formula of Ledoit and Wolf, written out with a matrix for each row."""
    X = rows_of_classes(n, stretch=stretch)[0]
    deviations = X - X.mean(axis=0)
    outer = deviations[:, :, np.newaxis] * deviations[:, np.newaxis] * n / (n - 1)
    scatter = outer.mean(axis=0)
    mean = np.trace(scatter) / D
    chance = np.sum((outer - scatter) ** 2) / n**2
    wanted = chance / np.sum((scatter - mean * np.eye(D)) ** 2)
    s = min(1.0, max(wanted, D / (D + n), 0.5))
    whitening = Whitening.of(X, np.zeros(n, int))
    matrix = whitening(np.eye(D))
    shrunk = (1 - s) * scatter + s * mean * np.eye(D)
    np.testing.assert_allclose(matrix @ shrunk @ matrix.T, s * mean * np.eye(D), atol=1e-9 * mean * D)


@pytest.mark.parametrize("n", [10, 400], ids=["two products", "one product"])
def test_rows_are_mapped_by_the_matrix(n):
    whitening = Whitening.of(*rows_of_classes(n))
    assert len(whitening.factorised) == (2 if n == 10 else 1)
    X = rng.normal(size=(7, D))
    np.testing.assert_allclose(whitening(X), X @ whitening(np.eye(D)), atol=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e30, 1e200])
def test_the_scale_of_the_rows_is_of_no_account(size):
    X, y = rows_of_classes(20)
    here, there = Whitening.of(X, y), Whitening.of(X * size, y)
    assert_close(there.factors, here.factors, 1e-9)
    np.testing.assert_allclose(there(np.eye(D)), here(np.eye(D)), atol=1e-9)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.empty((0, 3)), np.empty(0, int)),
        (np.eye(3), np.arange(3)),
        (np.ones((6, 3)), np.arange(6) % 3),
        (np.repeat(np.eye(3), 2, axis=0), np.repeat(np.arange(3), 2)),
    ],
    ids=["no rows", "one row a class", "rows alike", "classes that do not vary"],
)
def test_there_is_none_where_rows_of_a_class_do_not_differ(X, y):
    assert Whitening.of(X, y) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mapped_rows_have_unit_length_whatever_their_size(dtype):
    X_pub, y_pub = rows_of_classes(40)
    row_map = RowMap.of(X_pub, True, True, False, y_pub)
    X = np.concatenate([rng.normal(size=(50, D)) * size for size in (1e-150, 1e-3, 1.0, 1e5, 1e150)])
    X = np.concatenate([X, row_map.mean[np.newaxis]])
    rows = row_map(X, dtype)
    lengths = row_norms(rows)
    np.testing.assert_allclose(lengths[:-1], 1, atol=1e-6)
    assert lengths[-1] == 0
    assert lengths.max() <= row_map.norm_bound


def test_it_brings_out_what_tells_classes_apart():
    X_pub, y_pub = rows_of_classes(60)
    X, y = rows_of_classes(2000, seed=1)

    def share_between(row_map):
        rows = row_map(X, np.float64)
        means = np.stack([rows[y == c].mean(axis=0) for c in range(K)])
        return np.mean(row_norms(means) ** 2) / np.mean(row_norms(rows) ** 2)

    plain, whitened = (share_between(RowMap.of(X_pub, True, True, False, labels)) for labels in (None, y_pub))
    assert whitened > 1.03 * plain


def test_maps_are_the_same_only_with_the_same_whitening():
    X, y = rows_of_classes(40)
    first, again, other = (RowMap.of(X, True, True, True, labels) for labels in (y, y, y // 2))
    assert first.same_as(again)
    assert not first.same_as(other)
    bare = RowMap(first.mean, True, first.intercept_value)
    assert not first.same_as(bare) and not bare.same_as(first)
