"""Degenerate but valid rows train to finite heads, with and without public rows."""

import numpy as np
import pytest

from skmixdp.algorithms import AdaMix


@pytest.fixture(params=["public", "alone"])
def public(request):
    return request.param == "public"


ODD = {
    **{f"all {value}": lambda X, value=value: np.full_like(X, value) for value in (0.0, 1.0, 1e-200, 1e200)},
    "constant columns": lambda X: np.column_stack([X, np.ones(len(X)), np.zeros(len(X))]),
    "one column": lambda X: X[:, :1],
}


@pytest.mark.covering
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("algorithm", ["adamix", "noisy-gd", AdaMix(n_components=2)], ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_degenerate_columns(fit, rows, public, odd, algorithm, fit_intercept):
    X = ODD[odd](rows.X)
    given = {"X_pub": ODD[odd](rows.X_pub)} if public else {"X_pub": None, "y_pub": None}
    parameters = {"classes": [0, 1, 2], "algorithm": algorithm, "fit_intercept": fit_intercept}
    clf = fit(parameters, X=X, **given)
    assert clf.coef_.shape == (3, X.shape[1])
    assert np.all(np.isfinite(clf.coef_)) and np.all(np.isfinite(clf.predict_proba(X)))


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_tiny_and_huge_rows(fit, rows, public, scale):
    X = scale * rows.X
    given = {"X_pub": scale * rows.X_pub} if public else {"X_pub": None, "y_pub": None}
    clf = fit({"classes": [0, 1, 2], "epsilon": 20.0, "random_state": 0}, X=X, **given)
    assert np.all(np.isfinite(clf.coef_))
    assert clf.score(X, rows.y) > 0.7


def test_two_rows(fit, rows, public):
    given = {} if public else {"X_pub": None, "y_pub": None}
    clf = fit({"classes": [0, 1, 2]}, X=rows.X[:2], y=rows.y[:2], **given)
    assert clf.privacy_.n_private == 2 and np.all(np.isfinite(clf.coef_))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_public_row(fit, rows, fit_intercept):
    with pytest.warns(UserWarning, match=r"no public row has a label in \[1, 2\]"):
        clf = fit(
            {"classes": [0, 1, 2], "fit_intercept": fit_intercept}, X_pub=rows.X_pub[:1], y_pub=rows.y_pub[:1]
        )
    assert np.all(np.isfinite(clf.coef_))
