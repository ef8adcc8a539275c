"""What the commands print and write, and what they leave behind when that fails."""

import errno
import functools
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import model_card
from tests.private_names import dotted_path, outputs
from tests.rounding import assert_close
from tests.stand_ins import Terminal
from tests.unit.cli.conftest import SEED, WORDS, contents, refuse, run, save_npz, save_tables, twin

#: What a fit with --seed says on standard error, --quiet or not.
SEEDED = (
    "skmixdp fit: warning: --seed is set, so whoever knows it can remove the noise and the result is NOT "
    "private; do not set it for results that will be published.\n"
)


@pytest.mark.slow
def test_the_whole_way_in_a_process_of_its_own(data, folder, capsys):
    rows = save_tables(data)
    args = [*rows, "--epsilon", "1", "--out", "m.joblib", "--report", "r.json"]
    command = [sys.executable, "-m", "skmixdp", "fit", *args]
    fit = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert (fit.returncode, fit.stderr) == (0, "")
    assert fit.stdout.startswith("Privacy report\n  guarantee")
    assert "(1, 1e-05)-differential privacy" in fit.stdout
    assert json.loads(Path("r.json").read_text())["private"] is True
    assert run("predict", "m.joblib", "pub.csv", "--label-column", "kind") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction" and len(lines) == 16 and set(lines[1:]) <= set(WORDS)
    assert run("report", "m.joblib") == 0
    assert capsys.readouterr().out == fit.stdout
    assert run("fit", *args) == 2
    assert capsys.readouterr().err.startswith("skmixdp fit: --out m.joblib exists")
    assert sorted(contents(folder)) == ["m.joblib", "priv.csv", "pub.csv", "r.json"]


def test_fit_prints_its_report_and_writes_it(data, folder, capsys):
    args = [*save_npz(data), "--seed", SEED, "--out", "m", "--report", "r.json"]
    assert run("fit", *args) == 0
    captured = capsys.readouterr()
    report = joblib.load("m").privacy_
    assert captured.out == f"{report}\n" and captured.err == SEEDED
    assert "NOT PRIVATE" in captured.out
    assert json.loads(Path("r.json").read_text()) == report.to_dict()


def test_quiet_fit_prints_nothing_but_that_it_is_not_private(data, folder, capsys):
    assert run("fit", *save_npz(data), "--seed", SEED, "--out", "m", "--quiet") == 0
    assert capsys.readouterr() == ("", SEEDED)


def test_outputs_have_the_permissions_of_any_new_file(model, folder):
    Path("plain").touch()
    assert Path("m.joblib").stat().st_mode == Path("plain").stat().st_mode


def test_report_forms(model, capsys):
    capsys.readouterr()
    for form, text in (
        ([], str(model.privacy_)),
        (["--json"], model.privacy_.to_json()),
        (["--html"], model_card(model).to_html()),
    ):
        assert run("report", "m.joblib", *form) == 0
        assert capsys.readouterr() == (f"{text}\n", "")


def test_several_labels_have_a_column_each(folder, data):
    X, y, _, _ = data
    labels = np.stack([y == 0, y > 0], axis=1).astype(int)
    clf = MixedDPLogisticRegression(epsilon=50.0, classes=["old", "new"]).fit(X, labels)
    clf.save("m.safetensors")
    np.save("rows.npy", X)
    assert run("predict", "m.safetensors", "rows.npy", "--proba", "--out", "p.csv") == 0
    frame = pd.read_csv("p.csv")
    assert list(frame.columns) == ["prediction_old", "prediction_new", "proba_old", "proba_new"]
    np.testing.assert_array_equal(frame.iloc[:, :2], clf.predict(X))
    assert_close(frame.iloc[:, 2:], clf.predict_proba(X), 1e-12)


def test_probabilities(model, data, capsys):
    capsys.readouterr()
    assert run("predict", "m.joblib", "priv.csv", "--label-column", "kind", "--proba", "--out", "p.csv") == 0
    assert capsys.readouterr() == ("", "")
    frame = pd.read_csv("p.csv")
    assert list(frame.columns) == ["prediction", "proba_cat", "proba_dog", "proba_eel"]
    X = pd.DataFrame(data[0], columns=list("abcd"))
    assert_close(frame.iloc[:, 1:], model.predict_proba(X), 1e-12)


def test_prediction_aligns_columns_and_needs_no_labels(model, data, capsys):
    capsys.readouterr()
    pd.DataFrame(data[0], columns=list("abcd"))[list("dbca")].to_csv("new.csv", index=False)
    assert run("predict", "m.joblib", "new.csv", "--label-column", "kind") == 0
    X = pd.DataFrame(data[0], columns=list("abcd"))
    assert capsys.readouterr().out.split() == ["prediction", *model.predict(X)]


def test_prediction_leaves_labels_of_archives_aside(model, data, capsys):
    capsys.readouterr()
    np.savez("new.npz", X=data[0], y=np.array([None]))
    assert run("predict", "m.joblib", "new.npz") == 0
    captured = capsys.readouterr()
    assert captured.out.split()[1:] == twin(data, lambda y: WORDS[y]).predict(data[0]).tolist()
    assert captured.err.startswith("skmixdp predict: warning: X does not have valid feature names")
    assert captured.err.count("\n") == 1


def test_other_classifiers_can_predict_too(data, folder, capsys):
    joblib.dump(LogisticRegression().fit(data[0], data[1]), "m.joblib")
    save_npz(data)
    assert run("predict", "m.joblib", "pub.npz", "--proba") == 0
    assert "no privacy" not in capsys.readouterr().out
    assert "LogisticRegression without a privacy report" in refuse(capsys, folder, "report", "m.joblib")


def test_force_replaces_outputs(model, data, capsys):
    Path("r.json").write_text("old")
    rows = save_tables(data)
    args = ["fit", *rows, "--epsilon", "3", "--out", "m.joblib", "--report", "r.json", "--force", "--quiet"]
    assert run(*args) == 0
    assert joblib.load("m.joblib").privacy_.epsilon == pytest.approx(3, rel=1e-3)
    assert json.loads(Path("r.json").read_text())["n_private"] == 90


def test_warnings_are_single_lines_and_do_not_stop(data, folder, capsys):
    save_npz(data)
    assert run("fit", "--private", "priv.npz", "--delta", "0.1", "--out", "m", "--quiet") == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("skmixdp fit: warning: ") for line in lines)
    assert "classes were read from the private labels" in lines[0]
    assert "; pass --classes [...] or public rows." in lines[0]
    assert "--delta 0.1 is not below 1/n" in lines[1]


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["report"]])
def test_help(command, capsys):
    assert run(*command, "--help") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"usage: {' '.join(['python -m skmixdp', *command])} ")
    if command in (["predict"], ["report"]):
        assert "load only models you trust" in " ".join(captured.out.split())
    if command == ["fit"]:
        assert "reproducible and NOT private" in " ".join(captured.out.split())
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("skmixdp ")


def test_the_script_and_the_module_are_one_program(capsys, monkeypatch):
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    module, _, function = project["project"]["scripts"]["skmixdp"].partition(":")
    program = getattr(importlib.import_module(module), function)
    for name, shown in (("/usr/bin/skmixdp", "skmixdp"), ("/x/__main__.py", "python -m skmixdp")):
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit) as end:
            program()
        said = capsys.readouterr().out
        assert end.value.code == 0 and said.startswith(f"usage: {shown} ")
    assert "exit codes: 0 done, 2 bad input" in said


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("fit", "--eps", "1"), "unrecognized arguments: --eps 1, did you mean --epsilon?; see"),
        (("fit", "--label", "y"), "unrecognized arguments: --label y, did you mean --label-column?; see"),
        (("fit", "--magic"), "unrecognized arguments: --magic; see"),
        (("predict", "m", "r", "--probas"), "unrecognized arguments: --probas, did you mean --proba?; see"),
    ],
)
def test_a_misspelt_flag(argv, message, capsys):
    needed = ("--private", "p.csv", "--out", "m") if argv[0] == "fit" else ()
    assert run(*argv, *needed) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"skmixdp {argv[0]}: {message}") and said.endswith(f"skmixdp {argv[0]} --help.\n")


def test_the_documentation_is_true(folder, capsys):
    """Its blocks run in order; what it shows of the output is there."""
    page = (Path(__file__).parents[3] / "docs" / "command_line.md").read_text()
    names, shown = {}, []
    for kind, block in re.findall(r"```(python|bash|text)\n(.*?)```", page, flags=re.DOTALL):
        if kind == "python":
            exec(block, names)
        elif kind == "bash":
            shown.clear()
            for line in block.splitlines():
                program, *argv = shlex.split(line)
                assert program == "skmixdp" and run(*argv) == 0, line
                captured = capsys.readouterr()
                # Noise without a seed may, once in a long while, leave nothing but what public rows say.
                assert [said for said in captured.err.splitlines() if "rows suffice" not in said] == [], line
                shown.append(captured.out)
        else:
            assert shown[-1].startswith(block)
    columns = ["prediction", *(f"proba_{digit}" for digit in range(10))]
    assert list(pd.read_csv("predictions.csv").columns) == columns


def full_disk(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_full_disk_leaves_nothing_behind(force, data, folder, capsys, monkeypatch):
    rows = save_npz(data)
    if force:
        Path("m").write_text("old model")
    monkeypatch.setattr(outputs.os, "fsync", full_disk)
    error = refuse(capsys, folder, "fit", *rows, "--out", "m", "--report", "r.json", *force)
    assert "m and r.json could not be written (No space left on device); fix that" in error


@pytest.mark.parametrize("old", [(), ("m",), ("m", "r.json")])
def test_a_failure_between_the_two_outputs_leaves_no_report_of_another_run(
    old, data, folder, capsys, monkeypatch
):
    rows = save_npz(data)
    for name in old:
        Path(name).write_text(f"old {name}")
    replace = Path.replace

    def fail_on_the_report(self, target):
        return full_disk() if Path(target).name == "r.json" else replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_on_the_report)
    assert run("fit", *rows, "--out", "m", "--report", "r.json", "--force") == 2
    assert "could not be written" in capsys.readouterr().err
    assert joblib.load("m").privacy_ and not Path("r.json").exists() and not [*Path().glob(".*.tmp")]


def test_a_failure_that_is_a_defect_is_placed_and_leaves_nothing(data, folder, monkeypatch, capsys):
    rows = save_npz(data)
    before = contents(folder)

    def defect(model, file):
        file.write(b"half a model")
        raise ZeroDivisionError

    monkeypatch.setattr(joblib, "dump", defect)
    assert run("fit", *rows, "--out", "m", "--report", "r.json", "--quiet") == 1
    said = capsys.readouterr().err.splitlines()
    assert re.match(r"skmixdp fit: line \d+ of skmixdp\._cli\.\w+ met an error that is left out", said[-1])
    assert contents(folder) == before


def test_an_interrupted_fit_leaves_nothing(data, folder, capsys, monkeypatch):
    rows = save_npz(data)
    before = contents(folder)

    @functools.wraps(MixedDPLogisticRegression.fit)
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(MixedDPLogisticRegression, "fit", interrupt)
    assert run("fit", *rows, "--out", "m") == 130
    assert capsys.readouterr() == ("", "skmixdp fit: interrupted.\n")
    assert contents(folder) == before


@pytest.mark.slow
def test_a_reader_that_stops_reading_is_no_traceback(model, folder):
    pd.DataFrame(np.ones((50_000, 4)), columns=list("abcd")).to_csv("many.csv", index=False)
    command = [sys.executable, "-m", "skmixdp", "predict", "m.joblib", "many.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_quiet_shows_no_bar_on_a_terminal_however_long_the_fit_takes(data, folder, monkeypatch):
    monkeypatch.setattr(dotted_path("process._PATIENCE"), 1e-9)
    args = ["fit", *save_tables(data), "--epsilon", "1", "--out", "m.joblib", "--force"]
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run(*args) == 0
    assert "MixedDPLogisticRegression" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run(*args, "--quiet") == 0
    assert sys.stderr.getvalue() == ""


def test_what_a_fit_prints_does_not_depend_on_private_labels(data, folder, capsys):
    """An accuracy on the private rows, or a count of them by class, would be a release without a budget."""
    X, y, *public = data
    printed = []
    for labels in (y, np.where(np.arange(len(y)) % 9 == 0, (y + 1) % 3, y)):
        rows = save_npz((X, labels, *public))
        assert run("fit", *rows, "--seed", SEED, "--out", f"{len(printed)}.joblib") == 0
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1] and "epsilon" not in printed[0].err
    one, other = (joblib.load(f"{number}.joblib").coef_ for number in range(2))
    assert not np.array_equal(one, other)
