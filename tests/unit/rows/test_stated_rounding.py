"""What sources say of the rounding of their sums is true of the way in which they add."""

import numpy as np
import pytest

from tests.asking import request_of
from tests.private_names import PANEL_ROWS, Cascade, RowMap, Whitening, add_products, sum_error
from tests.rounding import assert_close

from .conftest import Holder, draw

#: Sums of fewer numbers 1 + 2**-10 than this are exact in float32, in any order.
EXACT_UP_TO = 2**14


def numbers(n):
    """Numbers 1 or 1 + 2**-10, whose exact sum no single sum in float32 of more than 2**15 of them can be."""
    bits = np.random.default_rng(0).integers(2, size=n)
    bits[0] += 1 - bits.sum() % 2  # an odd number of them, so that the last bit of the sum is set
    assert bits.sum() % 2 == 1 and bits.max() <= 2
    return (1 + bits * 2.0**-10).astype(np.float32)


def unweighted(Z, block):
    return Z, None


@pytest.mark.parametrize("kind", ["memory", "sparse", "memory map", "parquet", "dask", "torch"])
def test_sums_in_single_precision_are_short_on_every_source(kind, tmp_path):
    """The stated error is that of a few hundred rows, so sums of numbers of 11 bits are exact."""
    if kind == "torch":
        pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    n = 40_000
    values = numbers(n)
    X = np.column_stack([np.ones(n, np.float32), values - 1])
    rows = Holder(kind, tmp_path).source(X, np.zeros(n, int), dtype="float32")
    ((matrix, _),) = rows.private_sums([request_of(np.ones((1, 2)), unweighted)])
    assert matrix[0, 0] == values.sum(dtype=np.float64)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 20), (50, 50)])
def test_sums_in_single_precision_are_short_however_many_outputs_there_are(k, d):
    n = 40_000
    values, total = numbers(n), Cascade()
    add_products(np.ones((n, d), np.float32), np.repeat(values[:, np.newaxis], k, axis=1), total)
    assert np.all(total.value == values.sum(dtype=np.float64))


def test_tensors_are_added_up_in_short_sums():
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    from tests.private_names import add_tensor_products

    n = 40_000
    for k, d in ((1, 1), (50, 50)):
        values, total = numbers(n), Cascade()
        C = torch.from_numpy(values)[:, None].repeat(1, k)
        add_tensor_products(torch.ones((n, d)), C, total, PANEL_ROWS)
        assert bool((total.value == values.sum(dtype=np.float64)).all())


def test_tensors_whose_sums_are_stated_in_double_precision_are_added_in_it():
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    from tests.private_names import TorchRows

    n = 40_000
    values = numbers(n)
    rows = TorchRows(
        torch.from_numpy(np.column_stack([np.ones(n, np.float32), values - 1])), np.zeros(n, int)
    )
    thirds = np.float32(1 / 3)  # whose products with the values have more bits than single precision holds

    def contribute(Z, block):
        return Z * thirds, None

    ((matrix, _),) = rows.private_sums([request_of(np.ones((1, 2), np.float32), contribute, panel_rows=0)])
    weights = (values * thirds).astype(np.float64)
    assert_close(matrix[0], [weights.sum(), weights @ (values - 1.0)], 1e-13)


def test_long_sums_in_single_precision_would_be_found():
    """The twin: one sum over all rows has no room for the last bit."""
    values = numbers(40_000)
    exact = values.sum(dtype=np.float64)
    assert values @ np.ones_like(values) != exact
    assert np.cumsum(values[: EXACT_UP_TO - 32])[-1] == values[: EXACT_UP_TO - 32].sum(dtype=np.float64)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_source_states_less_than_its_precision_loses(holder, dtype):
    X, y = draw(1500)
    rows = holder.source(X, y, dtype=dtype)
    for wide in (False, True):
        stated = rows.sum_error(
            request_of(np.zeros((1, 7)), unweighted, panel_rows=0 if wide else PANEL_ROWS)
        )
        # Sparse rows are added in double precision, whatever theirs is.
        least = sum_error(1500, "float64" if wide or holder.kind == "sparse" else dtype)
        assert stated.relative >= least.relative > 0
        assert stated.absolute >= least.absolute
        assert stated.n_rows == 1500


@pytest.mark.parametrize("kind", ["memory", "memory map", "parquet", "dask", "torch"])
def test_single_precision_is_stated_by_every_source(kind, tmp_path):
    X, y = draw(1500)
    rows = Holder(kind, tmp_path).source(X, y, dtype="float32")
    assert rows.sum_error(request_of(np.zeros((1, 7)), unweighted)) == sum_error(1500, "float32")


def test_sums_that_are_whitened_later_state_the_rounding_of_longer_terms(tmp_path):
    X, y = draw(1500)
    whitening = Whitening(np.eye(2, X.shape[1]), np.array([0.5, 0.25]))
    rows = Holder("memory map", tmp_path).source(X, y, RowMap(None, True, None, whitening), dtype="float64")
    least = sum_error(1500, "float64", stretch=4.0).plus_later(4 * whitening.sum_rounding)
    assert rows.sum_error(request_of(np.zeros((1, 7)), unweighted)) == least


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [50, 1500])
def test_short_panels_lose_no_more_than_is_stated(holder, dtype, n):
    """Sparse rows are added in double precision, and state that."""
    X, y = draw(n)
    rows = holder.source(X, y, dtype=dtype)

    def of_unit_length(Z, block):
        return (1 / np.maximum(block.norms, 1)).astype(Z.dtype)[:, np.newaxis], None

    request = request_of(np.zeros((1, 7)), of_unit_length, panel_rows=64)
    stated, wide = rows.sum_error(request), rows.sum_error(request.with_query(panel_rows=0))
    in_panels = holder.kind != "sparse"
    assert stated == (sum_error(n, dtype, panel_rows=64) if in_panels else wide)
    ((found, _),) = rows.private_sums([request])
    ((exact, _),) = rows.private_sums([request.with_query(panel_rows=0)])
    difference = np.linalg.norm(found - exact)
    assert difference <= n * stated.relative + stated.absolute + n * wide.relative
    assert (difference > 0) == (dtype == "float32" and in_panels)
