"""``extract``: images in, a file of feature rows out."""

import argparse
import json
import sys
from typing import Any

import numpy as np

from .._utils.files import write_arrays
from .items import LabelledItems, read_images
from .messages import EXIT_CODES, InputError, count, count_or_zero, path_named
from .models import FAMILIES, add_reading_to, extracted, located, make_transformer
from .outputs import check_outputs, write_together

_DESCRIPTION = f"""\
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


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "extract", help="turn images into files of feature rows", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "images", type=path_named, metavar="IMAGES", help="folder of images, or .npy or .npz file"
    )
    parser.add_argument("--model", required=True, metavar="FAMILY:NAME", help="the network")
    parser.add_argument(
        "--weights", metavar="PATH", help="checkpoint, or tag of the weights (default: the library's own)"
    )
    parser.add_argument(
        "--options",
        metavar="JSON",
        help='further parameters of the transformer, such as \'{"image_size": 96, "layers": [-2, "head"]}\'',
    )
    parser.add_argument(
        "--labels",
        type=path_named,
        metavar="FILE",
        help="labels: a table with the columns file and label for a folder; for arrays, .npy or .csv",
    )
    how = parser.add_argument_group("computation")
    how.add_argument("--batch-size", type=count, metavar="N", help="images in a forward pass (default: auto)")
    how.add_argument("--workers", type=count_or_zero, metavar="N", help="loader processes (default: auto)")
    how.add_argument(
        "--dtype", choices=("float32", "float16"), default="float32", help="rounding (default: %(default)s)"
    )
    how.add_argument(
        "--cache", type=path_named, metavar="FOLDER", help="keep rows here, and go on after a stop"
    )
    add_reading_to(how)
    output = parser.add_argument_group("output")
    output.add_argument("--out", type=path_named, required=True, metavar="FILE.npz", help="the rows")
    output.add_argument("--force", action="store_true", help="replace an output that exists")
    output.add_argument("--quiet", action="store_true", help="show no progress bar and no summary")


def run(args: argparse.Namespace) -> None:
    """Check the arguments, extract the rows and write them."""
    if args.out.suffix.lower() != ".npz":
        raise InputError(f"--out {args.out} must end in .npz, since rows are saved with their labels.")
    check_outputs({"--out": args.out}, [args.images, args.labels], force=args.force)
    transformer = make_transformer(
        args.model,
        args.weights,
        args.options,
        {
            "device": args.device,
            "batch_size": args.batch_size or "auto",
            "n_workers": "auto" if args.workers is None else args.workers,
            "dtype": args.dtype,
            "cache": args.cache,
            "on_error": args.on_error,
            "verbose": int(sys.stderr.isatty() and not args.quiet),
        },
    )
    items = read_images(args.images, args.labels)
    extraction = extracted(transformer, items.X, f"IMAGES {args.images}", "extract")
    arrays = _arrays(items, extraction)
    encoder = {
        "model": args.model,
        "weights": located(args.weights),
        "options": args.options,
        "report": extraction.report,
    }
    arrays["encoder"] = np.array(json.dumps(encoder))
    write_together({args.out: lambda file: write_arrays(file, **arrays)})
    if not args.quiet:
        n, width = extraction.features.shape
        sys.stdout.write(
            f"{args.out}: {n} rows of {width} features, {extraction.n_computed} computed, "
            f"{len(extraction.skipped)} images skipped\n"
        )


def _arrays(items: LabelledItems, extraction: Any) -> dict[str, Any]:
    """The arrays of the output file."""
    arrays = {
        "X": extraction.features,
        "index": extraction.index,
        "report": np.array(json.dumps(extraction.report)),
    }
    if items.y is not None:
        arrays |= {"y": items.y[extraction.index], "class_names": np.unique(items.y)}
    if items.files is not None:
        arrays["files"] = items.files[extraction.index]
    return arrays
