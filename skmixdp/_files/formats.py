"""Files of rows, whole and in parts: the readers of the command line and of :func:`open_rows`.

A format is a class and its endings in ``FORMATS``; text is read by :mod:`.text`. Errors are one sentence
that names the file and the remedy. They quote nothing that the file holds, since its rows may be private.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._utils.files import refuse_special
from .._utils.frames import names_of_list, pandas_frame, stacked_lists
from .._utils.validation import how_to_install, listed
from .temporary import temporary_memory
from .text import (
    FileError,
    TextForm,
    check_expansion,
    header_of,
    label_of,
    numbers_of,
    row_lines,
    rows_of,
    too_large,
    with_point,
)

Array = NDArray[Any]

#: Bytes of a row group that are decoded at a time (about).
_PIECE_BYTES = 2**22
#: Fewest and most rows that are decoded at a time.
_PIECE_ROWS = 2**10, 2**16
#: Columns of a row group that are decoded at a time.
_COLUMNS = 2**9
#: Cells of text that are read at a time, and most lines of them.
_CELLS, _LINES = 2**16, 2**13


class MissingPackageError(FileError, ImportError):
    """A file of a format whose package is not installed."""


class RowFile(ABC):
    """An open file of rows; ``where`` is its name in messages."""

    def __init__(self, path: Path, where: str) -> None:
        self.path = path
        self.where = where
        with reading(where):
            self._open()

    @abstractmethod
    def _open(self) -> None:
        """Read the header."""


class ArrayFile(RowFile):
    """Arrays by name, of which ``X`` holds the rows; ``headers`` has the shape and dtype of each."""

    headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    #: Whether arrays can be left in the file.
    is_mapped = False

    @abstractmethod
    def read(self, name: str, *, mapped: bool = False) -> Array:
        """One of the arrays; ``mapped`` leaves its numbers in the file if the format can."""


@dataclass(frozen=True)
class Layout:
    """How columns become rows of numbers: width, dtype, names, and the length of lists (0 for no lists)."""

    width: int
    dtype: np.dtype[Any]
    names: tuple[str, ...]
    lengths: tuple[int, ...] = ()


class TableFile(RowFile):
    """Named columns of numbers or text, whose cells are read one by one."""

    names: list[str]
    #: Names of the columns that are the index of a pandas frame.
    index: Sequence[str] = ()

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """The numbers of rows of its parts."""

    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """The whole table."""

    @abstractmethod
    def layout(self, columns: Sequence[str]) -> Layout:
        """How columns become rows of numbers."""

    @abstractmethod
    def numbers(self, i: int, columns: Sequence[str], layout: Layout) -> Iterator[Array]:
        """Rows of numbers of a part, piece by piece."""

    @abstractmethod
    def cells(self, i: int, column: str) -> "pd.Series[Any]":
        """A column of a part, with the cells as the file holds them."""

    def written(self, cells: "pd.Series[Any]") -> "pd.Series[Any]":
        """Cells with a decimal point, whatever the mark of the file."""
        return cells

    @abstractmethod
    def labels(self, cells: "pd.Series[Any]") -> Array:
        """The labels in cells."""

    def part_where(self, i: int) -> str:
        """The name of a part in messages."""
        return self.where


class NpyFile(ArrayFile):
    """One array, named ``X``."""

    def _open(self) -> None:
        self.is_mapped = isinstance(self.path, Path)
        if not self.is_mapped:
            with self.path.open("rb") as file:
                self.headers = {"X": _header(file)}
            return
        array = np.load(self.path, mmap_mode="r")
        if not isinstance(array, np.ndarray):
            array.close()
            raise FileError(
                f"{self.where} is not one array but an archive of arrays; rename it to end in .npz."
            )
        self.headers = {"X": (array.shape, array.dtype)}
        self._array = array

    def read(self, name: str, *, mapped: bool = False) -> Array:
        if self.is_mapped:
            return self._array if mapped else np.array(self._array)
        with reading(self.where), self.path.open("rb") as file:
            return np.asarray(np.load(file))


class NpzFile(ArrayFile):
    """An archive of arrays."""

    def _open(self) -> None:
        with self.path.open("rb") as file:
            content = np.load(file)
            if isinstance(content, np.ndarray):
                raise FileError(f"{self.where} is one array and not an archive; rename it to end in .npy.")
            self.headers = {}
            members = content.zip.infolist()
            check_expansion(sum(info.file_size for info in members), self.path, self.where)
            for info in members:
                if info.filename.endswith(".npy"):
                    with content.zip.open(info) as member:
                        shape, dtype = self.headers[info.filename.removesuffix(".npy")] = _header(member)
                        n_bytes = info.file_size - member.tell()
                    if math.prod(shape) * dtype.itemsize > n_bytes:
                        raise ValueError("the shape of an array is not that of its numbers")
        if "X" not in self.headers:
            raise FileError(
                f"{self.where} holds the arrays {[*self.headers][:8]} and no X; save it with "
                "numpy.savez(path, X=rows, y=labels)."
            )

    def read(self, name: str, *, mapped: bool = False) -> Array:
        with reading(self.where), self.path.open("rb") as file:
            return np.asarray(np.load(file)[name])


class TextFile(TableFile):
    """Text with a line of column names, whose cells are texts."""

    def __init__(self, path: Path, where: str, form: TextForm | None = None) -> None:
        self.form = (form or TextForm()).of(path)
        super().__init__(path, where)

    def _open(self) -> None:
        self.names = header_of(self.path, self.form, self.where)
        self._places = {name: place for place, name in enumerate(self.names)}

    @cached_property
    def sizes(self) -> list[int]:
        """The number of rows, which takes a pass through the file."""
        with reading(self.where):
            return [sum(1 for _ in row_lines(self.path, self.form, self.where, len(self.names)))]

    def frame(self) -> pd.DataFrame:
        return self._texts(self.names)

    def layout(self, columns: Sequence[str]) -> Layout:
        return Layout(len(columns), np.dtype(float), tuple(columns))

    def numbers(self, i: int, columns: Sequence[str], layout: Layout) -> Iterator[Array]:
        places = [self._places[name] for name in columns]
        for rows in self._rows():
            cells = [row[place] for row in rows for place in places]
            values, numeric = numbers_of(cells, self.form.decimal)
            if not numeric:
                by_column = (
                    numbers_of(cells[j :: len(places)], self.form.decimal) for j in range(len(places))
                )
                of_texts = [place for place, (_, fits) in enumerate(by_column, start=1) if not fits]
                raise FileError(
                    f"{self.where} has features that are not numbers, at the places {listed(of_texts)}; name "
                    "features in columns or others in exclude, name a decimal comma by decimal, or read the "
                    "file as a data frame for private_pipeline(TableEncoder(), ...)."
                )
            yield values.reshape(len(rows), len(places))

    def cells(self, i: int, column: str) -> "pd.Series[Any]":
        cells: pd.Series[Any] = self._texts([column])[column]
        return cells.mask(cells.str.strip() == "")

    def written(self, cells: "pd.Series[Any]") -> "pd.Series[Any]":
        return cells.map(with_point, na_action="ignore") if self.form.decimal == "," else cells

    def labels(self, cells: "pd.Series[Any]") -> Array:
        _refuse_gaps(cells, self.where)
        return np.asarray([label_of(cell, self.form.decimal) for cell in cells.tolist()])

    def _rows(self) -> Iterator[list[list[str]]]:
        """The cells of all rows, piece by piece."""
        at_a_time = max(min(_CELLS // len(self.names), _LINES), 1)
        with reading(self.where):
            rows = rows_of(self.path, self.form, self.where, len(self.names))
            while piece := list(islice(rows, at_a_time)):
                yield piece

    def _texts(self, columns: Sequence[str]) -> pd.DataFrame:
        """Some columns, as texts of any content."""
        places = {name: self._places[name] for name in columns}
        pieces = (
            pd.DataFrame(
                {name: pd.Series([row[j] for row in rows], dtype="str") for name, j in places.items()}
            )
            for rows in chain([[]], self._rows())
        )
        return pd.concat(pieces, ignore_index=True)


class ArrowFile(TableFile):
    """Arrow (Feather), read by record batches; ``schema`` has the types of pyarrow."""

    part_name: ClassVar[str] = "batch"
    schema: Any

    def __init__(self, path: Path, where: str) -> None:
        try:
            import pyarrow.ipc
            import pyarrow.parquet
        except ImportError as error:
            raise MissingPackageError(
                f"{where} needs the pyarrow package, which is not installed; {how_to_install('parquet')}."
            ) from error
        self._pa = pyarrow
        super().__init__(path, where)
        with reading(where):  # fails for names that are not UTF-8
            self.names = self.schema.names
        if len(set(self.names)) < len(self.names):
            raise FileError(f"{where} has columns of the same name; give each column its own name.")
        with reading(where):
            metadata = json.loads((self.schema.metadata or {}).get(b"pandas", b"{}"))
            self.index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]

    @property
    def sizes(self) -> list[int]:
        return self._sizes

    def _open(self) -> None:
        # Not mapped, since the system ends a process whose mapped file is cut short.
        with self._source() as file:
            self.schema = self._pa.ipc.open_file(file).schema
            first = self._pa.ipc.IpcReadOptions(included_fields=[0])
            batches: Any = self._pa.ipc.open_file(file, options=first) if self.schema.names else None
            n_batches = 0 if batches is None else batches.num_record_batches
            self._sizes = [batches.get_batch(i).num_rows for i in range(n_batches)]
        is_fixed = self._pa.types.is_fixed_size_list
        widths = [field.type.list_size if is_fixed(field.type) else 1 for field in self.schema]
        check_expansion(8 * sum(self._sizes) * sum(widths), self.path, self.where)

    def _source(self) -> Any:
        """The open file, which a store fetches in ranges of bytes."""
        return self._pa.OSFile(str(self.path)) if isinstance(self.path, Path) else self.path.open_unbuffered()

    def frame(self) -> pd.DataFrame:
        parts = (piece for i in range(len(self.sizes)) for piece in self._read(i, self.names))
        with reading(self.where):
            table = self._pa.concat_tables([self.schema.empty_table(), *parts])
            # pandas would turn integers with a missing value into floats.
            frame: pd.DataFrame = pandas_frame(table, integer_object_nulls=True, ignore_metadata=True)
            return frame

    def layout(self, columns: Sequence[str]) -> Layout:
        fields = [self.schema.field(name) for name in columns]
        listed = [_is_list(field.type) for field in fields]
        for field, is_list in zip(fields, listed, strict=True):
            if not (is_list or _is_number(field.type)):
                raise FileError(
                    f"{self.where} has the column {field.name!r}, which does not hold numbers; pass the "
                    "label column as label, that of persons as group, and name others in exclude, or read "
                    "the file as a data frame for private_pipeline(TableEncoder(), ...)."
                )
        lengths = tuple(
            self._length(field) if is_list else 0 for field, is_list in zip(fields, listed, strict=True)
        )
        # The type of lists is kept. That of other cells is fixed: it would follow from all cells of a column.
        types = [np.dtype(float)]
        if all(listed):
            types = [np.dtype(field.type.value_type.to_pandas_dtype()) for field in fields]
        dtype = np.result_type(*types)
        names = [
            name
            for column, length in zip(columns, lengths, strict=True)
            for name in (names_of_list(column, length) if length else [column])
        ]
        return Layout(len(names), dtype if dtype.kind == "f" else np.dtype(float), tuple(names), lengths)

    def _length(self, field: Any) -> int:
        """The length that all lists of a column must have: that of its type, or of the first list."""
        if self._pa.types.is_fixed_size_list(field.type):
            return int(field.type.list_size)
        for i in range(len(self.sizes)):
            for table in self._read(i, [field.name]):
                if len(table):
                    return len(self._lists(table.column(0)[:1], field.name)[0])
        return 1

    def _lists(self, column: object, name: str, length: int | None = None) -> Array:
        try:
            return stacked_lists(column, f"the column {name!r} of {self.where}", length)
        except ValueError as error:
            raise FileError(str(error)) from None

    def numbers(self, i: int, columns: Sequence[str], layout: Layout) -> Iterator[Array]:
        for table in self._read(i, columns):
            rows, first = np.empty((len(table), layout.width), dtype=layout.dtype), 0
            for name, length in zip(columns, layout.lengths, strict=True):
                column = table.column(name)
                if length:
                    rows[:, first : first + length] = self._lists(column, name, length)
                else:
                    with reading(self.where):
                        rows[:, first] = column.to_numpy()
                first += length or 1
            yield rows

    def cells(self, i: int, column: str) -> "pd.Series[Any]":
        table = self._pa.concat_tables(self._read(i, [column]))
        with reading(self.where):  # it fails on texts that are not UTF-8
            cells: pd.Series[Any] = table.column(0).to_pandas()
        return cells

    def labels(self, cells: "pd.Series[Any]") -> Array:
        with reading(self.where):
            _refuse_gaps(cells, self.where)
            return np.asarray(cells.to_numpy())

    def part_where(self, i: int) -> str:
        return f"{self.where} ({self.part_name} {i})"

    def _read(self, i: int, columns: Sequence[str]) -> Iterator[Any]:
        """Columns of a part, as one ``pyarrow.Table`` for each piece."""
        with reading(self.part_where(i)):
            yield from self._tables(i, list(columns))

    def _tables(self, i: int, columns: list[str]) -> Iterator[Any]:
        places = [self.schema.get_field_index(name) for name in columns]
        with self._source() as file:
            options = self._pa.ipc.IpcReadOptions(included_fields=places)
            batch = self._pa.ipc.open_file(file, options=options).get_batch(i)
        yield self._pa.table(batch).select(columns)


class ParquetFile(ArrowFile):
    """Parquet, read by row groups."""

    part_name = "row group"

    def _open(self) -> None:
        # Not mapped, as above; a store fetches ranges of bytes that lie together at once.
        file = self._pa.parquet.ParquetFile(self._source(), pre_buffer=not isinstance(self.path, Path))
        self.schema = file.schema_arrow
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
        self._sizes = [group.num_rows for group in groups]
        n_cells = sum(self._sizes) * file.metadata.num_columns
        if any(_is_list(field.type) for field in self.schema):  # counts for each column, which take a while
            n_cells = sum(group.column(j).num_values for group in groups for j in range(group.num_columns))
        check_expansion(8 * n_cells, self.path, self.where)
        self._cells_per_row = n_cells // max(1, sum(self._sizes))
        self._file = file

    def numbers(self, i: int, columns: Sequence[str], layout: Layout) -> Iterator[Array]:
        if len(columns) <= _COLUMNS:
            yield from super().numbers(i, columns, layout)
            return
        # The reader holds a page of each column that it decodes, most of a row group if these are many.
        rows = temporary_memory(self.sizes[i], layout.width, layout.dtype, order="C")
        end = 0
        for start in range(0, len(columns), _COLUMNS):
            few = slice(start, start + _COLUMNS)
            lengths = layout.lengths[few]
            part = replace(layout, width=sum(length or 1 for length in lengths), lengths=lengths)
            end, n_read = end + part.width, 0
            for piece in super().numbers(i, columns[few], part):
                rows[n_read : n_read + len(piece), end - part.width : end] = piece
                n_read += len(piece)
        yield rows

    def _tables(self, i: int, columns: list[str]) -> Iterator[Any]:
        fewest = _PIECE_ROWS[0] if self._cells_per_row == len(self.names) else 1  # lists may be long
        width = max(self._cells_per_row - len(self.names), 0) + len(columns)
        n_rows = min(max(_PIECE_BYTES // (8 * width), fewest), _PIECE_ROWS[1])
        for batch in self._file.iter_batches(n_rows, row_groups=[i], columns=columns, use_threads=False):
            yield self._pa.table(batch).select(columns)


def _refuse_gaps(cells: "pd.Series[Any]", where: str) -> None:
    if cells.isna().any():
        raise FileError(f"{where} has rows without a label; drop them.")


def _is_list(kind: Any) -> bool:
    """Whether a type of pyarrow is one of lists of numbers."""
    import pyarrow as pa

    lists = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(is_kind(kind) for is_kind in lists) and _is_number(kind.value_type)


def _is_number(kind: object) -> bool:
    """Whether a type of pyarrow is one of real numbers or truth values."""
    import pyarrow as pa

    return any(is_kind(kind) for is_kind in (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean))


#: Classes that read files, by the ending of the name.
FORMATS: dict[str, type[RowFile]] = {
    **{f"{ending}{packed}": TextFile for ending in (".csv", ".tsv") for packed in ("", ".gz", ".xz")},
    ".npy": NpyFile,
    ".npz": NpzFile,
    ".parquet": ParquetFile,
    ".arrow": ArrowFile,
    ".feather": ArrowFile,
}


def format_of(path: Path, where: str) -> type[RowFile]:
    """The format of a file, by the ending of its name. Pipes, devices and folders are refused."""
    for ending, form in FORMATS.items():
        if path.name.lower().endswith(ending):
            with reading(where):
                try:
                    refuse_special(path, where)
                except ValueError as error:
                    raise FileError(str(error)) from None
            return form
    raise FileError(f"{where} must end in one of {', '.join(FORMATS)}; convert the file to one of these.")


def opened(path: Path, where: str, form: TextForm | None = None) -> RowFile:
    """An open file of any format; ``form`` applies to text files only."""
    kind = format_of(path, where)
    return kind(path, where, form) if issubclass(kind, TextFile) else kind(path, where)


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Context manager that turns errors of readers into a :class:`FileError` of one sentence."""
    try:
        yield
    except FileError:
        raise
    except MemoryError:
        raise too_large(where, "the memory of this machine does not hold what is read at a time") from None
    except Exception as error:  # a damaged file may raise any error
        if any(sign in str(error) for sign in ("allow_pickle=False", "Python objects")):
            raise FileError(
                f"{where} holds Python objects, which are not opened because they could run code, or is "
                "not a NumPy file; save numbers, and labels as numbers or with astype(str)."
            ) from None
        # The error of a reader may quote the file.
        reason = "damaged, cut short, not what its name says, or text that is not UTF-8"
        if isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
        raise FileError(
            f"{where} cannot be read ({reason}); check the path, or copy the file again."
        ) from None


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of an array in NumPy's format."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
