"""How a record adds the releases of a fit, and who may keep it."""

import copy
import pickle

import numpy as np
import pytest

from skmixdp.privacy import PerInstanceRecord
from tests.rounding import assert_relative


def record(neighboring="zero_out", **parameters):
    made = PerInstanceRecord(3, neighboring, "float", **{"picklable": False, **parameters})
    made.add(np.array([0.0, 0.5, 1.0]), 1.0, 2.0)
    made.add(np.array([0.3, 0.0, 0.4]), 0.5, 0.5)
    return made


def test_squares_of_releases_add_up():
    expected = np.sqrt([0.6**2, 0.25**2, 0.5**2 + 0.8**2])
    assert_relative(record().mu, expected)


def test_a_replaced_row_counts_with_the_worst_other_one_even_if_its_own_length_is_zero():
    expected = np.sqrt([0.5**2 + 1.6**2, 0.75**2 + 1.0, 1.0 + 1.8**2])
    assert_relative(record("replace_one").mu, expected)


def test_a_release_that_does_not_depend_on_rows_costs_nothing():
    made = record()
    before = made.mu
    made.add(np.ones(3), 1.0, 0.0)
    made.add(np.zeros(3), 0.0, 0.0)
    np.testing.assert_array_equal(made.mu, before)
    empty = PerInstanceRecord(2, "add_or_remove_one", "float", picklable=False)
    empty.add(np.zeros(2), 0.0, 0.0)
    np.testing.assert_array_equal(empty.epsilon(1e-5), [0, 0])


def test_copies_share_it_and_pickles_are_refused_unless_told():
    made = record()
    assert copy.copy(made) is made and copy.deepcopy(made) is made
    with pytest.raises(TypeError, match=r"itself private; del estimator\.per_instance_"):
        pickle.dumps(made)
    kept = record(picklable=True)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kept)).mu, kept.mu)
    assert "0." not in repr(made)
