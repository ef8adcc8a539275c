"""What is released for tables moves by at most its sensitivity, and by no more than one row's own part."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.conftest import Watched
from tests.private_names import (
    _BINS,
    ArrayTable,
    BinCounts,
    Columns,
    GaussianMechanism,
    Learner,
    OpenRows,
    RowMap,
    _bins_between,
    _magnitudes,
    at_temperature,
    bind_rows,
    drive,
    noisy_columns,
    noisy_matrix,
    unmapped,
)
from tests.property.spies import Recorded, prepare, source
from tests.rounding import assert_relative

N, D, K = 60, 4, 3
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D)) * [1.0, 1e4, 1e-4, 1.0] + [0.0, 5e4, 0.0, 3.0]
Y = np.arange(N) % K
COLUMNS = Columns(X.mean(axis=0), 1 / X.std(axis=0))
ROW_MAP = RowMap(None, True, None, columns=COLUMNS, bound=4.0)

BIG, TINY, SUBNORMAL = (getattr(np.finfo("f4"), name) for name in ("max", "tiny", "smallest_subnormal"))
#: What the row becomes that differs.
HOSTILE = {
    "typical": X[7],
    "far": X[7] + 1e3,
    "huge": np.array([BIG, -BIG, BIG, BIG]),
    "one huge entry": np.array([0.0, BIG, 0.0, 0.0]),
    "subnormal": np.array([SUBNORMAL, -SUBNORMAL, 0.0, SUBNORMAL]),
    "tiny": np.array([TINY, TINY, -TINY, TINY]),
    "zeros": np.zeros(D),
    "negative zeros": -np.zeros(D),
    "ends of a range": np.array([2.0**50, -(2.0**50), 2.0**-50, 1.0]),
}
KINDS = ["memory", "sparse", "memory map", "memory map, as if wide", "parquet", "dask"]
KINDS += ["torch", "torch, as on a device"]


def temperature_query(learner, n_features, W, mu):
    """The at_temperature, as the loop sends its query."""
    mechanism = GaussianMechanism(mu, 1, learner.noise)
    mechanism.begin_step(learner.members)
    rounds = at_temperature(W, mu, has_classes=True, mu=1e9)
    released = yield mechanism, next(rounds)
    try:
        rounds.send(released.arrays)
    except StopIteration as ended:
        return ended.value


#: What asks, through which map, and the sensitivity for rows of that many features.
RELEASES = {
    "columns": (lambda learner, d, W, mu: noisy_columns(learner, d, mu), unmapped(D), math.sqrt(D)),
    "second moment": (lambda learner, d, W, mu: noisy_matrix(learner, d, mu), ROW_MAP, 1.0),
    "temperature": (temperature_query, ROW_MAP, math.sqrt(8)),
}
#: Root of the number of releases that share the budget, so the noise of each is so many times as large.
ROUNDS = {"columns": math.sqrt(3), "second moment": 1.0, "temperature": 1.0}
HEADS = {
    "usual": rng.normal(size=(K, D)),
    "zeros": np.zeros((K, D)),
    "huge": 1e30 * rng.normal(size=(K, D)),
    "infinite": np.where(np.arange(D) == 1, np.inf, np.ones((K, D))),
    "no number": np.full((K, D), np.nan),
}


def asked_of(rows, name, W, multiplier=1.0, members=None):
    """The sums that a release adds up, and the noise that it asks for, relative to the multiplier."""
    noise = Watched(0)
    n_rows = rows.n_rows if members is None else int(members.sum())
    learner = Learner(n_rows, members, noise, np.dtype("float32"))
    drive([bind_rows(OpenRows(rows), RELEASES[name][0](learner, D, W, multiplier))])
    return noise.sums, [scale / multiplier for scale in noise.scales]


def held(kind, tmp_path, X, name, dtype="float32"):
    return source(kind, tmp_path, X.astype(np.float32), Y, RELEASES[name][1], dtype)


def with_row(x):
    changed = X.copy()
    changed[7] = x
    return changed


@pytest.mark.covering("name row", "name head", "name kind", "kind row")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", HOSTILE)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", RELEASES)
def test_a_hostile_row_moves_a_release_by_no_more_than_is_stated(
    tmp_path_factory, monkeypatch, name, head, row, kind
):
    """Compared are the sums with the row, and those where it is no member: each moves by one contribution."""
    prepare(kind, monkeypatch)
    changed = with_row(HOSTILE[row])
    limit = RELEASES[name][2]
    one = asked_of(held(kind, tmp_path_factory.mktemp("one"), changed, name), name, HEADS[head])
    members = np.arange(N) != 7
    rows = held(kind, tmp_path_factory.mktemp("other"), changed, name)
    other = asked_of(rows, name, HEADS[head], members=members)
    for with_it, without, scale, less in zip(*one[:1], *other[:1], one[1], other[1], strict=True):
        assert np.all(np.isfinite(with_it)) and np.all(np.isfinite(without))
        assert scale == pytest.approx(less, rel=1e-4)
        scale = min(scale, less) / ROUNDS[name]
        assert limit <= scale < 1.02 * limit  # with the rounding of sums in single precision
        assert np.linalg.norm(with_it - without) <= scale
        if name == "columns":
            moved = (with_it - without).reshape(D, -1)
            # One more in one bin of each column, exactly.
            assert np.array_equal(np.sort(moved, axis=1)[:, -2:], np.tile([0.0, 1.0], (D, 1)))
            assert not (moved < 0).any()


@pytest.mark.covering("name row", "name kind", "name dtype")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dask"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", HOSTILE)
@pytest.mark.parametrize("name", RELEASES)
def test_no_other_row_contributes_anything_else(tmp_path_factory, monkeypatch, name, row, dtype, kind):
    prepare(kind, monkeypatch)
    seen = []
    for changed in (X, with_row(HOSTILE[row])):
        rows = Recorded(held(kind, tmp_path_factory.mktemp("rows"), changed, name, dtype))
        asked_of(rows, name, HEADS["usual"])
        seen.append(rows.seen)
    gone, come = seen[0] - seen[1], seen[1] - seen[0]
    assert sum(gone.values()) == sum(come.values()) <= 1 + (name == "columns") * 2


ANY = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, 2.0**50, -(2.0**50), 2.0**-50]),
)


@given(data=st.data(), dtype=st.sampled_from(["f4", "f8"]))
def test_every_entry_has_one_bin_of_each_histogram(data, dtype):
    """Products that are no numbers must neither end the fit nor count twice."""
    with np.errstate(all="ignore"):
        Z = data.draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(D)), elements=ANY))
        Z = Z.astype(dtype)
        low = data.draw(hnp.arrays(np.float64, D, elements=st.floats(-(2.0**51), 2.0**51)))
        width = data.draw(hnp.arrays(np.float64, D, elements=st.floats(2.0**-70, 2.0**51)))
        finders = {129: _magnitudes}
        for n_bins in _BINS:
            finders[n_bins] = partial(_bins_between, low=low, width=width, n_bins=n_bins)
        for n_bins, bins_of in finders.items():
            bins = bins_of(Z)
            assert bins.shape == Z.shape and np.issubdtype(bins.dtype, np.integer)
            assert bins.min() >= 0 and bins.max() < n_bins
            counts = BinCounts(bins, n_bins)
            assert_relative(np.linalg.norm(np.asarray(counts), axis=1), math.sqrt(D))
            assert counts.sums().sum() == Z.size
            for i in range(len(Z)):
                np.testing.assert_array_equal(bins_of(Z[i : i + 1])[0], bins[i])


@pytest.mark.parametrize("name", RELEASES)
def test_the_row_that_moves_most_moves_as_far_as_is_stated(name):
    """A smaller sensitivity would be wrong."""
    head, row = np.zeros((K, D)), X[7]
    if name == "second moment":
        row = 1e9 * X[7]
    if name == "temperature":  # a head that is quite sure of a wrong class
        head[2] = 1e9 * ROW_MAP(X[7:8], np.float64)[0]
    rows = [ArrayTable(with_row(row)).private_rows(Y, RELEASES[name][1], np.dtype("f8"), exact=False)] * 2
    (one, *_), scales = asked_of(rows[0], name, head)
    (other, *_), _ = asked_of(rows[1], name, head, members=np.arange(N) != 7)
    scale = scales[0] / ROUNDS[name]
    assert scale * (1 - 1e-6) <= np.linalg.norm(one - other) <= scale
