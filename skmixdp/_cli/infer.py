"""``infer``: files of rows in, regression coefficients with intervals and their privacy report out."""

import argparse

from ..inference import private_inference
from ..preprocessing import TableEncoder
from .arguments import Parser, add_terms_to, charged_data_set, passed
from .files import SCALE_FLAG, read_scales
from .fit import add_rows_to, inputs_of, read_inputs
from .labels import read_pairs
from .messages import EXIT_CODES, InputError
from .outputs import add_report_to, check_outputs, print_and_write

SUMMARY = "estimate regression coefficients of private rows, with intervals"
DESCRIPTION = """\
Estimate the coefficients of a regression of private rows, with standard errors, confidence intervals and
p-values that count the noise."""

_EPILOG = f"""\
example:
  skmixdp infer --private patients.csv --label-column outcome --classes no,yes --epsilon 1 \\
      --report coefficients.json

{EXIT_CODES}"""


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    texts = {
        "--classes A,B,...": "all class labels, the first of which is the reference; without it, those of "
        "--public",
        "--weight-column NAME": "column of the tables with weights of rows",
    }
    add_rows_to(parser, texts)
    parser.add_parameters(
        "model",
        private_inference,
        family="--family log-odds of classes, least squares of numbers, or logs of rates of counts",
        confidence="--confidence",
        max_sample_weight="--max-weight",
    )
    texts = {
        "--robust": "errors that also hold if the model is not right",
        **SCALE_FLAG,
        "--target-bounds LOW,HIGH": "for --family gaussian: where most targets lie, from prior knowledge",
        "--reference COLUMN=A,...": "of encoded columns: categories against which the others are compared",
    }
    parser.add("model", texts)
    add_terms_to(parser, private_inference)
    add_report_to(parser, "coefficients")


def run(args: argparse.Namespace) -> None:
    """Check everything, charge the ledger, estimate, write and print."""
    own = passed(args, private_inference)
    targets = own.get("family", "logistic") != "logistic"
    if targets and args.classes is not None:
        raise InputError(f"--classes {args.classes} is for --family logistic; drop one of them.")
    if not targets and args.classes is None and args.public is None:
        raise InputError("--family logistic needs all classes; name them in --classes, or give --public.")
    if args.target_bounds is not None:
        if own.get("family") != "gaussian":
            raise InputError("--target-bounds is for --family gaussian; drop it.")
        low, high = args.target_bounds
        own["target_scale"] = ((low + high) / 2, (high - low) / 4)
    if args.reference is not None:
        own["reference"] = dict(read_pairs(args.reference, "--reference", "city=Ulm,sex=f"))
    check_outputs({"--report": args.report}, inputs_of(args), force=args.force)
    if args.scale is not None:
        own["scale"] = read_scales(args.scale)
    private, public, _, columns, own["classes"] = read_inputs(args, targets=targets)
    if args.encode is not None:
        own["encoder"] = TableEncoder(columns).fit(private.X, X_pub=None if public is None else public.X)
    for rows, ending in ((private, ""), (public, "_pub")):
        if rows is not None:
            own[f"sample_weight{ending}"] = rows.aside.get("--weight-column")
            own[f"exposure{ending}"] = rows.aside.get("--exposure-column")
    if public is not None:
        own |= {"X_pub": public.X, "y_pub": public.y}
    result = private_inference(
        private.X,
        private.y,
        groups=private.aside.get("--group-column"),
        cov="robust" if args.robust else "model",
        ledger=charged_data_set(args, own),
        **own,
    )
    coefficients = [section._replace(title="Coefficients") for section in result._sections()]
    print_and_write(args, result, result.privacy_, result.to_dict(), "Private regression", coefficients)
