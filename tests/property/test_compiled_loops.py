"""Sums by compiled loops obey the bounds that NumPy's sums obey, and are the same up to rounding."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from skmixdp import MixedDPLogisticRegression
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from tests.private_names import Batch, InMemoryRows, classification_loss, process, worker_session

pytest.importorskip("numba")

from tests.asking import request_of
from tests.private_names import dotted_path
from tests.private_names import products as loops
from tests.rounding import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:.*(overflow|invalid value):RuntimeWarning")

#: Loops are compiled once, in the first example.
thorough = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def used(monkeypatch):
    """The calls of the compiled loops, which take any number of rows now."""
    monkeypatch.setattr(loops, "_MUCH_WORK", 1)
    sums, calls = loops.compiled(), []
    assert sums is not None  # they can be compiled here, and add up right

    def counted(*arguments):
        calls.append(len(arguments))
        return sums(*arguments)

    monkeypatch.setattr(loops, "compiled", lambda: counted)
    return calls


def pattern(name, n, d, rng):
    """Rows that are hard to clip or to add up."""
    X = rng.normal(size=(n, d))
    if name == "equal":
        X = np.tile(X[:1], (n, 1))
    elif name == "alternating":
        X = np.tile(X[:1], (n, 1)) * np.where(np.arange(n) % 2, 1, -1)[:, None]
    elif name == "of all lengths":
        X *= 10.0 ** rng.uniform(-44, 28, size=(n, 1))
    elif name == "one huge":
        X[n // 3] = 1e28
    elif name == "subnormal":
        X *= 1e-40
    return X.astype(np.float32)


PATTERNS = ["random", "equal", "alternating", "of all lengths", "one huge", "subnormal"]
problems = st.fixed_dictionaries(
    {
        "n": st.sampled_from([1, 2, 15, 384, 385, 3000]),
        "d": st.integers(1, 64),
        "k": st.sampled_from([2, 3, 4, 7, 16]),
        "name": st.sampled_from(PATTERNS),
        "scale": st.sampled_from([1e-30, 1.0, 30.0, 1e20]),
        "threshold": st.sampled_from([1e-6, 0.1, 1.0, 1e6]),
        "seed": st.integers(0, 99),
    }
)


def made(n, d, k, name, scale, threshold, seed):
    """Rows, labels and the request for clipped gradients at a random head, which may be huge."""
    rng = np.random.default_rng(seed)
    X, y = pattern(name, n, d, rng), rng.integers(k, size=n).astype(np.int8)
    loss, clip = classification_loss(k), L2Clip(threshold)
    W = scale * rng.normal(size=(loss.n_outputs, d))
    query = partial(clipped_residuals, loss=loss, clip=clip)
    return X, y, request_of(W, query, clip_threshold=threshold), clip.sensitivity(np.dtype("f4"))


def sums_of(rows, request):
    ((matrix, vector),) = rows.private_sums([request])
    assert vector is None
    return matrix


@thorough
@given(problem=problems)
def test_no_row_moves_a_sum_by_more_than_is_stated(used, problem):
    X, y, request, sensitivity = made(**problem)
    rows = InMemoryRows(X, y)
    whole, stated = sums_of(rows, request), rows.sum_error(request).of(sensitivity) + sensitivity
    assert np.all(np.isfinite(whole))
    for row in {0, len(X) // 3, len(X) - 1}:
        others = replace(request, batch=Batch(np.arange(len(X)) != row, 1.0))
        assert np.linalg.norm(whole - sums_of(rows, others)) <= stated
    assert used


@thorough
@given(problem=problems)
def test_one_row_alone_obeys_its_clip(used, problem):
    X, y, request, sensitivity = made(**{**problem, "n": 1})
    assert np.linalg.norm(sums_of(InMemoryRows(X, y), request)) <= sensitivity
    assert used


@pytest.mark.parametrize("m", [1, 2, 6, 15])
def test_the_rounding_of_a_clip_is_taken_off_its_threshold(m):
    """Residuals of one row at a time, whose length is said to be a number that is no power of two."""
    sums, rng = loops.compiled(), np.random.default_rng(m)
    for length in rng.uniform(50, 100, 400).astype("f4"):
        point = rng.normal(size=(m, 1)).astype("f4")
        row, label = np.ones((1, 1), "f4", order="F"), np.zeros(1, np.int8)
        C = sums(row, label, np.array([length]), point, 0.5, slice(0, 1)).astype(np.longdouble)
        assert 0.49 < float(np.sqrt((C**2).sum()) * length) <= 0.5 * (1 + 2**-24)


@thorough
@given(problem=problems, place=st.integers(0, 63), huge=st.sampled_from([3e28, -1e15, 1e-41]))
def test_a_row_changes_no_bit_of_what_others_contribute(used, problem, place, huge):
    X, y, request, _ = made(**{**problem, "name": "random", "n": problem["d"]})
    place %= len(X)
    # Each row has a column of its own, so that each column of the sums is one row's.
    alone = X * np.eye(len(X), dtype="f4")
    other = alone.copy()
    other[place] *= np.float32(huge)
    label = y.copy()
    label[place] = 0
    found = [sums_of(InMemoryRows(each, given), request) for each, given in ((alone, y), (other, label))]
    np.testing.assert_array_equal(*(np.delete(each, place, axis=1) for each in found))
    assert used


@pytest.mark.parametrize("k", [2, 3, 7])
def test_no_label_decides_whether_loops_add_up(used, k):
    """A row of zeros contributes nothing, so its label moves no bit, even if no other row has that label."""
    X, y, request, _ = made(3000, 6, k, "random", 1.0, 0.5, 0)
    X[417] = 0
    y %= k - 1
    found, calls = [], []
    for label in (0, k - 1):
        y[417] = label
        found.append(sums_of(InMemoryRows(X, y.copy()), request))
        calls.append(len(used))
    assert calls[1] == 2 * calls[0] > 0
    np.testing.assert_array_equal(*found)


@thorough
@given(problem=problems)
def test_the_sums_are_those_of_numpy(used, monkeypatch, problem):
    if problem["scale"] > 1e6:
        problem = {**problem, "scale": 3.0}  # rounding of huge outputs decides between classes
    # A shorter clip keeps residuals that are hardly more than rounding, and their direction.
    problem = {**problem, "threshold": max(problem["threshold"], 0.1)}
    X, y, request, sensitivity = made(**problem)
    rows = InMemoryRows(X, y)
    found = sums_of(rows, request)
    assert used
    expected = sums_of(rows, request_of(request.query.points, request.query.contribute))
    # Outputs are rounded in proportion to their size.
    points = np.abs(request.query.points)
    sizes = points[:, : X.shape[1]] @ np.abs(X.astype(float)).T + points.max()
    tolerance = np.minimum(1e-6 * (1 + sizes.max()), 1) + 1e-5
    assert np.abs(found - expected).max() <= tolerance * sensitivity * len(X)


@pytest.mark.parametrize(("n_classes", "n_features"), [(2, 6), (3, 20)])
def test_a_default_fit_is_the_same_with_compiled_loops(used, monkeypatch, n_classes, n_features):
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=3_000)
    X = (rng.normal(size=(len(y), n_features)) + 2 * np.eye(n_classes, n_features)[y]).astype("f4")

    def fitted():
        head = MixedDPLogisticRegression(random_state=0)
        return head.fit(X, y, X_pub=X[:60], y_pub=y[:60]).coef_

    compiled = fitted()
    assert len(used) > 10
    monkeypatch.setattr(loops, "_MUCH_WORK", 10**12)
    np.testing.assert_allclose(compiled, fitted(), rtol=1e-3, atol=1e-5)


def test_threads_share_the_loops(used, monkeypatch):
    X, y, request, _ = made(200_000, 5, 3, "random", 1.0, 0.5, 0)
    rows = InMemoryRows(X, y)
    alone = sums_of(rows, request)
    monkeypatch.setattr(process, "_allowed_threads", lambda: 2)
    before = len(used)
    with threadpool_limits(2, user_api="blas"), worker_session():
        assert_close(sums_of(rows, request), alone, 1e-6)
    assert len(used) - before >= 4


def test_rows_that_take_no_part_add_nothing(used):
    """Audits and folds leave rows out, and see the same loops as fits."""
    X, y, request, _ = made(2_000, 9, 3, "random", 1.0, 0.5, 0)
    mask = np.arange(len(X)) % 3 > 0
    request = replace(request, batch=Batch(members=mask))
    found = sums_of(InMemoryRows(X, y), request)
    assert used
    X[~mask] = 0
    np.testing.assert_array_equal(found, sums_of(InMemoryRows(X, y), replace(request, batch=Batch())))


@pytest.mark.parametrize("k", [3, 16])
def test_a_row_whose_outputs_are_no_numbers_adds_nothing(used, k):
    X, y, request, _ = made(800, 4, k, "random", 1e20, 0.5, 0)
    X[5] = 4e29 * np.array([1, -1, 1, -1])
    request = request.with_query(points=1e20 * np.ones(request.query.points.shape))
    found = sums_of(InMemoryRows(X, y), request)
    X[5] = 0
    np.testing.assert_array_equal(found, sums_of(InMemoryRows(X, y), request))
    assert used


def test_several_heads_share_the_loops(used):
    X, y, first, _ = made(2_000, 9, 3, "random", 1.0, 0.5, 0)
    second = request_of(2 * first.query.points, first.query.contribute, clip_threshold=0.2)
    rows = InMemoryRows(X, y)
    together = rows.private_sums([first, second])
    assert used
    for (found, _), request in zip(together, (first, second), strict=True):
        np.testing.assert_array_equal(found, sums_of(rows, request))
    used.clear()
    rows.private_sums([first, request_of(first.query.points, first.query.contribute)])
    assert not used  # one pass serves both


@pytest.mark.parametrize(
    "changes",
    [
        {"clip_threshold": None},
        {"batch": Batch(members=np.arange(500) < 200)},
        {"panel_rows": 0},
        {"resolution": 2.0**-20},
        {"observe": lambda *_: None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_asks_for_more_than_sums_is_left_to_numpy(used, changes):
    X, y, request, _ = made(500, 5, 3, "random", 1.0, 0.5, 0)
    values = {name: getattr(request.query, name) for name in ("points", "contribute", "clip_threshold")}
    InMemoryRows(X, y).private_sums([request_of(**{**values, **changes})])
    assert not used


@pytest.mark.parametrize(
    ("n", "d", "k"), [(900_000, 20, 3), (10**6, 20, 17), (10**6, 0, 3), (10**6, 129, 10)]
)
def test_other_sizes_are_left_to_numpy(n, d, k):
    assert loops.clipped_sums(n, d, k, np.float32) is None


def test_double_precision_is_left_to_numpy():
    assert loops.clipped_sums(10**6, 20, 3, np.float64) is None


def unclipped(sums, X, y, lengths, points, threshold, rows):
    return sums(X, y, lengths, points, 2 * threshold, rows)


@pytest.mark.parametrize(
    "fault", [lambda sums, *given: 1.01 * sums(*given), unclipped, lambda sums, *given: np.nan * sums(*given)]
)
def test_loops_that_do_not_add_up_right_are_noticed(fault):
    sums = loops.compiled()
    assert loops.is_right(sums) and not loops.is_right(partial(fault, sums))


class NotCompiled:
    """What numba leaves of a function if it is told not to compile."""

    clipped_sums = staticmethod(lambda *arguments: 1 / 0)


@pytest.mark.parametrize("module", [None, NotCompiled], ids=["no module", "not compiled"])
def test_loops_that_cannot_be_compiled_are_not_used(monkeypatch, module):
    loops.compiled.cache_clear()
    monkeypatch.setitem(sys.modules, dotted_path("compiled_loops"), module)
    monkeypatch.delattr(dotted_path("compiled_loops"), raising=False)
    try:
        assert loops.compiled() is None
        assert loops.clipped_sums(10**6, 20, 3, np.float32) is None
    finally:
        loops.compiled.cache_clear()
