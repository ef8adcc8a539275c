"""A second descent, if the gradients of the first fall evenly."""

from dataclasses import replace

import numpy as np
import pytest

import skmixdp.algorithms.auto
from skmixdp import MixedDPLogisticRegression
from skmixdp._engine import Options
from skmixdp.algorithms import Auto
from skmixdp.components import SGD, FullBatch, PublicShrinkage, RepeatedDescent, TailAverage
from skmixdp.components.protocols import ReleasedArray, StepContext
from skmixdp.privacy import NoiseSource
from tests.conftest import make_problem, make_regression_problem

STEP = 0.1
OPTIONS = Options("auto", "auto", FullBatch(), False)
RNG = np.random.default_rng(0)
ONE, OTHER = (rows - rows.mean(axis=0) for rows in RNG.normal(size=(2, 5, 200)))
INFO = make_problem(5, d=199).info


def replayed(update, signals, noise=0.0, seed=1, start=None):
    """The result of steps along given directions, with noise of this standard deviation; heads and state.

    Directions have columns of mean zero, as gradients of the softmax have.
    """
    rng = np.random.default_rng(seed)
    W, state = update.init(np.zeros_like(ONE) if start is None else start)
    heads = []
    for t, signal in enumerate(signals, start=1):
        drawn = noise * rng.normal(size=W.shape)
        ctx = StepContext(
            *(t, len(signals), INFO.view.data.view(W), 100.0, 0.0, STEP, 0.0, 0 * W),
            *(np.dtype("float64"), NoiseSource(0), 200 * noise, [ReleasedArray(sensitivity=0.5)]),
        )
        assert ctx.noise_variance == pytest.approx(noise**2)
        W, state = update.step(ctx, signal + drawn - drawn.mean(axis=0), state)
        heads.append(W)
    return update.result(W, state), heads, state


def falling(rate, n_steps=16):
    """Directions that keep their direction, and become shorter by this factor in each step."""
    return [rate**t * ONE for t in range(n_steps)]


# 0.7: fallen to a quarter after 8 of 16 steps and to a half after 4; 0.95: not fallen to a half by then.
@pytest.mark.parametrize(("rate", "n_steps", "n_first"), [(0.7, 16, 4), (0.95, 16, 8), (0.95, 15, 8)])
def test_gradients_that_fall_evenly_lead_to_a_second_descent_from_zero(rate, n_steps, n_first):
    signals = falling(rate, n_steps)
    result, heads, state = replayed(RepeatedDescent(SGD()), signals, start=OTHER)
    assert state.n_first == n_first
    assert not heads[n_first - 1].any()
    n_second = n_steps - n_first
    first = OTHER - STEP * sum(signals[:n_first])
    second = -0.75 * n_first / n_second * STEP * sum(signals[n_first:])
    np.testing.assert_allclose(heads[-1], second)
    np.testing.assert_allclose(result, (n_first * 0.75 * first + n_second * second) / n_steps)


def test_the_second_descent_has_no_momentum_of_the_first():
    _, heads, state = replayed(RepeatedDescent(SGD(0.5)), falling(0.7))
    first_of_second = -0.5 * 0.75 * 4 / 12 * STEP * 0.7**4 * ONE
    assert state.n_first == 4
    np.testing.assert_allclose(heads[4], first_of_second)


TURNING = [0.6**t * ONE + 0.4 * 0.99**t * OTHER for t in range(16)]


@pytest.mark.parametrize("n_steps", [1, 2, 16])
def test_nothing_changes_if_gradients_turn_or_steps_are_few(n_steps):
    signals = TURNING if n_steps == 16 else falling(0.7, n_steps)
    inner = TailAverage(SGD(0.3))
    result, heads, state = replayed(RepeatedDescent(inner), signals, start=OTHER)
    plain, plain_heads, _ = replayed(inner, signals, start=OTHER)
    assert state.first is None
    np.testing.assert_array_equal(result, plain)
    np.testing.assert_array_equal(heads, plain_heads)


def test_the_first_comparison_after_the_fall_decides():
    # They turn before the fall is seen, and then no more.
    signals = [0.6**t * ONE + 0.5 * OTHER for t in range(4)] + [0.5 * OTHER] * 12
    assert replayed(RepeatedDescent(SGD()), signals)[2].first is None


@pytest.mark.parametrize(("noise", "repeated"), [(0.1, 20), (0.3, 20), (3.0, 0), (30.0, 0)])
def test_noise_is_subtracted_and_too_much_of_it_decides_nothing(noise, repeated):
    runs = [replayed(RepeatedDescent(SGD()), falling(0.9), noise, seed) for seed in range(20)]
    assert sum(state.first is not None for *_, state in runs) == repeated


@pytest.mark.parametrize("size", [0.0, 1e-320, 1e-170, 1e160, np.inf, np.nan])
def test_gradients_without_a_length_decide_nothing(size):
    with np.errstate(all="ignore"):
        for noise in (0.0, 1e-3):
            signals = [size * signal for signal in falling(0.7)]
            assert replayed(RepeatedDescent(SGD()), signals, noise)[2].first is None


def test_a_fit_that_is_stopped_weighs_the_steps_that_were_made():
    update, signals = RepeatedDescent(SGD()), falling(0.7)
    _, heads, state = replayed(update, signals)
    stopped = replace(state, n_done=6)  # two steps into the second descent
    np.testing.assert_allclose(
        update.result(heads[5], stopped), 4 / 6 * 0.75 * -STEP * sum(signals[:4]) + 2 / 6 * heads[5]
    )


@pytest.mark.parametrize(("signals", "repeated"), [(falling(0.7), True), (TURNING, False)])
def test_the_share_of_the_noise_is_that_in_the_result(signals, repeated):
    update, noise = RepeatedDescent(SGD()), 0.05
    exact, _, state = replayed(update, signals)
    noisy = replayed(update, signals, noise)
    assert (state.first is not None) == (noisy[2].first is not None) == repeated
    assert state.n_first == noisy[2].n_first
    whole = len(signals) * (STEP * noise) ** 2 * (1 - 1 / 5)
    assert np.mean((noisy[0] - exact) ** 2) == pytest.approx(update.noise_share(state) * whole, rel=0.15)


def test_the_shrinkage_knows_how_little_noise_is_left():
    # Taken for that of one whole descent, the noise would hide the change, and the start would be kept.
    problem = make_problem(5, d=199, n_pub=200)
    info = replace(problem.info, start=lambda rows: rows.solution)
    update = PublicShrinkage(RepeatedDescent(SGD()), info)
    _, _, (inner, variance) = replayed(update, falling(0.7), noise=0.3)
    assert inner.first is not None
    _, left = update._trained(info.view.W, (inner, variance))
    assert left == pytest.approx(variance * update.inner.noise_share(inner))
    assert left < variance / 3


def updates_of(info, **options):
    """The classes of the nested updates of the default algorithm."""
    update, names = Auto().recipe(info, replace(OPTIONS, **options)).update, []
    while update is not None:
        names.append(type(update))
        update = getattr(update, "inner", None)
    return names


def test_the_default_repeats_unless_length_or_start_are_given():
    info = make_problem().info
    info = replace(info, view=info.view.data.view(info.view.data.solution))
    assert RepeatedDescent in updates_of(info)
    assert RepeatedDescent in updates_of(replace(info, view=info.view.data.view(0 * info.view.W)))
    assert RepeatedDescent in updates_of(make_problem(n_pub=0).info)
    assert RepeatedDescent in updates_of(info, l2=0.0)
    assert RepeatedDescent not in updates_of(info, l2=0.1)
    assert RepeatedDescent not in updates_of(info, learning_rate=2.0)
    assert RepeatedDescent not in updates_of(replace(info, view=info.view.data.view(2 * info.view.W)))
    alone = make_problem(n_pub=0).info
    assert RepeatedDescent not in updates_of(replace(alone, view=alone.view.data.view(1 + alone.view.W)))
    assert RepeatedDescent not in updates_of(make_regression_problem().info)


@pytest.mark.parametrize("n_pub", [0, 200])
def test_gaussian_classes_are_told_apart_better(n_pub, monkeypatch):
    rng = np.random.default_rng(0)
    centres = 3.5 * rng.normal(size=(20, 128)) / np.sqrt(128)
    y = np.arange(16_000) % 20
    X = (centres[y] + rng.normal(size=(len(y), 128))).astype(np.float32)
    private, test = slice(n_pub, 8000), slice(8000, None)
    public = (X[:n_pub], y[:n_pub]) if n_pub else ()

    def fitted():
        head = MixedDPLogisticRegression(epsilon=2, classes=range(20), random_state=0)
        return head.fit(X[private], y[private], *public)

    now = fitted()
    monkeypatch.setattr(skmixdp.algorithms.auto, "_may_repeat", lambda info, options: False)
    before = fitted()
    assert now.privacy_ == before.privacy_
    assert now.n_iter_ == before.n_iter_
    assert now.score(X[test], y[test]) > before.score(X[test], y[test]) + 0.006
