"""Mixed heads: the recursion, its edges, what may be wrapped, and what the report says."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import GEP, PDADPMD, AdaMix, Coupling, ModelMix, NoisyGD
from skmixdp.algorithms.modelmix import ModelMixEvent, modelmix_epsilon
from skmixdp.components import GradientQuery, PoissonBatch
from skmixdp.components.protocols import ReleasedArray, ReleaseFacts, StepContext
from skmixdp.privacy import NoiseSource, epsilon_of_event
from skmixdp.privacy.accounting.budgets import Budget
from tests.conftest import Silent, make_problem, make_regression_problem, train
from tests.private_names import (
    InMemoryRows,
    MixingDescent,
    Options,
    dotted_path,
    make_plan,
    mixed_steps,
    training,
)
from tests.rounding import assert_close

FLOAT = np.dtype("float64")


class Scripted(Silent):
    """No noise, and mixing weights that the test chose."""

    def __init__(self, alphas):
        super().__init__(0)
        self.alphas = iter(alphas)

    def uniform(self, shape):
        alpha = next(self.alphas)
        assert alpha.shape == shape
        return alpha


ONE_SUM = (ReleasedArray(0.5),)


def context(W, *, released=ONE_SUM, a=0.25, step=2.0, noise=None, n_steps=9):
    view = make_problem(n_classes=len(W), d=W.shape[1] - 1).info.view.data.view(W)
    return StepContext(
        1, n_steps, view, 300.0, a, step, 0.0, 0 * W, FLOAT, noise or NoiseSource(0), 1.0, list(released)
    )


def trained(problem, algorithm, noise, n_steps, *, l2=0.01, rate=0.7, weight=None):
    """The heads of a run, the start first."""
    recipe = problem.recipe(algorithm, l2=l2, learning_rate=rate)
    plan = problem.plan(recipe, n_steps=n_steps)
    if weight is not None:
        plan = type(plan)(**{**plan.__dict__, "public_weight": lambda t, view: weight})
    heads = [problem.info.view.W]
    run = training(plan, noise, callback=lambda t, W: heads.append(W))
    train([run], InMemoryRows(problem.X, problem.y))
    return heads


@pytest.mark.covering
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("width", [0.01, 40.0, 4000.0])
def test_the_recursion_equals_its_formula_with_known_alpha(n_classes, width):
    problem = make_problem(n_classes)
    W, n_steps, c, eta, l2 = problem.info.view.W, 7, 0.2, 0.7, 0.01
    alphas = [np.random.default_rng(t).random(W.shape) for t in range(n_steps)]
    algorithm = ModelMix(NoisyGD(clip=c, momentum=0.0), width=width)
    heads = trained(problem, algorithm, Scripted(alphas), n_steps)

    loss, data, a = problem.info.view.data.loss, problem.info.view.data, 24 / 324
    tau = width * c * (1 + 4 * 2**-52 + 2**-33) * eta * (1 - a) / 300
    older, pushed = W, 0
    for alpha, found in zip(alphas, heads[1:], strict=True):
        R = loss.residuals(problem.X @ W.T, problem.y)
        g = R[:, :, None] * problem.X[:, None, :]
        factors = np.minimum(1, c / np.linalg.norm(g.reshape(300, -1), axis=1))
        private = np.einsum("i,ikd->kd", factors, g) / 300
        direction = a * data.view(W).gradient + (1 - a) * private + l2 * W
        one, two = W.copy(), older.copy()
        for index in np.ndindex(W.shape):
            difference = W[index] - older[index]
            if abs(difference) < tau:
                sign = 1.0 if difference >= 0 else -1.0
                one[index] += sign * tau / 2
                two[index] -= sign * tau / 2
                pushed += 1
        older, W = W, alpha * one + (1 - alpha) * two - eta * direction
        np.testing.assert_allclose(found, W, atol=1e-10)
    # All coordinates in the first step, whose heads coincide; later the wider the more.
    assert pushed == W.size if width == 0.01 else pushed > W.size


def test_equal_heads_are_pushed_apart_upwards():
    W = np.arange(12.0).reshape(3, 4)
    update = MixingDescent(lambda n_steps: 6.0)
    tau = 6.0 * 0.5 * 2.0 * 0.75 / 300
    for alpha, shift in ((1.0, tau / 2), (0.0, -tau / 2), (0.75, tau / 4)):
        ctx = context(W, noise=Scripted([np.full(W.shape, alpha)]))
        after, state = update.step(ctx, np.zeros_like(W), W)
        assert_close(after - W, shift, 1e-9)
        assert state is ctx.view.W


@pytest.mark.parametrize("gap", [-1e-3, -1e-9, -0.0, 0.0, 1e-9, 1e-3])
def test_the_gap_becomes_the_old_one_and_the_threshold(gap):
    W = np.zeros((3, 4))
    tau = 60.0 * 0.5 * 2.0 * 0.75 / 300
    ends = []
    for alpha in (0.0, 1.0):
        ctx = context(W + gap, noise=Scripted([np.full(W.shape, alpha)]))
        ends.append(MixingDescent(lambda n_steps: 60.0).step(ctx, W, W)[0])
    assert_close(np.abs(ends[1] - ends[0]), abs(gap) + tau, 1e-9)
    assert np.all((ends[1] > ends[0]) == (gap >= 0))


@pytest.mark.parametrize(("released", "a"), [(ONE_SUM, 1.0), ((), 1.0), ((), 0.25)])
def test_a_step_that_owes_nothing_to_private_rows_is_not_pushed(released, a):
    W = np.zeros((3, 4))
    ctx = context(W, released=released, a=a)
    after, _ = MixingDescent(lambda n_steps: 60.0).step(ctx, np.ones_like(W), W)
    np.testing.assert_array_equal(after, -2.0)


def test_a_public_weight_of_one_trains_on_public_rows():
    problem = make_problem()
    algorithm = ModelMix(NoisyGD(momentum=0.0), width=40.0)
    one, other = (trained(problem, algorithm, NoiseSource(s), 4, weight=1.0)[-1] for s in (1, 2))
    # W_{-1} = W_0, so the first step has nothing to mix; later steps mix public heads.
    assert np.isfinite(one).all()
    assert not np.allclose(one, other)


@pytest.mark.parametrize(
    "released", [(ReleasedArray(1.0, 0.5), ReleasedArray(1.0, 0.5)), (ReleasedArray(1.0, 0.5),)]
)
def test_a_release_that_is_not_one_sum_is_refused(released):
    W = np.zeros((3, 4))
    with pytest.raises(RuntimeError, match="one released sum per step"):
        MixingDescent(lambda n_steps: 60.0).step(context(W, released=released), W, W)


def test_the_width_follows_the_moving_clip():
    """On the scale of the released sum, the first step's mixing is ``width`` clips wide."""
    problem = make_problem()
    view = problem.info.view
    ends = []
    for alpha in (0.0, 1.0):
        noise = Scripted([np.full(view.W.shape, alpha)])
        algorithm = ModelMix(AdaMix(0.7, clip_floor=1e-3, momentum=0.0), width=30.0)
        ends.append(trained(problem, algorithm, noise, 1)[-1])
    clip = np.quantile(view.gradient_norms, 0.7)
    on_the_sum = (ends[1] - ends[0]) * 300 / (0.7 * (1 - 24 / 324))
    assert_close(on_the_sum, 30 * clip, 1e-8)


def test_the_automatic_step_goes_half_as_far_as_plain_descent():
    """A constant direction moves mixed heads by 2/3 of the step in the long run.

    They go half as far, mixing being noise too.
    """
    W = state = np.zeros((3, 4))
    update = MixingDescent(lambda n_steps: 1e-9)
    half = [np.full(W.shape, 0.5)] * 60
    noise = Scripted(half)
    for _ in range(60):
        W, state = update.step(context(W, step=1.0, noise=noise), np.ones_like(W), state)
    assert_close(W, -40, 0.02)
    problem = make_problem()
    for n_steps in (12, 400):
        terms = {"epsilon": 0.3, "n_steps": n_steps}
        mixed = problem.plan(problem.recipe(ModelMix(NoisyGD(momentum=0.0), width=1e-6)), **terms)
        plain = problem.plan(problem.recipe(NoisyGD(momentum=0.0)), **terms)
        assert mixed.noise_multiplier == plain.noise_multiplier
        assert mixed.step_size(1) == pytest.approx(0.5 * 1.5 * plain.step_size(1))


def refused(base, message, **parameters):
    with pytest.raises(ValueError, match=message):
        make_problem().recipe(ModelMix(base, **parameters))


def rules(problem):
    """Descent's rule for steps, and that of mixed heads."""
    made = NoisyGD("lipschitz" if problem.info.view.data.loss.lipschitz < np.inf else 0.5, momentum=0.0)
    steps = problem.recipe(made).steps
    return steps, mixed_steps(steps)


def test_the_longest_steps_are_stable_up_to_the_curvature_of_squared_loss():
    """On average, ``W_t = W_{t-1} / 2 + W_{t-2} / 2 - rate * curvature * W_{t-1}`` shrinks."""
    problem = make_regression_problem()
    _, mixed = rules(problem)
    rate = mixed.bind(problem.info, ReleaseFacts(1e-9, 10, 0.5))(1)
    assert rate * problem.info.curvature == pytest.approx(0.5)
    for part in (0.01, 0.5, 1.0):
        roots = np.roots([1, -(0.5 - part * rate * problem.info.curvature), -0.5])
        assert np.abs(roots).max() < 1
    limit = np.roots([1, -(0.5 - 2.1 * rate * problem.info.curvature), -0.5])
    assert np.abs(limit).max() > 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_steps_of_cross_entropies_are_as_long_a_part_of_the_limit_as_those_of_descent(n_classes):
    """The limit of mixed heads is a third of descent's, and a step moves them by 2/3."""
    info = make_problem(n_classes).info
    longest = [rule.bind(info, ReleaseFacts(1e-9, 10, 0.5))(1) for rule in rules(make_problem(n_classes))]
    assert longest[1] == pytest.approx(longest[0] / 3 / (2 / 3))


def test_steps_are_fewer_where_the_curvature_lies_below_its_bound():
    info = replace(make_problem().info, mu=0.5)
    steps, mixed = rules(make_problem())
    n_descent, n_mixed = steps.count(info, 0.5), mixed.count(info, 0.5)
    assert 15 < n_descent < 150
    # With half of the noise, and half of a stability limit of a third, at a curvature of two thirds.
    assert n_mixed == pytest.approx(n_descent * 0.5 * 3 / 1.5, abs=2)
    # The Hessian of squared loss is the same everywhere.
    problem = make_regression_problem()
    problem.info = replace(problem.info, mu=0.5)
    steps, mixed = rules(problem)
    assert 15 < steps.count(problem.info, 0.5) < 100
    assert mixed.count(problem.info, 0.5) == pytest.approx(steps.count(problem.info, 0.5) * 1.5, abs=2)


class Faster:
    """A rule for steps that is not known."""


def test_what_the_theorem_does_not_cover_is_refused_with_a_mend():
    refused(NoisyGD(), r"momentum=0.9.*pass momentum=0 to its base")
    refused(AdaMix(), r"momentum=0.9.*pass momentum=0 to its base")
    refused(NoisyGD(momentum=0.5, radius=2.0, average=True), r"momentum=0.5")
    refused(AdaMix(n_components=3, momentum=0.0), r"public subspace.*n_components=None")
    refused(ModelMix(), r"cannot wrap MixingDescent")
    refused(Coupling(), r"momentum=0.9.*pass momentum=0 to its base")
    refused(GEP(momentum=0.0), r"cannot wrap SplitQuery.*wrap plain descent")
    refused(PDADPMD(), r"cannot wrap UniformAverage.*wrap plain descent")
    refused(NoisyGD(momentum=0.0, second_clip=0.5), r"second_clip=0.5.*second_clip=None")
    with pytest.raises(ValueError, match="cannot wrap Faster"):
        mixed_steps(Faster())


def test_a_base_is_an_algorithm_object():
    with pytest.raises(ValueError, match=r"^base='noisy-gd' of ModelMix must be an algorithm object"):
        make_problem().recipe(ModelMix(base="noisy-gd"))


def test_discrete_noise_is_refused():
    with pytest.raises(ValueError, match=r"^noise='discrete' needs sums on a grid, and ModelMix"):
        make_problem().recipe(ModelMix(), exact=True)


def test_wrapped_noise_is_not_projected_on_sum_to_zero():
    recipe = make_problem().recipe(ModelMix())
    assert isinstance(recipe.query, GradientQuery)
    assert not recipe.query.sum_to_zero
    assert make_problem().recipe(AdaMix()).query.sum_to_zero


class TestPlan:
    """The event is that of the width, the split and the rate in use."""

    @staticmethod
    def plan(algorithm, n_steps=30, rate=None, epsilon=1.0, neighboring="add_or_remove_one"):
        problem = make_problem()
        options = Options(
            "auto", None, PoissonBatch(60) if rate else make_problem().recipe(AdaMix()).sampling, False
        )
        budget = Budget(epsilon, 1e-5, n_steps, None, neighboring, "float")
        return make_plan(budget, algorithm.recipe(problem.info, options), problem.info, FLOAT)

    @staticmethod
    def epsilons(plan, neighboring="add_or_remove_one"):
        return [epsilon_of_event(one, 1e-5, neighboring) for one in (plan.event, plan.event.unamplified)]

    def test_both_epsilons(self):
        plan = self.plan(ModelMix(width=80.0, linf_split=4))
        sigma = plan.noise_multiplier
        assert plan.event == ModelMixEvent(sigma, 30, width=80.0, linf_split=4)
        epsilon, unamplified = self.epsilons(plan)
        assert epsilon == modelmix_epsilon(sigma, 30, delta=1e-5, width=80.0, linf_split=4)
        assert 0.999 < epsilon <= 1 < unamplified
        plain = self.plan(AdaMix()).event
        assert plain.unamplified is plain

    def test_the_automatic_width_is_twice_the_noise_without_mixing(self):
        assert self.plan(ModelMix()).event.width == pytest.approx(2 * np.sqrt(30) / 0.27)
        assert self.plan(ModelMix(), rate=0.2).event.width == pytest.approx(0.4 * np.sqrt(30) / 0.27)

    def test_replace_one_at_the_full_batch_alone(self):
        plan = self.plan(ModelMix(width=300.0), neighboring="replace_one")
        epsilon, unamplified = self.epsilons(plan, "replace_one")
        assert epsilon <= 1 < unamplified
        with pytest.raises(
            ValueError, match=r"^neighboring='replace_one' cannot be accounted for with ModelMix"
        ):
            self.plan(ModelMix(), rate=0.2, neighboring="replace_one")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(4, 8))
    y, y_pub = np.arange(2000) % 4, np.arange(40) % 4
    X, X_pub = centres[y] + rng.normal(size=(2000, 8)), centres[y_pub] + rng.normal(size=(40, 8))
    clf = MixedDPLogisticRegression("modelmix", epsilon=1.0).fit(X, y, X_pub, y_pub)
    return clf, X, y


def test_the_report_states_both_epsilons_and_what_the_smaller_rests_on(fitted):
    clf, X, y = fitted
    assert clf.score(X, y) > 0.9
    report = clf.privacy_
    assert report.epsilon <= 1 < report.epsilon_unamplified
    assert report.mu is None
    assert "Renyi DP with amplification" in report.accountant
    for text in (" ".join(str(report).split()), report._repr_html_()):
        assert f"({report.epsilon_unamplified:.6g}, 1e-05)" in text
        assert "without amplification" in text
        assert "not on a proof" in text
    assert json.loads(report.to_json())["epsilon_unamplified"] == report.epsilon_unamplified


def test_the_mixing_weights_are_kept_nowhere(monkeypatch, fitted):
    drawn, sources = [], []

    class Recording(NoiseSource):
        def uniform(self, shape):
            drawn.append(super().uniform(shape))
            return drawn[-1].copy()

    monkeypatch.setattr(
        dotted_path("transaction.NoiseSource"), lambda seed: sources.append(Recording(seed)) or sources[-1]
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), np.arange(200) % 3
    clf = MixedDPLogisticRegression("modelmix", n_steps=4, classes=[0, 1, 2], random_state=1).fit(X, y)
    assert len(drawn) == 4
    stored = pickle.dumps(clf)
    for alpha in drawn:
        assert all(np.float64(value).tobytes() not in stored for value in alpha.ravel())
    # Neither does the recipe's update, nor its state: the head before the last and no more.
    update = make_problem().recipe(ModelMix()).update
    assert set(vars(update)) == {"width"}
    problem = make_problem()
    W, state = update.init(problem.info.view.W)
    ctx = context(W)
    _, state = update.step(ctx, 0 * W, state)
    assert state is ctx.view.W
