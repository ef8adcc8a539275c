"""PublicWhitener learns from public rows and from nothing else; RowNormalizer from none."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.preprocessing import PublicOnly, PublicWhitener, RowNormalizer
from tests.rounding import assert_close, assert_relative


class Untouchable:
    """Rows that have a shape and forbid every other look."""

    def __init__(self, shape):
        self.shape = shape

    def __len__(self):
        return self.shape[0]

    def __array__(self, *args, **kwargs):
        raise AssertionError("private rows were read")

    __getitem__ = __iter__ = __array__


ALL = pytest.mark.parametrize(
    "transformer",
    [PublicWhitener(), PublicOnly(StandardScaler()), PublicOnly(StandardScaler(with_std=False))],
    ids=["whiten", "any", "center"],
)


def mean_of(fitted):
    return fitted.transformer_.mean_ if isinstance(fitted, PublicOnly) else fitted.mean_


@ALL
def test_fit_reads_no_private_row(transformer, rows):
    private = Untouchable((60, 5)), Untouchable((60,))
    fitted = clone(transformer).fit(*private, X_pub=rows.X_pub, y_pub=rows.y_pub)
    assert_close(mean_of(fitted), rows.X_pub.mean(axis=0))
    assert fitted.n_features_in_ == 5 and not hasattr(fitted, "feature_names_in_")


@ALL
def test_sources_are_joined(transformer, rows):
    together = clone(transformer).fit(rows.X, X_pub=rows.X_pub).transform(rows.X)
    apart = clone(transformer).fit(rows.X, X_pub=(rows.X_pub[:7], rows.X_pub[7:])).transform(rows.X)
    assert_close(apart, together)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_kept_there_and_back(dtype, rows):
    X, X_pub = rows.X.astype(dtype), rows.X_pub.astype(dtype)
    fitted = PublicWhitener().fit(X, X_pub=X_pub)
    out = fitted.transform(X)
    assert out.dtype == dtype and fitted.inverse_transform(out).dtype == dtype
    assert_close(fitted.inverse_transform(out), X, 1e-3 if dtype == "float32" else 1e-9)
    exact = PublicWhitener().fit(rows.X, X_pub=rows.X_pub).transform(rows.X)
    np.testing.assert_allclose(out, exact, rtol=1e-3, atol=1e-3)


def test_frames_names_and_set_output(frames):
    fitted = PublicWhitener().set_output(transform="pandas").fit(frames.X, X_pub=frames.X_pub)
    out = fitted.transform(frames.X)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == fitted.get_feature_names_out().tolist()
    assert fitted.feature_names_in_.tolist() == list("abcde")


@ALL
def test_public_rows_are_routed_to_it_and_on(transformer, routing, rows):
    assert get_routing_for_object(transformer).fit.requests == {"X_pub": True, "y_pub": True}
    head = MixedDPLogisticRegression(delta=1e-3, rows=RowMapping(center=False))
    pipe = Pipeline([("t", clone(transformer)), ("clf", head)], transform_input=["X_pub"])
    pipe.fit(rows.X, rows.y, **rows.public)
    assert_close(mean_of(pipe["t"]), rows.X_pub.mean(axis=0))
    assert pipe.score(rows.X, rows.y) > 0.5


class TestWhitener:
    def test_public_rows_come_out_white(self, rows):
        out = PublicWhitener(shrinkage=0.0).fit(rows.X, X_pub=rows.X_pub).transform(rows.X_pub)
        np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(out.T @ out / len(out), np.eye(5), atol=1e-10)

    def test_shrinkage_is_that_of_ledoit_and_wolf(self, rows):
        fitted = PublicWhitener().fit(rows.X, X_pub=rows.X_pub)
        expected = LedoitWolf().fit(rows.X_pub)
        assert fitted.shrinkage_ == pytest.approx(expected.shrinkage_)
        assert 0 < fitted.shrinkage_ < 1
        inverse = fitted.components_.T @ fitted.components_
        assert_close(inverse, expected.precision_, 1e-8)

    def test_a_number_shrinks_towards_a_multiple_of_the_identity(self, rows):
        covariance = np.cov(rows.X_pub.T, bias=True)
        fitted = PublicWhitener(shrinkage=0.3).fit(rows.X, X_pub=rows.X_pub)
        target = 0.7 * covariance + 0.3 * np.trace(covariance) / 5 * np.eye(5)
        assert_close(fitted.components_.T @ fitted.components_, np.linalg.inv(target))
        assert fitted.shrinkage_ == 0.3

    def test_full_shrinkage_only_centres_and_scales(self, rows):
        fitted = PublicWhitener(shrinkage=1).fit(rows.X, X_pub=rows.X_pub)
        scale = np.sqrt(rows.X_pub.var(axis=0).mean())
        lengths = np.linalg.norm(fitted.transform(rows.X), axis=1)
        expected = np.linalg.norm(rows.X - rows.X_pub.mean(axis=0), axis=1) / scale
        assert_relative(lengths, expected)

    def test_components_are_the_strongest_directions(self, rows):
        fitted = PublicWhitener(shrinkage=0.0, n_components=2).fit(rows.X, X_pub=rows.X_pub)
        expected = PCA(2, whiten=True).fit(rows.X_pub).transform(rows.X) * np.sqrt(60 / 59)
        assert_close(np.abs(fitted.transform(rows.X)), np.abs(expected))
        assert fitted.get_feature_names_out().tolist() == ["publicwhitener0", "publicwhitener1"]
        back = fitted.inverse_transform(fitted.transform(rows.X))
        assert_close(fitted.transform(back), fitted.transform(rows.X))


class TestRefusals:
    @pytest.fixture(autouse=True)
    def _keep(self, rows, frames):
        self.rows, self.frames = rows, frames

    def refuse(self, error, match, transformer=None, X=None, **public):
        transformer = transformer or PublicWhitener()
        with pytest.raises(error, match=match) as caught:
            transformer.fit(self.rows.X if X is None else X, self.rows.y, **public)
        message = str(caught.value)
        assert "\n" not in message and ". " not in message and message.endswith(".")
        left = [name for name in ("mean_", "transformer_", "n_features_in_") if hasattr(transformer, name)]
        assert not left

    @ALL
    def test_no_public_rows(self, transformer):
        aid = r"X_pub=None .*set_config\(enable_metadata_routing=True\)"
        if not isinstance(transformer, PublicOnly):
            aid += ".*NoisyScaler or RowNormalizer"
        self.refuse(ValueError, aid, clone(transformer))

    def test_sparse(self):
        X, X_pub = (sparse.csr_array(part) for part in (self.rows.X, self.rows.X_pub))
        self.refuse(TypeError, "X_pub is sparse", PublicWhitener(), X_pub=X_pub)
        with pytest.raises(TypeError, match="Sparse data was passed"):
            PublicWhitener().fit(self.rows.X, X_pub=self.rows.X_pub).transform(X)

    @ALL
    def test_width_and_names(self, transformer):
        X, X_pub = self.frames.X, self.rows.X_pub
        for narrow in (X_pub[:, :4], (X_pub, X_pub[:, :4])):
            self.refuse(ValueError, "X_pub has 4 features and X has 5", clone(transformer), X_pub=narrow)
        swapped = self.frames.X_pub[["b", "a", "c", "d", "e"]]
        told = r"X_pub has the columns \['b', 'a'.*same order"
        self.refuse(ValueError, told, clone(transformer), X=X, X_pub=swapped)
        self.refuse(ValueError, "X_pub has no column names", clone(transformer), X=X, X_pub=X_pub)
        self.refuse(ValueError, "X has no column names", clone(transformer), X_pub=self.frames.X_pub)
        self.refuse(ValueError, "an empty X_pub leaves nothing to fit on", clone(transformer), X_pub=())

    @pytest.mark.parametrize("value", [-0.1, 1.5, "oas", None, True, np.nan])
    def test_shrinkage(self, value):
        self.refuse(ValueError, "shrinkage=.* from 0 to 1", PublicWhitener(value), X_pub=self.rows.X_pub)

    @pytest.mark.parametrize("value", [0, 1.5, "all", True, 6])
    def test_n_components(self, value):
        told = "n_components=6 exceeds the 5" if value == 6 else "n_components=.* whole number"
        self.refuse(ValueError, told, PublicWhitener(n_components=value), X_pub=self.rows.X_pub)

    def test_flat_directions(self):
        few = self.rows.X_pub[:3]
        self.refuse(ValueError, "shrinkage=0.0 leaves directions", PublicWhitener(0.0), X_pub=few)
        same = np.ones((4, 5))
        self.refuse(ValueError, "have no variance", PublicWhitener(), X_pub=same)


class TestRowNormalizer:
    @pytest.mark.parametrize("norm", ["l1", "l2", "max"])
    def test_each_row_by_itself(self, rows, norm):
        X = np.vstack([rows.X, np.zeros(5)])
        out = RowNormalizer(norm).transform(X)
        order = {"l1": 1, "l2": 2, "max": np.inf}[norm]
        assert_relative(np.linalg.norm(out, ord=order, axis=1), [1.0] * 60 + [0.0])
        np.testing.assert_array_equal(out[:3], RowNormalizer(norm).transform(X[:3]))

    def test_sparse_stays_sparse(self, rows):
        out = RowNormalizer().transform(sparse.csr_array(rows.X))
        assert sparse.issparse(out)
        assert_close(out.toarray(), Normalizer().transform(rows.X))
