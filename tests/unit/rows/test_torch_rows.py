"""Rows in tensors answer what rows in arrays answer; the device's path runs on the processor."""

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from tests.private_names import Batch, InMemoryRows, RowMap

torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")

from tests.asking import request_of  # noqa: E402
from tests.private_names import TorchRows, TorchTable, mapped  # noqa: E402
from tests.private_names import tensors as torch_table  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 7)).astype(np.float32)
Y = rng.integers(3, size=3000)
W = rng.normal(size=(3, 7))


def clipped(Z, block):
    return Z * np.minimum(1, 0.5 / (np.linalg.norm(Z, axis=1) * block.max_abs))[:, None], block.norms[:, None]


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["where they lie", "sent block by block"])
@pytest.mark.parametrize("mask", [None, rng.random(3000) < 0.3], ids=["all rows", "a batch"])
def test_the_sums_are_those_of_rows_in_memory(dtype, elsewhere, mask):
    data = X.astype(dtype)
    batch = Batch(members=mask)
    requests = [request_of(W, clipped, batch), request_of(2 * W[:2], clipped, batch)]
    device = torch.device("cpu") if elsewhere else None
    rows = TorchRows(torch.from_numpy(data), Y, device=device, block_bytes=1)
    for found, expected in zip(
        rows.private_sums(requests), InMemoryRows(data, Y).private_sums(requests), strict=True
    ):
        for part, other in zip(found, expected, strict=True):
            assert part.dtype == np.float64
            np.testing.assert_allclose(part, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("intercept", [None, 0.4])
@pytest.mark.parametrize("centre", [True, False])
def test_tensors_are_mapped_as_arrays_are(normalize, intercept, centre):
    data = X.copy()
    data[0] = 0
    data[1] *= 1e30
    row_map = RowMap(X.mean(axis=0, dtype=np.float64) if centre else None, normalize, intercept)
    found = mapped(torch.from_numpy(data), row_map, torch.float64, torch.device("cpu")).numpy()
    np.testing.assert_allclose(found, row_map(data, np.float64), rtol=1e-12, atol=1e-12)


def fitted(kind, rows, targets, **parameters):
    cut = 2900
    return kind(epsilon=1.0, random_state=0, **parameters).fit(
        rows[:cut], targets[:cut], X_pub=rows[cut:], y_pub=targets[cut:]
    )


def test_rows_in_the_hosts_memory_are_those_of_an_array():
    rows = TorchTable(torch.from_numpy(X)).private_rows(
        Y, RowMap(None, True, 0.4), np.dtype("float32"), exact=False
    )
    assert isinstance(rows, InMemoryRows)


def test_a_regressor_learns_the_same_from_tensors():
    targets = (X @ W.T).astype(np.float32)
    of_arrays = fitted(MixedDPRidge, X, targets)
    of_tensors = fitted(MixedDPRidge, torch.from_numpy(X), torch.from_numpy(targets))
    np.testing.assert_allclose(of_tensors.coef_, of_arrays.coef_, atol=1e-4)


def test_half_precision_features_and_tracked_ones_will_do():
    half = torch.from_numpy(X).bfloat16().requires_grad_()
    told = (X @ W.T).argmax(axis=1)  # were labels random, the fit would say that public rows suffice
    of_half = fitted(MixedDPLogisticRegression, half, torch.from_numpy(told))
    of_rounded = fitted(MixedDPLogisticRegression, half.detach().float().numpy(), told)
    np.testing.assert_allclose(of_half.coef_, of_rounded.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.ones(5), "has shape"),
        (torch.ones((5, 2), dtype=torch.complex64), "dense tensor of real numbers"),
        (torch.ones((5, 2)).to_sparse(), "dense tensor of real numbers"),
        (torch.full((5, 2), float("nan")), "contains NaN or infinity"),
        (torch.ones((1, 2)), "minimum of 2 is required"),
    ],
)
def test_what_cannot_be_rows_is_refused(bad, message):
    with pytest.raises(ValueError, match=message) as raised:
        MixedDPLogisticRegression(classes=[0, 1]).fit(bad, np.arange(len(bad)) % 2)
    assert ". " not in str(raised.value)


def test_a_device_without_room_is_sent_rows_block_by_block(monkeypatch):
    """The first attempt to map fails as a full device fails."""
    calls = []

    def full(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise torch.OutOfMemoryError("no room")
        return mapped(*arguments)

    monkeypatch.setattr(torch_table, "mapped", full)
    monkeypatch.setattr(torch_table, "is_processor", lambda device: False)
    row_map = RowMap(None, True, 0.4)
    with pytest.warns(UserWarning, match="do not fit on cpu .* block by block"):
        rows = TorchTable(torch.from_numpy(X)).private_rows(Y, row_map, np.dtype("float32"), exact=False)
    points = np.ones((2, 8))
    ((found, _),) = rows.private_sums([request_of(points, clipped)])
    ((expected, _),) = InMemoryRows(row_map(X, np.float32), Y).private_sums([request_of(points, clipped)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_products_are_not_those_of_a_lesser_precision():
    seen = []

    def look(Z, block):
        seen.append(torch.get_float32_matmul_precision())
        return Z, None

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        TorchRows(torch.from_numpy(X), Y).private_sums([request_of(W, look)])
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert set(seen) == {"highest"}
