"""Directions that are seeds: the same whenever they are drawn, of the stated lengths."""

import numpy as np
import pytest

from skmixdp.privacy import NoiseSource
from tests.module_problems import Direction, Seeded, all_of, module_problem, torch, two_layers
from tests.rounding import assert_close, assert_relative

SHAPES = [torch.zeros(3, 4, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)]


def flat(direction, like=SHAPES):
    return np.concatenate([tensor.numpy().ravel() for tensor in direction.formed(like)])


def seeded(seed, factor=1.0):
    return Direction(((factor, Seeded(seed)),))


def test_a_seed_gives_the_same_entries_whenever_it_is_asked():
    direction = seeded(5)
    np.testing.assert_array_equal(flat(direction), flat(direction))
    np.testing.assert_array_equal(flat(direction), flat(seeded(5)))
    assert np.abs(flat(direction) - flat(seeded(6))).max() > 0.1
    # A tensor's entries are its own, not those of the tensor before it.
    assert np.abs(flat(direction)[:5] - flat(direction)[12:]).max() > 0.1


def test_entries_are_standard_normal():
    (tensor,) = seeded(1).formed([torch.zeros(200_000)])
    values = tensor.double().numpy()
    assert abs(values.mean()) < 5 / np.sqrt(len(values))
    assert abs((values**2).mean() - 1) < 5 * np.sqrt(2 / len(values))
    assert abs((values**4).mean() - 3) < 0.2


def test_arithmetic_is_that_of_the_vectors():
    dense = Direction.dense([torch.ones(3, 4, dtype=torch.float64), torch.arange(5, dtype=torch.float64)])
    one, other = flat(seeded(1)), flat(dense)
    combined = 2 * (seeded(1) + 0.5 * dense) + 0 * seeded(2)
    assert_close(flat(combined), 2 * one + other, 1e-14)
    # NumPy's numbers leave the product to the direction.
    assert_close(flat(np.float64(3) * dense), 3 * other)
    for direction in (combined, dense, np.float32(-2) * seeded(4)):
        assert direction.norm(SHAPES) == pytest.approx(np.linalg.norm(flat(direction)), rel=1e-12)


def test_adding_leaves_kept_vectors_as_they_are():
    kept = [torch.ones(3, 4, dtype=torch.float64), torch.ones(5, dtype=torch.float64)]
    direction = 3.0 * Direction.dense(kept)
    direction.add_to([torch.zeros_like(tensor) for tensor in kept], 2.0)
    direction.norm(SHAPES)
    assert all(bool((tensor == 1).all()) for tensor in kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_directions_lie_on_the_stated_sphere(dtype):
    view = module_problem(two_layers(dtype=dtype)).info.view
    W = view.W
    assert view.n_parameters == 9 * 7 + 7 + 7 * 4 + 4
    directions = view.random_directions(NoiseSource(0), 20, 3.0, sphere=True)
    lengths = [np.linalg.norm(flat(direction, W.tensors)) for direction in directions]
    assert_relative(lengths, 3.0, 1e-6)
    # Uniform on it: no coordinate and no pair of directions stands out.
    U = np.stack([flat(d, W.tensors) for d in view.random_directions(NoiseSource(1), 400, 1.0, sphere=True)])
    assert np.abs(U.mean(axis=0)).max() < 5 / np.sqrt(400 * view.n_parameters)
    second = view.n_parameters * (U.T @ U) / 400
    assert np.abs(np.diag(second) - 1).max() < 5 * np.sqrt(2 / 400)
    assert np.abs(second - np.diag(np.diag(second))).max() < 6 / np.sqrt(400)


def test_gaussian_directions_have_the_stated_mean_square_and_do_not_lie_on_a_sphere():
    view = module_problem(two_layers()).info.view
    directions = view.random_directions(NoiseSource(0), 400, 3.0, sphere=False)
    squares = np.array([direction.norm(view.W.tensors) ** 2 for direction in directions])
    spread = 9 * np.sqrt(2 / view.n_parameters)
    assert squares.mean() == pytest.approx(9, abs=5 * spread / 20)
    assert squares.std() == pytest.approx(spread, rel=0.25)


def test_orthonormal_directions_span_what_they_come_from():
    view = module_problem(two_layers()).info.view
    like = view.W.tensors
    given = view.batch_gradients([np.arange(4), np.arange(8, 12), np.arange(20, 24)])
    dependent = [given[0], 2.0 * given[0], 0.0 * given[0], *given[1:], given[1] + given[2]]
    basis = np.stack([flat(direction, like) for direction in view.orthonormal(dependent)])
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)
    originals = np.stack([flat(direction, like) for direction in given])
    np.testing.assert_allclose(originals @ basis.T @ basis, originals, atol=1e-10)
    lengths = [direction.norm(like) for direction in view.unit([*given, 0.0 * given[0]])]
    np.testing.assert_allclose(lengths, [1, 1, 1, 0], atol=1e-12)


def test_moving_there_and_back_leaves_rounding_alone():
    module = two_layers(d=50, hidden=40, k=10, dtype=torch.float32)
    W = all_of(module)
    start = [tensor.clone() for tensor in W.tensors]
    for seed in range(500):
        W.move(seeded(seed), 0.01)
        W.move(seeded(seed), -0.02)
        W.move(seeded(seed), 0.01)
    moved = torch.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(W.tensors, start, strict=True)))
    assert 0 < float(moved) < 5e-6 * float(torch.sqrt(sum((b**2).sum() for b in start)))
