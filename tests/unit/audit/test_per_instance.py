"""The epsilon of each row: conversion, refusals, and what must not get out."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, load
from skmixdp.audit import per_instance_epsilon
from skmixdp.model_selection import PrivateSearchCV, public_params
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PerInstanceRecord, epsilon_of
from skmixdp.privacy.accounting.gaussian import epsilons_for
from tests.rounding import assert_relative

pytestmark = pytest.mark.filterwarnings("ignore")


def fit(digits, **parameters):
    X, y, X_pub, y_pub = digits
    parameters = {"algorithm": "noisy-gd", "n_steps": 5, "epsilon": 3.0, "random_state": 0} | parameters
    clf = MixedDPLogisticRegression(**({"record_per_instance": True} | parameters))
    return clf.fit(X, y, X_pub=X_pub, y_pub=y_pub)


@pytest.fixture(scope="module")
def recorded(digits):
    return fit(digits)


def test_epsilons_are_at_most_the_stated_one(recorded, digits):
    epsilons = per_instance_epsilon(recorded)
    assert epsilons.shape == (len(digits[0]),)
    assert 0 < epsilons.min() < 0.9 * epsilons.max()
    assert 0.9 * 3 < epsilons.max() <= 3
    mu = recorded.per_instance_.mu
    assert epsilons[7] == pytest.approx(epsilon_of(1 / mu[7], 1, delta=1e-5), rel=1e-8)


def test_a_larger_delta_has_smaller_epsilons(recorded):
    assert np.all(per_instance_epsilon(recorded, delta=1e-3) < per_instance_epsilon(recorded))
    with pytest.raises(ValueError, match="delta"):
        per_instance_epsilon(recorded, delta=2)


def test_discrete_noise_is_converted_as_the_library_does():
    record = PerInstanceRecord(3, "add_or_remove_one", "discrete", picklable=False)
    record.add(np.array([0.0, 0.5, 1.0]), 1.0, 2.0)
    expected = [
        0,
        epsilon_of(4.0, 1, delta=1e-5, noise="discrete"),
        epsilon_of(2.0, 1, delta=1e-5, noise="discrete"),
    ]
    assert_relative(record.epsilon(1e-5), expected, 1e-9)


def test_other_steps_of_a_pipeline_count_in_full(digits):
    X, y, *_ = digits
    scaler = NoisyScaler(epsilon=1.0, delta=1e-6, bounds=(0, 16))
    clf = MixedDPLogisticRegression(
        "noisy-gd",
        n_steps=3,
        classes=range(10),
        rows=RowMapping(norm=None),
        learning_rate=0.1,
        record_per_instance=True,
    )
    pipe = make_pipeline(scaler, clf).fit(X, y)
    alone, whole = per_instance_epsilon(pipe[-1], 1e-5), per_instance_epsilon(pipe, 1e-5)
    mu = np.hypot(pipe[-1].per_instance_.mu, pipe[0].privacy_.mu)
    assert_relative(whole, epsilons_for(mu, 1e-5), 1e-8)
    assert np.all(whole > alone)


def test_the_record_shows_nothing(recorded):
    text = f"{recorded!r} {recorded.per_instance_!r} {recorded.privacy_} {recorded._repr_html_()}"
    assert "340 rows: its values are private" in text
    private = np.sort([recorded.per_instance_.mu, per_instance_epsilon(recorded)])[:, :50]
    assert not any(f"{value:.5f}" in text for value in private.ravel())
    assert "per_instance" not in recorded.privacy_.to_json()


def test_a_recorded_estimator_is_not_pickled_unless_told(recorded, digits):
    with pytest.raises(TypeError, match=r"del estimator\.per_instance_"):
        pickle.dumps(recorded)
    allowed = fit(digits, record_per_instance="picklable")
    np.testing.assert_array_equal(
        per_instance_epsilon(pickle.loads(pickle.dumps(allowed))), per_instance_epsilon(allowed)
    )
    without = copy.copy(recorded)
    del without.per_instance_
    assert not hasattr(pickle.loads(pickle.dumps(without)), "per_instance_")


def test_a_saved_model_has_no_record(digits, tmp_path):
    clf = fit(digits, record_per_instance="picklable")
    clf.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert not hasattr(loaded, "per_instance_")
    np.testing.assert_array_equal(loaded.coef_, clf.coef_)
    assert clf.per_instance_.mu.tobytes() not in (tmp_path / "model.safetensors").read_bytes()


def test_a_later_fit_without_a_record_has_none(digits):
    X, y, X_pub, y_pub = digits
    clf = fit(digits)
    clf.set_params(record_per_instance=False).fit(X, y, X_pub=X_pub, y_pub=y_pub)
    with pytest.raises(ValueError, match="record_per_instance=True"):
        per_instance_epsilon(clf)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"batch_size": 100}, "batch_size=None"),
        ({"algorithm": "modelmix"}, "another algorithm"),
        ({"record_per_instance": "yes"}, "record_per_instance='yes'"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_any_release(parameters, words, digits):
    with pytest.raises(ValueError, match=words):
        fit(digits, **parameters)


def test_dask_arrays_are_refused(digits):
    da = pytest.importorskip("dask.array")
    X, y, X_pub, y_pub = digits
    with pytest.raises(ValueError, match=r"X\.compute\(\)"):
        fit((da.from_array(X), y, X_pub, y_pub))


def test_regressions_are_recorded(digits):
    X, y, X_pub, y_pub = digits
    model = MixedDPRidge(epsilon=3.0, n_steps=5, record_per_instance=True)
    model.fit(X, y.astype(float), X_pub=X_pub, y_pub=y_pub.astype(float))
    assert np.all(per_instance_epsilon(model) <= 3.0)


@pytest.mark.parametrize("strategy", ["grid", "random"])
def test_a_search_records_nothing(strategy, digits):
    X, y, X_pub, y_pub = digits
    head = MixedDPLogisticRegression("noisy-gd", record_per_instance=True)
    search = PrivateSearchCV(head, {"l2": [0.0, 0.1]}, epsilon=3.0, delta=1e-3, strategy=strategy)
    with pytest.raises(ValueError, match="leave out the rest of the search"):
        search.fit(X, y, **public_params(X_pub, y_pub))
