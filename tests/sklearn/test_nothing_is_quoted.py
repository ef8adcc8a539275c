"""No message quotes a private value: a secret is planted in bad private rows, and looked for in what is said.

What is looked through: the traceback as Python prints it (chained exceptions included), warnings, standard
output and error, and log records. The row in which the secret is has a number that occurs nowhere else.
"""

import functools
import logging
import sys
import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skmixdp import (
    MixedDPLogisticRegression,
    MixedDPRidge,
    RowMapping,
    ZerothOrderDPModuleClassifier,
    fit_many,
)
from skmixdp.algorithms import PAZO
from skmixdp.model_selection import PrivateSearchCV, public_cross_val_score, public_params
from skmixdp.preprocessing import NoisyScaler, PublicOnly, PublicWhitener, RowNormalizer, check_pipeline
from tests.private_names import as_items, main
from tests.secrets import NUMBER, ROW, TEXT, Heard, changed, refused

N_ROWS, N_FEATURES = 300, 4
CLASSES = ["ant", "bee", "cat"]


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, N_FEATURES)) + 3 * np.eye(3, N_FEATURES)[y], np.array(CLASSES)[y]


X, Y = make_rows(N_ROWS, 0)
X_PUB, Y_PUB = make_rows(60, 1)
T, T_PUB = X @ [1.0, 2.0, 3.0, 4.0], X_PUB @ [1.0, 2.0, 3.0, 4.0]
PUBLIC = public_params(X_PUB, Y_PUB)
NAMES = list("abcd")


def ragged():
    rows = X.tolist()
    rows[ROW] = [NUMBER, 1.0]
    return rows


BAD_X = {
    "text": changed(X, (ROW, 1), TEXT, object),
    "bytes": changed(X, (ROW, 1), TEXT.encode(), object),
    "text array": changed(X.astype("U20"), (ROW, 1), TEXT),
    "NaN next to it": changed(X, (ROW, slice(0, 2)), [NUMBER, np.nan]),
    "infinity next to it": changed(X, (ROW, slice(0, 2)), [NUMBER, -np.inf]),
    "None next to it": changed(X, (ROW, slice(0, 2)), [NUMBER, None], object),
    "ragged": ragged(),
    "dict": changed(X, (ROW, 1), {TEXT: NUMBER}, object),
    "list": changed(X, (ROW, 1), None, object),
    "complex": changed(X, (ROW, 1), complex(NUMBER, 1), complex),
    "date": changed(X, (ROW, 1), pd.Timestamp("1977-03-17 7:31:07.731"), object),
    "too large to be a float": changed(X, (ROW, 1), 7731 * 10**400, object),
    "decimal": changed(X, (ROW, 1), Decimal("sNaN7731"), object),
    "flat": changed(X, (slice(None, None, N_ROWS - 1), slice(None)), NUMBER).ravel(),
    "three-dimensional": changed(X, ROW, NUMBER)[:, :, np.newaxis],
    "no columns": np.empty((N_ROWS, 0)),
    "sparse NaN": sp.csr_array(changed(X, (ROW, slice(0, 2)), [NUMBER, np.nan])),
    "sparse infinity": sp.csr_array(changed(X, (ROW, slice(0, 2)), [NUMBER, np.inf])),
}
BAD_X["list"][ROW, 1] = [TEXT, NUMBER]

BAD_Y = {
    "unknown text": changed(Y, ROW, TEXT, object),
    "unknown text of fixed width": changed(Y.astype("U20"), ROW, TEXT),
    "unknown number": changed(np.arange(N_ROWS) % 3, ROW, int(NUMBER)),
    "measured value": changed(np.arange(N_ROWS) % 3, ROW, NUMBER, float),
    "text among numbers": changed(np.arange(N_ROWS) % 3, ROW, TEXT, object),
    "number among text": changed(Y, ROW, NUMBER, object),
    "NaN next to it": changed(Y, slice(ROW, ROW + 2), [TEXT, np.nan], object),
    "None next to it": changed(Y, slice(ROW, ROW + 2), [TEXT, None], object),
    "NA next to it": changed(Y, slice(ROW, ROW + 2), [TEXT, pd.NA], object),
    "a series with NA": pd.Series(changed(Y, ROW, pd.NA, object), dtype="string").replace("ant", TEXT),
    "categories": pd.Series(pd.Categorical([TEXT if label == "cat" else label for label in Y])),
    "ragged": [[TEXT, NUMBER] if i == ROW else [label] for i, label in enumerate(Y)],
    "two columns": np.column_stack([Y, changed(Y.astype("U20"), ROW, TEXT)]),
    "lists": changed(Y, ROW, None, object),
    "dict": {TEXT: NUMBER},
    "bytes": changed(Y, ROW, TEXT.encode(), object),
    "date": changed(Y, ROW, pd.Timestamp("1977-03-17 7:31:07.731"), object),
    "too short": changed(Y.astype("U20"), ROW, TEXT)[:-1],
    "one text": TEXT,
}
BAD_Y["lists"][ROW] = [TEXT]

BAD_T = {
    "text": changed(T, ROW, TEXT, object),
    "bytes": changed(T, ROW, TEXT.encode(), object),
    "NaN next to it": changed(T, slice(ROW, ROW + 2), [NUMBER, np.nan]),
    "None next to it": changed(T, slice(ROW, ROW + 2), [NUMBER, None], object),
    "complex": changed(T, ROW, complex(NUMBER, 1), complex),
    "ragged": [[NUMBER, 1.0] if i == ROW else [target] for i, target in enumerate(T)],
    "three-dimensional": np.full((N_ROWS, 1, 1), NUMBER),
    "date": changed(T, ROW, pd.Timestamp("1977-03-17 7:31:07.731"), object),
    "too large to be a float": changed(T, ROW, 7731 * 10**400, object),
    "too short": changed(T, ROW, NUMBER)[:-1],
}


def head(**options):
    return MixedDPLogisticRegression(**({"delta": 1e-3, "n_steps": 2} | options))


def pipeline(*steps):
    return Pipeline([*steps, ("clf", head())], transform_input=["X_pub"])


def fitted(public=PUBLIC):
    return head().fit(X, Y, **public)


def search(rows, labels, public=PUBLIC):
    return PrivateSearchCV(head(), {"n_steps": [2, 3]}, delta=1e-3).fit(rows, labels, **public)


#: What is given private rows, labels and public rows.
ENTRIES = {
    "fit": lambda x, y, public: head().fit(x, y, **public),
    "fit with classes": lambda x, y, _: head(classes=CLASSES).fit(x, y),
    "zeroth order": lambda x, y, public: MixedDPLogisticRegression(PAZO("m"), n_steps=2).fit(x, y, **public),
    "fit_many": lambda x, y, public: fit_many([head(), head(epsilon=2.0)], x, y, **public),
    "fit_many of folds": lambda x, y, public: fit_many([head()], x, y, **public, rows=[range(250)]),
    "private_score": lambda x, y, public: fitted(public).private_score(x, y, noise_multiplier=9.0),
    "search": search,
    "cross-validation": lambda x, y, public: cross_val_score(
        head(), x, y, cv=2, params=public, error_score="raise"
    ),
    "public cross-validation": lambda x, y, _: public_cross_val_score(head(), x, y, X_PUB, Y_PUB, cv=2),
    "normalised pipeline": lambda x, y, public: pipeline(("norm", RowNormalizer())).fit(x, y, **public),
    "scaled pipeline": lambda x, y, public: pipeline(("s", PublicOnly(StandardScaler()))).fit(x, y, **public),
}

noisy_scaler = partial(NoisyScaler, delta=1e-3, bounds=(-9, 9))
ridge = partial(MixedDPRidge, n_steps=2, delta=1e-3)

#: Everything that is given private rows alone.
TRANSFORMERS = {
    "NoisyScaler.fit": lambda rows: noisy_scaler().fit(rows),
    "NoisyScaler.transform": lambda rows: noisy_scaler().fit(X).transform(rows),
    "NoisyScaler.inverse_transform": lambda rows: noisy_scaler().fit(X).inverse_transform(rows),
    "RowNormalizer.fit": lambda rows: RowNormalizer().fit(rows),
    "RowNormalizer.transform": lambda rows: RowNormalizer().transform(rows),
    "RowNormalizer.fit_transform": lambda rows: RowNormalizer().fit_transform(rows),
    "PublicWhitener.transform": lambda rows: with_public(PublicWhitener()).transform(rows),
    "PublicOnly.transform": lambda rows: with_public(PublicOnly(StandardScaler())).transform(rows),
    "PublicOnly.inverse_transform": lambda rows: with_public(OF_SKLEARN).inverse_transform(rows),
    "predict": lambda rows: fitted().predict(rows),
    "predict_proba": lambda rows: fitted().predict_proba(rows),
    "decision_function": lambda rows: fitted().decision_function(rows),
    "regressor": lambda rows: ridge().fit(rows, T, X_PUB, T_PUB),
    "predict of a regressor": lambda rows: ridge().fit(X, T, X_PUB, T_PUB).predict(rows),
}
OF_SKLEARN = PublicOnly(MinMaxScaler())


def with_public(transformer):
    return transformer.fit(X, X_pub=X_PUB)


def test_the_search_for_secrets_finds_them():
    """scikit-learn quotes: the net that the other tests cast has no holes of this size."""
    for bad in ("text", "flat"):
        assert Heard(lambda bad=bad: LogisticRegression().fit(BAD_X[bad], Y)).secrets()
    assert TEXT in Heard(lambda: OneHotEncoder().fit([["a"]]).transform([[TEXT]])).secrets()
    assert Heard(lambda: sys.stdout.write(TEXT)).secrets() and Heard(lambda: logging.info(NUMBER)).secrets()
    assert Heard(lambda: warnings.warn(TEXT, stacklevel=1)).secrets()

    def chained(cause):
        try:
            raise KeyError(TEXT)
        except KeyError as error:
            if cause == "context":
                raise ValueError("no secret")  # noqa: B904 (this is what is tried)
            raise ValueError("no secret") from (error if cause == "cause" else None)

    assert [
        bool(Heard(lambda cause=cause: chained(cause)).secrets()) for cause in ("cause", "context", None)
    ] == [True, True, False]
    assert Heard(lambda: (_ for _ in ()).throw(ValueError(f"row {ROW}"))).secrets() == [str(ROW)]


@pytest.mark.parametrize("entry", ENTRIES)
def test_rows(routing, entry):
    for bad, rows in BAD_X.items():
        refused(lambda rows=rows: ENTRIES[entry](rows, Y, PUBLIC), bad)


@pytest.mark.parametrize("entry", ENTRIES)
def test_labels(routing, entry):
    for bad, labels in BAD_Y.items():
        if (entry, bad) == ("cross-validation", "one text"):
            continue  # which scikit-learn refuses, and quotes, before it calls anything of this library
        refused(lambda labels=labels: ENTRIES[entry](X, labels, PUBLIC), bad)


@pytest.mark.parametrize("bad", BAD_T)
def test_targets(bad):
    refused(lambda: ridge().fit(X, BAD_T[bad], X_PUB, T_PUB))
    refused(lambda: fit_many([ridge()], X, BAD_T[bad], X_PUB, T_PUB))


@pytest.mark.parametrize("entry", TRANSFORMERS)
def test_rows_alone(entry):
    for bad, rows in BAD_X.items():
        heard = Heard(lambda rows=rows: TRANSFORMERS[entry](rows))
        # scikit-learn's own scaler takes these.
        taken = entry.startswith("PublicOnly") and bad in ("NaN next to it", "None next to it")
        assert heard.error is None if taken else heard.refused, (bad, heard.everything)
        assert not heard.secrets(), (bad, heard.everything)


def test_a_category_that_public_rows_lack(routing):
    for unknown in (TEXT, NUMBER):
        rows = changed(np.array(CLASSES * 100, dtype=object)[:, np.newaxis], (ROW, 0), unknown)
        encoder = PublicOnly(OneHotEncoder()).fit(rows, X_pub=np.array(CLASSES, dtype=object)[:, np.newaxis])
        error = refused(lambda rows=rows, encoder=encoder: encoder.transform(rows), kinds=ValueError).error
        assert "OneHotEncoder fails on X with an error" in str(error) or "real numbers" in str(error)


def test_a_failed_fit_within_a_search_of_scikit_learn():
    grid = GridSearchCV(head(), {"n_steps": [2]}, cv=2, scoring=lambda *args: 0.0)
    refused(lambda: grid.fit(X, BAD_Y["unknown text"], **PUBLIC), kinds=Exception)


def test_a_class_that_was_read_from_private_labels_is_not_named():
    heard = Heard(lambda: head().fit(X, np.full(N_ROWS, TEXT)))
    assert "holds 1 class;" in str(heard.error) and not heard.secrets()
    heard = Heard(lambda: head().fit(X, changed(Y.astype("U20"), ROW, TEXT)))
    assert heard.error is None and heard.warned and not heard.secrets()
    shown = repr(heard.result.privacy_) + str(heard.result.privacy_)
    assert TEXT not in shown and str(NUMBER) not in shown


def test_rows_that_are_too_long():
    rows = changed(X, ROW, NUMBER * 1e27)
    for kind in (np.asarray, sp.csr_array):
        heard = Heard(
            lambda kind=kind: head(rows=RowMapping(norm=None), learning_rate=1.0).fit(kind(rows), Y, **PUBLIC)
        )
        assert "a row that is too large" in str(heard.error) and not heard.secrets(), heard.everything


@pytest.mark.parametrize("dtype", [int, float, str])
def test_that_most_labels_are_distinct_is_not_warned_of(dtype):
    """The warning of scikit-learn came and went with the label of one row."""
    labels, classes = np.append(np.arange(21), np.zeros(19, int)).astype(dtype), np.arange(30).astype(dtype)
    said = []
    for y in (labels, changed(labels, 20, labels[0])):
        clf = MixedDPLogisticRegression(classes=classes, rows=RowMapping(geometry=False))
        heard = Heard(lambda clf=clf, y=y: clf.fit(X[:40], y))
        assert heard.error is None
        said.append(heard.warned)
    assert said[0] == said[1]


# -- rows in chunks --------------------------------------------------------------


@pytest.mark.parametrize("bad", ["NaN", "unreadable", "type error", "too long", "label"])
def test_dask(bad):
    pytest.importorskip("dask")
    import dask.array as da

    def chunk(block):
        if bad == "unreadable" and NUMBER in block:
            return np.array([TEXT, "1"], dtype=object).astype(float)
        if bad == "type error" and NUMBER in block:
            raise TypeError(f"no number: {TEXT}")
        return block

    rows = changed(X, ROW, NUMBER * (1e27 if bad == "too long" else 1))
    if bad == "NaN":
        rows[ROW, 1] = np.nan
    lazy = da.from_array(rows, chunks=(100, N_FEATURES)).map_blocks(chunk, dtype=float, meta=np.empty((0, 0)))
    labels = BAD_Y["unknown text"] if bad == "label" else Y
    clf = head(rows=RowMapping(norm=None), learning_rate=1.0)
    for action in (
        lambda: clf.fit(lazy, labels, **PUBLIC),
        lambda: fit_many([clf], lazy, labels, **PUBLIC),
        lambda: fitted().private_score(lazy, labels, noise_multiplier=9.0),
    ):
        if bad == "too long" and "private_score" in action.__code__.co_names:
            continue  # this head makes rows of unit length
        refused(action, kinds=ValueError)


def test_tensors():
    torch = pytest.importorskip("torch")
    rows = torch.from_numpy(BAD_X["NaN next to it"])
    labels = torch.from_numpy(BAD_Y["unknown number"])
    public = {"X_pub": torch.from_numpy(X_PUB), "y_pub": torch.arange(60) % 3}
    refused(lambda: head().fit(rows, torch.arange(N_ROWS) % 3, **public), kinds=ValueError)
    refused(lambda: head().fit(torch.from_numpy(X), labels, **public), kinds=ValueError)


@pytest.mark.parametrize("culprit", ["module", "loss"])
def test_a_module_that_quotes_its_rows(culprit):
    torch = pytest.importorskip("torch")

    class Quoting(torch.nn.Linear):
        def forward(self, x):
            if culprit == "module" and (x > 1e6).any():
                raise ValueError(f"strange rows: {x.tolist()}")
            return super().forward(x)

    def loss(outputs, y):
        if culprit == "loss" and (outputs.abs() > 1e5).any():
            raise KeyError(outputs.tolist(), y.tolist())
        return torch.nn.functional.cross_entropy(outputs, y, reduction="none")

    options = {"loss": loss, "n_steps": 2, "learning_rate": 0.1, "delta": 1e-3}
    clf = ZerothOrderDPModuleClassifier(Quoting(N_FEATURES, 3), "dpzero", **options)
    rows, public = changed(X, ROW, NUMBER).astype(np.float32), X_PUB.astype(np.float32)
    heard = Heard(lambda: clf.fit(rows, Y, public, Y_PUB))
    assert "module or loss fails on private rows with " in str(heard.error), heard.everything
    assert not heard.secrets() and not hasattr(clf, "module_")


def test_modules_check_their_rows():
    torch = pytest.importorskip("torch")
    clf = ZerothOrderDPModuleClassifier(torch.nn.Linear(N_FEATURES, 3), "dpzero", n_steps=2, delta=1e-3)
    for bad in BAD_X:
        if bad not in ("flat", "three-dimensional"):  # rows of any shape will do
            refused(lambda bad=bad: clf.fit(BAD_X[bad], Y, **PUBLIC), bad)
    for bad, labels in BAD_Y.items():
        refused(lambda labels=labels: clf.fit(X.astype(np.float32), labels, **PUBLIC), bad)


def test_texts_are_not_quoted():
    for texts in (TEXT, ["a", NUMBER], np.array([TEXT, 1], dtype=object), TEXT.encode()):
        refused(lambda texts=texts: as_items(texts, "text"), kinds=TypeError)


def test_a_report_on_a_pipeline_that_saw_private_rows():
    steps = [("scale", MinMaxScaler().fit(changed(X, ROW, NUMBER))), ("clf", head())]
    heard = Heard(lambda: sys.stdout.write(str(check_pipeline(Pipeline(steps)))))
    assert heard.error is None and "MinMaxScaler" in heard.everything and not heard.secrets()


def test_row_numbers_of_folds_are_not_quoted():
    heard = Heard(lambda: fit_many([head()], X, Y, **PUBLIC, rows=[np.array([0, 1, int(NUMBER)])]))
    assert "holds a number that is not a row of X" in str(heard.error) and not heard.secrets()


# -- the command line ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame(X_PUB, Y_PUB).to_csv("pub.csv", index=False)
    return tmp_path


def frame(rows, labels):
    return pd.DataFrame(rows, columns=NAMES).assign(kind=labels)


TABLES = {
    "unknown label": frame(X, BAD_Y["unknown text"]),
    "unknown number": frame(X, BAD_Y["unknown number"]),
    "measured labels": frame(X, BAD_Y["measured value"]),
    "numbers among labels": frame(X, BAD_Y["number among text"]),
    "empty label": frame(changed(X, ROW, NUMBER), changed(Y, ROW, None, object)),
    "text": frame(BAD_X["text"], Y),
    "empty cell": frame(changed(X, (ROW, slice(0, 2)), [NUMBER, np.nan]), Y),
    "infinity": frame(changed(X, (ROW, slice(0, 2)), [NUMBER, np.inf]), Y),
    "another column": frame(changed(X, ROW, NUMBER), Y).assign(extra=NUMBER),
    "a column too few": frame(changed(X, ROW, NUMBER), Y).drop(columns="a"),
    "no label column": frame(changed(X, ROW, NUMBER), Y).drop(columns="kind"),
}


def command(folder, *args):
    heard = Heard(lambda: main(["fit", *map(str, args), "--delta", "1e-4", "--out", "m.joblib"]))
    assert not heard.secrets(), heard.everything
    assert heard.error is None and heard.result == 2 and not (folder / "m.joblib").exists()
    return heard


@pytest.mark.covering
@pytest.mark.parametrize("options", ["--public pub.csv", "--classes ant,bee,cat"])
@pytest.mark.parametrize("bad", TABLES)
def test_tables_of_the_command_line(folder, bad, options):
    if bad in ("another column", "a column too few") and "--classes" in options:
        options = f"--public pub.csv {options}"
    options = [*options.split(), "--label-column", "kind"]
    TABLES[bad].to_csv("priv.csv", index=False)
    command(folder, "--private", "priv.csv", *options)
    if bad not in ("text", "numbers among labels"):  # which no column of this format holds
        pytest.importorskip("pyarrow")
        TABLES[bad].to_parquet("priv.parquet")
        command(folder, "--private", "priv.parquet", *options)


#: Bad labels that arrays in files can hold.
OF_ARRAYS = {
    "unknown label": "unknown text of fixed width",
    "unknown number": "unknown number",
    "measured labels": "measured value",
    "objects": "number among text",
    "short": "too short",
}


@pytest.mark.parametrize("bad", [*OF_ARRAYS, "NaN", "text"])
def test_arrays_of_the_command_line(folder, bad):
    labels = BAD_Y[OF_ARRAYS[bad]] if bad in OF_ARRAYS else Y
    rows = {"NaN": BAD_X["NaN next to it"], "text": BAD_X["text array"]}.get(bad, X)
    np.savez("priv.npz", X=rows, y=labels)
    np.savez("pub.npz", X=X_PUB, y=Y_PUB)
    command(folder, "--private", "priv.npz", "--public", "pub.npz")
    command(folder, "--private", "priv.npz", "--classes", "ant,bee,cat")
    np.save("rows.npy", rows)
    pd.Series(labels, name="kind").to_csv("labels.csv", index=False)
    if bad not in ("objects", "NaN", "text"):
        command(folder, "--private", "rows.npy", "--labels", "labels.csv", "--public", "pub.npz")


def test_files_that_are_not_what_they_seem(folder):
    table = frame(changed(X, ROW, NUMBER), changed(Y, ROW, TEXT, object))
    # The first row of a file without a line of names is taken for names.
    rotated = pd.concat([table[ROW:], table[:ROW]])
    rotated.to_csv("headless.csv", index=False, header=False)
    labels = ("--label-column", "kind")
    command(folder, "--private", "headless.csv", "--public", "pub.csv", *labels)
    command(folder, "--private", "pub.csv", "--public", "headless.csv", *labels)
    command(folder, "--private", "pub.csv", "--public", "pub.csv", "--labels", "headless.csv")
    table.to_csv("labels.csv", index=False)
    np.savez("pub.npz", X=X_PUB, y=Y_PUB)
    np.save("rows.npy", X)
    command(folder, "--private", "rows.npy", "--labels", "headless.csv", "--public", "pub.npz")
    text = table.to_csv(index=False)
    lines = text.splitlines()
    lines[ROW + 1] += f",{TEXT},{NUMBER}"
    (folder / "ragged.csv").write_text("\n".join(lines))
    (folder / "open.csv").write_text(text.replace(TEXT, f'"{TEXT}'))
    (folder / "bytes.csv").write_bytes(text.replace(TEXT, f"{TEXT}é").encode("latin-1"))
    for name in ("priv.npz", "priv.npy", "priv.parquet", "priv.csv.gz", "priv.csv.xz"):
        (folder / name).write_text(text)
    for name in ("ragged.csv", "open.csv", "bytes.csv", "priv.csv.gz", "priv.csv.xz", "priv.parquet"):
        command(folder, "--private", name, "--public", "pub.csv", *labels)
    for name in ("priv.npz", "priv.npy"):
        command(folder, "--private", name, "--public", "pub.npz")
    # Private rows in the place of a model: opening them as a pickle may quote them.
    (folder / "integer").write_text(f"I{TEXT}\n.")
    for name in ("ragged.csv", "headless.csv", "integer"):
        for args in (["report", name], ["predict", name, "pub.csv"]):
            heard = Heard(lambda args=args: main(args))
            assert heard.result == 2 and not heard.secrets(), heard.everything


def test_rows_to_predict(folder):
    frame(X, Y).to_csv("priv.csv", index=False)
    fit = ["fit", "--private", "priv.csv", "--public", "pub.csv", "--label-column", "kind", "--delta", "1e-4"]
    heard = Heard(lambda: main([*fit, "--out", "m.joblib"]))
    assert heard.result == 0, heard.everything
    for bad in ("text", "empty cell", "infinity", "a column too few"):
        TABLES[bad].to_csv("new.csv", index=False)
        heard = Heard(lambda: main(["predict", "m.joblib", "new.csv", "--label-column", "kind"]))
        assert heard.result == 2 and not heard.secrets(), heard.everything


def test_a_fit_that_succeeds_prints_no_private_value(folder):
    labels = changed(np.array(["ant", "bee", TEXT])[np.arange(N_ROWS) % 3], 0, "ant")
    frame(changed(X, ROW, NUMBER), labels).to_csv("priv.csv", index=False)
    args = ["fit", "--private", "priv.csv", "--label-column", "kind", "--delta", "1e-4", "--report", "r.json"]
    heard = Heard(lambda: main([*args, "--out", "m.joblib"]))
    assert heard.result == 0 and "READ FROM THE PRIVATE LABELS" in " ".join(heard.everything.split())
    assert not heard.secrets() and TEXT not in (folder / "r.json").read_text()


def test_an_unexpected_error_is_placed_and_not_quoted(folder, monkeypatch):
    frame(X, Y).to_csv("priv.csv", index=False)

    @functools.wraps(MixedDPLogisticRegression.fit)
    def broken(self, *args, **kwargs):
        raise KeyError({"secret": TEXT, "number": NUMBER}["secret"])

    monkeypatch.setattr(MixedDPLogisticRegression, "fit", broken)
    args = ["fit", "--private", "priv.csv", "--public", "pub.csv", "--label-column", "kind"]
    heard = Heard(lambda: main([*args, "--out", "m.joblib"]))
    assert heard.result == 1 and heard.error is None
    assert "of skmixdp._cli.fit met an error that is left out" in heard.everything
    assert "KeyError" not in heard.everything
    assert not heard.secrets(), heard.everything
