"""``predict``: rows, a raw table or images and a model in, a CSV file of predictions out."""

import argparse
import csv
import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._files.text import TextForm
from .._utils.frames import is_frame
from .._utils.models import (
    LinearModel,
    Model,
    has_several_labels,
    last_step,
    names_of_features,
    predicts_rates,
)
from ..estimators import PrivatePipeline
from ..features import FrozenFeatures
from .arguments import Parser
from .files import add_text_to, guessed_form, is_table, shape_of, text_form
from .images import READING_FLAGS, extract_images, make_transformer, read_images
from .messages import TRUST, InputError
from .model_files import load_model, unpacked
from .outputs import check_outputs, write_together
from .rows import FIX, FileRows, align, check_same_network, named_columns, only_for_tables, read_rows

SUMMARY = "predict with a saved model (load only models you trust)"
DESCRIPTION = f"""\
Predict a class, number or rate for each row, and print them as CSV or write them to a file.

A model that was trained with `fit --encode` takes raw tables. A model that was trained on rows of
`extract` takes such rows, and images: a folder, or a .npy or .npz file of uint8 arrays.

{TRUST}

Predictions protect the rows that the model was trained on, not the rows that are predicted."""


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    texts = {
        "MODEL": "file that `fit --out` wrote",
        "ROWS": "rows in any format of `fit`, or images",
        "--label-column NAME": "column of labels to leave aside",
        "--group-column NAME": "column of persons to leave aside",
        "--exposure-column NAME": "of a model of counts: column with the time or number at risk, by which "
        "rates are multiplied",
        "--id NAME": "column of the table that names rows, to be written next to the predictions; rows of "
        "`extract` and images in a folder are named by their files",
    }
    parser.add("rows", texts)
    add_text_to(parser, "default: as the file seems to be written")
    texts = {
        "--proba": "add the probability of each class",
        "--out FILE.csv": "write here (default: standard output)",
        "--force": "replace an output that exists",
        "--quiet": "show no progress bar",
    }
    parser.add("output", texts)
    parser.add("images", {"--weights PATH": "the network's checkpoint, if it was moved"})
    parser.add_parameters("images", FrozenFeatures, **READING_FLAGS)


def run(args: argparse.Namespace) -> None:
    """Check the arguments, predict and write the predictions."""
    check_outputs({"--out": args.out}, [args.model, args.rows], force=args.force, ending=".csv")
    model, encoder = unpacked(load_model(args.model))
    needed = ("predict", *(("predict_proba", "classes_") if args.proba else ()), "n_features_in_")
    absent = [name for name in needed if not hasattr(model, name)]
    if absent:
        raise InputError(
            f"MODEL {args.model} holds a {type(model).__name__} without {absent[0]}; give a fitted "
            "classifier, as `fit --out` writes it."
        )
    if _are_images(args.rows):
        rows = _from_images(args, encoder)
    else:
        form = guessed_form(args.rows, text_form(args), f"ROWS {args.rows}")
        rows = read_like_training(args, model, encoder, ("ROWS", args.rows), form)
    if rows.X.shape[1] != model.n_features_in_:
        raise InputError(
            f"ROWS {args.rows} has {rows.X.shape[1]} features and MODEL {args.model} was trained on "
            f"{model.n_features_in_}; make them by the same feature extraction."
        )
    if args.exposure_column is not None and not predicts_rates(last_step(model)):
        raise InputError(
            f"--exposure-column {args.exposure_column} is for models of counts, and MODEL {args.model} is "
            "none; leave it out."
        )
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


def _from_images(args: argparse.Namespace, encoder: dict[str, Any] | None) -> FileRows:
    """Rows of images, by the network that made the training rows."""
    if encoder is None:
        raise InputError(
            f"ROWS {args.rows} holds images, and MODEL {args.model} was not trained on rows that `extract` "
            "wrote; extract rows with the network of the training rows first."
        )
    only_for_tables(args, f"ROWS {args.rows} holds images")
    items = read_images(args.rows, None)
    weights = encoder["weights"] if args.weights is None else args.weights
    transformer = make_transformer(args, encoder["model"], weights, encoder["options"])
    extraction = extract_images(transformer, items.X, f"ROWS {args.rows}", "predict")
    what = f"the images of ROWS {args.rows} and the training rows of MODEL {args.model}"
    check_same_network(encoder["report"], extraction.report, what)
    names = None if items.files is None else ("file", items.files[extraction.index].tolist())
    return FileRows(extraction.features, f"ROWS {args.rows}", names=names)


def read_like_training(
    args: argparse.Namespace,
    model: Model,
    encoder: dict[str, Any] | None,
    file: tuple[str, Path],
    form: TextForm,
    labels: tuple[str, Path | None] | None = None,
    *,
    targets: bool = False,
) -> FileRows:
    """Rows of a file, by its flag, as a model takes them, with labels if these are asked for."""
    flag, path = file
    names = names_of_features(model)
    reference = "" if names is None else f"the rows that {args.model} was trained on"
    if labels is None and not is_table(path, f"{flag} {path}"):
        only_for_tables(args, f"{flag} {path} has no columns")
    rows = read_rows(
        path,
        flag,
        named_columns(args),
        form,
        labels,
        optional=["--label-column", "--group-column"] if labels is None else (),
        raw=isinstance(model, PrivatePipeline),
        public=() if names is None else [*names],
        reference=reference,
        targets=targets,
    )
    if encoder is not None:
        what = f"{rows.where} and the training rows of MODEL {args.model}"
        check_same_network(encoder["report"], rows.report, what)
    if names is None or not is_frame(rows.X):
        return rows
    return replace(rows, X=align(rows.X, names, rows.where, reference, FIX))


def _table(model: LinearModel, rows: FileRows, proba: bool) -> str:
    """Predictions as CSV, one line per row after the header; names of rows are the first column."""
    predicted = model.predict(rows.X)
    if "--exposure-column" in rows.aside:
        predicted = predicted * rows.aside["--exposure-column"]
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
