"""The noise in sums of labels has the scale that the report of a fit states."""

import math

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import noise_multiplier_for
from tests.private_names import recorded_releases
from tests.statistical.test_noise_scale import assert_standard_normal

N, K = 600, 20
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
Y = (rng.random((N, K)) < 0.3).astype(int)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
def test_a_fit_adds_the_noise_of_the_share_of_labels(neighboring):
    offs = []
    for seed in range(24):
        clf = MixedDPLogisticRegression(epsilon=8.0, random_state=seed, neighboring=neighboring)
        with recorded_releases() as releases:
            clf.fit(X, Y)
        share = dict(clf.privacy_.shares)["label shares"]
        whole = noise_multiplier_for(8.0, 1e-5, n_steps=1, neighboring=neighboring)
        (counted,) = (each for each in releases if each.arrays[0].shape == (K,))
        assert counted is releases[0]
        # The stated sensitivity includes the rounding of sums in float32.
        stated = counted.query.releases[0].sensitivity
        assert 1 <= stated / (math.sqrt(K) / 2) < 1.02
        assert counted.scales[0] == pytest.approx(stated * whole / math.sqrt(share), rel=1e-6)
        exact = Y.sum(axis=0) - N / 2
        offs.append((counted.arrays[0] - exact) * math.sqrt(share) / (stated * whole))
    assert_standard_normal(np.concatenate(offs))
