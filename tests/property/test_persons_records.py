"""The recorded loss of a person is at least what neighbouring data sets show, and at most the claim."""

import numpy as np
import pytest
from sklearn.base import clone

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import DOPE, GEP, PAZO, AdaMix
from tests.property.test_per_instance import passes, squared_losses

__all__ = ["passes"]  # a fixture

P, D, K = 12, 4, 3
rng = np.random.default_rng(0)
GROUPS = np.concatenate([np.repeat(np.arange(P), rng.integers(1, 5, P)), np.full(90, 7)])
Y = np.where(GROUPS % 2, rng.integers(0, K, len(GROUPS)), 0)
X = rng.normal(size=(len(GROUPS), D)) + 4 * np.eye(K, D)[Y]
PUBLIC = X[:12] + 0.1, Y[:12]
HEADS = {
    "default": MixedDPLogisticRegression(),
    "balanced": MixedDPLogisticRegression(class_weight="balanced"),
    "geometry": MixedDPLogisticRegression(rows=RowMapping(geometry=True)),
    "subspace": MixedDPLogisticRegression(AdaMix(n_components=2), n_steps=6),
    "dope": MixedDPLogisticRegression(DOPE(), n_steps=6),
    "gep": MixedDPLogisticRegression(GEP(), n_steps=6),
    "targets": MixedDPRidge(),
    "zeroth order": MixedDPLogisticRegression(PAZO("s"), n_steps=4),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HEADS)
def test_no_release_moves_further_than_the_record_says(name, passes):
    X_pub, y_pub = PUBLIC
    y, y_pub = (X[:, :1], X_pub[:, :1]) if name == "targets" else (Y, y_pub)
    head = clone(HEADS[name]).set_params(epsilon=100.0, record_per_instance=True, random_state=0)
    head.fit(X, y, X_pub, y_pub, groups=GROUPS)
    mu, true = head.per_instance_.mu, np.sqrt(squared_losses(passes(), P))
    assert mu.shape == (P,)
    assert np.all(mu >= true * (1 - 1e-5))
    assert np.all(mu <= head.privacy_.mu * (1 + 1e-9))
