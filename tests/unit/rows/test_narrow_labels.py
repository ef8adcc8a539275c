"""Class indices in memory are held in few bytes, and mean the same."""

import numpy as np
import pytest

from skmixdp._rows import InMemoryRows, Request
from skmixdp._rows.memory import narrow_labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 127], np.int8),
        ([0, 128], np.int16),
        ([-1, 3], np.int8),
        ([-129, 3], np.int16),
        ([0, 2**15 - 1], np.int16),
        ([0, 2**15], np.int32),
        ([0, 2**40], np.int64),
    ],
)
@pytest.mark.parametrize("given", [np.int64, np.uint64])
def test_the_smallest_signed_type_is_used(labels, expected, given):
    if min(labels) < 0 and given is np.uint64:
        return
    found = narrow_labels(np.array(labels, dtype=given))
    assert found.dtype == expected
    np.testing.assert_array_equal(found, labels)


@pytest.mark.parametrize("labels", [np.zeros((3, 2), int), np.zeros(3), np.zeros(0, int)])
def test_other_labels_stay_as_they_are(labels):
    assert narrow_labels(labels) is labels


def test_queries_see_the_labels_of_their_rows():
    y = np.random.default_rng(0).integers(300, size=1000)
    seen = []

    def look(Z, block):
        seen.append(block.y)
        return None, np.zeros((len(Z), 1))

    InMemoryRows(np.ones((1000, 3), np.float32), y).private_sums([Request(np.zeros((1, 3)), look)])
    np.testing.assert_array_equal(np.concatenate(seen), y)
    assert seen[0].dtype == np.int16
