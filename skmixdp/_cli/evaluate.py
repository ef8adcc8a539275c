"""``evaluate``: private rows and a model in, noisy metrics and their privacy report out."""

import argparse
from typing import Any

import numpy as np

from .._utils.documents import Section, sentence
from .._utils.frames import is_frame
from .._utils.models import classes_of, names_of_features
from ..estimators import PrivatePipeline
from ..model_selection import GroupedEvaluation, private_evaluation
from ..model_selection._evaluation.groups import name_of
from ..privacy.noise import warn_of_seed
from .files import add_text_to, text_form
from .labels import as_classes
from .messages import EXIT_CODES, TRUST, InputError, bounds, flags_of, library_errors, path_named
from .model_files import load_model, unpacked
from .outputs import add_report_to, check_report, hand_out
from .predict import trained
from .rows import FIX, align, check_same_network, read_labelled
from .terms import add_budget_to, add_terms_to, charged_data_set, check_terms

_DESCRIPTION = f"""\
Evaluate a saved model on private rows by one noisy histogram, which has a budget of its own.

The rows should not have trained the model. For a classifier, it prints accuracy, ROC area, log-loss and
calibration error, all with 95% intervals, and for a regression errors and R2.

{TRUST}"""

#: Flags of the parameters that messages name.
_FLAGS = flags_of("target_bounds", "neighboring", "noise", "by", "by_values", random_state="--seed")


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
    rows.add_argument(
        "--by", metavar="COLUMN[,COLUMN]", help="evaluate by groups of rows: one or two columns of the model"
    )
    rows.add_argument(
        "--by-values",
        metavar="A,B[;C,D]",
        help="the groups, which must not be read from private rows; those of two columns have a semicolon",
    )
    add_text_to(parser, "default: commas (tabs for .tsv), decimal points, UTF-8; the file is not asked")
    budget = add_budget_to(parser, required=True, help="privacy budget, in addition to that of the fit")
    add_terms_to(parser, budget, "as for fit (default: %(default)s)")
    add_report_to(parser, "metrics")


def run(args: argparse.Namespace) -> None:
    """Check everything, charge the ledger, evaluate, write and print."""
    check_terms(args)
    by = _groups(args)
    check_report(args, "evaluation", [args.model, args.private, args.labels])
    model, X, y, groups = _read(args)
    warn_of_seed(args.seed, name="--seed")
    with library_errors(_FLAGS):
        measured = private_evaluation(
            model,
            X,
            y,
            epsilon=args.epsilon,
            delta=args.delta,
            groups=groups,
            **by,
            target_bounds=args.target_bounds,
            neighboring=args.neighboring,
            noise=args.noise,
            ledger=charged_data_set(args),
            random_state=args.seed,
        )
    grouped = isinstance(measured, GroupedEvaluation)
    parts = {name_of(group): measured[group] for group in measured} if grouped else {"": measured}
    metrics: dict[str, Any] = {}
    sections = [Section("Metrics", paragraphs=[sentence(measured._terms)])]
    for group, evaluation in parts.items():
        own = evaluation.summary()
        metrics[group] = {name: estimate._asdict() for name, estimate in own.items()}
        sections.append(Section(group, [*own.items()], level=3))
    facts = {"metrics": metrics if grouped else metrics[""], "privacy": measured.privacy.to_dict()}
    if grouped:
        facts["unknown"] = [name_of(group) for group in measured.unknown]
    hand_out(args, measured, measured.privacy, facts, "Private evaluation", sections)


def _groups(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of groups of rows."""
    if (args.by is None) != (args.by_values is None):
        raise InputError("--by and --by-values belong together; give both or neither.")
    if args.by is None:
        return {}
    columns = args.by.split(",")
    values = [part.split(",") for part in args.by_values.split(";")]
    if len(columns) > 2 or len(columns) != len(values):
        raise InputError(
            f"--by {args.by} and --by-values {args.by_values} must name one or two columns, and a list of "
            "values for each."
        )
    if len(columns) == 1:
        return {"by": args.by, "by_values": values[0]}
    return {"by": columns, "by_values": values}


def _read(args: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    """The model, and private rows, labels and ids of persons with its features."""
    model, encoder = unpacked(load_model(args.model))
    features = names_of_features(model)
    names = () if features is None else features
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
    if encoder is not None and rows.report is not None:
        what = f"{rows.where} and the training rows of MODEL {args.model}"
        check_same_network(encoder["report"], rows.report, what)
    y = rows.y
    if classes_of(model) is not None:
        what, remedy = f"of MODEL {args.model}", "leave rows of other classes out"
        y = as_classes(y, np.asarray(model.classes_), rows.where, what, remedy, private=True)
    if reference and is_frame(rows.X):
        return model, align(rows.X, names, rows.where, reference, FIX), y, rows.groups
    return model, rows.X, y, rows.groups
