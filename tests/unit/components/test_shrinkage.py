"""What public rows decide about a released head."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from skmixdp._rows import InMemoryRows, Request
from skmixdp.components import SGD, PublicShrinkage, TailAverage
from skmixdp.components.protocols import ReleasedArray, StepContext
from skmixdp.privacy import NoiseSource
from skmixdp.public import PublicData
from tests.conftest import make_problem, make_regression_problem

FLOAT = np.dtype("float64")


def context(info, W, *, t=1, n_steps=1, step=1.0, sigma=1.0, released=()):
    view = info.view.data.view(W)
    return StepContext(
        t, n_steps, view, 300.0, 0.25, step, 0.0, 0 * W, FLOAT, NoiseSource(0), sigma, list(released)
    )


def info_with_many_public_rows(n_classes=4, n_pub=200):
    problem = make_problem(n_classes, n_pub=n_pub)
    return replace(problem.info, start=lambda rows: rows.solution)


def shrunk(info, W, noise):
    """The result for a head ``W`` after one step whose noise has that standard deviation per coefficient."""
    update = PublicShrinkage(SGD(), info)
    start, state = update.init(info.view.W)
    part = ReleasedArray(sensitivity=1.0)
    ctx = context(info, start, step=noise * 300.0 / 0.75, released=[part])
    _, state = update.step(ctx, np.zeros_like(start), state)
    return update.result(W, state)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_noise_alone_is_taken_back_and_a_warning_says_so(n_classes):
    info = info_with_many_public_rows(n_classes)
    noise = np.random.default_rng(0).normal(size=info.view.W.shape) * 20
    with pytest.warns(UserWarning, match="public rows suffice"):
        W = shrunk(info, info.view.W + noise, 20.0)
    ratio = W / info.view.W
    np.testing.assert_allclose(ratio, ratio.flat[0])  # the start, but for the temperature


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_way_that_helps_is_kept_whole(n_classes):
    problem = make_problem(n_classes, n_pub=40, n_rows=3000)
    info = replace(problem.info, start=lambda rows: rows.solution)
    everything = PublicData(problem.X, problem.y, info.loss).solution
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        W = shrunk(info, everything, 1e-3)
    ratio = W / everything
    np.testing.assert_allclose(ratio, ratio.flat[0])


def test_a_way_far_longer_than_the_noise_is_kept_whatever_the_judgement():
    # The public rows judge against it.
    info = info_with_many_public_rows()
    way = -info.view.W * 3
    W = shrunk(info, info.view.W + way, 1e-6)
    ratio = W / (info.view.W + way)
    np.testing.assert_allclose(ratio, ratio.flat[0])
    with pytest.warns(UserWarning, match="suffice"):
        W = shrunk(info, info.view.W + way, 1e3)
    ratio = W / info.view.W
    np.testing.assert_allclose(ratio, ratio.flat[0])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("factor", [0.2, 5.0])
def test_the_temperature_makes_probabilities_right_and_leaves_predictions(n_classes, factor):
    info = info_with_many_public_rows(n_classes)
    fresh = make_problem(n_classes, n_rows=2000)
    outputs = fresh.X @ (factor * info.view.W).T
    W = shrunk(info, factor * info.view.W, 1e-6)
    after = fresh.X @ W.T
    assert fresh.info.loss.values(after, fresh.y).mean() < fresh.info.loss.values(outputs, fresh.y).mean()
    if n_classes > 2:
        np.testing.assert_array_equal(after.argmax(axis=1), outputs.argmax(axis=1))
    else:
        np.testing.assert_array_equal(after > 0, outputs > 0)


def test_few_public_rows_decide_nothing():
    problem = make_problem(n_pub=12)
    W = np.random.default_rng(0).normal(size=problem.info.view.W.shape)
    np.testing.assert_array_equal(shrunk(problem.info, W, 5.0), W)


def test_squared_loss_has_no_temperature():
    problem = make_regression_problem(n_pub=60)
    info = replace(problem.info, start=lambda rows: rows.solution)
    W = 1.5 * info.view.W
    np.testing.assert_allclose(shrunk(info, W, 1e-9), W)


def test_the_noise_that_adds_up_is_that_of_all_steps():
    info = info_with_many_public_rows()
    update = PublicShrinkage(SGD(), info)
    W, state = update.init(info.view.W)
    parts = [ReleasedArray(2.0, 0.25), ReleasedArray(3.0, 0.75)]
    for t in range(1, 4):
        ctx = context(info, W, t=t, n_steps=3, step=0.1 * t, sigma=2.0, released=parts)
        W, state = update.step(ctx, np.zeros_like(W), state)
    each = [(0.1 * t * 0.75 * 2.0 / 300.0) ** 2 * (4 / 0.25 + 9 / 0.75) for t in (1, 2, 3)]
    assert state[1] == pytest.approx(sum(each))


@pytest.mark.parametrize(("n_steps", "last"), [(1, 1), (4, 1), (5, 2), (20, 5)])
def test_the_average_is_that_of_the_last_quarter(n_steps, last):
    info = make_problem().info
    update = TailAverage(SGD())
    W, state = update.init(np.zeros_like(info.view.W))
    heads = []
    for t in range(1, n_steps + 1):
        direction = np.full_like(W, float(t))
        W, state = update.step(context(info, W, t=t, n_steps=n_steps), direction, state)
        heads.append(W)
    np.testing.assert_allclose(update.result(W, state), np.mean(heads[-last:], axis=0))


class TestComparison:
    """A noisy comparison on private rows overrules public rows that choose badly."""

    def closed(self, problem, info, W, released, noise=1e-3):
        """The head that the closing returns if the noisy difference is ``released``."""
        update = PublicShrinkage(SGD(), info)
        start, state = update.init(info.view.W)
        ctx = context(info, start, step=noise * 300.0 / 0.75, released=[ReleasedArray(sensitivity=1.0)])
        _, state = update.step(ctx, np.zeros_like(start), state)
        closing = update.closing(W, state, 10.0)
        query = next(closing)
        rows = InMemoryRows(problem.X, problem.y)
        ((_, counted),) = rows.private_sums([Request(query.points, query.contribute)])
        with pytest.raises(StopIteration) as end:
            closing.send((counted if released is None else np.array([released]),))
        return end.value.value, float(counted[0]), query

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_it_counts_the_rows_that_either_head_gets_right(self, n_classes):
        problem = make_problem(n_classes, n_pub=40)
        info = replace(problem.info, start=lambda rows: rows.solution)
        W = info.view.W + np.random.default_rng(0).normal(size=info.view.W.shape)
        _, counted, query = self.closed(problem, info, W, None)
        k = len(W)

        def right(head):
            Z = problem.X @ head.T
            return ((Z[:, 0] > 0 if k == 1 else Z.argmax(axis=1)) == problem.y).sum()

        assert counted == right(query.points[:k]) - right(query.points[k:])
        (part,) = query.releases
        assert part.sensitivity == 1.0

    @pytest.mark.parametrize(("released", "start_wins"), [(25.0, True), (15.0, False), (-25.0, False)])
    def test_the_start_must_win_clearly_where_public_rows_do_not_favour_it(self, released, start_wins):
        problem = make_problem(4, n_pub=40, n_rows=3000)
        info = replace(problem.info, start=lambda rows: rows.solution)
        W = PublicData(problem.X, problem.y, info.loss).solution
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            head, _, _ = self.closed(problem, info, W, released)
        ratio = head / (info.view.W if start_wins else W)
        np.testing.assert_allclose(ratio, ratio.flat[0])
        assert bool(told) == start_wins

    @pytest.mark.parametrize(("released", "kept"), [(1.0, "start"), (-1.0, "trained")])
    def test_private_rows_can_overrule_public_rows_that_favour_the_start(self, released, kept):
        problem = make_problem(4, n_pub=200)
        info = replace(problem.info, start=lambda rows: rows.solution)
        W = info.view.W + 20 * np.random.default_rng(0).normal(size=info.view.W.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            head, _, _ = self.closed(problem, info, W, released, noise=20.0)
        ratio = head / (info.view.W if kept == "start" else W)
        np.testing.assert_allclose(ratio, ratio.flat[0])

    def test_it_is_made_where_its_noise_allows(self):
        info = make_problem(4, n_pub=40).info
        assert PublicShrinkage(SGD(), replace(info, mu=10.0)).can_compare
        assert not PublicShrinkage(SGD(), replace(info, mu=1e-3)).can_compare
        assert not PublicShrinkage(SGD(), replace(make_problem(4, n_pub=8).info, mu=10.0)).can_compare
        assert not PublicShrinkage(SGD(), replace(make_regression_problem().info, mu=10.0)).can_compare
