"""Write all files of a result, or none."""

import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from .._utils.files import sync_folder
from .messages import InputError

#: Writes the content of one file.
Writer = Callable[[BinaryIO], object]


def check_outputs(outputs: Mapping[str, Path], inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse outputs, by flag, that cannot or should not be written, before any budget is spent."""
    for flag, path in outputs.items():
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"{flag} {path}: the folder {folder} does not exist; create it first.")
        try:
            path.lstat()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InputError(
                f"{flag} {path} cannot be used ({error.strerror}); choose another name."
            ) from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{flag} {path}: the folder {folder} is not writable; choose another one.")
        if path.exists() and not path.is_file():
            raise InputError(f"{flag} {path} is a folder or a device; give the name of a file in a folder.")
        if any(_same(path, other) for other in inputs):
            raise InputError(f"{flag} {path} is also an input file; choose another name.")
        if path.exists() and not force:
            raise InputError(f"{flag} {path} exists; choose another name, or pass --force to replace it.")
    flags, paths = list(outputs), list(outputs.values())
    for i, path in enumerate(paths):
        for j in range(i):
            if _same(path, paths[j]):
                raise InputError(f"{flags[j]} and {flags[i]} are both {path}; choose two names.")
    report = outputs.get("--report")
    if report is not None and report.suffix.lower() not in (".json", ".html"):
        raise InputError(f"--report {report} must end in .json or .html, which is its form.")


def write_together(outputs: Mapping[Path, Writer]) -> None:
    """Write all files or none.

    Each is written in full next to its target and then moved into place; if a move fails, the targets get
    their former content back. A killed process cannot undo anything, so all former targets but the first are
    removed before the first move: a model never stands next to the report of another run.
    """
    drafts: dict[Path, Path] = {}
    formers: dict[Path, Path] = {}
    changed: list[Path] = []
    try:
        for path, write in outputs.items():
            drafts[path] = _beside(path)
            with drafts[path].open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
        for path in outputs:
            if path.exists():
                formers[path] = _beside(path)
                shutil.copy2(path, formers[path])
        for path in [*outputs][1:]:
            changed.append(path)
            path.unlink(missing_ok=True)
        for path in outputs:
            changed.append(path)
            drafts[path].replace(path)
        for folder in dict.fromkeys(path.parent for path in outputs):
            sync_folder(folder)
    except BaseException as error:
        # A copy that cannot be moved back is kept next to its target.
        for path, former in [(path, formers.pop(path, None)) for path in dict.fromkeys(changed)]:
            if former is None:
                path.unlink(missing_ok=True)
            else:
                former.replace(path)
        if isinstance(error, OSError):
            raise InputError(
                f"{' and '.join(map(str, outputs))} could not be written ({error.strerror or error}), and "
                "nothing was changed; fix that and run again."
            ) from error
        raise
    finally:
        for leftover in (*drafts.values(), *formers.values()):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A new name in the folder of ``path``, so that a move to ``path`` is atomic."""
    return path.with_name(f".skmixdp-{secrets.token_hex(4)}.tmp")


def _same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve() or (path.exists() and other.exists() and path.samefile(other))
