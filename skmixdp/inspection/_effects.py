"""A plot of the curves of an additive model, with the noise in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._utils.documents import Section, as_html
from .._utils.models import classes_of, last_step, predicts_rates
from .._utils.validation import listed, shown
from ._style import OKABE_ITO, Z95, at_dates, axes, curve_style, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: Most columns that are drawn by default.
_N_COLUMNS = 12
#: Panels in a line of the figure.
_IN_A_LINE = 3
#: Most categories of a column that are drawn, and characters of their names.
_N_BARS, _N_CHARACTERS = 16, 16
#: Part of the space of a category that its bars take.
_BAR = 0.8
#: Most characters of all names that have room along an axis.
_ALONG = 32


_NOTE = (
    "Effects are in {}, over the usual values of a column. The noise is the largest half-width of a 95% "
    "interval of the noise of training."
)


class EffectsDisplay:
    """Plot of what each column adds to the output of an additive model, with the noise of training.

    Each column of the table has a panel, in the units of its cells: numbers and dates a curve, categories and
    columns of two values a bar each, and missing cells one more bar. Panels are in the order of importance.
    A text shows how much its words add, sorted, and a list what a spread of each entry adds.

    Effects are centred: their mean over the released or public distribution of the column is 0. Bands and
    lines on bars are pointwise 95% intervals of the noise of training, for columns whose variance inflation
    factor is at most 5. They do not tell how other private rows would change a curve. A model without any
    curve has none. What products of columns add (``interactions``) is left out.

    Made by :meth:`from_estimator`. In a notebook, the display is also a table.

    Attributes
    ----------
    curves : dict of str to (cells, effects, errors)
        Cells (m,) of each column that is drawn, and effects and standard deviations of their noise (m, k) at
        these. Cells are numbers, ``datetime64``, or names. NaN, NaT and "missing" stand for missing ones.
    importances : dict of str to float
        Standard deviation of what each column adds over its distribution, of all columns, most first.
    axes_ : list of matplotlib Axes
        Where the columns were drawn.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : dict of str to list
        What was drawn of each column, one for each output: a Line2D, or the BarContainer of a category.

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
    outputs: Sequence[str]
    unit: str
    notes: Mapping[str, str]
    no_guarantee: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, columns: Sequence[str | int] | None = None
    ) -> EffectsDisplay:
        """Plot the columns of a fitted additive model.

        Parameters
        ----------
        estimator : fitted AdditiveDPClassifier, AdditiveDPRegressor or AdditiveDPPoissonRegressor
            The model, or a pipeline that ends in one. Behind a
            :class:`~skmixdp.preprocessing.TableEncoder`, columns are those of the data frame. In another
            pipeline, they are those that the model gets.
        columns : sequence of str or int, or None, default=None
            Names or numbers of the columns to draw; None is the twelve of largest importance.

        Returns
        -------
        EffectsDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If the estimator is no additive model.
        ValueError
            For unknown columns.
        AttributeError
            If nothing that was released tells how the columns are distributed.
        """
        head = last_step(estimator)
        if not hasattr(type(head), "effects_"):
            raise TypeError(
                f"estimator is a {type(head).__name__}, which has no effects; pass a fitted "
                "AdditiveDPClassifier or AdditiveDPRegressor."
            )
        effects = head._effects_on(estimator).usual()
        importances, names = effects.importances(), [*effects.parts]
        wanted: Sequence[Any] = [*importances][:_N_COLUMNS] if columns is None else columns
        places = {**dict(enumerate(names)), **{name: name for name in names}}
        if not len(wanted):
            raise ValueError(f"columns={shown(columns)} has no column; pass some among {listed(names)}.")
        if unknown := [each for each in wanted if not isinstance(each, (str, int)) or each not in places]:
            raise ValueError(f"columns has {shown(unknown)}; pass names or numbers among {listed(names)}.")
        panels = {places[each]: effects.panel(places[each]) for each in wanted}
        k = len(effects.coef)
        classes = classes_of(head)
        outputs = [str(each) for each in (range(k) if classes is None else classes)][-k:]
        unit = "logits" if k > 1 else f"logits of {outputs[0]}"
        if effects.classes is None:
            unit = "log of the rate" if predicts_rates(head) else "units of the prediction"
        display = cls()
        display.curves = {name: (panel.cells, panel.effects, panel.errors) for name, panel in panels.items()}
        display.importances, display.outputs, display.unit = importances, outputs, unit
        display.notes = {name: panel.note for name, panel in panels.items() if panel.note}
        display.no_guarantee = head.privacy_.no_guarantee
        return display.plot()

    def plot(self) -> EffectsDisplay:
        """Draw on a new figure."""
        panels = self._panels()
        self.axes_, self.figure_ = panels, panels[0].figure
        self.lines_: dict[str, list[Any]] = {}
        for panel, (name, (cells, effects, errors)) in zip(panels, self.curves.items(), strict=True):
            draw = self._bars if cells.dtype.kind == "O" else self._curve
            draw(panel, name, cells, effects, Z95 * errors)
            panel.axhline(0, color="0.6", linewidth=0.8)
            is_cut = cells.dtype.kind == "O" and len(cells) > _N_BARS
            shown_bars = f"{_N_BARS} of {len(cells)}, by size" if is_cut else ""
            panel.set_xlabel("\n".join([name, *filter(None, [self.notes.get(name), shown_bars])]))
            plain_axes(panel)
        # Intervals are cut where they are so wide that no effect could be seen.
        for first in range(0, len(panels), _IN_A_LINE):
            line = slice(first, first + _IN_A_LINE)
            ends = [_ends(effects, Z95 * errors) for _, effects, errors in [*self.curves.values()][line]]
            for panel in panels[line]:
                panel.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
        return self

    def _panels(self) -> list[Axes]:
        """Axes of a new figure, with its caption, the name of its vertical axis, and its legend."""
        figure: Any = axes(None).get_figure(root=True)
        figure.clear()
        from matplotlib.lines import Line2D  # after the axes, which say what to install

        n_lines = -(-len(self.curves) // _IN_A_LINE)
        n_across = min(len(self.curves), _IN_A_LINE)
        cells = [cells for cells, _, _ in self.curves.values()]
        lines = [cells[_IN_A_LINE * i : _IN_A_LINE * (i + 1)] for i in range(n_lines)]
        n_long = sum(any(_names(each)[1] for each in line) for line in lines)
        figure.set_size_inches(3.2 * n_across + 0.8, 2.6 * n_lines + 0.9 * n_long + 0.5)
        grid = figure.subplots(n_lines, n_across, sharey="row", squeeze=False).ravel()
        for unused in grid[len(self.curves) :]:
            unused.remove()
        figure.supylabel(f"Effect ({self.unit})", fontsize="medium")
        if n_left := len(self.importances) - len(self.curves):
            caption = f"{len(self.curves)} of {len(self.importances)} columns; left out: {n_left}"
            figure.supxlabel(caption, fontsize="small", color="0.3")
        if 1 < len(self.outputs) <= len(OKABE_ITO):  # their colours differ
            looks = [Line2D([], [], **{**curve_style(i), "marker": None}) for i in range(len(self.outputs))]
            figure.legend(looks, self.outputs, loc="outside upper center", ncols=4, frameon=False)
        return list(grid[: len(self.curves)])

    def _curve(self, panel: Axes, name: str, cells: Any, effects: Floats, halves: Floats) -> None:
        """Draw a curve of numbers or days, and a bar for missing ones at its right."""
        present, self.lines_[name] = ~np.isnat(cells) if cells.dtype.kind == "M" else ~np.isnan(cells), []
        for i, (effect, half) in enumerate(zip(effects.T, halves.T, strict=True)):
            style = {**curve_style(i), "marker": None, "label": self.outputs[i]}
            low, high = (effect - half)[present], (effect + half)[present]
            panel.fill_between(cells[present], low, high, color=style["color"], alpha=0.2, linewidth=0)
            self.lines_[name] += panel.plot(cells[present], effect[present], **style)
        if cells.dtype.kind == "M":
            at_dates(panel, fewest=2, most=5)
        else:
            panel.locator_params(axis="x", nbins=5)
        if not present.all():
            low, high = panel.get_xlim()
            self._bar(panel, np.array([high]), effects[~present], halves[~present], 0.1 * (high - low))
            panel.text(
                high,
                0.02,
                "missing",
                transform=panel.get_xaxis_transform(),
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=8,
            )
            panel.set_xlim(low, high + 0.1 * (high - low))

    def _bars(self, panel: Axes, name: str, cells: Any, effects: Floats, halves: Floats) -> None:
        """Draw a bar for each category, the largest effects of many."""
        drawn = np.sort(np.argsort(-np.abs(effects).max(axis=1), kind="stable")[:_N_BARS])
        names, upright = _names(cells[drawn])
        self.lines_[name] = self._bar(panel, np.arange(len(drawn)), effects[drawn], halves[drawn], _BAR)
        panel.set_xticks(range(len(drawn)), names, rotation=90 * upright)
        panel.margins(x=0.1)

    def _bar(self, panel: Axes, places: Any, effects: Floats, halves: Floats, width: float) -> list[Any]:
        """Draw bars at each place, one for each output, with their intervals."""
        k = effects.shape[1]
        drawn = []
        for i in range(k):
            at, colour = places + width * ((i + 0.5) / k - 0.5), curve_style(i)["color"]
            drawn.append(
                panel.bar(at, effects[:, i], 0.9 * width / k, color=colour, alpha=0.6, label=self.outputs[i])
            )
            panel.vlines(at, effects[:, i] - halves[:, i], effects[:, i] + halves[:, i], color=colour)
        return drawn

    def _repr_html_(self) -> str:
        rows = []
        for name, importance in self.importances.items():
            _, effects, errors = self.curves.get(name, (None, np.array([np.nan]), np.array([np.nan])))
            numbers = importance, effects.min(), effects.max(), Z95 * errors.max()
            rows.append((name, *("-" if np.isnan(number) else f"{number:.3g}" for number in numbers)))
        names = ("column", "importance", "lowest", "highest", "noise")
        notes = [_NOTE.format(self.unit), *(f"{name}: {note}." for name, note in self.notes.items())]
        return as_html(self.no_guarantee, [Section(rows=rows, columns=names, notes=notes)])


def _names(cells: Any) -> tuple[list[str], bool]:
    """Names of categories that are not too long, and whether they are so many that they stand upright."""
    if cells.dtype.kind != "O":
        return [], False
    names = [str(cell) for cell in cells[:_N_BARS]]
    names = [name if len(name) <= _N_CHARACTERS else f"{name[: _N_CHARACTERS - 1]}…" for name in names]
    return names, sum(len(name) + 2 for name in names) > _ALONG


def _ends(effects: Floats, halves: Floats) -> tuple[float, float]:
    """Ends of an axis with effects, and with intervals as far as these are no wider than the effects."""
    low, high = min(0.0, float(effects.min())), max(0.0, float(effects.max()))
    reach = np.minimum(np.nan_to_num(halves), max(high - low, 1e-12))
    low, high = float(min(low, (effects - reach).min())), float(max(high, (effects + reach).max()))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
