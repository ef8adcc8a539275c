"""Records of per-instance privacy know the releases for tables: histograms, second moment and temperature."""

import numpy as np
import pytest
from sklearn.base import clone

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from tests.property.test_per_instance import passes, squared_losses

__all__ = ["passes"]  # a fixture

N, D, K = 40, 3, 3
rng = np.random.default_rng(0)
Y = np.arange(N) % K
X = (rng.normal(size=(K, D))[Y] + rng.normal(size=(N, D))) * [1.0, 1e3, 1.0] + [0.0, 5e3, 1.0]
X[-1] = [1e30, 0.0, 1e-30]
TERMS = {"epsilon": 3000.0, "record_per_instance": True, "random_state": 0}
HEADS = {
    "classes": MixedDPLogisticRegression(classes=range(K), **TERMS),
    "two classes": MixedDPLogisticRegression(classes=range(2), **TERMS),
    "balanced": MixedDPLogisticRegression(classes=range(K), class_weight="balanced", **TERMS),
    "geometry": MixedDPLogisticRegression(classes=range(K), rows=RowMapping(geometry=True), **TERMS),
    "targets": MixedDPRidge(target_scale=2.0, **TERMS),
}
#: What a head of several classes releases of their shares.
ADJUSTMENT = ("class counts", "strength of the adjustment")
#: What a fit releases beside its steps.
STAGES = {
    "classes": {"columns", "second moment", "temperature", *ADJUSTMENT},
    "two classes": {"class counts", "columns", "second moment", "temperature"},
    "balanced": {"class counts", "columns", "second moment", "temperature", "mean prediction"},
    "geometry": {"columns", "mean", "directions", "temperature", *ADJUSTMENT},
    "targets": {"columns", "second moment", "first head", "lengths of gradients", "residuals"},
}


def targets_of(name):
    return {"two classes": Y % 2, "targets": np.linspace(-2, 2, N)}.get(name, Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HEADS)
def test_losses_are_those_of_neighbouring_data_sets(name, passes):
    fitted = clone(HEADS[name]).fit(X, targets_of(name))
    assert dict(fitted.privacy_.shares).keys() - {"training"} == STAGES[name]
    mu, true, claim = fitted.per_instance_.mu, np.sqrt(squared_losses(passes(), N)), fitted.privacy_.mu
    assert np.all(mu >= true * (1 - 1e-5))
    assert np.all(mu <= claim * (1 + 1e-9))
    assert np.all(mu <= true + 0.02 * claim)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["classes", "targets"])
def test_rows_of_other_folds_lose_nothing(name):
    """Each pass answers both folds, so rows of one are left out of the histograms of the other."""
    folds = [np.arange(N) % 2 == part for part in (0, 1)]
    heads = [clone(HEADS[name]) for _ in folds]
    fit_many(heads, X, targets_of(name), rows=folds)
    for head, fold in zip(heads, folds, strict=True):
        assert "columns" in dict(head.privacy_.shares)
        assert np.array_equal(head.per_instance_.mu > 0, fold)
        alone = clone(head).fit(X[fold], targets_of(name)[fold])
        # Alone, sums have the rounding of fewer rows.
        np.testing.assert_allclose(
            head.per_instance_.mu[fold], alone.per_instance_.mu, rtol=0, atol=0.05 * head.privacy_.mu
        )
