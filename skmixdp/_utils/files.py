"""Plain files, which are written whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


def refuse_special(path: Path, where: str | None = None) -> None:
    """Refuse folders, devices, pipes and sockets; links are followed, and nothing needs to be there."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(
                f"{where or path} is a folder, a device or a pipe; give the name of a plain file."
            )


def target_of(path: Path) -> Path:
    """The plain file that is written by this name, at the end of all links."""
    refuse_special(path)
    return Path(os.path.realpath(path))


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A binary file that replaces the plain file ``path`` in one step when the block ends without an error.

    A reader sees the former content or all of the new one, even after a crash. A killed process may leave a
    draft ``.*.tmp``, which nothing reads. A link stays one, and the file that it leads to is replaced.
    """
    path = target_of(path)
    # A random name, since several threads and processes may write the same file.
    draft = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            # The mode of the file that the draft replaces, and its owner as far as that is allowed.
            with suppress(FileNotFoundError):
                former = path.stat()
                if os.name != "nt":
                    with suppress(OSError):
                        os.chown(draft, former.st_uid, former.st_gid)
                draft.chmod(stat.S_IMODE(former.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def write_arrays(file: BinaryIO, **arrays: Any) -> None:
    """Write arrays as an ``.npz`` archive; an interruption is raised unchanged."""
    try:
        np.savez(file, **arrays)
    except ValueError as error:  # of closing an archive that was interrupted
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, so that changes of names survive a crash of the machine."""
    if os.name == "nt":  # folders cannot be opened on Windows
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
