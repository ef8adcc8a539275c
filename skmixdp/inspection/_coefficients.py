"""A plot of coefficients with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._style import OKABE_ITO, axes, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_coefficients(result: Any, per: str, ax: Axes | None) -> Axes:
    """Draw the slopes of an :class:`~skmixdp.inference.InferenceResult` on ``ax``, or on a new figure.

    They are ``per`` unit or spread of their column.
    """
    ax = axes(ax)
    drawn = result.slopes & result.identified
    terms = result.params.index.get_level_values(-1)[drawn]
    times = 1.0 if per == "unit" else result.spreads[terms].to_numpy()
    interval, places = result.conf_int()[drawn], np.arange(int(drawn.sum()))[::-1]
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.hlines(places, interval["low"] * times, interval["high"] * times, color=OKABE_ITO[0], linewidth=2)
    ax.plot(result.params[drawn] * times, places, "o", color=OKABE_ITO[0])
    names = [": ".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in interval.index]
    ax.set_yticks(places, names)
    effect = {"logistic": "log-odds", "poisson": "log of the rate"}.get(result.family, "effect")
    ax.set_xlabel(f"{effect} per {per}")
    ax.set_title(f"{result.confidence:.0%} confidence intervals, noise included")
    plain_axes(ax)
    return ax
