"""Fits that continue from a released head: what they keep, how far they move, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, load
from skmixdp.components import SGD
from skmixdp.components.updates import TowardsStart
from skmixdp.privacy import PrivacyLedger
from tests.rounding import assert_close

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X, Y = make_classification(16000, 12, n_informative=6, flip_y=0.1, random_state=0)
T = 1000 + 50 * (X[:, 0] + X[:, 1]) + np.random.default_rng(0).normal(size=len(X)) * 20
TEST = slice(12000, None)


def classifier(**options):
    return MixedDPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], "random_state": 0} | options)


def ridge(**options):
    return MixedDPRidge(**{"epsilon": 1.0, "random_state": 0} | options)


KINDS = [(classifier, Y), (ridge, T)]


@pytest.mark.parametrize(("made", "target"), KINDS)
def test_few_rows_hardly_move_the_start(made, target):
    first = made().fit(X[:4000], target[:4000])
    few = made(init=first).fit(X[4000:4300], target[4000:4300])
    assert few.score(X[TEST], target[TEST]) > first.score(X[TEST], target[TEST]) - 0.01
    alone = made().fit(X[4000:4300], target[4000:4300])
    assert few.score(X[TEST], target[TEST]) > alone.score(X[TEST], target[TEST])


def test_many_rows_of_another_kind_are_learned():
    first = classifier().fit(X[:4000], 1 - Y[:4000])
    second = classifier(epsilon=8.0, init=first).fit(X[4000:12000], Y[4000:12000])
    assert first.score(X[TEST], Y[TEST]) < 0.4 and second.score(X[TEST], Y[TEST]) > 0.7


@pytest.mark.parametrize(("made", "target"), KINDS)
def test_the_map_is_that_of_the_start_and_nothing_else_is_released(made, target):
    first = made().fit(X[:4000], target[:4000])
    second = made(init=first).fit(X[4000:8000], target[4000:8000])
    assert second._row_map.same_as(first._row_map)
    released = {name for name, _ in second.privacy_.shares}
    assert not released & {"columns", "mean", "directions", "second moment", "scale of the targets"}
    assert second.privacy_.epsilon <= 1.0


def test_the_report_names_the_start_and_what_was_charged():
    ledger = PrivacyLedger(":memory:")
    ledger.add_dataset("march", epsilon=1.0, delta=1e-5)
    first = classifier(ledger=ledger["march"], random_state=None).fit(X[:4000], Y[:4000])
    second = classifier(init=first).fit(X[4000:8000], Y[4000:8000])
    (line,) = [fact for fact in second.privacy_.treated_as_public if "a released head" in fact]
    assert "epsilon=1" in line and "'march'" in line and "add up" in line
    third = classifier(init=second).fit(X[8000:12000], Y[8000:12000])
    assert any("charged to no ledger" in fact for fact in third.privacy_.treated_as_public)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.NotPrivateWarning")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"random_state": 0}, "the noise comes from a seed"),
        ({"classes": None, "random_state": None}, "the classes were read from the private labels"),
    ],
)
def test_a_start_without_a_guarantee_has_no_epsilon_of_its_own(options, words):
    first = classifier(**options).fit(X[:4000], Y[:4000])
    second = classifier(init=first).fit(X[4000:8000], Y[4000:8000])
    (line,) = [fact for fact in second.privacy_.treated_as_public if "a released head" in fact]
    assert f"NO GUARANTEE: {words}" in line and "epsilon=" not in line


def test_classes_are_those_of_the_start_without_a_leak():
    first = classifier().fit(X[:4000], Y[:4000])
    second = classifier(init=first, classes=None).fit(X[4000:8000], Y[4000:8000])
    assert second.classes_.tolist() == [0, 1] and not second.privacy_.leaks


def test_clones_need_a_frozen_start(tmp_path):
    first = classifier().fit(X[:4000], Y[:4000])
    frozen = clone(classifier(init=FrozenEstimator(first))).fit(X[4000:8000], Y[4000:8000])
    second = classifier(init=first).fit(X[4000:8000], Y[4000:8000])
    np.testing.assert_array_equal(frozen.coef_, second.coef_)
    with pytest.raises(ValueError, match=r"FrozenEstimator"):
        clone(second).fit(X[4000:8000], Y[4000:8000])
    second.save(tmp_path / "second.safetensors")
    again = load(tmp_path / "second.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X[TEST]), second.predict_proba(X[TEST]))


@pytest.mark.parametrize(
    ("options", "rows", "words"),
    [
        ({"init": ridge()}, X, "pass a head of the same class"),
        ({"init": classifier()}, X, "init is not fitted"),
        ({"fit_intercept": False}, X, "fit_intercept=False is not that of init"),
        ({"classes": [0, 1, 2]}, X, "are not those of init"),
        ({}, X[:, :5], "fitted to 12 features and X has 5"),
    ],
)
def test_what_does_not_fit_the_start_is_refused_before_the_charge(options, rows, words):
    ledger = PrivacyLedger(":memory:")
    patients = ledger.add_dataset("patients", epsilon=1.0, delta=1e-5)
    first = classifier().fit(X[:4000], Y[:4000])
    second = classifier(**{"init": first, "ledger": patients} | options)
    with pytest.raises((ValueError, TypeError), match=words):
        second.fit(rows[4000:8000], Y[4000:8000])
    assert not patients.charges()


def test_other_names_and_other_targets_are_refused():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    classifier(init=classifier().fit(X[:4000], Y[:4000])).fit(frame[4000:8000], Y[4000:8000])  # had no names
    first = classifier().fit(frame[:4000], Y[:4000])
    with pytest.raises(ValueError, match="names differ"):
        classifier(init=first).fit(frame[frame.columns[::-1]][:4000], Y[:4000])
    one = ridge().fit(X[:4000], T[:4000])
    with pytest.raises(ValueError, match="2 targets per row and init 1"):
        ridge(init=one).fit(X[:4000], np.c_[T, T][:4000])


@pytest.mark.parametrize("rate", [1e160, 1e300])
def test_noise_that_overflows_leaves_the_earlier_head(rate):
    first = classifier().fit(X[:4000], Y[:4000])
    again = classifier(init=first, algorithm="noisy-gd", learning_rate=rate, n_steps=3)
    assert_close(again.fit(X[:4000], Y[:4000]).coef_, first.coef_)


def test_the_shrinkage_is_that_of_james_and_stein():
    update = TowardsStart(SGD())
    start = np.zeros((1, 2))
    shrunk = update.result(np.array([[3.0, 4.0]]), (start, 5.0, None))
    np.testing.assert_allclose(shrunk, [[2.4, 3.2]], atol=1e-12)
    assert update.result(np.array([[3.0, 4.0]]), (start, 30.0, None)).tolist() == [[0.0, 0.0]]
    assert update.result(start, (start, 0.0, None)).tolist() == [[0.0, 0.0]]
