"""Stand-ins for what lives in another environment."""

import sys
from pathlib import Path


def diffprivlib_interpreter(folder: Path, models: str) -> Path:
    """An interpreter in ``folder`` that knows a diffprivlib, whose ``models`` module has this source."""
    package = folder / "diffprivlib"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "models.py").write_text(models)
    command = folder / "python"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    command.chmod(0o755)
    return command
