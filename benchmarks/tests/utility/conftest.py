"""The benchmark's settings and problems, and what leaves the rows of a fit."""

from dataclasses import dataclass

import numpy as np
import pytest

from skmixdp.privacy import NoiseSource
from tests.noise import METHOD

TINY = {"adapter": "mixture", "n_train": 400, "n_test": 400, "n_features": 8, "n_classes": 3}


@dataclass(frozen=True)
class Noisy:
    """A release: its source of noise, what it was, the scale that was asked for, and the noise."""

    source: NoiseSource
    exact: np.ndarray
    scale: float
    noise: np.ndarray


def problem_of(options, shots=0, seed=0):
    from benchmarks.utility import data
    from benchmarks.utility.problems import make_problem

    return make_problem(data.load(cache=None, **options), shots, seed)


@pytest.fixture(scope="session")
def config():
    import yaml

    from benchmarks.utility import run

    return yaml.safe_load(run.CONFIG.read_text(encoding="utf-8"))


@pytest.fixture
def log(monkeypatch):
    """Each release from now on."""
    seen = []
    method = vars(NoiseSource)[METHOD]

    def watched(self, array, scale, grid):
        noisy = method(self, array, scale, grid)
        seen.append(Noisy(self, np.array(array), scale, np.ravel(noisy - array)))
        return noisy

    monkeypatch.setattr(NoiseSource, METHOD, watched)
    return seen
