"""What a row contributes is a function of that row alone, bit for bit, on every source."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.catalog import ALGORITHMS
from tests.conftest import Watched, make_label_problem, make_problem, make_regression_problem, train
from tests.private_names import (
    InMemoryRows,
    MultilabelLoss,
    RowMap,
    SoftmaxLoss,
    Whitening,
    row_norm_bounds,
    training,
)
from tests.property.spies import Recorded, prepare, source

N, D = 90, 8
rng = np.random.default_rng(0)
WHITENING = Whitening(np.linalg.qr(rng.normal(size=(D, 3)))[0].T, np.array([0.9, 0.3, 0.02]))
MAPS = {
    "unit length": RowMap(rng.normal(size=D), True, 0.4),
    "as they are": RowMap(None, False, 0.4),
    "centred": RowMap(rng.normal(size=D), False, 0.4),
    "whitened": RowMap(rng.normal(size=D), True, 0.4, WHITENING),
    "projected": RowMap(rng.normal(size=D), True, 0.4, Whitening(WHITENING.directions, np.ones(3), 0.0)),
}
CHANGES = {
    "huge": lambda row: np.full(D, 3e28) * np.sign(row + 0.1),
    "large": lambda row: 1e4 * row,
    "tiny": lambda row: 1e-25 * row,
    "subnormal": lambda row: 1e-41 * row,
    "zero": lambda row: 0 * row,
    "one entry": lambda row: 1e3 * np.eye(D)[0],
    "none": lambda row: row,
}


def changed(X, y, place, change, n_classes):
    """The rows with one of them turned into something else, its label included."""
    X, y = X.copy(), y.copy()
    X[place] = CHANGES[change](X[place])
    if y.dtype == np.int8:
        y[place] = 1 - y[place]
    else:
        y[place] = (y[place] + 1) % n_classes if y.ndim == 1 else 1e9 * y[place]
    return X, y


KINDS = ["memory", "sparse", "memory map", "memory map, as if wide", "parquet", "dask"]
KINDS += ["torch", "torch, as on a device"]
PROBLEMS = {
    "two classes": (2, make_problem(2, n_rows=N, d=D)),
    "four classes": (4, make_problem(4, n_rows=N, d=D)),
    "several labels": (None, make_label_problem(3, n_rows=N, d=D)),
    "targets": (None, make_regression_problem(2, n_rows=N, d=D)),
}


def recipes(problem):
    """The algorithms of the catalog that train a problem."""
    found = {}
    for name, algorithm in ALGORITHMS.items():
        try:
            found[name] = problem.recipe(algorithm)
        except ValueError:
            continue
    return found


RECIPES = {name: recipes(problem) for name, (_, problem) in PROBLEMS.items()}


@cache
def planned(name, algorithm, dtype):
    """Two steps of a recipe; to plan takes longer than to train."""
    return PROBLEMS[name][1].plan(RECIPES[name][algorithm], n_steps=2, dtype=dtype)


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_other_row_contributes_anything_else(kind, tmp_path_factory, monkeypatch, data):
    prepare(kind, monkeypatch)
    name = data.draw(st.sampled_from(sorted(PROBLEMS)), label="problem")
    n_classes, problem = PROBLEMS[name]
    algorithm = data.draw(st.sampled_from(sorted(RECIPES[name])), label="algorithm")
    row_map = MAPS[data.draw(st.sampled_from(sorted(MAPS)), label="map")]
    dtype = data.draw(st.sampled_from(["float32", "float64"]), label="dtype")
    plan = planned(name, algorithm, dtype)
    change = data.draw(st.sampled_from(sorted(CHANGES)), label="change")
    place = data.draw(st.integers(0, N - 1), label="place")
    outside = data.draw(st.booleans(), label="outside of the second fold")
    seed = data.draw(st.integers(0, 3), label="seed")
    X = np.random.default_rng(seed).normal(size=(N, D)).astype(np.float32)
    y = problem.y
    if row_map.mean is None and name == "targets" and change == "huge":
        change = "large"  # products of a huge row with a huge residual have no finite length at all

    members = np.arange(N) % 3 > 0
    members[place] = not outside
    problem_of_fold = replace(problem.info, n_private=int(members.sum()), batch_size=float(members.sum()))
    seen, sums = [], []
    for held_X, held_y in ((X, y), changed(X, y, place, change, n_classes)):
        rows = Recorded(source(kind, tmp_path_factory.mktemp("rows"), held_X, held_y, row_map, dtype))
        whole, fold = Watched(1), Watched(2)
        train([training(plan, whole), training(replace(plan, info=problem_of_fold), fold, members)], rows)
        seen.append(rows.seen)
        sums.append(fold)
    gone, come = seen[0] - seen[1], seen[1] - seen[0]
    # Both runs ask the changed row, as often as there are queries and no oftener.
    assert sum(gone.values()) == sum(come.values())
    queries = sum(seen[0].values()) // N
    assert sum(gone.values()) <= queries
    if outside:
        for one, other in zip(sums[0].sums, sums[1].sums, strict=True):
            np.testing.assert_array_equal(one, other)
        assert sums[0].scales == sums[1].scales


@given(data=st.data())
def test_discrete_sums_move_by_one_contribution_exactly(data):
    """On a grid nothing is rounded, so that all of a difference is the changed row's."""
    n_classes, problem = PROBLEMS["four classes"]
    recipe = problem.recipe(ALGORITHMS["noisy-gd, private alone"], exact=True)
    change = data.draw(st.sampled_from(sorted(CHANGES)))
    place = data.draw(st.integers(0, N - 1))
    X = np.random.default_rng(1).normal(size=(N, D))
    row_map, moved = MAPS[data.draw(st.sampled_from(["unit length", "as they are"]))], []
    X_changed, y_changed = changed(X, problem.y, place, change, n_classes)
    X_zero = row_map(X_changed, np.float64)
    X_zero[place] = 0
    for mapped in (row_map(X_changed, np.float64), X_zero):
        noise = Watched(3)
        noise.needs_grid = True
        plan = problem.plan(recipe, n_steps=2)
        train([training(plan, noise)], InMemoryRows(mapped, y_changed, exact=True))
        moved.append(noise)
    assert max(moved[0].moves(moved[1], plan.noise_multiplier)) <= 1


ROWS = st.integers(1, 40)


@given(
    n=ROWS,
    k=st.integers(1, 40),
    order=st.sampled_from("CF"),
    dtype=st.sampled_from(["f4", "f8"]),
    data=st.data(),
)
def test_residuals_and_their_lengths_are_a_row_s_own(n, k, order, dtype, data):
    """A block with an extreme row in it gives the other rows what a block without gives them."""
    Z = np.asarray(3 * np.random.default_rng(n).normal(size=(n, k)), dtype=dtype, order=order)
    place = data.draw(st.integers(0, n - 1))
    extreme = data.draw(st.sampled_from([1e3, -1e3, 1e30, -1e30, 1e-40, np.inf, -np.inf, np.nan, 0.0, 21.0]))
    other = Z.copy(order="K")
    with np.errstate(all="ignore"):
        other[place] = np.asarray(extreme, dtype) * np.where(np.arange(k) % 2, 1, -1)
        kept = np.arange(n) != place
        np.testing.assert_array_equal(row_norm_bounds(Z)[kept], row_norm_bounds(other)[kept])
        if k < 3:
            return
        drawn = np.random.default_rng(k)
        labels = drawn.integers(k, size=n), drawn.integers(2, size=(n, k), dtype=np.int8)
        for loss, y in zip((SoftmaxLoss(k), MultilabelLoss(k)), labels, strict=True):
            one, two = (loss.residuals(A.copy(order="K"), y) for A in (Z, other))
            np.testing.assert_array_equal(one[kept], two[kept])
