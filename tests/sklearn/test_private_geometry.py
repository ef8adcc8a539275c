"""What the default learns from private rows, as a user sees it."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.linear_model import Ridge

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.features import ZeroShotHead
from skmixdp.privacy import PrivacyLedger

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 1397), slice(1397, None)


def default(**parameters):
    return MixedDPLogisticRegression(classes=range(10), random_state=0, logit_adjustment=0, **parameters)


def test_no_public_rows_are_needed_for_a_centre_and_whitening():
    clf = default(epsilon=3.0).fit(X[TRAIN], Y[TRAIN])
    start = {"class counts"}
    assert set(dict(clf.privacy_.shares)) == start | {
        "columns",
        "mean",
        "directions",
        "training",
        "temperature",
    }
    assert "budget spent on" in str(clf.privacy_)
    assert clf.score(X[TEST], Y[TEST]) > 0.855  # 0.879 over seeds
    assert clf.privacy_.epsilon <= 3.0 and clf.privacy_.n_steps == clf.n_iter_
    plain = clone(clf).set_params(rows=RowMapping(geometry=False), scale=False).fit(X[TRAIN], Y[TRAIN])
    assert set(dict(plain.privacy_.shares)) == start | {"training", "temperature"}
    assert clf._row_map.columns is None and plain._row_map.mean is None


@pytest.mark.parametrize("kind", [sp.csr_array, np.asfortranarray], ids=["sparse", "columns"])
def test_other_rows_give_the_same_head(kind):
    heads = [default(dtype="float64").fit(rows, Y[TRAIN]) for rows in (X[TRAIN], kind(X[TRAIN]))]
    np.testing.assert_allclose(heads[1].coef_, heads[0].coef_, atol=1e-5)
    dense, other = heads[0].predict_proba(X[TEST]), heads[1].predict_proba(kind(X[TEST]))
    np.testing.assert_allclose(other, dense, atol=1e-5)


def test_heads_fitted_together_are_those_fitted_alone():
    heads = [default(epsilon=epsilon) for epsilon in (1.0, 2.0)]
    together = fit_many([clone(head) for head in heads], X[TRAIN], Y[TRAIN])
    for found, head in zip(together, heads, strict=True):
        # Float32 rows are mapped in one go or in two.
        np.testing.assert_allclose(found.coef_, head.fit(X[TRAIN], Y[TRAIN]).coef_, atol=1e-5)


def test_one_charge_covers_all_stages(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.db")
    entry = ledger.add_dataset("digits", epsilon=3.0, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed is not private
        default(epsilon=2.0, ledger=entry).fit(X[TRAIN], Y[TRAIN])
    assert len(entry.charges()) == 1
    assert entry.spent == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    "obstacle", [{"rows__center": False}, {"rows__norm": "clip"}, {"batch_size": 50}, {"n_steps": 5}]
)
def test_geometry_is_refused_where_it_cannot_be_learned(obstacle):
    name = next(iter(obstacle)).removeprefix("rows__")
    with pytest.raises(ValueError, match=rf"geometry=True\) cannot be combined with the given {name}"):
        default(rows=RowMapping(geometry=True)).set_params(**obstacle).fit(X[TRAIN], Y[TRAIN])
    clf = default(rows=RowMapping()).set_params(**obstacle).fit(X[TRAIN], Y[TRAIN])
    assert "directions" not in dict(clf.privacy_.shares)


def test_a_start_from_names_is_used_without_public_rows():
    names = np.array([X[TRAIN][Y[TRAIN] == label].mean(axis=0) for label in range(10)])
    names -= names.mean(axis=0)
    for sign in (1, -1):
        head = ZeroShotHead([str(label) for label in range(10)], embeddings=sign * names)
        clf = default(epsilon=8.0, init=head).fit(X[TRAIN], Y[TRAIN])
        assert clf.score(X[TEST], Y[TEST]) > 0.87


class TestColumns:
    """Columns that dominate are scaled by public or private rows; a warning tells if noise hides them."""

    X, Y = load_breast_cancer(return_X_y=True)

    def test_public_rows_scale_them(self):
        def fitted(X, y=self.Y):
            return MixedDPLogisticRegression(random_state=0).fit(X[60:450], y[60:450], X[:60], y[:60])

        clf = fitted(self.X)
        assert clf.score(self.X[450:], self.Y[450:]) > 0.9
        assert clf._row_map.columns is not None
        other = fitted(self.X * 2.0 ** np.arange(30))
        np.testing.assert_allclose(other.coef_, clf.coef_, rtol=1e-4, atol=1e-4)

    def test_private_rows_scale_them(self):
        clf = MixedDPLogisticRegression(epsilon=3.0, classes=[0, 1], random_state=0)
        assert clf.fit(self.X, self.Y)._row_map.columns is not None
        assert clf.score(self.X, self.Y) > 0.9

    def test_where_noise_hides_them_a_warning_tells(self):
        with pytest.warns(UserWarning, match="a few columns of X make up nearly all of the length"):
            MixedDPLogisticRegression(epsilon=0.7, classes=[0, 1], random_state=0).fit(self.X, self.Y)

    def test_columns_of_one_scale_stay(self):
        train = slice(100, TRAIN.stop)
        clf = MixedDPLogisticRegression(random_state=0).fit(X[train], Y[train], X[:100], Y[:100])
        assert clf._row_map.columns is None


class TestClippedRows:
    """Regression keeps the lengths of rows, up to a bound."""

    X, Y = make_friedman1(6000, 8, noise=1.0, random_state=0)
    X = X - 0.5

    @pytest.mark.parametrize("public", [True, False])
    def test_a_large_budget_reaches_no_privacy(self, public):
        train, test = ((self.X[part], self.Y[part]) for part in (slice(30, 5000), slice(5000, None)))
        known = (self.X[:30], self.Y[:30]) if public else ()
        scale = {} if public else {"target_scale": 5.0, "target_center": 14.0}
        reg = MixedDPRidge(epsilon=100.0, random_state=0, **scale).fit(*train, *known)
        exact = Ridge(1e-3).fit(*train).score(*test)
        assert reg.score(*test) > exact - 0.01
        unit = clone(reg).set_params(rows=RowMapping(norm="unit")).fit(*train, *known)
        assert unit.score(*test) < reg.score(*test)

    def test_the_length_is_public_where_public_rows_tell_it(self):
        reg = MixedDPRidge(random_state=0).fit(self.X[30:], self.Y[30:], self.X[:30], self.Y[:30])
        assert "length of the rows" not in dict(reg.privacy_.shares) and reg._row_map.bound > 0
        alone = MixedDPRidge(target_scale=5.0, scale=False, random_state=0).fit(self.X, self.Y)
        spent = dict(alone.privacy_.shares).keys()
        assert spent == {
            "length of the rows",
            "second moment",
            "first head",
            "lengths of gradients",
            "training",
            "residuals",
        }
        unscaled = clone(reg).set_params(scale=False).fit(self.X[30:], self.Y[30:], self.X[:30], self.Y[:30])
        assert 0.5 < alone._row_map.bound / unscaled._row_map.bound < 2

    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_no_row_is_too_long_to_be_measured(self, kind):
        """To refuse a row would tell that it exists."""
        rows = self.X[:2000].astype(np.float32)
        rows[7] = 3e38
        # No later stage maps rows once more.
        terms = {"target_scale": 5.0, "scale": False, "rows": RowMapping(whiten=False), "random_state": 0}
        reg = MixedDPRidge(**terms).fit(kind(rows), self.Y[:2000])
        ordinary = clone(reg).fit(kind(self.X[:2000].astype(np.float32)), self.Y[:2000])
        assert "length of the rows" in dict(reg.privacy_.shares)
        assert reg._row_map.bound == ordinary._row_map.bound


def test_a_longer_budget_never_overfits():
    """As epsilon grows, accuracy does not fall: the total step ends."""
    heads = [default(epsilon=epsilon).fit(X[TRAIN], Y[TRAIN]) for epsilon in (10, 1000)]
    scores = [head.score(X[TEST], Y[TEST]) for head in heads]
    assert scores[1] > max(scores[0] - 0.015, 0.9)
