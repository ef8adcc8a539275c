"""The base of pictures, styles of lines, and positions of labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._utils.validation import how_to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Half-length of a 95% interval in standard deviations.
Z95 = 1.959964

#: Okabe and Ito's palette, which suits any colour vision. Yellow is last: it is faint on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Line styles. The first is solid, so that it stays visible below broken ones.
_STROKES = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (2, 1)), (0, (5, 1.5, 1, 1.5, 1, 1.5)))

#: Reference lines are dark and have no marker, so that they do not look like curves.
_REFERENCE_COLOURS = ("#000000", "#707070")
_REFERENCE_STROKES = ((0, (1, 1.5)), (0, (9, 4)), (0, (9, 3, 1, 3)))


class Display(ABC):
    """Base of pictures on the axes of the caller, or of a new figure."""

    @classmethod
    def _drawn(cls, ax: Axes | None, **facts: Any) -> Self:
        """A display of facts, which are its attributes, drawn on the axes ``ax`` or on a new figure."""
        display = cls()
        vars(display).update(facts)
        return display.plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; ``ax`` is a matplotlib Axes, or None for a new figure."""
        self.ax_ = axes(ax, self._n_lines)
        self.figure_ = self.ax_.figure
        plain_axes(self.ax_)
        self._draw(self.ax_)
        return self

    @property
    def _n_lines(self) -> int:
        """Number of lines of text for which a new figure has room."""
        return 0

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw all but what all pictures share."""


def legend_above(ax: Axes, n_columns: int = 1) -> None:
    """A legend without a frame above the axes."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=n_columns)


def at_integers(ax: Axes) -> None:
    """Ticks of the horizontal axis at integers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def at_dates(ax: Axes, fewest: int = 5, most: int | None = None) -> None:
    """Ticks of the horizontal axis at dates, which are short."""
    dates: Any = import_module("matplotlib.dates")  # has no types
    locator = dates.AutoDateLocator(minticks=fewest, maxticks=most)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def one_below_the_other(ax: Axes, names: list[str]) -> NDArray[np.intp]:
    """Heights (m,) of named lines, the first at the top, on an axis without ticks."""
    places = np.arange(len(names))[::-1]
    ax.set_yticks(places, names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return places


def axes(ax: Axes | None, n_lines: int = 0) -> Axes:
    """The axes ``ax``, or those of a new figure with room for ``n_lines`` lines of text."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # imported here, so that only drawing imports matplotlib
    except ImportError as error:
        raise ImportError(f"displays need matplotlib; {how_to_install('plot')}.") from error

    return plt.subplots(figsize=(8, max(4.5, 1.2 + 0.22 * n_lines)), layout="constrained")[1]


def draw_intervals(ax: Axes, values: Any, low: Any, high: Any, names: list[str]) -> None:
    """Draw values (m,) with their intervals, one below the other."""
    places = np.arange(len(names))[::-1]
    ax.hlines(places, low, high, color=OKABE_ITO[0], linewidth=2)
    ax.plot(values, places, "o", color=OKABE_ITO[0])
    ax.set_yticks(places, names)
    plain_axes(ax)


def plain_axes(ax: Axes) -> None:
    """Horizontal grid lines behind the data, and no frame above and at the right."""
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def curve_style(index: int) -> dict[str, Any]:
    """Look of a curve, as keywords of ``plot``."""
    return {
        "color": OKABE_ITO[index % len(OKABE_ITO)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "linestyle": _STROKES[index % len(_STROKES)],
        "linewidth": 2,
        "markersize": 7,
        "markeredgecolor": "white",
        "markeredgewidth": 0.7,
        "zorder": 3,
    }


def reference_style(index: int) -> dict[str, Any]:
    """Look of a reference line, as keywords of ``axhline``."""
    return {
        "color": _REFERENCE_COLOURS[index % len(_REFERENCE_COLOURS)],
        "linestyle": _REFERENCE_STROKES[index % len(_REFERENCE_STROKES)],
        "linewidth": 1.5,
        "zorder": 2,
    }


def short(number: float) -> str:
    """``1e-5`` rather than ``1e-05``."""
    return f"{number:g}".replace("e-0", "e-")
