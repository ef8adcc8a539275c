"""No odd cell decides how other cells are read; see :mod:`tests.odd_cells`."""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.inference import private_inference
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import NoisyScaler
from tests.odd_cells import HOLDERS, KINDS, N_ROWS, ODD, ROW, check_odd_cell, columns_of
from tests.private_names import RowMap

LABELS = np.arange(N_ROWS) % 2
TERMS = {"epsilon": 30.0, "delta": 1e-4}
#: Public rows, in a frame of the same columns: they say which types columns have.
PUBLIC = columns_of("floats")
Y_PUB = np.arange(N_ROWS) % 2
KNOWN, PERSONS = pd.DataFrame(PUBLIC).to_numpy(), np.arange(N_ROWS) // 2
LEAST_SQUARES = {"family": "gaussian", "epsilon": 1e4, "groups": PERSONS}


def fitted(head, fit):
    def path_of(X):
        def path(calls):
            model = head()
            fit(model, X)
            report = getattr(model, "privacy_", None)
            return model, str(report)

        return path

    return path_of


def head(**parameters):
    return lambda: MixedDPLogisticRegression("noisy-gd", classes=[0, 1], n_steps=2, **{**TERMS, **parameters})


def scored(released):
    """A path that releases something of rows under a head that was fitted to others."""
    clf = head()().fit(pd.DataFrame(PUBLIC), LABELS)

    def path_of(X):
        return lambda calls: released(clf, X)

    return path_of


PATHS = {
    "unit rows": fitted(head(rows=RowMapping(norm="unit")), lambda model, X: model.fit(X, LABELS)),
    "clipped rows": fitted(
        head(rows=RowMapping(norm="clip"), scale=False), lambda model, X: model.fit(X, LABELS)
    ),
    "default": fitted(
        lambda: MixedDPLogisticRegression(classes=[0, 1], **TERMS),
        lambda model, X: model.fit(X, LABELS, KNOWN, Y_PUB),
    ),
    "regression": fitted(
        lambda: MixedDPRidge("noisy-gd", n_steps=2, target_scale=1.0, **TERMS),
        lambda model, X: model.fit(X, LABELS * 1.0),
    ),
    "persons": fitted(head(), lambda model, X: model.fit(X, LABELS, groups=PERSONS)),
    "scaler": fitted(partial(NoisyScaler, **TERMS), NoisyScaler.fit),
    "scaler within bounds": fitted(partial(NoisyScaler, bounds=(-3, 3), **TERMS), NoisyScaler.fit),
    "score": scored(lambda clf, X: clf.private_score(X, LABELS, epsilon=1.0)),
    "confusion": scored(lambda clf, X: clf.private_confusion(X, LABELS, epsilon=1.0)),
    "evaluation": scored(lambda clf, X: private_evaluation(clf, X, LABELS, epsilon=1.0).summary()),
    "inference": lambda X: lambda calls: private_inference(X, LABELS, classes=[0, 1], epsilon=1e4),
    "least squares": lambda X: lambda calls: private_inference(X, LABELS * 1.0, **LEAST_SQUARES),
}
#: Holders that a path does not take.
NOT_TAKEN = {"scaler": ("sparse", "Dask", "Parquet"), "scaler within bounds": ("sparse", "Dask", "Parquet")}
#: Numbers of the odd row where persons are numbered.
NUMBERS = {"persons": ROW // 2, "least squares": ROW // 2}
CASES = [case for case in product(HOLDERS, KINDS, ODD, PATHS) if case[0] not in NOT_TAKEN.get(case[3], ())]


@pytest.mark.covering("holder odd", "kind odd", "path holder")
@pytest.mark.parametrize(("holder", "kind", "odd", "path"), CASES)
def test_no_odd_cell_decides_how_others_are_read(monkeypatch, holder, kind, odd, path):
    hold = HOLDERS[holder]
    one, other = hold(columns_of(kind)), hold(columns_of(kind, odd))
    number = NUMBERS.get(path, ROW)
    check_odd_cell(monkeypatch, PATHS[path], one, other, row=number, each_row=holder != "Dask")


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_the_layout_of_an_array_decides_nothing(narrow, unit):
    """Layouts follow from types: frames of several types are laid out column by column."""
    X = np.random.default_rng(0).normal(size=(200, 5 if narrow else 80))
    X[3], X[4] = 1e300, 1e-300
    row_map = RowMap.of(X[5:50], True, True, True)
    row_map = replace(row_map, unit_first=unit)
    one, other = (row_map(held, np.float32) for held in (np.ascontiguousarray(X), np.asfortranarray(X)))
    assert one.tobytes() == other.tobytes()


def test_the_type_of_an_array_is_stated_and_that_of_a_frame_is_not():
    X = pd.DataFrame(PUBLIC).astype("f4")
    stated = "that X is an array of float32 (declared)"
    of_array, of_frame = (head()().fit(held, LABELS).privacy_.treated_as_public for held in (X.to_numpy(), X))
    assert stated in of_array
    assert set(of_array) - set(of_frame) == {stated}


def test_chunks_of_dask_arrays_are_read_in_the_declared_type():
    da = pytest.importorskip("dask.array", reason="needs skmixdp[dask]")
    from dask import delayed

    X = pd.DataFrame(PUBLIC).to_numpy()

    def fit(of_first, declared):
        parts = [X[:30].astype(of_first), X[30:].astype("f4")]
        chunks = [da.from_delayed(delayed(part), part.shape, declared) for part in parts]
        joined = da.concatenate(chunks)
        assert joined.dtype == declared
        return head(rows=RowMapping(norm="unit"), random_state=0)().fit(joined, LABELS).coef_

    for declared in ("f4", "f8"):
        assert fit("f4", declared).tobytes() == fit("f8", declared).tobytes()
