"""A fit with persons shows of all rows of one person what its noise pays for, and nothing else."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.algorithms import PAZO, DPZero, NoisyGD
from skmixdp.privacy import PrivacyLedger
from tests.private_names import recorded_releases
from tests.replay import compare, seen, shown

P, D, K, PERSON = 24, 4, 3, 5
rng = np.random.default_rng(0)
CENTRES = 2 * rng.normal(size=(K, D))
COEF = rng.normal(size=(D, 2))
Y_PUB = np.arange(30) % K
X_PUB = (CENTRES[Y_PUB] + rng.normal(size=(30, D))).astype("f4")


@dataclass(frozen=True)
class Persons:
    """Rows of persons; those of PERSON alone have the last class."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    absent: np.ndarray | None = None

    @classmethod
    def drawn(cls, targets=False):
        rng = np.random.default_rng(1)
        groups = rng.permutation(np.repeat(np.arange(P), rng.integers(1, 5, P)))
        y = np.where(groups == PERSON, K - 1, np.arange(len(groups)) % (K - 1))
        X = (CENTRES[y] + rng.normal(size=(len(y), D))).astype("f4")
        return cls(X, (X @ COEF).astype("f4") if targets else y, groups)

    def with_rows(self, X, y=None):
        """The neighbour with other rows of the person; labels are those of other persons."""
        rest = self.groups != PERSON
        X = np.asarray(X, "f4")
        y = self.y[rest][np.arange(len(X)) % rest.sum()] if y is None else y
        # They are between those of others.
        place = np.searchsorted(np.flatnonzero(rest), len(rest) // 2)
        return replace(
            self,
            X=np.insert(self.X[rest], place, X, axis=0),
            y=np.insert(self.y[rest], place, y, axis=0),
            groups=np.insert(self.groups[rest], place, np.full(len(X), PERSON)),
        )

    @property
    def own(self):
        return self.X[self.groups == PERSON]


LARGEST = np.finfo("f4").max
NEIGHBOURS = {
    "relabelled": lambda one: one.with_rows(one.own),
    "one row": lambda one: one.with_rows(one.own[:1]),
    "grown to 1,000 rows": lambda one: one.with_rows(rng.normal(size=(1000, D))),
    "100 rows alike": lambda one: one.with_rows(np.tile(one.own[:1], (100, 1))),
    "zeroed": lambda one: one.with_rows(np.zeros((3, D))),
    "huge": lambda one: one.with_rows(LARGEST * np.array([[1, -1, 1, 1], [1, 1, -1, 1]])),
    "tiny": lambda one: one.with_rows(np.full((70, D), np.finfo("f4").smallest_subnormal)),
    "absent": lambda one: replace(one, absent=np.arange(P) == PERSON),
    "others that are absent": lambda one: NEIGHBOURS["absent"](one.with_rows(rng.normal(size=(300, D)))),
}
MOST = {"absent": 1.0, "others that are absent": 0.0}


def head(kind, algorithm="auto", public=True, **parameters):
    """A path: the fit, its report and its entry in a ledger."""
    known = {"X_pub": X_PUB, "y_pub": X_PUB @ COEF if kind is MixedDPRidge else Y_PUB} if public else {}
    if kind is MixedDPRidge:
        parameters |= {} if public else {"target_scale": 2.0}
    else:
        parameters["classes"] = range(K)

    def path(one, calls):
        ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=500, delta=1e-3, unit="person")
        fitted = kind(algorithm, ledger=ledger, **{"epsilon": 30.0, "delta": 1e-4, **parameters})
        fitted.set_callbacks(calls).fit(one.X, one.y, groups=one.groups, **known)
        return shown(fitted, ledger)

    return path


def folds(one, calls):
    """Folds of persons whose sizes change between neighbours."""
    heads = [MixedDPLogisticRegression(epsilon=30.0, delta=1e-4, classes=range(K)) for _ in range(3)]
    rows = [one.groups % 2 == 0, one.groups % 2 == 1, None]
    fit_many(heads, one.X, one.y, X_PUB, Y_PUB, rows=rows, groups=one.groups)
    return [(fitted, str(fitted.privacy_)) for fitted in heads]


LOGISTIC = MixedDPLogisticRegression
PATHS = {
    "default": head(LOGISTIC),
    "no public rows": head(LOGISTIC, public=False),
    "geometry": head(LOGISTIC, public=False, rows=RowMapping(geometry=True, norm="unit")),
    "balanced": head(LOGISTIC, class_weight="balanced", logit_adjustment=1.0),
    "clipped rows": head(LOGISTIC, public=False, rows=RowMapping(norm="clip"), scale=False),
    "rows as they are": head(LOGISTIC, "noisy-gd", rows=RowMapping(norm=None), learning_rate=0.1, n_steps=3),
    "batches": head(LOGISTIC, NoisyGD(), batch_size=8, n_steps=6, epsilon=None, noise_multiplier=2.0),
    "float64": head(LOGISTIC, "adamix", dtype="float64", n_steps=3),
    "gep": head(LOGISTIC, "gep", n_steps=3),
    "dope-sgd": head(LOGISTIC, "dope-sgd", n_steps=3),
    "modelmix": head(LOGISTIC, "modelmix", n_steps=3),
    "replace one": head(LOGISTIC, "coupling", neighboring="replace_one", n_steps=3),
    "record": head(LOGISTIC, record_per_instance=True),
    "regression": head(MixedDPRidge),
    "regression without public rows": head(MixedDPRidge, public=False),
    "dpzero": head(LOGISTIC, DPZero(), n_steps=3),
    "pazo-s": head(LOGISTIC, PAZO("s"), n_steps=3),
    "folds": folds,
}
CASES = [
    (path, neighbour)
    for path in PATHS
    for neighbour in NEIGHBOURS
    # A row that is too long is refused, before the charge; and which person a mask of folds hides is public.
    if not (path == "rows as they are" and neighbour == "huge")
    if not (path == "folds" and neighbour in MOST)
]


def check(monkeypatch, path, one, neighbour, *, in_parts=False, state="raise"):
    """Replay a path of some persons in that of their neighbours.

    Returns how far each sum is moved, where persons are numbered within folds or parts (``in_parts``).
    """
    other, most = NEIGHBOURS[neighbour](one), MOST.get(neighbour, 2.0)
    if other.absent is not None:
        one = replace(one, absent=other.absent if most == 0 else np.zeros_like(other.absent))

    def run(persons, earlier):
        def within(calls):
            with np.errstate(all=state), recorded_releases(persons.absent):
                return path(persons, calls)

        return seen(monkeypatch, within, earlier)

    first = run(one, None)
    assert not first.failed, first.facts["outcome"]
    assert first.releases
    second = run(other, first)
    if not in_parts:
        return compare(first, second, PERSON, most)
    assert not second.failed, second.facts["outcome"]
    assert not {name for name in first.facts if first.facts[name] != second.facts.get(name)}
    moved = [
        float(np.linalg.norm(mine.exact - theirs.exact)) / mine.sensitivity
        for mine, theirs in zip(first.releases, second.releases, strict=True)
    ]
    assert max(moved) <= most
    return moved


@pytest.mark.covering("path", "neighbour")
@pytest.mark.parametrize(("path", "neighbour"), CASES)
def test_a_fit_shows_what_its_noise_pays_for(monkeypatch, path, neighbour):
    one = Persons.drawn(targets=path.startswith("regression"))
    check(monkeypatch, PATHS[path], one, neighbour, in_parts=path == "folds")
