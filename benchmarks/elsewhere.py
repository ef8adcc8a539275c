"""Fits of other libraries in environments of their own. Rows travel in a file.

diffprivlib does not import under the scikit-learn that this library needs; ``make diffprivlib`` sets up an
environment that has an older one. ``make interpret`` sets up one for private explainable boosting machines.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_HERE = Path(__file__).resolve().parent

#: The interpreters that have diffprivlib and interpret.
PYTHON = _HERE.parent / ".venv-diffprivlib" / "bin" / "python"
INTERPRET = _HERE.parent / ".venv-interpret" / "bin" / "python"


@dataclass(frozen=True)
class Fit:
    """CPU seconds of a fit alone, and its two accuracies on the rows that it was tested on."""

    seconds: float
    accuracy: float
    balanced_accuracy: float


def is_there() -> bool:
    """Whether the environment has been set up."""
    return PYTHON.exists()


def fit(
    X: Array, y: Array, X_test: Array, y_test: Array, *, epsilons: Sequence[float], seed: int, C: float = 1.0
) -> list[Fit]:
    """A logistic regression for each budget, on rows of unit length at the most, with other defaults."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=X, y=y, X_test=X_test, y_test=y_test, epsilons=epsilons, seed=seed, C=C)
        return [Fit(*values) for values in json.loads(_run(PYTHON, "fit_diffprivlib.py", path))]


def fit_machines(**rows: Any) -> Array:
    """Predictions of private explainable boosting machines; ``fit_dp_ebm.py`` says what rows there are."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, **rows)
        _run(INTERPRET, "fit_dp_ebm.py", path)
        found: Array = np.load(path.with_suffix(".out.npz"))["predicted"]
        return found


def _run(python: Path, script: str, path: Path) -> str:
    """What a script of this folder prints in another environment, with one thread."""
    return subprocess.run(
        [python, _HERE / script, path],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""},
    ).stdout
