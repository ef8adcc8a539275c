"""A plot of the spent budget of each data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._style import Display, at_dates, at_integers, curve_style, legend_above, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


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
        if over not in ("time", "charges"):
            raise ValueError(f"over={over!r} must be 'time' or 'charges'.")
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
            if charges:
                self._draw_steps(account, charges)
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

    def _draw_steps(self, account: Any, charges: list[Any]) -> None:
        style = curve_style(len(self.lines_))
        if len(charges) > 30:  # otherwise markers would overlap
            style["marker"] = "None"
        times = [charge.time for charge in charges]
        x: list[Any] = times if self.over == "time" else [*range(1, len(charges) + 1)]
        share = [100 * charge.spent / account.epsilon for charge in charges]
        words = f"ε {charges[-1].spent:.3g} of {account.epsilon:g} (δ = {short(account.delta)})"
        if not account.private:
            words = "NO GUARANTEE"
        label = f"{account.dataset}: {words}"
        # The spent budget is constant until the next charge.
        (self.lines_[account.dataset],) = self.ax_.step(x, share, where="post", label=label, **style)
