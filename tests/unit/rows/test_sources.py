"""What every source of private rows promises, asked of each of them on the same rows."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from skmixdp.privacy import NoiseSource
from tests.asking import request_of
from tests.catalog import ALGORITHMS
from tests.conftest import Silent, Watched, make_problem
from tests.private_names import (
    Batch,
    Columns,
    InMemoryRows,
    OuterStatistics,
    RowMap,
    SoftmaxLoss,
    Whitening,
    largest_entries,
    row_norms,
    sum_resolution,
)
from tests.rounding import assert_close, assert_relative

from .conftest import draw

X, y = draw()
N, D = X.shape
rng = np.random.default_rng(5)
MAPS = {
    "as they are": RowMap(None, False, None),
    "centred": RowMap(rng.normal(size=D), False, None),
    "unit length": RowMap(None, True, 0.4),
    "all": RowMap(rng.normal(size=D), True, 0.4),
}
WHITENING = Whitening(np.linalg.qr(rng.normal(size=(D, 3)))[0].T, np.array([0.9, 0.5, 0.1]))
MAPS |= {
    "whitened": RowMap(None, False, None, WHITENING),
    "whitened, all": RowMap(rng.normal(size=D), True, 0.4, WHITENING),
}
COLUMNS = Columns(np.zeros(D), rng.uniform(0.1, 1, size=D))
MAPS |= {
    "unit length first": RowMap(0.2 * rng.normal(size=D), True, 0.1, unit_first=True),
    "unit length first, whitened": RowMap(0.2 * rng.normal(size=D), True, 0.1, WHITENING, unit_first=True),
    "clipped": RowMap(rng.normal(size=D), True, 0.4, bound=2.0),
    "clipped, whitened, columns scaled": RowMap(
        rng.normal(size=D), True, 0.4, WHITENING, bound=1.0, columns=COLUMNS
    ),
    "unit length first, columns scaled": RowMap(None, True, None, unit_first=True, columns=COLUMNS),
}
CLOSE = {"float32": 2e-5, "float64": 1e-9}


def squares(Z, block):
    return Z**2 + block.y[:, None], np.column_stack([block.norms, block.norms**2])


def expected(rows, y, points):
    """The sums of ``squares`` over dense rows, in float64."""
    norms = np.linalg.norm(rows, axis=1)
    return ((rows @ points.T) ** 2 + y[:, None]).T @ rows, np.array([norms.sum(), (norms**2).sum()])


def test_points_that_stay_are_answered_whether_their_products_are_kept_or_not(holder):
    """A source may keep the products of fixed points; the answers are those of now."""
    kept = rng.normal(size=(3, D + 1))
    source = holder.source(X, y, MAPS["all"])
    rows = MAPS["all"](X, np.float64)

    def values(Z, block):
        Z[:, :2] *= 2  # what is computed anew may be overwritten
        return None, OuterStatistics(np.stack([block.norms, block.y], axis=1), Z.astype(np.float64))

    for step in range(5):
        if step == 3:
            kept = kept + 1
        points = np.concatenate([rng.normal(size=(2, D + 1)), kept])
        mask = np.arange(N) % 3 == 0 if step == 2 else None
        ((_, sums),) = source.private_sums([request_of(points, values, Batch(members=mask), n_fixed=3)])
        Z, here = rows @ points.T, slice(None) if mask is None else mask
        Z[:, :2] *= 2
        want = np.stack([row_norms(rows), y], axis=1)[here].T @ Z[here]
        assert_close(sums, want.ravel())


def test_fits_with_fixed_points_of_their_own_share_a_pass_and_no_products(holder):
    """Also where a fit comes to the place of another one, with other points or more of them."""
    kept = rng.normal(size=(3, D + 1))
    fits = [(2, kept), (2, rng.normal(size=(3, D + 1))), (4, kept)]  # moving and fixed points
    source = holder.source(X, y, MAPS["all"])
    rows = MAPS["all"](X, np.float64)

    def values(Z, block):
        return None, OuterStatistics(np.stack([block.norms, block.y], axis=1), Z.astype(np.float64))

    for here in (fits, fits, fits[::-1], fits[1:], fits[2:], fits[:1]):
        points = [np.concatenate([rng.normal(size=(m, D + 1)), fixed]) for m, fixed in here]
        asked = [request_of(of_fit, values, n_fixed=3) for of_fit in points]
        for (_, sums), of_fit in zip(source.private_sums(asked), points, strict=True):
            assert_close(sums, (np.stack([row_norms(rows), y], axis=1).T @ (rows @ of_fit.T)).ravel())


@pytest.mark.covering("holder name")
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("name", MAPS)
def test_sums_are_those_of_the_mapped_rows(holder, name, dtype):
    rows = MAPS[name](X, np.float64)
    points = rng.normal(size=(2, rows.shape[1]))
    source = holder.source(X, y, MAPS[name], dtype)
    assert source.n_rows == N
    ((matrix, statistics),) = source.private_sums([request_of(points, squares)])
    assert matrix.dtype == np.float64
    want, lengths = expected(rows, y, points)
    np.testing.assert_allclose(matrix, want, rtol=CLOSE[dtype], atol=CLOSE[dtype] * np.abs(want).max())
    assert_relative(statistics, lengths, CLOSE[dtype])


@pytest.mark.covering
@pytest.mark.parametrize("dtype", CLOSE)
def test_products_come_in_the_dtype_that_was_asked_for(holder, dtype):
    seen = set()

    def look(Z, block):
        seen.add(Z.dtype)
        return None, Z

    holder.source(X, y, MAPS["all"], dtype).private_sums([request_of(np.zeros((1, D + 1)), look)])
    assert seen == {np.dtype(dtype)}


@pytest.mark.covering
@pytest.mark.parametrize("name", ["all", "whitened, all"])
def test_requests_with_batches_of_their_own_are_answered_in_one_pass(holder, name):
    row_map = MAPS[name]
    rows = row_map(X, np.float64)
    source = holder.source(X, y, row_map)
    masks = [rng.random(N) < 0.1, None, np.arange(N) == N - 1, np.zeros(N, bool)]
    points = [rng.normal(size=(m, D + 1)) for m in (2, 1, 3, 2)]
    for batch in (slice(None), slice(0, 1), slice(2, 3), slice(3, 4), slice(2, 4)):
        asked = list(zip(masks, points, strict=True))[batch]
        answers = source.private_sums([request_of(A, squares, Batch(members=mask)) for mask, A in asked])
        for (mask, A), (matrix, statistics) in zip(asked, answers, strict=True):
            taken = slice(None) if mask is None else mask
            want, lengths = expected(rows[taken], y[taken], A)
            np.testing.assert_allclose(matrix, want, atol=1e-8)
            np.testing.assert_allclose(statistics, lengths, atol=1e-8)


def test_a_request_may_ask_for_one_kind_of_sum(holder):
    source = holder.source(X, y)
    A = rng.normal(size=(2, D))
    (matrix, none), (nothing, vector) = source.private_sums(
        [request_of(A, lambda Z, block: (Z.copy(), None)), request_of(A, lambda Z, block: (None, Z.copy()))]
    )
    assert none is None and nothing is None
    rows = X.astype(np.float64)
    assert_close(matrix, (rows @ A.T).T @ rows)
    np.testing.assert_allclose(vector, (rows @ A.T).sum(axis=0), atol=1e-8)


@pytest.mark.covering
@pytest.mark.parametrize("name", ["all", "whitened, all"])
def test_norms_and_entries_are_never_understated(holder, name):
    source = holder.source(X, np.arange(N), MAPS[name], "float64")
    rows = MAPS[name](X, np.float64)
    seen = []

    def look(Z, block):
        here = rows[block.y]  # a row's label is its number: chunks come in any order
        assert_relative(block.norms, row_norms(here), 1e-9)
        assert np.all(block.norms >= row_norms(here) * (1 - 1e-14))
        # Sparse rows come out shorter by the slack of the lengths by which they are divided.
        shorter = 1e-10 if "whitened" in name else 1e-14
        assert np.all(block.max_abs >= largest_entries(here) * (1 - shorter))
        assert np.all(block.rounding_scale >= block.norms)
        assert block.single_norms.dtype == np.float32
        assert np.all(block.single_norms >= block.norms)
        assert_relative(block.single_norms, block.norms, 1e-6)
        seen.extend(block.y.tolist())
        return None, np.zeros((len(Z), 1))

    source.private_sums([request_of(np.zeros((1, D + 1)), look)])
    assert sorted(seen) == list(range(N))


@pytest.mark.covering
@pytest.mark.parametrize(
    "row_map",
    [MAPS["unit length"], MAPS["all"], MAPS["whitened, all"]],
    ids=["not centred", "centred", "whitened"],
)
def test_exact_sums_are_the_same_to_the_last_bit_or_refused(holder, row_map):
    if holder.kind == "sparse":
        with pytest.raises(ValueError, match=r"noise='discrete' needs rows on a grid.*X\.toarray\(\)"):
            holder.source(X, y, row_map, exact=True)
        return
    points = np.random.default_rng(2).normal(size=(2, D + 1))

    def clipped(Z, block):
        factor = np.minimum(1, 0.5 / (np.linalg.norm(Z, axis=1) * block.norms))
        return Z * factor[:, None], None

    source = holder.source(X, y, row_map, exact=True)
    reference = InMemoryRows(row_map(X, np.float64), y, exact=True)
    assert source.grid == reference.grid
    resolution = sum_resolution(N, source.grid, 0.5)
    request = request_of(points, clipped, resolution=resolution)
    ((matrix, _),) = source.private_sums([request])
    ((want, _),) = reference.private_sums([request])
    np.testing.assert_array_equal(matrix, want)
    units = matrix / (source.grid * resolution)
    np.testing.assert_array_equal(units, np.round(units))


@pytest.mark.covering("holder whitened", "holder dtype", "name whitened", "name dtype")
@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("whitened", [False, True], ids=["", "whitened"])
@pytest.mark.parametrize("name", ["adamix", "dope-sgd", "gep", "modelmix", "pazo-m", "pazo-s"])
def test_removing_a_row_moves_every_sum_by_at_most_its_sensitivity(holder, name, whitened, dtype):
    problem = make_problem(n_rows=60, d=5)
    raw = np.random.default_rng(8).normal(size=(60, 5)).astype(np.float32)
    raw[0] *= 100
    mean = np.random.default_rng(9).normal(size=5)
    labels = problem.y.copy()
    whitening = Whitening(np.linalg.qr(rng.normal(size=(5, 2)))[0].T, np.array([0.5, 0.05]))
    row_map = RowMap(mean, True, 0.4, whitening if whitened else None)
    labels[0] = int(np.argmin(problem.info.view.W @ row_map(raw[:1], np.float64)[0]))
    recipe = problem.recipe(ALGORITHMS[name])
    watched = []
    for kept in (slice(0, None), slice(1, None)):
        noise = Watched(5)
        rows = holder.source(raw[kept], labels[kept], row_map, dtype)
        _, plan = problem.trained(recipe, noise=noise, rows=rows, n_steps=2, dtype=dtype)
        watched.append(noise)
    one, other = watched
    assert one.scales == pytest.approx(other.scales, rel=1e-6)  # the rounding of sums grows with their terms
    rounding = 1e-5 if dtype == "float32" else 1e-12
    moves = [
        max(np.linalg.norm(a - b) - rounding * np.linalg.norm(a), 0) * plan.noise_multiplier / scale
        for a, b, scale in zip(one.sums, other.sums, one.scales, strict=True)
    ]
    moves = np.linalg.norm(np.reshape(moves, (2, -1)), axis=1)
    assert 0.02 < max(moves) <= 1 + 1e-9


class TestFits:
    """A fit is that of the same rows in memory, noise left out."""

    @pytest.fixture(autouse=True)
    def silent(self, monkeypatch):
        monkeypatch.setattr(NoiseSource, "add_noise", Silent.add_noise)

    @pytest.mark.covering
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"rows": RowMapping(norm=None), "learning_rate": 0.05},
            {"rows": RowMapping(center=False), "fit_intercept": False},
            {"batch_size": 200},
            # It mixes by the sensitivity, which includes the rounding of a source.
            {"algorithm": "modelmix", "rows": RowMapping(whiten=True), "dtype": "float64"},
            {"algorithm": "dope-sgd", "rows": RowMapping(whiten=True), "dtype": "float64"},
            {"algorithm": "gep", "dtype": "float64"},
        ],
        ids=str,
    )
    def test_classifier(self, holder, parameters):
        held, labels = holder.hold(X[100:], y[100:])
        fits = [
            MixedDPLogisticRegression(n_steps=5, random_state=0, **parameters).fit(
                a, b, X_pub=X[:100], y_pub=y[:100]
            )
            for a, b in ((X[100:], y[100:]), (held, labels))
        ]
        size = np.abs(fits[0].coef_).max()
        np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, atol=1e-6 * size)
        np.testing.assert_allclose(fits[1].intercept_, fits[0].intercept_, atol=1e-6 * size)
        assert fits[1].privacy_.n_private == len(X) - 100
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            want = _named(fits[1], X[100:], method)
            got = getattr(fits[1], method)(held)
            assert hasattr(got, "compute") == (holder.kind == "dask")
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-9)

    def test_two_classes_and_names_of_columns(self, holder):
        held, labels = holder.hold(X, y // 2)
        clf = MixedDPLogisticRegression(n_steps=2, classes=[0, 1]).fit(held, labels)
        np.testing.assert_array_equal(np.asarray(clf.predict(held)), _named(clf, X, "predict"))
        assert clf.decision_function(held).shape == (N,)
        assert (getattr(clf, "feature_names_in_", None) is not None) == (
            holder.kind in ("parquet", "arrow", "lists")
        )

    @pytest.mark.filterwarnings("ignore:X_pub is a Dask collection:UserWarning")
    def test_public_rows_and_labels_held_in_other_ways(self, holder):
        held, _ = holder.hold(X[:100], y[:100])
        # (In float32 the sources' sums are rounded differently, and the default shrinks by the noise.)
        want = MixedDPLogisticRegression(n_steps=3, dtype="float64")
        want.fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
        clf = MixedDPLogisticRegression(n_steps=3, dtype="float64")
        clf.fit(X[100:], y[100:], X_pub=held, y_pub=y[:100])
        np.testing.assert_allclose(clf.coef_, want.coef_, atol=1e-6)
        held, _ = holder.hold(X[100:], y[100:])
        da = pytest.importorskip("dask.array")
        labels = da.from_array(y[100:], chunks=200)
        clf.fit(held, labels, X_pub=X[:100], y_pub=y[:100])
        np.testing.assert_allclose(clf.coef_, want.coef_, atol=1e-6)

    @pytest.mark.covering
    @pytest.mark.parametrize("flat", [True, False])
    def test_regressor(self, holder, flat):
        held, labels = holder.hold(X[100:], y[100:])
        given = None if labels is None and flat else (y[100:] if flat else np.column_stack([y, -y])[100:])
        target = y if flat else np.column_stack([y, -y])
        fits = [
            MixedDPRidge(n_steps=5, random_state=0).fit(a, b, X_pub=X[:100], y_pub=target[:100])
            for a, b in ((X[100:], target[100:]), (held, given))
        ]
        np.testing.assert_allclose(fits[1].coef_, fits[0].coef_, atol=1e-6)
        got = fits[1].predict(held)
        assert got.shape == target[100:].shape
        np.testing.assert_allclose(np.asarray(got), _named(fits[1], X[100:], "predict"), atol=1e-9)


def test_whitened_sparse_rows_are_never_made_dense(monkeypatch):
    monkeypatch.setattr(sp.csr_array, "toarray", lambda *args, **kwargs: pytest.fail("rows were made dense"))
    rows = sp.csr_array(X[100:])
    clf = MixedDPLogisticRegression(random_state=0).fit(rows, y[100:], X_pub=X[:100], y_pub=y[:100])
    assert clf._row_map.whitening is not None
    np.testing.assert_allclose(clf.decision_function(rows), clf.decision_function(X[100:]), atol=1e-9)


def _named(estimator, X, method):
    """What an estimator says of rows with the names that it knows."""
    names = getattr(estimator, "feature_names_in_", None)
    return getattr(estimator, method)(X if names is None else pd.DataFrame(X, columns=names))


@pytest.mark.covering("holder name")
@pytest.mark.parametrize("hostile", [0.0, 1e-30, 1e25])
@pytest.mark.parametrize("name", ["unit length", "whitened, all", "unit length first, whitened", "clipped"])
@pytest.mark.parametrize("dtype", CLOSE)
def test_a_row_changes_what_no_other_row_contributes(holder, name, dtype, hostile):
    if holder.kind == "dask":
        pytest.skip("contributions stay with the workers")
    replaced, points, loss, clip = 700, 0.3 * rng.normal(size=(3, D + 1)), SoftmaxLoss(3), L2Clip(0.3)
    points = points[:, : MAPS[name](X[:1], np.float64).shape[1]]

    def contributions(X, y):
        found = np.full((N, 3), np.nan)

        def observe(rows, block, Z, contribution):
            C = contribution[0]
            found[rows] = C if isinstance(C, np.ndarray) else C.cpu()

        source = holder.source(X, y, MAPS[name], dtype)
        contribute = partial(clipped_residuals, loss=loss, clip=clip)
        source.private_sums([request_of(points, contribute, observe=observe)])
        return found

    one = contributions(X, y)
    X_other, y_other = X.copy(), y.copy()
    X_other[replaced], y_other[replaced] = hostile, 2 - y[replaced]
    other = contributions(X_other, y_other)
    assert np.isfinite(one).all()
    others = np.arange(N) != replaced
    np.testing.assert_array_equal(other[others], one[others])
    assert not np.array_equal(other[replaced], one[replaced])


def test_the_grid_of_exact_sums_does_not_depend_on_the_rows(holder):
    """Released sums lie on it, so it would tell the size of the largest private entry."""
    if holder.kind == "sparse":
        pytest.skip("sparse rows are on no grid")
    X, y = draw(600)
    grids = {holder.source(scale * X, y, exact=True).grid for scale in np.float32([1e-6, 1, 1e6])}
    assert len(grids) == 1 and None not in grids
