"""The noise that leaves the private rows has the stated scale, neither less nor more.

Each sample is standardised by a scale that is computed here from the definitions. The test must
accept it AND reject the same sample at 2/3 and at 3/2 of the scale: a test that accepts
everything shows nothing. Seeded where possible, so that the verdict is the same every day; the
tests on fresh noise are sized so that they fail by chance less than once in five million runs.
"""

import numpy as np
import pytest
from scipy.stats import kstest

from skmixdp.components.protocols import PrivateQuery, ReleasedArray
from skmixdp.privacy import NoiseSource
from skmixdp.privacy.noise import DiscreteNoise
from tests.noise import assert_energies
from tests.private_names import GaussianMechanism, InMemoryRows, release

THRESHOLD = 1e-7


def assert_standard_normal(sample):
    """Accept the sample, and reject its power twins."""
    assert kstest(sample, "norm").pvalue > THRESHOLD
    assert_energies([sample])
    for factor in (2 / 3, 3 / 2):
        with pytest.raises(AssertionError, match="mean square"):
            assert_energies([factor * sample])


def sum_question(sensitivity, share=1.0):
    """The sum of the rows, each with coefficient 1: no clip, since only noise matters here."""
    return PrivateQuery(
        points=np.zeros((3, 50)),
        contribute=lambda Z, block: (np.ones_like(Z), None),
        releases=(ReleasedArray(sensitivity, share),),
    )


@pytest.mark.parametrize("noise", [NoiseSource(0), NoiseSource(), DiscreteNoise()], ids=lambda n: n.kind)
@pytest.mark.parametrize(("sensitivity", "share"), [(0.5, 1.0), (3.0, 0.25)])
def test_released_sums_carry_the_stated_noise(noise, sensitivity, share):
    rows = InMemoryRows(np.random.default_rng(0).normal(size=(40, 50)), np.zeros(40, int), exact=True)
    sigma, n_steps = 7.0, 12
    mechanism = GaussianMechanism(sigma, n_steps, noise)
    exact = np.tile(rows._X.sum(axis=0), (3, 1))
    sample = []
    for _ in range(n_steps):
        mechanism.begin_step(None)
        (released,) = release(rows, [(mechanism, sum_question(sensitivity, share))])[0].arrays
        sample.append((released - exact) / (sigma * sensitivity / np.sqrt(share)))
    sample = np.ravel(sample)
    assert_standard_normal(sample)
    # Independent between steps, rows and columns: no correlation beyond 5 / sqrt(n).
    for lag in (1, 50, 150):
        correlation = np.corrcoef(sample[:-lag], sample[lag:])[0, 1]
        assert abs(correlation) < 5.5 / np.sqrt(len(sample) - lag)
