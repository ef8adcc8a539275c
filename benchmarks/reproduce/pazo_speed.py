"""PAZO, Tables 8 and 9, for linear heads: time of a step and what it computes.

Every method takes steps on the same rows in one process on one thread, in turns. Private work is
counted in products of all rows with one (k, d_in) matrix: a forward pass of a head is one, and so is
a sum of weighted gradients. First-order methods use this library's closed form; DP-SGD is measured
as Opacus does it as well, with per-sample gradients from hooks, where Opacus is installed.

Run ``python -m benchmarks.reproduce.pazo_speed``.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from skmixdp._engine import OpenRows, Options, bind_rows, drive, make_plan, training
from skmixdp._linear.losses import classification_loss
from skmixdp._rows.blockwise import InMemoryRows
from skmixdp.algorithms import DOPE, GEP, PAZO, Algorithm, DPZero, NoisyGD
from skmixdp.components import FullBatch
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData, PublicView
from skmixdp.privacy import NoiseSource
from skmixdp.privacy.accounting.budgets import Budget

from ..problems import Problem, Size, make_problem
from .adamix_ablation import markdown

Array = NDArray[Any]

METHODS: dict[str, Algorithm] = {
    "DP-SGD, closed form": NoisyGD(public_weight=0.0, momentum=0.0),
    "PDA-DPMD, cosine": NoisyGD(momentum=0.0, public_weight="cosine"),
    "DOPE-SGD": DOPE(),
    "GEP": GEP(),
    "DPZero, q = 1": DPZero(),
    "DPZero, q = 5": DPZero(5),
    "PAZO-M, q = 1": PAZO("m"),
    "PAZO-P, k = 3, q = 1": PAZO("p"),
    "PAZO-S, k = 3": PAZO("s"),
}
OPACUS = "DP-SGD, Opacus"
#: The paper's count (Table 9), in private forward passes, public and private backward passes, for b rows.
PAPER = {
    "DP-SGD, closed form": "b, -, b",
    OPACUS: "b, -, b",
    "PDA-DPMD, cosine": "b, 1, b",
    "DOPE-SGD": "b, 1, b",
    "GEP": "b, b', b",
    "DPZero, q = 1": "2, -, -",
    "DPZero, q = 5": "10, -, -",
    "PAZO-M, q = 1": "2, 1, -",
    "PAZO-P, k = 3, q = 1": "2, 3, -",
    "PAZO-S, k = 3": "4, 3, -",
}


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    sizes: tuple[Size, ...]
    n_steps: int
    rounds: int


FULL = Scale((Size(50_000, 512, 10, 50), Size(9_600, 384, 77, 385)), n_steps=20, rounds=5)
QUICK = Scale((Size(2_000, 32, 5, 20),), n_steps=4, rounds=1)


class Counting(InMemoryRows):
    """Counts products of all rows with (k, d_in) matrices."""

    def __init__(self, X: Array, y: Array, k: int) -> None:
        super().__init__(X, y)
        self.k = k
        self.forward = self.sums = 0.0

    def private_sums(self, requests: Any) -> Any:
        answers = super().private_sums(requests)
        self.forward += sum(len(request.query.points) for request in requests) / self.k
        self.sums += sum(matrix is not None for matrix, _ in answers)
        return answers


class CountingView(PublicView):
    """Counts mean gradients over batches of public rows."""

    count = 0

    def batch_gradients(self, batches: Sequence[Array]) -> Array:
        CountingView.count += len(batches)
        return super().batch_gradients(batches)

    @cached_property
    def gradient(self) -> Array:
        CountingView.count += 1
        return PublicView.gradient.func(self)


class CountingData(PublicData):
    """Public rows whose views count."""

    def view(self, W: Array) -> PublicView:
        return CountingView(self, W)


def steps_of(algorithm: Algorithm, problem: Problem, n_steps: int, *, counting: bool) -> Callable[[], Any]:
    """A function that takes ``n_steps`` steps, and returns the rows for their counts."""
    kind = CountingData if counting else PublicData
    data = kind(problem.X_pub, problem.y_pub, classification_loss(problem.size.k))
    info = PublicInfo(data.view(problem.W), 1.0, problem.size.n, problem.size.n, 1.0)
    recipe = algorithm.recipe(info, Options(0.1, None, FullBatch(), exact_sums=False))
    budget = Budget(1.0, 1e-6, n_steps, None, "add_or_remove_one", "float")
    plan = make_plan(budget, recipe, info, problem.X.dtype)
    make = (lambda X, y: Counting(X, y, problem.size.k)) if counting else InMemoryRows
    rows = make(problem.X, problem.y)

    def run() -> Any:
        run = training(plan, NoiseSource(0))
        drive([bind_rows(OpenRows(rows), run)])
        return rows

    return run


def opacus_step(problem: Problem) -> Callable[[], None] | None:
    """One DP-SGD step of a linear layer with Opacus' hooks, in chunks that fit in memory."""
    try:
        import torch
        from opacus.grad_sample import GradSampleModule
    except ImportError:
        return None
    torch.set_num_threads(1)
    size = problem.size
    layer = GradSampleModule(torch.nn.Linear(size.d_in, size.k, bias=False), loss_reduction="sum")
    X, y = torch.from_numpy(problem.X), torch.from_numpy(problem.y)
    (weight,) = layer.parameters()
    chunk = max(1, 2**26 // (4 * size.d_in * size.k))

    def step() -> None:
        total = torch.zeros_like(weight)
        for start in range(0, size.n, chunk):
            layer.zero_grad()
            outputs = layer(X[start : start + chunk])
            torch.nn.functional.cross_entropy(outputs, y[start : start + chunk], reduction="sum").backward()
            gradients = weight.grad_sample
            factors = (0.5 / gradients.flatten(1).norm(dim=1)).clamp(max=1.0)
            total += torch.einsum("n,nkd->kd", factors, gradients)
        total += torch.randn_like(total)

    return step


def measure(scale: Scale) -> pd.DataFrame:
    """Seconds per step of every method in turns, and what a step of each computes."""
    found: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for size in scale.sizes:
            problem = make_problem(size)
            runs = {name: steps_of(a, problem, scale.n_steps, counting=False) for name, a in METHODS.items()}
            times: dict[str, list[float]] = {name: [] for name in runs}
            by_hooks = opacus_step(problem)
            if by_hooks is not None:
                by_hooks()
                times[OPACUS] = []
            for run in runs.values():
                run()
            for _ in range(scale.rounds):
                for name, run in runs.items():
                    times[name].append(_seconds(run) / scale.n_steps)
                if by_hooks is not None:
                    times[OPACUS].append(_seconds(by_hooks))
            counts = {name: _counts(a, problem, scale.n_steps) for name, a in METHODS.items()}
            for name, seconds in times.items():
                found.append(
                    {
                        "n": size.n,
                        "d_in": size.d_in,
                        "k": size.k,
                        "method": name,
                        "seconds": median(seconds),
                        **counts.get(name, {"forward": 1.0, "sums": 1.0, "public": 0.0}),
                    }
                )
    return pd.DataFrame(found)


def _seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _counts(algorithm: Algorithm, problem: Problem, n_steps: int) -> dict[str, float]:
    """Products and public gradients of an average step."""
    CountingView.count = 0
    rows = steps_of(algorithm, problem, n_steps, counting=True)()
    return {
        "forward": rows.forward / n_steps,
        "sums": rows.sums / n_steps,
        "public": CountingView.count / n_steps,
    }


def table(results: pd.DataFrame) -> str:
    """One line a method and size, fastest last."""
    lines = []
    for (n, d_in, k), own in results.groupby(["n", "d_in", "k"]):
        base = own.set_index("method")["seconds"]["DP-SGD, closed form"]
        lines += [
            [
                f"{n:,} x {d_in}, k {k}",
                row.method,
                f"{1e3 * row.seconds:.1f}",
                f"{row.seconds / base:.2f}",
                f"{row.forward:.2f}",
                f"{row.sums:g}",
                f"{row.public:g}",
                PAPER[row.method],
            ]
            for row in own.itertuples()
        ]
    header = [
        "rows and classes",
        "method",
        "ms a step",
        "over closed form",
        "products with heads or directions",
        "sums of gradients",
        "public gradients",
        "paper: private forward, public, private backward",
    ]
    return markdown(header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Time and operations of zeroth- and first-order steps.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="a small size, a few steps")
    options = parser.parse_args(argv)
    results = measure(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    results.to_csv(options.out / "pazo_speed.csv", index=False)
    print(f"\n{table(results)}\n")


if __name__ == "__main__":
    main()
