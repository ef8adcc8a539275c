"""diffprivlib's logistic regression, which knows no public rows, in an environment of its own.

It does not import under the scikit-learn that this library needs, so rows travel in a file.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.preprocessing import normalize

from ..problems import Problem
from .contract import Score, UnavailableError

_HERE = Path(__file__).resolve().parent

#: The interpreter that has diffprivlib.
PYTHON = _HERE.parents[2] / ".venv-diffprivlib" / "bin" / "python"

#: What it runs.
_SCRIPT = _HERE.with_name("fit_diffprivlib.py")


def fit(problem: Problem, epsilons: Sequence[float]) -> list[Score]:
    """A head for each budget, on private rows of unit length, with its defaults and delta 0.

    Raises
    ------
    UnavailableError
        If the environment is not there.
    """
    if not PYTHON.exists():
        raise UnavailableError("diffprivlib has no environment; see `make diffprivlib`.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(
            path,
            X=normalize(problem.X).astype(np.float64),
            y=problem.y,
            X_test=normalize(problem.X_test),
            y_test=problem.y_test,
            epsilons=epsilons,
            seed=problem.seed,
        )
        done = subprocess.run(
            [PYTHON, _SCRIPT, path],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
    accuracies = json.loads(done.stdout)
    return [Score(e, accuracy, note="delta 0") for e, accuracy in zip(epsilons, accuracies, strict=True)]
