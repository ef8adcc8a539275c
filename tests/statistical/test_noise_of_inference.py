"""Every release of an inference has the noise of its sensitivity and share, and all use up the budget.

The sensitivities are written here as they are defined, with R the root of the number of columns and 1. The
draws must be accepted, and rejected with 2/3 and 3/2 of the noise. Runs are not seeded; a sound path fails
with a probability below 1e-6.
"""

import math

import numpy as np
import pytest

from skmixdp import MixedDPPoissonRegressor
from skmixdp.inference import private_inference
from skmixdp.privacy import mu_of_budget
from tests.noise import FAULTS, assert_energies, recorded

N, D, N_RUNS = 3000, 5, 12
R = math.sqrt(D + 1)
TERMS = {"epsilon": 8.0, "delta": 1e-5}
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D)) * 10.0 ** np.arange(D)
T = X[:, 0] + rng.normal(size=N)
Y = (T > 0).astype(int)
W = rng.lognormal(size=N)
C = rng.poisson(np.exp(X[:, 0] / 2))
#: Rows that tell centre and spread of columns and targets.
PUBLIC = {"X_pub": X[:30], "y_pub": Y[:30]}

COLUMNS = [math.sqrt(D)] * 3
#: What a row adds at most to a sum whose cut follows from released numbers.
BY_CUT = None


def steps(score, curvature):
    return [1.0, *[score, curvature] * 8, score]


def counts(last=()):
    """Histograms of counts and exposures, rate, six steps, histograms, three steps."""
    return [math.sqrt(2), 1.0, 1.0, *[BY_CUT] * 12, math.sqrt(2), *[BY_CUT] * 5, *last]


def rates():
    """Histograms, rate, second moment, six steps, histograms, three steps, and the level."""
    return [math.sqrt(2), 1.0, 1.0, R**2, *[BY_CUT] * 6, math.sqrt(2), *[BY_CUT] * 3, 1.0, 1.0]


def least_squares(last):
    return [R**2, 4 * R, 1.0, BY_CUT, 1.0, BY_CUT, last]


#: Arguments, and the sensitivities of all releases in their order.
PATHS = {
    "two classes": ({"y": Y, "classes": [0, 1]}, [*COLUMNS, *steps(R, R**2 / 4)]),
    "three classes": ({"y": Y, "classes": [0, 1, 2]}, [*COLUMNS, *steps(math.sqrt(2) * R, R**2 / 2)]),
    "robust errors": ({"y": Y, "classes": [0, 1], "cov": "robust"}, [*COLUMNS, *steps(R, R**2 / 4), R**2]),
    "weights": ({"y": Y, "classes": [0, 1], "sample_weight": W}, [*COLUMNS, 1.0, *steps(R, R**2 / 4), R**2]),
    "persons": (
        {"y": Y, "classes": [0, 1], "groups": np.arange(N) // 2},
        [*COLUMNS, *steps(R, R**2 / 4), R**2],
    ),
    "least squares": ({"y": T, "family": "gaussian"}, [*COLUMNS, 1.0, 1.0, 1.0, *least_squares(BY_CUT)]),
    "robust least squares": (
        {"y": T, "family": "gaussian", "cov": "robust", "target_scale": (0.0, 2.0)},
        [*COLUMNS, *least_squares(BY_CUT)],
    ),
    "public rows": ({"y": Y, **PUBLIC}, steps(R, R**2 / 4)),
    "public targets": (
        {"y": T, "family": "gaussian", "X_pub": X[:30], "y_pub": T[:30]},
        least_squares(BY_CUT),
    ),
    "replace one": (
        {"y": Y, "classes": [0, 1], "neighboring": "replace_one"},
        [*COLUMNS, *steps(R, R**2 / 4)],
    ),
    "replace one, least squares": (
        {
            "y": T,
            "family": "gaussian",
            "cov": "robust",
            "neighboring": "replace_one",
            **PUBLIC,
            "y_pub": T[:30],
        },
        least_squares(BY_CUT),
    ),
    "counts": ({"y": C, "family": "poisson"}, [*COLUMNS, *counts()]),
    "counts with exposure, robust errors and weights": (
        {"y": C, "family": "poisson", "exposure": W, "cov": "robust", "sample_weight": W},
        [*COLUMNS, 1.0, *counts([BY_CUT])],
    ),
    "rates": ({"y": C, "family": "rates"}, [*COLUMNS, *rates()]),
    "rates with exposure and weights": (
        {"y": C, "family": "rates", "exposure": W, "sample_weight": W},
        [1.0, 1.0, *COLUMNS, *rates()],
    ),
    "zero out": ({"y": Y, "classes": [0, 1], "neighboring": "zero_out"}, [*COLUMNS, *steps(R, R**2 / 4)]),
}


def checked(logs, sensitivities, *, replaced=False):
    """Each release has the noise that was asked for, and all cost together what was to be spent."""
    mu = mu_of_budget(**TERMS) / (2 if replaced else 1)
    for log in logs:
        assert len(log) == len(sensitivities)
        spent = 0.0
        for release, defined in zip(log, sensitivities, strict=True):
            if defined is None:
                spent += (release.sensitivity / release.scale) ** 2
            else:
                # And the rounding of sums, which is small.
                assert defined <= release.sensitivity < 1.001 * defined
                spent += (defined / release.scale) ** 2
        assert spent <= mu**2 * (1 + 1e-9), "more than the budget"
        assert spent == pytest.approx(mu**2, rel=2e-3), "less than the budget"
    assert_energies(
        [
            np.concatenate([np.ravel(each.noisy - each.exact) / each.scale for each in releases])
            for releases in zip(*logs, strict=True)
        ]
    )


def released(*, y, **options):
    """An inference, or a model of rates."""
    if options.get("family") != "rates":
        return private_inference(X, y, **options, **TERMS)
    del options["family"]
    return MixedDPPoissonRegressor(**TERMS).fit(X, y, **options)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PATHS)
def test_each_release_has_the_noise_of_its_sensitivity(monkeypatch, name):
    options, sensitivities = PATHS[name]
    logs = [recorded(monkeypatch, lambda: released(**options))[0] for _ in range(N_RUNS)]
    replaced = options.get("neighboring") == "replace_one"
    checked(logs, sensitivities, replaced=replaced)
    for fault in ("2/3", "3/2", "1e-6"):
        with pytest.raises(AssertionError, match="mean square"):
            checked([FAULTS[fault](log) for log in logs], sensitivities, replaced=replaced)
