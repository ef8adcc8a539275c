"""Gaussian classes about random centres, and names whose encodings are noisy centres."""

from pathlib import Path

import numpy as np

from ..problems import Array, Rows

#: Root mean square length of the noise in a name's encoding, in units of the centre's.
_NAME_NOISE = 0.5


def load(
    cache: Path,
    *,
    n_train: int,
    n_test: int,
    n_features: int,
    n_classes: int,
    separation: float = 3.0,
    seed: int = 0,
) -> Rows:
    """A made-up problem.

    ``separation`` is the length of a centre in units of a row's deviation in each direction.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, n_features))
    centres *= separation / np.linalg.norm(centres, axis=1, keepdims=True)

    def rows(n: int) -> tuple[Array, Array]:
        y = rng.permutation(np.arange(n) % n_classes)
        return (centres[y] + rng.standard_normal((n, n_features))).astype(np.float32), y

    X, y = rows(n_train)
    X_test, y_test = rows(n_test)
    blur = rng.standard_normal(centres.shape) * (_NAME_NOISE * separation / np.sqrt(n_features))
    return Rows(X, y, X_test, y_test, tuple(f"class {k}" for k in range(n_classes)), centres + blur)
