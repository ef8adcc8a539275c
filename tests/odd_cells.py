"""Tables that differ in one odd cell, by which their holders choose the types of columns."""

import pathlib
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skmixdp.datasets import open_rows
from tests.replay import Path, compare, seen

N_ROWS, ROW = 60, 23

#: What the odd cell holds; None is a gap.
ODD: dict[str, Any] = {
    "gap": None,
    "word": "seven",
    "spelt": "7",
    "huge": 1e300,
    "tiny": -1e-300,
    "subnormal": 5e-324,
    "integer": 7,
    "long integer": 2**53 + 1,
    "longer integer": 2**70,
    "float": 0.1,
    "boolean": True,
    "infinite": float("inf"),
}

_rng = np.random.default_rng(0)
#: Cells of a column of each kind, as objects of Python. Single precision holds all of them.
KINDS: dict[str, list[Any]] = {
    "booleans": _rng.integers(0, 2, N_ROWS).astype(bool).tolist(),
    "integers": _rng.integers(-5, 6, N_ROWS).tolist(),
    "floats": _rng.normal(size=N_ROWS).astype("f4").astype(float).tolist(),
    "halves": _rng.normal(size=N_ROWS).astype("f2").astype(float).tolist(),
}

Columns = dict[str, list[Any]]


def columns_of(kind: str, odd: str | None = None) -> Columns:
    """A table of one column of a kind, with an odd cell or not, and three columns of floats."""
    first = list(KINDS[kind])
    if odd is not None:
        first[ROW] = ODD[odd]
    others = np.random.default_rng(1).normal(size=(3, N_ROWS)).astype("f4").astype(float)
    return {"a": first, **dict(zip("bcd", others.tolist(), strict=True))}


def _rows(columns: Columns) -> list[list[Any]]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def _smallest(columns: Columns) -> pd.DataFrame:
    """Columns of floats in single precision, if it holds all of their cells."""
    frame = pd.DataFrame(columns)
    with np.errstate(over="ignore"):
        held = {
            name: "f4"
            for name, cells in frame.select_dtypes("float").items()
            if (cells.astype("f4").astype(float) == cells).all()
        }
    return frame.astype(held)


def _polars(columns: Columns) -> Any:
    pl = pytest.importorskip("polars", reason="needs polars")
    frame = pl.DataFrame(columns, strict=False)
    # A column of floats that single precision holds.
    held = [c.name for c in frame if c.dtype.is_float() and (c.cast(pl.Float32).cast(c.dtype) == c).all()]
    return frame.with_columns(pl.col(held).cast(pl.Float32))


def _pyarrow(columns: Columns) -> Any:
    pa = pytest.importorskip("pyarrow", reason="needs skmixdp[parquet]")
    try:
        return pa.Table.from_pandas(_smallest(columns), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pytest.skip("pyarrow has no column of such cells")


def _arrow(columns: Columns) -> pd.DataFrame:
    pytest.importorskip("pyarrow", reason="needs skmixdp[parquet]")
    return _smallest(columns).convert_dtypes(dtype_backend="pyarrow")


def _dask(columns: Columns) -> Any:
    """Chunks of types of their own, under a type that the array declares."""
    da = pytest.importorskip("dask.array", reason="needs skmixdp[dask]")
    from dask import delayed

    table, half = _smallest(columns), N_ROWS // 2
    parts = [table[:half].convert_dtypes().to_numpy(), table[half:].to_numpy()]
    return da.concatenate(
        [da.from_delayed(delayed(part), part.shape, np.float64, meta=np.empty((0, 0))) for part in parts]
    )


def _numbers(columns: Columns) -> Any:
    table = np.array(_rows(columns))
    return table if table.dtype.kind in "biuf" else pytest.skip("no array of numbers has such a cell")


@cache
def _folder() -> Any:
    """A folder for files, which goes with the process."""
    return tempfile.TemporaryDirectory()


def _files(columns: Columns) -> Any:
    """Files whose schemas follow from the cells, each with half of the rows."""
    pytest.importorskip("pyarrow", reason="needs skmixdp[parquet]")
    folder = pathlib.Path(tempfile.mkdtemp(dir=_folder().name))
    for part, rows in enumerate((slice(None, N_ROWS // 2), slice(N_ROWS // 2, None))):
        try:
            half = _smallest({name: cells[rows] for name, cells in columns.items()})
            half.to_parquet(folder / f"{part}.parquet")
        except Exception:  # pyarrow has a class of errors for each
            return pytest.skip("pyarrow has no column of such cells")
    return open_rows(folder)


#: What makes a table of columns.
HOLDERS: dict[str, Callable[[Columns], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, smallest types": _smallest,
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas, Arrow": _arrow,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "objects": lambda columns: np.array(_rows(columns), dtype=object),
    "lists": _rows,
    "NumPy": _numbers,
    "sparse": lambda columns: sp.csr_array(_numbers(columns)),
    "Dask": _dask,
    "Parquet": _files,
}


def check_odd_cell(
    monkeypatch: Any, path_of: Callable[[Any], Path], one: Any, other: Any, *, row: int = ROW, **options: Any
) -> bool:
    """Replay what was done with one table with its neighbour, which has an odd cell in a ``row``."""
    first = seen(monkeypatch, path_of(one), **options)
    assert not first.failed, first.facts["outcome"]
    assert first.releases
    second = seen(monkeypatch, path_of(other), first, **options)
    if second.failed:
        assert not second.releases, "refused after a release"
        assert not any(quoted in second.facts["outcome"] for quoted in ("seven", f"row {row}", f" {row} "))
        return True
    compare(first, second, row)
    return False
