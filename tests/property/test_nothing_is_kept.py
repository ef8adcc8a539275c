"""No fitted object, report, pickle or file holds an exact sum of private rows, a private row, or a digest."""

import functools
import gc
import hashlib
import io
import pickle
import secrets
import stat
import weakref
from contextlib import suppress
from itertools import count

import cloudpickle
import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from randomgen import AESCounter
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import make_pipeline

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import DPZero
from skmixdp.estimators import fit_many, resumable
from skmixdp.inference import private_inference
from skmixdp.inspection import ensemble_report, model_card
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import NoiseSource, PrivacyLedger
from tests.noise import watch
from tests.private_names import LabelledRows_of_problem as LabelledRows
from tests.private_names import Table, planning, private_search
from tests.secrets import Heard, Needles, marks_of, on_disk, reachable

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N, D, K = 600, 5, 3
RNG = np.random.default_rng(0)
Y = RNG.integers(0, K, N)
X = 2 * RNG.normal(size=(K, D))[Y] + RNG.normal(size=(N, D))
Y_PUB = np.arange(30) % K
X_PUB = RNG.normal(size=(30, D)) + X[:K].mean(axis=0)
#: Rows whose numbers nothing else has.
PLANTED = np.array([3, 77, 500])
TERMS = {"epsilon": 5.0, "delta": 1e-4}


CLASSES = {**TERMS, "classes": range(K)}
PERSONS = np.arange(N) // 3


def ridge():
    return MixedDPRidge(target_scale=1.0, n_steps=8, **TERMS)


def classifier(*public, X=X, **parameters):
    return MixedDPLogisticRegression(**{**CLASSES, **parameters}).fit(X, Y, *public)


def counts(ledger):
    """A fit that counts classes, checks and compares, its scores on private rows and its record."""
    terms = {"class_weight": "balanced", "logit_adjustment": 0.5, "record_per_instance": "picklable"}
    head = classifier(X_PUB, Y_PUB, ledger=ledger, **terms)
    head.private_score(X, Y, noise_multiplier=20.0)
    head.private_confusion(X, Y, noise_multiplier=20.0)
    return head


def search(**options):
    head, grid = MixedDPLogisticRegression(classes=range(K), delta=1e-4), {"class_weight": [None, "balanced"]}
    return PrivateSearchCV(head, grid, epsilon=20.0, strategy="grid", **options)


def modules(ledger, kind="ZerothOrderDPModuleClassifier", algorithm="pazo-m"):
    torch = pytest.importorskip("torch", reason="needs skmixdp[features]")
    import skmixdp

    torch.manual_seed(0)
    terms = {**TERMS, "classes": range(K), "n_steps": 5, "learning_rate": 1e-3}
    head = getattr(skmixdp, kind)(torch.nn.Linear(D, K), algorithm, **terms)
    return head.fit(X.astype(np.float32), Y, X_PUB.astype(np.float32), Y_PUB)


def folds(ledger):
    heads = [MixedDPLogisticRegression(**CLASSES) for _ in range(2)]
    return fit_many(heads, X, Y, X_PUB, Y_PUB, rows=[np.arange(300), np.arange(300, 600)])


def voters(ledger):
    head = MixedDPLogisticRegression(**CLASSES)
    return VotingClassifier([("a", head), ("b", head)]).fit(X, Y)


PATHS = {
    "evaluation": lambda ledger: private_evaluation(classifier(X_PUB, Y_PUB), X, Y, **TERMS, ledger=ledger),
    # Sums of thirds may be 9 up to rounding, as an edge of a cell would be.
    "evaluation of a regression": lambda ledger: private_evaluation(
        ridge().fit(X, X[:, 0]), X, X[:, 0], **TERMS, target_bounds=(-8.9, 8.9), groups=PERSONS
    ),
    "scaler without bounds": lambda ledger: NoisyScaler(20.0, 1e-4, ledger=ledger).fit(X),
    "persons": lambda ledger: MixedDPLogisticRegression(**CLASSES).fit(X, Y, X_PUB, Y_PUB, groups=PERSONS),
    "counts": counts,
    "no public rows": lambda ledger: classifier(ledger=ledger),
    "geometry": lambda ledger: classifier(X_PUB, Y_PUB, rows=RowMapping(geometry=True)),
    "single precision": lambda ledger: classifier(X_PUB, Y_PUB, X=X.astype(np.float32)),
    "sparse": lambda ledger: classifier(X_PUB, Y_PUB, X=sp.csr_array(X)),
    "discrete noise": lambda ledger: classifier(
        X_PUB, Y_PUB, algorithm="noisy-gd", n_steps=2, noise="discrete"
    ),
    "batches": lambda ledger: classifier(algorithm="noisy-gd", batch_size=50, n_steps=5),
    "gep": lambda ledger: classifier(X_PUB, Y_PUB, algorithm="gep", n_steps=8),
    "dope": lambda ledger: classifier(X_PUB, Y_PUB, algorithm="dope-sgd", n_steps=8),
    "regression": lambda ledger: ridge().fit(X, X[:, :2]),
    "losses": lambda ledger: MixedDPLogisticRegression(DPZero(), n_steps=50, **CLASSES).fit(X, Y),
    "scaler": lambda ledger: NoisyScaler(1.0, 1e-4, bounds=(-20.0, 20.0), ledger=ledger).fit(X),
    "search": lambda ledger: search(scoring="private", ledger=ledger).fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB),
    "modules": modules,
    "gradients": lambda ledger: modules(ledger, "FirstOrderDPModuleClassifier", "adamix"),
    "folds": folds,
    "ensemble": voters,
}


def written(outcome, tmp_path):
    """Everything that can be written of an outcome, by name, as bytes."""
    files = {f"pickle {protocol}": pickle.dumps(outcome, protocol) for protocol in (2, 5)}
    memory = io.BytesIO()
    joblib.dump(outcome, memory)
    files |= {"joblib": memory.getvalue(), "cloudpickle": cloudpickle.dumps(outcome)}
    single = outcome if isinstance(outcome, list) else [outcome]
    for head in single:
        texts = [repr(head), str(vars(head))]
        if hasattr(head, "get_params"):
            texts += [head._repr_html_(), str(head.get_params())]
        if hasattr(head, "privacy_"):
            report = head.privacy_
            texts += [repr(report), str(report), report.to_json(), report._repr_html_()]
            texts.append(str(report.to_dict()))
        if hasattr(head, "privacy"):
            texts += [str(head), str(head.privacy), head.privacy.to_json()]
        elif not isinstance(head, NoisyScaler):
            card = model_card(head)
            texts += [str(card), card.to_markdown()]
        if isinstance(head, VotingClassifier):
            texts += [str(ensemble_report(head)), ensemble_report(head).to_json()]
        files[f"texts {len(files)}"] = "\n".join(texts).encode()
        if hasattr(head, "save"):
            head.save(tmp_path / "model.safetensors")
            files["safetensors"] = (tmp_path / "model.safetensors").read_bytes()
        if hasattr(head, "to_sklearn") and not hasattr(head, "module_"):
            files["scikit-learn"] = pickle.dumps(head.to_sklearn())
        if hasattr(head, "to_onnx") and not hasattr(head, "module_"):
            pytest.importorskip("onnx", reason="needs skmixdp[onnx]")
            for dtype in ("float64", "float32"):
                files[f"onnx {dtype}"] = head.to_onnx(dtype=dtype).SerializeToString()
    return files | on_disk(tmp_path)


def digests():
    """What usual hashes make of the rows, of the labels and of planted rows, as bytes and as text."""
    found = []
    for array in (X, X.astype(np.float32), Y, *X[PLANTED]):
        for values in (array, (array,), {"X": array}):
            found.append(joblib.hash(values))
            found.append(joblib.hash(values, hash_name="sha1"))
        for name in ("md5", "sha1", "sha256", "blake2b", "sha512"):
            written = (array.tobytes(), np.asfortranarray(array).tobytes("F"), pickle.dumps(array))
            found += [hashlib.new(name, data).hexdigest() for data in written]
    return [part for text in found for part in (text[:16].encode(), bytes.fromhex(text[:16]))]


DIGESTS = digests()


def digests_in(data):
    return [digest for digest in DIGESTS if digest in data]


@pytest.mark.parametrize("name", PATHS)
def test_no_exact_sum_no_row_and_no_key_is_kept(monkeypatch, tmp_path, name):
    """Whoever has the key of a source of noise draws the noise again and subtracts it."""
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=99.0, delta=1e-3)
    keys, draw = [], secrets.randbits

    def randbits(bits):
        keys.append(draw(bits))
        return keys[-1]

    monkeypatch.setattr("skmixdp.privacy.noise.secrets.randbits", randbits)
    log = watch(monkeypatch)
    heard = Heard(lambda: PATHS[name](ledger), KeyboardInterrupt)
    outcome = heard.result
    needles = Needles([*(release.exact for release in log), *X[PLANTED]], N)
    assert keys and len(needles.numbers) >= 2 * D * len(PLANTED)
    assert needles.in_object(outcome) == []
    halves = np.array([half for key in keys for half in (key & (2**64 - 1), key >> 64)], np.uint64)
    for part in reachable(outcome):
        assert not isinstance(part, (NoiseSource, np.random.Generator, np.random.BitGenerator))
        assert not isinstance(part, int) or (part not in keys and part not in halves)
        assert not isinstance(part, str) or not digests_in(part.encode())
        if isinstance(part, np.ndarray) and part.dtype.kind in "iu":
            assert not np.isin(halves, part).any()
    marks = [mark for key in keys for mark in marks_of(key)]
    for file, data in {**written(outcome, tmp_path), "said": heard.everything.encode()}.items():
        assert not needles.in_bytes(data) and not digests_in(data), file
        assert not any(mark in data for mark in marks), file


def interrupt(monkeypatch, owner, name, number):
    """Interrupt the call of this number."""
    original, calls = getattr(owner, name), count(1)

    @functools.wraps(original)  # joblib looks at the signature
    def call(*args):
        if next(calls) == number:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(owner, name, call)


def test_the_plan_of_a_fit_leads_to_no_private_rows(monkeypatch):
    """Public facts, pieces of the algorithm and the start outlive the passes over private rows."""
    plans, make_plan = [], planning.make_plan
    monkeypatch.setattr(planning, "make_plan", lambda *args: plans.append(make_plan(*args)) or plans[-1])
    classifier(X_PUB, Y_PUB)
    classifier(X_PUB, Y_PUB, init="zeros", algorithm="adamix")
    assert len(plans) > 1
    for plan in plans:
        found = {type(part).__name__ for part in reachable(plan) if isinstance(part, (LabelledRows, Table))}
        assert not found


FORGOTTEN = {
    "fit": lambda rows, ledger: classifier(X=rows, ledger=ledger),
    "seeded": lambda rows, ledger: classifier(X=rows, random_state=0),
    "several": lambda rows, ledger: fit_many([MixedDPLogisticRegression(**CLASSES, random_state=0)], rows, Y),
    "refused": lambda rows, ledger: classifier(X_PUB, Y_PUB[:7], X=rows, random_state=0),
    "pipeline": lambda rows, ledger: make_pipeline(
        NoisyScaler(1.0, 1e-4, bounds=(-20.0, 20.0), ledger=ledger),
        MixedDPLogisticRegression(**CLASSES, ledger=ledger),
    ).fit(rows, Y),
    "inference": lambda rows, ledger: private_inference(rows, Y == 1, family="logistic", **TERMS),
}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_rows_that_the_caller_forgets_are_freed_before_it_ends(tmp_path, name):
    """A look at the callers for pipelines must not keep their variables."""
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=99.0, delta=1e-3)

    def with_parameters(work):
        rows = X.copy()
        freed = weakref.ref(rows)
        with suppress(ValueError):
            work(rows, ledger)
        del rows
        return freed() is None

    def without_parameters():
        rows = X.copy()
        freed = weakref.ref(rows)
        with suppress(ValueError):
            FORGOTTEN[name](rows, ledger)
        del rows
        return freed() is None

    gc.disable()
    try:
        assert with_parameters(FORGOTTEN[name]) and without_parameters()
    finally:
        gc.enable()


def test_an_interrupted_fit_leaves_released_numbers_alone(monkeypatch, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=99.0, delta=1e-3)
    log = watch(monkeypatch)
    interrupt(monkeypatch, NoiseSource, "normal", 4)
    # Without releases of columns, which noise decides here, and one of which may not be lost.
    head = MixedDPLogisticRegression(**CLASSES, ledger=ledger, scale=False)
    path = tmp_path / "fit"

    def run():
        with resumable(path):
            head.fit(X, Y, X_PUB, Y_PUB)

    with pytest.raises(KeyboardInterrupt):
        run()
    files = on_disk(tmp_path)
    assert str(path) in files
    needles = Needles([*(release.exact for release in log), *X[PLANTED]], N)
    for data in files.values():
        assert not needles.in_bytes(data) and not digests_in(data)
    run()
    assert not path.exists() and len(ledger.charges()) == 1
    needles = Needles([*(release.exact for release in log), *X[PLANTED]], N)
    for data in written(head, tmp_path).values():
        assert not needles.in_bytes(data) and not digests_in(data)


def test_an_interrupted_search_leaves_one_folder_that_only_its_owner_reads(monkeypatch, tmp_path):
    interrupted = search(memory=tmp_path / "memory")
    log = watch(monkeypatch)
    interrupt(monkeypatch, private_search, "run_trial", 2)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB)
    assert not digests_in(on_disk(tmp_path)["names"])
    (folder,) = (tmp_path / "memory").iterdir()
    for path in (folder, folder.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700 and list(path.iterdir())
    interrupted.fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB)
    assert not list(folder.iterdir())
    needles, data = Needles([*(release.exact for release in log), *X[PLANTED]], N), pickle.dumps(interrupted)
    assert needles.in_object(interrupted) == []
    assert not needles.in_bytes(data) and not digests_in(data)


@pytest.mark.parametrize("how", ["text", "bytes", "name"])
def test_a_digest_is_found(tmp_path, how):
    text = joblib.hash(X)
    content = {"text": text.encode(), "bytes": bytes.fromhex(text), "name": b""}[how]
    (tmp_path / (text if how == "name" else "file")).write_bytes(content)
    assert sum(len(digests_in(data)) for data in on_disk(tmp_path).values()) == 1


def test_the_search_for_a_key_finds_it():
    key = 0x6D5F3A1C_9E8B7D24_51C0FFEE_1DEA5EED
    generator = np.random.Generator(AESCounter(key=key))
    seed = generator.bit_generator.state["s"]["seed"].tolist()
    for data in (pickle.dumps(generator), str(seed).encode(), f"{key:#x}".encode()):
        assert any(mark in data for mark in marks_of(key))
        assert not any(mark in data for mark in marks_of(key ^ (1 << 64 | 1)))


SUM = np.array([[101.23456789012345, -7.654321098765432], [0.1234567890123456, 55.55443322110099]])


class Holder:
    """Holds something where one does not look."""

    def __init__(self, how, value):
        if how == "closure":
            self.call = lambda: value
        elif how == "object array":
            self.array = np.array([None, {"deep": [value]}], dtype=object)
        elif how == "view":
            self.view = np.concatenate([np.ravel(value), np.zeros(3)])[-3:]
        elif how == "report":
            object.__setattr__(self, "_hidden", {1: (value,)})
        elif how == "single":
            self.value = np.asarray(value, np.float32)
        elif how == "mean":
            self.value = np.asarray(value) / N
        elif how == "text":
            self.value = str(np.asarray(value).tolist())
        else:
            self.value = float(np.ravel(value)[1])


@pytest.mark.parametrize(
    "how", ["closure", "object array", "view", "report", "single", "mean", "text", "number"]
)
def test_what_is_hidden_in_an_object_is_found(how):
    needles = Needles([SUM], N)
    assert needles.in_object(Holder(how, SUM))
    assert needles.in_object(Holder(how, SUM + 1e-3)) == []


def test_a_hash_is_no_number():
    assert Needles([SUM], N).in_bytes(b"5f7521737458e8423ab") == []


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0, 1, 3, 6])
def test_numbers_in_bytes_are_found(dtype, order, offset):
    needles = Needles([SUM], N)
    for value in (SUM, SUM / N):
        data = b"x" * offset + np.asarray(value, dtype).tobytes(order) + b"the rest"
        assert needles.in_bytes(data)
    assert not needles.in_bytes(b"x" * offset + np.asarray(SUM * 1.001, dtype).tobytes(order))


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<i8", "<i4"])
def test_counts_are_found_as_a_whole(dtype):
    counted = np.array([57.0, 12.0, 531.0])
    needles = Needles([counted], N)
    assert needles.in_bytes(b"ab" + counted.astype(dtype).tobytes())
    assert needles.in_object({"a": counted.astype(dtype)})
    assert needles.in_object({"a": counted.tolist()})
    assert not needles.in_bytes(counted[::-1].astype(dtype).tobytes())


def test_numbers_of_files_are_found(tmp_path):
    """SQLite and pickles hold numbers with the high byte first, and JSON holds text."""
    needles = Needles([SUM], N)
    assert needles.in_bytes(pickle.dumps(float(SUM[0, 0]))) and needles.in_bytes(pickle.dumps(SUM))
    assert needles.in_bytes(f'{{"coef": {SUM[0, 1]!r}}}'.encode())
    assert not needles.in_bytes(b'{"coef": -7.6543}') and not needles.in_bytes(pickle.dumps(SUM + 1e-9))


def test_everything_of_an_object_is_reached():
    head = classifier()
    parts = list(reachable(head))
    assert any(part is head.coef_ for part in parts) and any(part is head.privacy_ for part in parts)
    assert any(isinstance(part, np.ndarray) and part is head._row_map.columns.center for part in parts)
