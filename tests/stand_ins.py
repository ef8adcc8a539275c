"""Stand-ins for what lives in another environment."""

import io
import sys
from pathlib import Path


def interpreter(folder: Path, module: str, source: str) -> Path:
    """An interpreter in ``folder`` that knows a module of a package, such as "diffprivlib.models"."""
    package, _, name = module.partition(".")
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    (folder / package / f"{name}.py").write_text(source)
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    command.chmod(0o755)
    return command


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True
