"""The comparison of one fit of several labels with others."""

import math

import numpy as np

from benchmarks.utility import several_labels
from skmixdp.privacy import epsilon_of, mu_of_budget


def test_no_row_is_in_two_pairs():
    X, y = np.arange(21.0)[:, np.newaxis], np.arange(21)
    means, labels = several_labels.pairs(X, y, 21, np.random.default_rng(0))
    assert means.shape == (10, 1) and labels.sum() == 20 and labels.sum(axis=0).max() == 1
    np.testing.assert_allclose(means[:, 0], labels @ y / 2, atol=1e-12)


def test_all_methods_learn_and_fits_apart_share_one_budget(monkeypatch, capsys):
    own = np.random.default_rng(0)
    X = own.normal(size=(3000, 5))
    y = (X @ own.normal(size=(5, 3)) > 0).astype(int)
    monkeypatch.setitem(several_labels.DATA, "census", lambda rng: (X[:2000], y[:2000], X[2000:], y[2000:]))
    monkeypatch.setattr(several_labels, "_STEPS", 20)
    asked = []
    of = several_labels.MixedDPLogisticRegression
    monkeypatch.setattr(
        several_labels, "MixedDPLogisticRegression", lambda **kw: asked.append(kw["epsilon"]) or of(**kw)
    )
    several_labels._parts.cache_clear()
    several_labels.main(["--data", "census", "--epsilon", "3", "--seeds", "1", "--public", "50"])
    several_labels._parts.cache_clear()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 3
    assert all(float(row.split("|")[5].split()[0]) > 80 for row in rows)
    whole, *apart = asked
    assert whole == 3.0 and len(apart) == 3
    together = math.sqrt(sum(mu_of_budget(epsilon, several_labels.DELTA) ** 2 for epsilon in apart))
    assert epsilon_of(1 / together, 1, delta=several_labels.DELTA) <= 3.0 * (1 + 1e-6)
