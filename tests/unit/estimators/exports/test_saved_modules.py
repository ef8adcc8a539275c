"""Trained torch modules in files without pickle."""

import numpy as np
import pytest

import skmixdp
from skmixdp import ZerothOrderDPModuleClassifier

from .conftest import rows_of

torch = pytest.importorskip("torch", reason="modules need skmixdp[features]")


def network(width=8, dtype=torch.float32):
    return torch.nn.Sequential(
        torch.nn.Linear(64, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
    ).to(dtype)


@pytest.fixture
def trained(tmp_path):
    X, y, n_public = rows_of("digits")
    X = X.astype(np.float32)
    torch.manual_seed(0)
    model = ZerothOrderDPModuleClassifier(network().eval(), "dpzero", n_steps=3, classes=range(10))
    model.set_params(learning_rate=0.01, init="module", trainable=["0"])
    model.fit(X[n_public:], y[n_public:])
    model.save(tmp_path / "model.safetensors")
    return model, X, tmp_path / "model.safetensors"


def test_a_module_comes_back_bit_for_bit(trained):
    model, X, path = trained
    given = network()
    before = {name: tensor.clone() for name, tensor in given.state_dict().items()}
    loaded = skmixdp.load(path, module=given)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.privacy_ == model.privacy_
    assert not loaded.module_.training
    # The given module is copied, not changed.
    assert all(torch.equal(before[name], tensor) for name, tensor in given.state_dict().items())


def test_another_architecture_is_refused(trained):
    _, _, path = trained
    with pytest.raises(ValueError, match=r"not of the architecture .* differ in '0.bias'"):
        skmixdp.load(path, module=network(9))
    with pytest.raises(ValueError, match="pass module=, a module of the architecture"):
        skmixdp.load(path)
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module"):
        skmixdp.load(path, module="network")


def test_other_precisions_keep_their_bits():
    from tests.private_names import state_of, with_state

    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        module = network(dtype=dtype)
        copied = with_state(network(dtype=dtype), state_of(module))
        for name, tensor in module.state_dict().items():
            assert torch.equal(copied.state_dict()[name], tensor)


def test_functions_are_refused(trained, tmp_path):
    model, _, _ = trained
    model.set_params(trainable=lambda name: True)
    with pytest.raises(TypeError, match=r"trainable is a function, .* set_params"):
        model.save(tmp_path / "other.safetensors")
