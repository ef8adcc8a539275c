"""What queries ask, what they state of it, and what they make of the answer."""

import math
from functools import partial

import numpy as np
import pytest

from skmixdp.components import GradientQuery, L2Clip
from skmixdp.components.clipping import clip_rows, clipped_residuals
from skmixdp.components.protocols import Clip, ReleasedArray, StepContext
from skmixdp.components.subspaces import PublicSubspace
from skmixdp.privacy import NoiseSource
from tests.asking import answered
from tests.conftest import make_problem
from tests.private_names import (
    PANEL_ROWS,
    Block,
    L2LinfClip,
    SplitQuery,
    centre_of,
    embedding_of,
    mixed_query,
    row_norms,
)
from tests.rounding import assert_close, assert_relative

FLOAT = np.dtype("float64")
CLIP = L2Clip(0.5)
RNG = np.random.default_rng(0)


def context(n_classes=4, *, public_weight=0.25, dtype=FLOAT, n_pub=24):
    info = make_problem(n_classes, n_pub=n_pub).info
    anchor = np.zeros_like(info.view.W)
    return StepContext(
        1, 1, info.view, info.batch_size, public_weight, 1.0, 0.0, anchor, dtype, NoiseSource(0), 1.0
    )


def dope_query(clip, sum_to_zero):
    return SplitQuery(centre_of, clip, None, sum_to_zero)


def gep_query(n_components, *settings):
    return SplitQuery(partial(embedding_of, n_components=n_components), *settings)


def asked(query, ctx):
    rounds = query.step(ctx)
    return rounds, next(rounds)


class TestGradientQuery:
    @pytest.mark.parametrize("subspace", [None, PublicSubspace(2), PublicSubspace(2, exact_sums=True)])
    def test_it_states_the_clip_times_the_gain(self, subspace):
        ctx = context(dtype=np.dtype("float32"))
        _, query = asked(GradientQuery(CLIP, subspace, True), ctx)
        space = None if subspace is None else subspace.at(ctx.view)
        sensitivity = CLIP.sensitivity(np.dtype("float32"))
        stated = ReleasedArray(sensitivity)
        if space is not None:
            stated = ReleasedArray(sensitivity * space.gain, 1.0, None, space.roundings)
        assert query.releases == (stated,)
        assert query.points is ctx.view.W
        assert query.contribute.func is clipped_residuals
        assert query.contribute.keywords == {"loss": ctx.view.data.loss, "clip": CLIP}
        assert query.panel_rows == PANEL_ROWS and query.takes_tensors
        total = RNG.normal(size=ctx.view.W.shape)
        encoded = total if space is None else space.encode(total)
        np.testing.assert_array_equal(query.assemble((total,))[0], encoded)

    def test_where_the_private_mean_has_no_weight_nothing_is_asked(self):
        ctx = context(public_weight=1)
        with pytest.raises(StopIteration) as stop:
            next(GradientQuery(CLIP, None, True).step(ctx))
        assert_close(stop.value.value, ctx.view.gradient)

    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("sum_to_zero", [False, True])
    def test_the_component_that_is_noise_alone_is_removed_for_softmax(self, n_classes, sum_to_zero):
        ctx = context(n_classes)
        # The centre of differences comes back on the mean scale.
        for kind, centre in (
            (GradientQuery(CLIP, None, sum_to_zero), 0),
            (dope_query(CLIP, sum_to_zero), ctx.view.gradient),
        ):
            rounds, _ = asked(kind, ctx)
            total = RNG.normal(size=ctx.view.W.shape)
            found = answered(rounds, total)
            if sum_to_zero and n_classes == 4:
                total = total - total.mean(axis=0)
            np.testing.assert_allclose(found, ctx.direction(centre + total / ctx.batch_size), atol=1e-14)

    @pytest.mark.parametrize("length", [0.05, 0.1, 3.0])
    def test_a_second_clip_bounds_the_noisy_mean(self, length):
        ctx = context(2)
        rounds, _ = asked(GradientQuery(CLIP, None, False, second_clip=0.1), ctx)
        mean = RNG.normal(size=ctx.view.W.shape)
        mean *= length / np.linalg.norm(mean)
        found = answered(rounds, mean * ctx.batch_size)
        assert_close(found, ctx.direction(mean * min(1, 0.1 / length)), 1e-12)

    def test_modelmix_bounds_its_entries_and_keeps_all_of_its_noise(self):
        query = GradientQuery(CLIP, None, True)
        mixed = mixed_query(query, lambda clipper: L2LinfClip(clipper, 4))
        assert (mixed.clipper.clipper, mixed.clipper.split) == (CLIP, 4)
        assert mixed.sum_to_zero is False and mixed.second_clip is None
        assert mixed.subspace is query.subspace
        mixed = mixed_query(dope_query(CLIP, True), lambda clipper: L2LinfClip(clipper, 4))
        assert mixed.clipper.split == 4 and mixed.sum_to_zero is False

    def test_its_sensitivity_is_the_clips(self):
        view = context().view
        assert GradientQuery(CLIP, None, True).sensitivity(view, FLOAT) == CLIP.sensitivity(FLOAT)
        assert dope_query(CLIP, True).sensitivity(view, FLOAT) == CLIP.sensitivity(FLOAT)


class HostOnly(Clip):
    """A clip of somebody who thought of arrays alone."""

    def at(self, view):
        return self

    def sensitivity(self, dtype):
        return 1.0


def test_rows_on_a_device_are_weighted_there_if_the_clip_takes_tensors():
    for kind in (lambda clip: GradientQuery(clip, None, True), lambda clip: dope_query(clip, True)):
        for clip, takes in ((CLIP, True), (HostOnly(), False)):
            _, query = asked(kind(clip), context())
            assert query.takes_tensors is takes


class TestCentredQuery:
    def test_it_states_the_clip_and_how_long_the_terms_are(self):
        ctx = context(dtype=np.dtype("float32"))
        _, query = asked(dope_query(CLIP, True), ctx)
        stated = CLIP.sensitivity(np.dtype("float32"))
        # The shortest difference is 2**-10 of what it is the difference of; two sums make it.
        assert query.releases == (ReleasedArray(stated, 1.0, 2048 * stated, 2.0**-50),)
        assert query.panel_rows == 0
        np.testing.assert_array_equal(query.points, np.concatenate([ctx.view.W, ctx.view.gradient]))
        total, weights = RNG.normal(size=ctx.view.W.shape), np.array([3.0])
        (found,) = query.assemble((total, weights[np.newaxis]))
        assert_close(found, total - 3 * ctx.view.gradient)


class TestEmbeddedQuery:
    INSIDE, OUTSIDE = L2Clip(2.0), L2Clip(0.5)

    def query(self, n_components=3, sum_to_zero=True):
        return gep_query(n_components, self.OUTSIDE, self.INSIDE, sum_to_zero)

    def test_both_parts_take_half_of_the_step(self):
        ctx = context(dtype=np.dtype("float32"))
        _, query = asked(self.query(), ctx)
        residual = self.OUTSIDE.sensitivity(np.dtype("float32"))
        rounding = embedding_of(ctx.view, 3).rounding(np.inf)
        assert query.releases == (
            ReleasedArray(
                self.INSIDE.sensitivity(FLOAT), 0.5
            ),  # coordinates are float64 whatever the rows are
            ReleasedArray(residual, 0.5, 1.01 * 1024 * residual, rounding),
        )
        assert query.panel_rows == 0
        found = self.query().sensitivity(ctx.view, ctx.dtype)
        assert found == pytest.approx(query.releases[0].sensitivity * math.sqrt(2), rel=1e-14)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("threshold", [1e-3, 0.5, 3.0])
    def test_gradients_of_the_expected_length_contribute_the_same(self, threshold, dtype):
        """They only have shorter terms, which may be added in single precision, a few at a time."""
        problem, clip = make_problem(4), L2Clip(threshold)
        ctx = context(dtype=np.dtype(dtype))
        longest = ctx.view.data.loss.lipschitz * problem.info.row_norm_bound
        X, found = problem.X.astype(dtype), []
        for expected in (np.inf, longest):
            _, query = asked(gep_query(3, clip, clip, True, expected), ctx)
            products = X @ query.points.T.astype(dtype)
            C, S = query.contribute(products, Block(X, problem.y, row_norms(X)))
            found.append((query, C, np.asarray(S)))
        (plain, *one), (bounded, *other) = found
        for expected, actual in zip(one, other, strict=True):
            np.testing.assert_array_equal(actual, expected)
        short, long = bounded.releases[-1].longest_term, plain.releases[-1].longest_term
        assert short == pytest.approx(min(1.01 * max(2.25 * longest, threshold), long), rel=1e-3)
        assert plain.panel_rows == 0 and (bounded.panel_rows == 0) is (threshold < 0.1)

    def test_without_public_gradients_the_residual_takes_the_whole_step(self):
        ctx = context(n_pub=0, public_weight=0.0)
        rounds, query = asked(self.query(), ctx)
        (part,) = query.releases
        assert (part.sensitivity, part.share) == (self.OUTSIDE.sensitivity(FLOAT), 1.0)
        total = RNG.normal(size=ctx.view.W.shape)
        (residual,) = query.assemble((total, np.zeros(0)))
        np.testing.assert_array_equal(residual, total)
        found = answered(rounds, total)
        np.testing.assert_allclose(found, (total - total.mean(axis=0)) / ctx.batch_size, atol=1e-14)

    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("sum_to_zero", [False, True])
    def test_the_parts_are_put_together_again(self, n_classes, sum_to_zero):
        ctx = context(n_classes)
        embedding = embedding_of(ctx.view, 3)
        rounds, query = asked(self.query(3, sum_to_zero), ctx)
        np.testing.assert_array_equal(query.points, np.concatenate([ctx.view.W, embedding.X]))
        q = embedding.n_components
        matrix, weighted = RNG.normal(size=ctx.view.W.shape), RNG.normal(size=2 * q)
        inside, residual = query.assemble((matrix, weighted))
        np.testing.assert_array_equal(inside, weighted[:q])
        np.testing.assert_allclose(residual, matrix - embedding.gradient(weighted[q:]), atol=1e-10)
        found = answered(rounds, inside, residual)
        total = residual + embedding.gradient(inside)
        if sum_to_zero and n_classes == 4:
            total = total - total.mean(axis=0)
        np.testing.assert_allclose(found, ctx.direction(total / ctx.batch_size), atol=1e-12)


def test_entries_are_bounded_by_the_residuals_and_the_rows():
    problem = make_problem(4)
    X, y, loss = problem.X, problem.y, problem.info.view.data.loss
    W = RNG.normal(size=(4, X.shape[1]))

    class Spy(Clip):
        def weights(self, norms, largest):
            seen.append((np.array(norms), np.array(largest())))
            return np.ones_like(norms)

    seen = []
    clipped_residuals(X @ W.T, Block(X, y, row_norms(X)), loss, Spy())
    R = loss.residuals(X @ W.T, y)
    ((norms, entries),) = seen
    lengths = np.linalg.norm(R, axis=1) * np.linalg.norm(X, axis=1)
    assert_relative(norms, lengths, 1e-6)
    assert np.all(norms >= lengths * (1 - 1e-15))
    assert_relative(entries, np.abs(R).max(axis=1) * np.abs(X).max(axis=1), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threshold", [1e-20, 0.3, 1e20])
def test_rows_of_any_size_are_clipped_as_by_the_rule_s_own_weights(dtype, threshold):
    """Rows and thresholds out of reach for the arithmetic of the residuals' dtype are weighed in float64."""

    class Weights(L2Clip):
        """The same rule, of a type that is not known to be it."""

    X = RNG.normal(size=(40, 5))
    R = RNG.normal(size=(40, 3)).astype(dtype)
    X[:3] *= np.array([1e-25, 1e20, 1e25])[:, None]
    R[4:8] *= np.array([1e-25, 1e17, 1e25, np.nan])[:, None]
    R[8], X[9] = 0, 0
    block = Block(X, None, row_norms(X))
    own, weighed = R.copy(order="F"), R.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        clip_rows(own, block, L2Clip(threshold))
        clip_rows(weighed, block, Weights(threshold))
    np.testing.assert_allclose(own, weighed, rtol=20 * np.finfo(dtype).eps, atol=0)
    assert not np.any(own[7])
    lengths = row_norms(own) * block.norms
    assert lengths.max() <= L2Clip(threshold).sensitivity(np.dtype(dtype))
    # A weight that float32 cannot hold is 0, so most lengths of the smallest threshold are not checked.
    assert lengths.max() > 0.99 * threshold or threshold == 1e20


@pytest.mark.covering
@pytest.mark.parametrize("k", [1, 3, 1000])
@pytest.mark.parametrize(
    "clip",
    [*map(L2Clip, [1e-20, 1e-15, 1e-12, 1e-7]), L2LinfClip(L2Clip(1e-15), 2).at(make_problem().info.view)],
)
def test_small_thresholds_hold_for_long_rows_whose_residuals_underflow(clip, k):
    R = (RNG.uniform(0.5, 1, size=(500, k)) * 10 ** RNG.uniform(-20, -14, size=(500, 1))).astype(np.float32)
    lengths = np.full(500, 1e30)
    clip_rows(R, Block(None, np.zeros(500), lengths, compute_max_abs=lambda: lengths), clip)
    assert np.all(row_norms(R) * lengths <= clip.sensitivity(R.dtype))
    if clip == L2Clip(1e-7) and k < 1000:
        assert np.all(np.any(R, axis=1))
