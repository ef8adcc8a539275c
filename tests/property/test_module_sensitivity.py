"""One row never moves what a module's rows release by more than is stated."""

from functools import cache, cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.algorithms import PAZO, DPZero
from skmixdp.components import FullBatch, PoissonBatch
from tests.conftest import Watched, train
from tests.module_problems import (
    LabelledRows,
    ModuleRows,
    loss_of_those_present,
    module_problem,
    torch,
    two_layers,
)
from tests.private_names import training

ALGORITHMS = {
    "dpzero": DPZero(loss_clip=0.1),
    "dpzero, three gaussian directions": DPZero(3, directions="gaussian", loss_clip=0.1),
    "pazo-m": PAZO("m", loss_clip=0.1),
    "pazo-p, two directions": PAZO("p", n_directions=2, loss_clip=0.1),
    "pazo-p, normalised": PAZO("p", orthonormal=False, loss_clip=0.1),
    "pazo-s": PAZO("s", loss_clip=0.7),
    "pazo-s, no further candidate": PAZO("s", candidate_noise=None, loss_clip=0.7),
}
N_STEPS = 3

#: Entries that make losses huge, tiny and not finite.
EXTREME = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-30, 1e6, -1e18, 1e300, np.inf, np.nan]))


class Experiment:
    """The same run on rows that differ in the first one."""

    def __init__(self, name, sampling):
        self.problem = module_problem(two_layers(), n_rows=60)
        self.W = self.problem.info.view.W
        self.start = [tensor.clone() for tensor in self.W.tensors]
        self.recipe = self.problem.recipe(ALGORITHMS[name], sampling=sampling, learning_rate=0.5)
        self.plan = self.problem.plan(self.recipe, n_steps=N_STEPS)

    def watched(self, row, label):
        X, y = self.problem.X.copy(), self.problem.y.copy()
        X[0], y[0] = row, label
        self.W.assign(self.start)
        noise = Watched(5)
        rows = ModuleRows(LabelledRows(X, y, 64), loss_of_those_present)
        train([training(self.plan, noise)], rows)
        return noise

    @cached_property
    def without(self):
        """The run on the rows of which the first is zeroed out."""
        return self.watched(0.0, -1)

    def moves(self, row, label):
        """How far the row moves each step, in units of the step's noise over its multiplier."""
        with_row, without = self.watched(row, label), self.without
        assert with_row.scales == pytest.approx(without.scales, rel=1e-8)  # rounding grows with n
        moved = with_row.moves(without, self.plan.noise_multiplier, 1e-11)
        return np.linalg.norm(np.reshape(moved, (N_STEPS, -1)), axis=1)


@cache
def experiment(name, expected):
    return Experiment(name, FullBatch() if expected is None else PoissonBatch(expected))


@pytest.mark.parametrize("name", ALGORITHMS)
@given(
    row=hnp.arrays(np.float64, 9, elements=EXTREME),
    label=st.integers(0, 3),
    expected=st.sampled_from([None, 30]),
)
def test_zeroing_out_a_row_moves_every_step_by_at_most_its_sensitivity(name, row, label, expected):
    assert experiment(name, expected).moves(row, label).max() <= 1 + 1e-9


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_bad_row_comes_near_the_bound(name):
    """The property above would see a smaller true bound."""
    rig = experiment(name, None)
    row = 100 * rig.problem.X[0]
    rig.W.assign(rig.start)
    with torch.no_grad():
        label = int(rig.W.module(torch.from_numpy(row[np.newaxis])).argmin())
    assert rig.moves(row, label).max() > 0.3
