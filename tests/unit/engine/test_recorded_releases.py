"""What an audit sees of a release, and which rows it zeroes out."""

import numpy as np
import pytest

from skmixdp.components.protocols import PrivateQuery, ReleasedArray
from tests.conftest import Silent, Watched
from tests.private_names import Batch, GaussianMechanism, InMemoryRows, KnownRows, recorded_releases, release
from tests.rounding import assert_close, assert_relative

X = np.random.default_rng(0).normal(size=(20, 3))
ROWS = InMemoryRows(X, np.zeros(20, int))
ABSENT = np.arange(20) % 7 == 0
QUERY = PrivateQuery(
    points=np.zeros((1, 3)),
    contribute=lambda Z, block: (Z + 1, Z + 1),
    releases=(ReleasedArray(0.5, 0.5), ReleasedArray(2.0, 0.25)),
)


def released(noise, absent=None, members=None, batch=None, n_steps=1):
    mechanism = GaussianMechanism(3.0, n_steps, noise)
    with recorded_releases(absent) as record:
        for _ in range(n_steps):
            mechanism.begin_step(members, batch)
            answer = release(ROWS, [(mechanism, QUERY)])[0].arrays
    return answer, record


def test_a_record_holds_what_was_released_with_its_stated_noise():
    noise = Watched()
    answer, record = released(noise, n_steps=2)
    assert len(record) == 2
    assert record[1].query.points is QUERY.points
    # Sensitivities include what the rows state of the rounding of their sums.
    assert [part.sensitivity for part in record[1].query.releases] == pytest.approx([0.5, 2.0], rel=1e-9)
    assert record[1].query.releases[0].sensitivity > 0.5
    for recorded, array in zip(record[1].arrays, answer, strict=True):
        assert recorded is array
    # `Watched` releases noise alone: no sum is in the record.
    assert not np.allclose(record[1].arrays[1], 20)
    assert_relative(record[1].scales, [3 * 0.5 / np.sqrt(0.5), 3 * 2.0 / np.sqrt(0.25)], 1e-9)
    assert_relative(noise.scales[2:], record[1].scales)


def test_absent_rows_add_zero_and_the_others_what_they_did():
    matrix, count = released(Silent(0), ABSENT)[0]
    assert_close(matrix, X[~ABSENT].sum(axis=0, keepdims=True))
    assert_relative(count, [np.sum(~ABSENT)])


def test_absent_rows_are_absent_from_members_and_batches_too():
    members, taken = np.arange(20) < 15, np.arange(20) > 5
    for batch, present in ((None, members), (Batch(taken, 0.7), members & taken)):
        _, count = released(Silent(0), ABSENT, members, batch)[0]
        assert_relative(count, [np.sum(present & ~ABSENT)])


def test_nothing_is_recorded_or_zeroed_out_afterwards():
    _, record = released(Silent(0), ABSENT)
    mechanism = GaussianMechanism(3.0, 1, Silent(0))
    mechanism.begin_step(None)
    _, count = release(ROWS, [(mechanism, QUERY)])[0].arrays
    assert_relative(count, [20])
    assert len(record) == 1


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(RuntimeError, match="absent has 19 entries and the source 20 rows"):
        released(Silent(0), ABSENT[1:])


def test_known_rows_answer_the_queries_of_a_record():
    _, record = released(Silent(0), ABSENT)
    for known, n_units in (
        (KnownRows(X, np.zeros(20, int), None), 20),
        (KnownRows(X, np.zeros(20, int), np.repeat(np.arange(10), 2)), 10),
    ):
        matrix, count = known.answer(record[0])
        assert_close(matrix, X.sum(axis=0, keepdims=True) * n_units / 20)
        assert_relative(count, [n_units])
        assert list(known.of_training(record)) == record
    assert not list(KnownRows(X[:, :2], np.zeros(20, int), None).of_training(record))
