"""Metrics of scores of one question, or of several classes, from noisy numbers of rows by score and label."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, ndtr

from ..._utils.process import warn
from ..._utils.validation import FRACTION, POSITIVE, Allowed, Kind, check
from .cells import Estimate, Evaluation, Floats, interval

#: Largest log-odds of a score.
LARGEST_LOGIT = 8.0

#: How much of the rows in the next cells, and in those after them, is added to those with lower scores.
#: They make sums over cells agree with integrals of smooth densities.
_NEAR, _FAR = 7 / 60, -1 / 60

#: Number of groups of cells for the calibration error.
_GROUPS = 10

#: Mean absolute value of noise of unit variance, which biases sums of absolute gaps.
_BIAS = math.sqrt(2 / math.pi)

#: A gain over the threshold that follows from the costs counts from so many standard deviations on. Trials
#: gave the number: with it, noise makes calibrated scores dearer by less than 1%.
_CLEAR = 2.0

#: Parts of a cell at whose ends a threshold may be.
_PARTS = 64

_COSTS = Kind(
    "two positive numbers",
    lambda value: isinstance(value, (tuple, list)) and len(value) == 2 and all(map(POSITIVE.admits, value)),
)
#: Goals of a threshold, the value that each takes, and what it is.
_GOALS: dict[str, tuple[Allowed, str]] = {
    "f1": (None, "goal='f1' takes none"),
    "precision": (FRACTION, "it is the wanted precision"),
    "recall": (FRACTION, "it is the wanted recall"),
    "cost": (_COSTS, "goal='cost' takes the costs of a false positive and of a false negative"),
}


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
    count half. The area allows for what lies inside of cells. Estimates of sums and ratios use the noisy
    counts as they are, so no clipping biases them.
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

    def _of(self, negative: Floats | float, positive: Floats | float) -> Floats:
        """Values of all cells (1, 2 n_bins): those of the negative and of the positive rows."""
        n_bins = len(self.logits) - 1
        both = [np.broadcast_to(part, n_bins) for part in (negative, positive)]
        return np.asarray(np.concatenate(both)[np.newaxis], dtype=np.float64)

    def _from(self, place: int) -> Floats:
        """Flags (n_bins,) of the cells above an edge."""
        return np.asarray(np.arange(len(self.logits) - 1) >= place, dtype=np.float64)

    def _above(self, logit_: float) -> Floats:
        """Parts (1, 2 n_bins) of the cells' rows above log-odds; of the end cells, all or none."""
        place = int(np.searchsorted(self.logits, logit_, side="right")) - 1
        middle = 0 < place < len(self.logits) - 2
        if not middle:
            return self._of(*2 * [self._from(int(np.argmin(np.abs(self.logits - logit_))))])
        parts = []
        for tail, fine in zip(self._tails, self._between_edges[1:], strict=True):
            part = self._from(place)
            upper, lower = tail[place : place + 2]
            above = np.interp(logit_, self._between_edges[0], fine) - lower
            # Where no rows are found, they are taken to be equally spread.
            width = self.logits[place + 1] - self.logits[place]
            even = (self.logits[place + 1] - logit_) / width
            part[place] = above / (upper - lower) if upper > lower else even
            parts.append(part)
        return self._of(*parts)

    # -- numbers -------------------------------------------------------------------------

    def share(self) -> Estimate:
        """Share of the positive rows; in the layout "top", the accuracy."""
        return self.cells.mean(self._of(0, 1), 0.0, 1.0)

    def roc_auc(self) -> Estimate:
        """Area under the ROC curve.

        Scores inside a cell may be spread smoothly, as most are, or equal, as those of a small tree. The
        estimate is that of smooth ones. The interval holds for both.
        """
        smooth, equal = self._area(_NEAR, _FAR), self._area(0.0, 0.0)
        return Estimate(smooth.value, min(smooth.low, equal.low), max(smooth.high, equal.high))

    def _area(self, near: float, far: float) -> Estimate:
        """The area with pairs of neighbouring cells corrected by these parts.

        With A the sum over pairs of cells, the interval holds the areas a for which ``A - a P Q`` is no
        larger than noise and sampling make it.
        """

        def below(counts: Floats) -> Floats:
            """Numbers of rows with lower scores than those of each cell."""
            padded = np.pad(counts, 2)
            next_ones, further = padded[1:-3] - padded[3:-1], padded[:-4] - padded[4:]
            return np.asarray(np.cumsum(counts) - counts / 2 + near * next_ones + far * further)

        q, p = self._negative, self._positive
        spread_q, spread_p = np.split(self.cells.spread[0], 2)
        lower, above = below(q), p.sum() - below(p)
        spread_lower, spread_above = below(spread_q), spread_p.sum() - below(spread_p)
        n_pairs = float(p.sum() * q.sum())
        wins = float(p @ lower)

        def excess(area: float) -> float:
            noise = np.sum((lower - area * q.sum()) ** 2) + np.sum((above - area * p.sum()) ** 2)
            rows = spread_p @ (spread_lower - area * spread_q.sum()) ** 2
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
            Probability. Rows in its cell count by the part of the cell that is above it. In the first and the
            last cell, the nearest edge is used, see :attr:`edges`.

        Returns
        -------
        dict
            Estimates of "precision", "recall", "f1", "accuracy", "false positive rate" and "selection rate".
        """
        check("threshold", threshold, FRACTION)
        with np.errstate(divide="ignore"):
            yes = self._above(float(logit(float(threshold))))
        negative, positive = self._of(1, 0), self._of(0, 1)
        hit, alarm = yes * positive, yes * negative
        return {
            "precision": self.cells.ratio(hit, hit + alarm),
            "recall": self.cells.ratio(hit, positive),
            "f1": self.cells.ratio(2 * hit, hit + alarm + positive),
            "accuracy": self.cells.mean(hit + negative - alarm, 0.0, 1.0),
            "false positive rate": self.cells.ratio(alarm, negative),
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
        return self._curve(hits / max(hits[0], 1e-9), self._precisions(*self._tails), ends)

    def calibration_curve(self) -> Curve:
        """Mean scores, shares of positive rows and their intervals, in ten groups of cells.

        The thresholds are the upper ends of the groups. Groups that noise hides are left out.
        """
        score, members = self._groups
        points = []
        for index, member in enumerate(members):
            rate = self.cells.ratio(self._of(0, member), self._of(member, member))
            weights = member * np.maximum(self._negative + self._positive, 0)
            if not math.isnan(rate.value) and weights.sum() > 0:
                points.append((weights @ score / weights.sum(), *rate, (index + 1) / _GROUPS))
        return Curve(*np.array(points).reshape(-1, 5).T)

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

    @cached_property
    def _between_edges(self) -> tuple[Floats, Floats, Floats]:
        """Log-odds at and between the edges, and the numbers of negative and positive rows above each."""
        # Curves that fall through the numbers at the edges; end cells have edges alone.
        edges = np.arange(len(self.logits), dtype=np.float64)
        places = np.append(np.arange(1, len(edges) - 2, 1 / _PARTS), edges[[0, -2, -1]])
        places.sort()
        negative, positive = (PchipInterpolator(edges, tail)(places) for tail in self._tails)
        return np.interp(places, edges, self.logits), negative, positive

    def _precisions(self, alarms: Floats, hits: Floats) -> Floats:
        """Precisions of numbers above each of several scores; the largest one where there are no rows."""
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
            A probability. If no threshold reaches the precision, a warning says so, and the result is that of
            the largest one. Another warning says that noise hides the precision, recall or F1 there.

        Raises
        ------
        ValueError
            For a goal or a value that is not one of these.

        Notes
        -----
        The scores of a cell are taken to be equally spread in log-odds, except in the first and last cell. So
        a wanted precision or recall is reached about, and :meth:`at` has the interval. Costs start from the
        threshold that follows from them, ``c_fp / (c_fp + c_fn)``. Another one takes its place if noise and
        sampling do not hide that it costs less.

        Of many thresholds with noise, the best looks better than it is. So the metrics :meth:`at` the chosen
        one are a little optimistic, and their intervals do not know of the choice.
        """
        check("goal", goal, *_GOALS)
        check("value", value, _GOALS[goal][0], remedy=_GOALS[goal][1])
        logits, alarms, hits = self._between_edges
        message = ""
        if goal == "cost":
            return float(expit(self._cheapest(*value)))
        if goal == "f1":
            place = np.argmax(2 * hits / np.maximum(alarms + hits + hits[0], 1e-9))
        elif goal == "recall":
            place = np.flatnonzero(hits >= value * hits[0])[-1]
        else:
            precisions = np.where(hits > 0, self._precisions(alarms, hits), -1.0)
            reaching = precisions >= value
            place = np.argmax(reaching if reaching.any() else precisions)
            if not reaching.any():
                message = (
                    f"no threshold reaches the precision {value:g}; the largest found is "
                    f"{precisions[place]:.3f}, whose threshold is used."
                )
        threshold = float(expit(logits[place]))
        reached = self.at(threshold)[goal]
        if reached.high - reached.low >= 1:
            message = (
                f"the {goal} at the threshold is {reached}; evaluate more rows or raise epsilon, or choose "
                "the threshold by prior knowledge."
            )
        if message:
            warn(message)
        return threshold

    def _cheapest(self, false_positive: float, false_negative: float) -> float:
        """Log-odds from which "yes" costs least, or those that follow from the costs if noise hides it."""
        # Where scores are calibrated, "yes" is cheaper from these log-odds on.
        start = math.log(false_positive / false_negative)
        logits, alarms, hits = self._between_edges
        best = float(logits[np.argmin(false_positive * alarms - false_negative * hits)])
        between = self._above(best) - self._above(start)
        costs = between * self._of(false_positive, -false_negative)
        variance = np.sum((self.noise_scale**2 + self.cells.spread) * costs**2)
        gain = -float(np.sum(costs * self.counts))
        return best if gain > _CLEAR * math.sqrt(variance) else start

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


def _folded(gaps: Floats, scales: Floats) -> Floats:
    """How much noise of these scales adds to the absolute value of such gaps, on average."""
    units = gaps / np.maximum(scales, 1e-300)
    density = np.exp(-(units**2) / 2) * _BIAS
    return np.asarray(scales * (density - 2 * units * ndtr(-units)))
