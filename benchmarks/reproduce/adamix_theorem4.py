"""AdaMix, Theorem 4: what private training costs on two convex problems, and how public rows lower it.

The theorem (18 in the appendix) bounds the excess risk of Algorithm 3 by ``4 sqrt(d) L^2 / (c sqrt(N_pub) N
sqrt(2 rho))`` and two gaps between the rows and the population. Algorithm 3 is one pass of stochastic
gradient descent over the public rows, then noisy gradient descent on all rows, with a regulariser that
pulls to the first phase's head. It is written out here as the paper has it, but for two misprints: the
gradient of the regulariser is added, and its strength minimises the bound of Theorem 3. That needs the
distance to the optimum of the population, which is known here.

``mean`` is the mean of points of length 1 with half the squared distance as loss (c = 1, L = 2).
``logistic`` is the logistic regression of rows of unit length, with labels drawn from a model (L = 1, and c
is the smallest curvature in the ball). One of d, N, N_pub and rho changes at a time, by factors of four.
``path`` has N proportional to ``N_pub ** 1.5``, so that the share of public rows falls. The bound of Theorem
3 for the distance that the first phase leaves, and that of Corollary 17 for this distance, are in the CSV.

Run ``python -m benchmarks.reproduce.adamix_theorem4``, with ``--quick``.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from tqdm.auto import tqdm

from .adamix_ablation import markdown

Array = NDArray[Any]

#: Lengths of the true logistic model and of the mean.
LENGTH, SHIFT = 4.0, 0.3
#: Radius of the ball of heads.
RADIUS = {"mean": 1.0, "logistic": 5.0}


@dataclass(frozen=True)
class Setting:
    """A problem, the quantities of the bound and the number of steps of the second phase."""

    problem: str
    d: int
    n: int
    n_pub: int
    rho: float
    n_steps: int = 2000


BASES = (Setting("mean", 400, 1000, 100, 0.04), Setting("logistic", 16, 2000, 100, 0.04))
PATH = ((25, 500), (100, 4000), (400, 32_000))


@dataclass(frozen=True)
class Problem:
    """A distribution of rows (n, d), its loss and its optimum (d,)."""

    optimum: Array
    draw: Callable[[np.random.Generator, int], Array]
    #: Rows to the function that gives the sum of their gradients at a head.
    gradient: Callable[[Array], Callable[[Array], Array]]
    losses: Callable[[Array, Array], Array]
    #: Risk in the population above that of the optimum.
    excess: Callable[[Array], float]
    L: float
    c: float


def on_sphere(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Points of unit length."""
    points = rng.normal(size=shape)
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def mean_problem(d: int) -> Problem:
    """The mean of points of length 1, which are far from it."""
    optimum = np.zeros(d)
    optimum[0] = SHIFT

    def draw(rng: np.random.Generator, n: int) -> Array:
        return np.hstack([np.full((n, 1), SHIFT), np.sqrt(1 - SHIFT**2) * on_sphere(rng, (n, d - 1))])

    def gradient(rows: Array) -> Callable[[Array], Array]:
        total = rows.sum(0)
        return lambda w: len(rows) * w - total

    return Problem(
        optimum,
        draw,
        gradient,
        losses=lambda w, rows: ((w - rows) ** 2).sum(1) / 2,
        excess=lambda w: float(((w - optimum) ** 2).sum() / 2),
        L=2.0,
        c=1.0,
    )


def logistic_problem(d: int) -> Problem:
    """Logistic regression of rows of unit length, each times the sign of its label."""
    optimum = np.zeros(d)
    optimum[0] = LENGTH
    fresh = on_sphere(np.random.default_rng(0), (100_000, d))
    truth = expit(fresh @ optimum)

    def draw(rng: np.random.Generator, n: int) -> Array:
        x = on_sphere(rng, (n, d))
        return x * np.where(rng.random(n) < expit(x @ optimum), 1, -1)[:, None]

    def risk(w: Array) -> float:
        margins = fresh @ w
        return float((np.logaddexp(0, margins) - truth * margins).mean())

    least = risk(optimum)
    furthest = expit(fresh @ optimum * RADIUS["logistic"] / LENGTH)
    return Problem(
        optimum,
        draw,
        gradient=lambda rows: lambda w: -expit(-(rows @ w)) @ rows,
        losses=lambda w, rows: np.logaddexp(0, -(rows @ w)),
        excess=lambda w: risk(w) - least,
        L=1.0,
        # The curvature is smallest at the longest heads, along them.
        c=float(np.mean(furthest * (1 - furthest) * fresh[:, 0] ** 2)),
    )


PROBLEMS = {"mean": mean_problem, "logistic": logistic_problem}


def in_ball(w: Array, radius: float) -> Array:
    """The nearest head of at most this length."""
    length = float(np.linalg.norm(w))
    return w if length <= radius else w * (radius / length)


def one_pass(problem: Problem, public: Array, radius: float) -> Array:
    """The head after a pass over the public rows, one at a time."""
    w = np.zeros_like(problem.optimum)
    for t, row in enumerate(public, 1):
        w = in_ball(w - 2 / (problem.c * (t + 1)) * problem.gradient(row[None])(w), radius)
    return w


def noisy_descent(
    problem: Problem, rows: Array, start: Array, setting: Setting, rng: np.random.Generator
) -> Array:
    """The averaged head of the second phase."""
    n_steps = setting.n_steps
    noise = problem.L * np.sqrt(n_steps / (2 * setting.rho))
    strength = np.sqrt(2 * setting.d / setting.rho) * problem.L / np.linalg.norm(start - problem.optimum)
    gradient = problem.gradient(rows)
    w, average = start, np.zeros_like(start)
    for t in range(1, n_steps + 1):
        average += 2 * t / (n_steps * (n_steps + 1)) * w
        direction = gradient(w) + noise * rng.normal(size=w.shape) + strength * (w - start)
        w = in_ball(w - 2 / (strength * (t + 1)) * direction, RADIUS[setting.problem])
    return average


def settings(bases: Sequence[Setting], path: Sequence[tuple[int, int]]) -> Iterator[tuple[str, Setting]]:
    """Each setting and what changes in it."""
    for base in bases:
        for name in ("d", "n", "n_pub", "rho"):
            for factor in (0.25, 1, 4):
                value = getattr(base, name) * factor
                yield name, replace(base, **{name: value if name == "rho" else int(value)})
    for n_pub, n in path:
        yield "path", replace(bases[0], n_pub=n_pub, n=n)


def measure(setting: Setting, seeds: Sequence[int]) -> dict[str, float]:
    """The bound, and both sides of it in the mean over seeds: new rows and new noise for each."""
    problem, radius = PROBLEMS[setting.problem](setting.d), RADIUS[setting.problem]
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows = problem.draw(rng, setting.n)
        start = one_pass(problem, rows[: setting.n_pub], radius)
        zero = np.zeros_like(start)
        heads = [start] + [noisy_descent(problem, rows, at, setting, rng) for at in (start, zero)]
        above = (problem.losses(heads[1], rows) - problem.losses(problem.optimum, rows)).mean()
        distance = float(np.linalg.norm(start - problem.optimum))
        found.append([*map(problem.excess, heads), above, distance, distance**2])
    means = np.mean(found, axis=0)
    cost = np.sqrt(setting.d) * problem.L / (setting.n * np.sqrt(2 * setting.rho))
    furthest = 2 * problem.L / (problem.c * np.sqrt(setting.n_pub))
    return {
        "bound": 2 * cost * furthest,
        "theorem 3": 2 * cost * means[4],
        "corollary 17": furthest**2,
        "squared distance": means[5],
        "public": means[0],
        "private": means[1],
        "from zero": means[2],
        "error": float(np.std([line[1] for line in found], ddof=1) / np.sqrt(len(found))),
        "empirical": means[3],
        "gap": abs(means[1] - means[3]),
    }


def table(results: pd.DataFrame) -> str:
    """Excess risks, in thousandths, with the exponent of the change between neighbouring lines."""
    lines = []
    for (problem, changed), group in results.groupby(["problem", "changed"], sort=False):
        group = group.reset_index(drop=True)
        name = "n_pub" if changed == "path" else changed
        for i, row in group.iterrows():
            slope = ["", ""]
            if i:
                last = group.loc[i - 1]
                slope = [
                    f"{np.log(row[key] / last[key]) / np.log(row[name] / last[name]):.2f}"
                    for key in ("bound", "private")
                ]
            lines.append(
                [problem, changed, f"{row[name]:g}"]
                + [f"{1e3 * row[key]:.3g}" for key in ("bound", "empirical", "gap", "private", "error")]
                + [f"{1e3 * row[key]:.3g}" for key in ("public", "from zero")]
                + slope
            )
    header = ["problem", "changes", "to", "bound", "on the rows", "gap", "excess risk", "error"]
    return markdown([*header, "public rows alone", "from zero", "exponent: bound", "excess"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="AdaMix's Theorem 4 on two convex problems.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--seeds", type=int, default=10, help="number of draws of rows and noise")
    parser.add_argument("--steps", type=int, default=Setting.n_steps, help="steps of the second phase")
    parser.add_argument("--quick", action="store_true", help="few rows, dimensions and steps, two draws")
    options = parser.parse_args(argv)
    bases, path = [replace(base, n_steps=options.steps) for base in BASES], PATH
    if options.quick:
        bases, path = (
            [replace(base, d=8, n=200, n_pub=20, n_steps=50) for base in bases],
            ((4, 16), (16, 128)),
        )
    seeds = range(2 if options.quick else options.seeds)
    results = [
        {"changed": changed, **asdict(setting), **measure(setting, seeds)}
        for changed, setting in tqdm(list(settings(bases, path)), unit="setting")
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    found = pd.DataFrame(results)
    found.to_csv(options.out / "adamix_theorem4.csv", index=False)
    print(table(found))


if __name__ == "__main__":
    main()
