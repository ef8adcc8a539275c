"""Saved models come back as they were, and damaged or foreign files are refused."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import skmixdp
from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import BY_NAME, NoisyGD
from skmixdp.features import ZeroShotHead
from skmixdp.privacy import PrivacyLedger
from tests.catalog import ALGORITHMS, WEIGHTINGS
from tests.private_names import RowMap, TargetMap, coding, saving

from .conftest import fitted, methods_of, rows_of, there_and_back


def parts(path):
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def rewritten(path, change):
    """Write a file again after a change of its JSON and arrays, with the checksum that belongs to them."""
    arrays, texts = parts(path)
    content = json.loads(texts["model"])
    change(content, arrays)
    text = json.dumps(content)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    texts |= {"model": text, "sha256": saving._checksum(text, arrays)}
    save_file(arrays, path, texts)


@pytest.fixture
def path(digits, tmp_path):
    digits[0].save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_model_comes_back_bit_for_bit_with_everything_that_a_fit_sets(model, tmp_path):
    model, X = model
    loaded = there_and_back(model, tmp_path)
    assert type(loaded) is type(model)
    for name in methods_of(model):
        for rows in (X, X[:1], X[::2].astype(np.float32), sp.csr_matrix(X)):
            ours, theirs = getattr(model, name)(rows), getattr(loaded, name)(rows)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert loaded.privacy_ == model.privacy_
    assert str(loaded.privacy_) == str(model.privacy_)
    assert str(loaded.get_params()) == str(model.get_params())
    assert vars(loaded).keys() == vars(model).keys()
    for name in model._saved:
        ours, theirs = getattr(model, name, None), getattr(loaded, name, None)
        assert type(ours) is type(theirs)
        if isinstance(ours, TargetMap):
            ours, theirs = vars(ours), vars(theirs)
        if isinstance(ours, RowMap):
            assert ours.same_as(theirs)
        else:
            np.testing.assert_equal(theirs, ours)


def test_a_loaded_model_can_be_cloned_fitted_and_saved_again(path, digits, tmp_path):
    model, X = digits
    loaded = skmixdp.load(path)
    loaded.save(tmp_path / "again.safetensors")
    again, before = parts(tmp_path / "again.safetensors"), parts(path)
    assert again[1] == before[1]  # with the same checksum of the arrays
    again = fitted(clone(loaded))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_column_names_are_saved(named_columns, tmp_path):
    model, X = named_columns
    loaded = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.feature_names_in_.tolist() == [*"abcd"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[[*"dcba"]])


def test_a_model_remembers_its_ledger(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite")
    patients = ledger.add_dataset("patients", epsilon=4.0, delta=1e-5)
    model = fitted(MixedDPLogisticRegression("noisy-gd", epsilon=1.0, ledger=patients), "iris")
    fitted(there_and_back(model, tmp_path), "iris")
    assert patients.account.n_charges == 2
    (tmp_path / "ledger.sqlite").rename(tmp_path / "moved.sqlite")
    served = skmixdp.load(tmp_path / "model.safetensors")
    served.predict(rows_of("iris")[0])  # predicting needs no ledger
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fitted(served, "iris")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_file_is_replaced_as_a_whole(path, monkeypatch, digits):
    before = path.read_bytes()
    monkeypatch.setattr(saving.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        digits[0].save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.usefixtures("no_pickle")
def test_loading_unpickles_nothing(path, digits):
    model, X = digits
    np.testing.assert_array_equal(skmixdp.load(path).predict(X), model.predict(X))


# -- what is not saved ----------------------------------------------------------------------


class OwnAlgorithm(NoisyGD):
    """An algorithm of a user."""


class OwnHead(MixedDPLogisticRegression):
    """An estimator of a user."""


class OwnEncoder(BaseEstimator):
    """An encoder of a user."""

    def encode_texts(self, texts):
        return np.eye(3, 4)


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        MixedDPLogisticRegression().save(tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"algorithm": OwnAlgorithm()}, "algorithm is a OwnAlgorithm"),
        ({"random_state": np.random.RandomState(0)}, "random_state is a RandomState"),
        ({"init": ZeroShotHead(["a", "b", "c"], encoder=OwnEncoder())}, r"init.encoder is a OwnEncoder"),
    ],
)
def test_objects_of_other_classes_are_refused_and_the_remedy_works(parameters, words, tmp_path):
    if "init" in parameters:
        parameters["init"].class_names = {0: "a", 1: "b", 2: "c"}
    model = fitted(MixedDPLogisticRegression(**{"algorithm": "noisy-gd", **parameters}), "iris")
    with pytest.raises(TypeError, match=f"{words}, which a saved model cannot hold; .*set_params") as caught:
        model.save(tmp_path / "model.safetensors")
    assert "\n" not in str(caught.value)
    plain = {"algorithm": "noisy-gd", "random_state": None, "init": "public"}
    model.set_params(**{name: plain[name] for name in parameters})
    X = rows_of("iris")[0]
    np.testing.assert_array_equal(there_and_back(model, tmp_path).predict_proba(X), model.predict_proba(X))


def test_a_ledger_in_memory_is_refused(tmp_path):
    patients = PrivacyLedger(":memory:").add_dataset("patients", epsilon=4.0, delta=1e-5)
    model = fitted(MixedDPLogisticRegression("noisy-gd", ledger=patients), "iris")
    with pytest.raises(TypeError, match=r"ledger is in memory, .* set_params"):
        model.save(tmp_path / "model.safetensors")


def test_a_subclass_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"this is a OwnHead, which load would not know; .* joblib"):
        fitted(OwnHead("noisy-gd"), "iris").save(tmp_path / "model.safetensors")


def test_attributes_of_a_user_stay_out_of_the_file(digits, tmp_path):
    model = clone(digits[0])
    fitted(model)
    model.private_notes_ = np.arange(3)
    assert not hasattr(there_and_back(model, tmp_path), "private_notes_")


# -- what is not loaded ---------------------------------------------------------------------


def refusal(path, **given):
    with pytest.raises(ValueError, match=path.name) as caught:
        skmixdp.load(path, **given)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_files_of_another_kind_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(OSError, match="model"):
        skmixdp.load(path)
    for content in (b"", b"\x80\x04N.", b"\xff" * 64, b"{}" * 40):
        path.write_bytes(content)
        assert "not a saved model" in refusal(path)
    save_file({"weight": np.zeros(3)}, path)
    assert "something else" in refusal(path)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Bomb()))
    refusal(path)
    assert not (tmp_path / "exploded").exists()


def test_every_damaged_byte_is_noticed(path, digits):
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    header = int.from_bytes(content[:8], "little") + 8
    places = [*range(12), *rng.integers(0, header, 60), *rng.integers(header, len(content), 40)]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        refusal(path)
    for length in (7, 8, header // 2, header, len(content) - 1):
        path.write_bytes(content[:length])
        refusal(path)
    path.write_bytes(content)
    skmixdp.load(path)


def test_changed_numbers_and_reports_are_refused_by_the_checksum(path):
    arrays, texts = parts(path)
    (head,) = [name for name in arrays if name == "coef_"]
    save_file({**arrays, head: arrays[head] + 1}, path, texts)
    assert "checksum" in refusal(path)
    save_file(arrays, path, {**texts, "model": texts["model"].replace('"epsilon": 3', '"epsilon": 1')})
    assert "checksum" in refusal(path)
    save_file(arrays, path, texts)
    skmixdp.load(path)


def test_another_format_version_is_refused(path):
    arrays, texts = parts(path)
    save_file(arrays, path, {**texts, "format_version": "2"})
    assert "version '2'" in refusal(path)


def _set(*keys, to):
    def change(content, arrays):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = to

    return change


def _array(name, of):
    def change(content, arrays):
        arrays[name] = of(arrays[name])

    return change


FORGERIES = {
    "no such class": (_set("class", to="OrderedDict"), "unknown"),
    "a class that is no estimator": (_set("class", to="RowMap"), "unknown"),
    "a class of another library": (
        _set("parameters", "algorithm", to={"class": "Popen", "values": {"args": "true"}}),
        "'Popen' is unknown",
    ),
    "a class with a path": (
        _set("parameters", "algorithm", to={"class": "os.system", "values": {}}),
        "unknown",
    ),
    "a report that is none": (_set("attributes", "privacy_", to=None), "privacy_"),
    "a negative epsilon": (_set("attributes", "privacy_", "values", "epsilon", to=-1.0), "epsilon"),
    "a parameter of a newer version": (_set("parameters", "momentum", to=0.5), "momentum"),
    "a parameter outside its range": (_set("parameters", "l2", to=-1.0), "l2"),
    "an attribute of a newer version": (_set("attributes", "predict", to=1), "predict"),
    "a missing array": (_set("attributes", "coef_", to={"array": "other", "transposed": False}), "missing"),
    "an odd entry": (_set("attributes", "coef_", to={"lambda": "x"}), "lambda"),
    "a missing head": (lambda content, arrays: content["attributes"].pop("coef_"), "coef_"),
    "a missing row map": (lambda content, arrays: content["attributes"].pop("_row_map"), "_row_map"),
    "text as a number of features": (_set("attributes", "n_features_in_", to="64"), "n_features_in_"),
    "no JSON object": (_set("attributes", to=[1]), "missing"),
    "a deep nest": (_set("attributes", "n_iter_", to=json.loads("[" * 900 + "]" * 900)), "Recursion"),
    "a head of another width": (_array("coef_", lambda a: a[:, 1:]), "coef_"),
    "a head of integers": (_array("coef_", lambda a: a.astype(np.int64)), "coef_"),
    "a head that is not finite": (_array("coef_", lambda a: a * np.nan), "coef_"),
    "intercepts of another number": (_array("intercept_", lambda a: a[1:]), "intercept_"),
    "a mean of another width": (_array("_row_map.mean", lambda a: a[1:]), "mean"),
    "directions of another width": (
        _array("_row_map.whitening.directions", lambda a: a[:, 1:]),
        "directions",
    ),
    "classes in another order": (_array("classes_", lambda a: a[::-1].copy()), "classes_"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_contradictions_are_refused_even_with_a_matching_checksum(name, path):
    change, words = FORGERIES[name]
    rewritten(path, lambda content, arrays: None)
    skmixdp.load(path)
    rewritten(path, change)
    assert words in refusal(path)


def test_modules_are_for_module_classifiers(path):
    assert "leave out module" in refusal(path, module=object())


# -- the list of classes --------------------------------------------------------------------


def test_every_own_algorithm_and_weight_can_be_saved():
    by_name = [make() for make in BY_NAME.values()]
    public = {type(piece) for piece in [*ALGORITHMS.values(), *WEIGHTINGS.values(), *by_name]}
    assert {kind.__name__ for kind in public} <= set(coding.CLASSES)
    for piece in [*ALGORITHMS.values(), *WEIGHTINGS.values()]:
        encoder = coding.Encoder()
        encoded = json.loads(json.dumps(encoder.encode(piece, "piece")))
        decoded = coding.Decoder(encoder.arrays, 0).decode(encoded)
        assert type(decoded) is type(piece)
        assert repr(decoded) == repr(piece)


def test_every_class_on_the_list_exists():
    for name in coding.CLASSES:
        assert coding.class_named(name).__name__ == name
    for name in saving.ESTIMATORS:
        assert name in skmixdp.__all__


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, -(2**70), 0.1, float("inf"), "text", range(2, 9, 3), [1, [2.5]], (1, (2, "x")), {}),
        *({1: "a", "b": None}, {True: 1}, [{"dict": 1}], np.float32(0.1), np.int8(3), np.bool_(True)),
    ],
    ids=repr,
)
def test_plain_values_come_back(value):
    encoder = coding.Encoder()
    text = json.dumps(encoder.encode(value, "value"), allow_nan=False)
    decoded = coding.Decoder(encoder.arrays, 0).decode(json.loads(text))
    assert type(decoded) is type(value)
    assert decoded == value


def test_fields_of_the_row_map_are_known_to_the_exports():
    # A new field changes predictions: to_onnx and to_sklearn must follow it, and check_loaded must check it.
    assert {field.name for field in dataclasses.fields(RowMap)} == {
        *("mean", "normalize", "intercept_value", "whitening", "unit_first", "columns", "bound", "basis")
    }
