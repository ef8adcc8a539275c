"""``infer``: files of rows in, regression coefficients with intervals and their privacy report out."""

import argparse
from typing import Any

from ..inference import private_inference
from ..preprocessing import TableEncoder
from ..privacy.noise import warn_of_seed
from .columns import add_scale_to, read_scales
from .fit import add_rows_to, read_both, with_classes
from .messages import EXIT_CODES, InputError, bounds, flags_of, library_errors
from .outputs import add_report_to, check_report, hand_out
from .rows import check_together
from .terms import add_budget_to, add_terms_to, charged_data_set, check_terms, fraction, positive

_DESCRIPTION = """\
Estimate the coefficients of a regression of private rows, with standard errors, confidence intervals and
p-values that count the noise."""

_EPILOG = f"""\
example:
  skmixdp infer --private patients.csv --label-column outcome --classes no,yes --epsilon 1 \\
      --report coefficients.json

{EXIT_CODES}"""

#: Flags of the parameters that messages name.
_FLAGS = flags_of(
    *("classes", "scale", "confidence", "neighboring", "family", "reference"),
    target_scale="--target-bounds",
    exposure="--exposure-column",
    exposure_pub="--exposure-column",
    sample_weight="--weight-column",
    sample_weight_pub="--weight-column",
    max_sample_weight="--max-weight",
    columns="--encode",
    random_state="--seed",
    X_pub="--public",
)


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
        choices=("logistic", "gaussian", "poisson"),
        default="logistic",
        help="log-odds of classes, least squares of numbers, or logs of rates of counts "
        "(default: %(default)s)",
    )
    model.add_argument(
        "--robust", action="store_true", help="errors that also hold if the model is not right"
    )
    model.add_argument(
        "--confidence", type=fraction, default=0.95, help="coverage of the intervals (default: %(default)s)"
    )
    add_scale_to(model)
    model.add_argument(
        "--target-bounds",
        type=bounds,
        metavar="LOW,HIGH",
        help="for --family gaussian: where most targets lie, from prior knowledge",
    )
    model.add_argument(
        "--exposure-column",
        metavar="NAME",
        help="for --family poisson: column of the tables with the time or number at risk behind each count",
    )
    model.add_argument(
        "--reference",
        metavar="COLUMN=A,...",
        help="of encoded columns: categories against which the others are compared",
    )
    model.add_argument("--weight-column", metavar="NAME", help="column of the tables with weights of rows")
    model.add_argument(
        "--max-weight",
        type=positive,
        help="weight that counts as 1, as larger ones do (default: a noisy one)",
    )
    add_terms_to(parser, add_budget_to(parser, default=1.0, help="privacy budget (default: %(default)s)"))
    add_report_to(parser, "coefficients")


def run(args: argparse.Namespace) -> None:
    """Check everything, charge the ledger, estimate, write and print."""
    check_terms(args)
    args.regression = args.family != "logistic"
    if args.regression and args.classes is not None:
        raise InputError(f"--classes {args.classes} is for --family logistic; drop one of them.")
    if not args.regression and args.classes is None and args.public is None:
        raise InputError("--family logistic needs all classes; name them in --classes, or give --public.")
    if args.family != "gaussian" and args.target_bounds is not None:
        raise InputError("--target-bounds is for --family gaussian; drop it.")
    inputs = [args.private, args.public, args.labels, args.public_labels, args.scale]
    check_report(args, "coefficients", inputs)
    reference = None if args.reference is None else _references(args.reference)
    if reference is not None and args.encode is None:
        raise InputError("--reference names categories of encoded columns; add --encode, or drop it.")
    scale = None if args.scale is None else read_scales(args.scale)
    private, public, columns = read_both(args)
    check_together(private, public)
    private, public, classes = with_classes(args, private, public)
    encoder = None
    target_scale = None
    if args.target_bounds is not None:
        low, high = args.target_bounds
        target_scale = ((low + high) / 2, (high - low) / 4)
    warn_of_seed(args.seed, name="--seed")
    with library_errors(_FLAGS):
        if args.encode is not None:
            encoder = TableEncoder(columns).fit(private.X, X_pub=None if public is None else public.X)
        found = private_inference(
            private.X,
            private.y,
            family=args.family,
            epsilon=args.epsilon,
            delta=args.delta,
            exposure=private.exposures,
            classes=classes,
            X_pub=None if public is None else public.X,
            y_pub=None if public is None else public.y,
            exposure_pub=None if public is None else public.exposures,
            sample_weight=private.weights,
            sample_weight_pub=None if public is None else public.weights,
            max_sample_weight="auto" if args.max_weight is None else args.max_weight,
            groups=private.groups,
            cov="robust" if args.robust else "model",
            confidence=args.confidence,
            encoder=encoder,
            reference=reference,
            scale=scale,
            target_scale=target_scale,
            neighboring=args.neighboring,
            ledger=charged_data_set(args),
            random_state=args.seed,
        )
    coefficients = [section._replace(title="Coefficients") for section in found._sections()]
    hand_out(args, found, found.privacy_, found.to_dict(), "Private regression", coefficients)


def _references(text: str) -> dict[str, str]:
    """Reference categories by column."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and equals and category for name, equals, category in pairs):
        raise InputError(f"--reference {text!r} must be pairs such as city=Ulm,sex=f.")
    return {name: category for name, _, category in pairs}
