"""Terms of a guarantee that commands share: neighbours, noise, and the ledger to charge."""

import argparse
from typing import Any

from .._utils.validation import POSITIVE, PROBABILITY
from ..privacy import LedgerDataset, PrivacyLedger
from ..privacy.accounting.events import NEIGHBORING, NOISE
from ..privacy.ledger._account import PURPOSE
from .messages import InputError, Parser, count_or_zero, number_type, path_named

positive, fraction = number_type(POSITIVE), number_type(PROBABILITY)


def _purpose(text: str) -> str:
    """A type for argparse: purposes of charges."""
    if not PURPOSE.admits(text):
        raise argparse.ArgumentTypeError(f"{text!r} must be {PURPOSE.text}")
    return text


def add_budget_to(parser: Parser, **epsilon: Any) -> Any:
    """Declare ``--epsilon`` and ``--delta``, and return their group."""
    budget = parser.add_argument_group("budget")
    budget.add_argument("--epsilon", type=positive, **epsilon)
    budget.add_argument(
        "--delta", type=fraction, default=1e-5, help="well below 1 / private rows (default: %(default)s)"
    )
    return budget


def add_terms_to(parser: Parser, budget: Any, noise_help: str | None = None) -> None:
    """Declare the arguments of the noise, in the group ``budget``, and those of a ledger.

    Without a ``noise_help``, the command has one kind of noise.
    """
    budget.add_argument(
        "--neighboring",
        choices=NEIGHBORING,
        default="add_or_remove_one",
        help="which data sets count as neighbours (default: %(default)s)",
    )
    if noise_help is not None:
        budget.add_argument("--noise", choices=NOISE, default="float", help=noise_help)
    budget.add_argument(
        "--seed",
        type=count_or_zero,
        help="make the run reproducible and NOT private: only for tests and demos",
    )
    ledger = parser.add_argument_group("ledger")
    ledger.add_argument(
        "--ledger", type=path_named, metavar="FILE", help="ledger to charge; made if missing (.sqlite)"
    )
    ledger.add_argument("--dataset", metavar="NAME", help="the ledger's name of the private rows' data set")
    ledger.add_argument("--purpose", type=_purpose, metavar="TEXT", help="what the charge is for")
    ledger.add_argument(
        "--ledger-epsilon", type=positive, help="budget of the data set, if the ledger does not know it yet"
    )
    ledger.add_argument("--ledger-delta", type=fraction, help="delta of that budget (default: --delta)")


def check_terms(args: argparse.Namespace) -> None:
    """Refuse arguments that exclude each other."""
    if args.seed is not None and args.noise == "discrete":
        raise InputError(f"--seed {args.seed} cannot seed --noise discrete; leave one of them out.")
    if (args.ledger is None) != (args.dataset is None):
        tables, missing = ("--dataset", "--ledger") if args.ledger is None else ("--ledger", "--dataset")
        raise InputError(f"{tables} was given without {missing}; give both, or neither.")
    if args.ledger is None and (args.ledger_epsilon is not None or args.ledger_delta is not None):
        raise InputError("--ledger-epsilon and --ledger-delta are the budget in a --ledger; name one.")
    if args.ledger is None and args.purpose is not None:
        raise InputError(f"--purpose {args.purpose!r} is recorded in a ledger; give --ledger and --dataset.")
    if args.ledger is not None and args.ledger_epsilon is None:
        if args.ledger_delta is not None:
            raise InputError(f"--ledger-delta {args.ledger_delta:g} needs --ledger-epsilon; give both.")
        if not args.ledger.exists():
            raise InputError(f"--ledger {args.ledger} is new; give its data set a --ledger-epsilon.")


def charged_data_set(args: argparse.Namespace) -> LedgerDataset | None:
    """The data set to charge; if a budget was given, it is added to its ledger."""
    if args.ledger is None:
        return None
    ledger = PrivacyLedger(args.ledger)
    if args.ledger_epsilon is not None:
        delta = args.delta if args.ledger_delta is None else args.ledger_delta
        unit = "row" if args.group_column is None else args.group_column
        ledger.add_dataset(args.dataset, epsilon=args.ledger_epsilon, delta=delta, unit=unit)
    dataset = ledger[args.dataset]
    return dataset if args.purpose is None else dataset.for_purpose(args.purpose)
