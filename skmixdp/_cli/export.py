"""``export``: a saved model in, a file for other runtimes out."""

import argparse
from typing import Any

from .messages import EXIT_CODES, TRUST, InputError, library_errors, path_named
from .model_files import load_model, unpacked
from .outputs import check_outputs, write_together

_DESCRIPTION = f"""\
Write a saved model as an ONNX graph, from raw rows to predictions. It needs the onnx package.

{TRUST}"""


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "export",
        help="write a saved model for other runtimes (load only models you trust)",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
    )
    parser.set_defaults(run=run)
    parser.add_argument("model", type=path_named, metavar="MODEL", help="file that `fit --out` wrote")
    parser.add_argument("--onnx", type=path_named, required=True, metavar="FILE.onnx", help="the graph")
    parser.add_argument(
        "--dtype",
        choices=("float64", "float32"),
        default="float64",
        help="type of all numbers in the graph (default: %(default)s)",
    )
    parser.add_argument("--force", action="store_true", help="replace an output that exists")


def run(args: argparse.Namespace) -> None:
    """Load the model, and write its graph."""
    if args.onnx.suffix.lower() != ".onnx":
        raise InputError(f"--onnx {args.onnx} must end in .onnx, which is its form.")
    check_outputs({"--onnx": args.onnx}, [args.model], force=args.force)
    model, _ = unpacked(load_model(args.model))
    if not hasattr(model, "to_onnx"):
        raise InputError(
            f"MODEL {args.model} holds a {type(model).__name__}, which has no ONNX form; give a linear head "
            "or a pipeline that `fit --out` wrote."
        )
    with library_errors({}):
        graph = model.to_onnx(dtype=args.dtype).SerializeToString()
    write_together({args.onnx: lambda file: file.write(graph)})
