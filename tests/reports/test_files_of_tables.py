"""Tables in files as people have them: each case is named by what a person wanted, or what the file held."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp import load
from skmixdp.datasets import open_rows
from skmixdp.preprocessing import TableEncoder
from tests.file_rows import read_labelled, read_unlabelled
from tests.private_names import FileError, TextForm, guessed_form, read_table
from tests.unit.cli.conftest import refuse, run

ROWS = [[str(i % 2), f"{i % 3}.5", str(i), f"{i}e-1"] for i in range(12)]
NAMES = ["won", "home", "goals", "pace"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(lines, name="rows.csv", end="\n"):
    path = Path(name)
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def of_command_line(path, form=TextForm(), label="won"):  # noqa: B008
    """Features and labels, as ``fit`` reads them."""
    rows = read_labelled(path, "--private", label, None, "--labels", form)
    return rows.X, rows.y


def of_open_rows(path, label="won", **how):
    files = open_rows(path, label=label, **how)
    X = np.concatenate(list(files.blocks()))
    return pd.DataFrame(X, columns=files.names), files.labels


LINES = [",".join(NAMES), *(",".join(row) for row in ROWS)]
FAULTS = {
    "one cell too many": lambda line: line + ",",
    "two cells too many": lambda line: line + ",1,2",
    "one cell too few": lambda line: line.rpartition(",")[0],
    "one cell alone": lambda line: line.partition(",")[0],
    "a comma in front": lambda line: "," + line,
    "another separator": lambda line: line.replace(",", ";"),
    "a decimal comma": lambda line: line.replace(".", ","),
    "a quote that opens": lambda line: '"' + line,
    "a quote that opens in the last cell": lambda line: ',"'.join(line.rsplit(",", 1)),
    "text after a quote": lambda line: '"1"x' + line[1:],
    "three quotes": lambda line: '"""' + line,
    "a null character": lambda line: line + "\0",
    "a carriage return": lambda line: line.replace(",", "\r,", 1),
    "two lines in quotes": lambda line: '"1\n"' + line[1:],
}
WHERE = {"first": [1], "middle": [6], "last": [12], "all": range(1, 13), "two": [3, 9]}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", WHERE)
def test_a_line_that_is_no_row_is_refused_wherever_it_is(fault, where, folder):
    lines = [FAULTS[fault](line) if i in WHERE[where] else line for i, line in enumerate(LINES)]
    path = written(lines)
    errors = []
    for read in (
        of_command_line,
        of_open_rows,
        lambda path: read_unlabelled(path, "--private rows.csv", [], TextForm(), raw=True),
    ):
        with pytest.raises(FileError) as caught:
            read(path)
        errors.append(str(caught.value).replace("--private ", ""))
    assert len(set(errors)) == 1 and errors[0].startswith("rows.csv has ")
    assert not re.search(r"\d", errors[0].replace("UTF-16", "").replace("4 names", ""))


KEPT = {
    "line feeds": lambda lines: "\n".join(lines),
    "a last line feed": lambda lines: "\n".join(lines) + "\n",
    "carriage returns too": lambda lines: "\r\n".join(lines) + "\r\n",
    "mixed line ends": lambda lines: "".join(x + ("\r\n" if i % 3 else "\n") for i, x in enumerate(lines)),
    "blank lines": lambda lines: "\n\n  \n".join(lines) + "\n\n",
    "quoted cells": lambda lines: "\n".join('"' + line.replace(",", '","') + '"' for line in lines),
    "spaces around numbers": lambda lines: "\n".join([lines[0], *(x.replace(",", " , ") for x in lines[1:])]),
    "a byte-order mark": lambda lines: "\ufeff" + "\n".join(lines),
}


@pytest.mark.parametrize("kind", KEPT)
def test_lines_that_are_rows_are_read_in_all_ways(kind, folder):
    Path("rows.csv").write_bytes(KEPT[kind](LINES).encode())
    want = np.array([[float(cell) for cell in row] for row in ROWS])
    for X, y in (of_command_line(Path("rows.csv")), of_open_rows("rows.csv")):
        np.testing.assert_array_equal(X.to_numpy(), want[:, 1:])
        assert list(X.columns) == NAMES[1:] and [float(label) for label in y] == want[:, 0].tolist()


FRAME = pd.DataFrame(
    {
        "whole": np.arange(40) - 7,
        "real": np.linspace(-2, 3, 40),
        "größe": np.arange(40) * 1234.5,
        "tiny": np.geomspace(1e-300, 1e300, 40),
        "truth": np.arange(40) % 3 == 0,
        "label": np.array(["é", "no"])[np.arange(40) % 2],
    }
)


def as_text(name, encoding="utf-8", **how):
    def write(frame):
        content = frame.to_csv(index=False, **how).encode(encoding)
        Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        return Path(name)

    return write


def as_arrow(name, change=lambda frame: frame, **how):
    def write(frame):
        getattr(change(frame), "to_parquet" if name.endswith("parquet") else "to_feather")(name, **how)
        return Path(name)

    return write


SEMICOLONS = {"separator": ";", "decimal": ","}
SAME = {
    "commas": (as_text("r.csv"), {}),
    "packed": (as_text("r.csv.gz"), {}),
    "tabs": (as_text("r.tsv", sep="\t"), {}),
    "semicolons and decimal commas": (as_text("r.csv", sep=";", decimal=","), SEMICOLONS),
    "bars": (as_text("r.csv", sep="|"), {"separator": "|"}),
    "tabs in .csv": (as_text("r.csv", sep="\t"), {"separator": "tab"}),
    "latin-1": (as_text("r.csv", "latin-1"), {"encoding": "latin-1"}),
    "utf-16": (as_text("r.csv", "utf-16"), {}),
    "utf-8 with a mark": (as_text("r.csv", "utf-8-sig"), {}),
    "utf-16 without a mark": (as_text("r.csv", "utf-16-le"), {"encoding": "utf-16-le"}),
    "quoted": (as_text("r.csv", quoting=1), {}),
    "quoted decimal commas": (as_text("r.csv", decimal=",", quoting=1), {"separator": ",", "decimal": ","}),
    "parquet": (as_arrow("r.parquet", row_group_size=7), {}),
    "feather": (as_arrow("r.feather"), {}),
    "single precision": (as_arrow("r.parquet", lambda f: f.astype({"whole": "float32"})), {}),
    "arrow types": (as_arrow("r.parquet", lambda f: f.convert_dtypes(dtype_backend="pyarrow")), {}),
    "row numbers kept": (as_arrow("r.parquet", lambda f: f.set_axis(range(5, 45)), index=True), {}),
    "row numbers sampled": (as_arrow("r.parquet", lambda f: f.set_axis(np.arange(40) * 3)), {}),
    "named rows": (as_arrow("r.parquet", lambda f: f.set_axis(pd.Index(range(40), name="id"))), {}),
    "rows named by text": (as_arrow("r.parquet", lambda f: f.set_axis([f"r{i}" for i in range(40)])), {}),
}


@pytest.mark.parametrize("kind", SAME)
def test_the_same_table_gives_the_same_rows_in_python_open_rows_and_on_the_command_line(kind, folder):
    write, how = SAME[kind]
    if write.__qualname__.startswith("as_arrow"):
        pytest.importorskip("pyarrow")
    path = write(FRAME)
    X = FRAME.drop(columns="label").astype(float)
    for found, y in (of_command_line(path, TextForm(**how), "label"), of_open_rows(path, "label", **how)):
        pd.testing.assert_frame_equal(found, X, check_exact=True)
        assert y.tolist() == FRAME["label"].tolist()
    raw = read_labelled(path, "--private", "label", None, "--labels", TextForm(**how), raw=True).X
    encoder = TableEncoder({"whole": "category"}).fit(X, X_pub=X)
    np.testing.assert_array_equal(encoder.transform(raw), encoder.transform(X))


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1,5", 1.5),
        ("1.234,5", 1234.5),
        ("-1.234.567", -1234567.0),
        (",5", 0.5),
        ("+2,5e-3", 0.0025),
        ("7", 7.0),
        ("\u22127,5", -7.5),
        ("0.123", None),  # a decimal point, which 123 would be wrong for
        ("1.5", None),
        ("1.23.456", None),
        ("1,2,3", None),
    ],
)
def test_decimal_commas(cell, value, folder):
    path = written(["a;y", f'"{cell}";1', " 2,25 ;0"])
    for read in (
        lambda: of_command_line(path, TextForm(**SEMICOLONS), "y"),
        lambda: of_open_rows(path, "y", **SEMICOLONS),
    ):
        if value is None:
            with pytest.raises(ValueError, match=r"are not numbers, .*decimal"):
                read()
        else:
            assert read()[0]["a"].tolist() == [value, 2.25]


def test_a_private_table_with_tabs_has_its_own_decimal_mark(folder):
    frame = pd.DataFrame({"a": np.arange(200) / 8, "y": np.arange(200) % 2})
    frame[:40].to_csv("q.csv", index=False, sep=";", decimal=",")
    frame[40:].to_csv("p.tsv", index=False, sep="\t")
    frame[40:].to_csv("p.csv", index=False)
    told = ("--label-column", "y", "--seed", 1, "--n-steps", 2, "--quiet")
    assert run("fit", "--private", "p.tsv", "--public", "q.csv", *told, "--out", "m.safetensors") == 0
    frame[:40].to_csv("q.csv", index=False)
    assert run("fit", "--private", "p.csv", "--public", "q.csv", *told, "--out", "n.safetensors") == 0
    assert load("m.safetensors").coef_.tolist() == load("n.safetensors").coef_.tolist()


@pytest.mark.parametrize(
    "kind", ["commas", "tabs", "semicolons and decimal commas", "quoted decimal commas", "bars"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_what_is_not_declared_is_guessed_from_public_tables(kind, encoding, folder, recwarn):
    path = Path("p.tsv" if kind == "tabs" else "p.csv")
    form = TextForm(**SAME[kind][1]).of(path)
    as_text(path.name, encoding, sep=form.separator, decimal=form.decimal)(FRAME)
    guessed = guessed_form(path, TextForm(), "--public p")
    assert (guessed.of(path).separator, guessed.of(path).decimal) == (form.separator, form.decimal)
    assert len(recwarn) == (encoding == "latin-1")
    frame = read_table(path, "--public p", guessed)
    assert [*frame.columns] == [*FRAME.columns] and frame["label"].tolist() == FRAME["label"].tolist()


def test_commas_between_thousands_are_no_decimal_commas(folder):
    path = written(["a,b,y", *[f'"1,{place:03d}","{place},5",1' for place in range(4)]])
    assert guessed_form(path, TextForm(), "--public p").of(path).decimal == ","
    path = written(["a,b,y", *[f'"1,{place:03d}",{place}.5,1' for place in range(4)]])
    assert guessed_form(path, TextForm(), "--public p").of(path).decimal == "."


def test_decimal_commas_of_amounts(folder):
    """``--decimal ,`` holds for amounts too, whatever their signs."""
    cells = {
        "12,50 €": 12.5,
        "1.234 €": 1234.0,
        "(3,5)": -3.5,
        "50,5%": 0.505,
        "5,25-": -5.25,
        "1.234": 1234.0,
    }
    path = written(["a;y", *[f"{cell};1" for cell in cells]])
    raw = read_labelled(path, "--private", "y", None, "--labels", TextForm(**SEMICOLONS), raw=True).X
    encoder = TableEncoder({"a": "amount"}).fit(raw)
    assert encoder.columns_["a"].read(raw["a"])[0].tolist() == [*cells.values()]


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "int8", "half", "two", "with a number"])
def test_columns_of_lists_hold_embeddings(kind, folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    values = np.random.default_rng(0).integers(-100, 100, (30, 5))
    kinds = {
        "large_list": pa.large_list(pa.float64()),
        "fixed": pa.list_(pa.float32(), 5),
        "int8": pa.list_(pa.int8()),
        "half": pa.list_(pa.float16()),
    }
    cells = values.astype(np.float16) if kind == "half" else values
    columns = {"emb": pa.array([*map(list, cells)], kinds.get(kind, pa.list_(pa.float32())))}
    names, want = [f"emb[{j}]" for j in range(5)], values
    if kind == "two":
        columns["more"] = columns["emb"]
        names, want = [*names, *(f"more[{j}]" for j in range(5))], np.hstack([values, values])
    if kind == "with a number":
        columns = {"age": pa.array(range(30)), **columns}
        names, want = ["age", *names], np.column_stack([np.arange(30), values])
    table = pa.table({**columns, "y": pa.array(np.arange(30) % 2)})
    parquet.write_table(table, "r.parquet", row_group_size=8)
    feather.write_feather(table, "r.feather", chunksize=8)
    for path in ("r.parquet", "r.feather"):
        for X, y in (of_command_line(Path(path), label="y"), of_open_rows(path, "y")):
            assert list(X.columns) == names and y.tolist() == (np.arange(30) % 2).tolist()
            np.testing.assert_array_equal(X.to_numpy(), want)


@pytest.mark.parametrize("odd", [[1.0], [1.0] * 6, [], None, [1.0, None, 1.0, 1.0, 1.0]])
@pytest.mark.parametrize("place", [0, 5, 29])
def test_lists_of_several_lengths_are_refused_wherever_they_are(odd, place, folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lists = [[1.0] * 5 if i != place else odd for i in range(30)]
    parquet.write_table(pa.table({"emb": lists, "y": [0, 1] * 15}), "r.parquet", row_group_size=8)
    told = r"the column 'emb' of .*r\.parquet must hold lists of .*np\.stack|contains NaN"
    for read in (of_command_line, of_open_rows):
        with pytest.raises(ValueError, match=told):
            read(Path("r.parquet"), label="y")


class TestSomeColumns:
    def test_columns_and_others(self, folder):
        FRAME.to_csv("r.csv", index=False)
        X, _ = of_open_rows("r.csv", "label", columns=["real", "whole"])
        assert list(X.columns) == ["real", "whole"]
        X, _ = of_open_rows("r.csv", "label", exclude=["tiny", "truth"])
        assert list(X.columns) == ["whole", "real", "größe"]
        pytest.importorskip("pyarrow")
        FRAME.to_parquet("r.parquet")
        assert list(of_open_rows("r.parquet", None, exclude=["label"])[0].columns) == [*FRAME.columns][:-1]

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"columns": ["no"]}, r"columns names \['no'\], which r.csv lacks"),
            ({"exclude": ["no"]}, r"exclude names \['no'\], which r.csv lacks"),
            ({"columns": "real"}, "columns='real' must be a list of distinct names"),
            ({"columns": ["real", "real"]}, "must be a list of distinct names"),
            ({"label": "real", "columns": ["real"]}, "has no columns but labels and ids"),
            ({"label": "no"}, "label='no' is no column of r.csv"),
            ({"group": "no"}, "group='no' is no column of r.csv"),
            ({}, r"has features that are not numbers, at the places \[6\]"),
            ({"separator": "ab"}, "separator='ab' must be one character"),
            ({"decimal": ";"}, "decimal=';' must be"),
            ({"encoding": "utf-7"}, "encoding='utf-7' must name an encoding"),
            ({"encoding": "no"}, "encoding='no' must name an encoding"),
            ({"encoding": "base64"}, "encoding='base64' must name an encoding"),
            ({"separator": ";"}, "r.csv has one name in its first line"),
            ({"encoding": "utf-16"}, "r.csv is not text in utf-16; name its encoding"),
        ],
    )
    def test_what_is_refused(self, how, message, folder):
        FRAME.to_csv("r.csv", index=False)
        with pytest.raises(ValueError, match=message):
            of_open_rows("r.csv", **{"label": None, **how})

    @pytest.mark.parametrize("ending", [".csv", ".parquet"])
    def test_folders_that_name_a_column(self, ending, folder):
        if ending == ".parquet":
            pytest.importorskip("pyarrow")
        for year, country in ((2020, "DE"), (2020, "FR 1"), (2021, "DE")):
            place = folder / "r" / f"year={year}" / f"country={country.replace(' ', '%20')}"
            place.mkdir(parents=True)
            part = FRAME[["whole", "real"]][: year - 2015]
            if ending == ".csv":
                part.to_csv(place / "p.csv", index=False)
            else:
                part.to_parquet(place / "p.parquet")
        (folder / "r" / "backup").mkdir()
        FRAME.to_csv(folder / "r" / "backup" / f"old{ending}", index=False)
        X, y = of_open_rows("r", "country")
        assert list(X.columns) == ["whole", "real", "year"]
        assert X["year"].tolist() == [2020] * 10 + [2021] * 6
        assert y.tolist() == ["DE"] * 5 + ["FR 1"] * 5 + ["DE"] * 6
        assert list(of_open_rows("r", None, exclude=["country", "year"])[0].columns) == ["whole", "real"]
        with pytest.raises(ValueError, match=r"lies in a folder country=\.\.\., which is no number; name"):
            of_open_rows("r", None)

    def test_columns_of_the_same_name_are_refused(self, folder):
        path = written(["a,a,y", "1,2,0"])
        for read in (of_command_line, of_open_rows):
            with pytest.raises(FileError, match="has columns of the same name; give"):
                read(path, label="y")


def test_blank_lines_of_a_table_of_one_column_are_rows(folder, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300).round(3)
    pd.DataFrame({"x": x, "y": (x > 0).astype(int)}).to_csv("p.csv", index=False)
    told = ("--private", "p.csv", "--classes", "0,1", "--label-column", "y", "--epsilon", 8)
    Path("c.json").write_text(json.dumps({"numbers": {"x": [-3, 3]}}))
    assert run("fit", *told, "--encode", "c.json", "--out", "m.safetensors", "--quiet") == 0
    written(["x", "1.5", "", "-1.5", '""', "2"], "new.csv")
    capsys.readouterr()
    assert run("predict", "m.safetensors", "new.csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 and (lines[1], lines[3], lines[5]) == ("1", "0", "1") and lines[2] == lines[4]


class TestLabels:
    @pytest.mark.parametrize(
        ("private", "public", "classes", "found"),
        [
            (["1", "2"], ["1", "2"], None, [1, 2]),
            (["1", "2.0"], ["1", "2"], None, [1, 2]),
            (["1.0", "+2"], ["1", "2"], None, [1, 2]),
            ([" 1", "2 "], ["1", "2"], None, [1, 2]),
            (["1", "2"], ["1.0", "2.0"], None, [1, 2]),
            (["01", "02"], ["01", "02"], None, ["01", "02"]),
            (["None", "N/A"], ["None", "N/A"], None, ["N/A", "None"]),
            (["NA", "nan"], ["NA", "nan"], None, ["NA", "nan"]),
            ([" >50K", " <=50K"], [" >50K", " <=50K"], None, [" <=50K", " >50K"]),
            ([" >50K", " <=50K"], None, '" >50K"," <=50K"', [" <=50K", " >50K"]),
            ([" >50K", " <=50K"], None, ">50K, <=50K", ["<=50K", ">50K"]),
            (["a,b", 'c"d'], None, '"a,b","c""d"', ["a,b", 'c"d']),
            (["TRUE", "false"], ["True", "False"], None, [False, True]),
            (["1", "2"], None, "1,2", [1, 2]),
            (["1", "2.0"], None, "1,2", [1, 2]),
            (["1", "2"], None, "1.0,2.0", [1, 2]),
            (["01", "02"], None, "01,02", ["01", "02"]),
            (["1", "x"], None, "1,x", ["1", "x"]),
            (["1", "x"], ["1", "x"], None, ["1", "x"]),
            (["1", "2"], ["1", "2"], "1,2,3", [1, 2, 3]),
            (["1e2", "5"], None, "100,5", [5, 100]),
            (["9007199254740993", "9007199254740992"], None, "9007199254740993,9007199254740992", None),
        ],
    )
    def test_declared_and_public_classes_decide(self, private, public, classes, found, folder):
        def write(name, labels, n):
            frame = pd.DataFrame({"a": np.arange(n) % 7, "b": np.arange(n) % 5, "y": np.resize(labels, n)})
            frame.to_csv(name, index=False)
            return name

        told = ["--private", write("p.csv", private, 100), "--label-column", "y"]
        told += [] if public is None else ["--public", write("q.csv", public, 20)]
        told += [] if classes is None else ["--classes", classes]
        assert run("fit", *told, "--n-steps", 2, "--out", "m.safetensors", "--quiet") == 0
        model = load("m.safetensors")
        want = sorted(classes.split(",")) if found is None else found
        assert model.classes_.tolist() == want
        assert [type(label) for label in model.classes_.tolist()] == [type(label) for label in want]
        told = "--private p.csv --label-column y --epsilon 1 --report r.json --quiet"
        assert run("evaluate", "m.safetensors", *told.split()) == 0

    @pytest.mark.parametrize(
        ("classes", "weights", "message"),
        [
            ('" >50K"," <=50K', None, "cannot be read; write it as name,name,name, with double quotes"),
            ("0,2", None, "holds a label, which is not one of the classes [0, 2]"),
            ("0,1.5", None, "holds numbers that are not whole"),
            ("0,1", "2=1", "names '2', which is not one of the classes [0, 1]"),
            ("0,1", "0:1", "must be pairs such as A=1"),
        ],
    )
    def test_what_is_refused(self, classes, weights, message, folder, capsys):
        pd.DataFrame({"a": np.arange(50.0), "y": np.arange(50) % 2}).to_csv("p.csv", index=False)
        told = ["fit", "--private", "p.csv", "--label-column", "y", "--out", "m", "--classes", classes]
        told += [] if weights is None else ["--class-weight", weights]
        assert message in refuse(capsys, folder, *told)

    def test_weights_of_quoted_names(self, folder):
        frame = pd.DataFrame({"a": np.arange(90.0), "y": np.resize([" a=b", "c,d", "e"], 90)})
        frame.to_csv("p.csv", index=False)
        told = ("--private", "p.csv", "--label-column", "y", "--classes", '" a=b","c,d",e')
        weights = ("--class-weight", '" a=b"=2, "c,d" = 1,e=3')
        assert run("fit", *told, *weights, "--n-steps", 2, "--out", "m.safetensors", "--quiet") == 0
        assert load("m.safetensors").class_weight == {" a=b": 2.0, "c,d": 1.0, "e": 3.0}


OF_CLASSES = ["--private", "p.csv", "--label-column", "y", "--classes", "0,1"]


def test_a_file_with_its_label_column_is_predicted(folder, capsys):
    frame = pd.DataFrame({"a": np.arange(60.0), "y": np.arange(60) // 30, "note": "x"})
    frame[["a", "y"]].to_csv("p.csv", index=False)
    assert run("fit", *OF_CLASSES, "--out", "m.safetensors", "--quiet") == 0
    frame.to_csv("new.csv", index=False)
    capsys.readouterr()
    assert run("predict", "m.safetensors", "new.csv") == 0
    said = capsys.readouterr()
    assert "['y', 'note']; they are left out" in said.err and len(said.out.splitlines()) == 61


def test_warnings_name_what_the_command_line_has(folder, capsys):
    n = 300
    frame = pd.DataFrame({"PassengerId": np.arange(n), "age": np.arange(n) % 70, "y": np.arange(n) % 2})
    frame[:60].to_csv("q.csv", index=False)
    frame[60:].to_csv("p.csv", index=False)
    told = "--private p.csv --public q.csv --label-column y --n-steps 2 --quiet"
    told = ["fit", *told.split()]
    assert run(*told, "--encode", "public", "--out", "m.safetensors") == 0
    said = capsys.readouterr().err
    assert '{"kinds": {"PassengerId": "drop"}} in a file for --encode' in said and "columns=" not in said
    Path("d.json").write_text('{"kinds": {"PassengerId": "drop"}}')
    assert run(*told, "--encode", "d.json", "--out", "n.safetensors") == 0
    assert "PassengerId" not in capsys.readouterr().err


class TestExport:
    def test_a_graph(self, folder, capsys):
        onnx = pytest.importorskip("onnx")
        pd.DataFrame({"a": np.arange(60.0), "y": np.arange(60) // 30}).to_csv("p.csv", index=False)
        assert run("fit", *OF_CLASSES, "--out", "m.safetensors", "--quiet") == 0
        assert run("export", "m.safetensors", "--onnx", "m.onnx") == 0
        assert onnx.load("m.onnx").SerializeToString() == load("m.safetensors").to_onnx().SerializeToString()
        assert "m.onnx exists" in refuse(capsys, folder, "export", "m.safetensors", "--onnx", "m.onnx")
        assert "must end in .onnx" in refuse(capsys, folder, "export", "m.safetensors", "--onnx", "m.pb")

    @pytest.mark.parametrize("name", ["m.onnx", "m.csv", "m.json", "m.parquet", "M.ONNX"])
    def test_a_model_is_not_written_under_the_ending_of_another_format(self, name, folder, capsys):
        pd.DataFrame({"a": np.arange(60.0), "y": np.arange(60) // 30}).to_csv("p.csv", index=False)
        said = refuse(capsys, folder, "fit", *OF_CLASSES, "--out", name)
        assert "and write ONNX graphs by `skmixdp export`" in said


def test_whole_numbers_stay_whole_though_one_is_missing(folder):
    """Beyond 2**53, a real number would stand for another whole one, in all rows."""
    large = 2**60 + 1
    numbers = pd.array([large, *range(38), None], dtype="Int64")
    pd.DataFrame({"a": numbers, "won": np.arange(40) % 2}).to_feather("r.feather")
    frame = read_table(Path("r.feather"), "--private r")
    assert frame["a"][0] == large and frame["a"].isna().tolist() == [False] * 39 + [True]
