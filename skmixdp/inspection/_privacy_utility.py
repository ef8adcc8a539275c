"""A plot of a score against the privacy budget."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._results import SPREADS, Floats, summarise
from ._style import Display, curve_style, legible, reference_style, short, spread_out

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

#: Largest horizontal distance of two curves in points.
_DODGE = 8.0
#: Largest horizontal distance of all curves in axis widths.
_ALL_DODGES = 0.045

_FONT_SIZE = 10.0

#: Distance of two names, in units of the font size.
_LABEL_PITCH = 1.35


@dataclass(eq=False, repr=False)
class PrivacyUtilityDisplay(Display):
    """Plot of the mean score of each method against epsilon, with its spread.

    Methods with a budget are curves over a logarithmic epsilon axis. Methods without one
    (public rows alone, no privacy) are horizontal reference lines. Every method is named at
    the right edge, next to its line; colours, markers and line styles all differ.

    Use :meth:`from_results` rather than the constructor.

    Parameters
    ----------
    summary : DataFrame
        One row for each method and epsilon, with the columns ``method``, ``epsilon`` (NaN
        for a method without budget), ``mean``, ``low``, ``high`` and ``n_fits``.
    score_name : str
        Name of the score, for the axis label.
    spread : {"std", "t95"}
        What ``low`` and ``high`` are.
    percent : bool
        Whether scores are fractions, to be shown in percent.
    delta : float or None
        The guarantee's delta, for the axis label.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    lines_ : dict of str to Line2D
        Curve or reference line of each method.
    errorbars_ : dict of str to ErrorbarContainer
        Spread of each method; a method with single fits only has none.
    labels_ : dict of str to Text
        Name of each method at the right edge.

    Examples
    --------
    >>> from skmixdp.inspection import PrivacyUtilityDisplay
    >>> results = [
    ...     {"method": "AdaMix", "epsilon": 1.0, "accuracy": 0.90},
    ...     {"method": "AdaMix", "epsilon": 1.0, "accuracy": 0.92},
    ...     {"method": "AdaMix", "epsilon": 3.0, "accuracy": 0.94},
    ...     {"method": "non-private", "epsilon": None, "accuracy": 0.96},
    ... ]
    >>> display = PrivacyUtilityDisplay.from_results(results, delta=1e-5)
    >>> list(display.lines_)
    ['AdaMix', 'non-private']
    """

    summary: pd.DataFrame
    _: KW_ONLY
    score_name: str
    spread: str = "std"
    percent: bool = True
    delta: float | None = None

    @classmethod
    def from_results(
        cls,
        table: object,
        *,
        score: str = "accuracy",
        spread: str = "std",
        percent: bool = True,
        delta: float | None = None,
        ax: Axes | None = None,
    ) -> PrivacyUtilityDisplay:
        """Draw a results table.

        Parameters
        ----------
        table : DataFrame or anything that its constructor takes
            One row per fit. ``method`` is the column of the methods' names, which get their colours in the
            order of the table. ``epsilon`` has their budgets, missing or infinite where a method needs none.
        score : str, default="accuracy"
            Column of the scores.
        spread : {"std", "t95"}, default="std"
            Half-length of the error bars: the standard deviation of a method's scores at an
            epsilon, or the 95% t-interval of their mean, which takes rows as independent
            (average over what they share first).
        percent : bool, default=True
            Whether scores are fractions in [0, 1], to be shown in percent.
        delta : float or None, default=None
            The guarantee's delta, for the axis label.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        PrivacyUtilityDisplay
            The drawn display.

        Raises
        ------
        TypeError, ValueError
            If the table lacks a column or has no rows, if a method is unnamed or a score not
            finite, if an epsilon is neither positive nor missing, or if no method has one.
        """
        summary = summarise(table, score, spread)
        if percent and not summary["mean"].between(0, 1).all():
            worst = summary["mean"][~summary["mean"].between(0, 1)].iloc[0]
            raise ValueError(
                f"percent=True expects fractions in [0, 1] and the score in column {score!r} averages "
                f"{worst:g}; pass percent=False."
            )
        display = cls(summary, score_name=score, spread=spread, percent=percent, delta=delta)
        return display.plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        self.lines_: dict[str, Line2D] = {}
        self.errorbars_: dict[str, ErrorbarContainer] = {}
        self.labels_: dict[str, Text] = {}
        self._draw_axes(ax)
        groups = {str(name): part for name, part in self.summary.groupby("method", sort=False)}
        curves = [name for name, part in groups.items() if part["epsilon"].notna().all()]
        last = len(curves) - 1
        dodge = min(_DODGE, _ALL_DODGES * self._size_in_points()[0] / max(last, 1))
        for i, name in enumerate(curves):
            self._draw_curve(name, groups[name], dodge * (i - last / 2), curve_style(i))
        for i, name in enumerate(name for name in groups if name not in curves):
            self._draw_reference(name, groups[name], 0.012 * (i + 1), reference_style(i))
        self._draw_labels()

    # -- parts of the plot --------------------------------------------------------------

    def _scaled(self, column: pd.Series[float]) -> Floats:
        return np.asarray(column, dtype=float) * (100 if self.percent else 1)

    def _size_in_points(self) -> tuple[float, float]:
        box = self.ax_.get_window_extent()
        scale = 72 / self.figure_.dpi
        return box.width * scale, box.height * scale

    def _draw_axes(self, ax: Axes) -> None:
        budgets = np.unique(self.summary["epsilon"].dropna())
        ratio = max(float(budgets[-1] / budgets[0]), 2.0)
        ax.set_xscale("log")
        ax.set_xlim(budgets[0] / ratio**0.06, budgets[-1] * ratio**0.06)
        shown = legible(budgets, ratio)
        ax.set_xticks(shown, [f"{budget:g}" for budget in shown])
        ax.set_xticks([], minor=True)
        delta = "" if self.delta is None else f" at δ = {short(self.delta)}"
        ax.set_xlabel(f"Privacy budget ε{delta} (smaller is more private)")
        name = self.score_name.replace("_", " ")
        unit = " (%)" if self.percent else ""
        ax.set_ylabel(f"{name[:1].upper()}{name[1:]}{unit}\n{SPREADS[self.spread]}")

    def _draw_curve(self, name: str, part: pd.DataFrame, shift: float, style: dict[str, Any]) -> None:
        """A curve, moved by ``shift`` points to the right, so that curves with equal means stay visible."""
        from matplotlib.transforms import ScaledTranslation

        mean = self._scaled(part["mean"])
        (line,) = self.ax_.plot(part["epsilon"], mean, label=name, **style)
        self.lines_[name] = line
        moved: list[Artist] = [line]
        repeated = part[part["n_fits"] > 1]
        if len(repeated):
            bars = self._draw_bars(repeated["epsilon"], repeated, line)
            self.errorbars_[name] = bars
            moved += [*bars.lines[1], *bars.lines[2]]
        # Moved after drawing, so that only the data set the limits of the axes.
        place = self.ax_.transData + ScaledTranslation(shift / 72, 0, self.figure_.dpi_scale_trans)
        for artist in moved:
            artist.set_transform(place)

    def _draw_reference(self, name: str, part: pd.DataFrame, inset: float, style: dict[str, Any]) -> None:
        """A horizontal line, whose bar is ``inset`` axis widths from the right edge."""
        line = self.ax_.axhline(self._scaled(part["mean"])[0], label=name, **style)
        self.lines_[name] = line
        if part["n_fits"].iloc[0] > 1:
            place = self.ax_.get_yaxis_transform()
            self.errorbars_[name] = self._draw_bars([1 - inset], part, line, transform=place)

    def _draw_bars(self, x: Any, part: pd.DataFrame, line: Line2D, **where: Any) -> ErrorbarContainer:
        low, high = self._scaled(part["low"]), self._scaled(part["high"])
        return self.ax_.errorbar(
            x,
            (low + high) / 2,
            yerr=(high - low) / 2,
            fmt="none",
            ecolor=line.get_color(),
            elinewidth=1.3,
            capsize=3.5,
            capthick=1.3,
            zorder=line.get_zorder(),
            **where,
        )

    def _draw_labels(self) -> None:
        """Name every line to the right of the axes, close to its end."""
        from matplotlib.lines import Line2D

        ax = self.ax_
        ends = {name: float(np.asarray(line.get_ydata())[-1]) for name, line in self.lines_.items()}
        names = sorted(ends, key=ends.__getitem__)
        bottom, top = ax.get_ylim()
        wanted = np.array([(ends[name] - bottom) / (top - bottom) for name in names])
        places = spread_out(wanted, _LABEL_PITCH * _FONT_SIZE / self._size_in_points()[1])
        for name, place in zip(names, places, strict=True):
            line = self.lines_[name]
            sample = Line2D([1.015, 1.045, 1.075], [place] * 3)
            sample.update_from(line)
            sample.set(transform=ax.transAxes, clip_on=False, markevery=[1], label="_sample")
            ax.add_line(sample)
            self.labels_[name] = ax.text(
                1.09, place, name, transform=ax.transAxes, va="center_baseline", fontsize=_FONT_SIZE
            )
        ax.set_ylim(bottom, top)
