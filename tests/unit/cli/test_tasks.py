"""Regression, class weights, held-out public rows and private evaluation at the command line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from skmixdp import MixedDPRidge
from skmixdp.model_selection import private_evaluation
from skmixdp.privacy import PrivacyLedger
from tests.private_names import GaussianMechanism, load_model
from tests.unit.cli.conftest import SEED, WORDS, assert_same, refuse, run, save_npz, save_tables, table, twin

ENDS = ("--seed", SEED, "--out", "m", "--quiet")


@pytest.fixture
def targets(folder):
    """Private and public tables with a number to predict, in the column ``kind``; the arrays."""
    rng = np.random.default_rng(0)
    arrays = []
    for name, n in (("priv", 900), ("pub", 60)):
        X = rng.standard_normal((n, 4)).round(3)
        y = (50 + 10 * X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(n)).round(3)
        table(X, y).to_csv(f"{name}.csv", index=False)
        arrays += [pd.DataFrame(X, columns=list("abcd")), y]
    return arrays


PRIVATE = ("--private", "priv.csv", "--label-column", "kind")
PUBLIC = (*PRIVATE, "--public", "pub.csv")


def test_a_regression_is_the_one_that_python_trains(targets, capsys):
    X, y, X_pub, y_pub = targets
    assert run("fit", *PUBLIC, "--regression", *ENDS) == 0
    other = MixedDPRidge(random_state=int(SEED)).fit(X, y, X_pub=X_pub, y_pub=y_pub)
    model = joblib.load("m")
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=1e-9)
    assert model.privacy_ == other.privacy_
    assert run("predict", "m", "priv.csv", "--label-column", "kind", "--out", "p.csv") == 0
    predicted = pd.read_csv("p.csv")["prediction"]
    np.testing.assert_allclose(predicted, other.predict(X), rtol=0, atol=1e-6)


def test_a_regression_without_public_rows_takes_bounds_of_its_targets(targets, capsys):
    X, y = targets[:2]
    assert run("fit", *PRIVATE, "--regression", "--target-bounds", "10,90", *ENDS) == 0
    other = MixedDPRidge(target_center=50.0, target_scale=20.0, random_state=int(SEED)).fit(X, y)
    np.testing.assert_allclose(joblib.load("m").coef_, other.coef_, rtol=0, atol=1e-9)
    capsys.readouterr()
    assert run("fit", *PRIVATE, "--regression", "--out", "n", "--quiet") == 0
    assert "pass --target-bounds from prior knowledge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "weights"), [("balanced", "balanced"), ('eel=2.5,"cat"=1', {"eel": 2.5, "cat": 1.0})]
)
def test_class_weights_reach_the_estimator(text, weights, data, folder):
    assert run("fit", *save_tables(data), "--epsilon", 15, "--class-weight", text, *ENDS) == 0
    terms = {"names": list("abcd"), "epsilon": 15.0, "class_weight": weights}
    assert_same(joblib.load("m"), twin(data, lambda y: WORDS[y], **terms))


@pytest.mark.parametrize("encode", [(), ("--encode", "public")])
def test_public_rows_are_held_out_and_scored_at_no_cost(encode, data, folder, capsys):
    rows = save_tables(data)
    assert run("fit", *rows, *encode, "--hold-out-public", 5, *ENDS[:-1]) == 0
    model, said = joblib.load("m"), capsys.readouterr().out
    assert model.privacy_.n_public == 10 and model.privacy_.epsilon == pytest.approx(1.0, rel=1e-3)
    _, held = train_test_split(np.arange(15), test_size=5, random_state=int(SEED))
    public = pd.read_csv("pub.csv").iloc[held]
    score = model.score(public[list("abcd")], public["kind"])
    assert said.endswith(
        f"Held-out public score\n  accuracy {score:.3f} on 5 public rows that the fit has not seen, at no "
        "cost\n"
    )


def test_a_regression_is_scored_on_held_out_rows_too(targets, capsys):
    assert run("fit", *PUBLIC, "--regression", "--hold-out-public", 20, *ENDS[:-1]) == 0
    assert "Held-out public score\n  R2 0." in capsys.readouterr().out


@pytest.mark.parametrize("encode", [(), ("--encode", "public")])
def test_an_evaluation_is_that_of_python_and_charges_the_same_ledger(encode, data, folder, capsys):
    rows = save_tables(data)
    ledger = ("--ledger", "l.sqlite", "--dataset", "d")
    assert run("fit", *rows, *encode, *ledger, "--ledger-epsilon", 9, "--out", "m", "--quiet") == 0
    told = (*rows[:2], *rows[4:], "--epsilon", 2, "--seed", SEED)
    capsys.readouterr()
    assert run("evaluate", "m", *told, *ledger, "--report", "r.json") == 0
    frame, model = pd.read_csv("priv.csv"), joblib.load("m")
    X, y = frame[list("abcd")], frame["kind"]
    found = private_evaluation(model, X, y, epsilon=2, random_state=int(SEED))
    said = json.loads(Path("r.json").read_text())
    assert said["metrics"]["accuracy"]["value"] == found.share().value
    assert said["privacy"]["epsilon"] == found.privacy.epsilon and not said["privacy"]["private"]
    assert capsys.readouterr().out.startswith(str(found).split("\n  epsilon")[0])
    charges = PrivacyLedger("l.sqlite")["d"].charges()
    assert [charge.description.split(",")[0] for charge in charges] == [
        "MixedDPLogisticRegression",
        "private_evaluation",
    ]
    assert run("evaluate", "m", *told, "--report", "r.html", "--quiet") == 0
    page = Path("r.html").read_text()
    assert "<th>accuracy</th>" in page and "95% intervals for rows drawn like these" in page
    assert all(f"<td>{value}</td>" in page for _, value in found.privacy._rows()[:4])
    assert run("evaluate", "m", *told, *ledger, "--epsilon", 9) == 2
    assert len(PrivacyLedger("l.sqlite")["d"].charges()) == 2


def test_a_regression_and_persons_are_evaluated(targets, capsys):
    assert run("fit", *PUBLIC, "--regression", *ENDS) == 0
    pd.read_csv("priv.csv").assign(who=np.arange(900) // 3).to_csv("visits.csv", index=False)
    rows = ("--private", "visits.csv", "--label-column", "kind", "--group-column", "who", "--epsilon", 3)
    assert run("evaluate", "m", *rows, "--target-bounds", "10,90") == 0
    said = capsys.readouterr().out
    assert ("R2 " in said and "300 persons of who" in said) or "300 persons" in said
    assert "--target-bounds None must be two" in refuse(capsys, Path(), "evaluate", "m", *rows)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--regression", "--classes", "a,b"), "--classes a,b is not for --regression; leave it out"),
        (("--regression", "--class-weight", "balanced"), "--class-weight balanced is not for --regression"),
        (("--target-bounds", "0,1"), "--target-bounds 0,1 is not for classes"),
        (("--regression", "--target-bounds", "0,1"), "--target-bounds is for --regression without --public"),
        (("--regression", "--target-bounds", "1,0"), "must be two numbers LOW,HIGH, the lower one first"),
        (("--class-weight", "cat"), "--class-weight 'cat' must be pairs such as A=1"),
        (("--class-weight", "cow=1"), "which is not one of the classes"),
        (("--hold-out-public", "15"), "--hold-out-public 15 leaves none of 15 public rows; hold out fewer"),
        (("--regression",), "the label column 'kind' of --public pub.csv holds text of shape (15,); save"),
    ],
)
def test_fit_refuses(argv, message, data, folder, no_noise, capsys):
    assert message in refuse(capsys, folder, "fit", *save_tables(data), *argv, "--out", "m")


def test_evaluate_refuses(model, capsys):
    argv = ("--private", "priv.csv", "--label-column", "kind", "--epsilon", 1)
    for more, message in (
        (("--quiet",), "--quiet needs --report; give both"),
        (("--report", "r.txt"), "--report r.txt must end in .json or .html"),
        (("--seed", 1, "--noise", "discrete"), "--seed 1 cannot seed --noise discrete"),
        (("--group-column", "who"), "--group-column 'who' is not a column of --private priv.csv"),
        (("--target-bounds", "0,1"), "--target-bounds (0.0, 1.0) must be"),
    ):
        assert message in refuse(capsys, Path(), "evaluate", "m.joblib", *argv, *more)


def test_a_message_names_the_public_columns_that_are_missing(data, folder, no_noise, capsys):
    """Names of the private file alone may be entries of a row, and are not named."""
    rows = save_tables(data)
    secret = pd.read_csv("priv.csv").rename(columns={"c": "SECRET"}).assign(SECRET="text")
    secret.to_csv("priv.csv", index=False)
    error = refuse(capsys, folder, "fit", *rows, "--out", "m")
    assert "lacks column 'c' and has 1 other column besides" in error and "SECRET" not in error


def test_evaluation_names_the_columns_of_the_training_that_are_missing(model, capsys):
    """What prediction says: ``test_refusals.py::test_predict_refuses``."""
    pd.read_csv("pub.csv").drop(columns="c").to_csv("new.csv", index=False)
    argv = ("--private", "new.csv", "--label-column", "kind", "--epsilon", 1)
    assert "lacks column 'c'; give it" in refuse(capsys, Path(), "evaluate", "m.joblib", *argv)


@pytest.mark.parametrize("how", ["module", "script"])
def test_an_interrupt_during_the_start_is_no_traceback(how, folder):
    """Ctrl-C as soon as scikit-learn is looked for, which is long before any command runs."""
    Path("sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(name, path, target=None):\n"
        "        if name == 'sklearn':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt)\n"
    )
    Path("skmixdp").write_text("from skmixdp._cli.main import main\nmain()\n")
    root = str(Path(load_model.__code__.co_filename).parents[2])
    called = ["-m", "skmixdp"] if how == "module" else ["./skmixdp"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), root])}
    done = subprocess.run(
        [sys.executable, *called, "--version"],
        capture_output=True,
        text=True,
        env=env,
        check=False,
        cwd="/" if how == "module" else folder,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


# -- rows without labels ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".npz", "encoded"])
def test_rows_without_labels_reach_the_estimator(ending, data, folder):
    X_pub = data[2]
    more = np.vstack([X_pub + 0.25, X_pub - 0.25, X_pub])
    if ending == ".npz":
        np.savez("more.npz", X=more)
        rows, names = save_npz(data), None
    else:
        names = ["a", "b", "c", "d"]
        # Another order of columns, and labels that are left aside.
        table(more, np.zeros(len(more))).iloc[:, ::-1].to_csv("more.csv", index=False)
        rows = save_tables(data, ".csv")
    options = ["--encode", "public"] if ending == "encoded" else []
    file = f"more{'.npz' if ending == '.npz' else '.csv'}"
    assert run("fit", *rows, "--unlabeled", file, *options, *ENDS) == 0
    model = joblib.load("m")
    said = " ".join(str(getattr(model, "privacy_", "")).split())
    assert "45 rows known to be public without labels" in said
    if ending != "encoded":
        unlabeled = more if names is None else pd.DataFrame(more, columns=names)
        other = twin(
            data, (lambda y: y) if names is None else (lambda y: WORDS[y]), names=names, X_unlabeled=unlabeled
        )
        assert_same(model, other)


def test_bad_rows_without_labels_are_refused(data, folder, no_noise, capsys):
    rows = save_tables(data, ".csv")
    table(data[2], data[3]).rename(columns={"a": "z"}).to_csv("more.csv", index=False)
    Path("text.csv").write_text("a,b,c,d\n1,2,3,x\n")
    np.savez("wide.npz", X=np.zeros((5, 9)))
    for file, message in (
        ("priv.csv", "is the file of --private, and public rows are not protected"),
        ("more.csv", "compared with --unlabeled more.csv, lacks column 'z'"),
        ("text.csv", "--unlabeled text.csv has feature columns that are not numbers, ['d']"),
        ("wide.npz", "--unlabeled"),
        ("none.csv", "--unlabeled none.csv"),
    ):
        assert run("fit", *rows, "--unlabeled", file, "--out", "m", "--quiet") != 0
        assert message in capsys.readouterr().err
    assert not Path("m").exists()


# -- fits that are resumed -------------------------------------------------------------------

CHARGED = ("--ledger", "l.sqlite", "--dataset", "people", "--ledger-epsilon", 3)


@pytest.mark.parametrize("options", [(), ("--encode", "public")])
def test_an_interrupted_command_goes_on_without_a_second_charge(options, data, folder, monkeypatch):
    rows = save_tables(data, ".csv")
    command = ("fit", *rows, *CHARGED, *options, "--checkpoint", "c", "--out", "m", "--quiet")
    original, passes = GaussianMechanism.admit, []

    def admit(self, *arguments):
        passes.append(1)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(GaussianMechanism, "admit", admit)
    assert run(*command) == 130
    assert Path("c").exists() and not Path("m").exists()
    assert run(*command) == 0
    assert Path("m").exists() and not Path("c").exists()
    (charge,) = PrivacyLedger("l.sqlite")["people"].charges()
    assert charge.outcome == "finished"
    assert (
        len(passes) == PrivacyLedger("l.sqlite")["people"]._last_step(charge) + 1
    )  # the interrupted one twice


def test_checkpoints_that_are_of_no_use_are_refused(data, folder, no_noise, capsys):
    rows = save_tables(data, ".csv")
    Path("text").write_text("no checkpoint")
    for options, message in (
        (("--checkpoint", "c"), "--checkpoint c needs --ledger; give both"),
        (
            (*CHARGED, "--checkpoint", "c", "--seed", 1),
            "--checkpoint c and --seed 1 cannot be combined, since the fit could not",
        ),
        (
            (*CHARGED, "--checkpoint", "c", "--hold-out-public", 5),
            "--checkpoint c and --hold-out-public 5 cannot be combined",
        ),
        ((*CHARGED, "--checkpoint", "text"), "text is no checkpoint of a fit"),
    ):
        assert run("fit", *rows, *options, "--out", "m", "--quiet") != 0
        assert message in capsys.readouterr().err
    assert Path("text").read_text() == "no checkpoint" and not Path("c").exists()


def test_an_evaluation_by_groups(data, folder, capsys):
    rows = save_tables(data)
    assert run("fit", *rows, "--out", "m", "--quiet") == 0
    values = ["1", "2"]  # which no row has
    told = (*rows[:2], *rows[4:], "--epsilon", 2, "--seed", SEED)
    capsys.readouterr()
    by = ("--by", "a", "--by-values", ",".join(values))
    assert run("evaluate", "m", *told, *by, "--report", "r.json") == 0
    said = json.loads(Path("r.json").read_text())
    assert list(said["metrics"]) == [*values, "other"] and set(values) <= set(said["unknown"])
    assert "GroupedEvaluation of 3 groups" in capsys.readouterr().out
    assert run("evaluate", "m", *told, *by, "--report", "r.html", "--quiet") == 0
    for more, words in ((by[:2], "needs --by-values"), ((*by, "--by", "a,b"), "one or two columns")):
        assert run("evaluate", "m", *told, *more) == 2
        assert words in capsys.readouterr().err
