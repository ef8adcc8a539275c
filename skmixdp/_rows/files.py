"""Files of rows, whole and in parts: the readers of the command line and of :func:`open_rows`.

A format is a class and its endings in ``FORMATS``. Errors are one sentence that names the file and the
remedy. They quote nothing that the file holds, since its rows may be private.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]

#: About the bytes of a row group that are decoded at a time, and the least and most rows of such a piece.
_PIECE_BYTES, _PIECE_ROWS = 2**22, (2**10, 2**16)


class FileError(ValueError):
    """A file that cannot be read: one sentence that names it and the remedy."""


class MissingPackageError(FileError, ImportError):
    """A file of a format that needs a package which is not installed."""


class RowFile:
    """An open file of rows; ``where`` is its name in messages."""

    def __init__(self, path: Path, where: str) -> None:
        self.path = path
        self.where = where
        with reading(where):
            self._open()

    def _open(self) -> None:
        """Read the header, if there is one."""


class ArrayFile(RowFile, ABC):
    """Arrays by name, of which ``X`` holds the rows; ``headers`` has the shape and dtype of each."""

    headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]

    @abstractmethod
    def read(self, name: str, *, mapped: bool = False) -> Array:
        """One of the arrays; ``mapped`` leaves its numbers in the file if the format can."""


class TableFile(RowFile, ABC):
    """Named columns, of numbers or text."""

    def frame(self) -> pd.DataFrame:
        """The whole table."""
        with reading(self.where):
            return self._frame()

    @abstractmethod
    def _frame(self) -> pd.DataFrame: ...


class NpyFile(ArrayFile):
    """One array, named ``X``."""

    def _open(self) -> None:
        array = np.load(self.path, mmap_mode="r")
        if not isinstance(array, np.ndarray):
            array.close()
            raise FileError(
                f"{self.where} is not one array but an archive of arrays; rename it to end in .npz."
            )
        self.headers = {"X": (array.shape, array.dtype)}
        self._array = array

    def read(self, name: str, *, mapped: bool = False) -> Array:
        return self._array if mapped else np.array(self._array)


class NpzFile(ArrayFile):
    """An archive of arrays."""

    def _open(self) -> None:
        with self.path.open("rb") as file:
            content = np.load(file)
            if isinstance(content, np.ndarray):
                raise FileError(f"{self.where} is one array and not an archive; rename it to end in .npy.")
            self.headers = {}
            for name in content.zip.namelist():
                if name.endswith(".npy"):
                    with content.zip.open(name) as member:
                        self.headers[name.removesuffix(".npy")] = _header(member)
        if "X" not in self.headers:
            raise FileError(
                f"{self.where} holds the arrays {[*self.headers][:8]} and no X; save it with "
                "numpy.savez(path, X=rows, y=labels)."
            )

    def read(self, name: str, *, mapped: bool = False) -> Array:
        with reading(self.where), self.path.open("rb") as file:
            return np.asarray(np.load(file)[name])


class CsvFile(TableFile):
    """Text with a line of column names."""

    def _frame(self) -> pd.DataFrame:
        # In one piece, since types found chunk by chunk can differ within a column. One cell of text
        # makes its column text, whose numbers Python reads exactly; from 3.1 on, pandas always does so.
        older = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
        exact: Any = {"float_precision": "round_trip"} if older else {}
        frame: pd.DataFrame = pd.read_csv(self.path, low_memory=False, **exact)
        nameless = [name for name in frame.columns if name.startswith("Unnamed: ")]
        if nameless:
            raise FileError(
                f"{self.where} has a column without a name (pandas calls it {nameless[0]!r}), often the row "
                "numbers saved with a table; remove it, or name it if it is a feature."
            )
        return frame


class ArrowFile(TableFile):
    """Arrow (Feather), read by record batches; ``sizes`` are their numbers of rows.

    ``schema`` has the names and types of the columns, as pyarrow describes them.
    """

    part_name: ClassVar[str] = "batch"

    def __init__(self, path: Path, where: str) -> None:
        try:
            import pyarrow.ipc
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise MissingPackageError(
                f"{where} needs the pyarrow package, which is not installed; install skmixdp[parquet]."
            ) from error
        super().__init__(path, where)

    def _open(self) -> None:
        import pyarrow as pa

        file = pa.ipc.open_file(pa.memory_map(str(self.path)))
        self.schema = file.schema
        self.sizes = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
        self._file = file

    def _frame(self) -> pd.DataFrame:
        return pd.read_feather(self.path)

    def pieces(self, i: int, columns: list[str]) -> Iterator[Any]:
        """Columns of a part, as one ``pyarrow.Table`` after the other."""
        with reading(self.part_where(i)):
            yield from self._pieces(i, columns)

    def part_where(self, i: int) -> str:
        """The name of a part in messages."""
        return f"{self.where} ({self.part_name} {i})"

    def _pieces(self, i: int, columns: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        yield pa.table(self._file.get_batch(i)).select(columns)


class ParquetFile(ArrowFile):
    """Parquet, read by row groups."""

    part_name = "row group"

    def _open(self) -> None:
        from pyarrow import parquet

        file = parquet.ParquetFile(self.path, memory_map=True)
        self.schema = file.schema_arrow
        self.sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._file = file

    def _frame(self) -> pd.DataFrame:
        return pd.read_parquet(self.path, engine="pyarrow")

    def _pieces(self, i: int, columns: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        n_rows = min(max(_PIECE_BYTES // (8 * len(columns)), _PIECE_ROWS[0]), _PIECE_ROWS[1])
        for batch in self._file.iter_batches(n_rows, row_groups=[i], columns=columns, use_threads=False):
            yield pa.table(batch)


#: Ending of a name -> class that reads the file, for formats that can be read in parts.
IN_PARTS: dict[str, type[RowFile]] = {
    ".npy": NpyFile,
    ".npz": NpzFile,
    ".parquet": ParquetFile,
    ".arrow": ArrowFile,
    ".feather": ArrowFile,
}
#: The same for all formats.
FORMATS: dict[str, type[RowFile]] = {".csv": CsvFile, ".csv.gz": CsvFile, ".csv.xz": CsvFile, **IN_PARTS}


def format_of(path: Path, where: str, formats: Mapping[str, type[RowFile]] = FORMATS) -> type[RowFile]:
    """The format of a file, by the ending of its name."""
    for ending, form in formats.items():
        if path.name.lower().endswith(ending):
            return form
    raise FileError(f"{where} must end in one of {', '.join(formats)}; convert the file to one of these.")


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn what readers raise into one sentence, as a :class:`FileError`."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:  # damaged files raise errors of any kind
        if any(sign in str(error) for sign in ("allow_pickle=False", "Python objects")):
            raise FileError(
                f"{where} holds Python objects, which are not opened because they could run code, or is "
                "not a NumPy file; save numbers, and labels as numbers or with astype(str)."
            ) from None
        # The text of a reader's error may quote the file.
        reason = f"damaged, cut short, or not what its name says: {type(error).__name__}"
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
