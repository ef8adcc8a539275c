"""The trial of a module: mixing of rows is found, honest modules pass, and nothing else comes of it."""

import copy

import numpy as np
import pytest

from skmixdp import ZerothOrderDPModuleClassifier
from skmixdp.algorithms import DPZero
from tests.module_problems import torch
from tests.module_zoo import HONEST, MIXING, DynamicScale, Wrapped
from tests.noise import watch
from tests.private_names import LabelledRows_of_modules as LabelledRows
from tests.private_names import (
    check_forward,
    cross_entropy,
    dotted_path,
    refuse_quantised,
    select_parameters,
    working_copy,
)

nn = torch.nn


def rows(n, shape=(6,), tokens=0, seed=0):
    rng = np.random.default_rng(seed)
    if tokens:
        return rng.integers(0, tokens, size=(n, *shape)), np.arange(n) % 3
    X = rng.normal(size=(n, *shape)).astype(np.float32)
    X[(slice(None), *(0,) * len(shape))] = rng.integers(
        0, 4, n
    )  # codes, for a module that has a table of them
    return X, np.arange(n) % 3


def tried(module, loss=cross_entropy, *, public=40, size=200, private=None, **kind):
    worker = working_copy(module, "auto")
    parameters = select_parameters(worker, None)
    X, y = rows(public, **kind)
    private = rows(size, seed=1, **kind)[0] if private is None else private
    check_forward(parameters, loss, LabelledRows(X, y, 64), 3, private, size, module)
    return parameters


@pytest.mark.covering
@pytest.mark.parametrize("name", MIXING)
@pytest.mark.parametrize("public", [0, 40])
def test_modules_that_mix_rows_are_refused(name, public):
    if name == "SwitchedOff":
        # Nothing at the start says that this one mixes rows.
        module = MIXING[name]()
        x = torch.randn(9, 6)
        assert torch.equal(module(x)[:3], module(torch.cat([x[:3], 5 * x[3:]]))[:3])
    with pytest.raises(ValueError, match=r"the loss of a row (depends|differs)") as refused:
        tried(MIXING[name](), public=public)
    assert ". " not in str(refused.value)


@pytest.mark.covering
@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize(("public", "threads"), [(0, 1), (40, 1), (40, 2)])
def test_modules_that_treat_each_row_by_itself_pass(name, public, threads):
    make, shape, tokens = HONEST[name]
    module = make()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        parameters = tried(module, public=public, size=100, shape=shape, tokens=tokens)
    finally:
        torch.set_num_threads(before)
    # The trial moves parameters, and puts them back bit by bit.
    for one, other in zip(parameters.module.parameters(), module.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("public", [0, 40])
def test_rows_of_truth_values_pass(public):
    class Bits(Wrapped):
        def forward(self, x):
            return super().forward(x.float())

    X = np.random.default_rng(0).integers(0, 2, (public, 6)).astype(bool)
    module = Bits()
    parameters = select_parameters(working_copy(module, "auto"), None)
    rows = LabelledRows(X, np.arange(public) % 3, 64)
    check_forward(parameters, cross_entropy, rows, 3, np.zeros((100, 6), bool), 100, module)


def largest_in_batch(outputs, y):
    return cross_entropy(outputs - outputs.amax(), y) + outputs.amax()


def class_weights(outputs, y):
    return cross_entropy(outputs, y) / torch.bincount(y, minlength=3)[y]


def share_of_batch(outputs, y):
    return cross_entropy(outputs, y) / len(y)


def ranks(outputs, y):
    """Focal weights by the rank of a loss in its batch."""
    losses = cross_entropy(outputs, y)
    return losses * losses.argsort().argsort()


@pytest.mark.parametrize("loss", [largest_in_batch, class_weights, share_of_batch, ranks])
def test_losses_that_mix_rows_are_refused(loss):
    with pytest.raises(ValueError, match="the loss of a row depends"):
        tried(nn.Linear(6, 3), loss)


def to_quantise(first=nn.Linear):
    torch.manual_seed(0)
    return nn.Sequential(nn.Sequential(first(6, 32), nn.ReLU()), nn.Linear(32, 3))


class HoldsQuantised(Wrapped):
    def __init__(self, *, buffer):
        super().__init__()
        values = torch.quantize_per_tensor(torch.randn(4), 0.1, 0, torch.qint8)
        if buffer:
            self.register_buffer("values", values)
        else:
            self.values = values


def with_part(part):
    module = to_quantise()
    module[0].append(part())
    return module


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (
            lambda: to_quantise(torch.ao.nn.quantized.dynamic.Linear),
            r"'0\.0' \(torch\.ao\.nn\.quantized\.dynamic\..*Linear\)",
        ),
        (
            lambda: with_part(torch.ao.quantization.MinMaxObserver),
            r"'0\.2' \(torch\.ao\.quantization\.observer\.MinMaxObserver\)",
        ),
        (
            lambda: with_part(torch.ao.quantization.FakeQuantize),
            r"'0\.2' \(torch\.ao\.quantization\.fake_quantize\.FakeQuantize\)",
        ),
        (lambda: HoldsQuantised(buffer=True), r"'' \(HoldsQuantised with a quantised tensor\)"),
        (lambda: HoldsQuantised(buffer=False), r"'' \(HoldsQuantised with a quantised tensor\)"),
    ],
    ids=["dynamic", "observer", "fake", "buffer", "attribute"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_quantised_parts_are_refused_by_name(make, named):
    with pytest.raises(ValueError, match=f"module has a quantised part, {named}") as refused:
        refuse_quantised(make())
    assert str(refused.value).endswith("pass the module in float32.")


def test_what_is_not_quantised_is_not_refused():
    for make, *_ in HONEST.values():
        refuse_quantised(make())


class Watches(Wrapped):
    """Keeps what passes; a wide one is too large for several copies at once."""

    passes: list = []  # noqa: RUF012

    def __init__(self, **size):
        super().__init__(**size)
        self.passes.clear()

    def between(self, x, h):
        self.passes.append(x)
        return h


def test_private_rows_take_no_part():
    """Only their shape and dtype do: rows of NaN are tried as any other."""
    seen = []
    for value in (np.nan, 1):
        tried(Watches(), public=0, private=np.full((200, 6), value, dtype=np.float32))
        seen.append([*Watches.passes])
    assert all(torch.equal(a, b) for a, b in zip(*seen, strict=True))


def test_a_full_pass_is_tried_and_not_many_of_them():
    tried(Watches(hidden=8000), size=300)
    passes = [len(x) for x in Watches.passes]
    assert max(passes) == 300
    assert 15 * 300 < sum(passes) < 24 * 300


@pytest.mark.parametrize(
    ("chunk_size", "batch_size", "expected"),
    [(1024, None, 300), (64, None, 64), (1024, 30, 300), (1, None, 3)],
)
def test_the_trial_is_as_large_as_the_passes_of_the_fit(chunk_size, batch_size, expected):
    X, y = rows(300)
    ZerothOrderDPModuleClassifier(
        Watches(hidden=8000),
        "dpzero",
        chunk_size=chunk_size,
        batch_size=batch_size,
        classes=[0, 1, 2],
        learning_rate=1e-3,
        n_steps=1,
        init="module",
        delta=1e-4,
        random_state=0,
    ).fit(X, y)
    assert max(map(len, Watches.passes)) == expected


@pytest.mark.parametrize("n_rows", [200, 1000])
def test_one_row_would_move_a_release_of_a_mixing_module_by_many_times_its_sensitivity(monkeypatch, n_rows):
    """The attack that the trial is there for: with the trial it is refused, without it succeeds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6)).astype(np.float32)
    y = rng.integers(0, 3, n_rows)
    X_pub, y_pub = (0.05 * rng.normal(size=(50, 6))).astype(np.float32), np.arange(50) % 3
    with_row, zeroed = X.copy(), X.copy()
    with_row[0] *= 1e6
    zeroed[0] = 0

    log = watch(monkeypatch)

    def fit(rows):
        ZerothOrderDPModuleClassifier(
            DynamicScale(),
            DPZero(4),
            epsilon=None,
            noise_multiplier=1.0,
            n_steps=1,
            learning_rate=1e-3,
            classes=[0, 1, 2],
            init="module",
            delta=1e-6,
            random_state=5,
        ).fit(rows, y, X_pub, y_pub)

    with pytest.raises(ValueError, match="the loss of a row depends"):
        fit(with_row)
    assert not log
    monkeypatch.setattr(dotted_path("modules.check_forward"), lambda *given: None)
    fit(with_row)
    fit(zeroed)
    one, other = log
    assert np.linalg.norm(one.exact - other.exact) > 3 * one.sensitivity


def test_parameters_come_back_where_the_trial_fails():
    class FailsOnMovedParameters(Wrapped):
        def between(self, x, h):
            if not torch.equal(self.second.bias, self.start):
                raise RuntimeError("moved")
            return h

    module = FailsOnMovedParameters()
    module.register_buffer("start", module.second.bias.detach().clone())
    worker = copy.deepcopy(module)
    parameters = select_parameters(worker, None)
    X, y = rows(40)
    with pytest.raises(ValueError, match="module fails on 200 rows"):
        check_forward(parameters, cross_entropy, LabelledRows(X, y, 64), 3, X, 200, module)
    for one, other in zip(worker.parameters(), module.parameters(), strict=True):
        assert torch.equal(one, other)
