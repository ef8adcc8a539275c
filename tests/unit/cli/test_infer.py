"""Coefficients and intervals at the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp import Typical
from skmixdp.inference import private_inference
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.unit.cli.conftest import SEED, run

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SEEDED = ("--seed", SEED)


@pytest.fixture
def studies(folder):
    """Private and public tables of wages and whether they are high, with ids of persons and weights."""
    rng = np.random.default_rng(0)
    frames = []
    for name, n in (("priv", 4000), ("pub", 200)):
        frame = pd.DataFrame(
            {
                "school": rng.integers(8, 20, n),
                "city": rng.choice(["Bonn", "Ulm"], n),
                "person": np.arange(n) // 2,
                "weight": rng.uniform(100, 900, n).round(),
            }
        )
        wage = 5 + frame["school"] + 2 * (frame["city"] == "Ulm") + rng.normal(size=n)
        frame = frame.assign(
            wage=wage.round(2), high=np.where(wage + 3 * rng.normal(size=n) > 20, "yes", "no")
        )
        frame.to_csv(f"{name}.csv", index=False)
        frames.append(frame)
    return frames


def columns(*names):
    """Tables of some of the columns."""
    for name in ("priv", "pub"):
        pd.read_csv(f"{name}.csv")[list(names)].to_csv(f"{name}.csv", index=False)


def test_coefficients_are_those_of_python(studies, capsys):
    private, _ = studies
    columns("school", "high")
    rows = ("--private", "priv.csv", "--label-column", "high", "--classes", "no,yes")
    assert run("infer", *rows, *SEEDED, "--report", "r.json") == 0
    result = private_inference(
        private[["school"]], private["high"], classes=["no", "yes"], random_state=int(SEED)
    )
    said, written = capsys.readouterr().out, json.loads(Path("r.json").read_text())
    assert "log-odds against class no" in said and "Privacy report" in said
    assert written["privacy"]["epsilon"] == result.privacy_.epsilon
    same_coefficients(written, result)
    assert written["coefficients"][0]["p_holm"] is None
    assert written["coefficients"][1]["low"] < written["coefficients"][1]["coef"]


def same_coefficients(written, result):
    """A table in memory may lie in another order, which changes the last bits of sums."""
    assert [each["name"] for each in written["coefficients"]] == list(result.params.index)
    for name, values in (("coef", result.params), ("std_err", result.bse)):
        found = [each[name] for each in written["coefficients"]]
        np.testing.assert_allclose(found, values, rtol=1e-6, atol=0)


def test_raw_tables_weights_scales_and_public_rows(studies, capsys):
    private, public = studies
    columns("school", "city", "weight", "wage")
    Path("scale.json").write_text('{"school": [10, 4]}')
    numbers, categories = {"school": [0, 25]}, {"city": ["Bonn", "Ulm"]}
    Path("columns.json").write_text(json.dumps({"categories": categories, "numbers": numbers}))
    rows = ("--private", "priv.csv", "--public", "pub.csv", "--label-column", "wage", "--family", "gaussian")
    more = ("--weight-column", "weight", "--max-weight", 900, "--epsilon", 4)
    told = (
        "--scale",
        "scale.json",
        "--reference",
        "city=Bonn",
        "--target-bounds",
        "5,35",
        "--confidence",
        0.9,
    )
    assert run("infer", *rows, *more, *told, "--encode", "columns.json", *SEEDED, "--report", "r.json") == 0
    features = ["school", "city"]
    result = private_inference(
        private[features],
        private["wage"],
        family="gaussian",
        X_pub=public[features],
        y_pub=public["wage"],
        sample_weight=private["weight"],
        sample_weight_pub=public["weight"],
        max_sample_weight=900.0,
        reference={"city": "Bonn"},
        encoder=TableEncoder({"school": (0, 25), "city": ["Bonn", "Ulm"]}).fit(
            private[features], X_pub=public[features]
        ),
        scale={"school": Typical(10, 4)},
        target_scale=(20.0, 7.5),
        epsilon=4.0,
        confidence=0.9,
        random_state=int(SEED),
    )
    written = json.loads(Path("r.json").read_text())
    same_coefficients(written, result)
    assert written["references"] == {"city": "Bonn"} and written["n_public"] == 200
    assert [each["name"] for each in written["coefficients"]] == ["intercept", "school", "city=Ulm"]
    assert written["cov_type"] == "robust" and written["confidence"] == 0.9


def test_persons_a_page_and_the_ledger(studies, capsys):
    columns("school", "person", "high")
    rows = (
        *("--private", "priv.csv", "--label-column", "high", "--classes", "no,yes", "--group-column"),
        "person",
    )
    ledger = ("--ledger", "l.sqlite", "--dataset", "wages", "--ledger-epsilon", 1.2)
    assert run("infer", *rows, *ledger, "--report", "r.html", "--quiet") == 0
    assert capsys.readouterr().out == ""
    page = Path("r.html").read_text()
    assert "Private regression" in page and "school" in page and "2000 private persons" in page
    assert len(PrivacyLedger("l.sqlite")["wages"].charges()) == 1
    assert (
        run("infer", *rows, "--ledger", "l.sqlite", "--dataset", "wages", "--quiet", "--report", "s.html")
        == 2
    )
    assert not Path("s.html").exists()


HIGH = ("--label-column", "high", "--classes", "no,yes")
WAGE = ("--label-column", "wage", "--family", "gaussian")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (HIGH[:2], "--family logistic needs all classes"),
        ((*HIGH[:3], "no"), "--classes"),
        ((*HIGH, "--target-bounds", "0,1"), "--target-bounds is for"),
        ((*HIGH, "--reference", "city=Ulm"), "needs --encode"),
        ((*HIGH, "--reference", "city", "--encode", "bad.json"), "must be pairs"),
        ((*HIGH, "--exposure-column", "weight"), "--family"),
        ((*WAGE, "--classes", "a,b"), "--classes a,b is for"),
        ((*WAGE, "--max-weight", "3"), "--max-weight 3.0"),
        ((*WAGE, "--weight-column", "w"), "--weight-column 'w' is not a"),
        ((*WAGE, "--scale", "s.json"), "--scale s.json cannot be"),
        ((*WAGE, "--scale", "bad.json"), "names the column 'age'"),
        ((*WAGE, "--quiet"), "--quiet needs --report"),
        ((*WAGE, "--epsilon", "1e-4"), "too few to learn"),
    ],
)
def test_refusals(studies, capsys, no_noise, argv, words):
    columns("school", "weight", "high" if "high" in argv else "wage")
    Path("bad.json").write_text('{"age": [1, 2]}')
    ledger = ("--ledger", "l.sqlite", "--dataset", "wages", "--ledger-epsilon", 1.2)
    PrivacyLedger("l.sqlite").add_dataset("wages", epsilon=1.2, delta=1e-5)
    assert run("infer", "--private", "priv.csv", *argv, *ledger) == 2
    captured = capsys.readouterr()
    assert words in captured.err and captured.out == ""
    assert not PrivacyLedger("l.sqlite")["wages"].charges()


def test_counts_with_exposure(studies, capsys):
    private, _ = studies
    private = private.assign(days=np.random.default_rng(1).poisson(2 * private["weight"] / 100))
    private[["school", "weight", "days"]].to_csv("priv.csv", index=False)
    rows = ("--private", "priv.csv", "--label-column", "days", "--family", "poisson", "--epsilon", 4)
    assert run("infer", *rows, "--exposure-column", "weight", *SEEDED, "--report", "r.json") == 0
    result = private_inference(
        private[["school"]],
        private["days"],
        family="poisson",
        exposure=private["weight"],
        epsilon=4.0,
        random_state=int(SEED),
    )
    same_coefficients(json.loads(Path("r.json").read_text()), result)
    assert "per unit of exposure" in capsys.readouterr().out
    assert abs(result.params["intercept"] - np.log(0.02)) < 5 * result.bse["intercept"]
    assert run("infer", *rows, "--exposure-column", "time", *SEEDED) == 2
    assert "--exposure-column 'time' is not a column" in capsys.readouterr().err


def test_the_first_class_is_the_reference(studies, capsys):
    columns("school", "high")
    rows = ("--private", "priv.csv", "--label-column", "high")
    assert run("infer", *rows, "--classes", "yes,no", *SEEDED) == 0
    assert "log-odds against class yes" in capsys.readouterr().out
