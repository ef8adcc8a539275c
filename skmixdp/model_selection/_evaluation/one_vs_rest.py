"""Metrics of several classes or labels, from noisy numbers of rows by score and label."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .cells import Estimate, Evaluation, Floats
from .scores import ScoreEvaluation


@dataclass(frozen=True, repr=False)
class OneVsRestEvaluation(Evaluation):
    """Metrics of each class against the rest, or of each of several labels, from one release.

    :func:`private_evaluation` makes it. A row adds 1 to one cell of each of the k histograms, so the noise is
    ``sqrt(k)`` times that of a single one.

    Attributes
    ----------
    classes : list of k labels
        The classes, or the numbers of the labels.
    by_class : dict of ScoreEvaluation
        The metrics of each class, by its label.
    privacy : PrivacyReport
        The guarantee of the release.
    exclusive : bool
        Whether a row is of exactly one class. If not, it has any number of labels.

    Notes
    -----
    The interval of a mean over classes is the mean of their intervals, which allows for any correlation.
    """

    logits: Floats
    classes: list[Any]
    exclusive: bool = True

    @property
    def by_class(self) -> dict[Any, ScoreEvaluation]:
        """The metrics of each class, by its label."""
        return {
            label: ScoreEvaluation(
                replace(self.cells, counts=self.cells.counts[j : j + 1]), self.privacy, self.logits
            )
            for j, label in enumerate(self.classes)
        }

    def log_loss(self) -> Estimate:
        """Mean log-loss, with log-odds cut to between -8 and 8.

        For classes, that of the probability of a row's own class. For labels, the mean over them.
        """
        parts = self.by_class
        if not self.exclusive:
            return _mean([part.log_loss() for part in parts.values()])
        middles = (self.logits[1:] + self.logits[:-1]) / 2
        own = np.concatenate([np.zeros(len(middles)), np.ones(len(middles))])
        loss = np.concatenate([np.zeros(len(middles)), np.logaddexp(0, -middles)])
        whole = np.ones((len(parts), 1))
        return self.cells.mean(whole * loss, 0.0, float(loss.max()), rows=whole * own)

    def summary(self) -> dict[str, Estimate]:
        """The main metrics, by name: value, and low and high end of the interval."""
        parts = list(self.by_class.values())
        return {
            "ROC AUC, mean": _mean([part.roc_auc() for part in parts]),
            "log-loss": self.log_loss(),
            "calibration error, mean": _mean([part.calibration_error() for part in parts]),
            "f1 at 0.5, mean": _mean([part.at(0.5)["f1"] for part in parts]),
        }


def _mean(parts: list[Estimate]) -> Estimate:
    """The mean of estimates, with the mean of their intervals."""
    return Estimate(*(float(end) for end in np.mean(parts, axis=0)))
