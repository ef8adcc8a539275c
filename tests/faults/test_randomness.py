"""Randomness: the generator is AES-128 in counter mode, no stream is used twice, and no key is shown."""

import copy
import multiprocessing
import os
import pickle
import threading
import traceback

import cloudpickle
import joblib
import numpy as np
import pytest
from randomgen import AESCounter
from sklearn.base import clone

from skmixdp import MixedDPLogisticRegression, fit_many
from skmixdp.privacy import NoiseSource
from skmixdp.privacy import noise as noise_module
from skmixdp.privacy.noise import DiscreteNoise
from tests.conftest import make_problem
from tests.secrets import marks_of

# NIST SP 800-38A, F.5.1 "CTR-AES128.Encrypt": the key, and counter block and output block of each block.
SP_800_38A_KEY = "2b7e151628aed2a6abf7158809cf4f3c"
SP_800_38A = [
    ("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "ec8cdf7398607cb0f2d21675ea9ea1e4"),
    ("f0f1f2f3f4f5f6f7f8f9fafbfcfdff00", "362b7c3c6773516318a077d7fc5073ae"),
    ("f0f1f2f3f4f5f6f7f8f9fafbfcfdff01", "6a2cc3787889374fbeb4c81b17ba6c44"),
    ("f0f1f2f3f4f5f6f7f8f9fafbfcfdff02", "e89c399ff0f198c6d40a31db156cabfe"),
]
# FIPS 197, appendix C.1.
FIPS_197 = (
    "000102030405060708090a0b0c0d0e0f",
    "00112233445566778899aabbccddeeff",
    "69c4e0d86a7b0430d8cdb78070b4c55a",
)


def key_stream(key, counter, n_blocks):
    """Blocks of the generator's stream, from a key and a first counter block, all in hexadecimal."""
    number = {
        name: int.from_bytes(bytes.fromhex(text), "little") for name, text in (("k", key), ("c", counter))
    }
    stream = AESCounter(key=number["k"], counter=number["c"]).random_raw(2 * n_blocks)
    return [block.tobytes().hex() for block in stream.astype("<u8").reshape(n_blocks, 2)]


@pytest.mark.parametrize(("counter", "output"), SP_800_38A)
def test_the_key_stream_is_that_of_the_published_vectors(counter, output):
    assert key_stream(SP_800_38A_KEY, counter, 1) == [output]


def test_a_block_is_encrypted_as_published():
    key, block, encrypted = FIPS_197
    assert key_stream(key, block, 1) == [encrypted]


def test_the_counter_goes_up_by_one_for_each_block():
    """The generator counts in little-endian order, so its next block is that of the next number."""
    first = int.from_bytes(bytes.fromhex(SP_800_38A[0][0]), "little")
    blocks = key_stream(SP_800_38A_KEY, SP_800_38A[0][0], 600)
    for i in (1, 2, 3, 4, 7, 8, 255, 256, 599):
        counter = (first + i).to_bytes(16, "little").hex()
        assert key_stream(SP_800_38A_KEY, counter, 1) == [blocks[i]]
    assert len(set(blocks)) == len(blocks)


def test_noise_is_drawn_from_that_stream(monkeypatch):
    key = int.from_bytes(bytes.fromhex(SP_800_38A_KEY), "little")
    monkeypatch.setattr("skmixdp.privacy.noise.secrets.randbits", lambda bits: key)
    same = np.random.Generator(AESCounter(key=key))
    np.testing.assert_array_equal(NoiseSource().uniform((9,)), same.random(9))
    # Uniform numbers take the upper 53 bits of each word of the key stream.
    words = AESCounter(key=key).random_raw(9)
    np.testing.assert_array_equal(NoiseSource().uniform((9,)), (words >> 11) * 2.0**-53)


# -- distinct streams ----------------------------------------------------------------------

N_DRAWS = 4


def draws(source=None):
    return tuple((source or NoiseSource()).normal((N_DRAWS,)).tolist())


def test_no_two_of_many_sources_draw_the_same():
    found = [draws() for _ in range(2000)]
    assert len({number for drawn in found for number in drawn}) == 2000 * N_DRAWS


def in_a_fork(work):
    """What a forked copy of this process computes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        found = pickle.loads(file.read())
    assert os.waitpid(child, 0)[1] == 0
    return found


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
@pytest.mark.parametrize("make", [NoiseSource, DiscreteNoise])
def test_a_source_that_is_forked_draws_from_a_key_of_its_own(make):
    source = make()
    before = draws(source)
    children = [in_a_fork(lambda: (draws(source), draws(source))) for _ in range(3)]
    after = draws(source), draws(source)
    assert len({before, *after, *(drawn for child in children for drawn in child)}) == 9


@needs_fork
def test_a_seeded_source_stays_reproducible_after_a_fork():
    source = NoiseSource(7)
    assert in_a_fork(lambda: draws(source)) == draws(NoiseSource(7))


def test_threads_that_share_a_source_draw_different_numbers():
    source, found = NoiseSource(), []
    threads = [threading.Thread(target=lambda: found.append(source.normal((5000,)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(found))) == 20_000


@pytest.fixture(scope="module")
def rows():
    problem = make_problem(n_rows=80)
    return problem.X[:, :-1], problem.y, problem.X[:24, :-1], problem.y[:24]


def coefficients(rows, algorithm="noisy-gd"):
    X, y, X_pub, y_pub = rows
    head = MixedDPLogisticRegression(algorithm, delta=1e-3, n_steps=2)
    return head.fit(X, y, X_pub=X_pub, y_pub=y_pub).coef_


def distinct(heads):
    """Whether no two heads share a coefficient, as heads with the same noise would."""
    return len(np.unique(np.stack(heads))) == np.stack(heads).size


def test_fits_in_one_process_share_no_noise(rows):
    X, y, X_pub, y_pub = rows
    heads = [coefficients(rows) for _ in range(3)]
    models = [MixedDPLogisticRegression("noisy-gd", delta=1e-3, n_steps=2) for _ in range(3)]
    heads += [model.coef_ for model in fit_many(models, X, y, X_pub=X_pub, y_pub=y_pub)]
    heads += [clone(models[0]).fit(X, y, X_pub=X_pub, y_pub=y_pub).coef_]
    heads += [copy.deepcopy(models[0]).fit(X, y, X_pub=X_pub, y_pub=y_pub).coef_]
    heads += [pickle.loads(pickle.dumps(models[0])).fit(X, y, X_pub=X_pub, y_pub=y_pub).coef_]
    assert distinct(heads)


@needs_fork
def test_forked_fits_share_no_noise(rows):
    assert distinct([coefficients(rows), *(in_a_fork(lambda: coefficients(rows)) for _ in range(3))])


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_fits_of_joblib_share_no_noise(rows, backend):
    with joblib.parallel_config(backend, n_jobs=2):
        heads = joblib.Parallel()(joblib.delayed(coefficients)(rows) for _ in range(6))
    assert distinct(heads)


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_fits_of_multiprocessing_share_no_noise(rows, method):
    # NumPy's global generator is copied by a fork; no noise may come from it.
    np.random.seed(0)  # noqa: NPY002
    with multiprocessing.get_context(method).Pool(2) as pool:
        heads = pool.map(coefficients, [rows] * 4, chunksize=1)
    assert distinct(heads)


def test_global_seeds_decide_nothing(rows):
    import random

    heads = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        heads.append(coefficients(rows))
    assert distinct(heads)


# -- no copies, and no keys in what is shown or kept ---------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps], ids=lambda f: f"{f.__module__}"
)
@pytest.mark.parametrize(
    "make", [NoiseSource, lambda: NoiseSource(3), DiscreteNoise], ids=["fresh", "seeded", "discrete"]
)
def test_a_source_cannot_be_copied(copied, make):
    with pytest.raises(TypeError, match="a source of noise cannot be copied or pickled"):
        copied(make())


KEY = 0x6D5F3A1C_9E8B7D24_51C0FFEE_1DEA5EED


@pytest.fixture
def key(monkeypatch):
    """Every generator gets this key, so that it can be looked for; says how many did."""
    given = []
    monkeypatch.setattr(noise_module.secrets, "randbits", lambda bits: given.append(bits) or KEY)
    return given


@pytest.mark.filterwarnings("ignore")
def test_no_key_is_in_a_traceback_even_with_the_variables_of_its_frames(rows, key, monkeypatch):
    """As debuggers print tracebacks: each frame with the representation of its variables."""

    def crash(self, array, scale, grid):
        raise MemoryError

    monkeypatch.setattr(NoiseSource, "add_noise", crash)
    with pytest.raises(MemoryError) as caught:
        coefficients(rows, "adamix")
    stack = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    text = "".join(stack.format())
    assert key and "NoiseSource(kind='cryptographic')" in text
    assert not any(mark in text.encode() for mark in marks_of(KEY))
