"""The part of the rows of large data sets that histograms count: a secret coin for each row decides."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from skmixdp import MixedDPRidge
from skmixdp.components import PoissonBatch
from skmixdp.components.protocols import ReleasedArray
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import NoiseSource
from tests.conftest import Silent, learned
from tests.noise import watch
from tests.private_names import (
    UNCHANGED,
    ArrayTable,
    Batch,
    GaussianMechanism,
    InMemoryRows,
    Learner,
    Observation,
    OpenRows,
    PrivateQuery,
    Request,
    column_histograms,
    columns_in_other_units,
    drive,
    noisy_columns,
    noisy_columns_of,
    noisy_targets,
    public_checks_module,
    thinned,
    unmapped,
)

N = 8000
#: Probability of each flaw that a test finds by chance.
LEVEL = 1e-9


def learner_of(n_rows=N, seed=0, **facts):
    return Learner(n_rows, None, NoiseSource(seed), np.dtype("f8"), **facts)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(column_histograms, "_FEWEST_ROWS", N // 8)
    monkeypatch.setattr(public_checks_module, "_FEWEST_ROWS", N // 8)


class TestCoins:
    def test_the_number_of_rows_is_that_of_independent_coins(self):
        numbers = [thinned(learner_of(seed=seed), 1, 0.0).sampling.taken.sum() for seed in range(200)]
        assert len({*numbers}) > 20
        low, high = binom.ppf([LEVEL, 1 - LEVEL], 200 * N, 1 / 8)
        assert low <= sum(numbers) <= high

    def test_a_row_tells_nothing_of_the_next_ones(self):
        taken = thinned(learner_of(80_000), 1, 0.0).sampling.taken
        for distance in (1, 2, 8, 79_999):
            both = int((taken & np.roll(taken, distance)).sum())
            low, high = binom.ppf([LEVEL, 1 - LEVEL], 80_000, (taken.mean() / 1.0) ** 2)
            assert low <= both <= high

    def test_they_are_new_in_each_stage_and_leave_the_noise_as_it_is(self):
        learner = learner_of()
        first, second = (thinned(learner, 1, 0.0).sampling.taken for _ in range(2))
        again = thinned(learner_of(), 1, 0.0).sampling.taken
        assert (first != second).any() and (first == again).all()
        np.testing.assert_array_equal(learner.noise.normal((5,)), NoiseSource(0).normal((5,)))

    def test_the_coins_of_secret_noise_have_keys_of_their_own(self):
        source = NoiseSource()
        assert (source.coins(100, 0.5) != source.coins(100, 0.5)).any()

    def test_public_facts_decide_whether_there_are_any(self):
        whole = learner_of()
        assert thinned(whole, 1, 1e9) is whole  # noise would hide the part
        assert thinned(whole, 1, math.inf) is whole
        few = learner_of(N // 8)
        assert thinned(few, 1, 0.0) is few
        batches = learner_of(sampling=PoissonBatch(100))
        assert thinned(batches, 1, 0.0) is batches  # their rate is accounted for, with all rows

    def test_members_are_drawn_among_members(self, monkeypatch):
        masks = _masks(monkeypatch, members=np.arange(2 * N) % 2 == 0)
        assert all(not mask[1::2].any() and 0 < mask.sum() < N / 4 for mask in masks)

    def test_they_hold_for_all_histograms_of_a_stage(self, monkeypatch):
        masks = _masks(monkeypatch)
        assert len(masks) == 3
        for mask in masks:
            assert mask is not None and 0 < mask.sum() < N / 4
            np.testing.assert_array_equal(mask, masks[0])

    def test_persons_have_one_each(self, monkeypatch):
        log = watch(monkeypatch)
        NoisyScaler(epsilon=1.0, random_state=0).fit(np.ones((2 * N, 1)), groups=np.arange(2 * N) % N)
        assert len(log) == 3 and all(len(each.mask) == N and not each.mask.all() for each in log)


def _masks(monkeypatch, members=None):
    """Rows that take part in each histogram of columns."""
    log = watch(monkeypatch)
    n_rows = N if members is None else len(members)
    X = np.random.default_rng(0).normal(size=(n_rows, 1))
    rows = InMemoryRows(unmapped(1)(X, np.dtype("f8")), np.zeros(n_rows))
    learned(rows, noisy_columns, 1, 0.01, noise=NoiseSource(0), members=members)
    return [each.mask for each in log]


class TestDivisor:
    """A part is divided by its expected number of rows, not by that which was drawn, which is private."""

    @pytest.fixture(params=[False, True], ids=["as expected", "two fifths of it"])
    def drawn_few(self, request, monkeypatch):
        def coins(source, n_coins, chance):
            return np.random.default_rng(0).random(n_coins) < (0.4 if request.param else 1.0) * chance

        monkeypatch.setattr(NoiseSource, "coins", coins)
        return request.param

    def test_of_columns(self, drawn_few):
        X = 5.0 + np.random.default_rng(0).normal(size=(N, 1))
        rows = InMemoryRows(unmapped(1)(X, np.dtype("f8")), np.zeros(N))
        found = learned(rows, noisy_columns, 1, 0.01)
        assert (found.center[0] == 0.0) == drawn_few

    def test_of_targets(self, drawn_few):
        y = 5.0 + np.random.default_rng(0).normal(size=(N, 1))
        rows = InMemoryRows(np.ones((N, 1)), y)
        _, scale = learned(rows, noisy_targets, 1, GaussianMechanism(0.01, 3, Silent(0)), 1)
        assert (scale[0] == 0.0) == drawn_few

    def test_of_units(self, drawn_few):
        X_pub = np.linspace(-1, 1, 100)[:, np.newaxis]
        rows = InMemoryRows(unmapped(1)(np.full((N, 1), 50.0), np.dtype("f8")), np.zeros((N, 0)))
        (other,) = learned(rows, columns_in_other_units, X_pub, np.zeros((100, 0)), 0.01)
        assert other != drawn_few

    def test_of_knots(self, drawn_few):
        X = np.random.default_rng(0).normal(size=(N, 1))

        def rows_of(function):
            return OpenRows(
                ArrayTable(X)
                .transformed(function)
                .private_rows(np.zeros(N), UNCHANGED, np.dtype("f8"), exact=False)
            )

        learner = replace(learner_of(), noise=Silent(0))
        ((found, _),) = drive([noisy_columns_of(learner, rows_of, np.array([0]), 4, 0.01)])
        assert (len(found[0].knots) == 0) == drawn_few


def test_a_coin_that_leaves_a_row_out_lowers_no_record():
    rows = InMemoryRows(np.ones((4, 1)), np.zeros(4))

    def halves(Z, block):
        return None, np.full((len(block.norms), 1), 0.5)

    query = PrivateQuery(np.zeros((0, 1)), halves, (ReleasedArray(1.0),))
    batch = Batch(np.array([True, False, True, False]), 0.5, np.array([True, True, False, False]))
    observation = Observation(Request(query, batch), 4)
    rows.private_sums([observation.request])
    (moved,) = observation.lengths(query.releases)
    assert moved.tolist() == [0.5, 1.0, 0.0, 0.0]


class TestBatches:
    def test_the_scale_of_targets_takes_batches_at_the_rate_that_is_accounted_for(self, monkeypatch):
        log = watch(monkeypatch)
        X, y = np.ones((N, 1)), np.random.default_rng(0).normal(size=N)
        terms = {"epsilon": None, "n_steps": 40, "noise_multiplier": 1.0, "batch_size": 200}
        MixedDPRidge(**terms, random_state=0).fit(X, y)
        low, high = binom.ppf([LEVEL, 1 - LEVEL], N, 200 / N)
        assert len(log) > 3 and all(low <= each.mask.sum() <= high for each in log)
