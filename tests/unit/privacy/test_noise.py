import sys
import warnings
from itertools import chain, cycle

import numpy as np
import pytest
from randomgen import AESCounter
from scipy.stats import norm

from skmixdp.exceptions import NotPrivateWarning
from skmixdp.privacy import NoiseSource
from skmixdp.privacy.accounting.budgets import Budget
from skmixdp.privacy.noise import DiscreteNoise, check_noise, noise_caveats, seed_of, warn_of_seed
from tests.private_names import Transaction


def test_fresh_sources_differ_and_are_cryptographic():
    one, other = NoiseSource(), NoiseSource()
    assert one.kind == "cryptographic"
    assert type(one._generator.bit_generator).__name__ == "AESCounter"
    assert not np.any(one.normal((100,)) == other.normal((100,)))


def test_keys_come_from_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr("skmixdp.privacy.noise.secrets.randbits", lambda bits: asked.append(bits) or 7)
    np.testing.assert_array_equal(NoiseSource().normal((5,)), NoiseSource().normal((5,)))
    assert asked == [128, 128]


def test_seeds_reproduce_and_say_so():
    one, other, third = NoiseSource(1), NoiseSource(1), NoiseSource(2)
    assert one.kind == "seeded"
    draws = one.normal((50,))
    np.testing.assert_array_equal(draws, other.normal((50,)))
    assert not np.any(draws == third.normal((50,)))


def test_another_process_gets_a_key_of_its_own_once(monkeypatch):
    source, seeded, asked = NoiseSource(), NoiseSource(1), []
    monkeypatch.setattr("skmixdp.privacy.noise.os.getpid", lambda: -1)  # as after a fork
    monkeypatch.setattr("skmixdp.privacy.noise.secrets.randbits", lambda bits: asked.append(bits) or 7)
    draws = np.concatenate([source.normal((3,)), source.normal((2,))])
    assert asked == [128]
    np.testing.assert_array_equal(draws, NoiseSource().normal((5,)))
    np.testing.assert_array_equal(seeded.normal((5,)), NoiseSource(1).normal((5,)))


def test_shapes_and_ranges():
    source = NoiseSource(0)
    assert source.normal((3, 4)).shape == (3, 4)
    draws = source.uniform((1000,))
    assert 0 <= draws.min() < draws.max() < 1
    array = np.ones((2, 3))
    np.testing.assert_array_equal(source.add_noise(array, 0.0, None), array)
    np.testing.assert_array_equal(array, 1)


@pytest.mark.parametrize("scale", [0.5, 1e300, np.inf])
@pytest.mark.parametrize("draw", [0.25, 1e300, -np.inf, np.nan])
def test_a_draw_is_added_whatever_comes_of_it(monkeypatch, scale, draw):
    """Where the sum overflows or is no number, handing out the array would be a release without noise."""
    source, array = NoiseSource(0), np.array([[3.0, -4.0], [1e308, 0.0]])
    monkeypatch.setattr(source, "normal", lambda shape: np.full(shape, draw))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(source.add_noise(array, scale, None), array + scale * draw)


def test_sums_to_which_no_discrete_noise_can_be_added_are_not_handed_out(monkeypatch):
    source = DiscreteNoise()

    def refuses(*arguments):
        raise OverflowError

    monkeypatch.setattr(source._dp.m, "make_gaussian", lambda *arguments: refuses)
    with pytest.raises(OverflowError):
        source.add_noise(np.array([2.0, 3.0]), 1.0, 0.5)
    monkeypatch.setattr(source._dp.m, "make_gaussian", refuses)
    with pytest.raises(OverflowError):
        source.add_noise(np.array([2.0, 3.0]), 1.0, 0.5)


def test_discrete_noise_stays_on_the_grid():
    grid = 2.0**-30
    array = np.arange(12.0).reshape(3, 4) * grid
    noisy = DiscreteNoise().add_noise(array, 0.25, grid)
    assert noisy.shape == (3, 4)
    assert not np.any(noisy == array)
    np.testing.assert_array_equal(np.round(noisy / grid), noisy / grid)


def test_discrete_noise_refuses_sums_off_the_grid():
    source = DiscreteNoise()
    with pytest.raises(RuntimeError, match="known grid"):
        source.add_noise(np.zeros(3), 1.0, None)
    with pytest.raises(RuntimeError, match="whole multiples"):
        source.add_noise(np.array([0.3]), 1.0, 0.25)


def test_discrete_noise_without_its_package_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"skmixdp\[discrete\]"):
        DiscreteNoise()


def test_a_seed_fills_both_halves_of_the_key():
    high, low = map(int, np.random.SeedSequence(5).generate_state(2, np.uint64))
    expected = np.random.Generator(AESCounter(key=high * 2**64 + low))
    np.testing.assert_array_equal(NoiseSource(5).normal((5,)), expected.standard_normal(5))
    assert high > 0 and low > 0


# -- the parameters noise and random_state -------------------------------------------------


def test_a_random_state_stands_for_a_seed():
    assert seed_of(None) is None
    assert seed_of(np.int64(3)) == 3
    state, same = np.random.RandomState(0), np.random.RandomState(0)
    check_noise("float", state)  # draws nothing from it
    first, second = seed_of(state), seed_of(state)
    assert first == seed_of(same) != second and type(first) is int
    with pytest.raises(ValueError, match=r"^random_state=-1 must be"):
        check_noise("float", -1)
    for bad in (-1, 1.0, "0", True, np.random.default_rng(0)):
        with pytest.raises(ValueError, match=r"^random_state=.* must be None for private noise, or"):
            seed_of(bad)


def test_discrete_noise_takes_no_seed_and_other_noise_is_seeded_only_by_one():
    check_noise("discrete", None)
    with pytest.raises(ValueError, match=r"^random_state=0 cannot seed noise='discrete'; leave it at None"):
        check_noise("discrete", 0)
    sources = [
        Transaction(Budget(1.0, 1e-5, None, None, "add_or_remove_one", noise), "fit", random_state=seed).noise
        for noise, seed in (("discrete", None), ("float", None), ("float", 3))
    ]
    assert [source.kind for source in sources] == ["discrete", "cryptographic", "seeded"]
    np.testing.assert_array_equal(sources[-1].normal((4,)), NoiseSource(3).normal((4,)))


def test_caveats_say_what_the_noise_does_not_cover():
    assert noise_caveats(DiscreteNoise(), 10.0, 1e-5, 100) == ()
    (low_bits,) = noise_caveats(NoiseSource(), 1.0, 1e-5, 100)
    assert "low-order bits" in low_bits
    caveats = noise_caveats(NoiseSource(1), 11.0, 0.01, 100)
    assert len(caveats) == 4 and low_bits in caveats and "delta is not below 1/n" in caveats
    assert "epsilon is above 10 and guarantees next to nothing" in caveats
    assert sum("anyone who knows it can remove the noise" in caveat for caveat in caveats) == 1


def test_a_seed_is_warned_of_by_its_name():
    with warnings.catch_warnings(action="error"):
        warn_of_seed(None, None)
    with pytest.warns(NotPrivateWarning, match="^--seed is set, so whoever knows it"):
        warn_of_seed(None, 0, name="--seed")


def test_float_noise_ends_at_twelve_standard_deviations_as_the_page_of_the_guarantee_says():
    """NumPy draws the tail from two numbers of 53 bits, and refuses the first if the second is too small."""
    randomgen = pytest.importorskip("randomgen")
    ones = 2**64 - 1

    def draw(first):
        """The draw in the tail for a first number, if the second is as large as it can be."""
        numbers = chain([ones - 255, first, ones], cycle([0, ones]))  # the lowest byte 0 chooses the tail
        generator = np.random.Generator(randomgen.UserBitGenerator(lambda _: next(numbers)))
        return abs(generator.standard_normal())

    low, high = 2**60, ones  # the largest first number that is accepted
    while high - low > 2**11:
        middle = (low + high) // 2
        low, high = (middle, high) if draw(middle) > draw(0) else (low, middle)
    assert 12.2 < draw(low) < 12.3
    assert 2 * norm.sf(draw(low)) < 2.4e-34


@pytest.mark.parametrize(("delta", "held"), [(1e-5, True), (1e-20, True), (0.99e-20, False), (1e-45, False)])
def test_a_delta_below_the_reach_of_float_noise_has_a_caveat(delta, held):
    text = "the tails of floating-point noise may be too short"
    found = noise_caveats(NoiseSource(), 1.0, delta, 1000)
    assert any(text in caveat for caveat in found) != held
    if not held:
        pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
        assert noise_caveats(DiscreteNoise(), 1.0, delta, 1000) == ()
