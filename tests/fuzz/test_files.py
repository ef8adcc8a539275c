"""Damaged and foreign files: rows, models, ledgers, and the JSON that the library reads."""

import gzip
import io
import json
import lzma
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from sklearn.base import clone

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import PAZO
from skmixdp.datasets import open_rows
from skmixdp.exceptions import BudgetExceededError
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import GaussianEvent, PrivacyLedger, SelectionEvent
from tests.file_rows import read_labelled, read_unlabelled
from tests.private_names import (
    TextForm,
    _read_options,
    declared_columns,
    event_from_json,
    event_to_json,
    saving,
)
from tests.secrets import NUMBER, TEXT

from .limits import BAD_FILE, attempt, check_message, finite, fuzzed, limits, one_in, pick
from .values import NAMES, PICKLE, damaged

pytestmark = pytest.mark.filterwarnings("ignore")

N_ROWS = 8


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 2))
    X[3, 0] = NUMBER
    return X, np.arange(N_ROWS) % 2


def _frame(names: list[str] | None = None, text: bool = False) -> pd.DataFrame:
    X, y = _rows()
    frame = pd.DataFrame(X, columns=names or ["a", "b"]).assign(kind=y)
    return frame.assign(kind=[("ant", TEXT)[j] for j in y]) if text else frame


def _written(write: Callable[[Any], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    return _written(lambda file: np.savez(file, **arrays))


def _npy(array: Any) -> bytes:
    return _written(lambda file: np.save(file, array, allow_pickle=True))


def _npy_claiming(shape: str, dtype: str = "<f8") -> bytes:
    """A header that claims a shape, without the numbers."""
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin-1") + bytes(64)


def _zip(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _parquet(frame: pd.DataFrame) -> bytes:
    return _written(lambda file: frame.to_parquet(file, row_group_size=3))


def _feather(frame: pd.DataFrame) -> bytes:
    return _written(lambda file: frame.to_feather(file, compression="uncompressed"))


def _listed() -> pd.DataFrame:
    X, y = _rows()
    return pd.DataFrame({"X": list(X), "kind": y})


def _csv(frame: pd.DataFrame, **kwargs: Any) -> bytes:
    return str(frame.to_csv(index=False, **kwargs)).encode("utf-8", "surrogatepass")


@cache
def row_files() -> dict[str, tuple[bytes, ...]]:
    """Contents of whole and of foreign files, by the endings of their names."""
    X, y = _rows()
    text = _csv(_frame(text=True))
    with np.errstate(over="ignore"):
        halves, half_frame = X.astype(np.float16), _frame().astype({"a": "float16"})
    tables = (
        *(_frame(), _frame(text=True), _frame(["<script>", "=1+1"]), _frame(["a\nb", ""]), _listed()),
        *(_frame().assign(when=pd.Timestamp("2020-01-01")), _frame().iloc[:0], _frame().assign(empty=np.nan)),
        *(_frame().assign(whole=pd.array([None] * N_ROWS, dtype="Int64")), half_frame),
    )
    hostile_arrays = (
        *(X, X.astype(">f4"), halves, X > 0, X.astype(object), X.astype(str), X + 1j, X[0], X[:, :, None]),
        *(np.float64(1), X[:0], X[:, :0], np.zeros(3, [("a", "f8")]), np.array(PICKLE), np.asfortranarray(X)),
        *(np.full_like(X, np.nan), X.astype("M8[s]")),
    )
    return {
        ".npy": (
            *map(_npy, hostile_arrays),
            *map(_npy_claiming, ("(10**30, 2)", "(1000000000000, 1000)", "(-1, 2)", "(True, 2)", "(" * 80)),
            *(_npy_claiming("(2,)", "|O"), _npy_claiming("(8, 2)", "<U100000000"), PICKLE),
            _npy_claiming("(2, __import__('os').getpid())"),
        ),
        ".npz": (
            *(_npz(X=X, y=y), _npz(X=X, y=y.astype(str)), _npz(X=X), _npz(y=y), _npz(X=X, y=y[:3])),
            *(_npz(X=X, y=y, report='{"model": "a"}', encoder="[]"), _npz(X=X, y=y.astype(object))),
            *(_npz(X=hostile, y=y) for hostile in hostile_arrays),
            _zip(**{"X.npy": _npy_claiming("(100000000000, 1000)"), "y.npy": _npy(y)}),
            _zip(**{"X.npy": PICKLE, "y.npy": PICKLE}),
            _zip(**{"../../X.npy": _npy(X), "/X.npy": _npy(X), "X.npy": _npy(X), "y.npy": _npy(y)}),
            *(_zip(), _npy(X)),
        ),
        ".parquet": (*map(_parquet, tables), text, PICKLE),
        ".feather": (*map(_feather, tables), text, PICKLE),
        ".csv": (
            *(*map(_csv, tables), text, _csv(_frame(), sep=";"), b"", b"\n\n", b"\x00" * 50, PICKLE),
            *(b"a,b,kind\n", b"a,a,kind\n1,2,0\n3,4,1\n", b"a,b,kind\n1,2\n", b"\xff\xfea\x00,\x00"),
            *(b'a,b,kind\n"1,2,0\n', b"a,b,kind\n1,2,0,5\n", b"a,b,kind\n1e999,0,1\n2,3,0\n"),
        ),
        ".csv.gz": (gzip.compress(text), gzip.compress(_csv(_frame())), text),
        ".csv.xz": (lzma.compress(text), lzma.compress(_csv(_frame()))),
    }


@st.composite
def files_of_rows(draw: Any) -> tuple[str, bytes]:
    """An ending and the content of a whole, foreign or damaged file."""
    ending = draw(pick([*row_files()]))
    content = draw(pick(row_files()[ending]))
    return ending, draw(damaged(content)) if draw(st.integers(0, 4)) else content


@fuzzed(20)
@given(
    files_of_rows(),
    pick(("kind", None, "a", "y", "")),
    pick(("blocks", "fit", "--private", "ROWS")),
    pick((None, "kind", "a")),
    one_in(3),
)
def test_rows(file, label, way, column, raw):
    """A damaged or foreign file of rows, by the ways in which such files are read."""
    ending, content = file
    with limits() as folder:
        path = folder / f"rows{ending}"
        path.write_bytes(content)
        read = {
            "blocks": lambda: _blocks(path, {} if label is None else {"label": label}),
            "fit": lambda: _fit_file(path, label),
            "--private": lambda: read_labelled(path, way, label, None, "--labels", TextForm(), raw=raw),
            "ROWS": lambda: read_unlabelled(path, way, [label], TextForm(), column, raw=False),
        }
        heard = attempt(read[way], *BAD_FILE, secret=True)
        if heard.error is not None:
            names = ("rows", "ROWS", "X", "y", "--label-column", "--id", "label", "classes")
            check_message(str(heard.error), names)
        elif way == "fit":
            finite("coef_", heard.result.coef_)
        elif way == "--private" and not isinstance(heard.result.X, pd.DataFrame):
            finite("rows", heard.result.X)


def _blocks(path: Path, arguments: dict[str, Any]) -> Any:
    rows = open_rows(path, **arguments)
    for block in rows.blocks():
        assert block.ndim == 2, f"a block has shape {block.shape}"
    assert repr(rows)
    return rows.labels


def _fit_file(path: Path, label: str | None) -> Any:
    rows = open_rows(path, **({} if label is None else {"label": label}))
    y = None if label is not None or path.suffix == ".npz" else np.arange(rows.shape[0]) % 2
    clf = MixedDPLogisticRegression("noisy-gd", classes=[0, 1], epsilon=1.0, random_state=0, n_steps=1)
    return clf.fit(rows, y)


# -- models ---------------------------------------------------------------------------------


@cache
def models() -> tuple[tuple[str, bytes], ...]:
    """Names and files of fitted estimators."""
    rng = np.random.default_rng(0)
    X, X_pub = rng.normal(size=(20, 3)), rng.normal(size=(9, 3))
    y, y_pub = np.arange(20) % 3, np.arange(9) % 3
    names = np.array(["ant", "bee", "cat"])
    frames = [pd.DataFrame(rows, columns=["a", "b", "c"]) for rows in (X, X_pub)]
    with warnings.catch_warnings(action="ignore"):
        few = {"random_state": 0, "n_steps": 2}
        fits = (
            MixedDPLogisticRegression(**few).fit(frames[0], names[y], frames[1], names[y_pub]),
            MixedDPLogisticRegression(**few, classes=[0, 1]).fit(X, y % 2),
            MixedDPLogisticRegression("adamix", **few, rows=RowMapping(whiten=True)).fit(X, y, X_pub, y_pub),
            MixedDPRidge(**few).fit(X, X[:, :2], X_pub, X_pub[:, :2]),
            MixedDPLogisticRegression(PAZO("m"), **few).fit(X, y, X_pub, y_pub),
        )
    return tuple((type(fit).__name__, saving.model_bytes(fit)) for fit in fits)


def parts_of(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and texts of a safetensors file."""
    size = int.from_bytes(content[:8], "little")
    return from_bytes(content), json.loads(content[8 : 8 + size])["__metadata__"]


def with_checksum(arrays: dict[str, np.ndarray], texts: dict[str, str]) -> bytes:
    """A file whose checksum is right."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return to_bytes(arrays, texts | {"sha256": saving._checksum(texts["model"], arrays)})


#: What an entry of JSON may be replaced by.
JSON = (
    *(None, True, False, 0, -1, 1, 2**70, 1e308, -0.5, "", "auto", "a\nb", "ant", [], {}, [1], [[1, 2]]),
    *({"a": 1}, {"array": "coef_", "transposed": False}, {"array": "nope", "transposed": True}),
    *({"float": "inf"}, {"tuple": []}, {"dict": [[1, 2], [[1], 2]]}, {"range": [0, 10**9, 1]}),
    *({"range": [0, 1, 0]}, {"path": "/etc/passwd"}, {"labels": ["a", "b", "c"], "dtype": "<U1"}),
    *({"labels": [1, None], "dtype": "object"}, {"labels": ["a"], "dtype": "O"}),
    *({"labels": [], "dtype": "<U99999999"}, {"scalar": 1, "dtype": "float32"}),
    *({"scalar": "x", "dtype": "int8"}, {"scalar": 300, "dtype": "uint8"}),
    {"ledger": "/nope/l.sqlite", "dataset": "d", "purpose": "\n"},
    *({"class": "RowMap", "values": {}}, {"class": "AdaMix", "values": {"quantile": 7}}),
    *({"class": "os", "values": {}}, {"class": "NoisyGD", "values": {}}),
    {"class": "ZeroShotHead", "values": {"encoder": None, "class_names": []}},
    {"class": "__import__", "values": {"name": "os"}},
)


def _places(tree: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all entries of a JSON value."""
    found = [here] if here else []
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        found += _places(child, (*here, key))
    return found


@st.composite
def changed_tree(draw: Any, tree: Any) -> Any:
    """A JSON value with some entries replaced, removed, renamed or swapped."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw(pick((1, 1, 1, 2, 3)))):
        places = _places(tree)
        if not places:
            return tree
        *above, last = draw(pick(places))
        parent, kind = reduce(getitem, above, tree), draw(st.integers(0, 5))
        if kind <= 2:
            parent[last] = json.loads(json.dumps(draw(pick(JSON))))
        elif kind == 3:
            del parent[last]
        elif kind == 4 and isinstance(parent, dict):
            parent[draw(pick(NAMES))] = parent.pop(last)
        elif kind == 5:
            parent[last] = json.loads(json.dumps(reduce(getitem, draw(pick(places)), tree)))
    return tree


@st.composite
def changed_arrays(draw: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of which one has another type, shape or value, or is not there."""
    name = draw(pick([*arrays]))
    array, value = arrays[name], draw(pick((np.nan, np.inf, 1e308, 5e-324, -0.0)))
    with np.errstate(all="ignore"):
        changes = [
            *(array.astype(np.float16), array.astype(np.int64), array[..., :0], array.ravel(), array[None]),
            *(np.full_like(array, value), np.asarray(np.float64(1)), array > 0, array.T, None),
        ]
    change = changes[draw(st.integers(0, len(changes) - 1))]
    kept = {other: held for other, held in arrays.items() if other != name}
    return kept if change is None else {**kept, name: change}


@st.composite
def model_files(draw: Any) -> bytes:
    """A file of a model that is damaged, or forged with a right checksum."""
    _, content = draw(pick(models()))
    way = draw(pick(("bytes", "text", "arrays", "tree", "tree")))
    if way == "bytes":
        return draw(damaged(content))
    arrays, texts = parts_of(content)
    if way == "text":
        texts["model"] = draw(damaged(texts["model"].encode(), most=2)).decode("utf-8", "replace")
    elif way == "arrays":
        arrays = draw(changed_arrays(arrays))
    else:
        texts["model"] = json.dumps(draw(changed_tree(json.loads(texts["model"]))))
    try:
        return with_checksum(arrays, texts)
    except Exception:  # the format has no such array
        assume(False)
        raise


@fuzzed(17.5)
@given(model_files())
def test_models(content):
    """A damaged or forged model file is refused, or the model in it works."""
    with limits() as folder:
        path = folder / "model.safetensors"
        path.write_bytes(content)
        heard = attempt(lambda: skmixdp.load(path), *BAD_FILE)
        if heard.error is None:
            _use(heard.result, folder)
        else:
            check_message(str(heard.error), ("model.safetensors",))
            assert isinstance(heard.error, (ValueError, OSError))


def _use(model: Any, folder: Path) -> None:
    """A model that was loaded predicts finite numbers, and can be shown, cloned and saved."""
    X = np.array([[0.5, -1.0, 2.0], [1e300, -1e300, 0.0], [0.0, -0.0, 5e-324]])
    names = getattr(model, "feature_names_in_", None)
    rows = X[:, : model.n_features_in_] if names is None else pd.DataFrame(X, columns=names)

    def use() -> Any:
        predicted = model.predict(rows)
        return model.predict_proba(rows) if hasattr(model, "predict_proba") else predicted

    heard = attempt(use, ValueError)
    if heard.error is None:
        finite("predictions", heard.result)
    else:
        check_message(str(heard.error).replace("\n", " "))
    assert str(model.privacy_) and repr(model) and model._repr_html_() and model.privacy_.to_json()
    clone(model)
    model.save(folder / "again.safetensors")


# -- ledgers --------------------------------------------------------------------------------


@cache
def ledger_bytes() -> bytes:
    """The file of a ledger with two data sets and some charges."""
    with limits() as folder:
        ledger = PrivacyLedger(folder / "l.sqlite")
        first = ledger.add_dataset("d", epsilon=3.0, delta=1e-5)
        second = ledger.add_dataset("sampled", epsilon=5.0, delta=1e-6, composition="renyi")
        for _ in range(2):
            charge = first.charge(GaussianEvent(20, 10), neighboring="add_or_remove_one", description="fit")
            second.charge(GaussianEvent(20.0, 10), neighboring="replace_one")
        first._record_outcome(charge, "finished")
        del ledger, first, second
        with sqlite3.connect(folder / "l.sqlite") as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        return (folder / "l.sqlite").read_bytes()


#: What a cell of a damaged ledger may hold.
CELLS = (
    *(None, 0, 1, -1, 2**62, 1e308, -1.5, "", "x", "nan", "inf", "[]", "[1]", "{}", b"\x00\xff", "d"),
    *("renyi", "gaussian", "replace_one", "2020-01-01", "9999-99-99", "[" * 3000, "\ud7ff" * 3),
    *('{"kind": "gaussian", "values": {}}', '{"kind": "os", "values": {}}'),
    '{"kind": "gaussian", "values": {"noise_multiplier": 1e-320, "n_steps": 1}}',
)


@st.composite
def changes_of_cells(draw: Any) -> tuple[str, tuple[Any, ...]]:
    """A statement that changes a ledger, and its values; ``{column}`` stands for one of the columns."""
    table, value = draw(pick(("accounts", "charges"))), draw(pick(CELLS))
    update = f'UPDATE {table} SET "{{column}}" = ?'
    others = (
        f'ALTER TABLE {table} RENAME COLUMN "{{column}}" TO other',
        f"CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM {table}; END",
        *(f"DELETE FROM {table}", f"DROP TABLE {table}"),
        *("PRAGMA user_version = 7", "PRAGMA application_id = 1"),
    )
    statement = draw(pick((*[update] * 3, *[f"{update} WHERE rowid = 1"] * 3, *others)))
    return statement, (value,) if "?" in statement else ()


def _change(path: Path, statement: str, values: tuple[Any, ...], number: int) -> None:
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error):
        table = "accounts" if "accounts" in statement else "charges"
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.execute(statement.replace("{column}", columns[number % len(columns)]), values)
        connection.commit()


@fuzzed(8)
@given(st.data())
def test_ledgers(data):
    """A damaged ledger is refused, or charges as the sums in it say."""
    draw, whole = data.draw, ledger_bytes()
    name, event = draw(pick(("d", "sampled"))), GaussianEvent(draw(pick((30.0, 5.0, 1e3))), 5)
    by_bytes = draw(one_in(3))
    with limits() as folder:
        path = folder / "l.sqlite"
        path.write_bytes(draw(damaged(whole)) if by_bytes else whole)
        if not by_bytes:
            _change(path, *draw(changes_of_cells()), draw(st.integers(0, 20)))
        allowed = (*BAD_FILE, KeyError, BudgetExceededError)
        heard = attempt(lambda: _read_ledger(path), *allowed)
        if heard.error is not None:
            check_message(str(heard.error).replace("\n", " "))
        before = None
        with suppress(*BAD_FILE, KeyError):
            before = PrivacyLedger(path)[name].account
        relation = "add_or_remove_one" if name == "d" else "replace_one"
        heard = attempt(lambda: PrivacyLedger(path)[name].charge(event, neighboring=relation), *allowed)
        if heard.error is None:
            after = PrivacyLedger(path)[name].account
            assert before is not None and after.total > before.total
            assert after.spent <= after.epsilon * (1 + 1e-6), f"a charge leads from {before} to {after}"


def _read_ledger(path: Path) -> None:
    ledger = PrivacyLedger(path)
    report = ledger.report()
    assert str(report) and report.to_json() and report.to_csv() and report.to_html()
    for name in ledger:
        assert ledger[name].spent >= 0 and ledger[name].remaining >= 0


# -- JSON -----------------------------------------------------------------------------------

EVENTS = (
    *(GaussianEvent(3.0, 10, 0.5), GaussianEvent(20.0, 1, noise="discrete")),
    *(SelectionEvent(3.0, 5.0), SelectionEvent(3.0, 5.5)),
)
COLUMNS = {
    "numbers": {"age": [0, 120], "x": [-1.5, 1.5]},
    "categories": {"city": ["Bonn", "Ulm"], "n": [1, 2.5, True]},
}


SOURCES = {
    **{f"event {number}": json.loads(event_to_json(event)) for number, event in enumerate(EVENTS)},
    "columns": COLUMNS,
    "options": {"layers": "last", "J": 2},
}


@st.composite
def damaged_json(draw: Any) -> tuple[str, str]:
    """What is read, and a damaged text of it."""
    kind = draw(pick([*SOURCES]))
    whole = json.dumps(SOURCES[kind])
    texts = (
        *(changed_tree(SOURCES[kind]).map(json.dumps), pick(('"\\ud800"', "", "null", '{"kind": []}'))),
        damaged(whole.encode()).map(lambda content: content.decode("utf-8", "replace")),
        pick(("[" * 100_000, "9" * 5000, "NaN", "Infinity")),
    )
    return kind, draw(st.one_of(*texts))


@fuzzed(8)
@given(damaged_json())
@example(("columns", "[" * 100_000))
def test_json(damaged):
    """Damaged JSON of events, of declared columns, and of options."""
    kind, text = damaged
    with limits() as folder:
        if kind == "columns":
            (folder / "columns.json").write_bytes(text.encode("utf-8", "surrogatepass"))
            heard = attempt(lambda: _encode(declared_columns(folder / "columns.json")), ValueError)
            if heard.error is None:
                finite("encoded", heard.result)
        elif kind == "options":
            heard = attempt(lambda: _read_options(text), ValueError)
        else:
            heard = attempt(lambda: event_from_json(text), ValueError)
            assert heard.error or event_from_json(event_to_json(heard.result)) == heard.result
        if heard.error is not None and kind != "options":
            check_message(str(heard.error))


def _encode(told: dict[str, Any]) -> Any:
    frame = pd.DataFrame({name: [1.0, np.nan, -1e300] for name in told})
    return TableEncoder(told).fit(frame).transform(frame)
