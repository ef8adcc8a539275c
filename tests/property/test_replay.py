"""What a fit shows of private rows is what its noise pays for, and nothing else; see :mod:`tests.replay`."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count, product
from typing import Any

import numpy as np
import pytest

from skmixdp import (
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    RowMapping,
    ZerothOrderDPModuleClassifier,
    fit_many,
)
from skmixdp.algorithms import PAZO, DPZero
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger
from tests.private_names import recorded_releases
from tests.replay import Calls, Seen, compare, seen, shown, without
from tests.unit.rows.conftest import HELD, NEEDS_CUDA, has_cuda

from .spies import prepare

__all__ = ["has_cuda"]  # which the condition of NEEDS_CUDA names

#: Few rows; and so many that batches of EXPECTED rows are gathered.
SMALL, LARGE, EXPECTED = 60, 1000, 20
D, K, ROW = 4, 3, 23

rng = np.random.default_rng(0)
CENTRES = 2 * rng.normal(size=(K, D))
COEF = rng.normal(size=(D, 2))
BUDGET = {"epsilon": 30.0, "delta": 1e-4}
#: The same without a budget, since it takes long to find the noise of random batches.
TERMS = {"epsilon": None, "noise_multiplier": 2.0}


def around_centres(labels):
    return (CENTRES[labels] + rng.normal(size=(len(labels), D))).astype("f4")


def labelled(y):
    """Several labels of rows of classes: the class, and another one."""
    return (y[:, np.newaxis] == np.arange(K)) | (y[:, np.newaxis] == np.arange(K) + 1)


Y_PUB = np.arange(30) % K
X_PUB = around_centres(Y_PUB)

STATES = ("warn", "raise")


# -- neighbours ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Private:
    """Private rows. ``absent`` ones are zeroed out of all sums; None leaves the sums as they are.

    ``places`` are where the rows stood before they were moved; None is the same places.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    absent: np.ndarray | None = None
    places: np.ndarray | None = None

    @classmethod
    def drawn(cls, n, dtype="f4", *, targets=False, labels=False):
        y = np.arange(n) % (K - 1)
        y[ROW] = K - 1
        X = around_centres(y).astype(dtype)
        weights = rng.choice([0.5, 1.0, 2.0], size=n)
        if labels:
            return cls(X, labelled(y), weights)
        return cls(X, (X @ COEF).astype(dtype) if targets else y, weights)

    def with_row(self, x=None, y=None, weight=None, place=ROW):
        """The neighbour with another row."""
        changed = replace(self, X=self.X.copy(), y=self.y.copy(), weights=self.weights.copy())
        for array, value in ((changed.X, x), (changed.y, y), (changed.weights, weight)):
            if value is not None:
                array[place] = value
        return changed

    def moved(self):
        """The rows without ROW in its place, which comes last."""
        places = without(len(self.X), ROW)
        return Private(self.X[places], self.y[places], self.weights[places], places=places)

    def fold(self, rows):
        """The places of the rows of a fold, which a user chooses by them; None is all."""
        return rows if rows is None or self.places is None else np.flatnonzero(np.isin(self.places, rows))


SIGNS = np.array([1, -1, 1, 1])
NEIGHBOURS: dict[str, Callable[[Private], Private]] = {
    "relabelled": lambda one: one.with_row(
        y=~one.y[ROW] if one.y.dtype == bool else 0 if one.y.ndim == 1 else 1e6
    ),
    "zeroed": lambda one: one.with_row(0.0),
    "tiny": lambda one: one.with_row(SIGNS * np.finfo(one.X.dtype).smallest_subnormal),
    "small": lambda one: one.with_row(SIGNS * np.finfo(one.X.dtype).tiny),
    "huge": lambda one: one.with_row(
        SIGNS * np.finfo(one.X.dtype).max, np.finfo(one.X.dtype).max if one.y.dtype.kind == "f" else None
    ),
    "duplicated": lambda one: one.with_row(one.X[0], one.y[0]),
    "constant": lambda one: one.with_row(1.0),
    "absent": lambda one: replace(one, absent=np.arange(len(one.X)) == ROW),
    "another that is absent": lambda one: replace(
        one.with_row(-one.X[0], one.y[0], 0.5), absent=np.arange(len(one.X)) == ROW
    ),
}
#: Neighbours whose rows stand elsewhere.
MOVED: dict[str, Callable[[Private], Private]] = {
    "rotated": Private.moved,
    # Another row is in the last place, and takes no part.
    "removed": lambda one: replace(
        one.moved().with_row(one.X[0], one.y[0], place=-1), absent=np.arange(len(one.X)) == len(one.X) - 1
    ),
}
MOVED["inserted"] = MOVED["removed"]  # and the two runs change places
NEIGHBOURS |= MOVED
#: The most that sums differ, in units of what is stated; 2 for others.
MOST = {"absent": 1.0, "another that is absent": 0.0, "rotated": 0.0, "removed": 1.0, "inserted": 1.0}
REWEIGHTED = {
    "weight 0": lambda one: one.with_row(weight=0.0),
    "tiny weight": lambda one: one.with_row(weight=5e-324),
    "huge weight": lambda one: one.with_row(weight=1e308),
}


def check(monkeypatch, path, one, name, state, each_row=True, most=None):
    """Replay the path of some rows in that of a neighbour's, under the user's own state of NumPy."""
    other = (NEIGHBOURS | REWEIGHTED)[name](one)
    if other.absent is not None:
        one = replace(one, absent=other.absent if MOST[name] == 0 else np.zeros_like(other.absent))

    def run(private: Private, earlier: Seen | None, draws: int) -> Seen:
        def within(calls: Calls) -> Any:
            with np.errstate(all=state), recorded_releases(private.absent):
                return path(private, calls)

        return seen(monkeypatch, within, earlier, each_row=each_row, draws=draws, places=private.places)

    row, places = ROW, other.places
    if name == "inserted":
        one, other, row, places = other, one, len(one.X) - 1, np.argsort(other.places)

    for draws in range(20):
        first = run(one, None, draws)
        assert not first.failed, first.facts["outcome"]
        assert first.releases
        # The row is drawn into some batch, and left out of others.
        if len(one.X) == SMALL or MOST.get(name) == 0 or any(each.mask[row] for each in first.releases):
            break
    else:
        pytest.fail("the row is never drawn into a batch")
    second = run(other, first, draws)
    compare(first, second, row, MOST.get(name, 2.0) if most is None else most, places)


# -- estimators and their options ------------------------------------------------------------

DESCENT = ("noisy-gd", "adamix", "coupling", "pda-dpmd", "dope-sgd", "gep", "modelmix")
LOGISTIC = [f"logistic, {name}" for name in ("auto", *DESCENT)]
RIDGE = [f"ridge, {name}" for name in ("auto", "noisy-gd", "gep")]
ZEROTH = [f"zeroth, {name}" for name in ("dpzero", "pazo-m", "pazo-p", "pazo-s")]
GRADIENTS = [f"gradients, {name}" for name in ("noisy-gd", "adamix", "modelmix")]
MODULES = [*(f"module, {name}" for name in ("dpzero", "pazo-m", "pazo-p", "pazo-s")), *GRADIENTS]
SEVERAL = ["labels, auto", "labels, adamix"]
LINEAR = [*LOGISTIC, *SEVERAL, *RIDGE, *ZEROTH]
ALL = [*LINEAR, *MODULES]
ESTIMATORS = {
    "logistic": MixedDPLogisticRegression,
    "labels": MixedDPLogisticRegression,
    "ridge": MixedDPRidge,
    "zeroth": MixedDPLogisticRegression,
}
ON_LOSSES = {"dpzero": DPZero(), "pazo-m": PAZO("m"), "pazo-p": PAZO("p"), "pazo-s": PAZO("s")}
MODULE_KINDS = {"module": ZerothOrderDPModuleClassifier, "gradients": FirstOrderDPModuleClassifier}


#: One object for each kind, by which a covering set tells values apart.
KINDS = {kind: kind for kind in (*ESTIMATORS, *MODULE_KINDS)}


@dataclass(frozen=True)
class Option:
    """Parameters, how the rows are passed, and what accepts them."""

    parameters: dict[str, Any] = field(default_factory=dict)
    only: list[str] = field(default_factory=lambda: ALL)
    n_rows: int = SMALL
    public: bool = True
    weights: bool = False
    dtype: str = "f4"
    other_kind: bool = False


def among(group, *excepted):
    return [what for what in group if not any(name in what for name in excepted)]


WITHOUT_PUBLIC = ["logistic, auto", "logistic, noisy-gd", "labels, auto", "ridge, auto", "ridge, noisy-gd"]
#: What takes few steps for its default budget.
QUICK = ["logistic, auto", "logistic, coupling"]
OPTIONS = {
    "default": Option({"n_steps": None}, [*LOGISTIC, *SEVERAL, *RIDGE, "zeroth, pazo-s"]),
    "few steps": Option(),
    "rates": Option({"learning_rate": 0.5, "l2": 0.1, "public_l2": 0.1}, LINEAR),
    "balanced": Option({"class_weight": "balanced", "n_steps": None}, QUICK),
    "weighted classes": Option({"class_weight": {0: 1.0, 1: 0.5, 2: 3.0}}, [*LOGISTIC, *GRADIENTS]),
    "adjusted": Option({"logit_adjustment": 1.0, "n_steps": None}, QUICK),
    "not adjusted": Option({"logit_adjustment": 0, "n_steps": None}, QUICK),
    "geometry": Option(
        {"rows": RowMapping(geometry=True, norm="unit"), "n_steps": None}, [*QUICK, "ridge, noisy-gd"]
    ),
    "geometry of private rows": Option(
        {"rows": RowMapping(geometry=True, norm="unit", whiten=True), "n_steps": None},
        WITHOUT_PUBLIC,
        public=False,
    ),
    "whitened": Option({"rows": RowMapping(whiten=True)}, LINEAR),
    "not centred": Option({"rows": RowMapping(center=False)}, LINEAR),
    "no intercept": Option({"fit_intercept": False}, LINEAR),
    "rows as they are": Option({"rows": RowMapping(norm=None), "learning_rate": 0.1}, LINEAR),
    "unit rows": Option({"rows": RowMapping(norm="unit")}, LINEAR),
    "clipped rows": Option({"rows": RowMapping(norm="clip")}, LINEAR),
    "noisy length": Option({"rows": RowMapping(norm="clip"), "n_steps": None}, WITHOUT_PUBLIC, public=False),
    "scaled": Option({"scale": True}, LINEAR),
    "batches": Option({**TERMS, "batch_size": EXPECTED, "n_steps": 60}, n_rows=LARGE),
    "large batches": Option({**TERMS, "batch_size": 20}),
    "zeros": Option({"init": "zeros"}, LINEAR),
    "public start": Option({"init": "public", "learning_rate": "auto"}, MODULES),
    "chunks": Option({"chunk_size": 16}, MODULES),
    "replace one": Option({"neighboring": "replace_one"}),
    "zero out": Option({"neighboring": "zero_out"}),
    "discrete": Option(
        {"noise": "discrete", "n_steps": 2}, among(ALL, "dope", "gep", "modelmix", "gradients")
    ),
    "float64": Option({"dtype": "float64"}, LINEAR, dtype="f8"),
    "rows in float64": Option(dtype="f8"),
    "weights": Option({"max_sample_weight": 2.0}, [*LOGISTIC, *SEVERAL, *RIDGE, *GRADIENTS], weights=True),
    "weights of unknown scale": Option({"n_steps": None}, [*QUICK, *SEVERAL, *RIDGE], weights=True),
    "weights, balanced": Option({"class_weight": "balanced", "n_steps": None}, QUICK, weights=True),
    "no public rows": Option(
        {"learning_rate": 0.5},
        [*WITHOUT_PUBLIC, "logistic, modelmix", "zeroth, dpzero", "module, dpzero"],
        public=False,
    ),
    "no public rows, default": Option({"n_steps": None}, WITHOUT_PUBLIC, public=False),
    "left out": Option({"n_steps": None}, ["logistic, auto", "labels, auto", "ridge, auto"], other_kind=True),
    "ledger": Option({"ledger": True}),
    "noise multiplier": Option(TERMS),
    "noise multiplier and budget": Option({"noise_multiplier": 0.5, "n_steps": None}),
    "record": Option({"record_per_instance": True}, among(LINEAR, "modelmix")),
    "device": Option({"device": "cpu"}),
}


def module():
    torch = pytest.importorskip("torch", reason="needs torch; install skmixdp[features]")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.Tanh(), torch.nn.Linear(5, K))


def fit_path(what, option, hold=lambda private: (private.X, private.y)):
    """The fit of an estimator; what comes out is the estimator, its report and its entries in a ledger."""
    kind, algorithm = what.split(", ")
    parameters = {**BUDGET, "n_steps": 4, **option.parameters}
    y_pub, other = Y_PUB, (Y_PUB + 1) % K
    if kind == "ridge":
        y_pub, other = X_PUB @ COEF, -X_PUB @ COEF
    elif kind == "labels":
        y_pub, other = labelled(Y_PUB), ~labelled(Y_PUB)
    y_pub = other if option.other_kind else y_pub
    public = {"X_pub": X_PUB, "y_pub": y_pub} if option.public else {}
    if kind == "ridge" and not option.public:
        parameters["target_scale"] = 2.0
    elif kind != "ridge":
        parameters["classes"] = range(K)
    if kind in MODULE_KINDS:
        parameters = {"init": "module", "learning_rate": 1e-3, **parameters}

    def path(private: Private, calls: Calls) -> Any:
        entry, own = None, dict(parameters)
        if own.get("ledger"):
            entry = own["ledger"] = PrivacyLedger(":memory:").add_dataset("rows", epsilon=50, delta=1e-3)
        if kind in MODULE_KINDS:
            head = MODULE_KINDS[kind](module(), algorithm, **own)
        else:
            head = ESTIMATORS[kind](ON_LOSSES.get(algorithm, algorithm), **own)
        weights = {"sample_weight": private.weights} if option.weights else {}
        head.set_callbacks(calls).fit(*hold(private), **public, **weights)
        return shown(head, entry)

    return path


def accepted(option, neighbour):
    """Whether the neighbour of accepted rows is accepted; other tests say what is refused."""
    if neighbour in REWEIGHTED:
        return option.weights
    return neighbour != "huge" or getattr(option.parameters.get("rows"), "norm", "") is not None


def with_states(cases):
    """Every other case of each neighbour, which is the last parameter, under each state."""
    numbers = {name: count(place) for place, name in enumerate(NEIGHBOURS | REWEIGHTED)}
    return [(*case, STATES[next(numbers[case[-1]]) % 2]) for case in cases]


CASES = with_states(
    [
        (KINDS[what.split(",")[0]], what, name, neighbour)
        for (name, option), neighbour in product(OPTIONS.items(), NEIGHBOURS | REWEIGHTED)
        if accepted(option, neighbour)
        for what in option.only
    ]
)


@pytest.mark.covering("kind neighbour", "what", "option", "neighbour state")
@pytest.mark.parametrize(("kind", "what", "option", "neighbour", "state"), CASES)
def test_a_fit_shows_what_its_noise_pays_for(monkeypatch, kind, what, option, neighbour, state):
    chosen = OPTIONS[option]
    kinds = {"targets": kind == "ridge", "labels": kind == "labels"}
    one = Private.drawn(chosen.n_rows, chosen.dtype, **kinds)
    check(monkeypatch, fit_path(what, chosen), one, neighbour, state, each_row=state == "warn")


@pytest.mark.parametrize(("x", "fact"), [(SIGNS * np.finfo("f4").max, "lengths"), (np.nan, "finiteness")])
def test_what_is_refused_is_refused_before_the_charge_and_listed_as_public(monkeypatch, x, fact):
    one = Private.drawn(SMALL)
    path = fit_path("logistic, noisy-gd", OPTIONS["rows as they are"])
    first = seen(monkeypatch, lambda calls: path(one, calls))
    other = seen(monkeypatch, lambda calls: path(one.with_row(x), calls), first)
    assert not first.failed and fact in first.facts["outcome[1]"]
    assert other.failed and not other.releases
    assert [text[:10] for _, text in other.facts["warnings"]] == ["epsilon=30"]  # which is public
    assert "ValueError: " in other.facts["outcome"] and "e+38" not in other.facts["outcome"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("method", ["private_score", "private_confusion"])
def test_counts_are_silent_on_rows_of_any_size(method, state):
    """Neither a warning nor an error of NumPy, by the user's settings, tells that there is a tiny row."""
    terms = {"rows": RowMapping(norm=None, center=False), "learning_rate": 0.1}
    fitted = head(**terms).fit(*OTHERS, **PUBLIC)
    X = OTHERS[0].astype("f8")
    X[ROW] = 1e-300
    with warnings.catch_warnings(record=True, action="always") as warned, np.errstate(all=state):
        try:
            getattr(fitted, method)(X, OTHERS[1], noise_multiplier=2.0)
        except FloatingPointError as error:
            pytest.fail(str(error))
    assert not warned


# -- where the rows are ----------------------------------------------------------------------

#: An estimator and its option.
PLACED = [
    ("logistic, noisy-gd", "few steps"),
    ("logistic, noisy-gd", "not centred"),
    ("logistic, noisy-gd", "rows as they are"),
    ("logistic, noisy-gd", "whitened"),
    ("logistic, noisy-gd", "batches"),
    ("logistic, noisy-gd", "large batches"),
    ("logistic, noisy-gd", "geometry of private rows"),
    ("logistic, noisy-gd", "discrete"),
    ("logistic, auto", "default"),
    ("logistic, gep", "few steps"),
    ("zeroth, pazo-s", "few steps"),
]


#: Accepted neighbours of rows of each source; sources on a device that there may not be are tried in full.
HELD_CASES = [
    pytest.param(*case, marks=(NEEDS_CUDA, pytest.mark.slow) if "CUDA" in case[0] else ())
    for case in with_states(
        [
            (kind, what, option, neighbour)
            for (what, option), kind, neighbour in product(PLACED, HELD, NEIGHBOURS)
            if accepted(OPTIONS[option], neighbour) and (kind, option) != ("sparse", "discrete")
        ]
    )
]


@pytest.mark.covering("kind", "what option", "neighbour state")
@pytest.mark.parametrize(("kind", "what", "option", "neighbour", "state"), HELD_CASES)
def test_a_fit_to_rows_of_any_source_shows_what_its_noise_pays_for(
    monkeypatch, tmp_path, kind, what, option, neighbour, state
):
    prepare(kind, monkeypatch)
    chosen = OPTIONS[option]
    one = Private.drawn(chosen.n_rows)
    folders = iter(["one", "other"])

    def hold(private):
        folder = tmp_path / next(folders)
        folder.mkdir()
        return HELD[kind](folder, private.X, private.y)

    each_row = state == "warn" and kind != "dask"
    check(monkeypatch, fit_path(what, chosen, hold), one, neighbour, state, each_row)


# -- several fits, searches, scores and statistics -------------------------------------------

PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}
FOLDS = [np.flatnonzero(np.arange(SMALL) % 3 != fold) for fold in range(3)]
OTHERS = around_centres(np.arange(SMALL) % K), np.arange(SMALL) % K
BY_CLASS = [{0: 1.0, 1: 0.5, 2: weight} for weight in (1.0, 2.0, 3.0)]


def head(algorithm="noisy-gd", **parameters):
    return MixedDPLogisticRegression(algorithm, **{"classes": range(K), **BUDGET, "n_steps": 4, **parameters})


def together(*each, rows=None, weighted=False, **common):
    """Heads with these parameters, fitted side by side."""

    def path(private, calls):
        heads = [head(**common, **own).set_callbacks(calls) for own in each]
        weights = {"sample_weight": private.weights} if weighted else {}
        folds = None if rows is None else [private.fold(each) for each in rows]
        return fit_many(heads, private.X, private.y, **PUBLIC, **weights, rows=folds)

    return path


def search(grid, *, of=None, **parameters):
    def path(private, calls):
        base = (head(epsilon=1.0) if of is None else of).set_callbacks(calls)
        found = PrivateSearchCV(base, grid, **{**BUDGET, **parameters})
        return found.fit(private.X, private.y, **PUBLIC)

    return path


def scaler(**parameters):
    def path(private, calls):
        return NoisyScaler(**BUDGET, **{"bounds": (-3.0, 5.0), **parameters}).fit(private.X)

    return path


def counts(method, **parameters):
    """Noisy counts of private rows, by a head that was fitted to other rows."""

    def path(private, calls):
        fitted = head(**parameters).fit(*OTHERS, **PUBLIC)
        return getattr(fitted, method)(private.X, private.y, noise_multiplier=2.0)

    return path


RATES = [{"learning_rate": rate} for rate in (0.3, 1.0, 2.0)]
WEIGHTS = [{"class_weight": weight} for weight in BY_CLASS]
PATHS = {
    "heads": together(*RATES),
    "heads with weights by class": together(*WEIGHTS),
    "heads with weights by class, some the same": together({}, *WEIGHTS, *WEIGHTS[1:]),
    "heads with weights by class and row": together(*WEIGHTS, weighted=True, max_sample_weight=2.0),
    "heads with weights of unknown scale": together(*WEIGHTS, weighted=True, n_steps=None),
    "heads with balanced weights": together({"class_weight": "balanced"}, {}, n_steps=None),
    "heads that learn their geometry": together({"rows": RowMapping(geometry=True)}, {}, n_steps=None),
    "heads of several algorithms": together(*({"algorithm": name} for name in ("auto", "gep", "modelmix"))),
    "heads in batches": together(*RATES, **TERMS, batch_size=20),
    "heads, discrete": together(*WEIGHTS, noise="discrete", n_steps=2),
    "folds": together(*RATES, rows=FOLDS),
    "folds, default": together({}, {}, {}, rows=FOLDS, algorithm="auto", n_steps=None),
    "folds, weights by class": together(*WEIGHTS, rows=FOLDS),
    "folds, weights by class, all rows too": together(*WEIGHTS, rows=[FOLDS[0], FOLDS[ROW % 3], None]),
    "folds in batches": together(*RATES, rows=FOLDS, **TERMS, batch_size=10),
    "folds without the row": together(*WEIGHTS, rows=[FOLDS[ROW % 3]] * 3),
    "folds without the row, default": together(
        {}, {}, rows=[FOLDS[ROW % 3]] * 2, algorithm="auto", n_steps=None
    ),
    "search, grid": search({"learning_rate": [0.3, 1.0]}, strategy="grid"),
    "search, grid of weights": search({"class_weight": [None, *BY_CLASS]}, strategy="grid"),
    "search, random": search({"class_weight": [None, *BY_CLASS]}, strategy="random", n_trials=3),
    "search, public scores": search({"learning_rate": [0.3, 1.0]}, scoring="public", strategy="grid"),
    "search, one job": search({"class_weight": BY_CLASS}, strategy="grid", n_jobs=1),
    "search, default": search({"class_weight": [None, "balanced"]}, of=MixedDPLogisticRegression()),
    "scaler": scaler(),
    "scaler, means": scaler(with_std=False),
    "scaler, deviations": scaler(with_mean=False),
    "scaler, discrete": scaler(noise="discrete"),
    "scaler, narrow": scaler(bounds=(-1e-30, 1e-30)),
    "scaler, wide": scaler(bounds=(-1e38, 1e38)),
    "scaler, float64": scaler(bounds=(-4.0, 4.0)),
    "score": counts("private_score"),
    "score, float64, rows as they are": counts(
        "private_score", rows=RowMapping(norm=None), learning_rate=0.1
    ),
    "score, rows as they are": counts("private_score", rows=RowMapping(norm=None), learning_rate=0.1),
    "score, discrete": counts("private_score", noise="discrete"),
    "confusion": counts("private_confusion"),
    "confusion, no intercept": counts("private_confusion", fit_intercept=False),
}


def applies(name, neighbour):
    if neighbour in REWEIGHTED:
        return "by class and row" in name
    return neighbour != "huge" or "as they are" not in name


@pytest.mark.covering("name", "neighbour state")
@pytest.mark.parametrize(
    ("name", "neighbour", "state"),
    with_states([pair for pair in product(PATHS, NEIGHBOURS | REWEIGHTED) if applies(*pair)]),
)
def test_fits_side_by_side_searches_and_counts_show_what_their_noise_pays_for(
    monkeypatch, name, neighbour, state
):
    one = Private.drawn(SMALL, "f8" if "float64" in name else "f4")
    most = 0.0 if "without the row" in name else None
    check(monkeypatch, PATHS[name], one, neighbour, state, each_row=state == "warn", most=most)
