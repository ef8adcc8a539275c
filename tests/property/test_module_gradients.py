"""Gradients of a module: no row moves a step by more than is stated, nor the bits of the others."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.algorithms import AdaMix, Coupling, ModelMix, NoisyGD
from skmixdp.components import FullBatch, L2Clip, PoissonBatch
from skmixdp.components.clipping import clipped_residuals
from tests.asking import request_of
from tests.conftest import Watched, train
from tests.module_problems import (
    GradientRows,
    LabelledRows,
    ModuleLoss,
    all_of,
    cross_entropy,
    flat,
    gradient_problem,
    loss_of_those_present,
    torch,
)
from tests.module_zoo import HONEST
from tests.private_names import Batch, training

ALGORITHMS = {
    "noisy-gd": NoisyGD(0.1),
    "adamix": AdaMix(),
    "coupling": Coupling(),
    "pda-dpmd": NoisyGD(0.1, momentum=0.0, public_weight="cosine"),
    "modelmix": ModelMix(NoisyGD(0.1, momentum=0.0)),
    "modelmix, entries": ModelMix(NoisyGD(0.1, momentum=0.0), linf_split=9),
}
N_STEPS = 3

#: Entries that make gradients huge, tiny and not finite.
EXTREME = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-30, 1e6, -1e18, 1e200, 1e300, np.inf, np.nan]))


class Steep(torch.nn.Module):
    """A module whose gradients overflow for some rows, and are undefined for others."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(9, 7), torch.nn.Linear(7, 4)

    def forward(self, x):
        h = self.first(x)
        return self.second(torch.sign(h) * torch.sqrt(h.abs()) + h**3 / (h - h.detach() + 1e-3))


MODULES = {"perceptron": None, "steep": Steep, "steep, float64": lambda: Steep().double()}


class Experiment:
    """The same run on rows that differ in the first one."""

    def __init__(self, name, module, sampling, weights=None):
        make = MODULES[module]
        network = torch.nn.Sequential(torch.nn.Linear(9, 7), torch.nn.Tanh(), torch.nn.Linear(7, 4))
        network, terms = network if make is None else make(), {"n_rows": 60, "weights": weights}
        self.problem, self.source = gradient_problem(network, loss_of_those_present, **terms)
        self.recipe = self.problem.recipe(ALGORITHMS[name], sampling=sampling, learning_rate=0.05)
        self.plan = self.problem.plan(self.recipe, n_steps=N_STEPS)
        self.without = self.watched(np.zeros(9), -1)

    def watched(self, row, label):
        X, y = self.problem.X.copy(), self.problem.y.copy()
        X[0], y[0] = row, label
        noise = Watched(5)
        run = training(self.plan, noise)
        train([run], self.source(X, y))
        return noise

    def moves(self, one, other):
        """How far two rows are apart in each step, in units of the step's noise over its multiplier."""
        assert one.scales == pytest.approx(other.scales, rel=1e-9)
        return one.moves(other, self.plan.noise_multiplier, 1e-11)


@cache
def experiment(name, module, expected):
    return Experiment(name, module, FullBatch() if expected is None else PoissonBatch(expected))


ROWS = hnp.arrays(np.float64, 9, elements=EXTREME)


@pytest.mark.parametrize(
    ("name", "module"),
    [*((name, "perceptron") for name in ALGORITHMS), ("noisy-gd", "steep"), ("noisy-gd", "steep, float64")],
)
@given(row=ROWS, other=ROWS, label=st.integers(0, 3), expected=st.sampled_from([None, 20]))
def test_no_row_moves_a_step_by_more_than_its_sensitivity(name, module, row, other, label, expected):
    tried = experiment(name, module, expected)
    one = tried.watched(row, label)
    assert all(np.isfinite(total).all() for total in one.sums)
    assert max(tried.moves(one, tried.without)) <= 1 + 1e-9  # left out, or added
    assert max(tried.moves(one, tried.watched(other, (label + 1) % 4))) <= 2 + 2e-9  # replaced


@pytest.mark.parametrize("name", ["noisy-gd", "adamix", "pda-dpmd"])
def test_a_bad_row_comes_to_the_bound(name):
    """The property above would see a smaller true bound."""
    tried = experiment(name, "perceptron", None)
    row = 100 * tried.problem.X[0]
    assert max(max(tried.moves(tried.watched(row, label), tried.without)) for label in range(4)) > 0.99


def test_entries_obey_the_split_of_modelmix():
    tried = experiment("modelmix, entries", "perceptron", None)
    for label in range(4):
        one = tried.watched(100 * tried.problem.X[0], label)
        for a, b in zip(one.sums, tried.without.sums, strict=True):
            assert np.abs(a - b).max() <= 0.1 / 3 * (1 + 1e-9)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("weight", [0.0, 1e-30, 0.01, 0.3, 1.0])
def test_no_weighted_row_moves_a_step_by_more_than_its_sensitivity(name, weight):
    """A row of small weight is clipped later, and comes to less."""
    tried = Experiment(name, "perceptron", FullBatch(), np.append(weight, np.linspace(0, 1, 59)))
    rows = [scale * tried.problem.X[0] for scale in (1.0, 100.0, 1e200, np.nan)]
    moved = [max(tried.moves(tried.watched(row, label), tried.without)) for row in rows for label in range(4)]
    assert max(moved) <= min(1, 3 * weight) + 1e-9
    if weight == 1.0 and name == "noisy-gd":
        assert max(moved) > 0.99


N_ROWS = 150
ENTRIES = st.one_of(
    st.floats(-3, 3, width=32), st.sampled_from([0.0, 1e-40, -1e-30, 1e6, -1e18, 3e38, np.inf, np.nan])
)


class Contributions:
    """What each row contributes at the start of a module."""

    def __init__(self, kind, expected, chunk_size):
        make, shape, self.tokens = HONEST[kind]
        rng = np.random.default_rng(0)
        size = (N_ROWS, *shape)
        self.X = rng.integers(0, self.tokens, size) if self.tokens else np.float32(rng.normal(size=size))
        self.y = np.arange(N_ROWS) % 3
        self.W, self.chunk_size, self.batch = all_of(make()), chunk_size, Batch()
        if expected is not None:
            self.batch = Batch(rng.uniform(size=N_ROWS) < expected / N_ROWS, expected / N_ROWS)
        self.before = self.of(self.X, self.y)

    def of(self, X, y, batch=None):
        found = {}

        def observe(rows, block, Z, parts):
            for number, c, gradient in zip(rows, parts[0], block.X, strict=True):
                if batch.mask is None or batch.mask[number]:
                    found[int(number)] = c.tobytes() + gradient.tobytes()

        batch = self.batch if batch is None else batch
        source = GradientRows(LabelledRows(X, y, self.chunk_size), cross_entropy, self.W)
        clip, loss = L2Clip(0.5), ModuleLoss(cross_entropy, 3)
        clipped = partial(clipped_residuals, loss=loss, clip=clip)
        request = request_of(flat(self.W.tensors), clipped, batch=batch, observe=observe)
        ((total, _),) = source.private_sums([request])
        assert 0 < np.abs(total).max() < np.inf
        return found


@cache
def contributions(kind, expected, chunk_size):
    return Contributions(kind, expected, chunk_size)


@pytest.mark.parametrize("kind", ["perceptron", "perceptron, float64", "convolutions", "attention"])
@given(data=st.data())
def test_other_rows_contribute_the_same_bits(kind, data):
    expected = data.draw(st.sampled_from([None, 8]))
    tried = contributions(kind, expected, data.draw(st.sampled_from([40, 128])))
    i = data.draw(st.integers(0, N_ROWS - 1))
    X, y = tried.X.copy(), tried.y.copy()
    elements = st.integers(0, tried.tokens - 1) if tried.tokens else ENTRIES
    X[i] = data.draw(hnp.arrays(X.dtype, X.shape[1:], elements=elements))
    y[i] = data.draw(st.integers(0, 2))
    after, before = (dict(found) for found in (tried.of(X, y), tried.before))
    after.pop(i, None)
    before.pop(i, None)
    assert after == before
    if tried.batch.taken is not None:  # nor does it matter whether the row is in the batch
        taken = tried.batch.taken.copy()
        taken[i] = not taken[i]
        after = tried.of(X, y, replace(tried.batch, taken=taken))
        after.pop(i, None)
        in_both = [number for number in before if tried.batch.taken[number]]
        assert {number: after[number] for number in in_both} == {number: before[number] for number in in_both}
