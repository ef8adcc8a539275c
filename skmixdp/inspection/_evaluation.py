"""Plots of evaluations, confusions and coefficients, with the uncertainty of noise and sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix

from .._utils.validation import NON_NEGATIVE, check
from ..model_selection import GroupedEvaluation
from ._style import (
    OKABE_ITO,
    Z95,
    Display,
    axes,
    curve_style,
    draw_intervals,
    legend_above,
    one_below_the_other,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Floats = NDArray[np.float64]

#: Minimum count of a class that is shown, in standard deviations of its noise.
_CLEAR = 2.0

#: The attribute of an evaluation that each kind of plot needs.
_NEEDS = {
    "roc": "roc_curve",
    "precision_recall": "precision_recall_curve",
    "calibration": "calibration_curve",
    "classes": "by_class",
    "residuals": "residual_edges",
    "deviances": "mean_deviance",
}
#: Labels of the axes of a curve, and the place of its legend.
_LABELS: dict[str, Any] = {
    "roc": ("False positive rate", "True positive rate", "lower right"),
    "precision_recall": ("Recall", "Precision", "lower left"),
    "calibration": ("Probability", "Share of positive rows", "upper left"),
}


class EvaluationDisplay(Display):
    """Plot of an evaluation on private rows, from its noisy counts.

    Made by :meth:`from_evaluation`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    """

    evaluation: Any
    kind: str

    @classmethod
    def from_evaluation(
        cls, evaluation: object, *, kind: str | None = None, ax: Axes | None = None
    ) -> EvaluationDisplay:
        """Plot an evaluation, which releases nothing more.

        Parameters
        ----------
        evaluation : ScoreEvaluation, OneVsRestEvaluation, ResidualEvaluation, CountEvaluation or of groups
            What :func:`~skmixdp.model_selection.private_evaluation` returned.
        kind : {"roc", "precision_recall", "calibration", "classes", "residuals", "deviances"}, str or None
            A curve of scores with its intervals; the ROC area of each class; the histogram of residuals; or
            the shares of rows with smaller deviances. For groups, a metric of their summary, which is drawn
            with its intervals. None is the first that the evaluation has, after the number of rows.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        EvaluationDisplay
            The drawn display.

        Raises
        ------
        ValueError
            For a kind that the evaluation does not have.
        """
        if isinstance(evaluation, GroupedEvaluation):
            number, *metrics = dict.fromkeys(evaluation.summary().columns.get_level_values(0))
            possible = [*metrics, number]
        else:
            possible = [name for name, needed in _NEEDS.items() if hasattr(evaluation, needed)]
        if kind is not None and kind not in possible:
            raise ValueError(
                f"kind={kind!r} does not suit {type(evaluation).__name__}; pass one of {possible}."
            )
        return cls._drawn(ax, evaluation=evaluation, kind=possible[0] if kind is None else kind)

    @property
    def _n_lines(self) -> int:
        if isinstance(self.evaluation, GroupedEvaluation):
            return len(self.evaluation)
        return len(self.evaluation.classes) if self.kind == "classes" else 0

    def _draw(self, ax: Axes) -> None:
        named = {"classes": self._classes, "residuals": self._residuals, "deviances": self._deviances}
        is_grouped = isinstance(self.evaluation, GroupedEvaluation)
        (self._groups if is_grouped else named.get(self.kind, self._curve))()

    def _groups(self) -> None:
        drawn, unknown = self.evaluation.summary()[self.kind], self.evaluation.unknown
        labels = [f"{name} (unknown)" if name in unknown else str(name) for name in drawn.index]
        draw_intervals(self.ax_, drawn["value"], drawn["low"], drawn["high"], labels)
        self.ax_.set_xlabel(self.kind)

    @property
    def _interval(self) -> str:
        cells = self.evaluation.cells
        return f"{100 * cells.level:g}% interval" + ("" if cells.sampling else " of the noise")

    def _curve(self) -> None:
        curve = getattr(self.evaluation, _NEEDS[self.kind])()
        style = {**curve_style(0), "marker": "o" if self.kind == "calibration" else None}
        if self.kind == "calibration":
            errors = np.abs(np.stack([curve.low, curve.high]) - curve.y)
            self.ax_.errorbar(curve.x, curve.y, yerr=errors, capsize=3, label=self._interval, **style)
        else:
            shade: dict[str, Any] = {"color": OKABE_ITO[0], "alpha": 0.2, "linewidth": 0}
            self.ax_.fill_between(curve.x, curve.low, curve.high, label=self._interval, **shade)
            name = f"area {self.evaluation.roc_auc()}" if self.kind == "roc" else "noisy counts"
            self.ax_.plot(curve.x, curve.y, label=name, **style)
        if self.kind != "precision_recall":
            self.ax_.plot([0, 1], [0, 1], color="0.5", linestyle=(0, (1, 1.5)), zorder=1)
        self.ax_.set_xlim(-0.02, 1.02)
        self.ax_.set_ylim(-0.02, 1.02)
        across, up, place = _LABELS[self.kind]
        self.ax_.set_xlabel(across)
        self.ax_.set_ylabel(up)
        self.ax_.legend(frameon=False, loc=place)

    def _classes(self) -> None:
        parts = self.evaluation.by_class
        values, low, high = np.array([part.roc_auc() for part in parts.values()]).T
        draw_intervals(self.ax_, values, low, high, [str(label) for label in parts])
        self.ax_.set_xlabel(f"Area under the ROC curve, each against the rest, {self._interval}")

    def _deviances(self) -> None:
        values = self.evaluation.deviances
        for place, name in enumerate(("predictions", "a constant rate")):
            shares = np.cumsum(self.evaluation.counts[place]) / self.evaluation.cells.n_rows
            self.ax_.plot(values[values > 0], shares[values > 0], label=name, **curve_style(place))
        self.ax_.set_xscale("log")
        self.ax_.set_xlabel("Poisson deviance")
        self.ax_.set_ylabel("Share of the rows with a smaller one")
        self.ax_.legend(frameon=False, loc="upper left")

    def _residuals(self) -> None:
        edges, counts = self.evaluation.residual_edges, self.evaluation.counts[0]
        widths = np.diff(edges)
        shares = counts / self.evaluation.cells.n_rows / widths
        scale = self.evaluation.cells.z * self.evaluation.noise_scale / self.evaluation.cells.n_rows / widths
        self.ax_.fill_between(
            edges,
            np.append(np.maximum(shares - scale, 0), 0),
            np.append(np.maximum(shares + scale, 0), 0),
            step="post",
            color=OKABE_ITO[0],
            alpha=0.25,
            linewidth=0,
            label=f"{100 * self.evaluation.cells.level:g}% interval of the noise",
        )
        self.ax_.stairs(np.maximum(shares, 0), edges, color=OKABE_ITO[0], linewidth=1.5, label="noisy counts")
        reach = self.evaluation.half_width(0.98)
        inner = np.abs(edges[:-1] + edges[1:]) / 2 < reach
        self.ax_.set_xlim(-reach, reach)
        self.ax_.set_ylim(0, 1.15 * max((shares + scale)[inner].max(), 1e-12))
        self.ax_.set_xlabel("Target minus prediction")
        self.ax_.set_ylabel("Density of the rows")
        self.ax_.legend(frameon=False, loc="upper right")


class ConfusionDisplay(Display):
    """Plot of the recall of each class, and of the class with which it is most often confused.

    Shares come from a confusion matrix, whose counts may be noisy. Bars show how far the noise may move each
    share: 95% intervals. The largest of several noisy shares is a little too large. Classes whose number of
    rows cannot be told from noise have no marks.

    Made by :meth:`from_estimator` or :meth:`from_results`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    recalls_, confusions_ : ErrorbarContainer
        Recall of each class, and the largest share of its rows that another class gets.
    labels_ : list of Text
        Name of that other class.
    """

    counts: Any
    classes: Sequence[Any]
    noise_scale: float

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        y: Any,
        *,
        noise_multiplier: float | None = None,
        ax: Axes | None = None,
    ) -> ConfusionDisplay:
        """Plot the confusions of a fitted classifier on some rows.

        Parameters
        ----------
        estimator : fitted classifier
            Private counts need ``private_confusion``, which linear classifiers of this library have.
        X, y : array-like of n rows
            Rows and labels. PRIVATE only if ``noise_multiplier`` is given.
        noise_multiplier : float or None, default=None
            Standard deviation of the noise in each count, in rows. None counts exactly: for public rows.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        ConfusionDisplay
            The drawn display.

        Notes
        -----
        *Guarantee*: with ``noise_multiplier``, that of ``estimator.private_confusion``: one Gaussian release,
        charged to the ledger of the estimator. Without it, none.
        """
        if noise_multiplier is None:
            counts = confusion_matrix(y, estimator.predict(X), labels=estimator.classes_)
            return cls.from_results(counts, estimator.classes_, ax=ax)
        counts = estimator.private_confusion(X, y, noise_multiplier=noise_multiplier)
        return cls.from_results(counts, estimator.classes_, noise_scale=noise_multiplier, ax=ax)

    @classmethod
    def from_results(
        cls, counts: Any, classes: Sequence[Any], *, noise_scale: float = 0.0, ax: Axes | None = None
    ) -> ConfusionDisplay:
        """Plot a confusion matrix.

        Parameters
        ----------
        counts : array-like of shape (n_classes, n_classes)
            Counts; see the class.
        classes : sequence of n_classes labels
            Names of the classes.
        noise_scale : float, default=0.0
            Standard deviation of the noise in each count.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        ConfusionDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the counts are no square matrix of at least two classes, or the noise is negative.
        """
        check("noise_scale", noise_scale, NON_NEGATIVE)
        shape = np.shape(counts)
        if len(shape) != 2 or not shape[0] == shape[1] == len(classes) >= 2:
            raise ValueError(
                f"counts has shape {shape} and there are {len(classes)} classes; pass one row and one column "
                "for each class."
            )
        exact = np.asarray(counts, dtype=np.float64)
        return cls._drawn(ax, counts=exact, classes=list(classes), noise_scale=noise_scale)

    @property
    def _n_lines(self) -> int:
        return len(self.classes)

    def _draw(self, ax: Axes) -> None:
        k = len(self.classes)
        places = one_below_the_other(ax, [str(label) for label in self.classes])
        shares, halves = shares_of(self.counts, self.noise_scale)
        others = np.where(np.eye(k, dtype=bool), -np.inf, shares)
        rival = np.where(np.isnan(others).any(axis=1), 0, others.argmax(axis=1))
        drawn = []
        for place, (column, title) in enumerate(((np.arange(k), "recall"), (rival, "most often taken for"))):
            share, half = shares[np.arange(k), column], halves[np.arange(k), column]
            middle, ends = share.clip(0, 1), np.stack([share - half, share + half]).clip(0, 1)
            drawn.append(
                ax.errorbar(
                    100 * middle,
                    places,
                    xerr=100 * np.abs(ends - middle) if self.noise_scale else None,
                    label=title,
                    capsize=3,
                    fmt="os"[place],
                    color=OKABE_ITO[place],
                    markerfacecolor="white" if place else None,
                )
            )
        self.recalls_, self.confusions_ = drawn
        self.labels_: list[Text] = []
        for i in np.flatnonzero(np.isfinite(shares[:, 0])):
            reach = 100 * min(1.0, shares[i, rival[i]] + halves[i, rival[i]])
            name = str(self.classes[rival[i]])
            label = ax.text(reach + 1.5, places[i], name, va="center", fontsize=8)
            # The label hides an error bar below it.
            label.set_bbox({"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1})
            self.labels_.append(label)
        ax.set_xlim(-2, 102)
        spread = ", 95% interval of the noise" if self.noise_scale else ""
        ax.set_ylabel("Class")
        ax.set_xlabel(f"Share of the class's rows (%{spread})")
        ax.grid(axis="both", color="0.92", linewidth=0.8)
        legend_above(ax, 2)


def shares_of(counts: Floats, noise_scale: float) -> tuple[Floats, Floats]:
    """Shares of each class's rows (k, k), and half-lengths of 95% intervals; NaN for unclear classes."""
    k = len(counts)
    totals = counts.sum(axis=1, keepdims=True)
    clear = totals > _CLEAR * noise_scale * np.sqrt(k)
    with np.errstate(all="ignore"):
        shares = np.where(clear, counts / totals, np.nan)
        # To first order in the noise of a count and of a total.
        halves = Z95 * noise_scale * np.sqrt((1 - shares) ** 2 + (k - 1) * shares**2) / totals
    return shares, halves


def draw_coefficients(result: Any, per: str, ax: Axes | None) -> Axes:
    """Draw the slopes of an ``InferenceResult``, ``per`` unit or spread of their columns."""
    drawn = result.slopes & result.identified
    ax = axes(ax, int(drawn.sum()))
    interval, labels, times = result.conf_int()[drawn], list[str](), list[float]()
    units = dict.fromkeys(result.spreads.index, "") if result.encoded is None else result.encoded.units
    for term in interval.index:
        name = term[-1] if isinstance(term, tuple) else term
        label = ": ".join(map(str, term)) if isinstance(term, tuple) else str(term)
        # Zeros and ones of an encoder have no spread that says more than the whole difference.
        step = float(result.spreads[name]) if per == "spread" and name in units else 1.0
        times.append(step)
        unit = f", per {float(f'{step:.3g}'):,.15g} {units[name]}".rstrip() if name in units else ""
        labels.append(label + unit)
    ax.axvline(0, color="0.6", linewidth=0.8)
    draw_intervals(
        ax, result.params[drawn] * times, interval["low"] * times, interval["high"] * times, labels
    )
    effect = {"logistic": "log-odds", "poisson": "log of the rate"}.get(result.family, "effect")
    against = ", ".join(f"{name}={category}" for name, category in result.references.items())
    ax.set_xlabel(f"{effect} per {per}" + (f"; categories against {against}" if against else ""))
    ax.set_title(f"{result.confidence:.0%} confidence intervals, noise included")
    return ax
