"""Sources of the noise and of all other randomness of a fit.

AES-128 in counter mode (the ``randomgen`` package) drives NumPy's samplers. An adversary who sees part of the
stream cannot predict the rest. It is as fast as NumPy's generator.
"""

import os
import secrets
from typing import Any, Literal, Never

import numpy as np
from numpy.typing import NDArray

from .._utils.process import warn
from .._utils.validation import SEED, check, how_to_install
from .accounting.budgets import LARGE_EPSILON
from .accounting.events import Noise
from .accounting.gaussian import FloatArray

#: Smallest delta that floating-point noise can guarantee. Its draws end at 12.3 standard deviations, beyond
#: which a normal distribution has a mass of 1e-34. For a billion numbers at an epsilon up to 10, that adds
#: less than this to delta.
_LEAST_DELTA = 1e-20


class NotPrivateWarning(UserWarning):
    """A seed replaces secret noise, so the result is not private.

    If this is intended, as in tests and demonstrations, silence the warning with
    ``warnings.simplefilter("ignore", NotPrivateWarning)``.
    """


class NoiseSource:
    """Gaussian and uniform random draws for one fit.

    Parameters
    ----------
    seed : int or None, default=None
        None takes a fresh 128-bit key from the operating system. A seed makes the draws reproducible, and a
        run that anyone can reproduce protects nothing. ``kind`` is then ``"seeded"``, and the report says
        that the result is not private.

    Notes
    -----
    The samples are floating-point numbers. Attacks on their low-order bits (Mironov 2012) are outside the
    guarantee, and the report says so. :class:`DiscreteNoise` resists them. No draw is beyond 12.3 standard
    deviations.

    *Guarantee*: no two sources draw from the same stream, unless they have the same seed. A source cannot be
    copied or pickled, since noise that is used twice cancels. After a fork, the child draws a new key.
    The representation does not show the key.
    """

    #: Whether the noise needs sums that are exact multiples of a grid.
    needs_grid = False

    def __init__(self, seed: int | None = None) -> None:
        self.kind: Literal["cryptographic", "seeded", "discrete"]
        self.kind = "cryptographic" if seed is None else "seeded"
        self._generator = _generator_of(seed)
        self._process = os.getpid()
        self._seed = seed
        self._n_streams = 0

    def normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent standard normal draws of a shape, in float64."""
        return self._current_generator().standard_normal(shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Independent draws from [0, 1) of a shape, in float64."""
        return self._current_generator().random(shape)

    def coins(self, n_coins: int, chance: float) -> NDArray[np.bool_]:
        """Independent flags (n_coins,), each True with a probability, from a new stream of their own."""
        self._n_streams += 1
        seed = self._seed
        if seed is not None:
            child = np.random.SeedSequence(seed, spawn_key=(self._n_streams,))
            seed = int(child.generate_state(1, np.uint64)[0])
        return _generator_of(seed).random(n_coins) < chance

    def _current_generator(self) -> np.random.Generator:
        """The generator; a forked process gets a new key, so that no two processes add the same noise."""
        if self._process != os.getpid() and self.kind != "seeded":
            self._generator = _generator_of(None)
            self._process = os.getpid()
        return self._generator

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kind={self.kind!r})"

    # copy and deepcopy use this method too
    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError(
            "a source of noise cannot be copied or pickled, since two copies would add the same noise; make "
            "a new NoiseSource for each fit."
        )

    def add_noise(self, array: FloatArray, scale: float, grid: float | None) -> FloatArray:
        """The float64 array plus Gaussian noise of standard deviation ``scale``.

        All entries are multiples of ``grid``, which only discrete noise needs.
        """
        return array + scale * self.normal(array.shape)


class DiscreteNoise(NoiseSource):
    """Discrete Gaussian noise on the grid of the sums, sampled exactly by OpenDP.

    No low-order bits are left to attack. The noise is ``rho``-zCDP with ``rho = 1 / (2 sigma**2)`` per unit
    of sensitivity (Canonne, Kamath and Steinke 2020), and takes some ten microseconds per number.
    """

    needs_grid = True

    def __init__(self) -> None:
        super().__init__()
        self.kind = "discrete"
        try:
            import opendp.prelude as dp
        except ImportError as error:
            raise ImportError(
                f"noise='discrete' needs the opendp package; {how_to_install('discrete')}."
            ) from error
        dp.enable_features("contrib")
        self._dp = dp

    def add_noise(self, array: FloatArray, scale: float, grid: float | None) -> FloatArray:
        """The array plus discrete Gaussian noise of parameter ``scale``; refused off a known grid."""
        if grid is None:
            raise RuntimeError("discrete noise needs sums on a known grid.")
        units = array / grid
        whole = units.astype(np.int64)
        if not np.array_equal(whole, units):
            raise RuntimeError("a released array is not made of whole multiples of its grid.")
        space = self._dp.vector_domain(self._dp.atom_domain(T="i64")), self._dp.l2_distance(T="f64")
        sample = self._dp.m.make_gaussian(*space, scale / grid)
        noisy = np.array(sample(whole.ravel().tolist()), dtype=np.float64)
        return noisy.reshape(array.shape) * grid


def _generator_of(seed: int | None) -> np.random.Generator:
    """NumPy's samplers on the key stream of AES-128 in counter mode; with a new key if there is no seed."""
    from randomgen import AESCounter  # takes a fifth of the time of importing the whole library

    if seed is None:
        key = secrets.randbits(128)
    else:  # similar seeds give unrelated streams
        high, low = np.random.SeedSequence(seed).generate_state(2, np.uint64).tolist()
        key = high << 64 | low
    return np.random.Generator(AESCounter(key=key))


def seed_of(random_state: Any) -> int | None:
    """The seed that ``random_state`` stands for; None for secure noise."""
    check("random_state", random_state, SEED)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return None if random_state is None else int(random_state)


def check_noise(noise: Noise, random_state: object) -> None:
    """Refuse an invalid ``random_state``, and any seed for discrete noise."""
    if noise == "discrete" and random_state is not None:
        raise ValueError(
            f"random_state={random_state!r} cannot seed noise={noise!r}; leave it at None, "
            "or use noise='float' for a reproducible run that is NOT private."
        )
    check("random_state", random_state, SEED)


def noise_caveats(noise: NoiseSource, epsilon: float, delta: float, n_private: int) -> tuple[str, ...]:
    """Warnings for the report: about the noise, and about a large epsilon or delta."""
    caveats = []
    if noise.kind == "seeded":
        caveats.append("random_state is set: anyone who knows it can remove the noise")
    if noise.kind != "discrete":
        caveats.append(
            "the noise is drawn as floating-point numbers; attacks on their low-order bits are not covered"
        )
    if epsilon > LARGE_EPSILON:
        caveats.append(f"epsilon is above {LARGE_EPSILON:g} and guarantees next to nothing")
    if delta >= 1 / n_private:
        caveats.append("delta is not below 1/n")
    if delta < _LEAST_DELTA and noise.kind != "discrete":
        caveats.append(
            f"delta is below {_LEAST_DELTA:g}, and the tails of floating-point noise may be too short for it"
        )
    return tuple(caveats)


def warn_of_seed(*random_states: object, name: str = "random_state", set_by: str | None = None) -> None:
    """Warn, before anything is drawn, of seeds that were set by the user or by the ensemble ``set_by``."""
    if all(random_state is None for random_state in random_states):
        return
    remedy = (
        "do not set it for results that will be published"
        if set_by is None
        else f"{set_by} sets it in each member, so put the member into "
        "skmixdp.model_selection.WithPublicRows, which keeps it private"
    )
    warn(
        f"{name} is set, so whoever knows it can remove the noise and the result is NOT private; {remedy}.",
        NotPrivateWarning,
    )
