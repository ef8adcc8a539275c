"""Sums over persons: layout, means, clips and lengths."""

from functools import partial
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skmixdp.components import AutomaticClip, L2Clip
from skmixdp.components.clipping import clipped_residuals, unclipped_residuals
from tests.asking import request_of
from tests.private_names import (
    ArrayTable,
    Batch,
    BinCounts,
    L2LinfClip,
    MeanClip,
    OuterStatistics,
    PersonTable,
    Places,
    RowMap,
    SoftmaxLoss,
    SquaredLoss,
    products,
)

AS_THEY_ARE = RowMap(None, False, None)
LOSS = SoftmaxLoss(3)


def sizes_to_codes(sizes, rng=None):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return codes if rng is None else rng.permutation(codes)


def drawn(sizes, d=5, k=3, seed=0, dtype="f4"):
    """Rows of persons of these sizes in random order, with labels and a head."""
    rng = np.random.default_rng(seed)
    codes = sizes_to_codes(sizes, rng)
    X = rng.normal(size=(len(codes), d)).astype(dtype)
    return X, rng.integers(0, k, len(codes)).astype(np.int8), codes, rng.normal(size=(k, d))


def rows_of(X, y, codes, n_persons, dtype="f4"):
    table = PersonTable(ArrayTable(X), codes, n_persons, "person")
    return table.private_rows(y, AS_THEY_ARE, np.dtype(dtype), exact=False)


def clipped(W, clip, loss=LOSS, **parameters):
    """A request for the sum of persons' clipped mean gradients."""
    within = partial(unclipped_residuals, loss=loss)
    contribute = partial(clipped_residuals, loss=loss, clip=clip)
    return request_of(W, contribute, mean_clip=MeanClip(within, clip), **parameters)


def mean_gradients(X, y, codes, n_persons, W, loss=LOSS):
    """The mean gradient (n_persons, k, d) of each person, in double precision."""
    wide = X.astype(np.float64)
    residuals = loss.residuals(wide @ W.T, y)
    means = np.zeros((n_persons, *W.shape))
    np.add.at(means, codes[codes >= 0], (residuals[:, :, None] * wide[:, None, :])[codes >= 0])
    return means / np.maximum(np.bincount(codes[codes >= 0], minlength=n_persons), 1)[:, None, None]


def lengths_found(X, y, codes, n_persons, W, loss, dtype="f4"):
    """The lengths of mean gradients that a clip is given."""
    found = {}

    class Kept(L2Clip):
        def weights(self, norms, largest):
            found["lengths"] = np.array(norms)
            return super().weights(norms, largest)

    rows_of(X, y, codes, n_persons, dtype).private_sums([clipped(W, Kept(0.3), loss)])
    return found["lengths"]


SIZES = st.lists(st.sampled_from([0, 1, 1, 2, 3, 7, 40, 64, 65, 128, 129, 300]), min_size=2, max_size=60)


@given(sizes=SIZES, seed=st.integers(0, 99), d=st.sampled_from([0, 3, 2000]))
def test_each_row_has_one_place_which_other_persons_do_not_change(sizes, seed, d):
    rng = np.random.default_rng(seed)
    codes = sizes_to_codes(sizes, rng)
    codes[: len(codes) // 10] = -1
    places = Places(codes, len(sizes), d)
    assert np.array_equal(np.sort(places.row[places.taken]), np.flatnonzero(codes >= 0))
    assert np.array_equal(places.person[places.taken], codes[places.row[places.taken]])
    assert np.all(places.weight[~places.taken] == 0) and np.all(places.person[~places.taken] == len(sizes))
    present = len(np.unique(codes[codes >= 0]))
    assert abs(places.weight.sum() - present) <= 1e-12 * max(len(codes), 1)
    # Another size of the first person: the others keep block sizes and their places in blocks.
    grown = np.concatenate([codes, np.zeros(100, int)])
    other = Places(grown, len(sizes), d)

    def where(one):
        assert len(one.row) % one.part_rows == 0 and one.part_rows % one.n_lanes == 0
        shape = one.n_lanes, one.part_rows
        return {int(row): (place % one.n_lanes, shape) for place, row in enumerate(one.row) if row >= 0}

    first, second = where(places), where(other)
    assert first.keys() == set(places.row[places.taken].tolist())
    assert all(first[row] == second[row] for row in first if codes[row] != 0)


@pytest.mark.covering
@pytest.mark.parametrize("k", [1, 3, 12])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threshold", [0.03, 0.3, 100.0])
def test_the_sum_is_that_of_clipped_mean_gradients(k, dtype, threshold):
    sizes = [1, 2, 3, 0, 5, 5, 8, 13, 70, 200, 1, 1]
    X, y, codes, W = drawn(sizes, k=max(k, 2), d=6, dtype=dtype)
    loss, W = (SquaredLoss(1), W[:1]) if k == 1 else (SoftmaxLoss(k), W)
    y = X[:, :1].copy() if k == 1 else y
    means = mean_gradients(X, y, codes, len(sizes), W, loss)
    lengths = np.linalg.norm(means.reshape(len(sizes), -1), axis=1)
    expected = np.tensordot(np.minimum(1, threshold / np.maximum(lengths, 1e-300)), means, 1)
    source = rows_of(X, y, codes, len(sizes), dtype)
    ((total, statistics),) = source.private_sums([clipped(W, L2Clip(threshold), loss)])
    assert statistics is None
    np.testing.assert_allclose(
        total, expected, atol=len(sizes) * threshold * (1e-4 if dtype == "f4" else 1e-6)
    )


def test_a_clip_of_entries_bounds_those_of_the_mean():
    sizes = [3, 4, 90]
    X, y, codes, W = drawn(sizes)
    clip = L2LinfClip(L2Clip(0.3), 4).at(None)
    source = rows_of(X, y, codes, len(sizes))
    for person in range(len(sizes)):
        batch = Batch(np.arange(len(sizes)) == person, 0.5)
        ((total, _),) = source.private_sums([clipped(W, clip, batch=batch)])
        bound = clip.sensitivity(np.dtype("f4"))
        assert 0 < np.linalg.norm(total) <= bound and np.abs(total).max() <= bound / 2


def test_statistics_are_averaged_in_all_their_forms():
    sizes = [1, 2, 5, 100, 0, 3]
    X, _, codes, _ = drawn(sizes)
    y = np.arange(len(X))  # tells the row
    values = X.astype(np.float64)
    bins = (np.arange(len(X))[:, None] % 4 + np.arange(2)) % 4

    weights = np.where(codes >= 0, 1 / np.bincount(codes, minlength=len(sizes))[codes], 0)
    source = rows_of(X, y, codes, len(sizes))
    forms = {
        "arrays": (lambda rows: values[rows], weights @ values),
        "bins": (lambda rows: BinCounts(bins[rows], 4), weights @ np.asarray(BinCounts(bins, 4))),
        "outer": (
            lambda rows: OuterStatistics(values[rows, :2], values[rows, 2:].astype("f4")),
            weights @ np.asarray(OuterStatistics(values[:, :2], values[:, 2:])),
        ),
    }
    for form, expected in forms.values():
        request = request_of(np.zeros((0, 5)), lambda Z, block, form=form: (None, form(block.y)))
        ((matrix, statistics),) = source.private_sums([request])
        assert matrix is None
        np.testing.assert_allclose(statistics, expected, atol=1e-5)


def test_contributions_without_a_clip_of_means_are_averaged():
    sizes = [2, 7, 1]
    X, y, codes, W = drawn(sizes)
    contribute = partial(clipped_residuals, loss=LOSS, clip=L2Clip(0.2))
    ((total, _),) = rows_of(X, y, codes, 3).private_sums([request_of(W, contribute)])
    R = LOSS.residuals(X.astype(np.float64) @ W.T, y)
    lengths = np.linalg.norm(R, axis=1) * np.linalg.norm(X, axis=1)
    weights = np.minimum(1, 0.2 / lengths) / np.array(sizes)[codes]
    np.testing.assert_allclose(total, (weights[:, None] * R).T @ X, atol=1e-6)


def test_persons_that_take_no_part_add_nothing():
    sizes = [2, 3, 4, 100]
    X, y, codes, W = drawn(sizes)
    source = rows_of(X, y, codes, 4)
    members, taken = np.array([True, True, False, True]), np.array([True, False, True, True])
    ((total, _),) = source.private_sums([clipped(W, L2Clip(0.3), batch=Batch(taken, 0.5, members))])
    kept = np.isin(codes, [0, 3])
    alone = rows_of(X[kept], y[kept], np.where(codes[kept] == 3, 1, 0), 2)
    ((expected, _),) = alone.private_sums([clipped(W, L2Clip(0.3))])
    np.testing.assert_allclose(total, expected, atol=1e-12)
    codes = np.where(kept, codes, -1)
    ((expected, _),) = rows_of(X, y, codes, 4).private_sums([clipped(W, L2Clip(0.3))])
    np.testing.assert_allclose(total, expected, atol=1e-12)


@settings(max_examples=60)
@given(
    m=st.sampled_from([2, 5, 63, 64, 65, 400]),
    kind=st.sampled_from(["alike", "alternating", "random", "one huge", "tiny"]),
    scale=st.sampled_from([1e-12, 1.0, 1e9]),
    dtype=st.sampled_from(["f4", "f8"]),
    threshold=st.sampled_from([1e-3, 0.3]),
    fewest=st.sampled_from([0, products._FEWEST_OF_PERSONS]),  # with and without loops
)
def test_no_person_adds_more_than_the_clip(m, kind, scale, dtype, threshold, fewest):
    rng = np.random.default_rng(m)
    X = np.tile(rng.normal(size=8), (m, 1))
    if kind == "alternating":
        X[1::2] *= -1
    elif kind == "random":
        X = rng.normal(size=(m, 8))
    elif kind == "one huge":
        X[0] *= 1e6
    elif kind == "tiny":
        X *= 1e-30
    X = np.vstack([scale * X, np.ones((1, 8))]).astype(dtype)
    y = np.append(np.zeros(m, np.int8), 1).astype(np.int8)
    codes = np.append(np.zeros(m, int), 1)
    W = rng.normal(size=(3, 8)) / max(scale, 1.0)
    clip = L2Clip(threshold)
    batch = Batch(np.array([True, False]), 0.5)
    source = rows_of(X, y, codes, 2, dtype)
    request = clipped(W, clip, batch=batch)
    with mock.patch.object(products, "_FEWEST_OF_PERSONS", fewest):
        ((total, _),) = source.private_sums([request])
    stated = clip.sensitivity(np.dtype(dtype))
    assert np.linalg.norm(total) <= stated + source.sum_error(request).of(stated)


@pytest.mark.covering
@pytest.mark.parametrize("spread", [1e-3, 4e-3])
@pytest.mark.parametrize("d", [64, 400])
def test_rows_that_nearly_cancel_do_not_hide_a_long_mean(d, spread):
    """In single precision their mean would come out shorter than it is, and be clipped too little."""
    rng, clip, m, k = np.random.default_rng(0), L2Clip(1e-3), 10, 40
    base = rng.normal(size=(60, 1, d)) / np.sqrt(d)
    X = (base + spread * rng.normal(size=(60, m, d)) / np.sqrt(d)).reshape(-1, d).astype("f4")
    y = np.outer(np.tile([1.0, -1.0], len(X) // 2), np.full(k, k**-0.5)).astype("f4")
    source = rows_of(X, y, np.repeat(np.arange(60), m), 60)
    for person in range(60):
        request = clipped(np.zeros((k, d)), clip, SquaredLoss(k), batch=Batch(np.arange(60) == person, 0.5))
        ((total, _),) = source.private_sums([request])
        stated = clip.sensitivity(np.dtype("f4"))
        assert np.linalg.norm(total) <= stated + source.sum_error(request).of(stated)


@pytest.mark.parametrize("m", [1, 4, 30, 500])
def test_stated_lengths_are_upper_bounds_and_tight(m):
    X, y, codes, W = drawn([m] * 5, d=40)
    found = lengths_found(X, y, codes, 5, W, LOSS)
    exact = np.linalg.norm(mean_gradients(X, y, codes, 5, W).reshape(5, -1), axis=1)
    R = LOSS.residuals(X.astype(np.float64) @ W.T, y)
    of_rows = np.bincount(codes, np.linalg.norm(R, axis=1) * np.linalg.norm(X, axis=1)) / m
    # The computed residuals are those of single-precision products.
    assert np.all(found >= exact - 1e-5 * of_rows)
    assert np.all(found <= exact + 2e-4 * of_rows)


@pytest.mark.parametrize("n_persons", [2, 5000])
def test_rounding_of_sums_stays_within_what_is_stated(n_persons):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, n_persons)
    sizes[0] = 700
    codes = sizes_to_codes(sizes)
    X = np.tile(np.array([1, 1e-3, 0, 0], "f4"), (len(codes), 1)) * rng.uniform(0.9, 1, (len(codes), 1))
    y = np.full((len(codes), 1), -0.29, "f4")
    W, loss = np.zeros((1, 4)), SquaredLoss(1)
    source = rows_of(X.astype("f4"), y, codes, n_persons)
    others = codes != 0
    smaller = rows_of(X[others].astype("f4"), y[others], codes[others], n_persons)
    request = clipped(W, L2Clip(0.3), loss)
    ((whole, _),), ((rest, _),) = source.private_sums([request]), smaller.private_sums([request])
    stated = L2Clip(0.3).sensitivity(np.dtype("f4"))
    assert 0.2 < np.linalg.norm(whole - rest) <= stated + source.sum_error(request).of(stated)
    assert source.sum_error(request).of(stated) < 1e-6 * stated * n_persons


def test_rows_that_cancel_in_double_precision_do_not_hide_a_mean(monkeypatch):
    """Squares of lengths by products of rows are off by their rounding, and may come out as 0."""
    monkeypatch.setattr(products, "_FEWEST_OF_PERSONS", 2**62)
    rng, n = np.random.default_rng(0), 60
    X = np.repeat(rng.normal(size=(n, 8)), 2, axis=0)
    X[1::2] *= 1 + 2.0**-40
    y = np.tile([1.0, -1.0], n)[:, np.newaxis]
    exact = np.linalg.norm(X[::2] - X[1::2], axis=1) / 2  # the difference of two rows is exact
    W = np.zeros((1, 8))
    found = lengths_found(X, y, np.repeat(np.arange(n), 2), n, W, SquaredLoss(1), dtype="f8")
    assert np.all(found >= exact) and np.all(found <= 1e-6 * np.linalg.norm(X[::2], axis=1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_have_the_precision_that_is_asked_for(dtype):
    seen = []

    def contribute(Z, block):
        seen.append((Z.dtype, block.X.dtype))
        return None, np.zeros((len(Z), 1))

    X, y, codes, W = drawn([2, 3, 1], dtype="f8")
    rows_of(X, y, codes, 3, dtype).private_sums([request_of(W, contribute)])
    assert set(seen) == {(np.dtype(dtype), np.dtype(dtype))}


@pytest.mark.parametrize("n_persons", [2, 3000])
def test_the_stated_rounding_is_that_of_sums_in_any_order(n_persons):
    """Higham 2002, section 4.2: n terms are off by n roundoffs each, in either of two sums."""
    X, y, codes, W = drawn([3] * n_persons)
    source = rows_of(X, y, codes, n_persons)
    plain = source.sum_error(request_of(W, partial(unclipped_residuals, loss=LOSS)))
    at_once = source._places.part_rows
    assert at_once == Places(codes, n_persons, X.shape[1]).part_rows >= min(n_persons, 64)
    assert plain.relative >= 2 * 2.0**-53 * at_once * n_persons
    # Before a mean is clipped, its terms may be longer by this factor.
    clipped_means = source.sum_error(clipped(W, L2Clip(0.3)))
    assert clipped_means.relative >= 1024 * plain.relative


def test_rows_that_are_not_finite_or_too_long_are_refused():
    X, y, codes, _ = drawn([2, 3])
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        rows_of(X, y, codes, 2)
    X[0, 0] = 1e38
    with pytest.raises(ValueError, match="too large"):
        rows_of(X, y, codes, 2)


@pytest.mark.parametrize(("n_persons", "m", "grown", "d", "k"), [(700, 1, 150, 8, 40), (3, 100, 99, 256, 3)])
def test_the_lengths_of_others_keep_their_bits(n_persons, m, grown, d, k):
    """NumPy's functions for rows of many arrays may choose their way by the number of these."""
    rng = np.random.default_rng(0)
    loss, W = SoftmaxLoss(k), rng.normal(size=(k, d))
    rest = rng.normal(size=((n_persons - 1) * m, d)).astype("f4")
    found = []
    for size in (m, grown):
        codes = np.concatenate([np.zeros(size, int), np.repeat(np.arange(1, n_persons), m)])
        X = np.vstack([rng.normal(size=(size, d)).astype("f4"), rest])
        y = np.append(np.zeros(size), np.arange(len(rest)) % k).astype(np.int8)
        found.append(lengths_found(X, y, codes, n_persons, W, loss))
    assert np.array_equal(found[0][1:], found[1][1:])


@pytest.mark.parametrize("clip", [L2Clip(0.3), AutomaticClip(0.1), L2LinfClip(L2Clip(0.3), 4).at(None)])
@pytest.mark.parametrize("k", [1, 3])
def test_compiled_loops_give_what_numpy_gives(monkeypatch, k, clip):
    pytest.importorskip("numba")
    sizes = [1, 2, 3, 0, 5, 9, 400, 1]
    X, y, codes, W = drawn(sizes, k=max(k, 2), d=20)
    X[0] *= 1e4  # its term is shortened
    y = X[:, :1].copy() if k == 1 else y
    loss, W = (SquaredLoss(1), W[:1]) if k == 1 else (SoftmaxLoss(k), W)

    def sums_and_lengths(X, y, codes):
        shown = []
        request = clipped(W, clip, loss, observe=lambda rows, block, Z, found: shown.append(found[0]))
        ((total, _),) = rows_of(X, y, codes, len(sizes)).private_sums([request])
        return total, shown[0][:, 0]

    assert products.compiled_gradients() is not None  # they can be compiled here, and are right
    found = [sums_and_lengths(X, y, codes)]
    monkeypatch.setattr(products, "_FEWEST_OF_PERSONS", 0)
    found.append(sums_and_lengths(X, y, codes))
    # NumPy's lengths have a larger bound on rounding added.
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=3e-6)
    # Rows that another person has move no bit of a length.
    grown = np.append(codes, np.zeros(77, int))
    X, y = np.vstack([X, X[:77]]), np.concatenate([y, y[:77]])
    assert np.array_equal(sums_and_lengths(X, y, grown)[1][1:], found[1][1][1:])


def test_compiled_loops_leave_out_what_is_not_finite(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(products, "_FEWEST_OF_PERSONS", 0)
    X, _, codes, W = drawn([2, 3, 4])
    y = np.zeros((len(X), 1), "f4")
    y[codes == 1] = np.nan
    ((total, _),) = rows_of(X, y, codes, 3).private_sums([clipped(W[:1], L2Clip(0.3), SquaredLoss(1))])
    batch = Batch(np.array([True, False, True]), 0.5)
    request = clipped(W[:1], L2Clip(0.3), SquaredLoss(1), batch=batch)
    ((others, _),) = rows_of(X, y, codes, 3).private_sums([request])
    np.testing.assert_allclose(total, others, rtol=0, atol=1e-12)
    assert np.abs(total).max() > 0


def test_a_person_with_nearly_all_rows_moves_the_others_by_rounding_alone():
    sizes = np.append(20_000, np.full(99, 3))
    X, y, codes, W = drawn(sizes, d=20)
    source, request = rows_of(X, y, codes, 100), clipped(W, L2Clip(0.3))
    few = np.delete(np.arange(len(X)), np.flatnonzero(codes == 0)[2:])
    other = rows_of(X[few], y[few], codes[few], 100)
    stated = L2Clip(0.3).sensitivity(np.dtype("f4"))
    sums = [each.private_sums([request])[0][0] for each in (source, other)]
    assert np.linalg.norm(sums[0] - sums[1]) <= 2 * stated + source.sum_error(request).of(stated)
    # Where it takes no part, it moves not a bit.
    batch = Batch(np.arange(100) > 0, 0.5)
    sums = [each.private_sums([clipped(W, L2Clip(0.3), batch=batch)])[0][0] for each in (source, other)]
    assert sums[0].tobytes() == sums[1].tobytes()


@pytest.mark.parametrize(
    "clip",
    [L2Clip(1e-170), L2Clip(1e-300), L2Clip(1e100), *(AutomaticClip(10.0**-p) for p in (0, 8, 15, 17, 300))],
)
@pytest.mark.parametrize("dtype", ["f8", "f4"])  # f4 with compiled loops
def test_extreme_clips_bound_a_person_among_others(monkeypatch, clip, dtype):
    """Rows that cancel, of which an automatic clip makes much, must not drown what others add."""
    monkeypatch.setattr(products, "_FEWEST_OF_PERSONS", 0)
    rng = np.random.default_rng(0)
    X = np.vstack([np.outer([1.0, -1.0, 3.0], rng.normal(size=2)), np.ones((199, 2))])
    y = np.zeros(len(X), np.int8)
    codes = np.append(np.zeros(3, int), np.arange(1, 200))
    W = np.zeros((3, 2))
    source, others = rows_of(X, y, codes, 200, dtype), rows_of(X[2:], y[2:], np.arange(200), 200, dtype)
    request = clipped(W, clip)
    sums = [each.private_sums([request])[0][0] for each in (source, others)]
    batch = Batch(np.arange(200) > 0, 0.5)
    without = source.private_sums([clipped(W, clip, batch=batch)])[0][0]
    stated = clip.sensitivity(np.dtype(dtype))
    stated += source.sum_error(request).of(stated)
    scale = 2.0 ** np.floor(np.log2(stated))
    for whole in sums:
        assert np.linalg.norm((whole - without) / scale) <= stated / scale


def test_wide_rows_of_few_persons_take_few_places():
    codes = np.append(np.arange(128), np.zeros(63, int))
    assert len(Places(codes, 128, 100_000).row) < 4 * len(codes)
