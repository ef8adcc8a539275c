"""Damaged and foreign files: rows, models, ledgers, and the JSON that the library reads."""

import io
import json
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from sklearn.base import clone

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier
from skmixdp._cli.columns import declared_columns
from skmixdp._cli.models import _read_options
from skmixdp._cli.rows import read_labelled, read_unlabelled
from skmixdp._rows.text import TextForm
from skmixdp.datasets import open_rows
from skmixdp.estimators._exports import saving
from skmixdp.exceptions import BudgetExceededError
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import GaussianEvent, PrivacyLedger, SelectionEvent
from skmixdp.privacy.ledger._records import event_from_json, event_to_json

from .harness import (
    BAD_INPUT,
    SECRET,
    SECRET_SIGNS,
    SECRET_TEXT,
    Draw,
    PromiseError,
    Tally,
    attempt,
    case,
    check_message,
    describe,
    finite,
    fresh_folder,
)
from .values import NAMES, PICKLE, damaged

#: What a file may be refused with.
BAD_FILE = (*BAD_INPUT, OSError)

N_ROWS = 8


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 2))
    X[3, 0] = SECRET
    return X, np.arange(N_ROWS) % 2


def _frame(names: list[str] | None = None, text: bool = False) -> pd.DataFrame:
    X, y = _rows()
    frame = pd.DataFrame(X, columns=names or ["a", "b"]).assign(kind=y)
    return frame.assign(kind=[("ant", SECRET_TEXT)[j] for j in y]) if text else frame


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
    import gzip
    import lzma

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
            *(_npy_claiming("(10**30, 2)"), _npy_claiming("(1000000000000, 1000)"), _npy_claiming("(-1, 2)")),
            *(
                _npy_claiming("(2,)", "|O"),
                _npy_claiming("(8, 2)", "<U100000000"),
                _npy_claiming("(True, 2)"),
                PICKLE,
            ),
            *(_npy_claiming("(2, __import__('os').getpid())"), _npy_claiming("((((((((" * 10)),
        ),
        ".npz": (
            *(_npz(X=X, y=y), _npz(X=X, y=y.astype(str)), _npz(X=X), _npz(y=y), _npz(X=X, y=y[:3])),
            *(_npz(X=X, y=y, report='{"model": "a"}', encoder="[]"), _npz(X=X, y=y.astype(object))),
            *(_npz(X=hostile, y=y) for hostile in hostile_arrays),
            _zip(**{"X.npy": _npy_claiming("(100000000000, 1000)"), "y.npy": _npy(y)}),
            _zip(**{"X.npy": PICKLE, "y.npy": PICKLE}),
            _zip(**{"../../X.npy": _npy(X), "/X.npy": _npy(X), "X.npy": _npy(X), "y.npy": _npy(y)}),
            _zip(),
            _npy(X),
        ),
        ".parquet": (*map(_parquet, tables), text, PICKLE),
        ".feather": (*map(_feather, tables), text, PICKLE),
        ".csv": (
            *map(_csv, tables),
            text,
            *(
                b"",
                b"\n\n",
                b"a,b,kind\n",
                b"a,a,kind\n1,2,0\n3,4,1\n",
                b"a,b,kind\n1,2\n",
                b"\xff\xfea\x00,\x00",
            ),
            *(
                b'a,b,kind\n"1,2,0\n',
                b"a,b,kind\n1,2,0,5\n",
                b"a,b,kind\n1e999,0,1\n2,3,0\n",
                b"\x00" * 50,
                PICKLE,
            ),
            _csv(_frame(), sep=";"),
        ),
        ".csv.gz": (gzip.compress(text), gzip.compress(_csv(_frame())), text),
        ".csv.xz": (lzma.compress(text), lzma.compress(_csv(_frame()))),
    }


def check_row_files(draw: Draw, tally: Tally) -> None:
    """A damaged or foreign file of rows, by the three ways in which such files are read."""
    ending = draw.pick([*row_files()])
    content = draw.pick(row_files()[ending])
    if draw.whole(0, 4):
        content = damaged(draw, content)
    label, way = draw.pick(("kind", None, "a", "y", "")), draw.whole(0, 3)
    with fresh_folder() as folder, case(tally, folder):
        path = folder / f"rows{ending}"
        path.write_bytes(content)
        describe(ending=ending, label=label, way=way, content=content)
        if way == 0:
            arguments = {} if label is None else {"label": label}
            end = attempt(tally, lambda: _blocks(path, arguments), *BAD_FILE, secrets=SECRET_SIGNS)
        elif way == 1:
            end = attempt(tally, lambda: _fit_file(path, label), *BAD_FILE, secrets=SECRET_SIGNS)
        elif way == 2:
            raw = draw.chance(3)
            reading = (path, "--private", label, None, "--labels", TextForm())
            end = attempt(tally, lambda: read_labelled(*reading, raw=raw), *BAD_FILE, secrets=SECRET_SIGNS)
        else:
            column = draw.pick((None, "kind", "a"))
            end = attempt(
                tally,
                lambda: read_unlabelled(path, "ROWS", [label], TextForm(), column, raw=False),
                *BAD_FILE,
                secrets=SECRET_SIGNS,
            )
        if end.error is not None:
            names = ("rows", "ROWS", "X", "y", "--label-column", "--id", "label", "classes")
            check_message(end.message, names)
        elif way == 1:
            finite("coef_", end.result.coef_)
        elif way == 2:
            finite("rows", end.result.X) if not isinstance(end.result.X, pd.DataFrame) else None


def _blocks(path: Path, arguments: dict[str, Any]) -> Any:
    rows = open_rows(path, **arguments)
    for block in rows.blocks():
        if block.ndim != 2:
            raise PromiseError(f"a block has shape {block.shape}")
    repr(rows)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = (
            MixedDPLogisticRegression(random_state=0, n_steps=2).fit(
                frames[0], names[y], frames[1], names[y_pub]
            ),
            MixedDPLogisticRegression(random_state=0, n_steps=2, classes=[0, 1]).fit(X, y % 2),
            MixedDPLogisticRegression("adamix", random_state=0, n_steps=2, whiten=True).fit(
                X, y, X_pub, y_pub
            ),
            MixedDPRidge(random_state=0, n_steps=2).fit(X, X[:, :2], X_pub, X_pub[:, :2]),
            ZerothOrderDPClassifier(random_state=0, n_steps=2).fit(X, y, X_pub, y_pub),
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
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**70,
        1e308,
        -0.5,
        "",
        "auto",
        "a\nb",
        "ant",
        [],
        {},
        [1],
        [[1, 2]],
        {"a": 1},
    ),
    *({"array": "coef_", "transposed": False}, {"array": "nope", "transposed": True}, {"float": "nan"}),
    *(
        {"float": "inf"},
        {"tuple": []},
        {"dict": [[1, 2], [[1], 2]]},
        {"range": [0, 10**9, 1]},
        {"range": [0, 1, 0]},
    ),
    *(
        {"path": "/etc/passwd"},
        {"labels": ["a", "b", "c"], "dtype": "<U1"},
        {"labels": [1, None], "dtype": "object"},
    ),
    *(
        {"labels": ["a"], "dtype": "O"},
        {"labels": [], "dtype": "<U99999999"},
        {"scalar": 1, "dtype": "float32"},
    ),
    *(
        {"scalar": "x", "dtype": "int8"},
        {"scalar": 300, "dtype": "uint8"},
        {"ledger": "/nope/l.sqlite", "dataset": "d", "purpose": "\n"},
    ),
    *(
        {"class": "RowMap", "values": {}},
        {"class": "AdaMix", "values": {"quantile": 7}},
        {"class": "os", "values": {}},
    ),
    *(
        {"class": "NoisyGD", "values": {}},
        {"class": "ZeroShotHead", "values": {"encoder": None, "class_names": []}},
    ),
    {"class": "__import__", "values": {"name": "os"}},
)


def _places(tree: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all entries of a JSON value."""
    found = [here] if here else []
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        found += _places(child, (*here, key))
    return found


def changed_tree(draw: Draw, tree: Any) -> Any:
    """A JSON value with some entries replaced, removed, renamed or swapped."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw.pick((1, 1, 1, 2, 3))):
        places = _places(tree)
        if not places:
            return tree
        place = draw.pick(places)
        parent = tree
        for key in place[:-1]:
            parent = parent[key]
        kind = draw.whole(0, 5)
        if kind <= 2:
            parent[place[-1]] = json.loads(json.dumps(draw.pick(JSON)))
        elif kind == 3:
            del parent[place[-1]]
        elif kind == 4 and isinstance(parent, dict):
            parent[draw.pick(NAMES)] = parent.pop(place[-1])
        elif kind == 5:
            other = tree
            for key in draw.pick(places):
                other = other[key]
            parent[place[-1]] = json.loads(json.dumps(other))
    return tree


def _changed_arrays(draw: Draw, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    arrays = dict(arrays)
    name = draw.pick([*arrays])
    array = arrays[name]
    changes: tuple[Callable[[], Any], ...] = (
        lambda: array.astype(np.float16),
        lambda: array.astype(np.int64),
        lambda: array[..., :0],
        lambda: array.ravel(),
        lambda: array[None],
        lambda: np.full_like(array, draw.pick((np.nan, np.inf, 1e308, 5e-324, -0.0))),
        lambda: np.float64(1),
        lambda: array > 0,
        lambda: array.T,
    )
    with np.errstate(all="ignore"):
        arrays[name] = np.asarray(draw.pick(changes)())
    if draw.chance(5):
        del arrays[name]
    return arrays


def check_model_files(draw: Draw, tally: Tally) -> None:
    """A damaged or forged model file is refused, or the model in it works."""
    kind, content = draw.pick(models())
    way = draw.whole(0, 4)
    if way == 0:
        content = damaged(draw, content)
    else:
        arrays, texts = parts_of(content)
        if way == 1:
            texts["model"] = damaged(draw, texts["model"].encode(), most=2).decode("utf-8", "replace")
        elif way == 2:
            arrays = _changed_arrays(draw, arrays)
        else:
            texts["model"] = json.dumps(changed_tree(draw, json.loads(texts["model"])))
        try:
            content = with_checksum(arrays, texts)
        except Exception:  # the format has no such array
            return
    with fresh_folder() as folder, case(tally, folder):
        path = folder / "model.safetensors"
        path.write_bytes(content)
        describe(kind=kind, way=way, content=content)
        end = attempt(tally, lambda: skmixdp.load(path), *BAD_FILE)
        if end.error is not None:
            check_message(end.message, ("model.safetensors",))
            if not isinstance(end.error, (ValueError, OSError)):
                raise PromiseError(f"load raises {type(end.error).__name__}") from end.error
            return
        _use(tally, end.result, folder)


def _use(tally: Tally, model: Any, folder: Path) -> None:
    """A model that was loaded predicts finite numbers, and can be shown, cloned and saved."""
    X = np.array([[0.5, -1.0, 2.0], [1e300, -1e300, 0.0], [0.0, -0.0, 5e-324]])
    names = getattr(model, "feature_names_in_", None)
    rows = X[:, : model.n_features_in_] if names is None else pd.DataFrame(X, columns=names)

    def use() -> Any:
        predicted = model.predict(rows)
        return model.predict_proba(rows) if hasattr(model, "predict_proba") else predicted

    end = attempt(tally, use, ValueError)
    tally.ended.subtract(["done" if end.error is None else type(end.error).__name__])
    if end.error is None:
        finite("predictions", end.result)
    else:
        check_message(end.message.replace("\n", " "))
    str(model.privacy_)
    repr(model)
    model._repr_html_()
    model.privacy_.to_json()
    clone(model)
    model.save(folder / "again.safetensors")


# -- ledgers --------------------------------------------------------------------------------


@cache
def ledger_bytes() -> bytes:
    """The file of a ledger with two data sets and some charges."""
    with fresh_folder() as folder:
        ledger = PrivacyLedger(folder / "l.sqlite")
        first = ledger.add_dataset("d", epsilon=3.0, delta=1e-5)
        second = ledger.add_dataset("sampled", epsilon=5.0, delta=1e-6, composition="renyi")
        for _ in range(2):
            charge = first.charge(GaussianEvent(20, 10), neighboring="add_or_remove_one", description="fit")
            second.charge(GaussianEvent(20.0, 10), neighboring="replace_one")
        first.record_outcome(charge, "finished")
        del ledger, first, second
        with sqlite3.connect(folder / "l.sqlite") as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        return (folder / "l.sqlite").read_bytes()


#: What a cell of a damaged ledger may hold.
CELLS = (
    *(
        None,
        0,
        1,
        -1,
        2**62,
        1e308,
        -1.5,
        "",
        "x",
        "nan",
        "inf",
        "[]",
        "[1]",
        "{}",
        b"\x00\xff",
        "d",
        "renyi",
        "gaussian",
    ),
    *(
        "replace_one",
        "2020-01-01",
        "9999-99-99",
        '{"kind": "gaussian", "values": {}}',
        '{"kind": "os", "values": {}}',
    ),
    *("[" * 3000, '{"kind": "gaussian", "values": {"noise_multiplier": 1e-320, "n_steps": 1}}', "\ud7ff" * 3),
)


def check_ledger_files(draw: Draw, tally: Tally) -> None:
    """A damaged ledger is refused, or charges as the sums in it say."""
    content, way = ledger_bytes(), draw.whole(0, 2)
    if way == 0:
        content = damaged(draw, content)
    with fresh_folder() as folder, case(tally, folder):
        path = folder / "l.sqlite"
        path.write_bytes(content)
        facts = _change_cell(draw, path) if way else repr(content[:64])
        describe(way=way, facts=facts)
        allowed = (ValueError, OSError, KeyError, BudgetExceededError)
        end = attempt(tally, lambda: _read_ledger(path), *allowed)
        if end.error is not None:
            check_message(end.message.replace("\n", " "))
        name = draw.pick(("d", "sampled"))
        before = after = None
        try:
            before = PrivacyLedger(path)[name].account
        except (*BAD_FILE, KeyError):
            pass
        event = GaussianEvent(draw.pick((30.0, 5.0, 1e3)), 5)
        relation = "add_or_remove_one" if name == "d" else "replace_one"
        end = attempt(tally, lambda: PrivacyLedger(path)[name].charge(event, neighboring=relation), *allowed)
        tally.ended.subtract(["done" if end.error is None else type(end.error).__name__])
        if end.error is None:
            after = PrivacyLedger(path)[name].account
            if before is None or not (
                after.total > before.total and after.spent <= after.epsilon * (1 + 1e-6)
            ):
                raise PromiseError(f"a charge leads from {before} to {after}")


def _change_cell(draw: Draw, path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        tables = {"accounts": None, "charges": None}
        table = draw.pick([*tables])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column, value = draw.pick(columns), draw.pick(CELLS)
        statements = (
            (f'UPDATE {table} SET "{column}" = ?', (value,)),
            (f'UPDATE {table} SET "{column}" = ? WHERE rowid = 1', (value,)),
            (f"DELETE FROM {table}", ()),
            (f"DROP TABLE {table}", ()),
            (f'ALTER TABLE {table} RENAME COLUMN "{column}" TO other', ()),
            ("PRAGMA user_version = 7", ()),
            ("PRAGMA application_id = 1", ()),
            (f"CREATE TRIGGER t AFTER INSERT ON charges BEGIN DELETE FROM {table}; END", ()),
        )
        statement = statements[draw.pick((0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7))]
        try:
            connection.execute(*statement)
            connection.commit()
        except sqlite3.Error:
            pass
        return repr(statement)[:300]
    finally:
        connection.close()


def _read_ledger(path: Path) -> None:
    ledger = PrivacyLedger(path)
    report = ledger.report()
    str(report)
    report.to_json()
    report.to_csv()
    report.to_html()
    for name in ledger:
        data = ledger[name]
        if not (data.spent >= 0 and data.remaining >= 0):
            raise PromiseError(f"spent {data.spent}, remaining {data.remaining}")


# -- JSON -----------------------------------------------------------------------------------

EVENTS = (
    GaussianEvent(3.0, 10, 0.5),
    GaussianEvent(20.0, 1, noise="discrete"),
    SelectionEvent(3.0, 5.0, "geometric"),
    SelectionEvent(3.0, 5.0, 0.5, refit_multiplier=2.0),
)
COLUMNS = {
    "numbers": {"age": [0, 120], "x": [-1.5, 1.5]},
    "categories": {"city": ["Bonn", "Ulm"], "n": [1, 2.5, True]},
}


def check_json(draw: Draw, tally: Tally) -> None:
    """Damaged JSON of events, of declared columns, and of options."""
    kind = draw.whole(0, 2)
    source: Any = (json.loads(event_to_json(draw.pick(EVENTS))), COLUMNS, {"layers": "last", "J": 2})[kind]
    if draw.chance(2):
        text = json.dumps(changed_tree(draw, source))
    else:
        text = damaged(draw, json.dumps(source).encode()).decode("utf-8", "replace")
    if draw.chance(12):
        text = draw.pick(
            ("[" * 100_000, "9" * 5000, "NaN", "Infinity", '"\\ud800"', "", "null", '{"kind": []}')
        )
    describe(kind=kind, text=text)
    with fresh_folder() as folder, case(tally, folder):
        if kind == 0:
            end = attempt(tally, lambda: event_from_json(text), ValueError)
            if end.error is None and event_from_json(event_to_json(end.result)) != end.result:
                raise PromiseError("an event does not come back")
        elif kind == 1:
            path = folder / "columns.json"
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            end = attempt(tally, lambda: _encode(declared_columns(path)), ValueError)
            if end.error is None:
                finite("encoded", end.result)
        else:
            end = attempt(tally, lambda: _read_options(text), ValueError)
        if end.error is not None and draw.whole(0, 1) and kind != 2:
            check_message(end.message)


def _encode(told: dict[str, Any]) -> Any:
    frame = pd.DataFrame({name: [1.0, np.nan, -1e300] for name in told})
    return TableEncoder(told).fit(frame).transform(frame)
