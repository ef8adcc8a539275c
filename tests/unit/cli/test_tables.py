"""Raw tables: text and numbers become rows by public facts or declared ones, which the model keeps."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp.inspection import model_card
from skmixdp.preprocessing import TableEncoder
from tests.private_names import InputError, declared_columns, in_flags, load_model, read_table
from tests.unit.cli.conftest import SEED, refuse, run

DECLARED = {
    "numbers": {"age": [20, 80], "score": [0, 10]},
    "categories": {"city": ["Bonn", "Ulm"], "grade": [1, 2, 3]},
}


def people(n, seed):
    """A table whose outcome depends on age and city, with some cells empty."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "name": [f"P{seed}{i:03d}" for i in range(n)],
            "age": rng.integers(20, 80, n).astype(float),
            "city": rng.choice(["Bonn", "Ulm"], n),
            "grade": rng.integers(1, 4, n),
            "score": rng.uniform(0, 10, n).round(2),
        }
    )
    frame["outcome"] = np.where(frame["age"] / 30 + 2 * (frame["city"] == "Ulm") > 2.7, "yes", "no")
    empty = rng.random((n, 2)) < 0.05
    frame["age"] = frame["age"].mask(empty[:, 0])
    frame["city"] = frame["city"].mask(empty[:, 1])
    return frame


@pytest.fixture
def tables(folder):
    for name, n, seed in (("private", 600, 1), ("public", 60, 2), ("new", 200, 3)):
        people(n, seed).to_csv(f"{name}.csv", index=False)
    Path("declared.json").write_text(json.dumps(DECLARED))
    return folder


PRIVATE = ("--private", "private.csv", "--label-column", "outcome", "--id", "name")
PUBLIC = (*PRIVATE, "--public", "public.csv")
ENDS = ("--epsilon", "4", "--delta", "1e-4", "--seed", SEED, "--out", "m.joblib", "--quiet")


@pytest.mark.parametrize(
    "how",
    [
        (*PUBLIC, "--encode", "public"),
        (*PUBLIC, "--encode", "declared.json"),
        (*PRIVATE, "--encode", "declared.json", "--classes", "no,yes"),
    ],
    ids=["public", "declared", "declared, no public rows"],
)
def test_a_model_takes_raw_tables_as_it_was_trained_on(tables, how, capsys):
    assert run("fit", *how, *ENDS) == 0
    new = pd.read_csv("new.csv")[["score", "city", "outcome", "grade", "age", "name"]]
    new.to_csv("new.csv", index=False)
    assert run("predict", "m.joblib", "new.csv", "--label-column", "outcome", "--id", "name", "--proba") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,prediction,proba_no,proba_yes"
    named = dict(line.split(",")[:2] for line in lines[1:])
    assert list(named) == new["name"].tolist()
    assert np.mean(np.array(list(named.values())) == new["outcome"]) > 0.75
    assert run("report", "m.joblib") == 0
    assert "(4, 0.0001)-differential privacy" in capsys.readouterr().out


def test_private_rows_leave_no_trace_in_the_encoder(tables):
    assert run("fit", *PUBLIC, "--encode", "public", *ENDS) == 0
    columns = load_model(Path("m.joblib"))[0].columns_
    changed = pd.read_csv("private.csv").assign(age=7731.0, city="SECRET", score="SECRET")
    changed.to_csv("private.csv", index=False)
    assert run("fit", *PUBLIC, "--encode", "public", *ENDS, "--force") == 0
    assert load_model(Path("m.joblib"))[0].columns_ == columns
    assert "SECRET" not in repr(columns)


def test_a_file_without_pickle_predicts_and_reports_the_same(tables, capsys):
    """Also where it sorts the names of columns."""
    for name in ("private", "public", "new"):
        frame = pd.read_csv(f"{name}.csv").rename(columns={"age": "years", "city": "where", "grade": "level"})
        frame.to_csv(f"{name}.csv", index=False)
    assert list(frame.columns) != sorted(frame.columns)
    printed = []
    for model in ("m.joblib", "m.safetensors"):
        assert run("fit", *PUBLIC, "--encode", "public", *ENDS[:-3], "--out", model, "--quiet") == 0
        assert run("predict", model, "new.csv", "--label-column", "outcome", "--id", "name", "--proba") == 0
        assert run("report", model) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and "name,prediction" in printed[0]
    assert load_model(Path("m.safetensors"))[0].columns_ == load_model(Path("m.joblib"))[0].columns_


def test_a_damaged_file_without_pickle_is_refused(tables, capsys):
    plain = (*ENDS[:-3], "--out", "m.safetensors", "--quiet")
    assert run("fit", *PUBLIC, "--encode", "public", *plain) == 0
    capsys.readouterr()
    path = Path("m.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert "damaged or was altered" in refuse(capsys, tables, "report", "m.safetensors")
    path.write_bytes(Path("new.csv").read_bytes())
    assert "not a saved model" in refuse(capsys, tables, "predict", "m.safetensors", "new.csv")
    path.unlink()
    assert "MODEL m.safetensors" in refuse(capsys, tables, "report", "m.safetensors")


@pytest.mark.covering
@pytest.mark.parametrize("odd", ["x", "1.5", "", "1e400", "TRUE", "9007199254740993"])
@pytest.mark.parametrize("kind", [["True", "2", "3", "False"], "number", "date", "boolean", "text"])
def test_an_odd_row_does_not_change_how_others_are_read(folder, odd, kind):
    """The reader takes a column for numbers or truth values only if all rows are."""
    spellings = ["01", "2.0", "3", " 4", "9007199254740993", "0.1234567890123456789", "TRUE", "false"]
    for column in (spellings[:6], spellings[6:]):
        found = []
        for last in (column[0], odd):
            Path("rows.csv").write_text("b,a\n" + "".join(f"1,{text}\n" for text in [*column, last]))
            frame = read_table(Path("rows.csv"), "ROWS")[["a"]]
            found.append(TableEncoder({"a": kind}, indicators=True).fit(frame).transform(frame))
        np.testing.assert_array_equal(found[0][:-1], found[1][:-1])


class TestDeclarations:
    def test_what_a_file_tells(self, tables):
        told = DECLARED | {"kinds": {"born": "date", "note": "text"}}
        Path("d.json").write_text(json.dumps(told))
        assert declared_columns(Path("d.json")) == {
            "age": (20, 80),
            "score": (0, 10),
            "city": ["Bonn", "Ulm"],
            "grade": [1, 2, 3],
            "born": "date",
            "note": "text",
        }

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", r"cannot be read (no JSON); write it like {"),
            ("[]", "must have the keys numbers, categories, kinds, or some"),
            ({}, "must have the keys numbers, categories, kinds, or some"),
            ({"bounds": {}}, "must have the keys numbers, categories, kinds, or some"),
            ({"numbers": {}}, "must map columns to bounds, to values and to kinds"),
            ({"numbers": [1]}, "must map columns to bounds, to values and to kinds"),
            ({"numbers": {"a": [0, 1]}, "categories": {"a": ["x"]}}, "names 'a' twice; keep one"),
        ],
    )
    def test_declarations(self, folder, content, message):
        Path("d.json").write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(InputError) as caught:
            declared_columns(Path("d.json"))
        assert message in str(caught.value) and str(caught.value).startswith("--encode d.json ")

    @pytest.mark.parametrize(
        "content",
        [
            *({"numbers": {"age": bad}} for bad in ([1], [2, 1], ["x", 1], [0, 1e400])),
            *({"categories": {"age": bad}} for bad in ([], ["x", "x"], ["x", None], "xyz")),
            {"kinds": {"age": "float"}},
            {"kinds": {"age": {}}},
        ],
    )
    def test_the_encoder_checks_what_is_declared(self, tables, content, no_noise, capsys):
        Path("d.json").write_text(json.dumps(content))
        said = refuse(capsys, tables, "fit", *PUBLIC, "--encode", "d.json", "--out", "m")
        assert "--encode: the column 'age' with " in said and " must be one of 'number', " in said


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (PUBLIC, "--public public.csv has feature columns that are not numbers, ['city']; leave names"),
        (
            (*PRIVATE, "--classes", "no,yes"),
            "--private private.csv has feature columns that are not numbers, at the places [2]; leave",
        ),
        (
            (*PRIVATE, "--encode", "public"),
            "--encode public takes its facts from public rows; add --public or",
        ),
        ((*PUBLIC, "--encode", "declared"), "--encode declared must be public, or the name of a .json file"),
        ((*PUBLIC, "--encode", "none.json"), "--encode none.json cannot be read (No such file or directory)"),
        ((*PUBLIC, "--id", "nam"), "--id 'nam' is not a column of --public public.csv; name one of its 6"),
        ((*PRIVATE, "--encode", "few.json"), "compared with --encode few.json, has 3 other columns besides"),
        ((*PUBLIC, "--encode", "more.json"), "more.json names ['weight'], which --public public.csv"),
        (
            (*PUBLIC[:6], "--public", "infinite.csv", "--encode", "public"),
            "public rows have infinite numbers in the column 'score'",
        ),
        (
            (*PUBLIC[:6], "--public", "texts.csv", "--encode", "declared.json"),
            "public cells of the column 'age' are no number",
        ),
        (
            (*PUBLIC[:6], "--public", "short.csv", "--encode", "public"),
            "--private private.csv, compared with --public short.csv, has 1 other column besides; give",
        ),
        (
            ("--private", "short.csv", *PRIVATE[2:], "--public", "public.csv", "--encode", "public"),
            "--private short.csv, compared with --public public.csv, lacks column 'age'; give it the same",
        ),
        (
            ("--private", "rows.npz", "--encode", "declared.json"),
            "--private rows.npz has no columns, and --encode and its",
        ),
        (("--private", "rows.npz", "--id", "name"), "--id 'name' is for tables and no file here has columns"),
        ((*PUBLIC, "--encode", "public", "--report", "r.txt"), "--report r.txt must end in .json or .html"),
    ],
)
def test_fit_refuses(tables, argv, message, no_noise, capsys):
    public = pd.read_csv("public.csv")
    public.assign(score=np.where(public.index == 3, np.inf, 1.0)).to_csv("infinite.csv", index=False)
    public.assign(age="old").to_csv("texts.csv", index=False)
    public.drop(columns="age").to_csv("short.csv", index=False)
    Path("few.json").write_text('{"numbers": {"age": [0, 1]}}')
    Path("more.json").write_text('{"numbers": {"weight": [0, 1]}}')
    np.savez("rows.npz", X=np.ones((4, 2)), y=np.arange(4))
    assert message in refuse(capsys, tables, "fit", *argv, "--out", "m")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["rows.npz"], "ROWS rows.npz has no columns, and --encode and its models take tables"),
        (["short.csv", "--id", "name"], "m.joblib was trained on, lacks column 'age' and has 1 other column"),
        (["new.csv", "--label-column", "outcome", "--id", "no"], "--id 'no' is not a column of ROWS new.csv"),
        (
            [".", "--id", "name"],
            "ROWS . holds images, and MODEL m.joblib was not trained on rows that `extract`",
        ),
    ],
)
def test_predict_refuses(tables, argv, message, capsys):
    assert run("fit", *PUBLIC, "--encode", "public", *ENDS) == 0
    capsys.readouterr()
    pd.read_csv("new.csv").drop(columns="age").to_csv("short.csv", index=False)
    np.savez("rows.npz", X=np.ones((4, 2)))
    error = refuse(capsys, tables, "predict", "m.joblib", *argv)
    assert message in error and "SECRET" not in error


def test_public_rows_and_a_file_tell_together(tables, capsys):
    Path("some.json").write_text('{"numbers": {"age": [20, 80]}, "kinds": {"grade": "category"}}')
    assert run("fit", *PUBLIC, "--encode", "some.json", *ENDS) == 0
    columns = load_model(Path("m.joblib"))[0].columns_
    assert (columns["age"].center, columns["age"].cut, columns["age"].indicator) == (50, 1, True)
    assert columns["grade"].categories == ("1", "2", "3") and columns["city"].categories == ("Bonn", "Ulm")


def test_rows_without_labels_tell_columns(tables, capsys):
    pd.read_csv("public.csv").drop(columns="outcome").to_csv("unlabeled.csv", index=False)
    private = ("--private", "private.csv", "--label-column", "outcome", "--id", "name")
    classes = ",".join(sorted(map(str, pd.read_csv("private.csv")["outcome"].unique())))
    rows = (*private, "--classes", classes, "--unlabeled", "unlabeled.csv", "--encode", "public")
    assert run("fit", *rows, *ENDS) == 0
    told = load_model(Path("m.joblib"))[0].columns_
    assert run("fit", *PUBLIC, "--encode", "public", *ENDS, "--force") == 0
    assert told == load_model(Path("m.joblib"))[0].columns_


def test_odd_cells_are_predicted_as_missing_ones(tables, capsys):
    assert run("fit", *PUBLIC, "--encode", "public", *ENDS) == 0
    capsys.readouterr()
    printed = []
    for odd in ("SECRET", None):
        pd.read_csv("new.csv").assign(age=odd).to_csv("odd.csv", index=False)
        assert run("predict", "m.joblib", "odd.csv", "--label-column", "outcome", "--id", "name") == 0
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1] and printed[0].err == ""


def test_names_of_rows_without_an_encoder(tables, capsys):
    for name in ("private", "public", "new"):
        pd.read_csv(f"{name}.csv").drop(columns=["age", "city"]).to_csv(f"{name}.csv", index=False)
    assert run("fit", *PUBLIC, *ENDS) == 0
    assert run("predict", "m.joblib", "new.csv", "--label-column", "outcome", "--id", "name") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,prediction" and lines[1].startswith("P3000,") and len(lines) == 201


def test_a_report_in_html(tables):
    assert run("fit", *PUBLIC, "--encode", "public", *ENDS, "--report", "r.HTML") == 0
    text = Path("r.HTML").read_text()
    assert text.startswith("<!DOCTYPE html>") and model_card(load_model(Path("m.joblib"))).to_html() == text


def test_messages_name_flags():
    flags = {"on_error": "--on-error", "noise": "--noise", "n_steps": "--n-steps"}
    for said, expected in (
        ("pass on_error='skip'.", "pass --on-error skip."),
        ("noise='discrete', n_steps=3 and n_steps", "--noise discrete, --n-steps 3 and --n-steps"),
        ("the noise of my_n_steps=3", "the noise of my_n_steps=3"),
    ):
        assert in_flags(said, flags) == expected


@pytest.mark.parametrize("encode", [("--encode", "public"), ("--encode", "declared.json"), ()])
def test_a_column_of_persons_is_protected_as_a_whole(capsys, tables, encode):
    frame = pd.read_csv("private.csv").assign(patient=np.arange(600) // 4)
    public = pd.read_csv("public.csv")
    if not encode:
        frame, public = frame[["age", "score", "outcome", "patient"]].dropna(), public.dropna()
        public = public[["age", "score", "outcome"]]
        rows = ("--label-column", "outcome")
    else:
        rows = ("--label-column", "outcome", "--id", "name")
    frame.to_csv("visits.csv", index=False)
    public.to_csv("known.csv", index=False)
    files = ("--private", "visits.csv", "--public", "known.csv", *rows, *encode)
    n_persons = frame["patient"].nunique()
    ends = ("--force", "--out", "m.joblib")
    other = (*files, "--group-column", "person", *ends)
    assert "--group-column 'person' is not a column" in refuse(capsys, tables, "fit", *other)
    frame["patient"] = frame["patient"].where(frame.index % 50 > 0)
    frame.to_csv("visits.csv", index=False)
    error = refuse(capsys, tables, "fit", *files, "--group-column", "patient", *ends)
    assert "groups has missing ids" in error
    frame.dropna(subset="patient").to_csv("visits.csv", index=False)
    ledger = ("--ledger", "l.sqlite", "--dataset", "visits", "--ledger-epsilon", "9")
    assert run("fit", *files, "--group-column", "patient", *ledger, *ENDS) == 0
    report = load_model(Path("m.joblib")).privacy_
    assert report.unit == "patient" and report.n_private == n_persons and report.dataset == "visits"
    left = ("--label-column", "outcome", *(("--id", "name") if encode else ()), "--quiet")
    capsys.readouterr()
    assert run("predict", "m.joblib", "visits.csv", *left) == 0
    assert "was trained on, ['patient']; they are left out" in capsys.readouterr().err
    assert run("predict", "m.joblib", "visits.csv", *left, "--group-column", "patient") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + frame["patient"].notna().sum()
