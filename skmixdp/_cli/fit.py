"""``fit``: files of rows in, a model and its privacy report out."""

import argparse
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .._files.formats import FORMATS
from .._files.text import has_tabs
from .._utils.frames import is_frame
from .._utils.validation import listed
from ..additive import AdditiveDPClassifier, AdditiveDPRegressor
from ..additive._counts import AdditiveDPPoissonRegressor
from ..estimators import MixedDPLogisticRegression, MixedDPRidge, private_pipeline, resumable
from ..inference._count_regressor import MixedDPPoissonRegressor
from ..preprocessing import TableEncoder
from .arguments import Parser, add_terms_to, charged_data_set, passed
from .files import SCALE_FLAG, add_text_to, declared_columns, guessed_form, is_table, read_scales, text_form
from .labels import as_classes, read_classes, read_weights, typed_labels
from .messages import EXIT_CODES, InputError
from .model_files import EncodedModel, card_page, save_model
from .outputs import Writer, check_outputs, write_together
from .rows import ROW_FLAGS, FileRows, align, align_columns, named_columns, only_for_tables, read_rows

Array = NDArray[Any]

#: The estimators, by --model and the kind of labels.
_ESTIMATORS: dict[tuple[str, str], Any] = {
    ("linear", ""): MixedDPLogisticRegression,
    ("linear", "--regression"): MixedDPRidge,
    ("linear", "--counts"): MixedDPPoissonRegressor,
    ("additive", ""): AdditiveDPClassifier,
    ("additive", "--regression"): AdditiveDPRegressor,
    ("additive", "--counts"): AdditiveDPPoissonRegressor,
}

SUMMARY = "train a private model on files"
DESCRIPTION = """\
Train a differentially private classifier, a regression with --regression, or a model of counts with
--counts, and save it with its privacy report.

Files: .csv, .tsv (also .gz or .xz; with a line of column names), .parquet, .arrow and
.feather (need pyarrow), .npy (rows, with the labels in a file of their own), .npz (arrays X and y).
Nothing is written, and no noise is drawn, unless the input and the outputs are in order."""

_EPILOG = f"""\
examples:
  skmixdp fit --private patients.csv --public survey.csv --label-column outcome --id name \\
      --encode public --epsilon 1 --out model.joblib --report report.html
  skmixdp fit --private private.npz --public public.npz --epsilon 1 --out head.joblib

{EXIT_CODES}"""


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    classes = (
        "all class labels; without it they are those of the public rows, and without public rows they are "
        "read from the private labels, which the guarantee does not cover"
    )
    held_out = (
        "leave N public rows, drawn at random, out of the fit, and print the model's score on them, which "
        "costs no budget"
    )
    more = {"--unlabeled FILE": "public rows without labels, of the same features"}
    add_rows_to(parser, {"--classes A,B,...": classes, **more, "--hold-out-public N": held_out})
    add_terms_to(
        parser,
        MixedDPLogisticRegression,
        n_steps="--n-steps",
        noise_multiplier="--noise-multiplier",
        noise="--noise",
    )
    parser.set_defaults(model="linear")
    texts = {
        "--model {linear,additive}": "a straight line in each column, or a curve in each numeric column "
        "(default: linear)",
        "--regression": "labels are numbers to predict",
        "--counts": "labels are counts, whose rate is to be predicted",
        "--target-bounds LOW,HIGH": "of a regression without public rows: where most targets lie, from prior "
        "knowledge; they are centred by the middle and scaled by a quarter of the distance",
        **SCALE_FLAG,
        "--class-weight balanced|A=1,B=5,...": "weights of classes, or balanced, which takes noisy counts of "
        "the classes from the budget",
    }
    parser.add("model", texts)
    parser.add_parameters(
        "model", MixedDPLogisticRegression, algorithm="--algorithm how the model is trained"
    )
    texts = {
        "--out FILE": "the model: without pickle if FILE ends in .safetensors, else by joblib",
        "--report FILE": "the privacy report (.json or .html)",
        "--checkpoint FILE": "keep released numbers there: after an interruption, the same command goes on "
        "without a second charge to its --ledger; removed at the end",
        "--force": "replace outputs that exist",
        "--quiet": "show no progress bar and no report",
    }
    parser.add("output", texts, required=["--out"])


def add_rows_to(parser: Parser, texts: dict[str, str]) -> None:
    """Declare the arguments of rows that commands share, and others with their ``texts``."""
    parser.add("rows", ROW_FLAGS | texts, required=["--private"])
    add_text_to(
        parser,
        "default: as the public table seems to be written, and else commas (tabs for .tsv), decimal points "
        "and UTF-8; the private table is not asked",
    )


def run(args: argparse.Namespace) -> None:
    """Check everything, train, write, and print the report."""
    labels = "--counts" if args.counts else "--regression" if args.regression else ""
    estimator = _ESTIMATORS[args.model, labels]
    kind = "--model additive" if args.model == "additive" else labels or "classes"
    own = passed(args, estimator, estimator.fit, kind=kind)
    if args.target_bounds is not None and args.public is not None:
        raise InputError(
            "--target-bounds is for --regression without --public, whose targets determine centre and scale; "
            "leave it out."
        )
    others = (".onnx", ".json", ".html", *FORMATS)
    wrong = next((ending for ending in others if args.out.name.lower().endswith(ending)), None)
    if wrong is not None:
        raise InputError(
            f"--out {args.out} ends in {wrong}, and a model is written as .safetensors, or else as a pickle; "
            "choose another ending, and write ONNX graphs by `skmixdp export`."
        )
    check_outputs({"--out": args.out, "--report": args.report}, inputs_of(args), force=args.force)
    inputs = read_inputs(args, targets=bool(labels))
    inputs, held_out = _split_public_rows(args, inputs, own.get("random_state"), targets=bool(labels))
    own = _declared_parameters(args, own, labels, inputs)
    with nullcontext() if args.checkpoint is None else resumable(args.checkpoint):
        model = _train(args, estimator, own, inputs)
        encoder = inputs.private.encoder
        saved = model if encoder is None else EncodedModel(model, {"images": encoder})
        writers: dict[Path, Writer] = {args.out: lambda file: save_model(saved, file, args.out.suffix)}
        if args.report is not None:
            is_json = args.report.suffix.lower() == ".json"
            text = f"{model.privacy_.to_json()}\n" if is_json else card_page(saved)
            writers[args.report] = lambda file: file.write(text.encode())
        write_together(writers)
    if not args.quiet:
        sys.stdout.write(f"{model.privacy_}\n")
        if held_out is not None:
            name = {"": "accuracy", "--regression": "R2", "--counts": "D2"}[labels]
            score = model.score(held_out.X, held_out.y, **_exposures(held_out))
            sys.stdout.write(
                f"Held-out public score\n  {name} {score:.3f} on "
                f"{len(held_out.y)} public rows that the fit has not seen, at no cost\n"
            )


def inputs_of(args: argparse.Namespace) -> list[Path | None]:
    """Files of rows, and of what is known of them, that the command reads."""
    declared = None if args.encode in (None, "public") else Path(args.encode)
    return [args.private, args.public, args.labels, args.public_labels, args.unlabeled, args.scale, declared]


class Inputs(NamedTuple):
    """Rows with columns in one order, what is declared of columns, and the declared classes."""

    private: FileRows
    public: FileRows | None
    unlabeled: Any
    columns: dict[str, Any] | None
    classes: Array | None


def read_inputs(args: argparse.Namespace, *, targets: bool) -> Inputs:
    """Read and check all rows of a command; labels are ``targets``, or classes."""
    flags = {"--public": args.public, "--unlabeled": args.unlabeled}
    public_files = {flag: path for flag, path in flags.items() if path is not None}
    if args.encode == "public" and not public_files:
        raise InputError(
            "--encode public takes its facts from public rows; add --public or --unlabeled, or declare "
            "bounds and categories with --encode FILE.json."
        )
    if args.encode not in (None, "public") and not args.encode.lower().endswith(".json"):
        raise InputError(f"--encode {args.encode} must be public, or the name of a .json file.")
    for flag, path in public_files.items():
        if path.resolve() == args.private.resolve():
            raise InputError(
                f"{flag} {path} is the file of --private, and public rows are not protected; give public "
                f"rows of their own, or leave {flag} out."
            )
    files = {"--private": args.private, "--public": args.public}
    if not any(is_table(path, f"{flag} {path}") for flag, path in files.items() if path is not None):
        only_for_tables(args, "no file here has columns")
    named, form, public, unlabeled = named_columns(args), text_form(args), None, None
    forms = {flag: guessed_form(path, form, f"{flag} {path}") for flag, path in public_files.items()}
    form = next(iter(forms.values()), form)
    how: dict[str, Any] = {"raw": args.encode is not None, "targets": targets}
    if args.public is not None:
        labels = "--public-labels", args.public_labels
        public = read_rows(args.public, "--public", named, form, labels, optional=["--group-column"], **how)
    if args.separator is None and has_tabs(args.private):
        form = replace(form, separator=None, decimal=args.decimal)
    of_public = public.X.columns if public is not None and is_frame(public.X) else ()
    how |= {"public": of_public, "reference": public.where if public is not None and len(of_public) else ""}
    private = read_rows(args.private, "--private", named, form, ("--labels", args.labels), **how)
    columns = None if args.encode in (None, "public") else declared_columns(Path(args.encode))
    if public is not None:
        public = align_columns(private, public)
        if is_frame(public.X) and (
            unknown := [name for name in columns or () if name not in public.X.columns]
        ):
            raise InputError(f"--encode {args.encode} names {listed(unknown)}, which {public.where} lacks.")
    elif columns is not None:
        private = replace(private, X=align(private.X, [*columns], private.where, f"--encode {args.encode}"))
    if args.unlabeled is not None:
        form, raw = forms["--unlabeled"], args.encode is not None
        rows = read_rows(args.unlabeled, "--unlabeled", named, form, optional=[*named], raw=raw)
        unlabeled = align_columns(private, rows).X
    if targets:
        return Inputs(private, public, unlabeled, columns, None)
    private, public, classes = _with_classes(args, private, public)
    return Inputs(private, public, unlabeled, columns, classes)


def _with_classes(
    args: argparse.Namespace, private: FileRows, public: FileRows | None
) -> tuple[FileRows, FileRows | None, Array | None]:
    """Rows whose labels are spelt like the declared or public classes, and the declared classes."""
    declared = None
    if public is not None and public.spelt and args.classes is None:
        public = replace(public, y=typed_labels(public.y, public.where), spelt=False)
    if args.classes is not None:
        with_type = None if public is None or public.spelt else public.y
        declared = read_classes(args.classes, with_type)
        classes, source = declared, "--classes"
    elif public is not None:
        classes, source = np.unique(public.y), f"the labels of {public.where}"
    else:
        own = typed_labels(private.y, private.where) if private.spelt else private.y
        return replace(private, y=own), None, None
    if public is not None:
        public = replace(public, y=as_classes(public.y, classes, public.where, source))
    y = as_classes(private.y, classes, private.where, source, private=True)
    return replace(private, y=y), public, declared


def _split_public_rows(
    args: argparse.Namespace, inputs: Inputs, seed: Any, *, targets: bool
) -> tuple[Inputs, FileRows | None]:
    """The inputs without public rows that are held out, whose classes count as declared, and these rows."""
    public = inputs.public
    if public is None or args.hold_out_public is None:
        return inputs, None
    n, left = args.hold_out_public, len(public.y) - args.hold_out_public
    if left < 1:
        raise InputError(f"--hold-out-public {n} leaves none of {len(public.y)} public rows; hold out fewer.")
    parts: Any = train_test_split(np.arange(len(public.y)), test_size=n, random_state=seed)
    fitted, scored = (
        replace(
            public,
            X=public.X.iloc[rows] if is_frame(public.X) else public.X[rows],
            y=public.y[rows],
            aside={flag: np.asarray(column)[rows] for flag, column in public.aside.items()},
        )
        for rows in parts
    )
    is_open = inputs.classes is None and not targets
    return inputs._replace(public=fitted, classes=np.unique(public.y) if is_open else inputs.classes), scored


def _declared_parameters(
    args: argparse.Namespace, own: dict[str, Any], labels: str, inputs: Inputs
) -> dict[str, Any]:
    """The ``own`` parameters, and those whose flags name files, bounds or classes."""
    own = own if args.scale is None else own | {"scale": read_scales(args.scale)}
    if args.target_bounds is not None:
        low, high = args.target_bounds
        own |= {"target_center": (low + high) / 2, "target_scale": (high - low) / 4}
    if not labels:
        own["classes"] = inputs.classes
    if args.class_weight is not None:
        classes = inputs.classes
        if classes is None:
            classes = np.unique((inputs.private if inputs.public is None else inputs.public).y)
        own["class_weight"] = read_weights(args.class_weight, classes)
    return own


def _exposures(rows: FileRows | None, name: str = "exposure") -> dict[str, Any]:
    """The exposures of counts, as an argument of this name; nothing without them."""
    exposures = None if rows is None else rows.aside.get("--exposure-column")
    return {} if exposures is None else {name: exposures}


def _train(args: argparse.Namespace, estimator: Any, own: dict[str, Any], inputs: Inputs) -> Any:
    """The estimator with its ``own`` parameters, or a pipeline of an encoder and it, fitted."""
    private, public = inputs.private, inputs.public
    if {"n_steps", "noise_multiplier"} <= own.keys():
        own = {"epsilon": None} | own
    model = estimator(**own, ledger=charged_data_set(args, own))
    if not args.counts:
        model.set_params(verbose=int(sys.stderr.isatty() and not args.quiet))
    rows = {} if public is None else {"X_pub": public.X, "y_pub": public.y}
    rows |= {} if inputs.unlabeled is None else {"X_unlabeled": inputs.unlabeled}
    rows |= _exposures(private) | _exposures(public, "exposure_pub")
    model = model if args.encode is None else private_pipeline(TableEncoder(inputs.columns), model)
    return model.fit(private.X, private.y, **rows, groups=private.aside.get("--group-column"))
