"""What a fit to a table shows of private rows is what its noise pays for; see :mod:`tests.replay`."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger
from tests.property.test_replay import (
    COEF,
    NEIGHBOURS,
    ROW,
    SMALL,
    X_PUB,
    Y_PUB,
    D,
    K,
    Private,
    check,
    with_states,
)
from tests.replay import Calls, shown

#: Enough for all stages with so few rows.
BUDGET = {"epsilon": 300.0, "delta": 1e-4}
#: How wide rows are made, the unit of each column, and how far the first is from 0.
TABLES = {
    "few": (1, 1.0, 0.0),
    "far": (1, 1.0, 1e5),
    "alike": (3, 1.0, 0.0),
    "unlike": (3, np.where(np.arange(3 * D) < 2, 1.0, 1e-4), 0.0),
}
N_PUBLIC = {"none": 0, "two of each class": 2 * K, "some": 30}
OPTIONS = {
    "default": {},
    "balanced": {"class_weight": "balanced"},
    "geometry": {"rows": RowMapping(geometry=True)},
    "whitened": {"rows": RowMapping(whiten=True)},
    "unit": {"rows": RowMapping(norm="unit")},
    "clip": {"rows": RowMapping(norm="clip")},
    "not centred": {"rows": RowMapping(center=False)},
    "no intercept": {"fit_intercept": False},
    "not scaled": {"scale": False},
    "replace one": {"neighboring": "replace_one"},
    "discrete": {"noise": "discrete", "epsilon": 30.0},
    "record": {"record_per_instance": True},
    "ledger": {"ledger": True},
    "float64": {"dtype": "float64"},
    "left out": {},
    "sparse": {},
}
#: For classes alone, or for the geometry of unit rows that a regression does not have.
OF_CLASSES = ("balanced", "geometry", "whitened")


def table_of(X, table):
    times, unit, far = TABLES[table]
    with np.errstate(all="ignore"):  # tiny rows become 0
        return (np.tile(X, times) * unit + np.where(np.arange(times * D) < 1, far, 0.0)).astype(X.dtype)


def path_of(kind, table, public, option):
    n_public, parameters = N_PUBLIC[public], {**BUDGET, **OPTIONS[option]}
    y_pub = X_PUB @ COEF if kind == "ridge" else Y_PUB
    if option == "left out":
        y_pub = -y_pub if kind == "ridge" else (y_pub + 1) % K
    known = (table_of(X_PUB, table)[:n_public], y_pub[:n_public]) if n_public else ()
    if kind != "ridge":
        parameters["classes"] = range(K)

    def path(private, calls):
        own, entry = dict(parameters), None
        if own.get("ledger"):
            entry = own["ledger"] = PrivacyLedger(":memory:").add_dataset("rows", epsilon=1e3, delta=1e-3)
        head = {"logistic": MixedDPLogisticRegression, "ridge": MixedDPRidge}[kind](**own)
        X = table_of(private.X, table)
        head.set_callbacks(calls).fit(sp.csr_array(X) if option == "sparse" else X, private.y, *known)
        return shown(head, entry)

    return path


CASES = with_states(
    [
        (kind, table, public, option, neighbour)
        for kind, table, public, option, neighbour in product(
            ("logistic", "ridge"), TABLES, N_PUBLIC, OPTIONS, NEIGHBOURS
        )
        if kind == "logistic" or option not in OF_CLASSES
        if public != "none" or option != "left out"
    ]
)


@pytest.mark.covering("kind table public", "kind option", "neighbour state")
@pytest.mark.parametrize(("kind", "table", "public", "option", "neighbour", "state"), CASES)
def test_a_fit_shows_what_its_noise_pays_for(monkeypatch, kind, table, public, option, neighbour, state):
    one = Private.drawn(SMALL, targets=kind == "ridge")
    check(monkeypatch, path_of(kind, table, public, option), one, neighbour, state, each_row=state == "warn")


def test_the_paths_have_the_stages_that_are_replayed():
    seen = set()
    for table, public in product(TABLES, N_PUBLIC):
        (head, *_) = path_of("logistic", table, public, "default")(Private.drawn(SMALL), Calls())
        seen |= {name for name, _ in head.privacy_.shares}
    assert seen >= {"columns", "second moment", "temperature", "mean", "directions", "comparison"}


def folds_of(rows, **parameters):
    def path(private, calls):
        heads = [MixedDPLogisticRegression(classes=range(K), **BUDGET, **parameters) for _ in rows]
        for head in heads:
            head.set_callbacks(calls)
        fit_many(heads, table_of(private.X, "unlike"), private.y, rows=[private.fold(each) for each in rows])
        return [shown(head) for head in heads]

    return path


def scaler(table, **parameters):
    def path(private, calls):
        fitted = NoisyScaler(**{**BUDGET, **parameters}).fit(table_of(private.X, table))
        return fitted, str(fitted.privacy_)

    return path


def of_constant_column(path):
    """A path of rows that have the same number in a column, all but one row that may have it."""

    def changed(private, calls):
        X = private.X.copy()
        numbers = np.arange(len(X)) if private.places is None else private.places
        X[numbers != ROW, 1] = 1.0
        return path(replace(private, X=X), calls)

    return changed


FOLDS = [np.flatnonzero(np.arange(SMALL) % 3 != fold) for fold in range(3)]
PATHS = {
    "folds": folds_of(FOLDS),
    "folds, recorded": folds_of(FOLDS, record_per_instance=True),
    "folds without the row": folds_of([FOLDS[ROW % 3]] * 2),
    "scaler": scaler("few"),
    "scaler, unlike": scaler("unlike"),
    "scaler, means": scaler("alike", with_std=False),
    "scaler, deviations": scaler("alike", with_mean=False),
    "scaler, replace one": scaler("few", neighboring="replace_one"),
    "scaler, little budget": scaler("unlike", epsilon=0.5),
    "scaler, constant column": of_constant_column(scaler("few")),
    "scaler, constant column, little budget": of_constant_column(scaler("few", epsilon=10.0)),
    "classes, constant column": of_constant_column(path_of("logistic", "few", "none", "default")),
    "targets, constant column": of_constant_column(path_of("ridge", "few", "none", "default")),
}
#: Of these, each neighbour: one of them makes a column constant.
OF_CONSTANT = [(name, neighbour, "warn") for name in PATHS if "constant" in name for neighbour in NEIGHBOURS]


@pytest.mark.parametrize(("name", "neighbour", "state"), OF_CONSTANT)
def test_whether_a_column_is_constant_shows_through_noise_alone(monkeypatch, name, neighbour, state):
    one = Private.drawn(SMALL, targets=name.startswith("targets"))
    check(monkeypatch, PATHS[name], one, neighbour, state)


@pytest.mark.covering("name", "neighbour state")
@pytest.mark.parametrize(
    ("name", "neighbour", "state"),
    with_states([case for case in product(PATHS, NEIGHBOURS) if "constant" not in case[0]]),
)
def test_folds_and_scalers_show_what_their_noise_pays_for(monkeypatch, name, neighbour, state):
    most = 0.0 if "without the row" in name else None
    check(
        monkeypatch, PATHS[name], Private.drawn(SMALL), neighbour, state, each_row=state == "warn", most=most
    )
