"""A plot of the curves of an additive model, with the noise in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._utils.models import classes_of, names_of_features
from .._utils.templates import html_table
from .._utils.validation import listed, shown
from ..privacy.report import html_line
from ._style import OKABE_ITO, axes, curve_style, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

Floats = NDArray[np.float64]

#: Half-length of a 95% interval in standard deviations.
_Z = 1.959964
#: Default number of columns.
_N_COLUMNS = 6
#: Curves in a line of the figure.
_IN_A_LINE = 3
#: Number of values of a curve.
_N_VALUES = 100

#: Most outputs, so that their colours differ.
_MOST_OUTPUTS = len(OKABE_ITO)

_NOTE = (
    "Effects are in {}, over the usual values of a column. The noise is the largest half-width of a 95% "
    "interval of the noise of training."
)


@dataclass(eq=False, repr=False)
class EffectsDisplay:
    """Plot of what each column adds to the output of an additive model, with the noise of training.

    A curve is centred: its mean over the released or public distribution of the column is 0. Bands are
    pointwise 95% intervals of the noise of training, for columns whose variance inflation factor is at most
    5. They do not tell how other private rows would change a curve. A model without any curve has no bands.
    Columns of two values have two bars. What products of columns add (``interactions``) is left out.

    Use :meth:`from_estimator` rather than the constructor. In a notebook, the display is also a table.

    Parameters
    ----------
    curves : dict of str to (values, effects, errors)
        Values (m,) of each column, and effects and standard deviations of their noise (m, k) at these.
    importances : dict of str to float
        Standard deviation of each curve over the distribution of the column.
    outputs : sequence of k str
        Names of the outputs.
    unit : str
        What the effects add to.
    no_guarantee : str, default=""
        What the model is known to have leaked; empty if nothing is known.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Where the curves were drawn, one for each column.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : dict of str to list of Line2D
        Curves of each column, one for each output.

    Notes
    -----
    *Guarantee*: the plot is computed from the released model. It reads no private row.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman3
    >>> from skmixdp import AdditiveDPRegressor
    >>> from skmixdp.inspection import EffectsDisplay
    >>> X, y = make_friedman3(20_000, random_state=0)
    >>> display = EffectsDisplay.from_estimator(AdditiveDPRegressor().fit(X, y), columns=[0, 2])
    >>> list(display.lines_)
    ['x0', 'x2']
    """

    curves: Mapping[str, tuple[Floats, Floats, Floats]]
    importances: Mapping[str, float]
    _: KW_ONLY
    outputs: Sequence[str]
    unit: str
    no_guarantee: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        columns: Sequence[str | int] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Sequence[Axes] | None = None,
    ) -> EffectsDisplay:
        """Plot the columns of a fitted additive model.

        Parameters
        ----------
        estimator : fitted AdditiveDPClassifier or AdditiveDPRegressor, or pipeline that ends in one
            The model. In a pipeline, columns are those that the model gets.
        columns : sequence of str or int, or None, default=None
            Names or numbers of the columns to draw; None is the six of largest importance.
        feature_names : sequence of str or None, default=None
            Names of all columns; None is those of the fit, or x0, x1 and so on.
        ax : sequence of matplotlib Axes or None, default=None
            Where to draw, one for each column; None makes a new figure.

        Returns
        -------
        EffectsDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If the estimator is no additive model.
        ValueError
            For unknown columns, or another number of names or axes.
        AttributeError
            If nothing that was released tells how the columns are distributed.
        """
        names = feature_names
        if isinstance(estimator, Pipeline):
            names = list(estimator[:-1].get_feature_names_out()) if names is None else names
            estimator = estimator[-1]
        if not hasattr(type(estimator), "effects_"):
            raise TypeError(
                f"estimator is a {type(estimator).__name__}, which has no effects; pass a fitted "
                "AdditiveDPClassifier or AdditiveDPRegressor."
            )
        effects, importances = estimator._effects.usual(), estimator.importances_
        if names is None:
            named = names_of_features(estimator)
            names = [f"x{j}" for j in range(len(importances))] if named is None else named
        names = [str(name) for name in names]
        if len(names) != len(importances):
            raise ValueError(
                f"feature_names has {len(names)} names and the model {len(importances)} columns; pass one "
                "for each column."
            )
        wanted = np.argsort(-importances)[:_N_COLUMNS].tolist() if columns is None else columns
        numbers: dict[str | int, int] = {j: j for j in range(len(names))}
        numbers |= {name: j for j, name in enumerate(names)}
        if unknown := [each for each in wanted if not isinstance(each, (str, int)) or each not in numbers]:
            raise ValueError(f"columns has {shown(unknown)}; pass names or numbers among {listed(names)}.")
        curves, places = {}, [numbers[each] for each in wanted]
        for j in places:
            values = effects.knots[j]
            if len(effects.basis.knots[j]):
                ends = np.nanmin(effects.rows[:, j]), np.nanmax(effects.rows[:, j])
                values = np.union1d(
                    np.linspace(*ends, _N_VALUES), values[(values > ends[0]) & (values < ends[1])]
                )
            curves[names[j]] = values, effects.curve(j, values), effects.errors(j, values)
        k = len(effects.coef)
        classes = classes_of(estimator)
        outputs = [str(each) for each in (range(k) if classes is None else classes)][-k:]
        unit = "logits" if k > 1 else f"logits of {outputs[0]}"
        return cls(
            curves,
            {names[j]: float(importances[j]) for j in places},
            outputs=outputs,
            unit="units of the prediction" if effects.classes is None else unit,
            no_guarantee=estimator.privacy_.no_guarantee,
        ).plot(ax=ax)

    def plot(self, ax: Sequence[Axes] | None = None) -> EffectsDisplay:
        """Draw; ``ax`` is a sequence of matplotlib Axes, or None for a new figure."""
        if ax is None:
            figure = axes(None).get_figure(root=True)
            assert figure is not None
            figure.clear()
            n_lines = -(-len(self.curves) // _IN_A_LINE)
            n_across = -(-len(self.curves) // n_lines)
            figure.set_size_inches(3.2 * n_across + 0.6, 2.6 * n_lines + 0.5)
            grid = figure.subplots(n_lines, n_across, sharey=True, squeeze=False).ravel()
            for unused in grid[len(self.curves) :]:
                unused.remove()
            ax = list(grid[: len(self.curves)])
        if len(ax) != len(self.curves):
            raise ValueError(f"ax has {len(ax)} axes; pass one for each of {listed(list(self.curves))}.")
        self.axes_, self.figure_ = list(ax), ax[0].figure
        self.lines_: dict[str, list[Line2D]] = {}
        for panel, (name, curve) in zip(ax, self.curves.items(), strict=True):
            self.lines_[name] = []
            for i, (effect, error) in enumerate(zip(curve[1].T, curve[2].T, strict=True)):
                style = {**curve_style(i), "marker": None, "label": self.outputs[i]}
                colour, low, high = style["color"], effect - _Z * error, effect + _Z * error
                if len(curve[0]) > 2:
                    panel.fill_between(curve[0], low, high, color=colour, alpha=0.2, linewidth=0)
                else:
                    style |= {"marker": "o", "linestyle": "none"}
                    panel.vlines(curve[0], low, high, color=colour, linewidth=2)
                    panel.margins(x=0.4)
                self.lines_[name] += panel.plot(curve[0], effect, **style)
            panel.axhline(0, color="0.6", linewidth=0.8)
            panel.set_xlabel(name)
            if len(curve[0]) > 2:
                panel.locator_params(axis="x", nbins=5)
            if (place := panel.get_subplotspec()) is None or place.is_first_col():
                panel.set_ylabel(f"Effect ({self.unit})")
            plain_axes(panel)
        if 1 < len(self.outputs) <= _MOST_OUTPUTS:
            ax[0].legend(frameon=False)
        return self

    def _repr_html_(self) -> str:
        rows = [
            (name, *("-" if np.isnan(number) else f"{number:.3g}" for number in numbers))
            for name, (_, effect, error) in self.curves.items()
            for numbers in [(self.importances[name], effect.min(), effect.max(), _Z * error.max())]
        ]
        names = ("column", "importance", "lowest", "highest", "noise")
        return html_table(names, rows, first=html_line(self.no_guarantee), notes=[_NOTE.format(self.unit)])
