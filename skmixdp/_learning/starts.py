"""A noisy check of the start on private rows."""

import warnings

import numpy as np

from .._engine import GaussianMechanism
from .._linear import predicted_classes
from ..components.protocols import PublicInfo
from .facts import Learner, Learning, counts_query
from .targets import start_predicts

#: Public rows are left out if the accuracy of the start on private rows exceeds that of a guess among the
#: classes by less than this part of what it does on public rows, by at least ``_CLEARLY`` standard deviations
#: of the noise.
_FAR_WORSE, _CLEARLY = 1 / 3, 2.0


def start_is_useful(info: PublicInfo, learner: Learner, multiplier: float) -> Learning[bool]:
    """Whether the public head classifies private rows about as well as held-out public rows.

    If a noisy count of correct private rows is far lower, the labels or features of the public rows mean
    something else.
    """
    if not info.view.data.loss.has_classes:
        return (yield from start_predicts(info, learner, multiplier))
    query = counts_query(info.view.W, lambda Z, block: block.is_correct(Z))
    (correct,), _ = yield from learner.ask(GaussianMechanism(multiplier, 1, learner.noise), query)
    parts = [predicted_classes(judge.X @ start.T) == judge.labels for start, judge in info.held_out]
    right = np.concatenate(parts)
    guess = 1 / max(info.view.data.loss.n_outputs, 2)
    # A few public rows may all be classified correctly by chance: one more is taken to be, and one not.
    usual = (right.sum() + 1) / (len(right) + 2)
    better = max(float(right.mean() - guess - _CLEARLY * np.sqrt(usual * (1 - usual) / len(right))), 0.0)
    expected = (guess + _FAR_WORSE * better) * learner.n_rows if better else 0.0
    if correct + _CLEARLY * multiplier >= expected:
        return True
    warnings.warn(
        "the head of the public rows classifies far fewer private rows correctly than public ones: "
        "their labels or features mean something else, so the fit left them out; pass other public "
        "rows, or none.",
        UserWarning,
        stacklevel=2,
    )
    return False
