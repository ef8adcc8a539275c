"""The page of a ledger: its budgets and charges in plain words."""

from ..privacy.ledger._account import Account
from ..privacy.ledger._report import Charge, LedgerReport, of_others
from ..privacy.report import attack_words, relation_words
from ._page import attack, bullets, page, paragraph, section, table


def ledger_page(report: LedgerReport) -> str:
    """A page on the budgets and charges of a report, as one file without scripts or links."""
    charges: dict[str, list[Charge]] = {account.dataset: [] for account in report.accounts}
    for charge in report.charges:
        charges[charge.dataset].append(charge)
    parts = [_part(account, charges[account.dataset]) for account in report.accounts]
    return page("Privacy ledger", report.no_guarantee, *parts)


def _part(account: Account, charges: list[Charge]) -> str:
    """The part of a page on one data set."""
    budget = f"(epsilon {account.epsilon:g}, delta {account.delta:g})-differential privacy of all charges"
    rows = {
        "budget": f"{'' if account.private else 'NO GUARANTEE; without the leaks: '}{budget} together",
        "protected": "by the first charge",
        "spent": f"epsilon {account.spent:.3g} (charges: {account.n_charges})",
        "left": "nothing",
    }
    if account.others_epsilon:
        rows["for other tools"] = of_others(account)
    if account.remaining > 0:
        fits = account.fits_left(1.0, account.delta)
        rows["left"] = f"one full-batch fit with epsilon of about {account.remaining:.3g}"
        rows["left"] += f", or {fits} with epsilon 1" if fits else ""
    success = ""
    if account.neighboring is not None:
        rows["protected"] = relation_words(account.neighboring, account.unit)
        words = attack_words(account.attack_success, account.neighboring, account.unit)
        when = "whatever is still charged to this budget,"
        success = attack(account.attack_success, words if account.private else "", when)
    title = "Charges" if len(charges) == account.n_charges else "Charges that failed or have no guarantee"
    listed = bullets(map(_in_words, charges)) or paragraph("None.")
    return section(account.dataset, success, table(rows), section(title, listed, level=3))


def _in_words(charge: Charge) -> str:
    """A charge as sentences."""
    user = f" by {charge.user}" if charge.user else ""
    ended = f"It {charge.outcome}." if charge.outcome.startswith("failed") else f"It is {charge.outcome}."
    return (
        f"{charge.time:%Y-%m-%d %H:%M} UTC{user}: {charge.what}. "
        f"{ended if charge.private else f'{ended} NO GUARANTEE.'} "
        f"Epsilon {charge.spent:.3g} of {charge.budget:g} was spent then."
    )
