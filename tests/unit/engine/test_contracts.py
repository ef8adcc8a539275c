"""Shapes of algorithms that the loop must carry without knowing them."""

import inspect

import numpy as np
import pytest

from skmixdp.components import SGD, FullBatch, GradientQuery, L2Clip, SampleWeight
from skmixdp.components.clipping import clipped_residuals
from skmixdp.components.protocols import PrivateQuery, PublicInfo, ReleasedArray
from skmixdp.components.public import PublicData
from skmixdp.privacy import GaussianEvent, NoiseSource
from tests.conftest import Silent, train
from tests.private_names import InMemoryRows, Plan, Recipe, SoftmaxLoss, training

N, D, K, N_PUB = 200, 6, 4, 12


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = rng.integers(K, size=N)
    X_pub, y_pub = rng.normal(size=(N_PUB, D)), rng.integers(K, size=N_PUB)
    data = PublicData(X_pub, y_pub, SoftmaxLoss(K))
    info = PublicInfo(
        data.view(rng.normal(size=(K, D))), mu=1.0, n_private=N, batch_size=N, row_norm_bound=np.inf
    )
    return X, y, info


def run_of(info, query, update, noise, n_steps=3, sampling=None, step=0.3, callback=None):
    W = info.view.W
    recipe = Recipe(sampling or FullBatch(), query, SampleWeight(), None, update, 0.0, np.zeros_like(W))
    a = N_PUB / (N_PUB + N)
    event = GaussianEvent(2.0, n_steps)
    steps = lambda t: step, lambda t, view: a
    plan = Plan(recipe, info, np.dtype("float64"), 2.0, n_steps, event, *steps)
    return training(plan, noise, callback=callback)


class TwoRoundQuery:
    """Losses at public candidates, then at one more that depends on the first answer."""

    def __init__(self, clip):
        self.clip = clip
        self.asked = []

    def sensitivity(self, view, dtype):
        return self.clip

    def losses_at(self, ctx, heads, share):
        k = ctx.view.data.loss.n_outputs

        def contribute(Z, block):
            values = [
                ctx.view.data.loss.values(Z[:, i * k : (i + 1) * k], block.y) for i in range(len(heads))
            ]
            return None, np.clip(np.column_stack(values), 0, self.clip)

        return PrivateQuery(
            np.vstack(heads), contribute, (ReleasedArray(self.clip * np.sqrt(len(heads)), share),)
        )

    def step(self, ctx):
        candidates = [ctx.view.gradient, -ctx.view.gradient, np.zeros_like(ctx.view.W)]
        heads = [ctx.view.W - ctx.step_size * g for g in candidates]
        (first,) = yield self.losses_at(ctx, heads, 3 / 4)
        best = candidates[int(np.argmin(first))]
        further = best + 0.1
        (second,) = yield self.losses_at(ctx, [ctx.view.W - ctx.step_size * further], 1 / 4)
        self.asked.append((first, second))
        return further if second[0] < first.min() else best


class HalfOfTheRows:
    """A batch that is drawn once a step; both rounds must see it."""

    def __init__(self):
        self.drawn = []

    def rate(self, n_private):
        return 0.5

    def draw(self, n_private, noise):
        self.drawn.append(noise.uniform((n_private,)) < 0.5)
        return self.drawn[-1]


def test_two_rounds_in_a_step_see_one_batch(problem):
    X, y, info = problem
    query, sampling = TwoRoundQuery(3.0), HalfOfTheRows()
    heads = []
    noted = {"callback": lambda t, W: heads.append(W)}
    run = run_of(info, query, SGD(), Silent(0), n_steps=4, sampling=sampling, **noted)
    train([run], InMemoryRows(X, y))
    assert len(sampling.drawn) == len(query.asked) == len(heads) == 4
    W = info.view.W
    for mask, (first, second), after in zip(sampling.drawn, query.asked, heads, strict=True):
        at_start = np.clip(SoftmaxLoss(K).values(X @ W.T, y), 0, 3.0)[mask].sum()
        assert first[2] == pytest.approx(at_start)  # the third candidate does not move
        chosen = np.clip(SoftmaxLoss(K).values(X @ after.T, y), 0, 3.0)[mask].sum()
        assert chosen == pytest.approx(min(first.min(), second[0]))
        W = after


def test_several_heads_share_every_pass_and_equal_separate_runs(problem):
    X, y, info = problem

    class CountingRows(InMemoryRows):
        passes = 0

        def private_sums(self, requests):
            self.passes += 1
            return super().private_sums(requests)

    def runs():
        query = GradientQuery(L2Clip(0.5), None, sum_to_zero=True)
        return [
            run_of(info, query, SGD(0.9), NoiseSource(1), n_steps=5),
            run_of(info, TwoRoundQuery(3.0), SGD(), NoiseSource(2), n_steps=2),
            run_of(info, query, SGD(), NoiseSource(3), n_steps=3),
        ]

    together_rows = CountingRows(X, y)
    together = train(runs(), together_rows)
    apart = [train([run], InMemoryRows(X, y))[0] for run in runs()]
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    # As many as the run with most queries needs: no run waits for the second rounds of another one.
    assert together_rows.passes == 5


def test_the_loop_names_no_algorithm_and_branches_on_none():
    source = inspect.getsource(training).lower()
    for name in ("noisygd", "adamix", "coupling", "dpmd", "dope", "gep", "modelmix", "pazo", "isinstance"):
        assert name not in source
    assert clipped_residuals.__module__ == "skmixdp.components.clipping"
