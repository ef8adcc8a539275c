"""``device``: what runs on one is what runs on the host; without a GPU, on tensors of the processor."""

import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.algorithms import PAZO
from skmixdp.components.clipping import clipped_residuals
from skmixdp.components.protocols import Clip
from skmixdp.components.public import PublicData
from skmixdp.privacy import NoiseSource, PrivacyLedger
from tests.catalog import CLIPPERS
from tests.conftest import Silent
from tests.private_names import (
    BLOCK_ROWS,
    ArrayTable,
    Batch,
    InMemoryRows,
    LogisticLoss,
    MultilabelLoss,
    RowMap,
    SoftmaxLoss,
    SquaredLoss,
    centre_of,
    clipped_parts,
    sum_error,
)

torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")

from tests.asking import request_of  # noqa: E402
from tests.private_names import TorchRows, TorchTable, dotted_path, full_precision  # noqa: E402
from tests.private_names import tensors as torch_table  # noqa: E402
from tests.rounding import assert_close  # noqa: E402

rng = np.random.default_rng(0)
N, D = 3000, 7
X = rng.normal(size=(N, D)).astype(np.float32)
Y = rng.integers(3, size=N)
LOSSES = {
    "logistic": LogisticLoss(),
    "softmax": SoftmaxLoss(3),
    "squared": SquaredLoss(2),
    "labels": MultilabelLoss(2),
}
HAS_CUDA = torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not HAS_CUDA, reason="needs a CUDA device")


def labels(kind, dtype):
    several = np.column_stack([Y // 2, Y % 2]).astype(np.int8)
    squared = np.column_stack([Y, -Y]).astype(dtype)
    return {"logistic": Y // 2, "softmax": Y, "squared": squared, "labels": several}[kind]


def asked_of(kind, name, query="clipped", seed=1):
    """Points and contribution of a query that takes tensors."""
    loss = LOSSES[kind]
    public = PublicData(X[:40].astype(float), labels(kind, float)[:40], loss)
    W = np.random.default_rng(seed).normal(size=(loss.n_outputs, D))
    view = public.view(W)
    if query == "centred":
        points = np.concatenate([W, view.gradient])
        clip = CLIPPERS[name].at(view)
        return points, partial(clipped_parts, loss=loss, split=centre_of(view), outside=clip)
    return W, partial(clipped_residuals, loss=loss, clip=CLIPPERS[name].at(view))


def there(W, contribute, mask=None):
    """A request that is answered where the rows are."""
    return request_of(W, contribute, Batch(members=mask), takes_tensors=True)


def close(found, expected, dtype):
    tolerance = {"float32": 2e-5, "float64": 1e-12}[dtype]
    for part, other in zip(found, expected, strict=True):
        if other is None:
            assert part is None
        else:
            assert part.dtype == np.float64
            np.testing.assert_allclose(part, other, rtol=0, atol=tolerance * np.abs(other).max())


@pytest.mark.covering("name query", "kind query", "kind dtype")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "kind"),
    # Squared loss has no Lipschitz constant.
    [(name, kind) for name in CLIPPERS for kind in LOSSES if (name, kind) != ("lipschitz", "squared")],
)
@pytest.mark.parametrize("query", ["clipped", "centred"])
def test_a_step_on_a_device_is_that_of_the_host(monkeypatch, query, name, kind, dtype, device):
    y, data = labels(kind, dtype), X.astype(dtype)
    W, contribute = asked_of(kind, name, query)
    k = LOSSES[kind].n_outputs
    some = rng.random(N) < 0.3
    other = W * np.repeat([2, 1], [k, len(W) - k])[:, None]
    asked = [there(W, contribute), there(other, contribute, some), there(W, contribute, ~some)]
    want = [InMemoryRows(data, y).private_sums([request])[0] for request in asked]
    rows = TorchRows(torch.from_numpy(data).to(device), y, block_bytes=1)
    # Nothing of a row comes to the host, and nothing of the size of a block.
    brought = []
    to_host = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: brought.append(tensor.shape) or to_host(tensor))
    together = rows.private_sums(asked)
    assert set(brought) == {(k, D)} | ({(1,)} if query == "centred" else set())
    for found, expected in zip(together, want, strict=True):
        close(found, expected, dtype)
    for request, expected in zip(asked[1:], want[1:], strict=True):
        close(rows.private_sums([request])[0], expected, dtype)
    nothing = there(W, contribute, np.zeros(N, bool))
    np.testing.assert_array_equal(rows.private_sums([nothing])[0][0], np.zeros((k, D)))


def test_large_blocks_are_stated(monkeypatch):
    monkeypatch.setitem(torch_table._BLOCKS, "cpu", torch_table._DEVICE_BLOCKS)
    n, seen = 2 * BLOCK_ROWS, []
    rows = TorchRows(torch.from_numpy(np.resize(X, (n, D))), np.resize(Y, n))

    def ones(Z, block):
        seen.append(len(Z))
        return torch.ones_like(Z), torch.ones_like(Z)

    request = there(X[:1], ones)
    ((matrix, vector),) = rows.private_sums([request])
    assert seen == [n] and vector == n
    np.testing.assert_allclose(
        matrix[0], np.resize(X, (n, D)).sum(axis=0, dtype=float), rtol=0, atol=1e-3 * n
    )
    assert rows.sum_error(request) == sum_error(n, "float32", block_rows=2**18)
    assert rows.sum_error(request).relative > sum_error(n, "float32").relative


def test_statistics_stay_there_too():
    def losses(Z, block):
        return None, (Z * block.norms[:, None]).double()

    ((none, sums),) = TorchRows(torch.from_numpy(X), Y, block_bytes=1).private_sums([there(X[:2], losses)])
    assert none is None
    assert_close(sums, ((X @ X[:2].T) * np.linalg.norm(X, axis=1)[:, None]).sum(axis=0), 1e-4)


def test_questions_of_either_form_are_answered_side_by_side():
    W, contribute = asked_of("softmax", "l2")
    asked = [
        request_of(W, contribute),
        there(W, contribute),
        request_of(W, lambda Z, block: (None, block.norms[:, None].copy())),
    ]
    rows, host = TorchRows(torch.from_numpy(X), Y, block_bytes=1), InMemoryRows(X, Y)
    for found, expected in zip(rows.private_sums(asked), host.private_sums(asked), strict=True):
        close(found, expected, "float32")


def test_pieces_of_others_are_asked_on_the_host():
    class Mine(Clip):
        threshold = 0.5

        def weights(self, norms, largest):
            assert isinstance(norms, np.ndarray) and isinstance(largest(), np.ndarray)
            return np.minimum(1, self.threshold / np.maximum(norms, 1e-30))

    W, contribute = asked_of("softmax", "l2")
    mine = partial(clipped_residuals, loss=SoftmaxLoss(3), clip=Mine())
    ((found, _),) = TorchRows(torch.from_numpy(X), Y).private_sums([request_of(W, mine)])
    ((expected, _),) = InMemoryRows(X, Y).private_sums([request_of(W, contribute)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


class TestRoom:
    """A device that runs out of memory in the middle of a fit: the pass is made again."""

    @pytest.fixture
    def full(self, monkeypatch):
        """Fail the first passes as a full device fails them, after part of a pass."""

        def arrange(n_failures):
            calls = []
            taken = TorchRows._taken

            def fail(rows, selection):
                calls.append(selection)
                if len(calls) <= n_failures:
                    raise torch.OutOfMemoryError("no room")
                return taken(rows, selection)

            monkeypatch.setattr(TorchRows, "_taken", fail)
            return calls

        return arrange

    @pytest.mark.parametrize("form", ["there", "on the host"])
    def test_fewer_rows_at_a_time_are_tried_first(self, full, form):
        W, contribute = asked_of("softmax", "l2")
        request = request_of(W, contribute, takes_tensors=form == "there")
        ((expected, _),) = InMemoryRows(X, Y).private_sums([request])
        calls = full(1)
        ((found, _),) = TorchRows(torch.from_numpy(X), Y, block_bytes=4 * D * N).private_sums([request])
        close([found], [expected], "float32")
        assert len(calls) == 1 + -(-N // 384)  # whole panels in a quarter of seven

    def test_then_rows_are_kept_by_the_host_and_a_warning_says_so(self, full):
        W, contribute = asked_of("softmax", "l2")
        request = there(W, contribute)
        ((expected, _),) = InMemoryRows(X, Y).private_sums([request])
        full(1)
        rows = TorchRows(torch.from_numpy(X), Y, block_bytes=1)
        with pytest.warns(UserWarning, match="do not fit on cpu .* block by block in every step"):
            ((found, _),) = rows.private_sums([request])
        close([found], [expected], "float32")
        close(rows.private_sums([request])[0], (expected, None), "float32")

    def test_a_device_without_room_for_a_block_is_given_up(self, full):
        W, contribute = asked_of("softmax", "l2")
        full(10**6)
        rows = TorchRows(torch.from_numpy(X), Y, block_bytes=1)
        with (
            pytest.warns(UserWarning, match="block by block"),
            pytest.raises(MemoryError, match=r"cpu has no room for 384 rows at a time; pass device='cpu'\."),
        ):
            rows.private_sums([there(W, contribute)])


@pytest.fixture
def on_tensors(monkeypatch):
    """NumPy rows are sent to a device, which is the processor."""
    sent = []

    def send(table, device):
        sent.append(device)
        return TorchTable.of_array(table._X, device)

    monkeypatch.setattr(ArrayTable, "on_device", send)
    monkeypatch.setattr(torch_table, "is_processor", lambda device: False)
    return sent


def fitted(kind=MixedDPLogisticRegression, features=X, targets=Y, **parameters):
    cut = 2900
    return kind(random_state=0, **parameters).fit(
        features[:cut], targets[:cut], X_pub=features[cut:], y_pub=targets[cut:]
    )


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
class TestFits:
    """A fit on a device is that of the host, noise left out."""

    @pytest.fixture(autouse=True)
    def silent(self, monkeypatch):
        monkeypatch.setattr(NoiseSource, "add_noise", Silent.add_noise)

    @pytest.mark.covering("algorithm", "parameters")
    @pytest.mark.parametrize(
        ("algorithm", "parameters"),
        [
            pytest.param(algorithm, parameters, id=f"{algorithm}-{parameters}")
            for algorithm in ["adamix", "noisy-gd", "coupling", "pda-dpmd", "modelmix", "dope-sgd"]
            for parameters in [{}, {"batch_size": 200}, {"rows": RowMapping(norm=None)}]
            # ModelMix draws its batches itself.
            if algorithm != "modelmix" or "batch_size" not in parameters
        ],
    )
    def test_of_a_classifier(self, request, device, algorithm, parameters):
        given = {"algorithm": algorithm, "learning_rate": 0.1, "n_steps": 5, **parameters}
        want = fitted(**given)
        sent = request.getfixturevalue("on_tensors") if device == "cpu" else None
        clf = fitted(device=device, **given)
        assert sent in (None, ["cpu"])
        np.testing.assert_allclose(clf.coef_, want.coef_, atol=1e-6 * np.abs(want.coef_).max())
        np.testing.assert_array_equal(clf.predict(X), want.predict(X))
        assert ("computed on" in str(clf.privacy_)) == (device != "cpu")

    def test_of_a_regressor(self, device, on_tensors):
        targets = (X @ rng.normal(size=(D, 2))).astype(np.float32)
        want = fitted(MixedDPRidge, targets=targets, n_steps=5)
        found = fitted(MixedDPRidge, targets=targets, n_steps=5, device=device)
        np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-6 * np.abs(want.coef_).max())

    def test_of_losses(self, device, on_tensors):
        want = fitted(algorithm=PAZO("m"), n_steps=5)
        found = fitted(algorithm=PAZO("m"), n_steps=5, device=device)
        np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-5 * np.abs(want.coef_).max())

    def test_of_tensors_that_are_elsewhere(self, device):
        """Where there is no GPU, that of tensors that stay."""
        want = fitted(n_steps=5)
        found = fitted(features=torch.from_numpy(X), n_steps=5, device=device)
        np.testing.assert_allclose(found.coef_, want.coef_, atol=1e-6 * np.abs(want.coef_).max())
        back = fitted(features=torch.from_numpy(X).to(device), n_steps=5, device="cpu")
        np.testing.assert_allclose(back.coef_, want.coef_, atol=1e-6 * np.abs(want.coef_).max())
        assert back.privacy_.computed_on == "cpu"


@needs_cuda
def test_rows_stay_on_the_device_and_the_report_names_it():
    clf = fitted(features=torch.from_numpy(X).cuda())
    assert clf.privacy_.computed_on == "cuda:0"
    assert "cuda:0; the noise is added on the processor" in str(clf.privacy_)


def test_the_report_names_another_device(monkeypatch, on_tensors):
    monkeypatch.setattr(TorchTable, "device_name", lambda device: device)
    clf = fitted(device="cpu:0")
    assert set(on_tensors) == {"cpu:0"}
    assert "computed on" in str(clf.privacy_) and "cpu:0; the noise is added on the processor" in str(
        clf.privacy_
    )
    assert clf.privacy_.to_dict()["computed_on"] == "cpu:0"


def test_heads_on_different_devices_do_not_share_rows(monkeypatch, on_tensors):
    monkeypatch.setattr(TorchTable, "device_name", lambda device: device)
    heads = [
        MixedDPLogisticRegression(n_steps=2, random_state=0, device=device) for device in ("auto", "cpu:0")
    ]
    one, other = fit_many(heads, X, Y, X_pub=X[:50], y_pub=Y[:50])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)
    assert on_tensors == ["cpu:0"]


def test_rows_that_cannot_be_written_to_are_sent_without_a_warning(on_tensors):
    frozen = X.copy()
    frozen.setflags(write=False)
    rows = TorchTable.of_array(frozen, "cpu").private_rows(
        Y, RowMap(None, True, 0.4), np.dtype("float32"), exact=False
    )
    assert isinstance(rows, TorchRows) and rows.n_rows == N
    np.testing.assert_array_equal(frozen, X)


@pytest.mark.covering
@pytest.mark.parametrize(
    "device",
    ["abacus", "meta", 3.5, pytest.param("cuda", marks=pytest.mark.skipif(HAS_CUDA, reason="is there"))],
)
@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, MixedDPRidge])
def test_a_device_that_is_not_there_is_refused_in_one_sentence(tmp_path, kind, device):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=10.0, delta=1e-3)
    with pytest.raises(
        ValueError, match=r"device=.* is none that torch has here .* 'cpu', 'auto'\."
    ) as refused:
        kind(device=device, ledger=ledger).fit(X, Y, X_pub=X[:50], y_pub=Y[:50])
    assert ". " not in str(refused.value) and repr(device) in str(refused.value)
    assert ledger.charges() == []


@pytest.mark.parametrize(
    ("rows", "parameters", "message"),
    [
        (sp.csr_array(X), {}, "device='cpu:0' needs dense rows in memory, but X is a SparseTable"),
        (X, {"noise": "discrete"}, "noise='discrete' computes its exact sums on the CPU"),
    ],
    ids=["sparse", "discrete"],
)
def test_what_a_device_cannot_hold_or_do_is_refused(monkeypatch, rows, parameters, message):
    pytest.importorskip("opendp")
    monkeypatch.setattr(TorchTable, "device_name", lambda device: device)
    clf = MixedDPLogisticRegression(device="cpu:0", **parameters)
    with pytest.raises(ValueError, match=message) as refused:
        clf.fit(rows, Y, X_pub=X[:50], y_pub=Y[:50])
    assert ". " not in str(refused.value) and not hasattr(clf, "coef_")


def test_a_device_without_torch_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, dotted_path("tensors"))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r"device='cuda' needs the torch package; install skmixdp\[features\]"
    ):
        fitted(device="cuda")
    fitted(device="cpu", n_steps=1)


class TestPrecision:
    """Products are those of float32, whatever is allowed elsewhere, in either way of allowing it."""

    @pytest.fixture(autouse=True)
    def restored(self):
        own = (torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None))
        saved = [(owner, getattr(owner, "fp32_precision", None)) for owner in own]
        before = torch.get_float32_matmul_precision()
        yield
        torch.set_float32_matmul_precision(before)
        for owner, value in saved:
            if isinstance(value, str):
                owner.fp32_precision = value

    @pytest.mark.parametrize("allowed", ["highest", "high", "medium"])
    def test_by_the_setting_for_all(self, allowed):
        torch.set_float32_matmul_precision(allowed)
        with full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
            assert not torch.backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == allowed

    def test_by_the_setting_of_a_backend(self):
        matmul = torch.backends.cuda.matmul
        if not isinstance(getattr(matmul, "fp32_precision", None), str):
            pytest.skip("this torch has no such setting")
        matmul.fp32_precision = "tf32"
        with full_precision():
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "tf32"

    @needs_cuda
    def test_on_the_device(self):
        A = torch.from_numpy(X[:, :5]).cuda()
        exact = (A.double() @ A.double().T).cpu()
        torch.set_float32_matmul_precision("high")
        with full_precision():
            assert ((A @ A.T).double().cpu() - exact).abs().max() < 1e-5
