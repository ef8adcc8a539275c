"""The roofline: what a step would take if reading rows or arithmetic were all that there is."""

import numpy as np

from ..measure import Case
from ..problems import Problem

_WIDTH = 1024


def cases(problem: Problem) -> list[Case]:
    """One reading of the rows, and as many operations as the two products in a square product."""
    X, size = problem.X, problem.size
    flat = X.reshape(-1)
    A = np.ones((max(1, round(2 * size.n * size.d_in * size.k / _WIDTH**2)), _WIDTH), X.dtype)
    B = np.ones((_WIDTH, _WIDTH), X.dtype)

    def read() -> str:
        np.dot(flat, flat)
        return f"{X.nbytes / 1e6:.0f} MB"

    def multiply() -> str:
        A @ B
        return f"{2 * len(A) * _WIDTH**2 / 1e9:.2f} GFLOP"

    return [
        Case("roofline", "the rows read once", "roof", read),
        Case("roofline", "the operations at full speed", "roof", multiply),
    ]
