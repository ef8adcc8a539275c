"""What the tests of the command line share."""

import joblib
import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression
from tests.private_names import main
from tests.rounding import assert_close

SEED = "7"
WORDS = np.array(["cat", "dog", "eel"])


def make_rows(n, seed):
    """Rows of three well-separated classes with four features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 4)) + 4 * np.eye(3, 4)[y]
    # Short numbers are read from text exactly by all versions of pandas.
    return X.round(3), y


@pytest.fixture
def data():
    X, y = make_rows(90, 0)
    X_pub, y_pub = make_rows(15, 1)
    return X, y, X_pub, y_pub


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*argv):
    """The exit code of a command line; argparse leaves by SystemExit."""
    try:
        return main([str(arg) for arg in argv])
    except SystemExit as end:
        return end.code


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def refuse(capsys, folder, *argv):
    """Run a command that must end with code 2, one line on stderr and no trace; that line."""
    before = contents(folder)
    assert run(*argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"skmixdp {argv[0]}: ")
    assert contents(folder) == before
    return captured.err.strip()


def table(X, y, columns=("a", "b", "c", "d")):
    return pd.DataFrame(X, columns=list(columns)).assign(kind=y)


def save_tables(data, ending=".csv", labels=lambda y: WORDS[y]):
    X, y, X_pub, y_pub = data
    for name, rows, targets in (("priv", X, y), ("pub", X_pub, y_pub)):
        frame = table(rows, labels(targets))
        if ending in (".parquet", ".feather"):
            getattr(frame, f"to_{ending[1:]}")(name + ending)
        else:
            frame.to_csv(name + ending, index=False)
    return ["--private", f"priv{ending}", "--public", f"pub{ending}", "--label-column", "kind"]


def save_npz(data):
    X, y, X_pub, y_pub = data
    np.savez("priv.npz", X=X, y=y)
    np.savez("pub.npz", X=X_pub, y=y_pub)
    return ["--private", "priv.npz", "--public", "pub.npz"]


def save_npy(data, label_ending=".npy"):
    X, y, X_pub, y_pub = data
    np.save("priv.npy", X)
    np.save("pub.npy", X_pub)
    for name, labels in (("priv_y", y), ("pub_y", y_pub)):
        if label_ending == ".npy":
            np.save(name, labels)
        else:
            pd.DataFrame({"label": labels}).to_csv(name + label_ending, index=False)
    return [
        *("--private", "priv.npy", "--labels", f"priv_y{label_ending}"),
        *("--public", "pub.npy", "--public-labels", f"pub_y{label_ending}"),
    ]


def twin(data, labels=lambda y: y, names=None, X_unlabeled=None, **params):
    """The estimator that the command line should have trained."""
    X, y, X_pub, y_pub = data
    if names is not None:
        X, X_pub = pd.DataFrame(X, columns=names), pd.DataFrame(X_pub, columns=names)
    params = {"random_state": int(SEED), **params}
    return MixedDPLogisticRegression(**params).fit(
        X, labels(y), X_pub=X_pub, y_pub=labels(y_pub), X_unlabeled=X_unlabeled
    )


def assert_same(model, other):
    # A data frame may lie in memory in another order, which changes the last bits of sums.
    assert_close(model.coef_, other.coef_, 1e-9)
    assert_close(model.intercept_, other.intercept_, 1e-9)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert model.privacy_ == other.privacy_


@pytest.fixture
def model(data, folder):
    """A model trained on named columns, in m.joblib."""
    rows = save_tables(data)
    assert run("fit", *rows, "--seed", SEED, "--out", "m.joblib", "--quiet") == 0
    return joblib.load("m.joblib")
