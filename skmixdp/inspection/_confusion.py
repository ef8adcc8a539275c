"""A plot of the confusions of each class, with the uncertainty that noise adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix

from .._utils.validation import NON_NEGATIVE, check
from ._style import OKABE_ITO, Z95, Display, legend_above, one_below_the_other

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Floats = NDArray[np.float64]


#: Minimum count of a class that is shown, in standard deviations of its noise.
_CLEAR = 2.0


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
    """Shares of each class's rows (k, k), and half-lengths of their 95% intervals; NaN for unclear classes.

    To first order, the noise of a share ``a / n`` is ``noise_scale sqrt((1 - a/n)^2 + (k - 1) (a/n)^2) / n``.
    """
    k = len(counts)
    totals = counts.sum(axis=1, keepdims=True)
    clear = totals > _CLEAR * noise_scale * np.sqrt(k)
    with np.errstate(all="ignore"):
        shares = np.where(clear, counts / totals, np.nan)
        halves = Z95 * noise_scale * np.sqrt((1 - shares) ** 2 + (k - 1) * shares**2) / totals
    return shares, halves
