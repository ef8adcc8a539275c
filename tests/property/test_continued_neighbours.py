"""A fit that continues from a released head shows no more of a row than its noise pays for."""

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from tests.replay import check_neighbours

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
LABELS = (X[:, 0] + RNG.logistic(size=400) > 0).astype(int)
TARGETS = 3 * X[:, 0] + RNG.normal(size=400)
TERMS = {"epsilon": 8.0, "delta": 1e-3}


@pytest.mark.parametrize("row", [[0.0] * 4, [1e300] * 4, [5e-324] * 4, [1e8, -1e8, 3.0, 2.0]])
@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, MixedDPRidge])
def test_whatever_the_row_holds(monkeypatch, kind, row):
    regression = kind is MixedDPRidge
    y, known = (TARGETS, {}) if regression else (LABELS, {"classes": [0, 1]})
    first = kind(**TERMS, **known, random_state=0).fit(X[::-1], y[::-1])
    other, others = X.copy(), y.copy()
    other[0], others[0] = row, 1e300 if regression else 1 - y[0]

    def path(rows, labels):
        return lambda calls: kind(**TERMS, init=first).fit(rows, labels)

    check_neighbours(monkeypatch, path(X, y), path(other, others), 0)
