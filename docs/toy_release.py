"""A release that is added to a fit: the number of long rows tells whether a warm start is kept."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skmixdp._engine import Procedure
from skmixdp._fit.stage import Fit, Price, Stage
from skmixdp._fit.statistics import Worth, counts_query, share_for
from skmixdp._rows.source import Block

#: Noise in the fraction of long rows: wanted, largest that is useful; smallest and largest share of mu
#: squared.
_WORTH = Worth(0.01, 0.1, (0.002, 0.01))


class LongRows(Stage):
    """A start from zeros if most mapped rows are short.

    *Guarantee*: one Gaussian release. A row changes the count by at most 1.
    """

    name = "long rows"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        if not fit.divides or not len(fit.public.X):
            return None
        return share_for(fit.budget.mu, fit.data.n_rows, 1.0, _WORTH) or None

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        fit = fit.spent(self, price)
        yield fit  # what is usual comes first
        yield _from_zeros(fit)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        width = fit.mapping.row_map.width(fit.data.n_features)
        query = counts_query(np.zeros((0, width)), _are_long)  # without products
        asked = fit.learner.ask(fit.budget.multiplier(price), query)
        (count,), _ = yield from fit.ask(asked, fit.mapping.row_map)
        fit = fit.spent(self, price)
        return fit if count > fit.data.n_rows / 2 else _from_zeros(fit)


def _from_zeros(fit: Fit) -> Fit:
    return fit.learned(settings=replace(fit.settings, init="zeros"))


def _are_long(Z: Any, block: Block) -> NDArray[np.bool_]:
    return np.asarray(block.norms > 0.5)[:, np.newaxis]
