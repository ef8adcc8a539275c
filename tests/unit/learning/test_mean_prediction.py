"""Calibration in the large: mean predictions become shares, and no row moves sums further than is stated."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from tests.asking import answered, exact_sums
from tests.private_names import InMemoryRows, MultilabelLoss, at_shares, classification_loss

N = 5000
RNG = np.random.default_rng(0)


def loss_of(k, of):
    return MultilabelLoss(k) if of == "labels" else classification_loss(max(k, 2))


def asked(W, of, logits, multiplier=1e-9, n_rows=N):
    """The query for a head (k, k) with an intercept in the last column, and what waits for its answer."""
    terms = {"loss": loss_of(len(W), of), "n_rows": n_rows, "constant": 0.5}
    rounds = at_shares(W, multiplier, logits=np.asarray(logits, np.float64), **terms)
    return next(rounds), rounds


@pytest.mark.parametrize("share", [0.005, 0.1, 0.6, 0.97])
@pytest.mark.parametrize("off", [-0.7, -0.1, 0.0, 0.2])
def test_the_mean_prediction_of_two_classes_becomes_their_share(share, off):
    outputs = logit(share) + RNG.normal(size=N)
    y = (np.arange(N) < share * N).astype(int)
    X = np.column_stack([outputs + off, np.full(N, 0.5)])
    query, rounds = asked(np.array([[1.0, 0.0]]), "classes", [logit(share)])
    W = answered(rounds, exact_sums(query, InMemoryRows(X, y)))
    before, after = (abs(expit(X @ head[0]).mean() - y.mean()) for head in ([[1.0, 0.0]], W))
    assert W[0, 0] == 1 and after <= max(0.55 * before, 0.002 * share)


@pytest.mark.parametrize("of", ["classes", "labels"])
def test_those_of_classes_and_labels_become_their_shares(of):
    shares = np.array([0.8, 0.15, 0.05])
    Z = np.log(shares) + 0.7 * RNG.normal(size=(N, 3))
    y = np.repeat(np.arange(3), np.round(shares * N).astype(int))
    labels = (y[:, np.newaxis] == np.arange(3)).astype(int) if of == "labels" else y
    X = np.column_stack([Z + np.array([0.2, -0.4, 0.3]), np.full(N, 0.5)])
    start = np.column_stack([np.eye(3), np.zeros(3)])
    logits = logit(shares) if of == "labels" else np.log(shares)
    query, rounds = asked(start, of, logits)
    W = answered(rounds, exact_sums(query, InMemoryRows(X, labels)))
    probabilities = expit if of == "labels" else lambda Z: softmax(Z, axis=1)
    before, after = (np.abs(probabilities(X @ head.T).mean(axis=0) - shares) for head in (start, W))
    assert after.sum() < 0.35 * before.sum()
    np.testing.assert_array_equal(W[:, :3], np.eye(3))


def test_noise_alone_moves_little():
    moves = []
    for drawn in np.random.default_rng(1).normal(size=200):
        _, rounds = asked(np.array([[0.0]]), "classes", [logit(0.01)], multiplier=400.0)
        moves.append(answered(rounds, np.array([400.0 * drawn, 2 * N * 0.01 * 0.99]))[0, 0] * 0.5)
    assert np.max(np.abs(moves)) < 0.1
