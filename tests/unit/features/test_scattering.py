"""Scattering: its coefficients, its two normalisations, and rows that keep to themselves."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from skmixdp import MixedDPLogisticRegression
from skmixdp.features import ScatteringFeatures
from tests.unit.features.test_transformer import CHECKS

pytest.importorskip("kymatio", reason="needs kymatio; install skmixdp[features]")


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, size=(12, 16, 16), dtype=np.uint8)


def small(**changed):
    given = {"J": 2, "L": 4, "n_groups": 5, "image_size": 16, "device": "cpu", **changed}
    return ScatteringFeatures(**given)  # 25 channels of 4 x 4


def test_flat_images_have_only_the_first_channel():
    flat = np.full((1, 16, 16), 51, dtype=np.uint8)
    channels = small(normalization=None).transform(flat).reshape(25, 16)
    np.testing.assert_allclose(channels[0], 0.2, atol=1e-5)
    np.testing.assert_allclose(channels[1:], 0, atol=1e-4)


def test_groups_are_normalised_within_each_image(images):
    bare = small(normalization=None).transform(images).reshape(12, 5, -1).astype(np.float64)
    centred = bare - bare.mean(axis=2, keepdims=True)
    expected = centred / np.sqrt(bare.var(axis=2, keepdims=True) + 1e-5)
    groups = small().transform(images).reshape(12, 5, -1)
    np.testing.assert_allclose(groups, expected, atol=1e-3)
    np.testing.assert_allclose(groups[:, 0].var(axis=1), 1, atol=1e-2)


def test_a_row_depends_on_its_own_image_alone(images):
    features = small(batch_size=5)
    rows = features.transform(images)
    order = np.random.default_rng(1).permutation(12)
    np.testing.assert_allclose(features.transform(images[order]), rows[order], atol=1e-5)
    alone = np.concatenate([small(batch_size=1).transform(image[np.newaxis]) for image in images])
    np.testing.assert_allclose(alone, rows, atol=1e-5)
    changed = images.copy()
    changed[3] = 255 - changed[3]
    after = features.transform(changed)
    assert not np.allclose(after[3], rows[3], atol=1e-2)
    np.testing.assert_allclose(np.delete(after, 3, 0), np.delete(rows, 3, 0), atol=1e-5)


def test_mixed_precision_leaves_rows_as_they_are(images):
    np.testing.assert_array_equal(small(amp="bfloat16").transform(images), small(amp=False).transform(images))


def test_batch_statistics_are_those_of_public_images_alone(images):
    features = small(normalization="batch").fit(images[:4], X_pub=(images[4:7], images[7:]))
    public = features.transform(images[4:]).reshape(8, 25, -1)
    np.testing.assert_allclose(public.mean(axis=(0, 2)), 0, atol=1e-4)
    np.testing.assert_allclose(public.std(axis=(0, 2)), 1, atol=1e-3)
    other = clone(features).fit(255 - images[:4], X_pub=images[4:])
    np.testing.assert_allclose(other.transform(images), features.transform(images), atol=1e-5)
    bare = small(normalization=None).transform(images).reshape(12, 25, -1)
    expected = (bare - features.channel_mean_[:, None]) / features.channel_scale_[:, None]
    np.testing.assert_allclose(features.transform(images), expected.reshape(12, -1), atol=1e-4)


def test_batch_normalisation_needs_public_images(images):
    features = small(normalization="batch")
    with pytest.raises(ValueError, match="X_pub is None; pass X_pub to fit, or normalization='group'"):
        features.fit(images)
    with pytest.raises(NotFittedError, match="needs a fit with public images"):
        features.transform(images)


def test_a_pipeline_routes_public_images_to_both_steps(images):
    y = np.arange(12) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(
            small(normalization="batch"),
            MixedDPLogisticRegression(delta=1e-3, n_steps=2),
            transform_input=["X_pub"],
        )
        pipe.fit(images, y, X_pub=images[:6], y_pub=y[:6])
    assert pipe[-1].n_features_in_ == 25 * 16
    assert pipe[-1].privacy_.n_public == 6


def test_the_cache_gives_back_rows_before_batch_normalisation(images, tmp_path):
    bare = small(normalization=None, cache=tmp_path).extract(images)
    cached = small(normalization="batch", cache=tmp_path).fit(images, X_pub=images[:6])
    assert bare.n_computed == 12
    assert cached.extract(images).n_computed == 0
    fresh = small(normalization="batch").fit(images, X_pub=images[:6])
    np.testing.assert_allclose(cached.transform(images), fresh.transform(images), atol=1e-5)


def test_colours_and_other_sizes(images):
    colour = np.random.default_rng(2).integers(0, 256, size=(2, 20, 24, 3), dtype=np.uint8)
    assert small(n_channels=3).transform(colour).shape == (2, 3 * 25 * 16)
    assert small().transform(colour).shape == (2, 25 * 16)
    assert small(image_size=(16, 32)).transform(images).shape == (12, 25 * 32)
    names = small().get_feature_names_out()
    assert len(names) == 25 * 16 and names[1] == "scatteringfeatures1"


def test_the_default_is_that_of_tramer_and_boneh(images):
    features = ScatteringFeatures(image_size=28, device="cpu")
    assert features.transform(images[:1]).shape == (1, 81 * 49)
    assert features.fit().report_["n_groups"] == 27


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"J": 0}, "J=0 must be a whole number"),
        ({"L": 2.5}, "L=2.5 must be a whole number"),
        ({"n_groups": 7}, "n_groups=7 does not divide the 25 channels"),
        ({"normalization": "layer"}, "normalization='layer' must be 'group', 'batch' or None"),
        ({"n_channels": 2}, "n_channels=2 must be 1"),
        ({"image_size": 3}, "image_size=3 must be"),
        ({"image_size": (16, 16, 1)}, "image_size="),
    ],
)
def test_parameters_that_cannot_be_used(images, changed, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        small(**changed).transform(images)


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_checks_that_apply(check):
    getattr(estimator_checks, check)("ScatteringFeatures", small())
