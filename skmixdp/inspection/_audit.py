"""A plot of audits: claimed epsilons, and lower bounds that attacks showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..audit import AuditResult
from ._style import OKABE_ITO, Display, legend_above, one_below_the_other, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class AuditDisplay(Display):
    """Plot of the lower bounds on epsilon that audits found, next to the claims.

    Each audit is one line of the plot. A claim is refuted if a bound lies to its right. Bounds far to the
    left of a claim do not show that the claim is loose: the attack may be weak, or the fits few.

    Made by :meth:`from_results`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    claims_, bounds_, gaussian_bounds_ : Line2D
        Markers of the claimed epsilons, of the lower bounds for any mechanism, and of those for mechanisms
        with a Gaussian trade-off function. An audit without a claim has no marker of a claim.

    Notes
    -----
    *Guarantee*: none. An audit reads private rows without noise, unless they are synthetic.
    """

    results: Mapping[str, AuditResult]

    @classmethod
    def from_results(
        cls, results: AuditResult | Mapping[str, AuditResult], *, ax: Axes | None = None
    ) -> AuditDisplay:
        """Plot results of :func:`~skmixdp.audit.audit_epsilon`.

        Parameters
        ----------
        results : AuditResult, or dict of str to AuditResult
            One audit, or several with their names.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        AuditDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If there is no result, or if deltas or confidences differ.
        """
        if isinstance(results, AuditResult):
            results = {f"view {results.view!r}": results}
        if not results:
            raise ValueError("results is empty; pass the result of audit_epsilon.")
        for name in ("delta", "confidence"):
            values = sorted({getattr(result, name) for result in results.values()})
            if len(values) > 1:
                raise ValueError(f"the audits have {name} {values}; draw those of one {name} together.")
        return cls._drawn(ax, results=results)

    @property
    def _n_lines(self) -> int:
        return len(self.results)

    def _draw(self, ax: Axes) -> None:
        results = list(self.results.values())
        ends = [max(each.claimed_epsilon or 0.0, each.epsilon, each.epsilon_from_mu) for each in results]
        ax.grid(visible=False)
        ax.hlines(one_below_the_other(ax, list(self.results)), 0, ends, color="0.8", linewidth=1, zorder=1)
        claimed = [np.nan if each.claimed_epsilon is None else each.claimed_epsilon for each in results]
        sure = f"{100 * results[0].confidence:g}% confidence"
        self.claims_ = self._markers(claimed, f"claim at δ = {short(results[0].delta)}", "|", OKABE_ITO[6])
        bounds = [each.epsilon for each in results]
        self.bounds_ = self._markers(bounds, f"lower bound, any mechanism ({sure})", "o", OKABE_ITO[0])
        bounds = [each.epsilon_from_mu for each in results]
        self.gaussian_bounds_ = self._markers(bounds, "lower bound, if Gaussian", "^", OKABE_ITO[1])
        ax.set_xlim(left=-0.02 * max(ends))
        ax.set_xlabel("ε")
        legend_above(ax)

    def _markers(self, values: list[float], label: str, marker: str, color: str) -> Line2D:
        size = 18 if marker == "|" else 8
        places = np.arange(len(values))[::-1]
        (line,) = self.ax_.plot(
            values, places, linestyle="none", marker=marker, color=color, label=label, markersize=size, mew=2
        )
        return line
