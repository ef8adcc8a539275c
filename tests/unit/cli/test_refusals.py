"""Bad input: code 2, one line, nothing written, no noise drawn."""

import os
import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from tests.unit.cli.conftest import refuse, run, save_npy, save_npz, save_tables, table


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--epsilon", "-1"], "argument --epsilon: '-1' must be a positive finite number"),
        (["--epsilon", "much"], "argument --epsilon: 'much' must be a positive finite number"),
        (["--delta", "1"], "argument --delta: '1' must be a number strictly between 0 and 1"),
        (["--n-steps", "2.5"], "argument --n-steps: '2.5' must be a whole number"),
        (["--seed", "-3"], "argument --seed: '-3' must be a whole number of at least 0"),
        (["--noise-multiplier", "0"], "argument --noise-multiplier: '0' must be a positive"),
        (["--algorithm", "magic"], "argument --algorithm: 'magic' must be one of 'auto', 'noisy-gd'"),
        (["--neighboring", "near"], "argument --neighboring: 'near' must be one of 'add_or"),
        (
            ["--epsilon", "1", "--n-steps", "3", "--noise-multiplier", "2"],
            "--n-steps 3 cannot all be given, since two of them determine the third; leave --epsilon out",
        ),
        (["--epsilon", "0.01", "--noise-multiplier", "0.1"], "at --noise-multiplier 0.1; use"),
        (["--noise", "discrete", "--seed", "1"], "--seed 1 cannot seed --noise discrete"),
        (["--classes", "0,1"], "pub.npz holds the label 2, which is not one of the classes [0, 1]"),
        (["--classes", "0,one"], "--classes '0,one' does not fit the public labels, which are numbers"),
        (["--classes", "0,,1"], "--classes '0,,1' has an empty name"),
        (["--label-column", "kind"], "--label-column 'kind' is for tables"),
        (["--labels", "y.npy"], "--private priv.npz holds its labels in array y and --labels y.npy"),
        (["--public-labels", "y.npy"], "--public pub.npz holds its labels in array y"),
        (["--public", "priv.npz"], "--public priv.npz is the file of --private"),
        (["--public", "none.npz"], "--public none.npz cannot be read (No such file or directory)"),
        (["--public", "."], "--public . must end in one of .csv"),
        (["--public", "rows.txt"], "--public rows.txt must end in one of .csv"),
        (["--out", "no/m.joblib"], "--out no/m.joblib: the folder no does not exist"),
        (["--out", "."], "--out . is a folder"),
        (["--out", "old"], "--out old exists; choose another name, or pass --force"),
        (["--report", "old"], "--report old exists"),
        (["--report", "m.joblib"], "--out and --report are both m.joblib"),
        (["--report", "priv.npz", "--force"], "--report priv.npz is also an input file"),
        (["--out", "x" * 300], "cannot be used (File name too long)"),
        (["--out", os.devnull, "--force"], "is a folder, a device or a pipe"),
    ],
)
def test_fit_refuses(extra, message, data, folder, no_noise, capsys):
    Path("old").write_text("old")
    error = refuse(capsys, folder, "fit", *save_npz(data), "--out", "m.joblib", *extra)
    assert message in error


def test_a_folder_that_cannot_be_written_to(data, folder, no_noise, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    error = refuse(capsys, folder, "fit", *save_npz(data), "--out", "m")
    assert "--out m: the folder . is not writable" in error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="kind"), "--label-column 'kind' is not a column of --public pub.csv"),
        (lambda f: f.drop(columns="b"), "compared with --public pub.csv, has 1 other column besides;"),
        (lambda f: f.assign(e=1.0), "--private priv.csv, compared with --public pub.csv, lacks column 'e';"),
        (
            lambda f: f.assign(a="x", c="2020-01-01"),
            "--public pub.csv has feature columns that are not numbers, ['a', 'c']; leave "
            "names of rows aside with --id, and encode text with `fit --encode`",
        ),
        (lambda f: f.assign(a=f["a"].where(f.index > 1)), "--public pub.csv contains NaN or infinity; drop"),
        (lambda f: f.assign(kind=f["kind"].where(f.index != 3)), "'kind' of --public pub.csv has empty cell"),
        (lambda f: f.assign(kind=0.5), "--public pub.csv holds numbers that are not whole;"),
        (lambda f: f.assign(kind=1), "priv.csv holds a label, which is not one of the classes [1] (the"),
        (lambda f: f.iloc[:0], "--public pub.csv has columns and no rows"),
        (lambda f: f[["kind"]], "--public pub.csv has 0 feature(s)"),
        (lambda f: f.rename(columns={"a": ""}), "has a column without a name, often the row numbers"),
    ],
)
def test_fit_refuses_tables(change, message, data, folder, no_noise, capsys):
    rows = save_tables(data)
    change(pd.read_csv("pub.csv")).to_csv("pub.csv", index=False)
    assert message in refuse(capsys, folder, "fit", *rows, "--out", "m", "--report", "r.json")


def test_the_labels_of_a_table_need_one_place(data, folder, no_noise, capsys):
    rows = save_tables(data)
    np.save("y.npy", data[1])
    error = refuse(capsys, folder, "fit", *rows[:4], "--out", "m")
    assert "either --label-column or --public-labels, and neither was given" in error
    error = refuse(capsys, folder, "fit", *rows, "--labels", "y.npy", "--out", "m")
    assert "either --label-column or --labels, and both were given" in error
    error = refuse(
        capsys, folder, "fit", *rows[:2], "--labels", "y.npy", "--public-labels", "y.npy", "--out", "m"
    )
    assert "--public-labels y.npy needs --public; give both" in error
    np.save("y.npy", data[1][:5])
    rows = ["--private", "pub.csv", "--labels", "y.npy"]
    pd.read_csv("pub.csv").drop(columns="kind").to_csv("pub.csv", index=False)
    error = refuse(capsys, folder, "fit", *rows, "--out", "m")
    assert "--private pub.csv has 15 rows and 5 labels" in error


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": np.ones(3)}, "holds the arrays ['Z'] and no X"),
        ({"X": np.ones((3, 4))}, "--private priv.npz holds no labels; give them in a .npy or .csv file"),
        ({"X": np.ones(3), "y": np.ones(3)}, "holds numbers of shape (3,)"),
        (
            {"X": np.full((3, 4), "a"), "y": np.ones(3)},
            "holds text of shape (3, 4); save a 2-D array of real",
        ),
        ({"X": np.ones((3, 4), complex), "y": np.ones(3)}, "holds complex numbers"),
        (
            {"X": np.ones((3, 4)), "y": np.ones((3, 2))},
            "array y of --private priv.npz holds numbers of shape (3, 2)",
        ),
        ({"X": np.ones((3, 4)), "y": np.array([0, 1, np.inf])}, "y of --private priv.npz holds numbers that"),
        ({"X": np.ones((3, 4)), "y": np.array([b"a", b"b", b"c"])}, "holds text of shape (3,)"),
        ({"X": np.ones((3, 4)), "y": np.arange(2)}, "--private priv.npz has 3 rows and 2 labels"),
        ({"X": np.full((3, 4), np.nan), "y": np.arange(3)}, "--private priv.npz contains NaN or infinity;"),
        ({"X": np.ones((3, 3)), "y": np.arange(3)}, "--public has 4 features and --private has 3"),
        ({"X": np.ones((1, 4)), "y": np.arange(1)}, "minimum of 2 is required"),
        ({"X": np.array([None]), "y": np.ones(1)}, "holds Python objects, which are not opened"),
        ({"X": np.ones((0, 4)), "y": np.ones(0, int)}, "--private priv.npz has 0 sample(s)"),
        (None, "needs at least two classes"),
    ],
)
def test_fit_refuses_arrays(arrays, message, data, folder, no_noise, capsys):
    rows = save_npz(data if arrays else (data[0], 0 * data[1], data[2], 0 * data[3]))
    if arrays:
        np.savez("priv.npz", **arrays)
    assert message in refuse(capsys, folder, "fit", *rows, "--out", "m", "--report", "r.json")


def test_label_files(data, folder, no_noise, capsys):
    rows = save_npy(data)
    rows[3] = "labels.csv"
    pd.DataFrame({"a": data[1], "b": data[1]}).to_csv("labels.csv", index=False)
    error = refuse(capsys, folder, "fit", *rows, "--out", "m")
    assert "--labels labels.csv has 2 columns; keep the label column alone" in error
    rows[3] = "labels.npz"
    error = refuse(capsys, folder, "fit", *rows, "--out", "m")
    assert "--labels labels.npz must be a .npy file or a table of one column" in error


@pytest.mark.parametrize(
    "name",
    ["bad.csv", "bad.csv.gz", "bad.csv.xz", "bad.parquet", "bad.npy", "bad.npz", "empty.npz", "empty.csv"],
)
def test_damaged_files(name, data, folder, no_noise, capsys):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    Path(name).write_bytes(b"" if name.startswith("empty") else b'\xff\x00"damaged')
    label = ["--label-column", "kind"] if ".csv" in name or "parquet" in name else []
    error = refuse(capsys, folder, "fit", "--private", name, *label, "--out", "m")
    assert f"skmixdp fit: --private {name} " in error
    assert any(told in error for told in ("cannot be read", "not a NumPy file", "is empty", "is not text in"))


@pytest.mark.parametrize("name", ["cut.csv.gz", "cut.csv.xz", "cut.npz", "cut.npy"])
def test_files_that_were_cut_off(name, data, folder, no_noise, capsys):
    save_tables(data, ".csv.gz")
    save_tables(data, ".csv.xz")
    save_npz(data)
    save_npy(data)
    whole = Path(name.replace("cut", "priv")).read_bytes()
    Path(name).write_bytes(whole[: len(whole) // 2])
    label = ["--label-column", "kind"] if ".csv" in name else []
    error = refuse(capsys, folder, "fit", "--private", name, *label, "--out", "m")
    assert f"--private {name} cannot be read (" in error


def test_pickled_arrays_are_not_opened(folder, no_noise, capsys):
    np.save("rows.npy", np.array([{"a": 1}]), allow_pickle=True)
    error = refuse(capsys, folder, "fit", "--private", "rows.npy", "--labels", "rows.npy", "--out", "m")
    assert "holds Python objects, which are not opened because they could run code" in error


def test_wrongly_named_numpy_files(data, folder, no_noise, capsys):
    save_npz(data)
    save_npy(data)
    Path("priv.npz").rename("archive.npy")
    Path("priv.npy").rename("array.npz")
    error = refuse(capsys, folder, "fit", "--private", "archive.npy", "--labels", "y.npy", "--out", "m")
    assert "archive.npy is not one array but an archive of arrays; rename it to end in .npz" in error
    error = refuse(capsys, folder, "fit", "--private", "array.npz", "--out", "m")
    assert "array.npz is one array and not an archive; rename it to end in .npy" in error


def test_discrete_noise_without_opendp(data, folder, no_noise, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    error = refuse(capsys, folder, "fit", *save_npz(data), "--noise", "discrete", "--out", "m")
    assert "--noise discrete needs the opendp package; install skmixdp[discrete]" in error


def test_parquet_without_pyarrow(data, folder, no_noise, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    args = ["--private", "rows.parquet", "--label-column", "kind", "--out", "m"]
    error = refuse(capsys, folder, "fit", *args)
    assert "--private rows.parquet needs the pyarrow package, which is not installed" in error


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["none.joblib", "pub.csv"], "MODEL none.joblib cannot be read (No such file or directory)"),
        (["pub.csv", "pub.csv"], "MODEL pub.csv is not a model saved by `fit` or with joblib"),
        (["list.pkl", "pub.csv"], "MODEL list.pkl holds a list without predict; give a fitted classifier"),
        (["m.joblib", "none.csv"], "ROWS none.csv cannot be read"),
        (
            ["m.joblib", "few.csv"],
            "ROWS few.csv, compared with the rows that m.joblib was trained on, lacks column 'b';",
        ),
        (
            ["m.joblib", "coded.csv"],
            "coded.csv, compared with the rows that m.joblib was trained on, lacks column 'a' and has 2 "
            "other columns besides; give it the same feature columns, by the names in its first line if it "
            "is a CSV file (their order may differ), and leave other columns aside with --label",
        ),
        (["unfitted.joblib", "few.npy"], "LogisticRegression without n_features_in_; give a fitted"),
        (["m.joblib", "few.npy"], "ROWS few.npy has 3 features and MODEL m.joblib was trained on 4"),
        (["m.joblib", "few.npy", "--label-column", "kind"], "ROWS few.npy has no columns; drop it"),
        (["m.joblib", "pub.csv", "--out", "p.parquet"], "--out p.parquet must end in .csv"),
        (["m.joblib", "pub.csv", "--out", "no/p.csv"], "the folder no does not exist"),
        (["m.joblib", "pub.csv", "--out", "few.csv"], "--out few.csv exists"),
        (["m.joblib", "pub.csv", "--out", "pub.csv", "--force"], "--out pub.csv is also an input file"),
    ],
)
def test_predict_refuses(argv, message, model, data, folder, capsys):
    capsys.readouterr()
    Path("list.pkl").write_bytes(pickle.dumps([1]))
    pd.DataFrame(data[0][:, :3], columns=list("acd")).to_csv("few.csv", index=False)
    np.save("few.npy", data[0][:, :3])
    table(data[0], data[1], columns=("e", "b", "c", "d")).to_csv("coded.csv", index=False)
    joblib.dump(LogisticRegression(), "unfitted.joblib")
    assert message in refuse(capsys, folder, "predict", *argv)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("list.pkl", "a list without a privacy report"),
        ("none.joblib", "cannot be read"),
        ("none.sqlite", "is not there"),
        ("text.sqlite", "is not a ledger"),
    ],
)
def test_report_refuses(name, message, folder, capsys):
    Path("list.pkl").write_bytes(pickle.dumps([1]))
    Path("text.sqlite").write_text("text " * 1000)
    assert message in refuse(capsys, folder, "report", name)


def test_no_command_and_a_wrong_one(folder, capsys):
    for argv in ([], ["train"], ["report", "m.joblib", "--js"]):
        assert run(*argv) == 2
        error = capsys.readouterr().err
        assert error.startswith(("skmixdp: ", "skmixdp report: ")) and error.count("\n") == 1
