"""``extract``: images in, a file of feature rows out."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from .._utils.files import write_arrays
from ..features import FrozenFeatures
from .arguments import Parser
from .images import FAMILIES, READING_FLAGS, extract_images, make_transformer, read_images
from .messages import EXIT_CODES
from .outputs import check_outputs, write_together

SUMMARY = "turn images into files of feature rows"
DESCRIPTION = f"""\
Put images through a frozen network and save one row of features for each.

IMAGES is a folder with a subfolder of images for each class, a folder of images, or a .npy or
.npz file of uint8 images (array X, labels in array y). The output holds the arrays X (rows),
y (labels, if known), index (places of the rows' images), files, class_names, report (network,
hash of its weights and preprocessing, as JSON) and encoder (the flags). `fit` and `predict` take it.

--model is one of: {", ".join(example for _, example in FAMILIES.values())}, and the like.

Rows of private images are as private as the images, in the output and in the cache."""

_EPILOG = f"""\
examples:
  skmixdp extract photos --model timm:resnet50 --out feats.npz
  skmixdp extract photos --model timm:resnet50 --weights resnet50.safetensors --out feats.npz
  skmixdp extract photos --model open-clip:ViT-B-32 --weights laion2b_s34b_b79k --out feats.npz

{EXIT_CODES}"""


def add_to(parser: Parser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    texts = {
        "IMAGES": "folder of images, or .npy or .npz file",
        "--model FAMILY:NAME": "the network",
        "--weights PATH": "checkpoint, or tag of the weights (default: the library's own)",
        "--options JSON": "further parameters of the transformer, such as "
        """'{"image_size": 96, "layers": [-2, "head"]}'""",
        "--labels FILE": "labels: a table with the columns file and label for a folder; for arrays, .npy or "
        ".csv",
    }
    parser.add("images", texts, required=["--model"])
    parser.add_parameters(
        "computation",
        FrozenFeatures,
        batch_size="--batch-size",
        n_workers="--workers",
        cache="--cache",
        **READING_FLAGS,
    )
    texts = {
        "--out FILE.npz": "the rows",
        "--force": "replace an output that exists",
        "--quiet": "show no progress bar and no summary",
    }
    parser.add("output", texts, required=["--out"])


def run(args: argparse.Namespace) -> None:
    """Check the arguments, extract the rows and write them."""
    check_outputs({"--out": args.out}, [args.images, args.labels], force=args.force, ending=".npz")
    transformer = make_transformer(args, args.model, args.weights, args.options)
    items = read_images(args.images, args.labels)
    extraction = extract_images(transformer, items.X, f"IMAGES {args.images}", "extract")
    # Names of published weights stay as they are.
    is_file = args.weights is not None and Path(args.weights).is_file()
    weights = str(Path(args.weights).resolve()) if is_file else args.weights
    encoder = {"model": args.model, "weights": weights, "options": args.options, "report": extraction.report}
    arrays = {
        "X": extraction.features,
        "index": extraction.index,
        "report": np.array(json.dumps(extraction.report)),
        "encoder": np.array(json.dumps(encoder)),
    }
    if items.y is not None:
        arrays |= {"y": items.y[extraction.index], "class_names": np.unique(items.y)}
    if items.files is not None:
        arrays["files"] = items.files[extraction.index]
    write_together({args.out: lambda file: write_arrays(file, **arrays)})
    if not args.quiet:
        n, width = extraction.features.shape
        sys.stdout.write(
            f"{args.out}: {n} rows of {width} features, {extraction.n_computed} computed, "
            f"{len(extraction.skipped)} images skipped\n"
        )
