"""One private row that passes the checks decides no warning, message, report or line of a log."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, MixedDPRidge, Typical
from skmixdp.inference import private_inference
from skmixdp.preprocessing import NoisyScaler
from tests.secrets import Heard

N = 1000
RNG = np.random.default_rng(0)
ONE_HOT = np.eye(3)[RNG.integers(3, size=N)]
NORMAL = RNG.normal(size=(N, 3))
LABELS = RNG.integers(2, size=N)
TINY = {"epsilon": 0.01, "random_state": 0}


def classifier():
    return MixedDPLogisticRegression(classes=[0, 1], **TINY)


#: Entries whose warnings and reports are compared.
ENTRIES = {
    "logistic": lambda X, y: classifier().fit(X, y).privacy_,
    "sparse": lambda X, y: classifier().fit(sp.csr_array(X), y).privacy_,
    "frame": lambda X, y: classifier().fit(pd.DataFrame(X), y).privacy_,
    "ridge": lambda X, y: (
        MixedDPRidge(target_scale=1.0, target_center=0.0, **TINY).fit(X, y.astype(float)).privacy_
    ),
    "additive": lambda X, y: AdditiveDPClassifier(classes=[0, 1], **TINY).fit(X, y).privacy_,
    "scaler": lambda X, y: NoisyScaler(bounds=(0, 1), **TINY).fit(X).privacy_,
    "inference": lambda X, y: (
        private_inference(
            X[:, :2],
            y,
            classes=[0, 1],
            epsilon=2.0,
            scale=dict.fromkeys(range(2), Typical(0.3, 0.5)),
            random_state=0,
        ).privacy_
    ),
}


def changed(rows, value):
    rows = rows.copy()
    rows[-1] = value
    return rows


#: Pairs of rows that differ in the last row.
NEIGHBOURS = {
    "one 2 among zeros and ones": (changed(ONE_HOT, [1, 0, 0]), changed(ONE_HOT, [2, 0, 0])),
    "no row twice, and one": (NORMAL, changed(NORMAL, NORMAL[0])),
    "three in four distinct, and one more": (
        changed(NORMAL[np.arange(N) % 750], NORMAL[0]),
        changed(NORMAL[np.arange(N) % 750], NORMAL[800]),
    ),
    "all rows equal but one": (np.ones((N, 3)), changed(np.ones((N, 3)), [1, 1, 0.5])),
    "a column of zeros but one": (ONE_HOT * [1, 1, 0], changed(ONE_HOT * [1, 1, 0], [0, 0, 1])),
    "a huge row": (NORMAL, changed(NORMAL, 1e150)),
    "a tiny row": (NORMAL, changed(NORMAL, 1e-300)),
    "a negative zero": (ONE_HOT, changed(ONE_HOT, -0.0)),
    "whole numbers but one": (np.round(NORMAL), changed(np.round(NORMAL), 0.25)),
    "a number that float32 does not hold": (np.float32(NORMAL).astype(float), changed(NORMAL, 0.1)),
    "equal columns but for one row": (NORMAL[:, [0, 0, 0]], changed(NORMAL[:, [0, 0, 0]], [1, 2, 3])),
    "a row of zeros": (NORMAL, changed(NORMAL, 0.0)),
}


def said(entry, X, y):
    """All that an entry says, and its report."""
    heard = Heard(lambda: str(ENTRIES[entry](X, y)))
    return heard.error, heard.messages, heard.result


@pytest.mark.parametrize("pair", NEIGHBOURS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_said_is_the_same_for_neighbours(entry, pair):
    left, right = (said(entry, X, LABELS) for X in NEIGHBOURS[pair])
    assert left[0] is None and left == right
