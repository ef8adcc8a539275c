"""PAZO on a network: the comparison of its Figures 2 and 3 on Fashion-MNIST pixels.

A network with one hidden layer (784-64-10), a few public rows per class, 20,000 private rows in Poisson
batches of 1,000 expected rows and 200 steps. The three PAZO variants and DPZero compared with DP-SGD,
DPMD (the cosine approximation of its mirror step) and DOPE-SGD at four budgets, all from the same public
start. The library has no first-order methods for modules: those here are a few lines of reference,
with gradients clipped row by row through closed-form norms and the library's accounting.

Every method's hyper-parameters come from a part of the paper's grids (Table 12, CIFAR-10) and are chosen for
each split and budget on public rows alone: two in five play the private ones, with as much
noise in their mean as the private run will have, two stay public and one is scored by its mean loss. The
test rows are looked at once, by the fit that is reported. Each reported fit is repeated with permuted
private labels: a method that is then as accurate learns nothing from the private labels.

The grids are parts of the paper's, and wider where rates of this network differ from those of its networks:
the paper's largest rate of DP-SGD is 0.2 for CIFAR-10, and here 2 to 8 is best. GEP is left out.

Run ``python -m benchmarks.reproduce.pazo_fashion [--shots 100] [--seeds 0 1] [--epsilons 0.1 3] [--steps
200]``; runs on other splits add their lines to the same table. With ``--checkpoints``, runs are scored on
their way, from shorter grids, for the paper's 100 epochs.
"""

import argparse
import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm.auto import tqdm

from skmixdp import ZerothOrderDPModuleClassifier
from skmixdp.algorithms import PAZO, Algorithm, DPZero
from skmixdp.privacy import noise_multiplier_for

from .adamix_ablation import data_folder, markdown, ranged

Array = NDArray[Any]
Setting = dict[str, Any]

DELTA = 1e-5

ZEROTH_ORDER: dict[str, tuple[type[Algorithm], Setting]] = {
    "PAZO-M": (PAZO, {"variant": "m"}),
    "PAZO-P": (PAZO, {"variant": "p"}),
    "PAZO-S": (PAZO, {"variant": "s"}),
    "DPZero": (DPZero, {}),
}
FIRST_ORDER = ("DP-SGD", "DPMD", "DOPE-SGD")
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "PAZO-M": {"public_batch_size": (None, 32), "learning_rate": (0.1, 0.5), "public_weight": (0.25, 0.75)},
    "PAZO-P": {"public_batch_size": (None, 32), "learning_rate": (0.2, 1.0), "n_public_batches": (3, 10)},
    "PAZO-S": {"public_batch_size": (None, 32), "learning_rate": (0.05, 0.2), "loss_clip": (1.0, 4.0)},
    "DPZero": {"learning_rate": (0.02, 0.1, 0.5), "n_directions": (1, 5)},
    **{name: {"learning_rate": (0.2, 1.0, 4.0, 16.0), "clip": (0.5, 2.0)} for name in FIRST_ORDER},
}


#: The grids of long runs, without the settings that make steps slow, and with the small rates they need.
LONG_GRIDS = {
    "PAZO-M": {"public_batch_size": (32,), "learning_rate": (0.1, 0.5), "public_weight": (0.25, 0.75)},
    "PAZO-P": {"public_batch_size": (32,), "learning_rate": (0.2, 1.0), "n_public_batches": (3,)},
    "PAZO-S": {"public_batch_size": (32,), "learning_rate": (0.05, 0.2), "loss_clip": (1.0, 4.0)},
    "DPZero": {"learning_rate": (0.01, 0.05, 0.2), "n_directions": (1,)},
    **{name: {"learning_rate": (0.02, 0.2, 2.0), "clip": (0.5,)} for name in FIRST_ORDER},
}
#: Steps of a trial on public rows, at most.
TRIAL_STEPS = 2000


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1)
    shots: int = 100
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 3.0)
    n_steps: int = 200
    batch_size: int = 1000
    n_private: int = 20_000
    hidden: int = 64
    #: Steps after which a run is scored, too.
    checkpoints: tuple[int, ...] = ()
    grid: bool = True


QUICK = Size(seeds=(0,), shots=5, epsilons=(1.0,), n_steps=5, n_private=2000, grid=False)


@dataclass(frozen=True)
class Rows:
    """Images as rows of 784 pixels in [0, 1], and labels."""

    X: Array
    y: Array

    def __getitem__(self, index: Array) -> "Rows":
        return Rows(self.X[index], self.y[index])

    def __len__(self) -> int:
        return len(self.y)


def make_split(seed: int, shots: int, n_private: int) -> tuple[Rows, Rows, Rows]:
    """Public rows, class by class, private rows and test rows."""
    with np.load(data_folder() / "fashion_mnist" / "fashion_mnist.npz") as file:
        train, test = (
            Rows(
                file[f"x_{part}"].reshape(-1, 784).astype(np.float32) / 255,
                file[f"y_{part}"].astype(np.int64),
            )
            for part in ("train", "test")
        )
    order = np.random.default_rng(seed).permutation(len(train))
    public = np.concatenate([order[train.y[order] == label][:shots] for label in range(10)])
    private = order[~np.isin(order, public)][:n_private]
    return train[public], train[private], test


def network(seed: int, hidden: int = 64) -> nn.Sequential:
    """Two layers of weights, not trained yet."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def public_start(public: Rows, seed: int, hidden: int = 64) -> nn.Module:
    """The network after the library's warm start: one step that moves it nowhere follows."""
    clf = ZerothOrderDPModuleClassifier(
        network(seed, hidden), "dpzero", n_steps=1, learning_rate=1e-12, random_state=seed
    )
    start: nn.Module = clf.fit(public.X, public.y, X_pub=public.X, y_pub=public.y).module_
    return start


def accuracy(module: nn.Module, rows: Rows) -> float:
    with torch.no_grad():
        found = module(torch.from_numpy(rows.X)).argmax(dim=1).numpy()
    return float(np.mean(found == rows.y))


def mean_loss(module: nn.Module, rows: Rows) -> float:
    """Mean cross-entropy; infinite where a run has diverged."""
    with torch.no_grad():
        loss = nn.functional.cross_entropy(module(torch.from_numpy(rows.X)), torch.from_numpy(rows.y))
    return float(torch.nan_to_num(loss, nan=torch.inf))


@dataclass(frozen=True)
class Task:
    """One training run without its hyper-parameters."""

    start: nn.Module
    private: Rows
    public: Rows
    sigma: float
    batch_size: int
    n_steps: int
    seed: int
    #: The part of a whole run that these steps are.
    part: tuple[float, float] = (0.0, 1.0)


def course(
    method: str, setting: Setting, task: Task, checkpoints: Sequence[int] = ()
) -> Iterator[tuple[int, nn.Module]]:
    """A run's networks after some numbers of steps, at last all: fits that follow one another."""
    done = 0
    for steps in (*checkpoints, task.n_steps):
        part = (done / task.n_steps, steps / task.n_steps)
        fit = replace(task, n_steps=steps - done, seed=task.seed + 1000 * done, part=part)
        task = replace(task, start=train(method, setting, fit))
        done = steps
        yield steps, task.start


def train(method: str, setting: Setting, task: Task) -> nn.Module:
    """The network that a method with given hyper-parameters ends with."""
    if method not in ZEROTH_ORDER:
        return first_order(method, setting["learning_rate"], setting["clip"], task)
    kind, fixed = ZEROTH_ORDER[method]
    parameters = {name: value for name, value in setting.items() if name != "learning_rate"}
    clf = ZerothOrderDPModuleClassifier(
        task.start,
        kind(**fixed, **parameters),
        init="module",
        epsilon=None,
        delta=DELTA,
        n_steps=task.n_steps,
        noise_multiplier=task.sigma,
        batch_size=task.batch_size,
        learning_rate=setting["learning_rate"],
        random_state=task.seed,
        classes=range(10),
    )
    clf.fit(task.private.X, task.private.y, X_pub=task.public.X, y_pub=task.public.y)
    trained: nn.Module = clf.module_
    return trained


def clipped_sum(
    weights: Sequence[Tensor], X: Tensor, y: Tensor, clip: float, about: Sequence[Tensor]
) -> list[Tensor]:
    """Sum over rows of ``clip(gradient - about)``; the loss is cross-entropy.

    A row's gradient in a layer is an outer product, so its length and its product with ``about`` need no
    gradient of a single row to be formed.
    """
    W1, b1, W2, b2 = weights
    hidden = torch.relu(X @ W1.T + b1)
    last = torch.softmax(hidden @ W2.T + b2, dim=1) - nn.functional.one_hot(y, 10)
    first = (last @ W2) * (hidden > 0)
    squares = (first**2).sum(1) * ((X**2).sum(1) + 1) + (last**2).sum(1) * ((hidden**2).sum(1) + 1)
    P1, p1, P2, p2 = about
    along = (first * (X @ P1.T + p1)).sum(1) + (last * (hidden @ P2.T + p2)).sum(1)
    length = torch.sqrt(torch.clamp(squares - 2 * along + sum((part**2).sum() for part in about), min=0))
    weight = torch.clamp(clip / torch.clamp(length, min=1e-12), max=1)[:, None]
    first, last = weight * first, weight * last
    kept = weight.sum()
    sums = [first.T @ X, first.sum(0), last.T @ hidden, last.sum(0)]
    return [total - kept * part for total, part in zip(sums, about, strict=True)]


def first_order(method: str, rate: float, clip: float, task: Task) -> nn.Module:
    """DP-SGD, DPMD or DOPE-SGD: a reference, not part of the library."""
    module = copy.deepcopy(task.start)
    weights = [parameter.detach() for parameter in module.parameters()]
    generator = torch.Generator().manual_seed(task.seed)
    private, public = (
        (torch.from_numpy(rows.X), torch.from_numpy(rows.y)) for rows in (task.private, task.public)
    )
    nothing = [torch.zeros_like(weight) for weight in weights]
    for t in range(task.n_steps):
        drawn = torch.rand(len(task.private), generator=generator) < task.batch_size / len(task.private)
        mean = nothing
        if method != "DP-SGD":
            mean = [part / len(task.public) for part in clipped_sum(weights, *public, np.inf, nothing)]
        about = mean if method == "DOPE-SGD" else nothing
        direction = [
            (part + clip * task.sigma * torch.randn(part.shape, generator=generator)) / task.batch_size
            for part in clipped_sum(weights, private[0][drawn], private[1][drawn], clip, about)
        ]
        share = np.interp(t / task.n_steps, (0, 1), task.part)
        private_weight = np.cos(np.pi / 4 * share) if method == "DPMD" else 1.0
        for weight, own, shared in zip(weights, direction, mean, strict=True):
            step = private_weight * own
            if method == "DPMD":
                step = step + (1 - private_weight) * shared
            elif method == "DOPE-SGD":
                step = step + shared
            weight -= rate * step
    return module


def rehearsal(public: Rows, shots: int) -> tuple[Rows, Rows, Rows]:
    """Public rows as (public, private, scored), two, two and one in five of each class."""
    order = np.arange(len(public)).reshape(10, shots)
    fifth = shots // 5
    parts = order[:, : 2 * fifth], order[:, 2 * fifth : 4 * fifth], order[:, 4 * fifth :]
    first, second, third = (public[part.ravel()] for part in parts)
    return first, second, third


def settings(method: str, size: Size) -> list[Setting]:
    """The points of a method's grid; the first two alone where it is not wanted whole."""
    grid = (LONG_GRIDS if size.checkpoints else GRIDS)[method]
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return points if size.grid else points[:2]


def run(size: Size) -> Iterator[dict[str, Any]]:
    """Choose, train and score everything: one line of results after another."""
    with tqdm(total=len(size.seeds) * len(size.epsilons) * len(GRIDS), unit="method") as bar:
        for seed in size.seeds:
            public, private, test = make_split(seed, size.shots, size.n_private)
            permuted = np.random.default_rng(1000 + seed).permutation(private.y)
            start = public_start(public, seed, size.hidden)
            own_public, own_private, scored = rehearsal(public, size.shots)
            own_start = public_start(own_public, seed, size.hidden)
            line = {"shots": size.shots, "seed": seed}
            only = {"epsilon": np.nan, "method": "only public", "steps": 0, "accuracy": accuracy(start, test)}
            yield {**line, **only}
            for epsilon in size.epsilons:
                sigma = noise_multiplier_for(
                    epsilon, DELTA, n_steps=size.n_steps, sampling_rate=size.batch_size / len(private)
                )
                task = Task(start, private, public, sigma, size.batch_size, size.n_steps, seed)
                # The noise of a mean over b rows is sigma / b: as much here as in the private run.
                n = len(own_private)
                trial = replace(
                    task,
                    start=own_start,
                    private=own_private,
                    public=own_public,
                    sigma=sigma * n / size.batch_size,
                    batch_size=n,
                    n_steps=min(size.n_steps, TRIAL_STEPS),
                )
                for method in GRIDS:
                    points = settings(method, size)
                    losses = [mean_loss(train(method, point, trial), scored) for point in points]
                    best = points[int(np.argmin(losses))]
                    hidden = replace(task, private=Rows(private.X, permuted))
                    runs = [course(method, best, one, size.checkpoints) for one in (task, hidden)]
                    for (steps, module), (_, control) in zip(*runs, strict=True):
                        yield {
                            **line,
                            "epsilon": epsilon,
                            "method": method,
                            "steps": steps,
                            "accuracy": accuracy(module, test),
                            "control": accuracy(control, test),
                            "setting": ", ".join(f"{name} {value}" for name, value in best.items()),
                        }
                    bar.update()


def accuracy_table(results: pd.DataFrame, column: str = "accuracy") -> str:
    """Accuracy in percent, the splits' mean and their range; ``"control"`` has permuted labels."""
    fits = results.dropna(subset=["epsilon"])
    epsilons = sorted(fits["epsilon"].unique())
    lines = []
    for method in GRIDS:
        own = 100 * fits[fits["method"] == method].set_index("epsilon")[column]
        lines.append([method, *(ranged(own[[epsilon]]) for epsilon in epsilons)])
    public = 100 * results.loc[results["method"] == "only public", "accuracy"]
    lines.append(["only public", *[ranged(public)] * len(epsilons)])
    return markdown(["method", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)


def curves(results: pd.DataFrame) -> str:
    """Accuracy with true / permuted private labels after each number of steps, in percent."""
    fits = (100 * results.dropna(subset=["epsilon"]).set_index(["epsilon", "method", "steps"])).round(1)
    text = fits["accuracy"].astype(str) + " / " + fits["control"].astype(str)
    table = text.unstack("steps")
    header = ["epsilon", "method", *(f"{steps} steps" for steps in table)]
    return markdown(header, [[f"{key[0]:g}", key[1], *row] for key, row in table.iterrows()])


def claims(results: pd.DataFrame) -> str:
    """The paper's three claims, and how they come out here, as a Markdown table."""
    fits = results.dropna(subset=["epsilon"])
    table = 100 * fits.pivot_table(index="method", columns="epsilon", values="accuracy")
    low, high = table.columns[0], table.columns[-1]
    pazo, first = table.loc[list(ZEROTH_ORDER)[:3]], table.loc[list(FIRST_ORDER)]
    ahead = pazo.gt(table.loc["DPZero"], axis=1).to_numpy()
    losses = table[high] - table[low]
    return markdown(
        ["the paper's claim", "here"],
        [
            ["all PAZO variants above DPZero", f"in {ahead.sum()} of {ahead.size} cells"],
            [
                "first order more sensitive to a small epsilon",
                f"from epsilon {high:g} to {low:g} first order loses {losses[first.index].min():.1f} to "
                f"{losses[first.index].max():.1f} points, PAZO {losses[pazo.index].min():.1f} to "
                f"{losses[pazo.index].max():.1f}",
            ],
            [
                f"PAZO ahead of first order at epsilon {low:g}",
                f"best PAZO {pazo[low].max():.1f}, best first order {first[low].max():.1f}",
            ],
        ],
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="PAZO's comparison on a small network.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--shots", type=int, help="public rows per class, a multiple of 5 (default: 100)")
    parser.add_argument("--seeds", type=int, nargs="+", default=Size.seeds, help="splits")
    parser.add_argument("--epsilons", type=float, nargs="+", default=Size.epsilons, help="budgets")
    parser.add_argument("--steps", type=int, default=Size.n_steps, help="number of steps")
    parser.add_argument("--batch", type=int, default=Size.batch_size, help="expected rows of a batch")
    parser.add_argument("--private", type=int, default=Size.n_private, help="private rows")
    parser.add_argument("--hidden", type=int, default=Size.hidden, help="width of the hidden layer")
    parser.add_argument(
        "--checkpoints", type=int, nargs="+", default=(), help="score after these steps, too; short grids"
    )
    parser.add_argument("--quick", action="store_true", help="one split, one budget, few rows and steps")
    options = parser.parse_args(argv)
    wanted = Size(
        tuple(options.seeds),
        epsilons=tuple(options.epsilons),
        n_steps=options.steps,
        batch_size=options.batch,
        n_private=options.private,
        hidden=options.hidden,
        checkpoints=tuple(options.checkpoints),
    )
    size = QUICK if options.quick else wanted
    if options.shots is not None:
        size = replace(size, shots=options.shots)
    if size.shots < 5 or size.shots % 5:
        parser.error(f"--shots {size.shots} must be a multiple of 5.")
    if not (data_folder() / "fashion_mnist").is_dir():
        parser.error(f"no fashion_mnist in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"pazo_fashion_{size.shots}_{size.n_steps}_{size.batch_size}.csv"
    results = pd.read_csv(path) if path.exists() and not options.quick else pd.DataFrame()
    for line in run(size):
        results = pd.concat([results, pd.DataFrame([line])], ignore_index=True)
        results = results.drop_duplicates(["seed", "epsilon", "method", "steps"], keep="last")
        results.to_csv(path, index=False)
    if size.checkpoints:
        print(f"\n{curves(results)}")
    results = results[results["steps"].isin([0, size.n_steps])]
    print(f"\n{accuracy_table(results)}\n\nPrivate labels permuted:\n")
    print(f"{accuracy_table(results, 'control')}\n\n{claims(results)}")


if __name__ == "__main__":
    main()
