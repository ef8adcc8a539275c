import sys

import numpy as np
import pytest

import skmixdp.privacy
from skmixdp.privacy import DiscreteNoise, NoiseSource
from skmixdp.privacy.noise import _key_from, check_noise, noise_caveats, noise_source, seed_of


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


def test_shapes_and_ranges():
    source = NoiseSource(0)
    assert source.normal((3, 4)).shape == (3, 4)
    draws = source.uniform((1000,))
    assert 0 <= draws.min() < draws.max() < 1
    array = np.ones((2, 3))
    np.testing.assert_array_equal(source.add_noise(array, 0.0, None), array)
    np.testing.assert_array_equal(array, 1)


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


def test_discrete_noise_without_its_package_names_the_mend(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"skmixdp\[discrete\]"):
        DiscreteNoise()


def test_a_seed_fills_both_halves_of_the_key():
    high, low = np.random.SeedSequence(5).generate_state(2, np.uint64)
    assert _key_from(5) == int(high) * 2**64 + int(low)
    assert int(high) > 0 and int(low) > 0


def test_what_a_random_state_stands_for():
    assert seed_of(None) is None and seed_of(np.int64(3)) == 3
    drawn = np.random.RandomState(0).randint(2**31 - 1)
    assert seed_of(np.random.RandomState(0)) == drawn
    assert noise_source("float", None).kind == "cryptographic"
    assert noise_source("float", 3).kind == "seeded"


def test_checks_refuse_a_seed_where_none_is_taken_and_draw_nothing():
    with pytest.raises(ValueError, match=r"^random_state=0 cannot seed noise='discrete'; leave it at None"):
        check_noise("discrete", 0)
    state = np.random.RandomState(0)
    check_noise("float", state)
    assert state.randint(100) == np.random.RandomState(0).randint(100)


def test_caveats_follow_the_kind_of_noise_and_delta():
    seeded, fresh = (noise_caveats(NoiseSource(seed), 1e-5, 1000) for seed in (0, None))
    assert len(seeded) == 2 and seeded[1:] == fresh
    assert noise_caveats(NoiseSource(), 1e-2, 1000) == (*fresh, "delta is not below 1/n")


def test_what_the_package_does_not_have_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(skmixdp.privacy, "nothing")  # noqa: B009 (a type checker knows that it is not there)
