"""Time of extraction, compared with the forward passes that it cannot avoid.

Three figures for each network, in one process: images in memory through ``transform``, the same
network's forward passes on batches that lie ready on the device, and JPEG files through the loader
alone and through ``transform``. Random weights: they do not change the speed.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from skmixdp.features import OpenClipFeatures, TimmFeatures
from skmixdp.features._base import FrozenFeatures
from skmixdp.features._inputs import as_items
from skmixdp.features.backends.loop import _load

JPEG_SIZE = (375, 500)  # the usual size of a photograph in ImageNet


def make_features(name: str, size: int | None, batch_size: int, device: str) -> FrozenFeatures:
    """The transformer of ``family:network``."""
    family, _, model = name.partition(":")
    if family == "open-clip":
        return OpenClipFeatures(model, pretrained=False, device=device, batch_size=batch_size)
    return TimmFeatures(model, pretrained=False, image_size=size, device=device, batch_size=batch_size)


def input_size(features: FrozenFeatures) -> tuple[int, int]:
    """Height and width of what the network gets."""
    probe = features._encoder().preparation.one(Image.new("RGB", (300, 300)))
    return int(probe.shape[1]), int(probe.shape[2])


def bare_forward(features: FrozenFeatures, batch: Any, n: int) -> None:
    """Forward passes and nothing else; the last row is fetched, so that a GPU has finished."""
    settings, module = features._settings(), features._encoder().module
    module.to(settings.device).eval()
    dtype = getattr(torch, settings.precision)
    call = getattr(module, "encode_image", module)
    with (
        torch.inference_mode(),
        torch.autocast(settings.device.partition(":")[0], dtype, enabled=dtype is not torch.float32),
    ):
        for _ in range(n // len(batch)):
            rows = call(batch)
    rows[-1].cpu()


def ready_batch(features: FrozenFeatures, pixels: np.ndarray, batch_size: int) -> Any:
    """A prepared batch on the device, in the layout in which the network is fastest there."""
    settings, encoder = features._settings(), features._encoder()
    batch = encoder.preparation.many(torch.from_numpy(pixels[:batch_size]).to(settings.device))
    return batch.contiguous(memory_format=torch.channels_last)


def load_files(features: FrozenFeatures, paths: Sequence[str]) -> None:
    """Read and prepare files without any forward pass."""
    for _ in _load(features._encoder(), as_items(paths, "image"), range(len(paths)), features._settings()):
        pass


def measure(actions: dict[str, Callable[[], object]], n_rounds: int) -> dict[str, float]:
    """Median seconds of each action; they take turns, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    cpu = not torch.cuda.is_available()
    clock = time.process_time if cpu else time.perf_counter
    for number in range(n_rounds + 1):
        for name, action in actions.items():
            start = clock()
            action()
            if number:
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def save_jpegs(folder: Path, n: int) -> list[str]:
    """Smooth random photographs."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        path = folder / f"{i}.jpg"
        coarse.resize(JPEG_SIZE[::-1], Image.Resampling.BICUBIC).save(path, quality=90)
        paths.append(str(path))
    return paths


def run(name: str, size: int | None, n: int, batch_size: int, device: str, n_rounds: int) -> dict[str, Any]:
    """One line of the table."""
    features = make_features(name, size, batch_size, device)
    height, width = input_size(features)
    pixels = np.random.default_rng(0).integers(0, 256, (n, height, width, 3), dtype=np.uint8)
    batch = ready_batch(features, pixels, batch_size)
    with tempfile.TemporaryDirectory() as folder:
        paths = save_jpegs(Path(folder), n)
        seconds = measure(
            {
                "bare": lambda: bare_forward(features, batch, n),
                "memory": lambda: features.transform(pixels),
                "loader": lambda: load_files(features, paths),
                "files": lambda: features.transform(paths),
            },
            n_rounds,
        )
    settings = features._settings()
    return {
        "network": name,
        "input": f"{height} x {width}",
        "device, precision": f"{settings.device}, {settings.precision}",
        "bare forward, images/s": f"{n / seconds['bare']:.1f}",
        "from memory / bare": f"{seconds['bare'] / seconds['memory']:.2f}",
        "loader alone from JPEG, images/s": f"{n / seconds['loader']:.0f}",
        "from JPEG / bare": f"{seconds['bare'] / seconds['files']:.2f}",
    }


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The lines as a table in Markdown."""
    head = list(lines[0])
    rows = [head, ["---"] * len(head), *([str(value) for value in line.values()] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", nargs="+", default=["timm:resnet50", "open-clip:ViT-B-32"])
    parser.add_argument("--image-size", type=int, help="input of timm's networks (default: their own)")
    parser.add_argument("--images", type=int, default=64, help="a multiple of the batch size")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args(argv)
    if args.images % args.batch_size:
        parser.error("--images must be a multiple of --batch-size")
    if not torch.cuda.is_available():
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    lines = [
        run(name, args.image_size, args.images, args.batch_size, args.device, args.rounds)
        for name in args.networks
    ]
    print(table(lines))


if __name__ == "__main__":
    main()
