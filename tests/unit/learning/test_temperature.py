"""The private temperature: confidence is accuracy, and no row moves the sums further than is stated."""

import math

import numpy as np
import pytest

from tests.asking import answered, exact_sums
from tests.private_names import (
    _LOGARITHMS,
    _USUAL,
    Block,
    InMemoryRows,
    _overconfidence,
    at_temperature,
    at_temperature_of_rare,
    temperature_share,
)
from tests.rounding import assert_close

SCALES = 2.0**_LOGARITHMS
N = 20_000


def calibrated(k, n=N, seed=0):
    """Outputs (n, k) whose softmax are the probabilities of the labels (n,)."""
    drawn = np.random.default_rng(seed)
    Z = 1.5 * drawn.normal(size=(n, max(k, 2)))
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < drawn.random((n, 1))).sum(axis=1)
    return (Z[:, 1:] - Z[:, :1] if k == 1 else Z), np.minimum(y, max(k, 2) - 1)


def asked(W, mu=1.0, multiplier=1.0):
    """The query of the temperature for a head (k, d), and the generator that waits for its answer."""
    rounds = at_temperature(W, multiplier, has_classes=True, mu=mu)
    return next(rounds), rounds


def scaled(W, X, y, noise=0.0):
    """The head that the temperature makes of a head, with some noise in the sums."""
    query, rounds = asked(W)
    return answered(rounds, exact_sums(query, InMemoryRows(X, y)) + noise)


@pytest.mark.covering
@pytest.mark.parametrize("factor", [1 / 8, 0.3, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_a_head_that_is_too_sure_or_not_sure_enough_is_calibrated(k, factor):
    """Outputs are the rows; one output is the logit of the second of two classes."""
    Z, y = calibrated(k)
    found = scaled(factor * np.eye(k), Z, y)
    np.testing.assert_allclose(found, np.eye(k), rtol=0.1, atol=1e-12)


def test_a_scale_beyond_the_range_ends_at_its_ends():
    Z, y = calibrated(3)
    assert_close(scaled(1e3 * np.eye(3), Z, y), 1e3 * 2.0**-4 * np.eye(3))
    assert_close(scaled(1e-3 * np.eye(3), Z, y), 1e-3 * 2.0**3 * np.eye(3))


def test_predictions_stay_and_noise_that_is_no_rising_line_is_tolerated():
    Z, y = calibrated(3)
    noise = 0.01 * N * np.random.default_rng(0).normal(size=(20, len(SCALES)))
    for drawn in noise:
        head = scaled(4 * np.eye(3), Z, y, drawn)
        np.testing.assert_allclose(head, head[0, 0] * np.eye(3), rtol=0, atol=1e-12)
        assert 0.5 < head[0, 0] < 2


def test_the_temperature_follows_the_noisy_sums():
    Z, y = calibrated(3)
    lower, plain, higher = (scaled(np.eye(3), Z, y, shift * N)[0, 0] for shift in (0.1, 0.0, -0.1))
    assert lower < 0.8 * plain and higher > 1.25 * plain


def test_noise_alone_leads_to_the_usual_scale_and_not_to_the_ends():
    noise = np.random.default_rng(0).normal(size=(200, len(SCALES)))
    found = []
    for drawn in (np.zeros(len(SCALES)), *noise):
        query, rounds = asked(np.eye(3), multiplier=30.0)
        head = answered(rounds, 30.0 * query.releases[0].sensitivity * drawn)
        found.append(math.log2(head[0, 0]))
    assert found[0] == pytest.approx(_USUAL)
    assert abs(np.mean(found) - _USUAL) < 0.2 and np.std(found) < 0.8 and np.max(np.abs(found)) < 3


def test_rows_of_its_own_make_a_head_no_surer_if_there_is_little_noise():
    """The head is right about all its 100 rows, so their sums alone would make it as sure as possible."""
    y = np.arange(100) % 3
    ((query, rounds), (_, surer)) = (asked(np.eye(3), mu, multiplier=1e-3) for mu in (1e4, 2.9))
    sums = exact_sums(query, InMemoryRows(2 * np.eye(3)[y], y))
    found = [answered(each, sums)[0, 0] for each in (rounds, surer)]
    assert 1 < found[0] < 2.5 and found[1] > 6


def test_a_head_of_zeros_and_one_that_diverged_stay_what_they_are():
    Z, y = calibrated(3, 100)
    np.testing.assert_array_equal(scaled(np.zeros((3, 3)), Z, y), 0)
    with np.errstate(all="ignore"):
        assert np.isnan(scaled(np.full((3, 3), np.nan), Z, y)).all()


def test_the_sums_rise_with_the_scale_through_0():
    Z, y = calibrated(4)
    _, terms = _overconfidence(Z.copy(), Block(Z, y, np.ones(N)), SCALES)
    sums = terms.sum(axis=0)
    assert np.all(np.diff(sums) > 0) and sums[0] < 0 < sums[-1]
    assert abs(sums[list(_LOGARITHMS).index(0.0)]) < 6 * math.sqrt(N) / 2


def asked_of_labels(W):
    """The same as :func:`asked` for several labels."""
    rounds = at_temperature(W, 1.0, has_classes=False, mu=1.0)
    return next(rounds), rounds


@pytest.mark.covering
@pytest.mark.parametrize("factor", [1 / 8, 1.0, 4.0])
@pytest.mark.parametrize("k", [2, 7])
def test_a_head_of_several_labels_is_calibrated(k, factor):
    drawn = np.random.default_rng(0)
    Z = 2 * drawn.normal(size=(N, k)) - 1
    y = (drawn.random(Z.shape) < 1 / (1 + np.exp(-Z))).astype(np.int8)
    query, rounds = asked_of_labels(factor * np.eye(k))
    found = answered(rounds, exact_sums(query, InMemoryRows(Z, y)))
    np.testing.assert_allclose(found, np.eye(k), rtol=0.1, atol=1e-12)


def test_its_share_follows_public_facts():
    share = temperature_share
    assert share(0.27, 100) == share(1e-6, 10**4) == share(0.27, 290) == 0
    assert share(0.27, 310) == 0.03 and share(0.27, 10**6) == 0.002
    assert share(0.27, 10**4) == pytest.approx(8 / (0.27 * 10**4 * 0.01) ** 2, rel=1e-12)


# -- a rare class ------------------------------------------------------------------------------


def rare(W, logit, multiplier=1e-3, mu=1.0, n_rare=400.0):
    """The rounds of the temperature of a rare class, for a head with the constant 1 in its last column."""
    return at_temperature_of_rare(W, multiplier, mu=mu, logit=logit, n_rare=n_rare, constant=1.0)


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_rare_class_is_calibrated_about_its_rows(sign, factor):
    drawn, start = np.random.default_rng(0), -4.0
    z = drawn.normal(size=4 * N)
    y = drawn.random(len(z)) < 1 / (1 + np.exp(-start - z))
    y, X = (y if sign > 0 else ~y).astype(int), np.column_stack([sign * z, np.ones(len(z))])
    # Factors change the slope, and hardly the mean prediction.
    pivot = start + 1.0
    W = np.array([[factor, sign * (pivot + factor * (start - pivot))]])
    rows, rounds = InMemoryRows(X, y), rare(W, sign * start, n_rare=float((y == (sign > 0)).sum()))
    second = rounds.send((exact_sums(next(rounds), rows),))
    found = answered(rounds, exact_sums(second, rows))
    # The logit about which outputs are scaled depends on the factor.
    assert abs(math.log(found[0, 0])) < 0.5 * abs(math.log(factor)) + 0.1


def test_more_is_spent_on_a_class_with_few_rows():
    shares = [temperature_share(0.27, 30_000, rarest) for rarest in (0.5, 0.15, 0.05, 1e-9)]
    assert shares == sorted(shares) and shares[0] == 0.002 and shares[-1] == 0.03
    assert temperature_share(0.27, 100, 0.01) == 0
