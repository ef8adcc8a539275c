"""diffprivlib's private logistic regression, fitted in an environment of its own.

It does not import under the scikit-learn that this library needs; ``make diffprivlib`` sets up one that
has an older one. Rows travel in a file, and what comes back are the seconds of the fit alone.
"""

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..measure import Case
from ..problems import Problem

_HERE = Path(__file__).resolve().parent

#: The interpreter that has diffprivlib.
PYTHON = _HERE.parents[1] / ".venv-diffprivlib" / "bin" / "python"

#: What it runs.
_SCRIPT = _HERE.with_name("fit_diffprivlib.py")


def cases(problem: Problem) -> list[Case]:
    """A fit at epsilon 1 with its defaults; what is missing is said."""
    if not PYTHON.exists():
        print("diffprivlib has no environment, so its fit is not measured; see `make diffprivlib`.")
        return []
    spent = 0.0

    def run() -> str:
        nonlocal spent
        seconds, note = _fit(problem)
        spent += seconds
        return note

    return [Case("diffprivlib_fit", "epsilon=1, delta=0", "fit", run, clock=lambda: spent)]


def _fit(problem: Problem) -> tuple[float, str]:
    """CPU seconds of a fit, and its accuracy."""
    with TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        np.savez(rows, X=problem.X, y=problem.y, X_test=problem.X_pub, y_test=problem.y_pub)
        done = subprocess.run(
            [PYTHON, _SCRIPT, rows],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    found = json.loads(done.stdout)
    n_test = problem.size.n_pub
    return found[
        "seconds"
    ], f"accuracy {found['accuracy']:.3f} on the {n_test} public rows, which it does not use"
