"""``predict``: a model and rows in, a CSV file of predictions out."""

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

from .files import load_model
from .messages import TRUST, InputError
from .outputs import check_outputs, write_together
from .rows import align, read_features

_DESCRIPTION = f"""\
Predict the class of each row and print it as CSV, or write it to a file.

{TRUST}

Predictions protect the rows that the model was trained on, not the rows that are predicted."""


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "predict", help="predict with a saved model (load only models you trust)", description=_DESCRIPTION
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=Path, metavar="MODEL", help="file that `fit --out` wrote")
    parser.add_argument("rows", type=Path, metavar="ROWS", help="rows: any format of `fit`")
    parser.add_argument("--label-column", metavar="NAME", help="column of the table to leave aside")
    parser.add_argument("--proba", action="store_true", help="add the probability of each class")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="write here (default: standard output)")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")


def run(args: argparse.Namespace) -> None:
    """Check, predict, write."""
    if args.out is not None:
        if args.out.suffix.lower() != ".csv":
            raise InputError(f"--out {args.out} must end in .csv, since predictions are written as CSV.")
        check_outputs({"--out": args.out}, [args.model, args.rows], force=args.force)
    model = load_model(args.model)
    needed = ("predict", "predict_proba", "classes_") if args.proba else ("predict",)
    absent = [name for name in needed if not hasattr(model, name)]
    if absent:
        raise InputError(
            f"MODEL {args.model} holds a {type(model).__name__} without {absent[0]}; give a fitted "
            "classifier, as `fit --out` writes it."
        )
    X = read_features(args.rows, "ROWS", label_column=args.label_column)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and hasattr(X, "columns"):
        reference = f"the rows that {args.model} was trained on"
        fix = ", and name a label column with --label-column"
        X = align(X, names.tolist(), f"ROWS {args.rows}", reference, fix)
    width = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != width:
        raise InputError(
            f"ROWS {args.rows} has {X.shape[1]} features and MODEL {args.model} was trained on {width}; "
            "make them by the same feature extraction."
        )
    try:
        table = _table(model, X, args.proba)
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error
    if args.out is None:
        sys.stdout.write(table)
    else:
        write_together({args.out: lambda file: file.write(table.encode())})


def _table(model: Any, X: Any, proba: bool) -> str:
    """Predictions as CSV, one line per row after the header."""
    header = ["prediction"]
    columns = [model.predict(X).tolist()]
    if proba:
        header += [f"proba_{label}" for label in model.classes_.tolist()]
        columns += model.predict_proba(X).T.tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()
