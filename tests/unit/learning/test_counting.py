import numpy as np
import pytest

from tests.conftest import Watched, learned
from tests.private_names import GaussianMechanism, InMemoryRows, counts_query, sum_error

X = np.random.default_rng(0).normal(size=(20, 3))
FLAGS = np.arange(20) % 3 == 0


def count(learner, multiplier):
    query = counts_query(np.zeros((1, 3)), lambda Z, block: (block.y == 1)[:, np.newaxis])
    counts, _ = yield from learner.ask(GaussianMechanism(multiplier, 1, learner.noise), query)
    return counts


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_changes_a_count_by_one_and_the_noise_is_that_of_one_row(dtype):
    """The multiplier is in rows, so a smaller stated sensitivity would be less noise than is charged."""
    counted = []
    for place in (None, 0, 1):
        noise, flags = Watched(), FLAGS.copy()
        if place is not None:
            flags[place] = False
        rows = InMemoryRows(X.astype(dtype), flags.astype(int))
        released = learned(rows, count, 7.0, noise=noise)
        # What is watched releases noise alone: that of the same seed.
        assert released == Watched().add_noise(np.zeros(1), noise.scales[0], None)[0]
        ((seen,),) = noise.sums
        assert 7.0 <= noise.scales[0] <= 7.0 * (1 + 2 * sum_error(20, dtype).relative)
        counted.append(float(seen))
    assert counted == [7.0, 6.0, 7.0]
