"""Attacks that succeeded on earlier versions, at the sizes at which they did."""

from functools import partial

import numpy as np
import pytest

from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from skmixdp.components.protocols import PrivateQuery, ReleasedArray
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import NoiseSource
from tests.private_names import (
    GaussianMechanism,
    InMemoryRows,
    SoftmaxLoss,
    SquaredLoss,
    grid_of_rows,
    release,
    sum_resolution,
)

from .test_moved_rows import PATHS, replayed


class Kept(NoiseSource):
    """Keeps what would be released, and adds nothing."""

    def __init__(self, *, needs_grid=False):
        super().__init__(0)
        self.needs_grid = needs_grid

    def add_noise(self, array, scale, grid):
        self.sum, self.scale = np.array(array), scale
        return array


def difference(loss, clip, W, y, one, other, *, exact=False):
    """How far apart two neighbouring data sets are, in units of the stated sensitivity."""
    kept = []
    for X in (one, other):
        noise = Kept(needs_grid=exact)
        mechanism = GaussianMechanism(1.0, 1, noise)
        mechanism.begin_step(None)
        dtype = np.dtype("float64") if exact else X.dtype
        part = ReleasedArray(clip.sensitivity(dtype))
        contribute = partial(clipped_residuals, loss=loss, clip=clip)
        query = PrivateQuery(W, contribute, (part,), lambda sums: (sums[0],))
        release(InMemoryRows(X, y, exact=exact), [(mechanism, query)])
        kept.append(noise)
    return np.linalg.norm(kept[0].sum - kept[1].sum) / kept[0].scale


def rows_of_ones(n, dtype, first):
    X = np.zeros((n, 1), dtype)
    X[:, 0] = 1
    X[0] = first
    return X


def most_shaken(n, clip):
    """The head whose residuals differ most, on the grid, with and without a shift of the outputs."""
    resolution = sum_resolution(n, grid_of_rows(n), clip.sensitivity(np.dtype("float64")))
    rng = np.random.default_rng(0)
    best = (-1.0, np.zeros(3))
    for _ in range(2000):
        units = rng.integers(1, int(1 / resolution) // 3, size=2)
        p = np.array([round(1 / resolution) - units.sum(), *units]) * resolution
        if np.linalg.norm(p - [1, 0, 0]) > 0.99 * clip.threshold:
            continue
        W = np.log(p) + rng.integers(-3, 4) * 2.0**-52 + 0.5
        cut = [np.trunc(E / E.sum() / resolution) for E in (np.exp(W), np.exp(W - W.max()))]
        best = max(best, (float(np.linalg.norm(cut[0] - cut[1])), W), key=lambda pair: pair[0])
    assert best[0] > 0, "no head is shaken by a shift: the attack has no target"
    return best[1]


def test_one_row_decides_whether_the_outputs_of_all_are_shifted():
    """13.9 times the sensitivity, with exact sums on a grid."""
    n, clip = 524_288, L2Clip(0.5)
    W, y = most_shaken(n, clip)[:, None], np.zeros(n, int)
    for exact in (True, False):
        pair = (rows_of_ones(n, np.float64, first) for first in (1000.0, 0.0))
        assert difference(SoftmaxLoss(3), clip, W, y, *pair, exact=exact) <= 1


@pytest.mark.parametrize(
    ("n", "k"), [(20_000, 100), (524_288, 1), pytest.param(524_288, 100, marks=pytest.mark.slow)]
)
def test_one_huge_row_decides_how_the_norms_of_all_are_computed(n, k):
    """5.0 times the sensitivity at 524,288 rows and 100 targets."""
    rng = np.random.default_rng(0)
    y = np.tile((3 * rng.normal(size=k)).astype(np.float32), (n, 1))
    pair = (rows_of_ones(n, np.float32, first) for first in (3e29, 0.0))
    W = rng.normal(size=(k, 1))
    assert difference(SquaredLoss(k), L2Clip(0.5), W, y, *pair) <= 1


#: A path, a number of rows or persons, and how the neighbour differs. Parts took every s-th row by its place.
THINNED = [
    ("scaler", 200_001, "removed"),
    ("scaler", 99_999, "removed"),
    ("classes, public rows", 20_001, "removed"),
    pytest.param("classes", 200_000, "rotated", marks=pytest.mark.slow),
    pytest.param("curves", 200_000, "rotated", marks=pytest.mark.slow),
    pytest.param("inference", 200_000, "rotated", marks=pytest.mark.slow),
    pytest.param("targets", 200_000, "rotated", marks=pytest.mark.slow),
    ("scaler", 200_000, "rotated"),
    ("classes, public rows", 20_000, "rotated"),
    ("scaler of persons", 120_001, "removed"),
    ("scaler of persons", 120_001, "rotated"),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("path", "n_rows", "neighbour"), THINNED)
def test_one_row_decides_which_of_all_others_are_counted(monkeypatch, path, n_rows, neighbour):
    replayed(monkeypatch, PATHS[path], n_rows, neighbour, 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_number_that_is_no_feature_sorts_the_rows():
    """Couples in a file sorted by income: whether a row is first or last, guessed by a noisy centre."""
    n, epsilon, n_tries = 200_000, 0.02, 30
    rng = np.random.default_rng(1)
    others = np.zeros((n - 1, 2))
    others[0::2], others[1::2] = [10.0, 1.0], [-10.0, 1000.0]
    target = np.array([[10.0, 1.0]])
    rows = [np.vstack([others, target]), np.vstack([target, others])]

    def centre(secret):
        return NoisyScaler(epsilon=epsilon).fit(rows[secret]).mean_[0]

    known = [centre(0), centre(1)]
    secrets = rng.integers(0, 2, n_tries)
    values = np.array([centre(secret) for secret in secrets])
    right = (np.abs(values - known[1]) < np.abs(values - known[0])) == secrets
    assert right.sum() <= 25  # of 30; more by chance with a probability of 3e-5
