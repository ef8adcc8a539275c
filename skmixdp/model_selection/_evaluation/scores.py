"""Metrics of scores, from noisy numbers of rows by score and label."""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, ndtr

from ..._utils.validation import FRACTION, POSITIVE, check, shown
from .cells import Estimate, Evaluation, Floats, interval

#: Largest log-odds of a score.
LARGEST_LOGIT = 8.0

#: Number of groups of cells for the calibration error.
_GROUPS = 10

#: Mean absolute value of noise of unit variance, which biases sums of absolute gaps.
_BIAS = math.sqrt(2 / math.pi)

#: Goals of a threshold.
GOALS = ("f1", "precision", "recall", "cost")


class Curve(NamedTuple):
    """Points of a curve over thresholds, with the interval of the vertical coordinate at each."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats
    thresholds: Floats


@dataclass(frozen=True, repr=False)
class ScoreEvaluation(Evaluation):
    """Metrics of scores for a yes-or-no question, from noisy numbers of rows by score and answer.

    :func:`private_evaluation` makes it. For two classes, the score is the probability of the second class. In
    the layout "top", it is the probability of the predicted class, and the question is whether that class is
    right. A threshold may then tell which predictions to trust.

    Attributes
    ----------
    privacy : PrivacyReport
        The guarantee of the release.
    edges : array of shape (n_bins + 1,)
        Edges of the cells as probabilities, a public fact. A score in the first or last cell may lie outside.
    question : str
        ``"label"``, or ``"correct"`` for the layout "top".

    Notes
    -----
    Cells are equal in log-odds. Within a cell, all scores count as its middle, and ties in the ROC curve
    count half. Estimates of sums and ratios use the noisy counts as they are, so no clipping biases them.
    Curves and thresholds smooth them: they take the share of positive rows to rise with the score (isotonic
    regression).
    """

    logits: Floats
    question: str = "label"

    @property
    def edges(self) -> Floats:
        """Edges of the cells as probabilities."""
        edges: Floats = expit(self.logits)
        return edges

    @property
    def _negative(self) -> Floats:
        return self.counts[0, : len(self.logits) - 1]

    @property
    def _positive(self) -> Floats:
        return self.counts[0, len(self.logits) - 1 :]

    @property
    def _middles(self) -> Floats:
        return (self.logits[1:] + self.logits[:-1]) / 2

    @property
    def _groups(self) -> tuple[Floats, Floats]:
        """Mean scores (n_bins,) of the cells, and flags (n_groups, n_bins) of the groups that they are in."""
        score = expit(self._middles)
        group = np.minimum((score * _GROUPS).astype(np.intp), _GROUPS - 1)
        return score, (group == np.arange(_GROUPS)[:, np.newaxis]) * 1.0

    def _of(self, negative: Any, positive: Any) -> Floats:
        """Values of all cells (1, 2 n_bins): those of the negative and of the positive rows."""
        n_bins = len(self.logits) - 1
        both = [np.broadcast_to(part, n_bins) for part in (negative, positive)]
        return np.asarray(np.concatenate(both)[np.newaxis], dtype=np.float64)

    def _from(self, place: int) -> Floats:
        """Flags (n_bins,) of the cells above an edge."""
        return np.asarray(np.arange(len(self.logits) - 1) >= place, dtype=np.float64)

    # -- numbers -------------------------------------------------------------------------

    def share(self) -> Estimate:
        """Share of the positive rows; in the layout "top", the accuracy."""
        return self.cells.mean(self._of(0, 1), 0.0, 1.0)

    def roc_auc(self) -> Estimate:
        """Area under the ROC curve, unbiased up to the width of cells.

        With A the sum over pairs of cells, the interval holds the areas a for which ``A - a P Q`` is no
        larger than noise and sampling make it.
        """
        q, p = self._negative, self._positive
        spread_q, spread_p = np.split(self.cells.spread[0], 2)
        below, above = _below(q), p.sum() - _below(p)
        spread_below, spread_above = _below(spread_q), spread_p.sum() - _below(spread_p)
        n_pairs = float(p.sum() * q.sum())
        wins = float(p @ below)

        def excess(area: float) -> float:
            noise = np.sum((below - area * q.sum()) ** 2) + np.sum((above - area * p.sum()) ** 2)
            rows = spread_p @ (spread_below - area * spread_q.sum()) ** 2
            rows += spread_q @ (spread_above - area * spread_p.sum()) ** 2
            variance = self.noise_scale**2 * float(noise) + float(rows)
            return (wins - area * n_pairs) ** 2 - self.cells.z**2 * variance

        clear = min(p.sum(), q.sum()) > 0
        return interval(wins / n_pairs if clear else math.nan, excess, 0.0, 1.0)

    def log_loss(self) -> Estimate:
        """Mean log-loss of the score, with log-odds cut to between -8 and 8."""
        loss = self._of(np.logaddexp(0, self._middles), np.logaddexp(0, -self._middles))
        return self.cells.mean(loss, 0.0, float(loss.max()))

    def calibration_error(self) -> Estimate:
        """Expected calibration error (ECE) over ten groups of cells, each about a tenth of the probabilities.

        Noise raises a sum of absolute values, so the estimate subtracts what noise of this size adds. The
        lower end of the interval allows for the most that noise can add.
        """
        score, member = self._groups
        gaps = (member * (1 - score)) @ self._positive - (member * score) @ self._negative
        spread_q, spread_p = np.split(self.cells.spread[0], 2)
        weights = member * (1 - score) ** 2, member * score**2
        noise = self.noise_scale**2 * (weights[0] + weights[1]).sum(axis=1)
        scales = np.sqrt(noise + weights[0] @ spread_p + weights[1] @ spread_q)
        added = _folded(np.abs(gaps), np.sqrt(noise))
        total, reach = np.abs(gaps).sum(), self.cells.z * math.sqrt(np.sum(scales**2))
        ends = total - added.sum(), total - _BIAS * scales.sum() - reach, total + reach
        return Estimate(*(float(np.clip(end / self.cells.n_rows, 0, 1)) for end in ends))

    def at(self, threshold: float = 0.5) -> dict[str, Estimate]:
        """Metrics of the answer "yes" at this probability and above.

        Parameters
        ----------
        threshold : float, default=0.5
            Probability. The nearest edge of a cell is used, see :attr:`edges`.

        Returns
        -------
        dict
            Estimates of "precision", "recall", "f1", "accuracy", "false positive rate" and "selection rate".
        """
        check("threshold", threshold, FRACTION)
        with np.errstate(divide="ignore"):
            wanted = np.clip(logit(float(threshold)), self.logits[0], self.logits[-1])
        yes = self._from(int(np.argmin(np.abs(self.logits - wanted))))
        hit, alarm, positive = self._of(0, yes), self._of(yes, 0), self._of(0, 1)
        return {
            "precision": self.cells.ratio(hit, hit + alarm),
            "recall": self.cells.ratio(hit, positive),
            "f1": self.cells.ratio(2 * hit, hit + alarm + positive),
            "accuracy": self.cells.mean(hit + self._of(1 - yes, 0), 0.0, 1.0),
            "false positive rate": self.cells.ratio(alarm, self._of(1, 0)),
            "selection rate": self.cells.mean(hit + alarm, 0.0, 1.0),
        }

    # -- curves and thresholds -----------------------------------------------------------

    def roc_curve(self) -> Curve:
        """False positive rates, true positive rates and their intervals, at each edge from high to low."""
        alarms, hits = self._tails
        x, y = (tail / max(tail[0], 1e-9) for tail in (alarms, hits))
        ends = [self.cells.ratio(self._of(0, self._from(j)), self._of(0, 1)) for j in range(len(x))]
        return self._curve(x, y, ends)

    def precision_recall_curve(self) -> Curve:
        """Recalls, precisions and their intervals, at each edge from high to low."""
        hits = self._tails[1]
        answers = (self._from(j) for j in range(len(hits)))
        ends = [self.cells.ratio(self._of(0, yes), self._of(yes, yes)) for yes in answers]
        return self._curve(hits / max(hits[0], 1e-9), self._precisions, ends)

    def calibration_curve(self) -> Curve:
        """Mean scores, shares of positive rows and their intervals, in ten groups of cells.

        The thresholds are the upper ends of the groups. Groups that noise hides are left out.
        """
        score, members = self._groups
        found = []
        for index, member in enumerate(members):
            rate = self.cells.ratio(self._of(0, member), self._of(member, member))
            weights = member * np.maximum(self._negative + self._positive, 0)
            if not math.isnan(rate.value) and weights.sum() > 0:
                found.append((weights @ score / weights.sum(), *rate, (index + 1) / _GROUPS))
        return Curve(*np.array(found).reshape(-1, 5).T)

    def _curve(self, x: Floats, y: Floats, ends: list[Estimate]) -> Curve:
        low, high = np.array([end.low for end in ends]), np.array([end.high for end in ends])
        flipped = (x, y, np.minimum(low, y), np.maximum(high, y), self.edges)
        return Curve(*(part[::-1] for part in flipped))

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        """Estimated numbers of negative and positive rows above each edge (n_bins + 1,), which decrease."""
        # The share of positive rows is taken to rise with the score.
        rising = isotonic_regression(np.cumsum(self._negative + self._positive)).x
        totals = np.diff(np.maximum(rising, 0.0), prepend=0.0)
        # Cells without rows, up to noise, are merged with the cell before them.
        part = np.maximum(np.cumsum(totals > 0) - 1, 0)
        sizes = np.maximum(np.bincount(part, totals), 1e-9)
        raw = np.bincount(part, self._positive) / sizes
        share = np.clip(isotonic_regression(raw, weights=sizes).x, 0.0, 1.0)[part]
        cells = totals * (1 - share), totals * share
        negative, positive = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in cells)
        return negative, positive

    @property
    def _precisions(self) -> Floats:
        """Precisions (n_bins + 1,) above each edge; the largest one where there are no rows."""
        alarms, hits = self._tails
        said = alarms + hits
        precisions = hits / np.maximum(said, 1e-9)
        return np.asarray(np.where(said > 0, precisions, precisions.max()))

    def threshold(self, goal: str = "f1", value: Any = None) -> float:
        """The probability from which on the answer is "yes".

        Parameters
        ----------
        goal : {"f1", "precision", "recall", "cost"}, default="f1"
            The largest F1; the most recall for a precision; the most precision for a recall; or the least
            cost.
        value : float, pair of floats or None, default=None
            The wanted precision or recall, or the costs of a false positive and of a false negative. None for
            "f1".

        Returns
        -------
        float
            An edge of a cell, see :attr:`edges`. If no threshold reaches the precision, a warning says so,
            and the result is that of the largest one.

        Raises
        ------
        ValueError
            For a goal or a value that is not one of these.

        Notes
        -----
        Of many thresholds with noise, the best looks better than it is. So the metrics :meth:`at` the chosen
        one are a little optimistic, and their intervals do not know of the choice.
        """
        check_goal(goal, value)
        alarms, hits = self._tails
        if goal == "cost":
            false_positive, false_negative = value
            cost = false_positive * alarms + false_negative * (hits[0] - hits)
            return float(self.edges[int(np.argmin(cost))])
        if goal == "f1":
            return float(self.edges[int(np.argmax(2 * hits / np.maximum(alarms + hits + hits[0], 1e-9)))])
        if goal == "recall":
            return float(self.edges[np.flatnonzero(hits >= value * hits[0])[-1]])
        within = np.flatnonzero((self._precisions >= value) & (hits > 0))
        if len(within):
            return float(self.edges[within[0]])
        best = int(np.argmax(np.where(hits > 0, self._precisions, -1.0)))
        warnings.warn(
            f"no threshold reaches the precision {value:g}; the largest found is "
            f"{self._precisions[best]:.3f}, whose threshold is used.",
            UserWarning,
            stacklevel=2,
        )
        return float(self.edges[best])

    def summary(self) -> dict[str, Estimate]:
        """The main metrics, by name: value, and low and high end of the interval."""
        of_answers = {"accuracy": self.share()}
        if self.question == "label":
            at = self.at(0.5)
            of_answers = {"share of class 1": self.share()}
            of_answers |= {f"{name} at 0.5": at[name] for name in ("accuracy", "precision", "recall", "f1")}
        return {
            **of_answers,
            "ROC AUC": self.roc_auc(),
            "log-loss": self.log_loss(),
            "calibration error": self.calibration_error(),
        }


def check_goal(goal: object, value: object) -> None:
    """Refuse an unknown goal of a threshold, or a wrong value for it."""
    check("goal", goal, *GOALS)
    if goal == "f1":
        check("value", value, None, remedy="goal='f1' takes none")
    elif goal == "cost":
        pair = isinstance(value, (tuple, list)) and len(value) == 2 and all(map(POSITIVE.admits, value))
        if not pair:
            raise ValueError(
                f"value={shown(value)} must be two positive numbers for goal='cost': what a false positive "
                "and a false negative cost."
            )
    else:
        check("value", value, FRACTION, remedy=f"it is the wanted {goal}")


def _below(counts: Floats) -> Floats:
    """Numbers of rows in lower cells, plus half of those in the same cell."""
    return np.asarray(np.cumsum(counts) - counts / 2)


def _folded(gaps: Floats, scales: Floats) -> Floats:
    """How much noise of these scales adds to the absolute value of such gaps, on average."""
    units = gaps / np.maximum(scales, 1e-300)
    density = np.exp(-(units**2) / 2) * _BIAS
    return np.asarray(scales * (density - 2 * units * ndtr(-units)))
