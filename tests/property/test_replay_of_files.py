"""No cell or line of a private file decides how others are read."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skmixdp import load
from skmixdp.datasets import open_rows
from skmixdp.preprocessing import TableEncoder
from tests.file_rows import read_labelled, read_unlabelled
from tests.private_names import TextForm, as_classes, dotted_path, guessed_form
from tests.unit.cli.conftest import run

N, ODD_ROW = 24, 5
COLUMNS = {
    "whole": [str(i - 3) for i in range(N)],
    "real": [f"{i}.{i}" for i in range(N)],
    "codes": [f"{i % 4:02d}" for i in range(N)],
    "large": [str(2**53 + i) for i in range(N)],
    "truth": [("True", "FALSE")[i % 2] for i in range(N)],
    "date": [f"2020-01-{i + 1:02d}" for i in range(N)],
    "moment": [f"2020-01-{i + 1:02d}T0{i % 9}:30" for i in range(N)],
    "word": [("Ulm", "Bonn", "NA", "")[i % 4] for i in range(N)],
    "text": [f"one of {i} texts" for i in range(N)],
}
ODD = {
    "gap": "",
    "missing word": "N/A",
    "word": "x",
    "truth value": "True",
    "huge": "1e308",
    "beyond floats": "1e400",
    "infinite": "-inf",
    "tiny": "1e-300",
    "subnormal": "5e-324",
    "real": "0.1",
    "whole": "7",
    "leading zero": "007",
    "underscore": "1_000",
    "thousands": '"1,234.50"',
    "dollars": "$5",
    "date": "2020-02-30",
    "another date": "03/04/2021",
    "year 9999": "9999-12-31",
    "year 10000": "10000-01-01",
    "list": "[1]",
    "quoted": '"a, b"',
    "quotes": '"a ""b"""',
    "inner quote": 'a"b',
    "spaces": "  ",
    "other digits": "\u0661\u0662",
    "no break": "a\u2028b",
    "form feed": "a\x0cb",
    "long": "y" * 200_000,
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(columns, name="rows.csv", separator=","):
    rows = zip(*columns.values(), strict=True)
    lines = [separator.join(columns), *(separator.join(row) for row in rows)]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return Path(name)


def changed(columns, name, cell):
    cells = list(columns[name])
    cells[ODD_ROW] = cell
    return {**columns, name: cells}


def others(rows):
    return np.delete(np.asarray(rows), ODD_ROW, axis=0)


LABELLED = {**COLUMNS, "y": [str(i % 2) for i in range(N)]}


@pytest.mark.parametrize("column", COLUMNS)
def test_odd_cells_of_tables_that_are_encoded(column):
    path = write(COLUMNS)
    public = read_unlabelled(path, "--unlabeled", [], TextForm(), raw=True).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about public cells
        declared = ({}, {column: "category"}, {column: "text"})
        encoders = [TableEncoder(told, indicators=True).fit(public, X_pub=public) for told in declared]
    with warnings.catch_warnings(action="error"):
        want = [others(encoder.transform(public)).tobytes() for encoder in encoders]
    for odd in (*ODD.values(), COLUMNS[column][0]):
        write(changed(LABELLED, column, odd))
        with warnings.catch_warnings(action="error"):
            X = read_labelled(path, "--private", "y", None, "--labels", TextForm(), raw=True).X
            assert [others(encoder.transform(X)).tobytes() for encoder in encoders] == want
        assert X.drop(index=ODD_ROW).equals(public.drop(index=ODD_ROW))


NUMBERS = {name: LABELLED[name] for name in ("whole", "real", "large", "truth", "y")}


@pytest.mark.parametrize("column", [*NUMBERS][:-1])
def test_odd_cells_of_tables_of_numbers(column):
    write(NUMBERS)
    readers = {
        "command line": lambda: read_labelled(
            Path("rows.csv"), "--private", "y", None, "--labels", TextForm()
        ).X.to_numpy(),
        "open_rows": lambda: np.concatenate(list(open_rows("rows.csv", label="y").blocks())),
    }
    for reader, read in readers.items():
        write(NUMBERS)
        want, refusals = others(read()), {}
        for odd in ODD:
            write(changed(NUMBERS, column, ODD[odd]))
            with warnings.catch_warnings(action="error"):
                try:
                    found = read()
                except ValueError as error:
                    refusals.setdefault(str(error), set()).add(odd)
                else:
                    assert others(found).tobytes() == want.tobytes(), (reader, odd)
        # Whether a cell is text is one refusal, and whether it is missing or infinite the other one.
        assert len(refusals) <= 2 and "word" in set().union(*refusals.values())


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("odd", ["1,5", "1.5", "1.234", "1.234,5", "1,234.5", "1", "x;y", ""])
def test_odd_cells_in_a_declared_form(decimal, odd):
    form = TextForm(";", decimal)
    cells = [f"{i}{decimal}5" for i in range(N)]
    columns = {"a": cells, "b": cells, "y": NUMBERS["y"]}
    path = write(columns, separator=";")
    want = read_labelled(path, "--private", "y", None, "--labels", form, raw=True).X
    write(changed(columns, "a", f'"{odd}"'), separator=";")
    found = read_labelled(path, "--private", "y", None, "--labels", form, raw=True).X
    assert found.drop(index=ODD_ROW).equals(want.drop(index=ODD_ROW)) and want["a"][1] == "1.5"


@pytest.mark.parametrize("spelt", ["1", "1.0", "+1", " 1", "1e0", "True", "x", "01", "2", "1.5", "nan", "NA"])
@pytest.mark.parametrize("classes", [[0, 1], [0.0, 1.0], ["0", "1"], [False, True], ["a", "b"]])
def test_odd_labels(spelt, classes):
    """A label is a class or is refused; the others are the same, of the same type."""
    classes = np.array(classes)
    texts = [str(label) for label in classes[np.arange(N) % 2]]
    want = as_classes(np.array(texts), classes, "rows", "declared", private=True)
    texts[ODD_ROW] = spelt
    refused, found = "", want
    try:
        found = as_classes(np.array(texts), classes, "rows", "declared", private=True)
    except ValueError as error:
        refused = str(error)
    assert found.dtype == want.dtype and others(found).tolist() == others(want).tolist()
    assert refused == "" or refused.startswith("rows holds a label, which is not one of the classes")


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("column", ["whole", "large", "real", "truth", "word", "date"])
def test_odd_cells_of_files_with_types(ending, column):
    """pandas gives a column its type by all of its cells, and the file keeps this type."""
    pytest.importorskip("pyarrow")
    cells = {
        "whole": [int(cell) for cell in COLUMNS["whole"]],
        "large": [int(cell) for cell in COLUMNS["large"]],
        "real": np.float32([float(cell) for cell in COLUMNS["real"]]),
        "truth": [i % 2 == 0 for i in range(N)],
        "word": COLUMNS["text"],
        "date": [*pd.date_range("2020-01-01", periods=N)],
    }
    odd = {
        "whole": [None, 0.5, 2**40, np.nan],
        "large": [None, 1],
        "real": [None, 0.1],
        "truth": [None],
        "word": [None, ""],
        "date": [None, pd.Timestamp("2300-01-01T05:00")],
    }
    frame = pd.DataFrame({**cells, "y": np.arange(N) % 2})
    path = Path(f"rows.{ending}")

    def read(frame, raw=True):
        getattr(frame, f"to_{ending}")(path)
        return read_labelled(path, "--private", "y", None, "--labels", TextForm(), raw=raw).X

    public = read(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about public cells
        encoders = [TableEncoder(indicators=True).fit(public, X_pub=public)]
        encoders.append(TableEncoder({column: "category"}).fit(public, X_pub=public))
    numbers = frame[["whole", "large", "real", "truth", "y"]]
    want, plain = [encoder.transform(public) for encoder in encoders], read(numbers, raw=False)
    for cell in odd[column]:
        values = [cell if i == ODD_ROW else one for i, one in enumerate(frame[column].tolist())]
        X = read(frame.assign(**{column: pd.Series(values)}))
        for encoder, rows in zip(encoders, want, strict=True):
            assert others(encoder.transform(X)).tobytes() == others(rows).tobytes(), cell
        if column in numbers and not pd.isna(cell) and column != "large":
            found = read(numbers.assign(**{column: pd.Series(values)}), raw=False)
            assert others(found).tobytes() == others(plain).tobytes() and set(map(str, found.dtypes)) == {
                "float64"
            }
            opened = open_rows(path, label="y")
            assert others(np.concatenate(list(opened.blocks()))).tobytes() == others(plain).tobytes()


def test_the_form_of_a_private_file_is_not_guessed(monkeypatch):
    """Whatever is guessed is guessed of public files: private ones are not opened for it."""
    guessed = []

    def noted(path, form, where):
        guessed.append(path.name)
        return guessed_form(path, form, where)

    monkeypatch.setattr(dotted_path("cli_fit.guessed_form"), noted)
    for name in ("private.csv", "public.csv", "more.csv"):
        write(NUMBERS, name, separator=";")
    told = ("fit", "--private", "private.csv", "--label-column", "y", "--out", "m.safetensors", "--quiet")
    assert run(*told, "--classes", "0,1") == 2 and guessed == []
    assert run(*told, "--public", "public.csv", "--unlabeled", "more.csv", "--n-steps", 2) == 0
    assert set(guessed) == {"public.csv", "more.csv"}


@pytest.mark.parametrize("kind", ["encoded", "numbers"])
def test_commands_say_and_write_the_same(kind, capsys):
    """Exit codes, standard error and the facts of models and reports."""
    columns = LABELLED if kind == "encoded" else NUMBERS
    rng = np.random.default_rng(0)
    large = {name: [cells[i] for i in rng.integers(0, N, 300)] for name, cells in columns.items()}
    write(large, "public.csv")
    cells = ("1", "7.5", "1e300") if kind == "numbers" else ("1", "", "x", '"a, b"', "2020-02-30", "1e400")
    found = []
    encode = ("--encode", "public") if kind == "encoded" else ()
    algorithm = ("--algorithm", "noisy-gd", "--n-steps", 2)  # the default may say what its noise decided
    for cell in cells:
        write(changed(large, "whole", cell), "private.csv")
        told = ("--private", "private.csv", "--label-column", "y")
        fit = ("fit", *told, "--public", "public.csv", *encode, *algorithm, "--quiet", "--force")
        codes = [run(*fit, "--out", "m.safetensors")]
        model = load("m.safetensors")
        head = model[-1] if kind == "encoded" else model
        codes.append(
            run(
                "evaluate", "m.safetensors", *told, "--epsilon", 1, "--report", "r.json", "--force", "--quiet"
            )
        )
        codes.append(run("predict", "m.safetensors", "private.csv", "--out", "p.csv", "--force"))
        facts = head.coef_.shape, head.coef_.dtype, head.classes_.tolist(), str(head.privacy_)
        found.append((codes, facts, capsys.readouterr().err, len(Path("p.csv").read_text().splitlines())))
    assert all(one == found[0] for one in found) and found[0][0] == [0, 0, 0]
