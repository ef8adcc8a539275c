"""The scikit-learn face."""

import pickle
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import estimator_checks, get_tags

import skmixdp.features
from skmixdp import MixedDPLogisticRegression
from skmixdp.features import OpenClipFeatures, TimmFeatures
from skmixdp.model_selection import public_params
from tests.unit.features.conftest import save_images

#: scikit-learn runs none of its checks on estimators whose input is no table of numbers. These
#: are the ones that transform nothing, so that a fit, which reads nothing, is enough.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_n_features_in_after_fitting",
    "check_mixin_order",
    "check_positive_only_tag_during_fit",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_fit_check_is_fitted",
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("cls", [TimmFeatures, OpenClipFeatures])
def test_scikit_learns_checks_that_apply(check, cls, tiny_clip):
    name = "test_resnet" if cls is TimmFeatures else f"local-dir:{tiny_clip}"
    getattr(estimator_checks, check)(cls.__name__, cls(name, pretrained=False, device="cpu"))


def test_tags(tiny):
    tags = get_tags(tiny())
    assert not tags.requires_fit and not tags.input_tags.two_d_array
    assert tags.input_tags.string and tags.input_tags.three_d_array


def test_it_is_stateless(pixels, tiny):
    unfitted, fitted = tiny(), tiny().fit(pixels)
    before = dict(vars(unfitted))
    np.testing.assert_array_equal(unfitted.transform(pixels), fitted.transform(pixels))
    assert vars(unfitted) == before
    np.testing.assert_array_equal(tiny().fit_transform(pixels), fitted.transform(pixels))
    assert fitted.report_["weights"]["sha256"] == fitted.encoder.description["weights"]["sha256"]
    assert tiny().fit(object()).report_["library"] == "tiny"  # no item is read


def test_names_and_containers(pixels, tiny):
    names = [f"tinyfeatures{i}" for i in range(16)]
    assert tiny().get_feature_names_out().tolist() == names
    frame = tiny().set_output(transform="pandas").fit_transform(pixels)
    assert isinstance(frame, pd.DataFrame) and frame.columns.tolist() == names
    np.testing.assert_array_equal(frame.to_numpy(), tiny().transform(pixels))


def test_clones_and_pickles_carry_parameters_and_no_network(pixels):
    features = TimmFeatures("test_resnet", pretrained=False, image_size=32, device="cpu").fit()
    rows = features.transform(pixels)
    pickled = pickle.dumps(features)
    assert len(pickled) < 10_000
    np.testing.assert_array_equal(pickle.loads(pickled).transform(pixels), rows)
    np.testing.assert_array_equal(clone(features).transform(pixels), rows)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"device": 0}, ValueError, "device=0 must be a str"),
        ({"batch_size": 0}, ValueError, "batch_size=0 must be 'auto' or a whole number of at least 1"),
        ({"batch_size": True}, ValueError, "batch_size=True must be 'auto'"),
        ({"batch_size": 2.5}, ValueError, "batch_size=2.5 must be 'auto'"),
        ({"n_workers": -1}, ValueError, "n_workers=-1 must be 'auto' or a whole number of at least 0"),
        ({"amp": "float64"}, ValueError, "amp='float64' must be 'auto', True, False"),
        ({"dtype": "int8"}, ValueError, "dtype='int8' must be 'float32' or 'float16'"),
        ({"on_error": "ignore"}, ValueError, "on_error='ignore' must be 'raise' or 'skip'"),
        ({"cache": 3}, ValueError, "cache=3 must be the path of a folder or None"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "transform", "extract"])
def test_parameters_are_checked_when_used(method, parameters, error, message, pixels, tiny):
    with pytest.raises(error, match=message):
        getattr(tiny(**parameters), method)(pixels)


def make_problem(seed, n=30):
    """Images of two classes: dark and bright."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.integers(0, 128, (n, 12, 12, 3)) + 127 * y[:, None, None, None]
    return X.astype(np.uint8), y


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(("folded", "cached"), [("array", True), ("paths", True), ("array", False)])
def test_cross_validation_computes_each_row_once_with_a_cache(folded, cached, tmp_path, tiny, encoder):
    (X, y), (X_pub, y_pub) = make_problem(0), make_problem(1, n=30)
    if folded == "paths":
        X, X_pub = save_images(tmp_path / "a", X), save_images(tmp_path / "b", X_pub)
    head = MixedDPLogisticRegression(epsilon=3.0, delta=1e-3, random_state=0)
    features = tiny(cache=tmp_path / "cache" if cached else None)
    pipe = Pipeline([("features", features), ("head", head)], transform_input=["X_pub"])
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(pipe, X, y, cv=3, params=public_params(X_pub, y_pub), error_score="raise")
    assert scores.mean() > 0.8
    assert sum(encoder.batches) == (60 if cached else 3 * (20 + 30 + 10))


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_a_real_network_in_a_pipeline(tmp_path):
    (X, y), (X_pub, y_pub) = make_problem(0), make_problem(1)
    features = TimmFeatures(
        "test_resnet", pretrained=False, image_size=32, device="cpu", cache=str(tmp_path / "cache")
    )
    head = MixedDPLogisticRegression(epsilon=3.0, delta=1e-3, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(features, head, transform_input=["X_pub"])
        scores = cross_val_score(pipe, X, y, cv=3, params=public_params(X_pub, y_pub), error_score="raise")
    assert scores.shape == (3,)
    assert features.extract(X).n_computed == 0 == features.extract(X_pub).n_computed


@pytest.mark.parametrize("package", ["torch", "timm", "open_clip", "torchvision"])
def test_a_missing_package_gives_one_sentence(package, monkeypatch):
    """As if the package could not be found, and nothing that needs it had been imported."""
    monkeypatch.setattr(skmixdp.features, "backends", import_module("skmixdp.features.backends"))
    for name in [name for name in sys.modules if name.startswith("skmixdp.features.backends")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    features = OpenClipFeatures if package == "open_clip" else TimmFeatures
    with pytest.raises(ImportError) as refused:
        features(pretrained=False).fit()
    assert str(refused.value) == (
        f"features need the package {package}, which is not installed; install skmixdp[features], or "
        "'.[features]' in a checkout."
    )
