"""``predict``: rows, a raw table or images and a model in, a CSV file of predictions out."""

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

from .._utils.frames import is_frame
from .._utils.models import LinearModel, Model, has_several_labels, names_of_features
from ..estimators import PrivatePipeline
from .files import add_text_to, guessed_form, is_table, shape_of, text_form
from .items import read_images
from .messages import EXIT_CODES, TRUST, InputError, library_errors, path_named
from .model_files import load_model, unpacked
from .models import add_reading_to, extracted, make_transformer
from .outputs import check_outputs, write_together
from .rows import FIX, Unlabelled, align, check_same_network, only_for_tables, read_unlabelled

_DESCRIPTION = f"""\
Predict the class of each row and print it as CSV, or write it to a file.

A model that was trained with `fit --encode` takes raw tables. A model that was trained on rows of
`extract` takes such rows, and images: a folder, or a .npy or .npz file of uint8 arrays.

{TRUST}

Predictions protect the rows that the model was trained on, not the rows that are predicted."""


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "predict",
        help="predict with a saved model (load only models you trust)",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path_named, metavar="MODEL", help="file that `fit --out` wrote")
    parser.add_argument(
        "rows", type=path_named, metavar="ROWS", help="rows in any format of `fit`, or images"
    )
    parser.add_argument("--label-column", metavar="NAME", help="column of labels to leave aside")
    parser.add_argument("--group-column", metavar="NAME", help="column of persons to leave aside")
    parser.add_argument(
        "--id",
        metavar="NAME",
        help="column of the table that names rows, to be written next to the predictions; rows of `extract` "
        "and images in a folder are named by their files",
    )
    add_text_to(parser, "default: as the file seems to be written")
    parser.add_argument("--proba", action="store_true", help="add the probability of each class")
    parser.add_argument(
        "--out", type=path_named, metavar="FILE.csv", help="write here (default: standard output)"
    )
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    images = parser.add_argument_group("images")
    images.add_argument("--weights", metavar="PATH", help="the network's checkpoint, if it was moved")
    add_reading_to(images)


def run(args: argparse.Namespace) -> None:
    """Check the arguments, predict and write the predictions."""
    if args.out is not None:
        if args.out.suffix.lower() != ".csv":
            raise InputError(f"--out {args.out} must end in .csv, since predictions are written as CSV.")
        check_outputs({"--out": args.out}, [args.model, args.rows], force=args.force)
    model, encoder = unpacked(load_model(args.model))
    needed = ("predict", "predict_proba", "classes_") if args.proba else ("predict",)
    absent = [name for name in needed if not hasattr(model, name)]
    if absent:
        raise InputError(
            f"MODEL {args.model} holds a {type(model).__name__} without {absent[0]}; give a fitted "
            "classifier, as `fit --out` writes it."
        )
    rows = _from_images(args, encoder) if _are_images(args.rows) else _from_file(args, model, encoder)
    width = getattr(model, "n_features_in_", rows.X.shape[1])
    if rows.X.shape[1] != width:
        raise InputError(
            f"ROWS {args.rows} has {rows.X.shape[1]} features and MODEL {args.model} was trained on {width}; "
            "make them by the same feature extraction."
        )
    with library_errors({}):
        table = _table(model, rows, args.proba)
    if args.out is None:
        sys.stdout.write(table)
    else:
        write_together({args.out: lambda file: file.write(table.encode())})


def _are_images(path: Path) -> bool:
    """Whether the path is a folder, or a NumPy file of whole numbers in more than two dimensions."""
    if path.is_dir():
        return True
    if path.suffix.lower() not in (".npy", ".npz"):
        return False
    shape, dtype = shape_of(path, f"ROWS {path}")
    return len(shape) > 2 and dtype.kind in "iu"


def _from_images(args: argparse.Namespace, encoder: dict[str, Any] | None) -> Unlabelled:
    """Rows of images, by the network that made the training rows."""
    if encoder is None:
        raise InputError(
            f"ROWS {args.rows} holds images, and MODEL {args.model} was not trained on rows that `extract` "
            "wrote; extract rows with the network of the training rows first."
        )
    only_for_tables(args, f"ROWS {args.rows} holds images")
    items = read_images(args.rows, None)
    verbose = int(sys.stderr.isatty() and not args.quiet)
    settings = {"device": args.device, "on_error": args.on_error, "verbose": verbose}
    weights = encoder["weights"] if args.weights is None else args.weights
    transformer = make_transformer(encoder["model"], weights, encoder["options"], settings)
    extraction = extracted(transformer, items.X, f"ROWS {args.rows}", "predict")
    what = f"the images of ROWS {args.rows} and the training rows of MODEL {args.model}"
    check_same_network(encoder["report"], extraction.report, what)
    names = None if items.files is None else ("file", items.files[extraction.index].tolist())
    return Unlabelled(extraction.features, names)


def _from_file(args: argparse.Namespace, model: Model, encoder: dict[str, Any] | None) -> Unlabelled:
    """Rows of a raw table or of numbers, with the columns of the training rows."""
    where, features = f"ROWS {args.rows}", names_of_features(model)
    names = [] if features is None else [*features]
    if not is_table(args.rows, where):
        only_for_tables(args, f"{where} has no columns")
    raw, reference = isinstance(model, PrivatePipeline), trained(args) if names else ""
    left_aside = args.label_column, args.group_column
    form = guessed_form(args.rows, text_form(args), where)
    rows = read_unlabelled(
        args.rows, where, left_aside, form, args.id, raw=raw, public=names, reference=reference
    )
    if encoder is not None and rows.report is not None:
        what = f"{where} and the training rows of MODEL {args.model}"
        check_same_network(encoder["report"], rows.report, what)
    if not names or not is_frame(rows.X):
        return rows
    return Unlabelled(align(rows.X, names, where, reference, FIX), rows.names)


def trained(args: argparse.Namespace) -> str:
    """How messages name the rows that a model was trained on."""
    return f"the rows that {args.model} was trained on"


def _table(model: LinearModel, rows: Unlabelled, proba: bool) -> str:
    """Predictions as CSV, one line per row after the header; names of rows are the first column."""
    predicted = model.predict(rows.X)
    header, columns = ["prediction"], [predicted.tolist()]
    if has_several_labels(model):
        header, columns = [f"prediction_{label}" for label in model.classes_.tolist()], predicted.T.tolist()
    if rows.names is not None:
        header, columns = [rows.names[0], *header], [rows.names[1], *columns]
    if proba:
        header += [f"proba_{label}" for label in model.classes_.tolist()]
        columns += model.predict_proba(rows.X).T.tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()
