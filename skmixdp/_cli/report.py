"""``report``: print the guarantee of a saved model, or the charges of a ledger."""

import argparse
import sys
from typing import Any

from .._utils.models import report_of
from ..privacy import PrivacyLedger
from .arguments import Parser
from .messages import TRUST, InputError
from .model_files import card_page, load_model

SUMMARY = "print the privacy report of a saved model (load only models you trust) or of a ledger"
DESCRIPTION = f"Print the privacy report of a saved model, or of a ledger (.sqlite).\n\n{TRUST}"


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    texts = {
        "MODEL": "file that `fit --out` wrote, or a ledger (.sqlite)",
        "--json": "as JSON",
        "--html": "as a page for any reader",
    }
    parser.add("form", texts)


def run(args: argparse.Namespace) -> None:
    """Load a model or a ledger, and print its report."""
    subject: Any
    is_ledger = args.model.suffix == ".sqlite"
    if is_ledger:
        if not args.model.exists():  # opening a ledger would create it
            raise InputError(f"the ledger {args.model} is not there; check the path.")
        # The printed table needs no other charges.
        subject = PrivacyLedger(args.model).report("all" if args.json or args.html else "failed")
    else:
        subject = load_model(args.model)
        if report_of(subject) is None:
            raise InputError(
                f"MODEL {args.model} holds a {type(subject).__name__} without a privacy report; give a model "
                "that `fit --out` wrote."
            )
    if args.html:
        text = subject.to_html() if is_ledger else card_page(subject)
    else:
        privacy = subject if is_ledger else subject.privacy_
        text = privacy.to_json() if args.json else str(privacy)
    sys.stdout.write(f"{text}\n")
