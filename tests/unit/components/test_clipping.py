"""Factors and stated sensitivities of the clipping rules, number by number."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from skmixdp.components import AutomaticClip, L2Clip
from skmixdp.components.clipping import LipschitzClip, PublicQuantileClip, clip_rows, coordinate_lengths
from skmixdp.components.protocols import Clip
from tests.conftest import make_problem
from tests.private_names import Block, L2LinfClip, deviation_norms
from tests.rounding import assert_relative

EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
NORMS = np.array([0.0, 0.25, 0.5, 2.0, 1e300, math.inf, math.nan])


def unasked():
    raise AssertionError("no entries are needed")


def test_a_gradient_is_scaled_down_to_the_threshold_and_never_up():
    factors = L2Clip(0.5).weights(NORMS, unasked)
    assert_relative(factors, [1, 1, 1, 0.25, 5e-301, 0, 0], 1e-15)


def test_automatic_clipping_divides_by_the_norm_plus_gamma():
    factors = AutomaticClip(0.5).weights(NORMS, unasked)
    assert_relative(factors, [2, 4 / 3, 1, 0.4, 1e-300, 0, 0], 1e-15)


@pytest.mark.parametrize("dtype", EPS)
def test_the_rounding_of_a_factor_and_its_product_is_in_the_sensitivity(dtype):
    for clip, exact in ((L2Clip(3.0), 3.0), (AutomaticClip(0.5), 1.0), (LipschitzClip(3.0), None)):
        if exact is None:
            view = make_problem(4).info.view
            clip, exact = clip.at(view), 3 * math.sqrt(2)
        stated = clip.sensitivity(np.dtype(dtype)) / exact - 1
        assert stated == pytest.approx(4 * EPS[dtype] + 2.0**-33, rel=1e-5)


@pytest.mark.parametrize("dtype", EPS)
def test_a_clip_of_entries_states_four_more_roundings(dtype):
    clip = L2LinfClip(L2Clip(3.0), 9).at(make_problem().info.view)
    norm = L2Clip(3.0).sensitivity(np.dtype(dtype)) * (1 + 4 * EPS[dtype])
    assert clip.sensitivity(np.dtype(dtype)) == norm


def test_a_clip_of_entries_takes_the_smaller_factor():
    clip = L2LinfClip(L2Clip(2.0), 4).at(make_problem().info.view)  # entries up to 1
    norms = np.array([1.0, 4.0, 4.0, 0.0, math.inf, 4.0, 4.0])
    entries = np.array([0.5, 2.0, 4.0, 0.0, math.inf, math.inf, 1e-320])
    with np.errstate(over="ignore"):
        found = clip.weights(norms, lambda: entries)
    assert_relative(found, [1, 0.5, 0.25, 1, 0, 0, 0.5], 1e-9)
    rounded = clip.weights(np.array([2.0]), lambda: np.array([2.0]))
    assert rounded == L2Clip(2.0).sensitivity(np.dtype("float64")) / 2 / 2


def test_a_threshold_follows_the_public_rows_down_to_its_floor():
    view, usual = make_problem().info.view, PublicQuantileClip(0.5, 0.0).measure
    for measure, norms in ((usual, view.gradient_norms), (deviation_norms, deviation_norms(view))):
        lengths = np.sort(norms)
        assert PublicQuantileClip(1.0, 0.0, measure).at(view) == L2Clip(lengths[-1])
        assert PublicQuantileClip(0.0, 0.0, measure).at(view) == L2Clip(lengths[0])
        assert PublicQuantileClip(0.5, 1e3, measure).at(view) == L2Clip(1e3)
    assert PublicQuantileClip(0.5, 0.25).at(make_problem(n_pub=0).info.view) == L2Clip(0.25)


def test_rules_cannot_be_changed_once_a_step_is_fixed():
    view = make_problem().info.view
    rules = [
        (L2Clip(1.0), "threshold"),
        (AutomaticClip(1.0), "gamma"),
        (PublicQuantileClip(0.5, 0.1), "floor"),
        (LipschitzClip(1.0), "row_norm_bound"),
        (L2LinfClip(L2Clip(1.0), 2).at(view), "split"),
    ]
    for clip, name in rules:
        with pytest.raises(FrozenInstanceError):
            setattr(clip, name, 2.0)
    for clip, _ in rules[:2]:
        assert clip.at(view) is clip


def test_which_clips_weigh_tensors():
    view = make_problem().info.view
    assert L2Clip.takes_tensors is AutomaticClip.takes_tensors is True
    assert L2LinfClip(L2Clip(1.0), 2).at(view).takes_tensors is True

    class Plain(Clip):
        def at(self, view):
            return self

    assert L2LinfClip(Plain(), 2).at(view).takes_tensors is False


def test_lengths_in_single_precision_are_upper_bounds():
    norms = 10.0 ** np.random.default_rng(0).uniform(-30, 30, 5000)
    assert np.all(Block(None, np.zeros(len(norms), int), norms).single_norms.astype(np.float64) >= norms)


@pytest.mark.parametrize("threshold", [1e-10, 1e-11])
def test_residuals_that_become_subnormal_lengthen_no_gradient(threshold):
    """The rounding of a subnormal number is no fixed fraction of it, and a long row multiplies it."""
    R = (1e-3 * np.random.default_rng(0).normal(size=(500, 3))).astype(np.float32)
    norms = np.full(len(R), 1e30)
    clip_rows(R, Block(None, np.zeros(len(R), int), norms), L2Clip(threshold))
    lengths = np.linalg.norm(R.astype(np.float64), axis=1) * norms
    assert lengths.max() <= L2Clip(threshold).sensitivity(np.dtype("float32"))


@pytest.mark.parametrize("dtype", EPS)
def test_lengths_of_coordinates_are_upper_bounds(dtype):
    """Products with directions are rounded, by a part of the whole row's length."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(400, 3)))[0].astype(dtype)
    X = rng.normal(size=(300, 400))
    X -= X @ directions @ directions.T * (1 - 1e-6)  # hardly anything of a row is left
    X = X.astype(dtype)
    norms = np.linalg.norm(X.astype(np.longdouble), axis=1)
    block = Block(X, np.zeros(len(X), int), np.asarray(norms, float))
    C = np.ones((len(X), 1), dtype)
    (found,) = coordinate_lengths(C, None, X @ directions, block, width=400, gain=1.0)
    exact = np.linalg.norm(X.astype(np.longdouble) @ directions.astype(np.longdouble), axis=1)
    assert np.all(found >= exact * (1 - 1e-12))
