import sys

import numpy as np
import pytest

from skmixdp.privacy import DiscreteNoise, NoiseSource
from skmixdp.privacy.noise import _key_from


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
