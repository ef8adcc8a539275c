"""Where files are: paths, patterns, and addresses in object stores.

pyarrow reads S3 and Google Cloud Storage by itself, in ranges of bytes. Credentials are those of their own
tools, such as ``AWS_ACCESS_KEY_ID``. fsspec keeps the files of ``memory://``.
"""

import glob
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path, PurePosixPath
from stat import S_IFDIR, S_IFREG
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from .._utils.validation import how_to_install
from .formats import MissingPackageError
from .text import FileError

#: Bytes that are fetched at a time where readers ask for few.
_PART_BYTES = 2**22

_SCHEMES = "s3://, gs://, memory:// and file://"


@dataclass(frozen=True, order=True)
class StoredPath:
    """A file or folder of a file system of pyarrow, with the methods of a path that readers call."""

    path: PurePosixPath
    files: Any

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The last part."""
        return self.path.name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return self.path.suffix

    def open(self, mode: str = "rb") -> Any:
        """An open file that is fetched in large parts."""
        return io.BufferedReader(self.ranges(), _PART_BYTES)

    def ranges(self) -> Any:
        """An open file of pyarrow, which fetches each range of bytes that is read."""
        with _errors_in_words(self.name):
            return self.files.open_input_file(str(self.path))

    def is_dir(self) -> bool:
        """Whether this is a folder."""
        return bool(self._info().type.name == "Directory")

    def is_file(self) -> bool:
        """Whether this is a file."""
        return bool(self._info().type.name == "File")

    def stat(self) -> SimpleNamespace:
        """The size and the kind, as those of a local path."""
        facts = self._info()
        if facts.type.name == "NotFound":
            raise FileNotFoundError
        return SimpleNamespace(st_size=facts.size, st_mode=S_IFREG if facts.type.name == "File" else S_IFDIR)

    def _info(self) -> Any:
        with _errors_in_words(self.name):
            return self.files.get_file_info(str(self.path))

    def iterdir(self) -> Iterator["StoredPath"]:
        """What is in the folder."""
        from pyarrow.fs import FileSelector

        with _errors_in_words(self.name):
            for entry in self.files.get_file_info(FileSelector(str(self.path), allow_not_found=True)):
                yield StoredPath(PurePosixPath(entry.path), self.files)

    def matching(self) -> "list[StoredPath]":
        """The files and folders whose path matches this one, part by part."""
        first = next(i for i, part in enumerate(self.path.parts) if glob.has_magic(part))
        entries = [StoredPath(PurePosixPath(*self.path.parts[:first]), self.files)]
        for part in self.path.parts[first:]:
            entries = [
                entry for folder in entries for entry in folder.iterdir() if fnmatchcase(entry.name, part)
            ]
        return sorted(entries)


@contextmanager
def _errors_in_words(name: str) -> Iterator[None]:
    """Context manager that turns errors of a store into sentences."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"{name} is not in the store; check the address.") from None
    except OSError:
        raise FileError(
            f"{name} cannot be reached in its store; check the address and its settings, the credentials and "
            "the network."
        ) from None


def places(address: str | PathLike[str]) -> list[Any]:
    """The paths of an address, path or pattern."""
    scheme, separator, rest = address.partition("://") if isinstance(address, str) else ("", "", "")
    if separator and scheme != "file":
        path = _stored_path(scheme, str(address))
        return path.matching() if glob.has_magic(str(path)) else [path]
    local = Path("/" + unquote(rest.partition("/")[2]) if separator else address)
    if glob.has_magic(str(local)) and not local.exists():
        return sorted(map(Path, glob.glob(str(local))))  # noqa: PTH207
    return [local]


def _stored_path(scheme: str, address: str) -> StoredPath:
    """The path of an address in a store."""
    where = f"paths={address!r}"
    if scheme not in ("s3", "gs", "gcs", "memory"):
        raise ValueError(
            f"{where} begins with {scheme}://, and open_rows reads paths, {_SCHEMES}; copy the files to one "
            "of these."
        )
    try:
        from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

        if scheme == "memory":
            import fsspec
    except ImportError as error:
        raise MissingPackageError(
            f"{where} needs the packages pyarrow and fsspec, which are not installed; "
            f"{how_to_install('storage')}."
        ) from error
    if scheme == "memory":
        files = PyFileSystem(FSSpecHandler(fsspec.filesystem("memory")))
        return StoredPath(PurePosixPath("/" + address.partition("://")[2]), files)
    # Settings follow the last question mark. Other question marks belong to a pattern.
    location, mark, settings = address.rpartition("?")
    location, query = (
        (location, mark + settings) if "=" in settings and "/" not in settings else (address, "")
    )
    path = PurePosixPath(unquote(location.partition("://")[2]))
    try:
        files, _ = FileSystem.from_uri(f"{scheme}://{path.parts[0]}{query}")
    except Exception:
        raise ValueError(
            f"{where} is no address that pyarrow reads; write it as {scheme}://bucket/folder/file, with "
            "settings such as ?region=eu-west-1 at its end."
        ) from None
    return StoredPath(path, files)
