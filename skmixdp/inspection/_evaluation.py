"""A plot of an evaluation on private rows, with the uncertainty of noise and sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..model_selection import GroupedEvaluation
from ._style import OKABE_ITO, Display, curve_style, draw_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
