"""``evaluate``: private rows and a model in, noisy metrics and their privacy report out."""

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.frames import is_frame
from .._utils.models import classes_of, names_of_features
from ..estimators import PrivatePipeline
from ..inspection._page import attack, page, paragraph, section, sentence, table
from ..model_selection import private_evaluation
from ..privacy import BudgetExceededError, NotPrivateWarning
from ..privacy.noise import warn_of_seed
from .files import add_text_to, text_form
from .labels import as_classes
from .messages import EXIT_CODES, TRUST, InputError, bounds, in_flags, path_named
from .model_files import EncodedModel, load_model
from .outputs import check_outputs, write_together
from .predict import trained
from .rows import FIX, align, check_same_network, read_labelled
from .terms import add_terms_to, charged_data_set, check_terms, fraction, positive

_DESCRIPTION = f"""\
Evaluate a saved model on private rows by one noisy histogram, which has a budget of its own.

The rows should not have trained the model. For a classifier, it prints accuracy, ROC area, log-loss and
calibration error, all with 95% intervals, and for a regression errors and R2.

{TRUST}"""

#: Flags of the parameters that messages name.
_FLAGS = {
    "target_bounds": "--target-bounds",
    "neighboring": "--neighboring",
    "noise": "--noise",
    "random_state": "--seed",
}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "evaluate",
        help="evaluate a saved model on private rows with noise (load only models you trust)",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
    )
    parser.set_defaults(run=run, flags=_FLAGS)
    parser.add_argument("model", type=path_named, metavar="MODEL", help="file that `fit --out` wrote")
    rows = parser.add_argument_group("rows")
    rows.add_argument("--private", type=path_named, required=True, metavar="FILE", help="private rows")
    rows.add_argument("--label-column", metavar="NAME", help="label column of the table")
    rows.add_argument("--labels", type=path_named, metavar="FILE", help="labels of the rows (.npy, .csv)")
    rows.add_argument("--id", metavar="NAME", help="column of the table that names rows, to leave aside")
    rows.add_argument(
        "--group-column",
        metavar="NAME",
        help="column with ids of persons, all of whose rows are then protected together",
    )
    rows.add_argument(
        "--target-bounds",
        type=bounds,
        metavar="LOW,HIGH",
        help="for a regression: bounds of the targets from prior knowledge, to which they are cut",
    )
    add_text_to(parser, "default: commas (tabs for .tsv), decimal points, UTF-8; the file is not asked")
    budget = parser.add_argument_group("budget")
    budget.add_argument(
        "--epsilon", type=positive, required=True, help="privacy budget, in addition to that of the fit"
    )
    budget.add_argument(
        "--delta", type=fraction, default=1e-5, help="well below 1 / private rows (default: %(default)s)"
    )
    add_terms_to(parser, budget, "as for fit (default: %(default)s)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--report", type=path_named, metavar="FILE", help="metrics and privacy report (.json or .html)"
    )
    output.add_argument("--force", action="store_true", help="replace a report that exists")
    output.add_argument("--quiet", action="store_true", help="print nothing; needs --report")


def run(args: argparse.Namespace) -> None:
    """Check everything, charge the ledger, evaluate, write and print."""
    check_terms(args)
    if args.quiet and args.report is None:
        raise InputError("--quiet without --report would throw the evaluation away; give one --report.")
    if args.report is not None:
        inputs = [path for path in (args.model, args.private, args.labels) if path is not None]
        check_outputs({"--report": args.report}, inputs, force=args.force)
    model, X, y, groups = _read(args)
    warn_of_seed(args.seed, name="--seed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)  # the flag was warned of above
            found = private_evaluation(
                model,
                X,
                y,
                epsilon=args.epsilon,
                delta=args.delta,
                groups=groups,
                target_bounds=args.target_bounds,
                neighboring=args.neighboring,
                noise=args.noise,
                ledger=charged_data_set(args),
                random_state=args.seed,
            )
    # ImportError: discrete noise needs another package. OSError: the file of the ledger.
    except (ValueError, TypeError, ImportError, OSError, BudgetExceededError) as error:
        raise InputError(in_flags(error, _FLAGS)) from error
    if args.report is not None:
        write_together({args.report: lambda file: file.write(_written(found, args.report).encode())})
    if not args.quiet:
        sys.stdout.write(f"{found}\n{found.privacy}\n")


def _read(args: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    """The model, and private rows, labels and ids of persons with its features."""
    loaded = load_model(args.model)
    model = loaded.head if isinstance(loaded, EncodedModel) else loaded
    found = names_of_features(model)
    names = () if found is None else found
    reference = trained(args) if len(names) else ""
    rows = read_labelled(
        args.private,
        "--private",
        args.label_column,
        args.labels,
        "--labels",
        text_form(args),
        id_column=args.id,
        group_column=args.group_column,
        raw=isinstance(model, PrivatePipeline),
        public=names,
        reference=reference,
        targets=classes_of(model) is None,
    )
    if isinstance(loaded, EncodedModel) and rows.report is not None:
        what = f"{rows.where} and the training rows of MODEL {args.model}"
        check_same_network(loaded.encoder["images"]["report"], rows.report, what)
    y = rows.y
    if classes_of(model) is not None:
        what, remedy = f"of MODEL {args.model}", "leave rows of other classes out"
        y = as_classes(y, np.asarray(model.classes_), rows.where, what, remedy, private=True)
    if reference and is_frame(rows.X):
        return model, align(rows.X, names, rows.where, reference, FIX), y, rows.groups
    return model, rows.X, y, rows.groups


def _written(found: Any, path: Path) -> str:
    """The metrics and the report of their guarantee, as JSON or HTML by the ending of the file."""
    if path.suffix.lower() == ".json":
        metrics = {name: estimate._asdict() for name, estimate in found.summary().items()}
        return f"{json.dumps({'metrics': metrics, 'privacy': found.privacy.to_dict()}, indent=2)}\n"
    report = found.privacy
    listing = table({name: str(estimate) for name, estimate in found.summary().items()})
    return page(
        "Private evaluation",
        report.no_guarantee,
        attack(report.attack_success, report._attack),
        section("Metrics", listing, paragraph(sentence(found._terms))),
        section("Guarantee", report._repr_html_()),
    )
