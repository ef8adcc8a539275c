"""What is added to a mixed head has the stated law: a uniform number and a Gaussian one."""

import numpy as np
from scipy.stats import kstest, norm

from skmixdp.algorithms import ModelMix, NoisyGD
from skmixdp.privacy import NoiseSource
from tests.conftest import Silent, make_problem, train
from tests.private_names import InMemoryRows, training

THRESHOLD = 1e-7
FLOAT = np.dtype("float64")


def first_heads(noise_kind, width, n_fits=120):
    """Heads after one step less the step without randomness, on the scale of the clipped sum."""
    problem = make_problem()
    recipe = problem.recipe(ModelMix(NoisyGD(clip=0.4, momentum=0.0), width=width), learning_rate=2.0)
    plan = problem.plan(recipe, n_steps=1)
    rows = InMemoryRows(problem.X, problem.y)
    scale = 2.0 * (1 - 24 / 324) / 300 * 0.4

    class Centred(Silent):
        def uniform(self, shape):
            return np.full(shape, 0.5)

    def head(noise):
        return train([training(plan, noise)], rows)[0]

    centre = head(Centred())
    sample = [(head(noise_kind(seed)) - centre).ravel() / scale for seed in range(n_fits)]
    return np.concatenate(sample), plan.noise_multiplier


def assert_law(sample, distribution, twins):
    assert kstest(sample, distribution).pvalue > THRESHOLD
    for twin in twins:
        assert kstest(sample, twin).pvalue < THRESHOLD


def uniform(width):
    return lambda z: np.clip(z / width + 0.5, 0, 1)


def convolved(width, sigma):
    """Distribution function of U[-width/2, width/2] + N(0, sigma^2)."""

    def antiderivative(z):
        return z * norm.cdf(z) + norm.pdf(z)

    def cdf(z):
        ends = (z + width / 2) / sigma, (z - width / 2) / sigma
        return (antiderivative(ends[0]) - antiderivative(ends[1])) * sigma / width

    return cdf


def test_the_mixing_alone_is_uniform_over_its_width():
    sample, _ = first_heads(Silent, 40.0)
    assert_law(sample, uniform(40.0), [uniform(40.0 * factor) for factor in (2 / 3, 3 / 2)])
    # The step's first heads coincide, so the gap is the threshold itself: sign(0) is not 0.
    assert np.abs(sample).max() > 0.99 * 20


def test_mixing_and_noise_together():
    width = 14.0  # about as much as the noise: neither hides the other
    sample, sigma = first_heads(NoiseSource, width, n_fits=300)
    twins = [convolved(width * factor, sigma) for factor in (2 / 3, 3 / 2)]
    twins += [convolved(width, sigma * factor) for factor in (2 / 3, 3 / 2)]
    assert_law(sample, convolved(width, sigma), twins)


def test_coordinates_are_mixed_independently():
    sample, _ = first_heads(Silent, 40.0)
    per_fit = sample.reshape(120, -1)
    means = per_fit.mean(axis=1) / (40 / np.sqrt(12 * per_fit.shape[1]))
    assert kstest(means, "norm").pvalue > 1e-6
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 5.5 / np.sqrt(len(sample))
