import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from skmixdp.algorithms import AdaMix, Auto, NoisyGD
from skmixdp.components import BalancedSteps
from skmixdp.components.protocols import ReleaseFacts
from skmixdp.components.public import PublicData
from skmixdp.privacy import GaussianEvent, epsilon_of, epsilon_of_event, noise_multiplier_for, steps_for
from skmixdp.privacy.accounting.budgets import Budget
from tests.conftest import make_problem, make_regression_problem
from tests.private_names import SoftmaxLoss, make_plan

PROBLEM = make_problem()
FLOAT = np.dtype("float64")


def few_rows(n_classes, n_rows):
    """Public facts of a fit with a small budget, and a start from public rows."""
    info = make_problem(n_classes).info
    return replace(
        info, mu=0.05, n_private=n_rows, batch_size=float(n_rows), start=lambda data: data.fit(1.0)
    )


def total_noise(info, **terms):
    """Standard deviation of the noise in an output of a unit row."""
    rate = BalancedSteps("auto", 0.0, 0.0, max_step_scale=1e9, **terms).bind(
        info, ReleaseFacts(70.0, 12, 0.4)
    )
    return rate(1) * 70.0 * 0.4 * math.sqrt(12) / info.batch_size


def plan_for(
    algorithm=None, *, epsilon=1.0, n_steps=None, sigma=None, neighboring="add_or_remove_one", noise="float"
):
    budget = Budget(epsilon, 1e-5, n_steps, sigma, neighboring, noise)
    return make_plan(budget, PROBLEM.recipe(algorithm or AdaMix()), PROBLEM.info, FLOAT)


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("noise", ["float", "discrete"])
def test_budget_and_steps_give_the_multiplier(neighboring, noise):
    plan = plan_for(n_steps=33, neighboring=neighboring, noise=noise)
    terms = {"neighboring": neighboring, "noise": noise}
    assert plan.n_steps == 33
    assert plan.noise_multiplier == noise_multiplier_for(1.0, 1e-5, n_steps=33, **terms)
    assert plan.event == GaussianEvent(plan.noise_multiplier, 33, 1.0, noise)
    epsilon = epsilon_of_event(plan.event, 1e-5, neighboring)
    assert epsilon == epsilon_of(plan.noise_multiplier, 33, delta=1e-5, **terms)
    assert 1 - 1e-6 < epsilon <= 1


def test_budget_and_multiplier_give_whole_steps_and_spend_the_remainder():
    plan = plan_for(epsilon=3.0, sigma=20.0)
    assert plan.n_steps == steps_for(3.0, 1e-5, noise_multiplier=20.0) == 206
    assert 19.9 < plan.noise_multiplier < 20
    assert epsilon_of_event(plan.event, 1e-5, "add_or_remove_one") == pytest.approx(3.0)


def test_both_given_state_what_they_cost():
    plan = plan_for(epsilon=None, n_steps=240, sigma=20.0)
    assert (plan.n_steps, plan.noise_multiplier) == (240, 20.0)
    epsilon = epsilon_of_event(plan.event, 1e-5, "add_or_remove_one")
    assert epsilon == pytest.approx(3.26454999, abs=1e-8)


def test_a_budget_below_one_step_is_refused():
    with pytest.raises(ValueError, match="use noise_multiplier >="):
        plan_for(epsilon=0.1, sigma=20.0)


@pytest.mark.parametrize("n_steps", [1, 499, 1_000, 12_345, 10**6])
def test_every_step_is_accounted_for_however_many_there_are(n_steps):
    plan = plan_for(epsilon=None, n_steps=n_steps, sigma=300.0)
    assert plan.event == GaussianEvent(300.0, n_steps)
    assert plan.n_steps == n_steps


class TestBalancedSteps:
    """The total noise per logit is 1, whatever the budget and the steps."""

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
    @pytest.mark.parametrize("n_steps", [None, 60, 200])
    def test_the_noise_per_logit(self, epsilon, n_steps):
        plan = plan_for(NoisyGD(clip=0.4), epsilon=epsilon, n_steps=n_steps)
        eta = plan.step_size(1)
        a = 24 / 324
        spread = eta * (1 - a) * plan.noise_multiplier * 0.4 / 300 * math.sqrt(plan.n_steps)
        behind = 0.9 / (1 - 0.9)  # steps that momentum has not made yet at the end
        assert spread == pytest.approx(plan.n_steps / (plan.n_steps - behind), rel=1e-6)
        assert eta == plan.step_size(plan.n_steps)

    def test_more_noise_is_worth_taking_without_public_rows(self):
        problem = make_problem(n_pub=0)
        plan = problem.plan(problem.recipe(NoisyGD(clip=0.4, momentum=0.0)), n_steps=60)
        spread = plan.step_size(1) * plan.noise_multiplier * 0.4 / 300 * math.sqrt(60)
        assert spread == pytest.approx(1.5, rel=1e-6)

    @pytest.mark.parametrize("n_classes", [2, 4])
    def test_few_rows_take_less_noise_as_far_as_they_correct_the_start(self, n_classes):
        data = make_problem(n_classes).info.view.data
        values = np.linalg.eigvalsh(data.X.T @ data.X / 24)
        curvature = np.sum(values**2) / np.sum(values) / 4  # of 4 equal classes, and of the logistic loss
        n_rows = np.array([5, 30, 100, 3000])
        corrected = 0.05 * (n_rows + 24) / 0.4 * curvature
        assert corrected[1] < 1 < corrected[3]
        noises = [total_noise(few_rows(n_classes, n)) for n in n_rows]
        np.testing.assert_allclose(noises, np.minimum(1, corrected), atol=1e-9)

    def test_few_rows_change_no_start_that_is_unknown_or_zero_and_no_other_steps(self):
        info = few_rows(4, 5)
        assert total_noise(info) < 0.9
        assert total_noise(replace(info, start=None)) == pytest.approx(1)
        assert total_noise(replace(info, view=info.view.data.view(0 * info.view.W))) == pytest.approx(1)
        assert total_noise(info, curvature=info.curvature) == pytest.approx(1)
        targets = replace(make_regression_problem().info, mu=0.05, n_private=5, start=info.start)
        assert total_noise(targets) == pytest.approx(0.4)
        given = BalancedSteps(0.1, 0.0, 0.0)
        assert given.count(info, 0.001) == given.count(replace(info, start=None), 0.001)
        assert PublicData(np.zeros((3, 2)), np.arange(3), SoftmaxLoss(3)).typical_second_moment == math.inf

    @pytest.mark.parametrize("shape", [(30, 4), (4, 30)])
    def test_the_typical_second_moment_weighs_eigenvalues_by_themselves(self, shape):
        X = np.random.default_rng(0).normal(size=shape)
        values = np.linalg.eigvalsh(X.T @ X / len(X))
        typical = PublicData(X, np.arange(len(X)) % 3, SoftmaxLoss(3)).typical_second_moment
        assert typical == pytest.approx(np.sum(values**2) / np.sum(values))

    def test_steps_are_gentle_or_at_the_limits(self):
        counts = [plan_for(NoisyGD(clip, momentum=0.0)).n_steps for clip in (5.0, 0.5, 0.2, 0.1, 0.01)]
        assert counts == sorted(counts)
        assert counts[0] == 15 and counts[-1] == 150
        assert plan_for(NoisyGD(5.0)).n_steps == 40  # momentum has to have its way behind it
        middle = plan_for(NoisyGD(clip=0.1, momentum=0.0), epsilon=1.0)
        assert 15 < middle.n_steps < 150
        assert middle.step_size(1) * PROBLEM.info.curvature == pytest.approx(1.0, rel=0.05)

    def test_averaged_heads_take_few_long_steps(self):
        counts = [plan_for(Auto(clip)).n_steps for clip in (5.0, 0.5, 0.1, 0.01, 0.001)]
        assert counts == sorted(counts)
        assert counts[0] == 12 and counts[-1] == 50
        middle = plan_for(Auto(clip=0.03), epsilon=1.0)
        total_step = PROBLEM.info.mu * 324 / 0.03
        assert middle.n_steps == math.ceil(math.sqrt(total_step * PROBLEM.info.curvature))

    def test_preconditioned_directions_take_twice_as_many_steps_up_to_as_many(self):
        n_steps, more = [], []
        for clip in (5.0, 0.1, 0.05, 0.01, 0.001):
            for matrix, counts in ((None, n_steps), (np.eye(PROBLEM.X.shape[1]), more)):
                info = replace(PROBLEM.info, preconditioner=matrix)
                moved = replace(PROBLEM, info=info)
                counts.append(moved.plan(moved.recipe(Auto(clip)), n_steps=None).n_steps)
        assert n_steps[0] == more[0] == 12 and n_steps[-1] == more[-1] == 50
        doubled = [both for both in zip(n_steps, more, strict=True) if both[0] > 12 and both[1] < 50]
        assert doubled and all(abs(2 * few - many) <= 2 for few, many in doubled)

    def test_momentum_is_as_large_as_the_total_step_needs(self):
        few, some, most = (PROBLEM.recipe(Auto(clip)).update for clip in (5.0, 0.01, 1e-5))
        few, some, most = (shrunk.inner.inner.momentum for shrunk in (few, some, most))
        assert few == 0.0 and most == 0.8
        assert 0.2 < some < 0.7
        sensitivity = 0.01
        range_of_steps = {"minimum": 12, "maximum": 50, "averaged": True}
        steps = partial(BalancedSteps, "auto", l2=0.0, max_step_scale=10.0, **range_of_steps)
        least = steps(0.0).least_momentum(PROBLEM.info, sensitivity, 0.8)
        assert least == pytest.approx(some)
        total = PROBLEM.info.mu * 324 / sensitivity * PROBLEM.info.curvature
        n_steps = steps(0.0).count(PROBLEM.info, sensitivity)
        # At half of the stability limit, so many steps of ten times that length cover the total step exactly.
        assert n_steps * 10 * (1 + least) / (1 - least) == pytest.approx(total)

    def test_the_rate_stays_below_the_stability_limit(self):
        # Ten times half of it, clipped residuals being what they are; not for squared loss.
        plan = plan_for(NoisyGD(clip=1e-5), epsilon=100.0)
        assert plan.n_steps == 150
        assert plan.step_size(1) * PROBLEM.info.curvature == pytest.approx(10 * 1.9 / 0.1)
        plain = plan_for(NoisyGD(clip=1e-5, momentum=0.0), epsilon=100.0)
        assert plain.step_size(1) * PROBLEM.info.curvature == pytest.approx(10.0)
        problem = make_regression_problem()
        squared = problem.plan(problem.recipe(NoisyGD(clip=1e-6, momentum=0.0)), epsilon=100.0, n_steps=9)
        assert squared.step_size(1) * problem.info.curvature == pytest.approx(1.0)

    def test_the_curvature_is_the_losss_times_the_public_second_moment(self):
        X = PROBLEM.info.view.data.X
        top = np.linalg.eigvalsh(X.T @ X / len(X))[-1]
        assert PROBLEM.info.curvature == pytest.approx(0.5 * top)
        assert make_problem(n_pub=0).info.curvature == pytest.approx(0.5 * (1 + 0.16), rel=1e-5)


def test_the_theoretical_variant_follows_theorem_three():
    algorithm = NoisyGD("lipschitz", radius=5.0, center="public", schedule="decaying", average=True)
    recipe = PROBLEM.recipe(algorithm)
    p, rho, n = PROBLEM.info.view.W.size, 0.27**2 / 2, 324
    lipschitz = math.sqrt(2) * np.hypot(1, 0.4)
    assert recipe.l2 == pytest.approx(math.sqrt(2 * p * lipschitz**2 / (rho * 25)) / n, rel=1e-5)
    plan = plan_for(algorithm)
    assert plan.step_size(1) == pytest.approx(1 / recipe.l2)
    assert plan.step_size(9) == pytest.approx(2 / (10 * recipe.l2))
    assert plan.n_steps == math.floor((0.27 * 20) ** 2)
    np.testing.assert_array_equal(recipe.anchor, PROBLEM.info.view.W)
