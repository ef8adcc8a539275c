"""The accuracy that the defaults must reach on digits, without any tuning.

The protocol of the quickstart, with seeded noise so that the verdict does not depend on the
day: 5 public rows per class, 400 test rows, five splits times five draws of the noise.
"""

import numpy as np
import pytest

from examples import quickstart
from skmixdp import MixedDPLogisticRegression


@pytest.mark.parametrize(("epsilon", "target"), [(1.0, 0.895), (3.0, 0.925)])
@pytest.mark.slow
def test_adamix_reaches_its_target(epsilon, target):
    scores = []
    for seed in range(5):
        split = quickstart.make_split(seed)
        for draw in range(5):
            clf = MixedDPLogisticRegression("adamix", epsilon=epsilon, random_state=100 * seed + draw)
            clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
            scores.append(clf.score(split.X_test, split.y_test))
    assert np.mean(scores) >= target
