"""The check of the start: whether the public head is of use for private rows."""

import math
from collections.abc import Iterator

import numpy as np

from ..._engine import Procedure
from ..._linear import predicted_classes
from ..._utils.process import warn_later
from ...components.protocols import PublicInfo
from ...components.scalars import clipped
from ..heads import CLEARLY, FEWEST, gains_query, held_out_gains, usual_gain
from ..planning import planned
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning, Worth, counts_query, share_for
from .mean import learns_mean

#: Noise in the accuracy of the start.
_WORTH = Worth(0.03, 0.1, (0.002, 0.02))

#: The gain of the start is its accuracy less that of a random guess. Public rows are left out if its gain on
#: private rows is below this fraction of its gain on public rows.
_FAR_WORSE = 1 / 3

#: Messages for useless public rows: what the fit does, and what to check.
_OF_TARGETS = "the fit left them out; check that y and y_pub are in the same units and were transformed alike"
_OF_LABELS = "the fit left them out; check that y and y_pub have the same labels in the same columns"


def start_is_useful(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head classifies private rows about as well as held-out public rows.

    If a noisy count of correct private rows is far lower, the labels or features of the public rows mean
    something else.
    """
    if not info.view.data.loss.has_classes:
        return (yield from start_predicts(info, learner, multiplier))
    query = counts_query(info.view.W, lambda Z, block: block.is_correct(Z))
    (correct,), _ = yield from learner.ask(multiplier, query)
    parts = [predicted_classes(judge.X @ start.T) == judge.labels for start, judge in info.held_out]
    right = np.concatenate(parts)
    guess = 1 / max(info.view.data.loss.n_outputs, 2)
    # A few public rows may all be classified correctly by chance. So one more correct and one more wrong row
    # are added (Laplace's rule).
    usual = (right.sum() + 1) / (len(right) + 2)
    better = max(float(right.mean() - guess - CLEARLY * np.sqrt(usual * (1 - usual) / len(right))), 0.0)
    expected = (guess + _FAR_WORSE * better) * learner.n_rows if better else 0.0
    if correct + CLEARLY * multiplier >= expected:
        return True
    warn_later(
        "the head of the public rows classifies far fewer private rows correctly than public ones: "
        "their labels or features mean something else, so the fit left them out; pass other public "
        "rows, or none."
    )
    return False


def start_predicts(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head helps with private rows, or does no worse on them than on public rows.

    It is useless if it predicts them worse than outputs of 0 do (the centre of targets, even chances of
    labels), and much worse than a head of half of the public rows predicts the other half. The noisy number
    is the sum of clipped differences of losses.

    *Guarantee*: one Gaussian release of this multiplier; one row changes the sum by at most 1.
    """
    nothing = np.zeros_like(info.view.W)
    held_out = held_out_gains(info, nothing)
    limit = usual_gain(held_out) or 1.0
    query = gains_query(nothing, [info.view.W], limit, info.view.data.loss)
    released, scale = yield from learner.ask(multiplier, query)
    seen = (float(released[0]) + CLEARLY * scale) / learner.n_rows
    public = clipped(held_out / limit, 1.0)
    error = float(public.std(ddof=1)) / math.sqrt(len(public))
    if seen >= min(0.0, float(public.mean()) - CLEARLY * error):
        return True
    warn_later(
        "the head of the public rows predicts private rows worse than a constant, and public ones better, so "
        + (_OF_TARGETS if info.view.data.loss.quadratic else _OF_LABELS)
        + ", or pass other public rows, or none."
    )
    return False


class Start(Stage):
    """Leaves out public rows whose head is of no use; what was learned with them is asked again."""

    name = "check of the start"
    limits = _WORTH.limits

    def price(self, fit: Fit) -> Price | None:
        return check_share(fit) or None

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        yield fit.spent(self, price)
        yield fit.spent(self, price).without_public_rows()

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        fit = planned(fit)
        assert fit.plan is not None
        queries = start_is_useful(fit.plan.info, fit.learner, fit.budget.multiplier(price))
        is_useful = yield from fit.ask(queries, fit.row_map)
        return fit.spent(self, price) if is_useful else fit.spent(self, price).without_public_rows()


def check_share(fit: Fit) -> float:
    """Share of the squared budget for checking the start on private rows; 0 if the check is not useful."""
    settings, public = fit.settings, fit.public
    enough = len(public.X) >= (2 if fit.data.loss.has_classes else FEWEST)
    checks = isinstance(settings.init, str) and settings.init == "public" and enough
    # The check may change the centre after the charge. Without a bound on lengths, a row could then be too
    # long, and refusing it would reveal it.
    if not (settings.is_default and checks and fit.divides) or settings.rows.norm is None:
        return 0.0
    if settings.rows.whiten is True and not learns_mean(fit, public.left_out(), None):
        return 0.0
    return share_for(fit.mu, fit.n_rows, 1.0, _WORTH)
