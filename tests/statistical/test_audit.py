"""Audits of every algorithm: no bound exceeds the claim, and half the noise is caught.

Keys of the noise come from a fixed sequence, so that the verdict is the same every day. Were they fresh, a
bound of confidence ``1 - 1e-6`` would exceed a true claim less than once in a million runs.
"""

import numpy as np
import pytest

from skmixdp import AdditiveDPClassifier
from skmixdp.audit import audit_epsilon
from tests.audit_problems import draw, draw_targets, factory, fix_noise, one_of_each, scale_noise
from tests.catalog import ALGORITHMS

NAMES = [*ALGORITHMS, "ridge, adamix", "ridge, noisy-gd"]


@pytest.fixture(autouse=True)
def _fixed(monkeypatch):
    fix_noise(monkeypatch)


def problem(name, **sizes):
    return draw_targets(**sizes) if name.startswith("ridge") else draw(**sizes)


# `make test` audits each algorithm in one of two ways, and `make test-all` in both.
@pytest.mark.parametrize("name", one_of_each(NAMES, 0, 2))
def test_no_bound_from_many_fits_exceeds_the_claim(name):
    result = audit_epsilon(
        factory(name, 1.0), **problem(name), n_fits=10, confidence=1 - 1e-6, random_state=0
    )
    assert not result.exceeds_claim
    assert result.measured_mu_interval[0] < result.claimed_mu


@pytest.mark.parametrize("name", one_of_each(NAMES, 1, 2))
def test_no_bound_from_one_fit_exceeds_the_claim(name):
    result = audit_epsilon(
        factory(name, 1.0), **problem(name), n_canaries=24, confidence=1 - 1e-6, random_state=0
    )
    assert not result.exceeds_claim


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"n_fits": 20}, {"n_canaries": 24}, {"n_fits": 20, "view": "model"}])
def test_no_bound_of_an_additive_model_exceeds_the_claim(options):
    rows = draw(n=400, d=3)
    data = {"X": rows["X"], "y": (np.abs(rows["X"][:, 0]) > 1).astype(int)}
    result = audit_epsilon(
        lambda: AdditiveDPClassifier(epsilon=8.0, delta=1e-3, classes=[0, 1]),
        **data,
        **options,
        confidence=1 - 1e-6,
        random_state=0,
    )
    assert not result.exceeds_claim


@pytest.mark.slow
def test_half_the_noise_is_caught_by_many_fits(monkeypatch):
    arguments = draw(n=30) | {"n_fits": 120, "random_state": 0}
    honest = audit_epsilon(factory("noisy-gd", 2.0, n_steps=1), **arguments)
    scale_noise(monkeypatch, 0.5)
    halved = audit_epsilon(factory("noisy-gd", 2.0, n_steps=1), **arguments)
    assert not honest.exceeds_claim
    assert honest.measured_mu == pytest.approx(2.0, abs=0.6)
    assert halved.exceeds_claim and halved.mu > halved.claimed_mu
    assert halved.measured_mu_interval[0] > halved.claimed_mu


def test_too_little_noise_is_caught_by_one_fit(monkeypatch):
    arguments = draw(n=400, d=200, n_classes=10) | {
        "n_canaries": 400,
        "n_guesses": 80,
        "confidence": 0.95,
        "random_state": 0,
    }
    honest = audit_epsilon(factory("noisy-gd", 1.0, n_steps=1), **arguments)
    scale_noise(monkeypatch, 0.5)
    halved = audit_epsilon(factory("noisy-gd", 1.0, n_steps=1), **arguments)
    assert not honest.exceeds_claim and honest.epsilon > 0
    assert halved.measured_mu_interval[0] > halved.claimed_mu == pytest.approx(1.0)
    # The bound from guesses has less power: it certifies a mu of about half the true one.
    scale_noise(monkeypatch, 0.6)
    lower = audit_epsilon(factory("noisy-gd", 1.0, n_steps=1), **arguments)
    assert lower.exceeds_claim and lower.mu > lower.claimed_mu


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_measured_mu_is_close_to_the_claim_and_half_the_noise_is_caught(monkeypatch, name):
    """With 480 fits, measured mu has a standard error of 0.10 around 1 and of 0.11 around 2."""
    arguments = problem(name, n=50) | {"n_fits": 480, "random_state": 0}
    honest = audit_epsilon(factory(name, 1.0), **arguments, confidence=1 - 1e-6)
    assert not honest.exceeds_claim
    assert 0.45 < honest.measured_mu < 1.55
    scale_noise(monkeypatch, 0.5)
    halved = audit_epsilon(factory(name, 1.0), **arguments, confidence=0.95)
    assert halved.exceeds_claim
    assert halved.measured_mu_interval[0] > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noisy-gd", "adamix", "dope-sgd", "pda-dpmd, cosine"])
def test_half_the_noise_is_caught_by_one_fit_of_each_kind(monkeypatch, name):
    arguments = draw(n=1000, d=400, n_classes=10) | {"n_canaries": 1000, "n_guesses": 200, "random_state": 0}
    honest = audit_epsilon(factory(name, 1.0, n_steps=1), **arguments, confidence=0.999)
    assert not honest.exceeds_claim
    scale_noise(monkeypatch, 0.5)
    halved = audit_epsilon(factory(name, 1.0, n_steps=1), **arguments)
    assert halved.mu > halved.claimed_mu
    assert np.isfinite(halved.epsilon) and halved.epsilon > honest.epsilon
