"""A linear module is a linear head: the same losses, two-point numbers, public facts and fits."""

from dataclasses import replace

import numpy as np
import pytest

from skmixdp.algorithms import PAZO
from skmixdp.components import ConstantWeight, CosineWeight, CouplingWeight, FullBatch, PoissonBatch
from skmixdp.components.protocols import ReleaseFacts
from tests.asking import request_of
from tests.conftest import Silent, Watched, make_problem
from tests.module_problems import Direction, module_info, module_rows, torch
from tests.private_names import Batch, InMemoryRows, Options, TwoPointQuery, zeroth_order_descent
from tests.rounding import assert_close


class Given:
    """The same directions for a head and for the module that it is."""

    def __init__(self, arrays, dense):
        self.arrays, self.dense = arrays, dense

    def radius(self, view):
        return 2.0

    def dimension(self, view):
        return view.n_parameters

    def draw(self, ctx, count):
        arrays = self.arrays[ctx.t - 1, :count]
        return [Direction.dense([torch.from_numpy(u.copy())]) for u in arrays] if self.dense else arrays


def trained(problem, info, rows, recipe, noise):
    W, _ = replace(problem, info=info).trained(recipe, noise=noise, rows=rows, n_steps=5)
    return W if isinstance(W, np.ndarray) else W.tensors[0].numpy()


def options(sampling=None):
    return Options(0.7, None, sampling or FullBatch(), False)


@pytest.mark.covering
@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("sampling", [None, PoissonBatch(40)], ids=["full", "poisson"])
def test_two_point_steps_are_those_of_the_head(weight, q, sampling):
    problem = make_problem()
    arrays = np.random.default_rng(0).normal(size=(5, q, *problem.info.view.W.shape))
    found, sums = [], []
    for module in (False, True):
        noise = Watched(2)
        query = TwoPointQuery(Given(arrays, module), q, 0.05, 0.5, 8)
        info = module_info(problem) if module else problem.info
        rows = module_rows(problem) if module else InMemoryRows(problem.X, problem.y)
        recipe = zeroth_order_descent(info, options(sampling), query, ConstantWeight(weight), 1.0)
        found.append(trained(problem, info, rows, recipe, noise))
        sums.append(np.array(noise.sums))
    np.testing.assert_allclose(sums[1], sums[0], rtol=1e-9, atol=1e-9)
    assert_close(found[1], found[0], 1e-10)
    assert np.abs(found[0] - problem.info.view.W).max() > 1e-3


@pytest.mark.parametrize(
    "algorithm",
    [
        PAZO("p", orthonormal=False),
        PAZO("s", candidate_noise=None),
        PAZO("s", candidate_noise=None, public_batch_size=4),
    ],
    ids=["p", "s", "s, batches"],
)
def test_algorithms_without_random_directions_in_parameter_space_fit_the_same(algorithm):
    problem = make_problem()
    head = trained(
        problem,
        problem.info,
        InMemoryRows(problem.X, problem.y),
        algorithm.recipe(problem.info, options()),
        Silent(4),
    )
    info = module_info(problem)
    module = trained(problem, info, module_rows(problem), algorithm.recipe(info, options()), Silent(4))
    assert_close(module, head, 1e-10)
    assert np.abs(head - problem.info.view.W).max() > 1e-3


def test_public_facts_are_those_of_the_head():
    problem = make_problem()
    view, head = module_info(problem).view, problem.info.view
    batches = [np.arange(5), np.arange(7, 20)]
    like = view.W.tensors
    for mine, theirs in zip(view.batch_gradients(batches), head.batch_gradients(batches), strict=True):
        assert_close(mine.formed(like)[0].numpy(), theirs, 1e-10)
    assert_close(view.gradient.formed(like)[0].numpy(), head.gradient, 1e-10)
    (mine,) = view.orthonormal([view.gradient])
    assert_close(mine.formed(like)[0].numpy(), head.gradient / np.linalg.norm(head.gradient))


def test_the_scale_of_outputs_is_that_of_the_rows():
    """The power method finds the rows' second moment; an output moves by a row's length."""
    problem = make_problem()
    info = module_info(problem)
    top = np.linalg.norm(problem.info.view.data.X, ord=2) ** 2 / info.view.data.n_rows
    assert info.curvature == pytest.approx(0.5 * top, rel=0.02)
    mean_square = np.mean(problem.info.view.data.norms**2)
    assert info.view.data.loss.noise_per_output == pytest.approx(0.75 / np.sqrt(mean_square), rel=0.15)
    assert module_info(make_problem(n_pub=0)).curvature == np.inf


def test_public_weights_that_need_no_public_fit_are_those_of_the_head():
    problem = make_problem()
    info, facts = module_info(problem), ReleaseFacts(5.0, 10, 0.4)
    for rule in (CosineWeight(), CouplingWeight(smoothness=0.3), ConstantWeight(0.2)):
        mine, theirs = (rule.bind(s, facts)(3, s.view) for s in (info, problem.info))
        assert mine == pytest.approx(theirs, rel=1e-10)


def test_losses_at_moved_parameters_and_the_batch_alone():
    problem = make_problem()
    info = module_info(problem)
    arrays = np.random.default_rng(1).normal(size=(2, *problem.info.view.W.shape))
    directions = [Direction.dense([torch.from_numpy(u)]) for u in arrays]
    moves = [(0, 0.5), (1, 0.5), (0, -0.5), (1, -0.25)]
    mask = np.arange(len(problem.y)) % 3 == 0
    seen = []

    def contribute(losses, block):
        seen.append((losses.copy(), block.y))
        return None, losses

    points = info.view.probe(directions, moves).points
    start = info.view.W.tensors[0].clone()
    ((_, total),) = module_rows(problem).private_sums([request_of(points, contribute, Batch(members=mask))])
    ((losses, y),) = seen
    loss = problem.info.view.data.loss
    X = problem.X
    expected = np.stack(
        [loss.values(X @ (problem.info.view.W + step * arrays[j]).T, problem.y) for j, step in moves], axis=1
    )
    np.testing.assert_array_equal(y, problem.y)
    assert_close(losses, expected, 1e-10)
    assert_close(total, expected[mask].sum(axis=0), 1e-10)
    np.testing.assert_allclose(info.view.W.tensors[0].numpy(), start.numpy(), rtol=0, atol=1e-14)


def test_an_empty_batch_sums_to_zero():
    problem = make_problem()
    view = module_info(problem).view
    points = view.probe([view.gradient], [(0, 0.1), (0, -0.1)]).points
    request = request_of(
        points, lambda losses, block: (None, losses), Batch(members=np.zeros(len(problem.y), bool))
    )
    ((_, total),) = module_rows(problem).private_sums([request])
    np.testing.assert_array_equal(total, [0, 0])


def test_rows_refuse_a_question_of_first_order():
    problem = make_problem()
    view = module_info(problem).view
    points = view.probe([view.gradient], [(0, 0.1)]).points
    with pytest.raises(RuntimeError, match="statistics alone"):
        module_rows(problem).private_sums([request_of(points, lambda losses, block: (losses, None))])
