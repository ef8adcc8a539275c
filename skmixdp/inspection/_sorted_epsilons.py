"""A plot of the privacy loss of each private row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..audit import per_instance_epsilon
from ..audit._claims import claim_of
from ._style import Display, curve_style, legend_above, reference_style, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Floats = NDArray[np.float64]


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

    epsilons: Mapping[str, Floats]
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
