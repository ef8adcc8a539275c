"""What a notebook and a terminal show: short texts, tables of HTML, and warnings at the line of the user."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, private_pipeline
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import NoisyScaler, TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.private_names import progress_bar

X, Y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=0)
TARGETS = make_regression(400, 6, random_state=0)[1] / 100


@pytest.fixture(scope="module")
def head():
    return MixedDPLogisticRegression(epsilon=5.0, delta=1e-4, classes=[0, 1, 2]).fit(X, Y)


def evaluation(head, **options):
    return private_evaluation(head, X, Y, epsilon=1.0, delta=1e-4, **options)


@pytest.mark.parametrize("options", [{}, {"layout": "one_vs_rest"}, {"by": Y % 2, "by_values": [0, 1]}])
def test_an_evaluation_shows_its_metrics(head, options):
    shown = evaluation(head, **options)
    assert repr(shown) == str(shown) and "object at" not in repr(shown)
    page = shown._repr_html_()
    for name in ("log-loss", "calibration error", "epsilon 1, delta 0.0001"):
        assert name in repr(shown) and name in page
    assert page.count("<table>") == 1


def test_an_evaluation_of_a_regression_shows_its_metrics():
    ridge = MixedDPRidge(epsilon=5.0, delta=1e-4, target_scale=1.0).fit(X, TARGETS)
    shown = private_evaluation(ridge, X, TARGETS, epsilon=1.0, delta=1e-4, target_bounds=(-5, 5))
    assert "R2" in repr(shown) and "R2" in shown._repr_html_()


def test_a_ledger_shows_its_balance_a_bar_and_its_last_charges(head):
    ledger = PrivacyLedger(":memory:")
    dataset = ledger.add_dataset("<people>", epsilon=10.0, delta=1e-3)
    assert "Last charges" not in ledger._repr_html_()
    for _ in range(6):
        evaluation(head, ledger=dataset)
    for shown in (ledger, dataset):
        page = shown._repr_html_()
        assert page.count("<progress") == 1 and "&lt;people&gt;" in page and "<people>" not in page
        assert page.count("private_evaluation, 400 rows") == 5
        assert str(shown) == str(dataset.report())


def test_columns_of_an_encoder_are_short():
    table = pd.DataFrame({"age": np.arange(40) % 17, "city": [*"abcdefgh"] * 5, "note": "a b"})
    columns = TableEncoder({"note": "text"}).fit(table, X_pub=table).columns_
    assert len(repr(columns).splitlines()) == 3 and max(map(len, repr(columns).splitlines())) < 80
    assert "8 categories ('a', 'b', 'c', ...)" in repr(columns) and "1e+15" not in repr(columns)
    page = columns._repr_html_()
    assert page.count("<tr>") == 4 and "1e+15" not in page


def warned(call):
    """The file and the text of each warning of a call."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        call()
    assert caught
    return {(each.filename, each.category.__name__) for each in caught}


LEDGER = PrivacyLedger(":memory:")
TABLE = pd.DataFrame({"a": X[:, 0], "b": None})
WARNING = {
    "a fit": lambda: MixedDPRidge(epsilon=99, delta=0.1).fit(X, TARGETS),
    "a fit in a pipeline": lambda: make_pipeline(FunctionTransformer(), MixedDPLogisticRegression()).fit(
        X, Y
    ),
    "a pipeline": lambda: private_pipeline(NoisyScaler(epsilon=99), MixedDPLogisticRegression()).fit(X, Y),
    "an encoder": lambda: private_pipeline(TableEncoder(), MixedDPLogisticRegression(classes=[0, 1, 2])).fit(
        TABLE, Y, X_pub=TABLE, y_pub=Y
    ),
    "a data set of a ledger": lambda: LEDGER.add_dataset("a", epsilon=99, delta=0.1),
    "an evaluation": lambda: private_evaluation(
        MixedDPLogisticRegression(epsilon=5.0, delta=1e-4, classes=[0, 1, 2]).fit(X, Y),
        *(X, Y),
        epsilon=99,
        delta=0.1,
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", WARNING)
def test_warnings_point_at_the_line_of_the_user(name):
    assert {filename for filename, _ in warned(WARNING[name])} == {__file__}


def test_a_bar_of_a_notebook_without_widgets_gives_no_warning(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with warnings.catch_warnings(action="error"):
        assert sum(progress_bar(range(3), verbose=True)) == 3
    assert "3/3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("n_words", "n_texts", "width"),
    [(5, 1, 32), (100, 1, 256), (900, 1, 512), (900, 2, 256), (900, 40, 32), (0, 1, 512)],
)
def test_the_width_of_hashed_texts_follows_public_facts(n_words, n_texts, width):
    texts = [f"w{j} w{(7 * j) % n_words}" for j in range(n_words)]
    names = [f"t{j}" for j in range(n_texts)]
    table = pd.DataFrame({name: texts or ["private words"] for name in names})
    encoder = TableEncoder(dict.fromkeys(names, "text")).fit(table, X_pub=table if n_words else None)
    assert {column.n_hashed for column in encoder.columns_.values()} == {width}
    assert TableEncoder({"t0": "text"}, n_hashed=7).fit(table[["t0"]]).columns_["t0"].n_hashed == 7
