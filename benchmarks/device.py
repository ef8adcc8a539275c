"""A step on a device, compared with what the device can do: ``python -m benchmarks.device --device cuda``.

The roofline is the larger of reading the rows once at the measured bandwidth and making the two
products' operations at the measured rate of a large square product, both in float32. Times are on the
clock, the device's work ended. Writes ``device.csv`` and ``device.md`` to ``--out``.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skmixdp._linear.losses import SoftmaxLoss
from skmixdp._rows.source import PrivateQuery, Request
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals

_REPETITIONS = 7


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--square", type=int, default=8192, help="side of the square product")
    parser.add_argument("--out", type=Path, default=Path("results/device"))
    given = parser.parse_args(arguments)
    import torch

    if given.device.startswith("cuda") and not torch.cuda.is_available():
        print(f"torch sees no device {given.device} here, so nothing is measured; try --device cpu.")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    found = pd.DataFrame(measure(torch.device(given.device), given))
    found.to_csv(given.out / "device.csv", index=False)
    lines = [list(found.columns), ["---"] * len(found.columns), *found.map(_shown).to_numpy().tolist()]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (given.out / "device.md").write_text(text)
    print(text)


def measure(device: Any, given: Any) -> list[dict[str, Any]]:
    """One row of results for each number of classes."""
    import torch

    from skmixdp._torch.tensors import TorchRows, full_precision

    torch.manual_seed(0)
    X = torch.randn(given.rows, given.features, device=device)
    X /= X.norm(dim=1, keepdim=True)
    square = torch.randn(given.square, given.square, device=device)
    with full_precision():
        rate = 2 * given.square**3 / _seconds(lambda: square @ square, device)
    # A sum reads all and writes next to nothing.
    bandwidth = X.nbytes / _seconds(lambda: X.sum(), device)
    results = []
    for k in given.classes:
        rng = np.random.default_rng(0)
        y = rng.integers(k, size=given.rows)
        rows = TorchRows(X, y)
        W = rng.standard_normal((k, given.features))
        contribute = partial(clipped_residuals, loss=SoftmaxLoss(k), clip=L2Clip(0.5))
        request = Request(PrivateQuery(W, contribute, (), takes_tensors=True))
        step = _seconds(lambda rows=rows, request=request: rows.private_sums([request]), device)
        operations = 4 * given.rows * given.features * k
        roof = max(X.nbytes / bandwidth, operations / rate)
        results.append(
            {
                "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "processor",
                "n": given.rows,
                "d_in": given.features,
                "k": k,
                "GB/s": bandwidth / 1e9,
                "Tflop/s": rate / 1e12,
                "step, ms": step * 1e3,
                "roofline, ms": roof * 1e3,
                "roofline / step": roof / step,
            }
        )
    return results


def _seconds(work: Callable[[], object], device: Any) -> float:
    """Median time of a call; the first, which warms up, is left out."""
    import torch

    times = []
    for _ in range(_REPETITIONS + 1):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
