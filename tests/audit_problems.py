"""Small data, estimators and noise for audits."""

import random

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from tests.catalog import ALGORITHMS

DELTA = 1e-5

#: A unit row does not reach the bound on its part in these, or not in every step: rows keep their length.
LONG_ROWS = ("dpzero", "pazo", "coupling", "modelmix, coupling")


def draw(n=100, d=8, n_classes=4, seed=0):
    """Private and public rows, as arguments of ``audit_epsilon``."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, d))
    y, y_pub = np.arange(n) % n_classes, np.arange(24) % n_classes
    X, X_pub = (centres[labels] + rng.normal(size=(len(labels), d)) for labels in (y, y_pub))
    return {"X": X, "y": y, "X_pub": X_pub, "y_pub": y_pub}


def draw_targets(n=100, d=8, seed=0):
    """The same with measured targets."""
    data = draw(n, d, seed=seed)
    for rows, targets in (("X", "y"), ("X_pub", "y_pub")):
        data[targets] = data[rows][:, 0] + 0.1 * data[targets]
    return data


def factory(name, mu, n_steps=2, **options):
    """Makes estimators of a catalog's algorithm that claim ``mu`` for their releases together."""
    kind = MixedDPRidge if name.startswith("ridge") else MixedDPLogisticRegression
    algorithm = ALGORITHMS[name.removeprefix("ridge, ")]
    parameters = {
        "epsilon": None,
        "delta": DELTA,
        "noise_multiplier": np.sqrt(n_steps) / mu,
        "n_steps": n_steps,
        "rows": RowMapping(norm=None if name.startswith(LONG_ROWS) else "unit"),
        "scale": False,
    }
    return lambda: kind(algorithm, **(parameters | options))


def one_of_each(names, part=0, n_parts=1):
    """Parameters of a test: of each algorithm the first name, and the others marked slow."""
    kinds = [(name.split(",")[0], type(ALGORITHMS[name.removeprefix("ridge, ")])) for name in names]
    quick = [number for number, kind in enumerate(kinds) if kind not in kinds[:number]][part::n_parts]
    return [
        pytest.param(name, marks=() if number in quick else pytest.mark.slow)
        for number, name in enumerate(names)
    ]


def fix_noise(monkeypatch, seed=0):
    """The same keys of cryptographic noise in every run, without a seed that an estimator knows of."""
    monkeypatch.setattr("skmixdp.privacy.noise.secrets.randbits", random.Random(seed).getrandbits)


def scale_noise(monkeypatch, factor):
    """Plant an error: normal draws that are too small by a factor."""
    from skmixdp.privacy import NoiseSource

    draws = NoiseSource.normal
    monkeypatch.setattr(NoiseSource, "normal", lambda self, shape: factor * draws(self, shape))
