"""A row or person that goes, comes or stands elsewhere moves no release of a fit by more than is stated."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor, MixedDPLogisticRegression, MixedDPRidge
from skmixdp.inference import private_inference
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import NoiseSource
from tests.private_names import column_histograms, draw_batch, public_checks_module, recorded_releases
from tests.replay import compare, seen, shown, without
from tests.unit.rows.conftest import HELD

from .spies import prepare

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

#: Rows of a part in `make test`, and rows of fits, of which coins draw a part.
PART, N = 200, 1001
#: Where code paths switch.
SIZES = [9_999, 10_001, 20_001, 99_999, 112_001, 200_001]
BUDGET = {"epsilon": 30.0, "delta": 1e-4}
PLACES = {"first": 0, "last but one": -2, "in the middle": 0.4}


@dataclass(frozen=True)
class Rows:
    """Rows of a table, or of persons with one row each; ``places`` are those before rows were moved."""

    X: np.ndarray
    y: np.ndarray
    absent: np.ndarray
    places: np.ndarray

    @classmethod
    def drawn(cls, n):
        rng = np.random.default_rng(0)
        X = np.zeros((n, 2))
        X[0::2], X[1::2] = [10.0, 1.0], [-10.0, 1000.0]
        X += 0.1 * rng.normal(size=X.shape)
        return cls(X, (rng.random(n) < 0.5).astype(int), np.zeros(n, bool), np.arange(n))

    def rotated(self, row):
        """The row comes last, and those after it move up."""
        places = without(len(self.X), row)
        return replace(self, X=self.X[places], y=self.y[places], places=places)

    def removed(self, row):
        """The row goes, and another one that takes no part is in the last place."""
        moved = self.rotated(row)
        moved.X[-1], moved.y[-1] = moved.X[0], moved.y[0]
        return replace(moved, absent=np.arange(len(self.X)) == len(self.X) - 1)


def frame(rows):
    return pd.DataFrame(rows.X, columns=["a", "b"])


def codes(rows):
    """Ids of persons, who have one row each."""
    return np.arange(len(rows.X))


X_PUB, Y_PUB = Rows.drawn(200).X, np.arange(200) % 2
PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}
CLASSES = {"classes": [0, 1]}
PUBLIC_HEAD = LogisticRegression().fit(X_PUB, Y_PUB)


def fit(model, *held, calls, **more):
    return shown(model.set_callbacks(calls).fit(*held, **more))


PATHS = {
    "scaler": lambda rows, calls: NoisyScaler(**BUDGET).fit(rows.X),
    "scaler of persons": lambda rows, calls: NoisyScaler(**BUDGET).fit(rows.X, groups=codes(rows)),
    "classes": lambda rows, calls: fit(
        MixedDPLogisticRegression(**CLASSES, **BUDGET), rows.X, rows.y, calls=calls
    ),
    "classes, public rows": lambda rows, calls: fit(
        MixedDPLogisticRegression(**CLASSES, **BUDGET), rows.X, rows.y, calls=calls, **PUBLIC
    ),
    "classes of a frame": lambda rows, calls: fit(
        MixedDPLogisticRegression(**CLASSES, **BUDGET), frame(rows), rows.y, calls=calls
    ),
    "classes of persons": lambda rows, calls: fit(
        MixedDPLogisticRegression(**CLASSES, **BUDGET), rows.X, rows.y, calls=calls, groups=codes(rows)
    ),
    "classes, float64": lambda rows, calls: fit(
        MixedDPLogisticRegression(dtype="float64", **CLASSES, **BUDGET), rows.X, rows.y, calls=calls
    ),
    "classes, discrete": lambda rows, calls: fit(
        MixedDPLogisticRegression(noise="discrete", n_steps=2, **CLASSES, **BUDGET),
        *(rows.X, rows.y),
        calls=calls,
    ),
    "targets": lambda rows, calls: fit(MixedDPRidge(**BUDGET), rows.X, rows.X[:, 0] + rows.y, calls=calls),
    "targets, public rows": lambda rows, calls: fit(
        MixedDPRidge(**BUDGET), rows.X, rows.X[:, 0], calls=calls, X_pub=X_PUB, y_pub=X_PUB[:, 0]
    ),
    "targets in batches": lambda rows, calls: fit(
        MixedDPRidge(epsilon=None, noise_multiplier=2.0, n_steps=20, batch_size=40),
        *(rows.X, rows.X[:, 0] + rows.y),
        calls=calls,
    ),
    "curves": lambda rows, calls: fit(AdditiveDPClassifier(**CLASSES, **BUDGET), rows.X, rows.y, calls=calls),
    "curves of persons": lambda rows, calls: fit(
        AdditiveDPClassifier(**CLASSES, **BUDGET), rows.X, rows.y, calls=calls, groups=codes(rows)
    ),
    "curves of targets": lambda rows, calls: fit(
        AdditiveDPRegressor(**BUDGET), rows.X, rows.X[:, 0] + rows.y, calls=calls
    ),
    "inference": lambda rows, calls: private_inference(rows.X, rows.y, **CLASSES, **BUDGET),
    "inference of targets": lambda rows, calls: private_inference(
        rows.X, rows.X[:, 0] + rows.y, family="gaussian", **BUDGET
    ),
    "inference of persons": lambda rows, calls: private_inference(
        rows.X, rows.y, groups=codes(rows), **CLASSES, **BUDGET
    ),
    "evaluation": lambda rows, calls: private_evaluation(PUBLIC_HEAD, rows.X, rows.y, **BUDGET),
}
#: What takes parts of large data sets, which coins draw.
IN_PARTS = {
    *("scaler", "classes", "classes, public rows", "classes of a frame", "classes, float64", "targets"),
    *("curves", "curves of targets", "scaler of persons", "classes of persons", "curves of persons"),
}
NEIGHBOURS = ["rotated", "removed", "inserted"]


def replayed(monkeypatch, path, n_rows, neighbour, place):
    """Replay a path in that of a neighbour; the first of the two runs."""
    row = int(place * n_rows) if 0 < place < 1 else place % n_rows
    one = Rows.drawn(n_rows)
    other = one.rotated(row) if neighbour == "rotated" else one.removed(row)
    places = other.places
    if neighbour == "inserted":
        one, other, row, places = other, one, n_rows - 1, np.argsort(places)

    def run(rows, earlier):
        def within(calls):
            with recorded_releases(rows.absent):
                return path(rows, calls)

        return seen(monkeypatch, within, earlier, each_row=False, places=rows.places)

    first = run(one, None)
    assert not first.failed, first.facts["outcome"]
    compare(first, run(other, first), row, 0.0 if neighbour == "rotated" else 1.0, places)
    return first


def small_parts(monkeypatch):
    monkeypatch.setattr(column_histograms, "_FEWEST_ROWS", PART)
    monkeypatch.setattr(public_checks_module, "_FEWEST_ROWS", PART)


@pytest.mark.covering("path", "neighbour place")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@pytest.mark.parametrize("path", PATHS)
def test_a_row_that_goes_comes_or_moves(monkeypatch, path, neighbour, place):
    small_parts(monkeypatch)
    first = replayed(monkeypatch, PATHS[path], N, neighbour, PLACES[place])
    if path in IN_PARTS:  # a mask is there whenever a row is absent, so that a part has fewer rows than that
        assert any(each.mask is not None and each.mask.sum() < N / 2 for each in first.releases)


@pytest.mark.covering("kind", "neighbour")
@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@pytest.mark.parametrize("kind", [kind for kind in HELD if "CUDA" not in kind])
def test_a_row_of_any_source_that_goes_comes_or_moves(monkeypatch, tmp_path, kind, neighbour):
    small_parts(monkeypatch)
    prepare(kind, monkeypatch)
    folders = iter(["one", "other"])

    def path(rows, calls):
        folder = tmp_path / next(folders)
        folder.mkdir()
        held = HELD[kind](folder, rows.X.astype("f4"), rows.y)
        return fit(MixedDPLogisticRegression(**CLASSES, **BUDGET), *held, calls=calls)

    replayed(monkeypatch, path, N, neighbour, 0)


@pytest.mark.slow
@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("path", sorted({*PATHS} - {"classes, discrete"}))
def test_full_sizes(monkeypatch, path, n_rows, neighbour):
    replayed(monkeypatch, PATHS[path], n_rows, neighbour, 0)


def test_every_third_row_would_be_found(monkeypatch):
    """The comparison is sharp: a part by place moves counts of nearly all rows."""
    small_parts(monkeypatch)
    monkeypatch.setattr(NoiseSource, "coins", lambda source, n_coins, chance: np.arange(n_coins) % 3 == 0)
    with warnings.catch_warnings(action="ignore"):
        replayed(monkeypatch, PATHS["scaler"], N, "rotated", 0)  # coins that travel with their rows
        monkeypatch.setattr("tests.replay.travelling", lambda places: draw_batch)
        with pytest.raises(AssertionError):
            replayed(monkeypatch, PATHS["scaler"], N, "rotated", 0)
