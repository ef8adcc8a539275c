"""Whatever accepts a data set of a ledger accepts it with a purpose, which the charge then has."""

import copy
import csv
import io
import json
import pickle
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import skmixdp
from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import ConfusionDisplay, ensemble_report
from skmixdp.model_selection import WithPublicRows
from skmixdp.privacy import GaussianEvent, PrivacyLedger
from tests.private_names import main

pytestmark = [pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")]

X, Y = load_iris(return_X_y=True)
TWO = (Y > 0).astype(int)
WORDS, NEAR = "churn model, Q3", {"delta": 1e-3}


@pytest.fixture
def people(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l.sqlite")
    return ledger.add_dataset("people", epsilon=50.0, delta=1e-3)


def head(ledger=None, classes=(0, 1, 2), **terms):
    return MixedDPLogisticRegression("noisy-gd", ledger=ledger, classes=list(classes), **(NEAR | terms))


def shown(ledger):
    fitted = head().fit(X, Y).set_params(ledger=ledger)
    return ConfusionDisplay.from_estimator(fitted, X, Y, noise_multiplier=10.0)


USES = {
    "display": shown,
    "clone": lambda ledger: clone(clone(head(ledger))).fit(X, Y),
    "copy": lambda ledger: copy.deepcopy(head(ledger)).fit(X, Y),
    "pickle": lambda ledger: pickle.loads(pickle.dumps(head(ledger))).fit(X, Y),
    "pipeline": lambda ledger: make_pipeline(head(ledger)).fit(X, Y),
    "wrapper": lambda ledger: WithPublicRows(head(ledger), X[::5], Y[::5]).fit(X, Y),
    "processes": lambda ledger: joblib.Parallel(n_jobs=2)([joblib.delayed(head(ledger).fit)(X, Y)]),
    "threads": lambda ledger: threaded(lambda: head(ledger).fit(X, Y)),
    "folds": lambda ledger: cross_val_score(head(ledger), X, Y, cv=2, error_score="raise"),
}


def threaded(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("use", USES)
def test_each_charge_has_its_purpose(use, people):
    USES[use](people.for_purpose(WORDS))
    assert {charge.purpose for charge in people.charges()} == {WORDS}
    assert {charge.outcome for charge in people.charges()} == {"finished"}
    assert people.spent == people.for_purpose("another").spent > 0  # one budget


def test_a_saved_model_keeps_the_purpose(people, tmp_path):
    for ledger in (people, people.for_purpose(WORDS)):
        fitted = head(ledger).fit(X, Y)
        fitted.save(tmp_path / "m.safetensors")
        loaded = skmixdp.load(tmp_path / "m.safetensors")
        assert loaded.ledger.purpose == ledger.purpose == loaded.privacy_.dataset_purpose
        assert loaded.privacy_ == fitted.privacy_
        loaded.fit(X, Y)
    assert [charge.purpose for charge in people.charges()] == ["", "", WORDS, WORDS]


def test_a_purpose_is_the_same_data_set_in_other_words(people):
    told = people.for_purpose(WORDS)
    assert repr(told) == f"{people!r}.for_purpose({WORDS!r})"
    assert copy.copy(told) is clone(told, safe=False) is copy.deepcopy(told) is told != people
    assert told.for_purpose("second").purpose == "second" and people.purpose == ""
    made = told.charge(GaussianEvent(20.0, 1), neighboring="zero_out", description="a fit")
    people._record_outcome(made, "failed: ValueError")
    assert told.report() == people.report() and told.account == people.account
    assert [charge.id for charge in told.charges()] == [made.id]
    report = people.report()
    assert f"(a fit, for '{WORDS}') failed: ValueError" in str(report)
    assert f"for &#39;{WORDS}&#39;" in report._repr_html_() and f"for &#39;{WORDS}&#39;" in report.to_html()
    assert report.to_dict()["charges"][0]["purpose"] == WORDS
    assert next(csv.DictReader(io.StringIO(report.to_csv())))["purpose"] == WORDS


@pytest.mark.parametrize("bad", ["", "  ", "two\nlines", "a" * 121, "\x1b[31m", "\ud800", None, 3, b"bytes"])
def test_what_is_no_short_text_is_refused(bad, people):
    told = "purpose=.* must be a text of 1 to 120 printable characters"
    with pytest.raises(ValueError, match=told) as error:
        people.for_purpose(bad)
    assert "\n" not in str(error.value)


def test_the_command_line(people, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", X=X, y=Y)
    fit = ["fit", "--private", "rows.npz", "--classes", "0,1,2", "--delta", "1e-3", "--quiet", "--out", "m"]
    charged = [*fit, "--ledger", "l.sqlite", "--dataset", "people"]
    assert main([*charged, "--purpose", WORDS, "--report", "r.html"]) == 0
    assert [charge.purpose for charge in people.charges()] == [WORDS]
    page = Path("r.html").read_text(encoding="utf-8")
    assert f"people, for &#39;{WORDS}&#39;: epsilon" in page
    assert main(["report", "m", "--html"]) == 0 and capsys.readouterr().out == f"{page}\n"
    assert main(["report", "l.sqlite", "--html"]) == 0
    assert capsys.readouterr().out == f"{people.report().to_html()}\n"
    with pytest.raises(SystemExit):
        main([*charged, "--force", "--purpose", "two\nlines"])
    assert "--purpose: 'two\\nlines' must be a text of 1 to 120" in capsys.readouterr().err
    assert main([*fit, "--force", "--purpose", WORDS]) == 2
    assert f"--purpose {WORDS} needs --ledger" in capsys.readouterr().err
    assert len(people.charges()) == 1
    assert json.loads(people.report().to_json())["charges"][0]["purpose"] == WORDS


def test_members_that_protect_rows_and_persons_do_not_add_up():
    ids = np.arange(len(Y)) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        of_persons, of_rows = head().fit(X, Y, groups=ids), head().fit(X, Y)
    with pytest.raises(ValueError, match=r"unit=.*, and such guarantees do not add up"):
        ensemble_report([of_persons, of_rows])
    report = ensemble_report([of_persons, of_persons])
    assert report.unit == of_persons.privacy_.unit != "row"
    assert "all rows of one person" in str(report)
