"""What public rows decide about a released head."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.components import SGD
from skmixdp.components.protocols import ReleasedArray, StepContext
from skmixdp.components.public import PublicData
from skmixdp.components.updates import TailAverage
from skmixdp.privacy import NoiseSource
from tests.asking import answered
from tests.conftest import make_problem, make_regression_problem
from tests.private_names import PublicShrinkage, can_balance
from tests.rounding import assert_close

FLOAT = np.dtype("float64")


def context(info, W, *, t=1, n_steps=1, step=1.0, sigma=1.0, released=()):
    view = info.view.data.view(W)
    return StepContext(
        t, n_steps, view, 300.0, 0.25, step, 0.0, 0 * W, FLOAT, NoiseSource(0), sigma, list(released)
    )


def problem_and_facts(n_classes=4, n_pub=40, n_rows=3000):
    """Rows, public facts with the public fit as the start, and the fit to private rows."""
    problem = make_problem(n_classes, n_pub=n_pub, n_rows=n_rows)
    info = replace(problem.info, start=lambda rows: rows.solution)
    return problem, info, PublicData(problem.X, problem.y, info.view.data.loss).solution


def info_with_many_public_rows(n_classes=4):
    return problem_and_facts(n_classes, n_pub=200, n_rows=300)[1]


def assert_parallel(W, V):
    """The heads are the same, but for the temperature."""
    ratio = W / V
    assert_close(ratio, ratio.flat[0])


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
    assert_parallel(W, info.view.W)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_way_that_helps_is_kept_whole(n_classes):
    _, info, everything = problem_and_facts(n_classes)
    with warnings.catch_warnings(action="error"):
        W = shrunk(info, everything, 1e-3)
    assert_parallel(W, everything)


def test_a_way_far_longer_than_the_noise_is_kept_whatever_the_judgement():
    # The public rows judge against it.
    info = info_with_many_public_rows()
    way = -info.view.W * 3
    assert_parallel(shrunk(info, info.view.W + way, 1e-6), info.view.W + way)
    with pytest.warns(UserWarning, match="suffice"):
        W = shrunk(info, info.view.W + way, 1e3)
    assert_parallel(W, info.view.W)


def test_no_warning_says_that_public_rows_suffice_where_private_rows_disagree(monkeypatch):
    monkeypatch.setattr(PublicShrinkage, "_chosen_on_public_rows", lambda *args: (0.0, 1.0))  # the start
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(3000, 6)), 0.3 * rng.normal(size=(3000, 3))
    y = (X @ rng.normal(size=(6, 3)) + noise).argmax(axis=1)
    with warnings.catch_warnings(action="error"):
        head = MixedDPLogisticRegression(epsilon=8.0).fit(X[40:], y[40:], X[:40], y[:40])
    assert "comparison" in dict(head.privacy_.shares) and head.score(X, y) > 0.9


def test_few_public_rows_decide_nothing():
    problem = make_problem(n_pub=12)
    W = np.random.default_rng(0).normal(size=problem.info.view.W.shape)
    np.testing.assert_array_equal(shrunk(problem.info, W, 5.0), W)


def test_squared_loss_keeps_its_scale():
    problem = make_regression_problem(n_pub=60)
    info = replace(problem.info, start=lambda rows: rows.solution)
    W = 1.5 * info.view.W
    assert_close(shrunk(info, W, 1e-9), W)


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
    assert_close(update.result(W, state), np.mean(heads[-last:], axis=0))


class TestComparison:
    """A noisy comparison on private rows overrules public rows that choose badly."""

    @staticmethod
    def closed(info, W, released, noise=1e-3, intercept=None):
        """The head that the comparison returns if the noisy differences are ``released``, and the query."""
        update = PublicShrinkage(SGD(), info, intercept)
        start, state = update.init(info.view.W)
        ctx = context(info, start, step=noise * 300.0 / 0.75, released=[ReleasedArray(sensitivity=1.0)])
        _, state = update.step(ctx, np.zeros_like(start), state)
        rounds = update.compare(W, state, 10.0)
        query = next(rounds)
        return answered(rounds, np.array(released)), query

    @pytest.mark.parametrize(("released", "start_wins"), [(25.0, True), (15.0, False), (-25.0, False)])
    def test_the_start_must_win_clearly_where_public_rows_do_not_favour_it(self, released, start_wins):
        _, info, W = problem_and_facts()
        with warnings.catch_warnings(record=True, action="always") as told:
            head, query = self.closed(info, W, [released])
        assert_parallel(head, info.view.W if start_wins else W)
        assert bool(told) == start_wins
        np.testing.assert_array_equal(query.points, np.concatenate([W, info.view.W]))
        assert query.releases[0].sensitivity == 1.0

    @pytest.mark.parametrize(
        ("released", "share"), [((1.0, -9.0), 0.0), ((-1.0, 20.0), 0.2), ((-1.0, 40.0), 1.0)]
    )
    def test_private_rows_can_overrule_public_rows_that_favour_the_start(self, released, share):
        info = info_with_many_public_rows()
        W = info.view.W + 20 * np.random.default_rng(0).normal(size=info.view.W.shape)
        with warnings.catch_warnings(action="ignore"):
            head, query = self.closed(info, W, released, noise=20.0)
        assert_parallel(head, info.view.W + share * (W - info.view.W))
        assert query.releases[0].sensitivity == pytest.approx(math.sqrt(2))

    def test_it_is_made_where_its_noise_allows(self):
        info = make_problem(4, n_pub=40).info
        assert PublicShrinkage(SGD(), replace(info, mu=10.0)).comparison.share > 0
        assert PublicShrinkage(SGD(), replace(info, mu=1e-3)).comparison is None
        assert PublicShrinkage(SGD(), replace(make_problem(4, n_pub=8).info, mu=10.0)).comparison is None
        assert PublicShrinkage(SGD(), replace(make_regression_problem().info, mu=10.0)).comparison is None


@pytest.mark.parametrize(("certain", "share"), [(0.0, 0.2), (0.3, 0.8), (0.7, 1.0)])
def test_the_usual_share_grows_with_what_cannot_be_noise(certain, share, monkeypatch):
    _, info, whole = problem_and_facts()
    monkeypatch.setattr(PublicShrinkage, "_clear_share", lambda *args: certain)
    # Public rows favour the whole way here, so they choose no smaller share than the usual one.
    assert_parallel(shrunk(info, whole, 1e-3), info.view.W + share * (whole - info.view.W))


class TestClassBalance:
    """Intercepts that public rows balance, and how much of them private rows allow."""

    intercept = 0.5
    closed = staticmethod(TestComparison.closed)

    def problem(self, mu=10.0):
        """A head whose third class is output too rarely; the last column is the intercept's."""
        problem = make_problem(4, n_pub=80, n_rows=3000)
        X = np.hstack([problem.X, np.full((len(problem.X), 1), self.intercept)])
        X_pub = np.hstack([problem.info.view.data.X, np.full((80, 1), self.intercept)])
        data = PublicData(X_pub, problem.info.view.data.y, problem.info.view.data.loss)
        info = replace(problem.info, view=data.view(data.solution), start=lambda rows: rows.solution, mu=mu)
        W = PublicData(X, problem.y, info.view.data.loss).solution
        W[2, -1] -= 3 / self.intercept
        return replace(problem, X=X), info, W

    def intercepts(self, head, W):
        """What was added to the intercepts, next to the temperature."""
        scale = np.median(head[:, :-1] / W[:, :-1])
        assert_close(head[:, :-1], scale * W[:, :-1])
        return (head[:, -1] / scale - W[:, -1]) * self.intercept

    @pytest.mark.parametrize(
        ("gained", "part"), [((0, 90), 0.8), ((90, 60), 0.4), ((0, 0), 0.4), ((-90, -60), 0.0)]
    )
    def test_the_part_with_the_highest_expected_accuracy_is_taken(self, gained, part):
        _, info, W = self.problem()
        head, query = self.closed(info, W, [-99.0, *gained], intercept=self.intercept)
        most = PublicShrinkage(SGD(), info, self.intercept)._balance(W, 1.0)
        np.testing.assert_allclose(self.intercepts(head, W), part * most, atol=1e-9)
        assert most[2] > 1.5 and most[2] > np.delete(most, 2).max()
        assert query.points.shape == (4 * 4, W.shape[1])

    def test_the_usual_part_is_taken_if_nothing_is_compared(self):
        problem, info, W = self.problem(mu=0.01)
        update = PublicShrinkage(SGD(), info, self.intercept)
        _, state = update.init(info.view.W)
        added = self.intercepts(update.result(W, state), W)
        assert update.comparison is None and added[2] > 0.6
        y = problem.y

        def recall(head):
            return np.mean((problem.X @ head.T).argmax(axis=1)[y == 2] == 2)

        assert recall(update.result(W, state)) > recall(W) + 0.05

    def test_without_an_intercept_nothing_is_balanced(self):
        _, info, W = self.problem()
        head, _ = self.closed(info, W, [-99.0])
        np.testing.assert_allclose(self.intercepts(head, W), 0, atol=1e-9)
        plain, balanced = (PublicShrinkage(SGD(), info, constant).comparison for constant in (None, 1.0))
        assert plain.share < balanced.share

    def test_every_class_needs_public_rows(self):
        info = self.problem()[1]
        assert can_balance(info)
        data, W = info.view.data, info.view.W
        few = np.flatnonzero(data.y == 1)[1:]
        without = PublicData(np.delete(data.X, few, 0), np.delete(data.y, few), data.loss)
        assert not can_balance(replace(info, view=without.view(W)))
        assert not can_balance(make_problem(2, n_pub=40).info)
        assert not can_balance(make_regression_problem(n_pub=40).info)
