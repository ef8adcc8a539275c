"""Quick paths of networks: PAZO's comparison with methods of first order, and the small networks."""

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="needs torch; install skmixdp[features]")

from benchmarks.reproduce import pazo_fashion, small_networks  # noqa: E402


def test_every_method_is_compared_and_the_claims_are_checked(quick, recwarn):
    found, printed = quick(pazo_fashion, data="fashion_mnist", table="pazo_fashion_5_5_1000")
    assert set(found["method"]) == {*pazo_fashion.GRIDS, "only public"}
    fits = found[found["method"] != "only public"]
    assert fits[["accuracy", "control"]].stack().between(0.03, 0.9).all()
    assert "| PAZO-S |" in printed and "all PAZO variants above DPZero" in printed
    assert "Private labels permuted:" in printed


@pytest.mark.parametrize("clip", [0.3, np.inf])
@pytest.mark.parametrize("centred", [False, True])
def test_closed_form_clipping_is_that_of_gradients_row_by_row(clip, centred):
    module = pazo_fashion.network(0)
    X, y = torch.rand(6, 784), torch.arange(6)
    weights = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def loss(weights, x, label):
        outputs = torch.func.functional_call(module, weights, (x[None],))
        return torch.nn.functional.cross_entropy(outputs, label[None])

    rows = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, X, y)
    about = [0.01 * torch.ones_like(part) * centred for part in weights.values()]
    apart = [rows[name] - part for name, part in zip(weights, about, strict=True)]
    lengths = torch.sqrt(sum((part.reshape(6, -1) ** 2).sum(1) for part in apart))
    factors = torch.clamp(clip / lengths, max=1)
    expected = [torch.einsum("i,i...->...", factors, part) for part in apart]
    found = pazo_fashion.clipped_sum(list(weights.values()), X, y, clip, about)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    assert (factors < 1).any() == (clip == 0.3)


def test_rehearsals_use_each_public_row_once_and_every_class_alike():
    public = pazo_fashion.Rows(np.arange(100)[:, None], np.repeat(np.arange(10), 10))
    parts = pazo_fashion.rehearsal(public, 10)
    assert sorted(np.concatenate([part.X.ravel() for part in parts])) == list(range(100))
    for part, count in zip(parts, (4, 4, 2), strict=True):
        assert (np.bincount(part.y) == count).all()


@pytest.mark.parametrize("method", ["DP-SGD", "DPMD"])
def test_a_run_that_is_scored_on_its_way_is_the_same_run(method):
    rng = np.random.default_rng(0)
    private, public = (
        pazo_fashion.Rows(rng.random((n, 784), np.float32), np.arange(n) % 10) for n in (40, 20)
    )
    task = pazo_fashion.Task(pazo_fashion.network(0, 4), private, public, 0.0, len(private), 5, 0)
    setting = {"learning_rate": 0.5, "clip": 1.0}
    steps, modules = zip(*pazo_fashion.course(method, setting, task, (1, 3)), strict=True)
    assert steps == (1, 3, 5)
    whole = pazo_fashion.train(method, setting, task)
    for mine, theirs in zip(modules[-1].parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
    line = {"epsilon": 1.0, "method": method, "accuracy": 0.5, "control": 0.25}
    found = pazo_fashion.curves(pd.DataFrame([{**line, "steps": count} for count in steps]))
    assert f"| 1 | {method} | 50.0 / 25.0 | 50.0 / 25.0 | 50.0 / 25.0 |" in found


def test_the_net_has_the_parameters_of_the_paper():
    module = small_networks.network(0)
    assert sum(parameter.numel() for parameter in module.parameters()) == 26_010
    assert module(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


@pytest.mark.parametrize("part", small_networks.PARTS)
def test_every_fit_runs_once(part, quick, recwarn):
    fits = small_networks.PARTS[part]
    for _ in range(2):  # the second time, the runs are there
        options = {"data": "fashion_mnist", "table": f"small_networks_{part}"}
        found, printed = quick(small_networks, "--part", part, **options)
        assert printed.count(f"| {fits[0].name} |") == sum(fit.name == fits[0].name for fit in fits)
    assert set(found["name"]) - {"only public"} == {fit.name for fit in fits}
    assert len(found) == len(fits) + (part != "modelmix") and found["accuracy"].between(0, 90).all()
