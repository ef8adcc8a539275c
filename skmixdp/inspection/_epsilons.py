"""Plots of epsilons: claims and bounds of audits, and the loss of each private row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..audit import AuditResult, per_instance_epsilon
from ..audit._claims import claim_of
from ._style import OKABE_ITO, Display, curve_style, legend_above, one_below_the_other, reference_style, short

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


class PerInstanceDisplay(Display):
    """Plot of each private row's epsilon, in ascending order, next to the guarantee. PRIVATE.

    Every curve is one fit. The horizontal line is the epsilon of the guarantee, which bounds the worst row of
    the worst data set. A curve near the line says that the fit used its budget for all rows alike.

    Made by :meth:`from_estimators`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    lines_ : dict of str to Line2D
        Sorted epsilons of each fit.
    worst_ : dict of str to Line2D
        Line of each guarantee, by its epsilon to three digits.

    Notes
    -----
    *Guarantee*: none. The plot is computed from private rows without noise. Keep it as private as the rows.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix), Figure 3.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.inspection import PerInstanceDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = MixedDPLogisticRegression("adamix", epsilon=3.0, record_per_instance=True)
    >>> clf = clf.fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    >>> display = PerInstanceDisplay.from_estimators({"AdaMix": clf})
    >>> list(display.lines_)
    ['AdaMix']
    """

    epsilons: Mapping[str, NDArray[np.float64]]
    worst: Mapping[str, float]
    delta: float

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, delta: float | None = None, ax: Axes | None = None
    ) -> PerInstanceDisplay:
        """Plot the rows of several fits together.

        Parameters
        ----------
        estimators : dict of str to fitted estimator
            Name in the legend, and an estimator fitted with ``record_per_instance=True``.
        delta : float or None, default=None
            The delta of all epsilons; None is that of the estimators, which must agree.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        PerInstanceDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If there is no estimator, if one was not recorded, or if their deltas differ.
        """
        if not estimators:
            raise ValueError("estimators is empty; pass {'a name': a fitted estimator}.")
        epsilons = {name: per_instance_epsilon(each, delta) for name, each in estimators.items()}
        claims = {name: claim_of(each, delta, released=True) for name, each in estimators.items()}
        deltas = sorted({claim.delta for claim in claims.values()})
        if len(deltas) > 1:
            raise ValueError(f"the estimators have the deltas {deltas}; pass delta= to compare them at one.")
        if any(claim.epsilon is None for claim in claims.values()):
            raise ValueError(
                f"a guarantee is not Gaussian and has no epsilon at delta={deltas[0]:g}; pass delta=None."
            )
        worst = {name: claim.epsilon for name, claim in claims.items() if claim.epsilon is not None}
        return cls._drawn(ax, epsilons=epsilons, worst=worst, delta=deltas[0])

    def _draw(self, ax: Axes) -> None:
        self.lines_: dict[str, Line2D] = {}
        self.worst_: dict[str, Line2D] = {}
        for i, (name, epsilons) in enumerate(self.epsilons.items()):
            ranks = 100 * (np.arange(len(epsilons)) + 0.5) / len(epsilons)
            style = {**curve_style(i), "markevery": 0.1}
            (self.lines_[name],) = ax.plot(ranks, np.sort(epsilons), label=name, **style)
        # Rounding in the calibration may leave a little of the budget.
        different = {f"{worst:.3g}": worst for worst in self.worst.values()}
        for i, (shown, worst) in enumerate(different.items()):
            line = ax.axhline(worst, label=f"guarantee: ε = {shown}", **reference_style(i))
            self.worst_[shown] = line
        ax.set_ylim(bottom=0)
        ax.set_xlabel("Private rows, sorted (%)")
        ax.set_ylabel(f"ε of the row at δ = {short(self.delta)}")
        legend_above(ax, 3)
