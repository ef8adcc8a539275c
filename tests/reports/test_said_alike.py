"""Fits, scores, evaluations, inference, scalers and searches say the same about the same rows and budget."""

import warnings

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.inference import private_inference
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler

X = np.random.default_rng(0).standard_normal((200, 3))
Y = np.arange(200) % 2
BAD = {"epsilon": 20.0, "delta": 0.05, "random_state": 0}
HEAD = MixedDPLogisticRegression(**BAD, classes=[0, 1])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    FITTED = MixedDPLogisticRegression(**BAD, classes=[0, 1]).fit(X, Y)
PERSONS = np.arange(200) // 2
RELEASES = {
    "fit": lambda **more: HEAD.fit(X, Y, **more),
    "regression": lambda **more: MixedDPRidge(**BAD, target_scale=1.0).fit(X, X[:, 0], **more),
    "private_score": lambda **more: FITTED.private_score(X, Y, epsilon=20.0, **more),
    "private_confusion": lambda **more: FITTED.private_confusion(X, Y, epsilon=20.0, **more),
    "private_evaluation": lambda **more: private_evaluation(FITTED, X, Y, **BAD, **more),
    "private_inference": lambda **more: private_inference(X[:, :1], Y, classes=[0, 1], **BAD, **more),
    "scaler": lambda **more: NoisyScaler(**BAD).fit(X, **more),
    "search": lambda **more: PrivateSearchCV(HEAD, {"l2": [0.1, 1.0]}, **BAD).fit(X, Y, **more),
}


@pytest.mark.parametrize("name", RELEASES)
def test_each_warns_of_epsilon_delta_and_seed_once(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RELEASES[name]()
    said = [str(each.message) for each in caught]
    for words in (
        "epsilon=20 guarantees next to",
        "delta=0.05 is not below 1/n = 0.005",
        "random_state is set",
    ):
        assert len([text for text in said if text.startswith(words)]) == 1, (words, said)


@pytest.mark.parametrize("name", [name for name in RELEASES if name != "search"])
def test_each_says_the_same_of_persons_and_counts_these(name):
    with pytest.warns(
        UserWarning, match=r"not below 1/n = 0\.01, .*allows all rows of a person to be"
    ) as caught:
        RELEASES[name](groups=PERSONS)
    assert len([each for each in caught if "not below 1/n" in str(each.message)]) == 1
