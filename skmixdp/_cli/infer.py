"""``infer``: files of rows in, regression coefficients with intervals and their privacy report out."""

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from .._utils.validation import reason_of
from ..inference import InferenceResult, private_inference
from ..inspection._page import attack, page, section
from ..preprocessing import TableEncoder
from ..privacy import BudgetExceededError, NotPrivateWarning
from ..privacy.noise import warn_of_seed
from .fit import add_rows_to, read_both, with_classes
from .messages import EXIT_CODES, InputError, bounds, in_flags, path_named
from .outputs import check_outputs, write_together
from .rows import check_together
from .terms import add_terms_to, charged_data_set, check_terms, fraction, positive

_DESCRIPTION = """\
Estimate the coefficients of a regression of private rows, with standard errors, confidence intervals and
p-values that count the noise."""

_EPILOG = f"""\
example:
  skmixdp infer --private patients.csv --label-column outcome --classes no,yes --epsilon 1 \\
      --report coefficients.json

{EXIT_CODES}"""

#: Flags of the parameters that messages name.
_FLAGS = {
    "classes": "--classes",
    "scale": "--scale",
    "target_scale": "--target-bounds",
    "sample_weight": "--weight-column",
    "sample_weight_pub": "--weight-column",
    "max_sample_weight": "--max-weight",
    "confidence": "--confidence",
    "columns": "--encode",
    "neighboring": "--neighboring",
    "random_state": "--seed",
    "X_pub": "--public",
    "family": "--family",
}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "infer",
        help="estimate regression coefficients of private rows, with intervals",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.set_defaults(run=run, flags=_FLAGS, unlabeled=None, noise="float")
    add_rows_to(
        parser, "all class labels, the first of which is the reference; without it, those of --public"
    )
    model = parser.add_argument_group("model")
    model.add_argument(
        "--family",
        choices=("logistic", "gaussian"),
        default="logistic",
        help="log-odds of classes, or least squares of numbers (default: %(default)s)",
    )
    model.add_argument(
        "--robust", action="store_true", help="errors that also hold if the model is not right"
    )
    model.add_argument(
        "--confidence", type=fraction, default=0.95, help="coverage of the intervals (default: %(default)s)"
    )
    model.add_argument(
        "--scale",
        type=path_named,
        metavar="FILE.json",
        help='what is known of columns, from prior knowledge: {"age": [45, 15]} for a typical value and the '
        "usual distance from it",
    )
    model.add_argument(
        "--target-bounds",
        type=bounds,
        metavar="LOW,HIGH",
        help="for --family gaussian: where most targets lie, from prior knowledge",
    )
    model.add_argument("--weight-column", metavar="NAME", help="column of the tables with weights of rows")
    model.add_argument(
        "--max-weight",
        type=positive,
        help="weight that counts as 1, as larger ones do (default: a noisy one)",
    )
    budget = parser.add_argument_group("budget")
    budget.add_argument("--epsilon", type=positive, default=1.0, help="privacy budget (default: %(default)s)")
    budget.add_argument(
        "--delta", type=fraction, default=1e-5, help="well below 1 / private rows (default: %(default)s)"
    )
    add_terms_to(parser, budget)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--report", type=path_named, metavar="FILE", help="coefficients and privacy report (.json or .html)"
    )
    output.add_argument("--force", action="store_true", help="replace a report that exists")
    output.add_argument("--quiet", action="store_true", help="print nothing; needs --report")


def run(args: argparse.Namespace) -> None:
    """Check everything, charge the ledger, estimate, write and print."""
    check_terms(args)
    args.regression = args.family == "gaussian"
    if args.quiet and args.report is None:
        raise InputError("--quiet without --report would throw the coefficients away; give one --report.")
    if args.regression and args.classes is not None:
        raise InputError(f"--classes {args.classes} is for --family logistic; drop one of them.")
    if not args.regression and args.classes is None and args.public is None:
        raise InputError("--family logistic needs all classes; name them in --classes, or give --public.")
    if not args.regression and args.target_bounds is not None:
        raise InputError("--target-bounds is for --family gaussian; drop it.")
    inputs = [args.private, args.public, args.labels, args.public_labels, args.scale]
    if args.report is not None:
        given = [path for path in inputs if path is not None]
        check_outputs({"--report": args.report}, given, force=args.force)
    scale = None if args.scale is None else _scales(args.scale)
    private, public, columns = read_both(args)
    check_together(private, public)
    private, public, classes = with_classes(args, private, public)
    encoder = None
    target_scale = None
    if args.target_bounds is not None:
        low, high = args.target_bounds
        target_scale = ((low + high) / 2, (high - low) / 4)
    warn_of_seed(args.seed, name="--seed")
    try:
        if args.encode is not None:
            encoder = TableEncoder(columns).fit(private.X, X_pub=None if public is None else public.X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)  # the flag was warned of above
            found = private_inference(
                private.X,
                private.y,
                family=args.family,
                epsilon=args.epsilon,
                delta=args.delta,
                classes=classes,
                X_pub=None if public is None else public.X,
                y_pub=None if public is None else public.y,
                sample_weight=private.weights,
                sample_weight_pub=None if public is None else public.weights,
                max_sample_weight="auto" if args.max_weight is None else args.max_weight,
                groups=private.groups,
                cov="robust" if args.robust else "model",
                confidence=args.confidence,
                encoder=encoder,
                scale=scale,
                target_scale=target_scale,
                neighboring=args.neighboring,
                ledger=charged_data_set(args),
                random_state=args.seed,
            )
    # OSError: the file of the ledger.
    except (ValueError, TypeError, OSError, BudgetExceededError) as error:
        raise InputError(in_flags(error, _FLAGS)) from error
    if args.report is not None:
        write_together({args.report: lambda file: file.write(_written(found, args.report).encode())})
    if not args.quiet:
        sys.stdout.write(f"{found}\n{found.privacy_}\n")


def _scales(path: Path) -> dict[str, Any]:
    """Typical value and spread by column, from a JSON file."""
    form = 'write it like {"age": [45, 15]}'
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = reason_of(error, "no JSON")
        raise InputError(f"--scale {path} cannot be read ({reason}); {form}.") from None
    if not isinstance(given, dict) or not given:
        raise InputError(f"--scale {path} must map columns to a typical value and a spread; {form}.")
    return given


def _written(found: InferenceResult, path: Path) -> str:
    """The coefficients and the report of their guarantee, as JSON or HTML by the ending of the file."""
    if path.suffix.lower() == ".json":
        return f"{json.dumps(found.to_dict(), indent=2)}\n"
    report = found.privacy_
    return page(
        "Private regression",
        report.no_guarantee,
        attack(report.attack_success, report._attack),
        section("Coefficients", found._repr_html_()),
        section("Guarantee", report._repr_html_()),
    )
