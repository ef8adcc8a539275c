"""Step-by-step records of fits: a callback, and plots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from .._utils.models import callbacks_of
from ._style import Display, at_integers, curve_style, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D


class StepHistory:
    """Callback that records public facts of each training step.

    It follows the callback protocol of scikit-learn 1.9: ``estimator.set_callbacks(StepHistory())``. The
    records are kept in the callback, not in the estimator.

    Attributes
    ----------
    steps : list of dict
        One record for each step of the last fit, with these keys. ``step`` is its number, from 1, and
        ``n_steps`` the planned number. ``step_size`` is the learning rate. ``public_weight`` is the weight of
        the public mean gradient in the direction. ``noise_multiplier`` is that of the step. ``sensitivities``
        holds the sensitivity of each released array. ``public_gradient_norms`` holds the 10%, 50% and 90%
        quantiles of the gradient norms of the public rows, or None without such rows.

    Notes
    -----
    *Guarantee*: the records depend on public rows and released heads only, so they may be published with the
    model.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.inspection import StepHistory
    >>> X, y = load_digits(return_X_y=True)
    >>> history = StepHistory()
    >>> clf = MixedDPLogisticRegression("adamix", n_steps=3).set_callbacks(history)
    >>> clf = clf.fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    >>> [record["step"] for record in history.steps]
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def setup(self, estimator: BaseEstimator, context: object) -> None:
        """Forget the last fit."""
        self.steps = []

    def teardown(self, estimator: BaseEstimator, context: object) -> None:
        """Nothing to do."""

    def on_fit_task_begin(self, estimator: BaseEstimator, context: object) -> None:
        """Nothing to do."""

    def on_fit_task_end(self, estimator: BaseEstimator, context: object, *, metadata: Any) -> None:
        """Record a step."""
        if metadata is not None and "step" in metadata:
            self.steps.append(dict(metadata))


class _StepsDisplay(Display):
    """Base class of plots over steps."""

    steps: Sequence[dict[str, Any]]

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> Self:
        """Plot the last fit of an estimator that has a :class:`StepHistory` among its callbacks.

        Parameters
        ----------
        estimator : fitted estimator
            With ``estimator.set_callbacks(StepHistory())`` before the fit.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display
            The drawn display.

        Raises
        ------
        ValueError
            If the estimator has no such callback, or if it has not been fitted with it.
        """
        callbacks = callbacks_of(estimator)
        history = next((each for each in callbacks if isinstance(each, StepHistory)), None)
        if history is None:
            raise ValueError(
                f"{type(estimator).__name__} has no record of its steps; call "
                "set_callbacks(StepHistory()) before fit."
            )
        if not history.steps:
            raise ValueError("there is no step to draw; fit the estimator with its StepHistory first.")
        return cls._drawn(ax, steps=history.steps)

    def _draw(self, ax: Axes) -> None:
        self._draw_curves(np.array([record["step"] for record in self.steps]))
        at_integers(ax)
        ax.set_xlabel("Step")

    @abstractmethod
    def _draw_curves(self, t: Any) -> None:
        """Draw what the steps ``t`` (n_steps,) hold."""

    def _style(self, index: int) -> dict[str, Any]:
        """A curve whose markers do not overlap."""
        return {**curve_style(index), "markevery": max(1, len(self.steps) // 12)}


class GradientNormsDisplay(_StepsDisplay):
    """Plot of the public rows' gradient norms over the steps of a fit, with the sensitivity of each release.

    The clip of private gradients is the sensitivity. Where it lies above most public gradients, few rows are
    clipped, and the noise is larger than it needs to be.

    Made by :meth:`from_estimator`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    norms_ : Line2D or None
        Median of the public gradient norms; None without public rows.
    range_ : PolyCollection or None
        From their 10% to their 90% quantile.
    clips_ : list of Line2D
        Sensitivity of each released array.

    Notes
    -----
    *Guarantee*: everything shown is public or released.
    """

    def _draw_curves(self, t: Any) -> None:
        self.norms_: Line2D | None = None
        self.range_: PolyCollection | None = None
        if all(record["public_gradient_norms"] is not None for record in self.steps):
            low, middle, high = np.array([record["public_gradient_norms"] for record in self.steps]).T
            style = self._style(0)
            (self.norms_,) = self.ax_.plot(t, middle, label="public gradient norms: median", **style)
            self.range_ = self.ax_.fill_between(
                t, low, high, color=style["color"], alpha=0.2, linewidth=0, label="10% to 90% of public rows"
            )
        clips = np.array([record["sensitivities"] for record in self.steps])
        several = clips.shape[1] > 1
        self.clips_: list[Line2D] = []
        for j, clip in enumerate(clips.T):
            name = f"sensitivity of array {j + 1}" if several else "sensitivity (clip)"
            (line,) = self.ax_.plot(t, clip, label=name, **self._style(1 + j))
            self.clips_.append(line)
        self.ax_.set_yscale("log")
        self.ax_.set_ylabel("L2 norm")
        legend_above(self.ax_, 3)


class PublicWeightDisplay(_StepsDisplay):
    """Plot of the weight of the public gradient over the steps of a fit.

    The direction of a step is this weight times the public mean gradient, plus the rest times the noisy
    private mean gradient.

    Made by :meth:`from_estimator`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    line_ : Line2D
        The weights.

    Notes
    -----
    *Guarantee*: everything shown is public or released.
    """

    def _draw_curves(self, t: Any) -> None:
        weights = [record["public_weight"] for record in self.steps]
        (self.line_,) = self.ax_.plot(t, weights, label="public weight", **self._style(0))
        self.ax_.set_ylim(-0.03, 1.03)
        self.ax_.set_ylabel("Weight of the public gradient")
