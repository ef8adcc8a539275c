"""Hostile names wherever names are shown: ledgers, reports, model cards, messages and files."""

import csv
import io
import json
import unicodedata
from functools import partial

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given

from skmixdp import MixedDPLogisticRegression, load
from skmixdp.inspection import model_card
from skmixdp.preprocessing import check_pipeline
from skmixdp.privacy import GaussianEvent, PrivacyLedger

from .limits import BAD_INPUT, attempt, cells_of, check_html, check_message, check_text, fuzzed, limits
from .values import names

pytestmark = pytest.mark.filterwarnings("ignore")


def _has_surrogates(text: str) -> bool:
    return any(unicodedata.category(c) == "Cs" for c in text)


@fuzzed(6)
@given(st.lists(names, min_size=1, max_size=3, unique=True), names)
def test_ledgers(datasets, description):
    """Names of data sets, and descriptions: in text, CSV, HTML and JSON."""
    with limits():
        ledger, charges = PrivacyLedger(":memory:"), 0
        for name in datasets:
            added = attempt(partial(ledger.add_dataset, name, epsilon=1.0, delta=1e-5), ValueError)
            if added.error is not None:
                check_message(str(added.error), ("name",))
                assert not name or _has_surrogates(name), f"the name {name!a} is refused"
                continue
            charging = partial(
                added.result.charge, GaussianEvent(20, 1), neighboring="zero_out", description=description
            )
            charged = attempt(charging, ValueError)
            if charged.error is None:
                ledger[name]._record_outcome(charged.result, "failed: ValueError")
                charges += 1
            else:
                assert _has_surrogates(description), f"the description {description!a} is refused"
        report = ledger.report()
        check_text(str(report), 2 + len([*ledger]) + charges)
        check_html(report.to_html(), [*datasets, description])
        shown = [cell.replace("\r\n", "\n").replace("\r", "\n") for cell in cells_of(report.to_html())]
        assert all(name in shown for name in ledger if name.isprintable()), "the page lacks a name"
        rows = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
        assert len(rows) == charges
        texts = [str(text).lstrip() for row in rows for text in row.values()]
        assert not any(text.startswith(("=", "+", "-", "@")) for text in texts), "the file holds a formula"
        assert [entry["dataset"] for entry in json.loads(report.to_json())["datasets"]] == [*ledger]


_RNG = np.random.default_rng(0)
X, Y, X_PUB, Y_PUB = _RNG.normal(size=(20, 2)), np.arange(20) % 2, _RNG.normal(size=(8, 2)), np.arange(8) % 2


@fuzzed(1)
@given(st.lists(names, min_size=2, max_size=2, unique=True), st.tuples(names, names), names, names)
def test_models(classes, columns, dataset, title):
    """Names of classes, columns and data sets: in boxes, reports, model cards, messages and saved files."""
    hostile, labels = [*classes, *columns], np.array(classes, dtype=object)
    assume(not any(map(_has_surrogates, hostile)))  # pandas takes no such text
    frames = [pd.DataFrame(rows, columns=columns) for rows in (X, X_PUB)]
    with limits():
        ledger, data = PrivacyLedger(":memory:"), None
        if dataset and not _has_surrogates(dataset):
            data = ledger.add_dataset(dataset, epsilon=9.0, delta=1e-3)
        clf = MixedDPLogisticRegression("noisy-gd", n_steps=1, random_state=0, ledger=data)
        heard = attempt(lambda: clf.fit(frames[0], labels[Y], frames[1], labels[Y_PUB]), *BAD_INPUT)
        if heard.error is not None:
            message = str(heard.error).replace("\n", " ")
            check_message(message, ("X", "X_pub", "y", "y_pub", "classes", "names"))
            return
        check_html(clf._repr_html_(), hostile, scripts=99)
        check_html(clf.privacy_._repr_html_(), [*hostile, dataset])
        check_html(str(model_card(clf, title=title, description=dataset)), hostile)
        for shown in (clf.privacy_, model_card(clf), check_pipeline(clf)):
            check_text(str(shown))
        assert set(clf.predict(frames[0])) <= set(classes)
        clf.set_params(ledger=None)
        if attempt(lambda: clf.save("m.safetensors"), *BAD_INPUT).error is None:
            again = load("m.safetensors")
            assert again.classes_.tolist() == clf.classes_.tolist()
            assert tuple(again.feature_names_in_) == columns
        other = pd.DataFrame(X, columns=columns[::-1]) if columns[0] != columns[1] else X
        attempt(lambda: clf.predict(other), ValueError)
