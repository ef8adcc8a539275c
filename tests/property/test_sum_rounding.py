"""Released sums, as computed, move by no more than the stated sensitivity when one row is zeroed out."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from tests.asking import request_of
from tests.catalog import ALGORITHMS
from tests.conftest import Watched, make_problem, train
from tests.private_names import (
    PANEL_ROWS,
    Cascade,
    InMemoryRows,
    RowMap,
    SquaredLoss,
    Whitening,
    add_products,
    any_order,
    panel_rows_for,
    sum_error,
    training,
)
from tests.property.spies import Without, prepare, source


def pattern(name, n, d, rng):
    """Rows that are hard to add up."""
    X = np.zeros((n, d))
    X[:, 0] = 1
    if name == "nearly equal":
        X += 1e-3 * rng.normal(size=(n, d))
    elif name == "alternating":
        X[1::2] *= -1
    elif name == "one huge":
        X[n // 3] = 1e20
    elif name == "subnormal":
        X *= 1e-39
    elif name == "long":
        X = 1000 * (X + 0.1 * rng.normal(size=(n, d)))
    elif name == "random":
        X = rng.normal(size=(n, d))
    return X.astype(np.float32)


PATTERNS = ["equal", "nearly equal", "alternating", "one huge", "subnormal", "long", "random"]
KINDS = ["memory", "sparse", "memory map", "memory map, as if wide", "torch, as on a device"]
WHITENING = Whitening(np.eye(1, 4), np.array([0.05]))
MAPS = {
    "as they are": RowMap(None, False, None),
    "unit length": RowMap(np.full(4, 0.1), True, 0.4),
    "whitened": RowMap(np.full(4, 0.1), True, 0.4, WHITENING),
}


def losses_of_privacy(problem, recipe, dtype, rows, n_rows, rng):
    """How far each of a few rows moves a step's sums, in units of what the step may cost."""
    plan = problem.plan(recipe, n_steps=1, dtype=dtype)

    def released(row):
        noise = Watched(1)
        train([training(plan, noise)], Without(rows, row))
        return noise

    whole = released(None)
    for row in {0, n_rows // 3, n_rows - 1, int(rng.integers(n_rows))}:
        other = released(row)
        assert other.scales == whole.scales
        yield np.linalg.norm(whole.moves(other, plan.noise_multiplier))


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_row_moves_a_sum_by_more_than_is_stated(kind, tmp_path_factory, monkeypatch, data):
    prepare(kind, monkeypatch)
    n = data.draw(st.sampled_from([1, 50, PANEL_ROWS + 1, 3000, 20_000]), label="rows")
    seed = data.draw(st.integers(0, 5), label="seed")
    rng = np.random.default_rng(seed)
    names = [
        *("noisy-gd", "adamix, projected", "coupling", "dope-sgd, fixed clip, public centre"),
        *("gep, few directions",),
    ]
    algorithm = ALGORITHMS[data.draw(st.sampled_from(names), label="algorithm")]
    row_map = MAPS[data.draw(st.sampled_from(sorted(MAPS)), label="map")]
    dtype = data.draw(st.sampled_from(["float32", "float64"]), label="dtype")
    X = pattern(data.draw(st.sampled_from(PATTERNS), label="rows that are"), n, 4, rng)
    d_in = 4 - (row_map.intercept_value is None)
    problem = make_problem(3, n_rows=n, d=d_in, seed=seed)
    y = np.zeros(n, int) if data.draw(st.booleans(), label="one class") else problem.y
    rows = source(kind, tmp_path_factory.mktemp("rows"), X, y, row_map, dtype)
    moved = list(losses_of_privacy(problem, problem.recipe(algorithm), dtype, rows, n, rng))
    assert max(moved) <= 1


def clipped_sums(n, d, clip, rng, dtype="float32"):
    """Rows whose residuals reach just below a clip, all in one direction."""
    X = np.zeros((n, d), dtype)
    X[:, 0] = 1
    y = -(clip * (0.9 + 0.0999 * rng.random((n, 1)))).astype(dtype)
    contribute = partial(clipped_residuals, loss=SquaredLoss(1), clip=L2Clip(clip))
    return InMemoryRows(X, y), request_of(np.zeros((1, d)), contribute)


def moves(rows, request, places):
    ((whole, _),) = rows.private_sums([request])
    for place in places:
        ((other, _),) = Without(rows, place).private_sums([request])
        yield np.linalg.norm(whole - other)


BIG = [
    pytest.param(200_000, 8, id="200,000 x 8"),
    pytest.param(1_000_000, 8, marks=pytest.mark.slow, id="1,000,000 x 8"),
    pytest.param(8_400_000, 1, marks=pytest.mark.slow, id="8,400,000 x 1"),
    pytest.param(10_000_000, 1, marks=pytest.mark.slow, id="10,000,000 x 1"),
]


@pytest.mark.parametrize(("n", "d"), BIG)
def test_large_sums_of_nearly_equal_terms(n, d):
    rng = np.random.default_rng(1)
    rows, request = clipped_sums(n, d, 0.33, rng)
    sensitivity = L2Clip(0.33).sensitivity(np.dtype("float32"))
    stated = sensitivity + rows.sum_error(request).of(sensitivity)
    assert stated < 1.01 * 0.33
    assert max(moves(rows, request, rng.integers(n, size=3))) <= stated


def test_blocks_that_are_added_in_single_precision_would_be_found():
    """The twin: the same rows in one panel move the sum by more than is stated for panels of 384."""
    n = 2**22
    rng = np.random.default_rng(1)
    X, C = np.ones((n, 1), np.float32), (0.33 * (0.9 + 0.0999 * rng.random((n, 1)))).astype(np.float32)
    stated, worst = 0.33 * (1 + sum_error(n, np.float32).relative), 0.0
    whole = np.cumsum(C * X, dtype=np.float32)[-1]
    for place in rng.integers(n, size=12):
        other = C.copy()
        other[place] = 0
        worst = max(worst, abs(float(whole) - float(np.cumsum(other * X, dtype=np.float32)[-1])))
    assert worst > 1.02 * stated


@pytest.mark.covering
@pytest.mark.parametrize("algorithm", ["dope-sgd", "gep"])
@pytest.mark.parametrize(
    ("n", "length"),
    [
        (40_000, 30.0),
        (40_000, 1000.0),
        pytest.param(300_000, 1000.0, marks=pytest.mark.slow),
        pytest.param(1_000_000, 1000.0, marks=pytest.mark.slow),
    ],
)
def test_long_gradients_of_which_little_is_released(algorithm, n, length):
    """All gradients point one way: nearly all of each is the public centre's, or in the public span."""
    from skmixdp.algorithms import DOPE, GEP

    rng = np.random.default_rng(0)
    v = rng.normal(size=9)
    v *= length / np.linalg.norm(v)
    problem = make_problem(2, n_rows=n, d=8, normalize=False)
    problem.info.view.data.X[:] = v + 0.3 * rng.normal(size=problem.info.view.data.X.shape) / 3
    X = (v + 0.3 * rng.normal(size=(n, 9)) / 3).astype(np.float32)
    made = {"dope-sgd": DOPE(0.5, momentum=0.0), "gep": GEP(clip=0.5, residual_clip=0.5, momentum=0.0)}
    recipe = problem.recipe(made[algorithm], learning_rate=1e-3)
    rows = InMemoryRows(X, (rng.random(n) < 0.999).astype(int))
    moved = list(losses_of_privacy(problem, recipe, "float32", rows, n, rng))
    assert max(moved) <= 1


@pytest.mark.covering("k d", "d appended", "d dtype")
@pytest.mark.parametrize("k", [1, 3, 10, 100])
@pytest.mark.parametrize("d", [1, 20, 600])
@pytest.mark.parametrize("appended", [None, 0.4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_right_whichever_way_they_are_multiplied(k, d, appended, dtype):
    rng = np.random.default_rng(0)
    total, exact, sizes = Cascade(), 0.0, 0.0
    for n in (0, 5, PANEL_ROWS, 3 * PANEL_ROWS + 7):
        X, C = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(n, k)).astype(dtype)
        add_products(X, C if n % 2 else np.asfortranarray(C), total, appended=appended)
        if appended is not None:
            X = np.column_stack([X, np.full(n, appended, dtype)])
        exact = exact + C.T.astype(np.longdouble) @ X.astype(np.longdouble)
        sizes = sizes + np.abs(C.T).astype(float) @ np.abs(X).astype(float)
    u = float(np.finfo(dtype).eps) / 2
    assert total.value.dtype == np.float64
    assert np.all(np.abs(total.value - exact) <= (PANEL_ROWS + 40) * u * sizes)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("term", [1 / 3, 0.7, 1.0])
def test_a_column_of_constants_is_added_up_in_double_precision(k, term):
    """Many equal terms in single precision, whose sum in it would be off in one direction."""
    n, total = 60_000, Cascade()
    add_products(np.ones((n, 2), "f4"), np.full((n, k), term, "f4"), total, appended=0.4)
    exact = 0.4 * n * float(np.float32(term))
    assert np.all(np.abs(total.value[:, -1] - exact) <= n * 2.0**-53 * exact)


@given(
    n=st.integers(1, 400),
    dtype=st.sampled_from([np.float16, np.float32]),
    kind=st.sampled_from(["equal", "just above", "random"]),
    data=st.data(),
)
def test_adding_one_after_the_other_stays_within_the_bound_for_any_order(n, dtype, kind, data):
    """The worst order there is, with the roundings of half precision so that they are seen."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    terms = {"equal": np.full(n, 1 / 3), "just above": np.full(n, 0.5 + 2**-9), "random": rng.random(n)}[kind]
    terms = terms.astype(dtype)
    place = data.draw(st.integers(0, n - 1))
    other = terms.copy()
    other[place] = 0
    u = float(np.finfo(dtype).eps) / 2
    moved = float(np.cumsum(terms, dtype=dtype)[-1]) - float(np.cumsum(other, dtype=dtype)[-1])
    assert abs(moved - float(terms[place])) <= any_order(n, u) * float(terms.max())


def test_the_bound_for_any_order_is_approached():
    """Within a factor of fifty by terms that are easily found, in half precision, where roundings add up."""
    worst = 0.0
    rng = np.random.default_rng(0)
    for n in (20, 40, 80):
        for _ in range(2000):
            terms = np.full(n, rng.random() / 2 + 0.5).astype(np.float16)
            other = terms.copy()
            other[0] = 0
            moved = float(np.cumsum(terms, dtype="f2")[-1]) - float(np.cumsum(other, dtype="f2")[-1])
            worst = max(worst, abs(moved - float(terms[0])) / (any_order(n, 2.0**-11) * float(terms[0])))
    assert 0.02 < worst <= 1


def test_a_cascade_adds_few_sums_to_one_another():
    """A million equal terms come out exactly, of either precision; what is kept is a few arrays."""
    for dtype in (np.float32, np.float64):
        total = Cascade()
        for _ in range(100_000):
            total.add(np.full((1, 1), 0.1, dtype))
        assert abs(total.value[0, 0] / (100_000 * float(dtype(0.1))) - 1) < (
            1e-6 if dtype == np.float32 else 1e-14
        )
        assert len(total._levels) < 12
    assert Cascade().value is None


@pytest.mark.parametrize("stretch", [1.0, 1.5, 3.0, 10.0, 30.0, 100.0])
def test_panels_get_smaller_where_terms_are_longer(stretch):
    rows = panel_rows_for(stretch)
    if rows is None:
        assert stretch > 10
    else:
        assert sum_error(10**6, np.float32, panel_rows=rows, stretch=stretch).relative <= 0.0101
        assert rows == PANEL_ROWS or stretch > 1
