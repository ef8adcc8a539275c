"""``export``: a saved model in, a file for other runtimes out."""

import argparse

from .arguments import Parser
from .messages import TRUST, InputError
from .model_files import load_model, unpacked
from .outputs import check_outputs, write_together

SUMMARY = "write a saved model for other runtimes (load only models you trust)"
DESCRIPTION = f"""\
Write a saved model as an ONNX graph, from raw rows to predictions. It needs the onnx package.

{TRUST}"""


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    texts = {
        "MODEL": "file that `fit --out` wrote",
        "--onnx FILE.onnx": "the graph",
        "--force": "replace an output that exists",
    }
    parser.add("files", texts, required=["--onnx"])


def run(args: argparse.Namespace) -> None:
    """Load the model, and write its graph."""
    check_outputs({"--onnx": args.onnx}, [args.model], force=args.force, ending=".onnx")
    model, _ = unpacked(load_model(args.model))
    if not hasattr(model, "to_onnx"):
        raise InputError(
            f"MODEL {args.model} holds a {type(model).__name__}, which has no ONNX form; give a linear head "
            "or a pipeline that `fit --out` wrote."
        )
    graph = model.to_onnx().SerializeToString()
    write_together({args.onnx: lambda file: file.write(graph)})
