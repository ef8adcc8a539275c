"""Command lines as people mistype them: one sentence, before anything is written, charged or drawn."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPPoissonRegressor, load
from skmixdp.model_selection import private_evaluation
from skmixdp.privacy import PrivacyLedger
from tests.unit.cli.conftest import SEED, refuse, run

ROWS = ("--private", "priv.csv", "--label-column", "claims")
PUBLIC = (*ROWS, "--public", "pub.csv")
COUNTS = (*ROWS, "--counts", "--exposure-column", "years")
CHARGED = ("--ledger", "l.sqlite", "--dataset", "d")


@pytest.fixture
def claims(folder):
    """Tables of counts with exposures, and a ledger; the private table."""
    rng = np.random.default_rng(0)
    frames = {}
    for name, n in (("priv", 8000), ("pub", 100)):
        frame = pd.DataFrame({"km": rng.normal(size=n), "years": rng.uniform(0.2, 2, n)}).round(3)
        frame["claims"] = rng.poisson(frame["years"] * np.exp(0.5 * frame["km"]))
        frame.to_csv(f"{name}.csv", index=False)
        frames[name] = frame
    frames["priv"].assign(km="SECRET").to_csv("text.csv", index=False)
    frames["priv"].assign(years=-1.0).to_csv("negative.csv", index=False)
    frames["priv"].drop(columns="years").to_csv("short.csv", index=False)
    Path("scale.json").write_text('{"speed": [1, 2]}')
    PrivacyLedger("l.sqlite").add_dataset("d", epsilon=9, delta=1e-4)
    return frames["priv"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (
            (*ROWS[:3], "claim", "--regression"),
            "--label-column 'claim' is not a column of --private priv.csv",
        ),
        ((*ROWS[:3], "Claims", "--regression"), "did you mean 'claims'?"),
        ((*COUNTS[:5], "--exposure-column", "time"), "--exposure-column 'time' is not a column"),
        (
            (*ROWS, "--counts", "--exposure-column", "claims"),
            "--label-column and --exposure-column both name",
        ),
        ((*ROWS, "--id", "claims", "--regression"), "--label-column and --id both name the column 'claims'"),
        (
            ("--private", "none.csv", *ROWS[2:]),
            "--private none.csv cannot be read (No such file or directory)",
        ),
        (("--private", "text.csv", *COUNTS[2:]), "text.csv has feature columns that are not numbers, at the"),
        (("--private", "negative.csv", *COUNTS[2:]), "exposure"),
        (
            ("--private", "short.csv", *COUNTS[2:]),
            "--exposure-column 'years' is not a column of --private short",
        ),
        (
            (*COUNTS, "--out", "priv.csv"),
            "--out priv.csv ends in .csv, and a model is written as .safetensors",
        ),
        ((*COUNTS, "--report", "r.csv"), "--report r.csv must end in .json or .html"),
        ((*COUNTS, "--report", "scale.json", "--scale", "scale.json", "--force"), "is also an input file"),
        ((*COUNTS, "--scale", "scale.json"), "speed"),
        ((*COUNTS, "--epsilon", "0"), "argument --epsilon: '0' must be a positive finite number"),
        ((*COUNTS, "--decimal", ";"), "--decimal ; must be '.' or ','."),
        ((*COUNTS, "--separator", "ab"), "--separator ab must be one character"),
        ((*COUNTS, "--unlabeled", "pub.csv"), "--unlabeled pub.csv is not for --counts; leave it out."),
        ((*ROWS, "--hold-out-public", "3"), "--hold-out-public 3 needs --public; give both, or neither."),
        *(
            ((*ROWS, "--model", "additive", *flags.split()), f"{flags} is not for --model additive; leave")
            for flags in ("--algorithm gep", "--n-steps 5")
        ),
        ((*COUNTS, "--regression"), "--regression and --counts cannot be combined"),
        ((*ROWS, "--exposure-column", "years"), "--exposure-column years is not for classes; leave it out."),
        ((*PUBLIC, "--classes", "2,1"), "which is not one of the classes [2, 1] (--classes); name"),
        ((*PUBLIC, "--classes", "a,b"), "which is not one of the classes ['a', 'b']"),
    ],
)
def test_a_clumsy_fit_is_refused_in_one_sentence(argv, words, claims, no_noise, capsys):
    ends = () if "--out" in argv else ("--out", "m")
    said = refuse(capsys, Path(), "fit", *argv, *ends, *CHARGED)
    assert words in said and "SECRET" not in said
    assert not PrivacyLedger("l.sqlite")["d"].charges()


def test_counts_are_those_of_python_and_predictions_scale_with_exposure(claims, capsys):
    ends = ("--epsilon", 4, "--seed", SEED, "--out", "m.safetensors", "--quiet")
    form = ("--separator", ",", "--decimal", ".", "--encoding", "utf-8")
    assert run("fit", *COUNTS, *form, *ends) == 0
    reg = MixedDPPoissonRegressor(epsilon=4.0, random_state=int(SEED))
    reg.fit(claims[["km"]], claims["claims"], exposure=claims["years"])
    np.testing.assert_allclose(load("m.safetensors").coef_, reg.coef_, rtol=0, atol=1e-9)
    aside = ("--label-column", "claims", "--exposure-column", "years")
    assert run("predict", "m.safetensors", "pub.csv", *aside, "--out", "p.csv") == 0
    public = pd.read_csv("pub.csv")
    expected = reg.predict(public[["km"]], exposure=public["years"])
    np.testing.assert_allclose(pd.read_csv("p.csv")["prediction"], expected, rtol=1e-9, atol=0)
    rows = (*COUNTS, "--public", "pub.csv", "--hold-out-public", 40)
    assert run("fit", *rows, *ends[:-3], "--out", "n", "--report", "r.json") == 0
    assert json.loads(Path("r.json").read_text())["n_public"] == 60
    assert "Held-out public score\n  D2 0." in capsys.readouterr().out
    claims.drop(columns=["years", "claims"]).assign(y=np.arange(8000) % 2).to_csv("two.csv", index=False)
    assert run("fit", "--private", "two.csv", "--label-column", "y", "--out", "c", "--quiet") == 0
    capsys.readouterr()
    rows = ("c", "pub.csv", "--label-column", "claims", "--exposure-column", "years")
    assert "is for models of counts" in refuse(capsys, Path(), "predict", *rows)


def test_deviances_of_counts_are_those_of_python(claims, capsys):
    ends = ("--epsilon", 4, "--seed", SEED)
    assert run("fit", *COUNTS, *ends, "--out", "m.safetensors", "--quiet") == 0
    counts = ("--private", "priv.csv", "--label-column", "claims", "--exposure-column")
    assert run("evaluate", "m.safetensors", *counts, "years", *ends, *CHARGED, "--report", "r.json") == 0
    assert "mean Poisson deviance" in capsys.readouterr().out
    expected = private_evaluation(
        load("m.safetensors"),
        claims[["km"]],
        claims["claims"],
        exposure=claims["years"],
        epsilon=4.0,
        random_state=int(SEED),
    )
    assert json.loads(Path("r.json").read_text())["metrics"]["D2"]["value"] == expected.d2_score().value
    assert len(PrivacyLedger("l.sqlite")["d"].charges()) == 1
    negative = ("--private", "negative.csv", *counts[2:])
    for argv, words in (
        ((*negative, "years"), "exposure must hold positive numbers; leave out rows without"),
        ((*counts, "year"), "--exposure-column 'year' is not a column of --private priv.csv"),
        ((*counts, "claims"), "--label-column and --exposure-column both name the column 'claims'"),
        ((*counts[:4],), "compared with the rows that m.safetensors was trained on"),
        ((*counts, "years", "--target-bounds", "0,9"), "must be None; deviances have cells of their own"),
    ):
        said = refuse(capsys, Path(), "evaluate", "m.safetensors", *argv, *ends[:2], *CHARGED)
        assert words in said, said
    claims.drop(columns=["claims"]).assign(y=claims["km"]).to_csv("plain.csv", index=False)
    plain = ("--private", "plain.csv", "--label-column", "y")
    assert run("fit", *plain, "--regression", "--id", "years", "--out", "r", "--quiet") == 0
    capsys.readouterr()
    argv = ("r", *plain, "--target-bounds", "0,9", "--exposure-column", "years", *ends[:2])
    assert "--exposure-column" in refuse(capsys, Path(), "evaluate", *argv)
    assert len(PrivacyLedger("l.sqlite")["d"].charges()) == 1
