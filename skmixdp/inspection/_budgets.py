"""Plots of budgets: what data sets have spent, and scores against epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from .._utils.validation import check
from ._style import Display, at_dates, at_integers, curve_style, legend_above, reference_style, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D

#: Kinds of error bars, and their names in the plot.
_SPREADS = {"std": "mean ± standard deviation", "t95": "mean and its 95% interval"}

#: The remedy for a bad cell, by its column; "" is the column of scores.
_REMEDIES = {
    "method": "name the method or drop the row",
    "epsilon": "fix it to a positive number, or leave it empty for a method that needs no budget",
    "": "fix it to a finite number or drop the row",
}


class LedgerDisplay(Display):
    """Plot of the share of each data set's budget that was spent, after each charge.

    Made by :meth:`from_ledger`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    lines_ : dict of str to Line2D
        Steps of each data set that was charged.

    Examples
    --------
    >>> from skmixdp.inspection import LedgerDisplay
    >>> from skmixdp.privacy import GaussianEvent, PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:")
    >>> patients = ledger.add_dataset("patients", epsilon=3.0, delta=1e-5)
    >>> charge = patients.charge(GaussianEvent(20, 100), neighboring="add_or_remove_one")
    >>> list(LedgerDisplay.from_ledger(ledger).lines_)
    ['patients']
    """

    report: Any
    over: str

    @classmethod
    def from_ledger(cls, ledger: Any, *, over: str = "time", ax: Axes | None = None) -> LedgerDisplay:
        """Plot the present charges of a ledger.

        Parameters
        ----------
        ledger : PrivacyLedger or LedgerDataset
            Anything with a ``report()``.
        over : {"time", "charges"}, default="time"
            The horizontal axis: the time of each charge in UTC, or the number of charges.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        LedgerDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If ``over`` has another value, or nothing was charged yet.
        """
        check("over", over, "time", "charges")
        report = ledger.report()
        if not report.charges:
            raise ValueError(
                "the ledger holds no charge yet, so there is nothing to draw; fit with it first."
            )
        return cls._drawn(ax, report=report, over=over)

    def _draw(self, ax: Axes) -> None:
        self.lines_: dict[str, Line2D] = {}
        for account in self.report.accounts:
            charges = [charge for charge in self.report.charges if charge.dataset == account.dataset]
            if not charges:
                continue
            style = curve_style(len(self.lines_))
            if len(charges) > 30:  # otherwise markers would overlap
                style["marker"] = "None"
            times = [charge.time for charge in charges]
            x: list[Any] = times if self.over == "time" else [*range(1, len(charges) + 1)]
            share = [100 * charge.spent / account.epsilon for charge in charges]
            words = f"ε {charges[-1].spent:.3g} of {account.epsilon:g} (δ = {short(account.delta)})"
            label = f"{account.dataset}: {words if account.private else 'NO GUARANTEE'}"
            # The spent budget is constant until the next charge.
            (self.lines_[account.dataset],) = ax.step(x, share, where="post", label=label, **style)
        ax.axhline(100, color="0.3", linewidth=1, zorder=2)
        ax.set_ylim(0, 105)
        ax.set_ylabel("Spent ε (% of the data set's budget)")
        if self.over == "time":
            at_dates(ax, most=7)
            ax.set_xlabel("Time of the charge (UTC)")
        else:
            at_integers(ax)
            ax.set_xlabel("Number of charges")
        # Two long names side by side would make the axes narrow.
        long = max(len(str(line.get_label())) for line in self.lines_.values()) > 48
        legend_above(ax, 1 if long else 2)


class PrivacyUtilityDisplay(Display):
    """Plot of the mean score of each method against epsilon, with its spread.

    Methods with a budget are curves over a logarithmic epsilon axis. Methods without one
    (public rows alone, no privacy) are horizontal reference lines. Colours, markers and line
    styles all differ.

    Made by :meth:`from_results`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    lines_ : dict of str to Line2D
        Curve or reference line of each method.
    errorbars_ : dict of str to ErrorbarContainer
        Each curve with its spread, of which a single fit has none.

    Examples
    --------
    >>> from skmixdp.inspection import PrivacyUtilityDisplay
    >>> results = [
    ...     {"method": "AdaMix", "epsilon": 1.0, "accuracy": 0.90},
    ...     {"method": "AdaMix", "epsilon": 1.0, "accuracy": 0.92},
    ...     {"method": "AdaMix", "epsilon": 3.0, "accuracy": 0.94},
    ...     {"method": "non-private", "epsilon": None, "accuracy": 0.96},
    ... ]
    >>> display = PrivacyUtilityDisplay.from_results(results, delta=1e-5)
    >>> list(display.lines_)
    ['AdaMix', 'non-private']
    """

    summary: pd.DataFrame
    score_name: str
    spread: str
    percent: bool
    delta: float | None

    @classmethod
    def from_results(
        cls,
        table: object,
        *,
        score: str = "accuracy",
        spread: str = "std",
        percent: bool = True,
        delta: float | None = None,
        ax: Axes | None = None,
    ) -> PrivacyUtilityDisplay:
        """Draw a results table.

        Parameters
        ----------
        table : DataFrame or anything that its constructor takes
            One row per fit. ``method`` is the column of the methods' names, which get their colours in the
            order of the table. ``epsilon`` has their budgets, missing or infinite where a method needs none.
        score : str, default="accuracy"
            Column of the scores.
        spread : {"std", "t95"}, default="std"
            Half-length of the error bars: the standard deviation of a method's scores at an
            epsilon, or the 95% t-interval of their mean, which takes rows as independent
            (average over what they share first).
        percent : bool, default=True
            Whether scores are fractions in [0, 1], to be shown in percent.
        delta : float or None, default=None
            The guarantee's delta, for the axis label.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        PrivacyUtilityDisplay
            The drawn display.

        Raises
        ------
        TypeError, ValueError
            If the table lacks a column or has no rows, if a method is unnamed or a score not
            finite, if an epsilon is neither positive nor missing, or if no method has one.
        """
        summary = _summary_of_fits(table, score, spread)
        if percent and not summary["mean"].between(0, 1).all():
            worst = summary["mean"][~summary["mean"].between(0, 1)].iloc[0]
            raise ValueError(
                f"percent=True expects fractions in [0, 1] and the score in column {score!r} averages "
                f"{worst:g}; pass percent=False."
            )
        facts = {"score_name": score, "spread": spread, "percent": percent, "delta": delta}
        return cls._drawn(ax, summary=summary, **facts)

    def _draw(self, ax: Axes) -> None:
        self.lines_: dict[str, Line2D] = {}
        self.errorbars_: dict[str, ErrorbarContainer] = {}
        times = 100 if self.percent else 1
        budgets = np.unique(self.summary["epsilon"].dropna())
        ax.set_xscale("log")
        ax.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        ax.set_xticks([], minor=True)
        groups = [(str(name), part) for name, part in self.summary.groupby("method", sort=False)]
        for name, part in groups:
            low, mean, high = times * part[["low", "mean", "high"]].to_numpy(float).T
            if part["epsilon"].notna().all():
                half = np.where(part["n_fits"] > 1, (high - low) / 2, np.nan)
                style = curve_style(len(self.errorbars_))
                bars = ax.errorbar(part["epsilon"], mean, half, label=name, capsize=3.5, **style)
                self.lines_[name], self.errorbars_[name] = bars.lines[0], bars
            else:
                style = reference_style(len(self.lines_) - len(self.errorbars_))
                self.lines_[name] = ax.axhline(mean[0], label=name, **style)
                ax.axhspan(low[0], high[0], color=style["color"], alpha=0.1, linewidth=0)
        delta = "" if self.delta is None else f" at δ = {short(self.delta)}"
        ax.set_xlabel(f"Privacy budget ε{delta} (smaller is more private)")
        name = self.score_name.replace("_", " ")
        unit = " (%)" if self.percent else ""
        ax.set_ylabel(f"{name[:1].upper()}{name[1:]}{unit}\n{_SPREADS[self.spread]}")
        legend_above(ax, 3)


def _summary_of_fits(table: Any, score: str, spread: str) -> pd.DataFrame:
    """Table of ``method, epsilon, mean, low, high, n_fits``; epsilon is NaN for a method without budget."""
    check("spread", spread, *_SPREADS)
    frame = _check_table(table, score)
    keys = frame.groupby(["method", "epsilon"], dropna=False, observed=True)["score"]
    statistics = keys.agg(["mean", "std", "size"]).reset_index()
    n = statistics["size"]
    times = 1.0 if spread == "std" else stats.t.ppf(0.975, n - 1) / np.sqrt(n)
    half = (times * statistics["std"]).fillna(0.0)  # NaN for a single fit
    ends = {"low": statistics["mean"] - half, "high": statistics["mean"] + half, "n_fits": n}
    return statistics[["method", "epsilon", "mean"]].astype({"method": object}).assign(**ends)


def _check_table(table: Any, score: str) -> pd.DataFrame:
    """The method, epsilon and score of each fit. Methods keep their order, which groupby would change."""
    try:
        frame = pd.DataFrame(table)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"table of type {type(table).__name__} cannot be read as a table; pass a pandas DataFrame or "
            "a list of dicts, one per fit."
        ) from error
    if absent := [name for name in ("method", "epsilon", score) if name not in frame.columns]:
        raise ValueError(
            f"the table has no column {absent[0]!r} but {list(map(str, frame.columns))}; rename one of them, "
            "or name the scores by score=."
        )
    read = {name: pd.to_numeric(frame[name], errors="coerce") for name in ("epsilon", score)}
    numbers = {name: column.to_numpy(dtype=float, na_value=np.nan) for name, column in read.items()}
    epsilons, scores = np.array(numbers["epsilon"]), numbers[score]
    odd = {
        "method": frame["method"].isna(),
        score: ~np.isfinite(scores),
        "epsilon": (np.isnan(epsilons) & frame["epsilon"].notna()) | (epsilons <= 0),
    }
    for column, cells in odd.items():
        if cells.any():
            row = int(np.argmax(cells))
            raise ValueError(
                f"the table has {str(frame[column].iloc[row])!r} in column {column!r} and row {row}, counted "
                f"from 0; {_REMEDIES.get(column, _REMEDIES[''])}."
            )
    epsilons[np.isinf(epsilons)] = np.nan
    methods = frame["method"].map(str)
    has_budget = pd.Series(~np.isnan(epsilons)).groupby(methods.to_numpy(), sort=False)
    if not len(frame) or not has_budget.any().any():
        raise ValueError("table has no row with a finite epsilon, so there is no curve; add private fits.")
    if (mixed := has_budget.nunique() > 1).any():
        raise ValueError(
            f"method {mixed.idxmax()!r} has rows with and rows without a finite epsilon; give the two kinds "
            "different names."
        )
    names = pd.Categorical(methods, methods.unique())
    return pd.DataFrame({"method": names, "epsilon": epsilons, "score": scores})
