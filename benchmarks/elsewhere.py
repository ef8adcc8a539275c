"""Fits of diffprivlib in an environment of its own.

It does not import under the scikit-learn that this library needs; ``make diffprivlib`` sets up one that
has an older one. Rows travel in a file.
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

#: The interpreter that has diffprivlib.
PYTHON = _HERE.parent / ".venv-diffprivlib" / "bin" / "python"

#: What it runs.
_SCRIPT = _HERE / "fit_diffprivlib.py"


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
    X: Array, y: Array, X_test: Array, y_test: Array, *, epsilons: Sequence[float], seed: int
) -> list[Fit]:
    """A logistic regression for each budget, on rows of unit length at the most, with its defaults."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=X, y=y, X_test=X_test, y_test=y_test, epsilons=epsilons, seed=seed)
        done = subprocess.run(
            [PYTHON, _SCRIPT, path],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
    return [Fit(*values) for values in json.loads(done.stdout)]
