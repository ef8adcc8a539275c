"""Numbers that are named in ``linear`` are standardised like any other column."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from skmixdp import AdditiveDPClassifier, Typical, private_pipeline
from skmixdp.preprocessing import TableEncoder

N = 12_000
RNG = np.random.default_rng(5)
Z = RNG.normal(size=(N, 3))
LABELS = (RNG.random(N) < 1 / (1 + np.exp(-2 * Z[:, 0] - Z[:, 1] ** 2 + 1))).astype(int)

#: Units of a column: its centre and its spread.
UNITS = {
    "speed": (60.0, 25.0),
    "year": (2005.0, 8.0),
    "share": (0.01, 0.002),
    "wage": (0.0, 40_000.0),
    "usual": (0.0, 1.0),
}


def frame(unit):
    center, spread = UNITS[unit]
    return pd.DataFrame({"number": center + spread * Z[:, 0], "curve": Z[:, 1], "rest": Z[:, 2]})


def auc(model, X):
    with warnings.catch_warnings(action="ignore"):
        model.fit(X[: N // 2], LABELS[: N // 2])
    return roc_auc_score(LABELS[N // 2 :], model.predict_proba(X[N // 2 :])[:, 1])


def classifier(**parameters):
    return AdditiveDPClassifier(epsilon=4.0, delta=1e-5, classes=[0, 1], random_state=0, **parameters)


@pytest.mark.parametrize("unit", UNITS)
def test_a_line_is_as_good_in_any_unit(unit):
    X = frame(unit)
    curves = auc(classifier(), X)
    lines = classifier(linear=["number"])
    assert auc(lines, X) > curves - 0.02
    center, spread = UNITS[unit]
    basis = lines._row_map.basis
    assert not len(basis.knots[0])
    assert len(basis.knots[1])
    assert basis.center[0] == pytest.approx(center, abs=0.3 * spread)
    assert 1 / basis.factor[0] == pytest.approx(spread, rel=0.3)
    assert lines.importances_[0] > lines.importances_[2]


def test_behind_an_encoder_and_with_declared_values():
    X = frame("speed")
    encoder = TableEncoder(columns=dict.fromkeys(X, "number"))
    assert auc(private_pipeline(encoder, classifier(linear=["number"])), X) > 0.8
    declared = classifier(linear=["number"], scale={"number": Typical(60.0, 25.0)})
    assert auc(declared, X) > 0.8
    assert dict(declared.privacy_.shares)["knots"] <= 0.1


def test_zeros_and_ones_stay_as_they_are():
    X = np.column_stack([Z[:, 1], RNG.random((N, 3)) < [0.5, 0.2, 0.05]])
    lines = classifier(linear=[1, 2, 3])
    auc(lines, X)
    basis = lines._row_map.basis
    np.testing.assert_array_equal(basis.center[1:], 0)
    np.testing.assert_array_equal(basis.factor[1:], 1)


def test_lines_pay_for_their_histograms():
    shares = []
    for linear in ("auto", ["number"]):
        model = classifier(linear=linear)
        auc(model, frame("speed"))
        shares.append(dict(model.privacy_.shares)["knots"])
    assert shares[1] == pytest.approx(shares[0] + 0.01)
