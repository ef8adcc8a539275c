"""The limit: the two matrix products that a step cannot do without, and nothing else."""

from functools import partial

import numpy as np

from ..measure import Case
from ..problems import Problem

#: Rows in a block: the second product then finds a block in cache, where the first left it.
_BLOCK_ROWS = (256, 1024)


def cases(problem: Problem) -> list[Case]:
    """``X W^T`` and ``C^T X``: once over all rows, and block by block."""
    X, W = problem.X, problem.W.astype(problem.X.dtype)
    C = np.random.default_rng(0).standard_normal((len(X), len(W)), dtype=X.dtype)

    def unblocked() -> str:
        X @ W.T
        C.T @ X
        return ""

    def blocked(block_rows: int) -> str:
        total = np.zeros_like(W)
        for start in range(0, len(X), block_rows):
            rows = slice(start, start + block_rows)
            X[rows] @ W.T
            total += C[rows].T @ X[rows]
        return ""

    whole = Case("plain_products", "unblocked", "limit", unblocked)
    return [whole] + [
        Case("plain_products", f"blocks of {block_rows} rows", "limit", partial(blocked, block_rows))
        for block_rows in _BLOCK_ROWS
    ]
