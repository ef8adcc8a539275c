"""Blocks of sparse rows share their memory, follow from public facts, and are counted by their bits."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.private_names import RowMap, SparseRows, SparseTable, part_of


def rows(n, d, density, seed=0, dtype=np.float64):
    return sp.random_array((n, d), density=density, format="csr", rng=seed, dtype=dtype)


@pytest.mark.parametrize("part", [slice(0, 0), slice(0, 3), slice(2, 9), slice(9, 9), slice(0, 9)])
def test_parts_are_the_rows_of_a_slice(part):
    X = rows(9, 30, 0.2)
    found = part_of(X, part)
    np.testing.assert_array_equal(found.toarray(), X.toarray()[part])
    np.testing.assert_array_equal(part_of(X, np.array([3, 1])).toarray(), X.toarray()[[3, 1]])


def test_blocks_do_not_depend_on_the_entries():
    sizes = []
    for density in (0.0, 1e-4, 0.01):
        X, y = rows(30_000, 5_000, density), np.zeros(30_000, np.int8)
        sizes.append(SparseRows(X, y, RowMap(None, True, None), np.dtype(np.float32)).arithmetic.block_rows)
    assert len(set(sizes)) == 1
    assert sizes[0] >= 4_000


def test_stages_share_rows_of_unit_length():
    X, y = rows(50, 40, 0.2), np.zeros(50, np.int8)
    table = SparseTable(X)
    first, second = (
        table.private_rows(y, RowMap(mean, True, None, unit_first=True), np.dtype(np.float32), exact=False)
        for mean in (None, np.full(40, 0.01))
    )
    assert first._X is second._X
    np.testing.assert_allclose(
        sp.linalg.norm(first._X, axis=1)[np.diff(X.indptr) > 0], 1.0, rtol=0, atol=1e-15
    )
