"""Fits that a ledger pays for, and the report of a ledger."""

import json
from pathlib import Path

import joblib
import pytest

from skmixdp.privacy import PrivacyLedger
from tests.unit.cli.conftest import run, save_npz

LEDGER = ["--ledger", "l.sqlite", "--dataset", "patients"]


@pytest.fixture
def rows(data, folder):
    return save_npz(data)


def test_fits_are_charged_until_the_budget_is_spent(rows, capsys):
    new = [*LEDGER, "--ledger-epsilon", "2"]
    for number in range(3):
        assert run("fit", *rows, *new, "--epsilon", "1", "--out", f"m{number}") == 0
    ledger = PrivacyLedger("l.sqlite")["patients"]
    assert [charge.description for charge in ledger.charges()] == ["MixedDPLogisticRegression, 90 rows"] * 3
    assert joblib.load("m2").privacy_.dataset_spent == ledger.spent
    assert f"patients: epsilon {ledger.spent:.6g} of (2, 1e-05) is spent" in capsys.readouterr().out
    assert run("fit", *rows, *LEDGER, "--out", "m3") == 2
    assert "skmixdp fit: dataset='patients' has 0.68" in capsys.readouterr().err
    assert not Path("m3").exists() and len(ledger.charges()) == 3


def test_a_typing_error_opens_no_budget(rows, no_noise, capsys):
    PrivacyLedger("l.sqlite").add_dataset("patients", epsilon=2, delta=1e-5)
    assert run("fit", *rows, "--ledger", "l.sqlite", "--dataset", "pateints", "--out", "m") == 2
    error = capsys.readouterr().err
    assert (
        "dataset='pateints' is not in PrivacyLedger(" in error
        and "l.sqlite'), which has 'patients';" in error
    )
    assert list(PrivacyLedger("l.sqlite")) == ["patients"] and not Path("m").exists()


def test_the_data_sets_delta_is_its_own(rows):
    new = [*LEDGER, "--ledger-epsilon", "2", "--ledger-delta", "1e-6"]
    assert run("fit", *rows, *new, "--out", "m") == 0
    assert PrivacyLedger("l.sqlite")["patients"].account.delta == 1e-6


def test_report(rows, capsys):
    assert run("fit", *rows, *LEDGER, "--ledger-epsilon", "2", "--out", "m", "--quiet") == 0
    capsys.readouterr()
    report = PrivacyLedger("l.sqlite").report()
    for flag, text in ([], str(report)), (["--json"], report.to_json()), (["--html"], report.to_html()):
        assert run("report", "l.sqlite", *flag) == 0
        assert capsys.readouterr().out == f"{text}\n"
    assert json.loads(report.to_json())["datasets"][0]["dataset"] == "patients"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--ledger", "l.sqlite"], "--ledger l.sqlite needs --dataset; give both"),
        (["--dataset", "a"], "--dataset a needs --ledger; give both"),
        (["--ledger-epsilon", "1"], "--ledger-epsilon 1.0 needs --ledger"),
        ([*LEDGER, "--ledger-delta", "1e-5"], "--ledger-delta 1e-05 needs --ledger-epsilon"),
        (LEDGER, "--ledger l.sqlite is new; give its data set a --ledger-epsilon"),
        (["--ledger", "no/l", "--dataset", "a", "--ledger-epsilon", "1"], "check that its folder exists"),
    ],
)
def test_refused_fits(rows, no_noise, capsys, given, message):
    assert run("fit", *rows, *given, "--out", "m") == 2
    assert message in capsys.readouterr().err
    assert not Path("l.sqlite").exists() and not Path("m").exists()
