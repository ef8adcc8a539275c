"""A plot of coefficients with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._style import axes, draw_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_coefficients(result: Any, per: str, ax: Axes | None) -> Axes:
    """Draw the slopes of an :class:`~skmixdp.inference.InferenceResult` on ``ax``, or on a new figure.

    They are ``per`` unit or spread of their column, which labels state. Zeros and ones of an encoder have no
    spread that says more than the whole difference.
    """
    drawn = result.slopes & result.identified
    ax = axes(ax, int(drawn.sum()))
    interval, labels, times = result.conf_int()[drawn], list[str](), list[float]()
    units = dict.fromkeys(result.spreads.index, "") if result.encoded is None else result.encoded.units
    for term in interval.index:
        name = term[-1] if isinstance(term, tuple) else term
        label = ": ".join(map(str, term)) if isinstance(term, tuple) else str(term)
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
