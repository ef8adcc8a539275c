"""Whatever a row or a person holds, it moves what an inference releases by no more than is stated."""

import numpy as np
import pytest

from skmixdp.inference import private_inference
from tests.replay import check_neighbours

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)) * [1.0, 30.0] + [0.0, 100.0]
Y = (X[:, 0] + RNG.logistic(size=N) > 0).astype(int)
W = RNG.lognormal(size=N)
T = 5 * X[:, 0] + RNG.normal(size=N)

#: Rows that take the place of the first, with its label and its target.
ODD = [
    *(([0.0, 0.0], 0, 0.0), ([1e300, -1e300], 1, 1e300), ([5e-324, -5e-324], 1, -1e300)),
    *(([np.finfo(float).max, 100.0], 0, 5e-324), ([0.0, 1e8], 1, 1e5), ([3.0, 190.0], 0, -500.0)),
]
KINDS = [
    ("logistic", {"classes": [0, 1]}, Y),
    ("logistic", {"classes": [0, 1], "cov": "robust"}, Y),
    ("logistic", {"classes": [0, 1, 2]}, Y),
    ("gaussian", {}, T),
    ("gaussian", {"cov": "robust", "target_scale": (0.0, 5.0)}, T),
    ("gaussian", {"scale": {0: (0.0, 1.0), 1: (100.0, 30.0)}}, T),
    ("logistic", {"classes": [0, 1], "sample_weight": W}, Y),
    ("gaussian", {"sample_weight": W, "max_sample_weight": 2.0}, T),
]

#: Weights of the odd rows.
ODD_WEIGHTS = [0.0, 1e300, 5e-324, 1.0, 2.0**64, 1e-3]


def path(rows, labels, family, options):
    def run(calls):
        return private_inference(rows, labels, family=family, epsilon=40.0, delta=1e-3, **options)

    return run


@pytest.mark.parametrize("neighbour", range(len(ODD)))
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_rows(monkeypatch, kind, neighbour):
    family, options, labels = KINDS[kind]
    row, label, target = ODD[neighbour]
    other, others = X.copy(), labels.copy()
    other[0], others[0] = row, label if family == "logistic" else target
    theirs = dict(options)
    if "sample_weight" in options:
        theirs["sample_weight"] = np.r_[ODD_WEIGHTS[neighbour], W[1:]]
    paths = path(X, labels, family, options), path(other, others, family, theirs)
    one = check_neighbours(monkeypatch, *paths, 0)
    assert one.stated == pytest.approx(float(one.facts["outcome.privacy_.mu"]), rel=1e-3)
    assert one.stated <= float(one.facts["outcome.privacy_.mu"]) * (1 + 1e-9)


@pytest.mark.parametrize("neighbour", range(len(ODD)))
@pytest.mark.parametrize("family", ["logistic", "gaussian"])
def test_persons(monkeypatch, family, neighbour):
    """A person of one row gets 40 rows more, or other rows."""
    row, label, target = ODD[neighbour]
    labels, options = (Y, {"classes": [0, 1]}) if family == "logistic" else (T, {})
    groups = np.r_[0, np.arange(N - 1) // 3 + 1]
    more = np.r_[np.tile(row, (41, 1)), X[1:]]
    others = np.r_[np.full(41, label if family == "logistic" else target), labels[1:]]
    one = path(X, labels, family, {**options, "groups": groups})
    other = path(more, others, family, {**options, "groups": np.r_[np.zeros(41, int), groups[1:]]})
    check_neighbours(monkeypatch, one, other, 0, each_row=False)
