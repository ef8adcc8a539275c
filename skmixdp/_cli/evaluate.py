"""``evaluate``: private rows and a model in, noisy metrics and their privacy report out."""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from .._utils.documents import Section, sentence
from .._utils.models import classes_of
from ..model_selection import GroupedEvaluation, private_evaluation
from ..model_selection._evaluation.groups import name_of
from .arguments import Parser, add_terms_to, charged_data_set, passed
from .files import add_text_to, text_form
from .fit import inputs_of
from .labels import as_classes
from .messages import TRUST, InputError
from .model_files import load_model, unpacked
from .outputs import add_report_to, check_outputs, print_and_write
from .predict import read_like_training
from .rows import ROW_FLAGS

SUMMARY = "evaluate a saved model on private rows with noise (load only models you trust)"
DESCRIPTION = f"""\
Evaluate a saved model on private rows by one noisy histogram, which has a budget of its own.

The rows should not have trained the model. For a classifier, it prints accuracy, ROC area, log-loss and
calibration error, all with 95% intervals, for a regression errors and R2, and for counts their deviance.

{TRUST}"""


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    columns = (
        *("--private FILE", "--label-column NAME", "--labels FILE", "--id NAME", "--group-column NAME"),
        "--exposure-column NAME",
    )
    texts = {
        "MODEL": "file that `fit --out` wrote",
        **{words: ROW_FLAGS[words] for words in columns},
        "--target-bounds LOW,HIGH": "for a regression: bounds of the targets from prior knowledge, to which "
        "they are cut",
        "--by COLUMN[,COLUMN]": "evaluate by groups of rows: one or two columns of the model",
        "--by-values A,B[;C,D]": "the groups, which must not be read from private rows; those of two columns "
        "have a semicolon",
    }
    parser.add("rows", texts, required=["--private"])
    add_text_to(parser, "default: commas (tabs for .tsv), decimal points, UTF-8; the file is not asked")
    add_terms_to(parser, private_evaluation, noise="--noise")
    add_report_to(parser, "metrics")


def run(args: argparse.Namespace) -> None:
    """Check everything, charge the ledger, evaluate, write and print."""
    by = _groups(args)
    check_outputs({"--report": args.report}, [args.model, *inputs_of(args)], force=args.force)
    model, encoder = unpacked(load_model(args.model))
    labels, form, classes = ("--labels", args.labels), text_form(args), classes_of(model)
    file, is_regression = ("--private", args.private), classes is None
    rows = read_like_training(args, model, encoder, file, form, labels, targets=is_regression)
    if classes is not None:
        source, remedy = f"of MODEL {args.model}", "leave rows of other classes out"
        y = as_classes(rows.y, np.asarray(classes), rows.where, source, remedy, private=True)
        rows = replace(rows, y=y)
    own = passed(args, private_evaluation)
    measured = private_evaluation(
        model,
        rows.X,
        rows.y,
        groups=rows.aside.get("--group-column"),
        exposure=rows.aside.get("--exposure-column"),
        **by,
        target_bounds=args.target_bounds,
        ledger=charged_data_set(args, own),
        **own,
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
    print_and_write(args, measured, measured.privacy, facts, "Private evaluation", sections)


def _groups(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of groups of rows."""
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
