"""The noise in class counts and in the comparison of adjustments has the scale that the report states."""

import math
from functools import partial

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.privacy import NoiseSource, noise_multiplier_for
from tests.private_names import (
    GaussianMechanism,
    InMemoryRows,
    counts_query,
    in_class,
    recorded_releases,
    release,
)
from tests.statistical.test_noise_scale import assert_standard_normal

K = 20
Y = np.repeat(np.arange(K), np.arange(20, 20 + 8 * K, 8))
X = np.random.default_rng(0).normal(size=(len(Y), 3))


def noisy_counts(n_draws, multiplier):
    rows = InMemoryRows(np.zeros((60, 1)), np.arange(60) % 20)
    noise, draws, flags = NoiseSource(0), [], partial(in_class, n_classes=20)
    for _ in range(n_draws):
        mechanism = GaussianMechanism(multiplier, 1, noise)
        mechanism.begin_step(None)
        (answer,) = release(rows, [(mechanism, counts_query(np.zeros((0, 1)), flags))])
        draws.append(answer.arrays[0] - 3)
    return np.concatenate(draws)


def test_counts_carry_the_noise_of_their_multiplier():
    assert_standard_normal(noisy_counts(100, 7.0) / 7.0)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"logit_adjustment": 1.0}, {"logit_adjustment": 1.0, "class_weight": "balanced"}],
    ids=["auto", "adjusted", "balanced"],
)
def test_a_fit_adds_the_noise_of_its_shares(parameters):
    offs, balanced = [], "class_weight" in parameters
    for seed in range(16):  # 320 draws
        terms = {"epsilon": 8.0, "rows": RowMapping(geometry=False), "random_state": seed}
        head = MixedDPLogisticRegression(classes=range(K), **terms, **parameters)
        with recorded_releases() as records:
            head.fit(X, Y)
        spent = dict(head.privacy_.shares)
        whole = noise_multiplier_for(8.0, 1e-5, n_steps=1)
        # The start has counted the classes; with balanced weights it is at zero.
        names = ["class counts"] + ["class shares"] * balanced
        counts = [each for each in records if each.arrays[0].shape == (K,)]
        assert len(counts) == len(names)
        for name, record in zip(names, counts, strict=True):
            # The stated sensitivity includes the rounding of sums in float32.
            stated = record.query.releases[0].sensitivity
            assert 1 <= stated < 1.02
            assert record.scales[0] == pytest.approx(stated * whole / math.sqrt(spent[name]), rel=1e-6)
            if name == names[0]:  # shares of balanced rows are those of their weights
                offs.append((record.arrays[0] - np.bincount(Y)) / record.scales[0])
        if not parameters:
            (compared,) = (each for each in records if each.arrays[0].shape == (3,))
            scale = whole * math.sqrt(3 / spent["strength of the adjustment"])
            assert scale <= compared.scales[0] < 1.02 * scale
        # What was stated of all releases is the whole budget, and no more.
        stated = [
            (part.sensitivity, s) for r in records for part, s in zip(r.query.releases, r.scales, strict=True)
        ]
        total = sum(sensitivity**2 / scale**2 for sensitivity, scale in stated)
        assert total == pytest.approx(1 / whole**2, rel=1e-6)
    assert_standard_normal(np.concatenate(offs))
