"""A first line that reads like a row is not published as names, and ids that are missing are refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression
from skmixdp.datasets import open_rows
from tests.private_names import main

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).round(3)
Y = (RNG.random(N) < 0.5).astype(int)
SECRET = 123456.75
#: Cells of a first row, each next to two cells that read like names.
CELLS = [
    *("123456.75", "-7", "1e5", ".5", "+3", "1,234.5", "12345,75", "1.234.567,5", "5%", "$12", "12:30"),
    *("2020-01-01", "2020/1/31", "31.12.2020", "1 2 2020", "2020-01-01T10:30", "20200101T1030", "3 May 2020"),
    *("May 3, 2020", "12-JAN-2021", "nan", "NA", "None", "null", "-", "true", "False", "inf", "#N/A", "(3)"),
]
#: Names that are none of these.
NAMES = [
    "x1",
    "age",
    "1st visit",
    "2nd",
    "Mayor",
    "marital",
    "größe",
    "x[0]",
    "a b",
    "dec",
    "e5",
    "é",
    "NAME",
]


def text(rows, names=None, separator=","):
    lines = [] if names is None else [separator.join(names)]
    return "\n".join([*lines, *(separator.join(map(str, row)) for row in rows)]) + "\n"


@pytest.mark.parametrize("cell", CELLS)
def test_a_first_line_with_a_cell_is_refused_and_not_quoted(cell, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text(X, ["smith", cell, "blue"], ";"))
    with pytest.raises(ValueError, match=r"reads like a row, .* by names \(--no-header\)") as refused:
        open_rows(path, separator=";")
    assert cell not in str(refused.value).removeprefix("rows.csv") or len(cell) < 3
    assert "smith" not in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_names_with_letters_stay(name, tmp_path):
    (tmp_path / "rows.csv").write_text(text(X, ["a", name, "c"]))
    rows = open_rows(tmp_path / "rows.csv")
    assert list(MixedDPLogisticRegression(classes=[0, 1]).fit(rows, Y).feature_names_in_) == ["a", name, "c"]


@pytest.mark.parametrize("names", [["a", "b", "c"], []])
@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, AdditiveDPClassifier])
def test_files_without_a_line_of_names(names, kind, tmp_path):
    first = np.vstack([[SECRET, -7.5, 98765.5], X])
    (tmp_path / "rows.csv").write_text(text(first))
    rows = open_rows(tmp_path / "rows.csv", names=names)
    assert rows.shape == (N + 1, 3)
    model = kind(classes=[0, 1]).fit(rows, np.append(Y, 1))
    assert list(model.feature_names_in_) == (names or ["c1", "c2", "c3"])
    assert model.privacy_.n_private == N + 1


def test_names_that_do_not_fit_are_refused(tmp_path):
    (tmp_path / "rows.csv").write_text(text(X))
    with pytest.raises(ValueError, match="has 3 cells in its first line and names has 2"):
        open_rows(tmp_path / "rows.csv", names=["a", "b"])
    for names in ("abc", ["a", "a", "b"], [1, 2, 3]):
        with pytest.raises(ValueError, match=r"names=.* must be a list of distinct names"):
            open_rows(tmp_path / "rows.csv", names=names)


# -- the command line -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named.csv").write_text(text(np.column_stack([X, Y]), ["a", "b", "c", "kind"]))
    (tmp_path / "bare.csv").write_text(text(np.column_stack([X, Y])))
    (tmp_path / "rows.npy").write_bytes(b"")
    np.save("rows.npy", X)
    (tmp_path / "labels.csv").write_text(text(Y[:, None]))
    return tmp_path


ENDS = ("--classes", "0,1", "--delta", "1e-4", "--out", "m.safetensors", "--force")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "--private", "bare.csv", "--label-column", "kind", *ENDS),
        ("fit", "--private", "named.csv", "--public", "bare.csv", "--label-column", "kind", *ENDS),
        ("fit", "--private", "rows.npy", "--labels", "labels.csv", *ENDS),
        ("infer", "--private", "bare.csv", "--label-column", "kind", "--classes", "0,1"),
    ],
)
def test_every_file_of_a_command_needs_its_names(arguments, folder, capsys):
    assert main(list(arguments)) == 2
    said = capsys.readouterr().err
    assert "reads like a row" in said and str(X[0, 0]) not in said
    assert not (folder / "m.safetensors").exists()


def test_the_flag_names_columns_by_place(folder, capsys):
    ends = [each for each in ENDS if each != "--force"]
    assert main(["fit", "--private", "bare.csv", "--no-header", "--label-column", "c4", *ends]) == 0
    assert f"{N} private" in capsys.readouterr().out or (folder / "m.safetensors").exists()
    assert main(["predict", "m.safetensors", "bare.csv", "--no-header", "--label-column", "c4"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == N + 1
    assert main(["fit", "--private", "rows.npy", "--labels", "labels.csv", "--no-header", *ENDS]) == 0


@pytest.mark.parametrize("cell", ["unknown", "moved to hospice 7", "n.a. (deceased 3 May)", "x" * 300])
def test_the_longest_cell_has_no_length_in_a_message(cell, folder, capsys):
    said = set()
    for odd in ("a", cell):
        targets = [*X[:, 1].astype(str)]
        targets[77] = odd
        pd.DataFrame({"x": X[:, 0], "target": targets}).to_csv("odd.csv", index=False)
        for command in (["fit", "--regression", "--out", "m.joblib"], ["infer", "--family", "gaussian"]):
            assert main([*command, "--private", "odd.csv", "--label-column", "target"]) == 2
        said.add(capsys.readouterr().err)
    assert len(said) == 1


# -- ids --------------------------------------------------------------------------------------

MISSING = ["", " ", "NA", "N/A", "NaN", "nan", "None", "null", "NULL", "n/a", "<NA>", "#N/A"]


@pytest.mark.parametrize("kind", ["array", "frame", "csv", "parquet", "command line"])
def test_ids_that_mean_missing_are_refused_wherever_they_are(kind, folder, capsys):
    for odd in MISSING:
        ids = [f"p{place // 2}" for place in range(N)]
        ids[77] = odd
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "id": ids, "kind": Y})
        clf = MixedDPLogisticRegression(classes=[0, 1])
        if kind == "command line":
            frame.to_csv("ids.csv", index=False)
            flags = ("--label-column", "kind", "--group-column", "id")
            assert main(["fit", "--private", "ids.csv", *flags, *ENDS]) == 2
            assert "missing ids" in capsys.readouterr().err
            continue
        path = folder / f"ids.{kind}"
        if kind == "csv":
            frame.to_csv(path, index=False)
        elif kind == "parquet":
            pytest.importorskip("pyarrow")
            frame.to_parquet(path)
        for_groups = {"groups": np.array(ids) if kind == "array" else frame["id"]}
        rows = open_rows(path, label="kind", group="id") if kind in ("csv", "parquet") else X
        labels, for_groups = (None, {}) if kind in ("csv", "parquet") else (Y, for_groups)
        with pytest.raises(ValueError, match="groups has missing ids"):
            clf.fit(rows, labels, **for_groups)


# -- logs of workers --------------------------------------------------------------------------

WORKER = """
import io, logging, warnings
import dask.array as da, numpy as np
from distributed import Client, LocalCluster
from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, MixedDPRidge
from skmixdp.inference import private_inference
warnings.simplefilter("ignore")
if __name__ == "__main__":
    out = io.StringIO()
    X = np.random.default_rng(0).normal(size=(600, 3)); y = (X[:, 0] > 0).astype(int); X[7, 0] = 123456.78125
    odd = {"text": "SECRET", "date": np.datetime64("2020-01-01"), "list": [123456.78125], "none": None,
           "complex": 123456.78125j, "bytes": b"SECRET", "huge": 10**400, "dict": {"SECRET": 1}}
    class Hostile:
        def __float__(self): raise KeyError("SECRET")
    odd["hostile"] = Hostile()
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        for name in ("distributed.worker", "distributed.scheduler", "distributed"):
            logging.getLogger(name).setLevel(logging.DEBUG)
            logging.getLogger(name).addHandler(logging.StreamHandler(out))
        with Client(cluster):
            for kind, cell in odd.items():
                def make(block, cell=cell):
                    block = block.astype(object)
                    rows = np.flatnonzero([isinstance(v, float) and v > 1e5 for v in block[:, 0]])
                    for row in rows: block[row, 1] = cell
                    return block
                rows = da.from_array(X, chunks=(150, 3)).map_blocks(make, dtype=float, meta=np.empty((0, 0)))
                for fit in (lambda: MixedDPLogisticRegression(classes=[0, 1]).fit(rows, y),
                            lambda: MixedDPRidge().fit(rows, y * 1.0),
                            lambda: AdditiveDPClassifier(classes=[0, 1]).fit(rows, y),
                            lambda: private_inference(rows, y, classes=[0, 1], epsilon=50.0)):
                    try: fit(); print(kind, "ran")
                    except ValueError as error: print(kind, error)
    log = out.getvalue()
    print("LOGGED", "SECRET" in log, "123456.78" in log, "Compute Failed" in log)
"""


@pytest.mark.slow
def test_no_worker_logs_a_cell(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, str(tmp_path / "worker.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    *lines, logged = done.stdout.splitlines()
    assert logged == "LOGGED False False False", done.stdout
    assert len(lines) == 36 and "SECRET" not in done.stdout and "123456" not in done.stdout
