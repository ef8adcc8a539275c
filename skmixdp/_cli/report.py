"""``report``: print what a saved model guarantees."""

import argparse
import sys
from pathlib import Path
from typing import Any

from .files import load_model
from .messages import TRUST, InputError


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "report",
        help="print a saved model's privacy report (load only models you trust)",
        description=f"Print the privacy report of a saved model. {TRUST}",
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `fit --out` wrote")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--html", action="store_true", help="as an HTML table")


def run(args: argparse.Namespace) -> None:
    """Load and print."""
    model = load_model(args.model)
    privacy = getattr(model, "privacy_", None)
    if privacy is None:
        raise InputError(
            f"MODEL {args.model} holds a {type(model).__name__} without a privacy report; give a model "
            "that `fit --out` wrote."
        )
    if args.json:
        text = privacy.to_json()
    elif args.html:
        text = privacy._repr_html_()
    else:
        text = str(privacy)
    sys.stdout.write(f"{text}\n")
