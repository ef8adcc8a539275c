"""From two folders of images to a private head, in four commands.

Runs the command line: ``extract`` for the private and the public images, ``fit`` with a budget, and
``predict`` on further images, if given. Each folder has a subfolder for each class.

    python examples/images_to_head.py private_photos public_photos --model timm:resnet50 --out results
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def commands(args: argparse.Namespace) -> list[list[str]]:
    """The arguments after ``python -m skmixdp``, in order."""
    out: Path = args.out
    network = ["--model", args.model, "--cache", str(out / "cache"), "--force"]
    if args.weights is not None:
        network += ["--weights", args.weights]
    if args.options is not None:
        network += ["--options", args.options]
    private, public, head = out / "feats_priv.npz", out / "feats_pub.npz", out / "head.joblib"
    planned = [
        ["extract", str(args.private), *network, "--out", str(private)],
        ["extract", str(args.public), *network, "--out", str(public)],
        [
            *("fit", "--private", str(private), "--public", str(public), "--epsilon", str(args.epsilon)),
            *(
                "--delta",
                str(args.delta),
                "--out",
                str(head),
                "--report",
                str(out / "report.json"),
                "--force",
            ),
        ],
    ]
    if args.new is not None:
        rows, predictions = out / "feats_new.npz", out / "predictions.csv"
        planned += [
            ["extract", str(args.new), *network, "--out", str(rows)],
            ["predict", str(head), str(rows), "--proba", "--out", str(predictions), "--force"],
        ]
    return planned


def main(argv: Sequence[str] | None = None) -> int:
    """Run the commands one after the other; the exit code of the first that fails, or 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("private", type=Path, help="folder of private images")
    parser.add_argument("public", type=Path, help="folder of public images with the same classes")
    parser.add_argument("--new", type=Path, help="folder of images to predict")
    parser.add_argument("--model", default="timm:resnet50", help="network (default: %(default)s)")
    parser.add_argument("--weights", help="checkpoint, or tag of the weights")
    parser.add_argument("--options", help="further parameters of the transformer, as JSON")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    for command in commands(args):
        print("$ python -m skmixdp", *command, flush=True)
        code = subprocess.run([sys.executable, "-m", "skmixdp", *command], check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
