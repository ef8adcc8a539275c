"""ModelMix: Figure 3, to the digits that can be read off it, and the quick path of a linear head."""

import math

import pytest

from benchmarks.reproduce import modelmix_fig3 as fig3
from benchmarks.reproduce import modelmix_head
from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.privacy import epsilon_of
from skmixdp.privacy.accounting.budgets import amplified_epsilon

#: Epsilons of the tight analysis, by split; one for each threshold.
TIGHT = {1: (54.8, 39.4, 29.7), 25: (16.6, 8.3, 4.9), 100: (14.6, 7.2, 4.3)}


def test_the_nine_values(quick, picture):
    found, printed = quick(fig3)
    assert len(found) == 9
    assert (found["off_by"].abs() < 0.05).all()
    for row in found.itertuples():
        tight = dict(zip((0.075, 0.15, 0.3), TIGHT[row.split], strict=True))
        assert row.tight == pytest.approx(tight[row.threshold], rel=0.01)
    assert picture("modelmix_fig3", 10_000)
    assert printed.count("\n") == 11


def test_the_printed_values_are_within_three_percent():
    found = fig3.table(quick=True)
    assert (found["off_by"].abs() < 0.03).all()
    assert found["off_by"].abs().max() > 0.025


def test_the_head_of_section_5_3_has_the_epsilon_printed():
    assert fig3.head_epsilon() == pytest.approx(fig3.HEAD_PRINTED, abs=0.005)


def test_epsilon_falls_with_the_threshold_as_theorem_4_2_says():
    found = fig3.slopes(splits=(1,), thresholds=(0.075, 0.15))
    assert found[1].iloc[0] == pytest.approx(-0.5, abs=0.1)


def test_without_the_batch_on_the_scale_there_is_no_amplification():
    """The factor b of the width: without it the mixing is far narrower than the noise."""
    for width, amplified in ((0.3 / fig3.CLIP, False), (fig3.width_of(0.3), True)):
        event = ModelMixEvent(fig3.SIGMA, fig3.N_STEPS, fig3.RATE, width=width)
        assert (amplified_epsilon(event, fig3.DELTA, fig3.RELATION) < math.inf) == amplified


def test_gaussian_noise_of_the_same_variance_costs_less():
    for threshold in fig3.THRESHOLDS:
        same = epsilon_of(
            fig3.total_multiplier(threshold), fig3.N_STEPS, delta=fig3.DELTA, sampling_rate=fig3.RATE
        )
        assert same < fig3.mixed_epsilon(threshold, 100, "tight")


def test_without_mixing_fractional_orders_give_198():
    assert fig3.renyi_epsilon_without_mixing() == pytest.approx(198, rel=0.01)


def test_all_methods_for_a_linear_head_are_compared(quick, tmp_path):
    cache = str(tmp_path / "features")
    found, printed = quick(modelmix_head, "--cache", cache, data="fashion_mnist", needs="kymatio")
    names = [method.name for method in modelmix_head.methods()]
    assert found["method"].tolist() == names
    assert all(f"| {name} |" in printed for name in names)


def test_the_noise_and_the_width_are_those_of_the_paper():
    base, less, mixed, *_ = modelmix_head.methods()
    assert mixed.epsilon == 0.6436 < less.epsilon < base.epsilon == 2
    assert mixed.algorithm.width == pytest.approx(27.8, abs=0.1)
