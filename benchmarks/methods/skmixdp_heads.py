"""Sixteen heads in one pass over the rows, compared with the plain products with all their columns."""

from functools import partial

import numpy as np

from skmixdp._linear.losses import classification_loss
from skmixdp._rows.blockwise import InMemoryRows
from skmixdp._rows.source import PrivateQuery, Request
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals

from ..measure import Case
from ..problems import Problem
from . import plain_products

_HEADS = 16


def cases(problem: Problem) -> list[Case]:
    """The limit here is the pair of products with ``16 k`` columns."""
    size = problem.size
    heads = np.random.default_rng(1).standard_normal((_HEADS, size.k, size.d_in))
    loss, clip = classification_loss(size.k), L2Clip(0.5)
    rows = InMemoryRows(problem.held(), problem.y)

    contribute = partial(clipped_residuals, loss=loss, clip=clip)
    requests = [Request(PrivateQuery(W, contribute, ())) for W in heads]

    def together() -> str:
        rows.private_sums(requests)
        return ""

    def one_by_one() -> str:
        for request in requests:
            rows.private_sums([request])
        return ""

    wide = Problem(size, problem.X, problem.y, problem.X_pub, problem.y_pub, heads.reshape(-1, size.d_in))
    return [
        *plain_products.cases(wide),
        Case("skmixdp_heads", f"{_HEADS} heads in one pass", "step", together),
        Case("skmixdp_heads", f"{_HEADS} heads one by one", "step", one_by_one),
    ]
