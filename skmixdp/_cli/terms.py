"""Terms of a guarantee that commands share: budget, neighbours, noise, and the ledger to charge."""

import argparse
from typing import Any

from ..privacy import LedgerDataset, PrivacyLedger
from .arguments import Parser
from .messages import InputError

_LEDGER = {
    "--ledger FILE": "ledger to charge; made if missing (.sqlite)",
    "--dataset NAME": "the ledger's name of the private rows' data set",
    "--purpose TEXT": "what the charge is for",
    "--ledger-epsilon EPSILON": "budget of the data set, if the ledger does not know it yet",
    "--ledger-delta DELTA": "delta of that budget (default: --delta)",
}


def add_terms_to(parser: Parser, owner: Any, **flags: str) -> None:
    """Declare the budget of ``owner`` with further ``flags``, and the ledger."""
    seed = "--seed make the run reproducible and NOT private: only for tests and demos"
    delta = "--delta well below 1 / private rows"
    common = {"epsilon": "--epsilon", "delta": delta, "neighboring": "--neighboring"}
    parser.add_parameters("budget", owner, **common, **flags, random_state=seed)
    parser.add("ledger", _LEDGER)


def check_ledger(args: argparse.Namespace) -> None:
    """Refuse a new ledger without a budget."""
    if args.ledger is not None and args.ledger_epsilon is None and not args.ledger.exists():
        raise InputError(f"--ledger {args.ledger} is new; give its data set a --ledger-epsilon.")


def charged_data_set(args: argparse.Namespace, own: dict[str, Any]) -> LedgerDataset | None:
    """The data set to charge; a given budget is added to its ledger, with the ``own`` delta of the charge."""
    if args.ledger is None:
        return None
    ledger = PrivacyLedger(args.ledger)
    if args.ledger_epsilon is not None:
        delta = own.get("delta", 1e-5) if args.ledger_delta is None else args.ledger_delta
        unit = "row" if args.group_column is None else args.group_column
        ledger.add_dataset(args.dataset, epsilon=args.ledger_epsilon, delta=delta, unit=unit)
    dataset = ledger[args.dataset]
    return dataset if args.purpose is None else dataset.for_purpose(args.purpose)
