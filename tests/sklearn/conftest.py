"""Small rows for the tests of scikit-learn's conventions."""

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import sklearn

from skmixdp import MixedDPLogisticRegression
from skmixdp.model_selection import public_params
from skmixdp.privacy import PrivacyLedger


def draw_rows(n, *, n_classes=3, seed=0):
    """Rows and labels of overlapping classes, on columns of different scales."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centers = np.random.default_rng(99).normal(size=(n_classes, 5))
    X = (2 * centers[y] + rng.normal(size=(n, 5)) + 3) * [1.0, 2.0, 5.0, 10.0, 20.0]
    return X, y


class Rows(NamedTuple):
    """Private and public rows with their labels, in the order of ``fit``."""

    X: Any
    y: Any
    X_pub: Any
    y_pub: Any

    @property
    def public(self):
        """Public rows as no tool of scikit-learn cuts them."""
        return public_params(self.X_pub, self.y_pub)

    @property
    def bare(self):
        """Public rows as they are."""
        return {"X_pub": self.X_pub, "y_pub": self.y_pub}


@pytest.fixture
def draw():
    return draw_rows


@pytest.fixture
def rows():
    """Private and public rows: as many of one as of the other."""
    return Rows(*draw_rows(60, seed=1), *draw_rows(60, seed=2))


@pytest.fixture
def frames(rows):
    """The same rows as data frames."""
    tables = (pd.DataFrame(part, columns=list("abcde")) for part in (rows.X, rows.X_pub))
    return rows._replace(**dict(zip(("X", "X_pub"), tables, strict=True)))


@pytest.fixture
def fit(rows):
    """Fit on rows of which some are replaced."""

    def run(parameters=None, **given):
        clf = MixedDPLogisticRegression(**({"delta": 1e-3} | (parameters or {})))
        return clf.fit(**(rows._asdict() | given))

    return run


@pytest.fixture
def good(rows):
    """An estimator, its parameters, and the arguments of a good fit. A module may have its own."""
    return MixedDPLogisticRegression, {"delta": 1e-3}, rows._asdict()


@pytest.fixture
def refuse(good, no_noise):
    """Fit on rows of which some are replaced, and check that it is refused properly."""
    kind, fixed, arguments = good
    with pytest.raises(
        AssertionError, match="noise was drawn"
    ):  # otherwise the checks below would show nothing
        kind(**fixed).fit(**arguments)

    def check(match, parameters=None, *, error=ValueError, **given):
        ledger = PrivacyLedger(":memory:").add_dataset("people", epsilon=10.0, delta=1e-3)
        model = kind(**(fixed | {"ledger": ledger} | (parameters or {})))
        with pytest.raises(error) as caught:
            model.fit(**(arguments | given))
        message = str(caught.value)
        assert re.search(match, message), message
        assert "\n" not in message and ". " not in message and message.endswith("."), message
        assert "np." not in message and len(message) < 300, message
        assert not any(hasattr(model, name) for name in ("coef_", "intercept_", "privacy_", "n_iter_"))
        assert ledger.charges() == []
        return message

    return check


@pytest.fixture(autouse=True)
def routing_off():
    """scikit-learn's default, whatever ran before."""
    with sklearn.config_context(enable_metadata_routing=False):
        yield


@pytest.fixture
def routing(routing_off):
    with sklearn.config_context(enable_metadata_routing=True):
        yield
