"""Rows on which a module fails: refused before the charge, and of no effect on other rows after it."""

import numpy as np
import pytest

from skmixdp import ZerothOrderDPModuleClassifier
from skmixdp.algorithms import PAZO, DPZero
from skmixdp.privacy import PrivacyLedger
from tests.asking import request_of
from tests.conftest import make_problem
from tests.module_problems import Direction, LabelledRows, ModuleRows, all_of, cross_entropy, torch
from tests.private_names import Batch, Block, CandidateQuery, LossesAt, separately
from tests.unit.components.test_zeroth_order import context

BAD = 9.0
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(300, 6)).astype("f4"), np.arange(300) % 3
X_PUB, Y_PUB = X[:30], Y[:30]


class Fails(torch.nn.Module):
    """Fails on rows that begin with BAD: at once, or once its parameters have moved."""

    def __init__(self, at_once=False, error=IndexError):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.start = self.second.bias.detach().clone()
        self.at_once, self.error = at_once, error

    def forward(self, x):
        moved = self.at_once or not torch.equal(self.second.bias.detach(), self.start)
        if moved and bool((x[:, 0] == BAD).any()):
            raise self.error(f"{BAD} is out of range")
        return self.second(torch.tanh(self.first(x)))


def with_bad_rows(*numbers):
    rows = X.copy()
    rows[list(numbers), 0] = BAD
    return rows


def fitted(rows, algorithm="dpzero", **parameters):
    settings = {"n_steps": 6, "learning_rate": 0.05, "classes": [0, 1, 2], "init": "module", "delta": 1e-4}
    settings |= {"random_state": 0, **parameters}
    clf = ZerothOrderDPModuleClassifier(settings.pop("module", Fails()), algorithm, **settings)
    return clf.fit(rows, Y, X_pub=X_PUB, y_pub=Y_PUB)


def test_a_row_on_which_the_module_fails_is_refused_before_the_charge(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=2.0, delta=1e-4)
    with pytest.raises(ValueError, match="fails on private rows with an error that is left out") as refused:
        fitted(with_bad_rows(11), module=Fails(at_once=True), ledger=ledger, random_state=None)
    assert str(BAD) not in str(refused.value) and ". " not in str(refused.value)
    assert len(ledger.charges()) == 0
    clf = fitted(X, module=Fails(at_once=True), ledger=ledger, random_state=None)
    assert any("failed on them before the first step" in fact for fact in clf.privacy_.treated_as_public)
    assert len(ledger.charges()) == 1


@pytest.mark.covering
@pytest.mark.parametrize("batch_size", [None, 30])
@pytest.mark.parametrize("algorithm", ["dpzero", DPZero(8), PAZO("m"), PAZO("s")], ids=str)
def test_a_row_that_fails_at_a_later_step_ends_nothing(algorithm, batch_size):
    try:
        clf = fitted(with_bad_rows(11), algorithm, batch_size=batch_size)
    except RuntimeError:
        pytest.fail("the fit ended at a step that tells of a row")
    assert clf.n_iter_ == 6


def test_other_rows_keep_their_losses_and_their_places():
    seen = []

    def losses(x, y):
        seen.append(x)
        if bool((x[:, 0] == BAD).any()):
            raise RuntimeError
        return x[:, 1] + 10 * torch.arange(len(x))  # its place is a part of it

    x, y = torch.from_numpy(with_bad_rows(3, 64, 99)[:100]), torch.from_numpy(Y[:100])
    found = separately(losses, x, y)
    places = np.arange(100)
    good = ~np.isin(places, [3, 64, 99])
    np.testing.assert_array_equal(found[good], (x[:, 1] + 10 * torch.arange(100)).double().numpy()[good])
    assert np.isnan(found[~good]).all()
    assert {len(each) for each in seen} == {100}
    assert len(seen) < 2 * 3 * (1 + np.log2(100)) + 1


def test_rows_that_all_fail_have_no_losses():
    def losses(x, y):
        raise RuntimeError

    x, y = torch.zeros((5, 2)), torch.zeros(5, dtype=torch.int64)
    assert separately(losses, x, y, (3,)).shape == (5, 3)
    assert np.isnan(separately(losses, x, y)).all()


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_a_lack_of_memory_is_no_fault_of_a_row(error):
    def losses(x, y):
        raise error

    with pytest.raises(error):
        separately(losses, torch.zeros((5, 2)), torch.zeros(5, dtype=torch.int64))


def test_no_error_after_the_charge_quotes_what_a_module_says_of_rows():
    with pytest.raises(RuntimeError, match="training ended with an error that is left out") as told:
        fitted(with_bad_rows(11), module=Fails(error=MemoryError))
    assert told.value.__cause__ is None and told.value.__context__ is None
    assert str(BAD) not in str(told.value)


def test_a_row_contributes_no_difference_where_the_module_fails():
    """As if it were zeroed out."""
    losses = []
    for rows in (with_bad_rows(11), X):
        parameters = all_of(Fails())
        source = ModuleRows(LabelledRows(rows, Y, 64), cross_entropy)
        parameters.assign([tensor.clone() + 0.1 for tensor in parameters.tensors])
        losses.append(source._losses(points_of(parameters), None, 64))
    bad, good = losses
    assert np.isnan(bad[11]).all()
    others = np.arange(300) != 11
    np.testing.assert_array_equal(bad[others], good[others])


def points_of(parameters):
    direction = Direction.dense([torch.ones_like(tensor) for tensor in parameters.tensors])
    return LossesAt(parameters, [direction], [(0, 0.1), (0, -0.1)])


def test_a_candidate_that_fails_does_not_win():
    """Losses that cannot be computed are the largest that the clip allows, not 0."""
    problem = make_problem()
    query = CandidateQuery(2, None, 1.0, None)
    asked = next(query.step(context(problem)))
    block = Block(problem.X, problem.y, np.linalg.norm(problem.X, axis=1))
    _, S = asked.contribute(np.full((len(problem.y), len(asked.points)), np.nan), block)
    np.testing.assert_array_equal(S, np.ones_like(S))


def test_a_row_has_its_place_whatever_else_is_in_a_batch():
    """The losses of rows in a batch are the same, bit for bit, with another row and without."""
    n, rate = 4000, 0.01
    rows = rng.normal(size=(n, 6)).astype("f4")
    module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    places = []
    module.register_forward_pre_hook(lambda part, given: places.append(given[0][:, 0].clone()))
    parameters = all_of(module)
    source = ModuleRows(LabelledRows(rows, np.zeros(n, int), 1024), cross_entropy)
    taken = np.random.default_rng(1).random(n) < rate
    seen = []
    for there in (True, False):
        taken[5] = there
        places.clear()
        source.private_sums(
            [
                request_of(
                    points_of(parameters), lambda losses, block: (None, losses), batch=Batch(taken, rate)
                )
            ]
        )
        assert {len(each) for each in places} == {source.rows_in_pass(rate)}
        entries = torch.stack(places).numpy()
        held = rows[np.flatnonzero(taken), 0]
        seen.append({float(entry): int(np.argwhere(entries == entry)[0][1]) for entry in held})
    assert source.rows_in_pass(rate) < 100
    del seen[0][float(rows[5, 0])]
    assert seen[0] == seen[1]
