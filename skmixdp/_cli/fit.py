"""``fit``: files of rows in, a model and its privacy report out."""

import argparse
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .._files.formats import FORMATS
from .._files.text import has_tabs
from .._utils.frames import is_frame
from .._utils.models import Model
from .._utils.validation import listed
from ..additive import AdditiveDPClassifier, AdditiveDPRegressor
from ..estimators import (
    MixedDPLogisticRegression,
    MixedDPRidge,
    PrivatePipeline,
    RowMapping,
    private_pipeline,
    resumable,
)
from ..preprocessing import TableEncoder
from ..privacy.noise import warn_of_seed
from .columns import add_scale_to, declared_columns, read_scales
from .files import add_text_to, guessed_form, is_table, text_form
from .labels import as_classes, read_classes, read_weights, typed
from .messages import EXIT_CODES, InputError, Parser, bounds, count, flags_of, library_errors, path_named
from .model_files import EncodedModel, page_of, save_model
from .outputs import Writer, check_outputs, write_together
from .rows import (
    FileRows,
    align,
    check_same_network,
    check_together,
    only_for_tables,
    read_labelled,
    read_unlabelled,
)
from .terms import add_budget_to, add_terms_to, charged_data_set, check_terms, positive

Array = NDArray[Any]

#: The estimators, by --model and whether --regression is given.
_KINDS: dict[tuple[str, bool], Any] = {
    ("linear", False): MixedDPLogisticRegression,
    ("linear", True): MixedDPRidge,
    ("additive", False): AdditiveDPClassifier,
    ("additive", True): AdditiveDPRegressor,
}

_DESCRIPTION = """\
Train a differentially private classifier, or a regression with --regression, and save it with its
privacy report.

Files: .csv, .tsv (also .gz or .xz; with a line of column names), .parquet, .arrow and
.feather (need pyarrow), .npy (rows, with the labels in a file of their own), .npz (arrays X and y).
Nothing is written, and no noise is drawn, unless the input and the outputs are in order."""

_EPILOG = f"""\
examples:
  skmixdp fit --private patients.csv --public survey.csv --label-column outcome --id name \\
      --encode public --epsilon 1 --out model.joblib --report report.html
  skmixdp fit --private private.npz --public public.npz --epsilon 1 --out head.joblib

{EXIT_CODES}"""

#: Flags of the parameters that messages name; epsilon may be that of a ledger.
_FLAGS = flags_of(
    *("n_steps", "noise_multiplier", "classes", "noise", "neighboring", "class_weight", "scale"),
    norm="--row-norm",
    random_state="--seed",
    X_pub="--public",
    columns="--encode",
    X_unlabeled="--unlabeled",
    **{"target_scale and target_center": "--target-bounds"},
)


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "fit", help="train a private model on files", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.set_defaults(run=run, flags=_FLAGS)
    rows = add_rows_to(
        parser,
        "all class labels; without it they are those of the public rows, and without public rows "
        "they are read from the private labels, which the guarantee does not cover",
    )
    rows.add_argument(
        "--unlabeled",
        type=path_named,
        metavar="FILE",
        help="public rows without labels, of the same features",
    )
    rows.add_argument(
        "--hold-out-public",
        type=count,
        metavar="N",
        help="leave N public rows, drawn at random, out of the fit, and print the model's score on them, "
        "which costs no budget",
    )
    budget = add_budget_to(
        parser, help="privacy budget (default: 1, or what --n-steps and --noise-multiplier cost together)"
    )
    budget.add_argument("--n-steps", type=count, help="number of steps (default: the algorithm's rule)")
    budget.add_argument(
        "--noise-multiplier", type=positive, help="noise over sensitivity (default: what the budget allows)"
    )
    add_terms_to(
        parser,
        budget,
        "discrete noise leaves no low-order bits to attack, is slower, and needs opendp "
        "(default: %(default)s)",
    )
    _add_model_to(parser)
    _add_output_to(parser)


def add_rows_to(parser: Parser, classes_help: str) -> Any:
    """Declare the arguments of rows that commands share, and return their group."""
    rows = parser.add_argument_group("rows")
    rows.add_argument("--private", type=path_named, required=True, metavar="FILE", help="private rows")
    rows.add_argument("--public", type=path_named, metavar="FILE", help="public rows, with the same features")
    rows.add_argument("--label-column", metavar="NAME", help="label column of the tables")
    rows.add_argument(
        "--labels", type=path_named, metavar="FILE", help="labels of the private rows (.npy, .csv)"
    )
    rows.add_argument(
        "--public-labels", type=path_named, metavar="FILE", help="labels of the public rows (.npy, .csv)"
    )
    rows.add_argument("--classes", metavar="A,B,...", help=classes_help)
    rows.add_argument("--id", metavar="NAME", help="column of the tables that names rows, to leave aside")
    rows.add_argument(
        "--group-column",
        metavar="NAME",
        help="column of the private table with ids of persons, all of whose rows are then protected together",
    )
    rows.add_argument(
        "--encode",
        metavar="public|FILE.json",
        help="turn columns of tables into numbers, text and dates among them, by what public rows hold, by "
        "declared bounds, categories and kinds, or by both; the model then takes raw tables",
    )
    add_text_to(
        parser,
        "default: as the public table seems to be written, and else commas (tabs for .tsv), decimal points "
        "and UTF-8; the private table is not asked",
    )
    return rows


def _add_model_to(parser: Parser) -> None:
    """Declare the arguments of the model."""
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        choices=("linear", "additive"),
        default="linear",
        help="a straight line in each column, or a curve in each numeric column (default: %(default)s)",
    )
    model.add_argument("--regression", action="store_true", help="labels are numbers to predict")
    model.add_argument(
        "--target-bounds",
        type=bounds,
        metavar="LOW,HIGH",
        help="of a regression without public rows: where most targets lie, from prior knowledge; they are "
        "centred by the middle and scaled by a quarter of the distance",
    )
    add_scale_to(model)
    model.add_argument(
        "--class-weight",
        metavar="balanced|A=1,B=5,...",
        help="weights of classes, or balanced, which takes noisy counts of the classes from the budget",
    )
    algorithms = tuple(MixedDPLogisticRegression._algorithms)
    model.add_argument("--algorithm", choices=algorithms, default="auto", help="default: %(default)s")
    model.add_argument("--no-center", action="store_true", help="do not subtract the mean of the public rows")
    model.add_argument(
        "--row-norm",
        choices=("auto", "unit", "clip", "none"),
        help="how the lengths of rows are bounded (default: auto, or clip for a regression)",
    )
    model.add_argument("--no-intercept", action="store_true", help="train no intercept")


def _add_output_to(parser: Parser) -> None:
    """Declare the arguments of the output."""
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=path_named,
        required=True,
        metavar="FILE",
        help="the model: without pickle if FILE ends in .safetensors, else by joblib",
    )
    output.add_argument(
        "--report", type=path_named, metavar="FILE", help="the privacy report (.json or .html)"
    )
    output.add_argument(
        "--checkpoint",
        type=path_named,
        metavar="FILE",
        help="keep released numbers there: after an interruption, the same command goes on without a second "
        "charge to its --ledger; removed at the end",
    )
    output.add_argument("--force", action="store_true", help="replace outputs that exist")
    output.add_argument("--quiet", action="store_true", help="show no progress bar and no report")


def run(args: argparse.Namespace) -> None:
    """Check everything, train, write, and print the report."""
    if args.epsilon is not None and args.n_steps is not None and args.noise_multiplier is not None:
        raise InputError(
            f"--epsilon {args.epsilon:g}, --n-steps {args.n_steps} and --noise-multiplier "
            f"{args.noise_multiplier:g} cannot all be given, since two determine the third; leave one out."
        )
    check_terms(args)
    for flag, passed in (("--classes", args.classes), ("--class-weight", args.class_weight)):
        if args.regression and passed is not None:
            raise InputError(f"{flag} {passed} is for classes and --regression has none; drop one of them.")
    if args.target_bounds is not None and not (args.regression and args.public is None):
        raise InputError(
            "--target-bounds is for --regression without --public, whose targets determine centre and scale; "
            "leave it out."
        )
    if args.model == "additive":
        for flag, passed in (
            (f"--algorithm {args.algorithm}", args.algorithm != "auto"),
            (f"--n-steps {args.n_steps}", args.n_steps is not None),
            (f"--noise-multiplier {args.noise_multiplier}", args.noise_multiplier is not None),
            ("--no-center", args.no_center),
            (f"--row-norm {args.row_norm}", args.row_norm is not None),
            ("--no-intercept", args.no_intercept),
        ):
            if passed:
                raise InputError(f"{flag} is not for --model additive; leave it out.")
    if args.hold_out_public is not None and args.public is None:
        raise InputError(f"--hold-out-public {args.hold_out_public} needs rows in --public; add them.")
    if args.checkpoint is not None:
        for flag, value in (("--hold-out-public", args.hold_out_public), ("--seed", args.seed)):
            if value is not None:
                raise InputError(
                    f"{flag} {value} draws anew each time, so --checkpoint {args.checkpoint} cannot repeat "
                    "the fit; drop one of them."
                )
        if args.ledger is None:
            raise InputError(
                f"--checkpoint {args.checkpoint} needs a --ledger, which records each step; add it."
            )
    others = (".onnx", ".json", ".html", *FORMATS)
    wrong = next((ending for ending in others if args.out.name.lower().endswith(ending)), None)
    if wrong is not None:
        raise InputError(
            f"--out {args.out} ends in {wrong}, and a model is written as .safetensors, or else as a pickle; "
            "choose another ending, and write ONNX graphs by `skmixdp export`."
        )
    inputs = [args.private, args.public, args.labels, args.public_labels, args.unlabeled, args.scale]
    check_outputs({"--out": args.out, "--report": args.report}, inputs, force=args.force)
    private, public, columns = read_both(args)
    unlabeled = _read_unlabeled(args, private)
    check_together(private, public)
    private, public, classes = with_classes(args, private, public)
    public, held_out, classes = _held_out(args, public, classes)
    with nullcontext() if args.checkpoint is None else resumable(args.checkpoint):
        model = _train(args, private, public, columns, classes, unlabeled)
        saved = model if private.encoder is None else EncodedModel(model, {"images": private.encoder})
        writers: dict[Path, Writer] = {args.out: lambda file: save_model(saved, file, args.out.suffix)}
        if args.report is not None:
            writers[args.report] = lambda file: file.write(_written(saved, args.report).encode())
        write_together(writers)
    if not args.quiet:
        sys.stdout.write(f"{model.privacy_}\n")
        if held_out is not None:
            name = "R2" if args.regression else "accuracy"
            sys.stdout.write(
                f"Held-out public score\n  {name} {model.score(held_out.X, held_out.y):.3f} on "
                f"{len(held_out.y)} public rows that the fit has not seen, at no cost\n"
            )


def _written(model: Model | EncodedModel, path: Path) -> str:
    """The text of a model's report, as JSON or HTML by the ending of its file."""
    return f"{model.privacy_.to_json()}\n" if path.suffix.lower() == ".json" else page_of(model)


def read_both(args: argparse.Namespace) -> tuple[FileRows, FileRows | None, dict[str, Any] | None]:
    """Private rows, public rows (or None) with columns in the same order, and the declared columns."""
    if args.encode == "public" and args.public is None and args.unlabeled is None:
        raise InputError(
            "--encode public takes its facts from public rows; add --public or --unlabeled, or declare "
            "bounds and categories with --encode FILE.json."
        )
    if args.encode not in (None, "public") and not args.encode.lower().endswith(".json"):
        raise InputError(f"--encode {args.encode} must be public, or the name of a .json file.")
    if args.public is None and args.public_labels is not None:
        raise InputError(f"--public-labels {args.public_labels} was given without --public; add the rows.")
    _refuse_private(args, "--public", args.public)
    files = [(flag, path) for flag, path in (("--private", args.private), ("--public", args.public)) if path]
    if not any(is_table(path, f"{flag} {path}") for flag, path in files):
        only_for_tables(args, "no file here has columns")
    how: dict[str, Any] = {
        "id_column": args.id,
        "group_column": args.group_column,
        "weight_column": args.weight_column,
        "exposure_column": args.exposure_column,
        "raw": args.encode is not None,
        "targets": args.regression,
    }
    public = None
    form = text_form(args)
    if args.public is not None:
        form = guessed_form(args.public, form, f"--public {args.public}")
        labels = args.public_labels, "--public-labels"
        public = read_labelled(args.public, "--public", args.label_column, *labels, form, **how)
    elif args.unlabeled is not None:
        form = guessed_form(args.unlabeled, form, f"--unlabeled {args.unlabeled}")
    if args.separator is None and has_tabs(args.private):
        form = replace(form, separator=None, decimal=args.decimal)
    columns_of_public = public.X.columns if public is not None and is_frame(public.X) else ()
    labels = args.labels, "--labels"
    reference = public.where if public is not None and len(columns_of_public) else ""
    how |= {"public": columns_of_public, "reference": reference}
    private = read_labelled(args.private, "--private", args.label_column, *labels, form, **how)
    columns = None if args.encode in (None, "public") else declared_columns(Path(args.encode))
    if public is None:
        if columns is not None:
            aligned = align(private.X, [*columns], private.where, f"--encode {args.encode}")
            private = replace(private, X=aligned)
    elif is_frame(private.X) and is_frame(public.X):
        align(private.X, [*public.X.columns], private.where, public.where)
        public = replace(public, X=public.X[[*private.X.columns]])
        if unknown := [name for name in columns or () if name not in public.X.columns]:
            raise InputError(f"--encode {args.encode} names {listed(unknown)}, which {public.where} lacks.")
    return private, public, columns


def _refuse_private(args: argparse.Namespace, flag: str, path: Path | None) -> None:
    """Refuse private rows as public ones."""
    if path is not None and path.resolve() == args.private.resolve():
        raise InputError(
            f"{flag} {path} is the file of --private, and public rows are not protected; give public rows of "
            f"their own, or leave {flag} out."
        )


def _read_unlabeled(args: argparse.Namespace, private: FileRows) -> Any:
    """Public rows without labels, with columns in the order of the private rows; None without such rows."""
    if args.unlabeled is None:
        return None
    where = f"--unlabeled {args.unlabeled}"
    _refuse_private(args, "--unlabeled", args.unlabeled)
    left_aside = [args.label_column, args.id, args.group_column]
    form = guessed_form(args.unlabeled, text_form(args), where)
    rows = read_unlabelled(args.unlabeled, where, left_aside, form, raw=args.encode is not None)
    if private.report is not None and rows.report is not None:
        check_same_network(private.report, rows.report, f"{where} and {private.where}")
    X = rows.X
    if is_frame(X) and is_frame(private.X):
        align(private.X, [*X.columns], private.where, where)
        X = X[[*private.X.columns]]
    return X


def with_classes(
    args: argparse.Namespace, private: FileRows, public: FileRows | None
) -> tuple[FileRows, FileRows | None, Array | None]:
    """Rows whose labels are spelt like the declared or public classes, and the declared classes."""
    if args.regression:
        return private, public, None
    declared = None
    if public is not None and public.spelt and args.classes is None:
        public = replace(public, y=typed(public.y, public.where), spelt=False)
    if args.classes is not None:
        with_type = None if public is None or public.spelt else public.y
        declared = read_classes(args.classes, with_type)
        classes, source = declared, "--classes"
    elif public is not None:
        classes, source = np.unique(public.y), f"the labels of {public.where}"
    else:
        own = typed(private.y, private.where) if private.spelt else private.y
        return replace(private, y=own), None, None
    if public is not None:
        public = replace(public, y=as_classes(public.y, classes, public.where, source))
    y = as_classes(private.y, classes, private.where, source, private=True)
    return replace(private, y=y), public, declared


def _held_out(
    args: argparse.Namespace, public: FileRows | None, classes: Array | None
) -> tuple[FileRows | None, FileRows | None, Any]:
    """Public rows for the fit, those held out (or None), and the declared or held-out classes."""
    if public is None or args.hold_out_public is None:
        return public, None, classes
    n, left = args.hold_out_public, len(public.y) - args.hold_out_public
    if left < 1:
        raise InputError(f"--hold-out-public {n} leaves none of {len(public.y)} public rows; hold out fewer.")
    if classes is None and not args.regression:
        classes = np.unique(public.y)
    X, X_held, y, y_held = train_test_split(public.X, public.y, test_size=n, random_state=args.seed)
    return replace(public, X=X, y=y), replace(public, X=X_held, y=y_held), classes


def _train(
    args: argparse.Namespace,
    private: FileRows,
    public: FileRows | None,
    columns: dict[str, Any] | None,
    classes: Any,
    unlabeled: Any,
) -> MixedDPLogisticRegression | MixedDPRidge | PrivatePipeline:
    both = args.n_steps is not None and args.noise_multiplier is not None
    public_rows = {} if public is None else {"X_pub": public.X, "y_pub": public.y}
    if unlabeled is not None:
        public_rows["X_unlabeled"] = unlabeled
    own: dict[str, Any] = {} if args.scale is None else {"scale": read_scales(args.scale)}
    if args.model == "linear":
        own |= {"algorithm": args.algorithm, "n_steps": args.n_steps}
        own |= {"noise_multiplier": args.noise_multiplier}
        norm = {None: "auto", "none": None}.get(args.row_norm, args.row_norm)
        own |= {"fit_intercept": not args.no_intercept}
        own |= {"rows": RowMapping(center=not args.no_center, norm=norm)}
    if args.target_bounds is not None:
        low, high = args.target_bounds
        center = None if args.no_intercept else (low + high) / 2
        own |= {"target_center": center, "target_scale": (high - low) / 4}
    if not args.regression:
        labels = np.unique(private.y if public is None else public.y) if classes is None else classes
        weights = None if args.class_weight is None else read_weights(args.class_weight, labels)
        own |= {"classes": classes, "class_weight": weights}
    model = _KINDS[args.model, args.regression](
        epsilon=1.0 if args.epsilon is None and not both else args.epsilon,
        delta=args.delta,
        neighboring=args.neighboring,
        noise=args.noise,
        random_state=args.seed,
        verbose=int(sys.stderr.isatty() and not args.quiet),
        **own,
    )
    warn_of_seed(args.seed, name="--seed")
    # RuntimeError: a checkpoint that another process uses, or that lacks a number.
    with library_errors(_FLAGS, RuntimeError):
        model.set_params(ledger=charged_data_set(args))
        model = model if args.encode is None else private_pipeline(TableEncoder(columns), model)
        model.fit(private.X, private.y, **public_rows, groups=private.groups)
    return model
