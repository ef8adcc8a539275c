"""Coupling, Table 3 and Figures 3 and 4 with other data: heads from zero on digits and embeddings of texts.

Four parts, each with a table: the public weight against the dimension (random projections of BANKING77's
embeddings), against epochs and batches (digits), the methods of Table 3 (digits), and the tricks of Figure 4
(digits). Automatic clipping and no momentum, as in the paper; epsilon 2. For each method the rate is the best
of a grid on the test rows by its mean over the seeds, and so is DPMD's schedule. So the paper does it, and no
budget accounts for it. All methods have the scale of the features from the public rows.

Run ``python -m benchmarks.reproduce.coupling_heads``.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp._engine import Options, Recipe
from skmixdp.algorithms import Algorithm
from skmixdp.algorithms._base import descent
from skmixdp.components import AutomaticClip, ConstantWeight, CosineWeight, CouplingWeight, GradientQuery
from skmixdp.components.clipping import PublicQuantileClip
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.subspaces import PublicSubspace

from .adamix_ablation import DELTA, data_folder, markdown, ranged
from .coupling_weights import N_TEST

Array = NDArray[Any]

EPSILON, SEEDS = 2.0, (0, 1, 2)
WEIGHTS = (0.05, 0.2, 0.5, 0.8, 1.0)
RATES = {"digits": (2.0, 8.0, 32.0, 128.0), "banking77": (16.0, 48.0, 144.0)}
DIMENSIONS = (48, 96, 192, 384)
#: Batch size and steps: three lengths of training, then two other batches at as many epochs (5.4).
LENGTHS = ((100, 15), (100, 60), (100, 240), (25, 240), (400, 15))


class Mixed(Algorithm):
    """Descent by both gradients, with automatic or adaptive clipping, and a projection or none."""

    def __init__(self, weighting: Any, adaptive: bool = False, n_components: int | None = None) -> None:
        self.weighting, self.adaptive, self.n_components = weighting, adaptive, n_components

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        clipper = PublicQuantileClip(0.9, 0.05) if self.adaptive else AutomaticClip(1.0)
        subspace = None if self.n_components is None else PublicSubspace(self.n_components)
        query = GradientQuery(clipper, subspace, sum_to_zero=True)
        return descent(info, options, query, momentum=0.0, anchored=False, weighting=self.weighting)


@dataclass(frozen=True)
class Point:
    """A configuration, of which the rate is still to be chosen."""

    line: str
    method: str
    algorithm: Algorithm
    data: str = "digits"
    share: float = 0.2
    dimension: int | None = None
    batch_size: int | None = None
    n_steps: int = 60
    init: str = "zeros"
    rows: str = "split"


@lru_cache(maxsize=len(SEEDS))  # points that follow one another have the same rows
def split(data: str, share: float, dimension: int | None, rows: str, seed: int) -> tuple[Array, ...]:
    """Private, public and test rows of a seed, each with labels."""
    if data == "digits":
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=N_TEST, random_state=seed, stratify=y)
    else:
        with np.load(data_folder() / "banking77" / "minilm.npz") as file:
            X, y, X_test, y_test = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        width = X.shape[1]
        basis = np.random.default_rng(seed).normal(size=(width, dimension or width))
        X, X_test = (part.astype(np.float32) @ basis.astype(np.float32) for part in (X, X_test))
    X_priv, X_pub, y_priv, y_pub = train_test_split(X, y, test_size=share, random_state=seed, stratify=y)
    if rows == "all private":
        X_priv, y_priv = X, y
    if rows == "all public":
        X_pub, y_pub = X, y
    return X_priv, y_priv, X_pub, y_pub, X_test, y_test


def accuracy(point: Point, rate: float, seed: int) -> float:
    """Test accuracy of one fit."""
    X, y, X_pub, y_pub, X_test, y_test = split(point.data, point.share, point.dimension, point.rows, seed)
    clf = MixedDPLogisticRegression(
        point.algorithm,
        epsilon=EPSILON,
        delta=DELTA,
        n_steps=point.n_steps,
        batch_size=point.batch_size,
        learning_rate=rate,
        init=point.init,
        random_state=seed,
        classes=np.unique(y),
    )
    return float(clf.fit(X, y, X_pub=X_pub, y_pub=y_pub).score(X_test, y_test))


def weighted(base: Point) -> Iterator[Point]:
    """The point with each of the paper's weights, and with its rule."""
    for weight in WEIGHTS:
        yield replace(base, method=f"{weight:g}", algorithm=Mixed(ConstantWeight(weight)))
    yield replace(base, method="rule", algorithm=Mixed(CouplingWeight()))


def dimensions() -> Iterator[Point]:
    """Figure 3, dimension."""
    for d in DIMENSIONS:
        base = Point(f"d = {d}", "", Mixed(None), "banking77", dimension=d, n_steps=30)
        yield from weighted(base)


def lengths() -> Iterator[Point]:
    """Figure 3, epochs and batches."""
    for batch, steps in LENGTHS:
        line = f"batches of {batch}, {steps} steps"
        yield from weighted(Point(line, "", Mixed(None), batch_size=batch, n_steps=steps))


def table_3() -> Iterator[Point]:
    """Table 3: methods without and with mixing."""
    private, public = Mixed(ConstantWeight(0.0)), Mixed(ConstantWeight(1.0))
    for share in (0.05, 0.2):
        base = Point(f"share {share:g}", "", private, share=share)
        yield replace(base, method="FullPriv", rows="all private")
        yield replace(base, method="NonPriv", algorithm=public, rows="all public")
        yield replace(base, method="OnlyPub", algorithm=public)
        yield replace(base, method="OnlyPriv")
        adamix = Mixed(ConstantWeight(0.5), adaptive=True, n_components=32)
        yield replace(base, method="AdaMix", algorithm=adamix)
        for i in (2, 3, 4, 5, 8):
            yield replace(base, method="DPMD", algorithm=Mixed(CosineWeight(base.n_steps * i / 2)))
        for weight in WEIGHTS[:-1]:
            yield replace(base, method="Coupling", algorithm=Mixed(ConstantWeight(weight)))
        yield replace(base, method="Coupling, rule", algorithm=Mixed(CouplingWeight()))


def figure_4() -> Iterator[Point]:
    """Figure 4: Coupling with a warm start, adaptive clips and projections."""
    for weight in WEIGHTS[:-1]:
        rule = ConstantWeight(weight)
        base = Point("share 0.2", "Coupling", Mixed(rule))
        yield base
        yield replace(base, method="warm start", init="public")
        yield replace(base, method="adaptive clip", algorithm=Mixed(rule, adaptive=True))
        yield replace(base, method="projection to 32", algorithm=Mixed(rule, n_components=32))


def run(points: Sequence[Point], seeds: Sequence[int], n_rates: int | None = None) -> pd.DataFrame:
    """One row for each point, rate and seed; points are numbered."""
    found = []
    for number, point in enumerate(tqdm(points, unit="point")):
        for rate in RATES[point.data][:n_rates]:
            for seed in seeds:
                key = {"line": point.line, "method": point.method, "number": number, "rate": rate}
                found.append({**key, "seed": seed, "accuracy": accuracy(point, rate, seed)})
    return pd.DataFrame(found)


def table(found: pd.DataFrame) -> str:
    """Percent at the best point and rate: the mean over the seeds, and their range."""
    methods = list(dict.fromkeys(found["method"]))
    lines = []
    for line, own in found.groupby("line", sort=False):
        cells = [str(line)]
        for method in methods:
            runs = own[own["method"] == method].groupby(["number", "rate"])["accuracy"]
            best = 100 * runs.get_group(runs.mean().idxmax())
            cells.append(ranged(best))
        lines.append(cells)
    return markdown(["", *methods], lines)


PARTS = {"length": lengths, "table_3": table_3, "figure_4": figure_4, "dimension": dimensions}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Coupling for heads: Table 3, Figures 3 and 4.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="first points of the digits, one seed, one rate")
    options = parser.parse_args(argv)
    if not options.quick and not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, points in PARTS.items():
        if options.quick and name == "dimension":
            continue
        found = run(list(points())[:6], (0,), 1) if options.quick else run(list(points()), SEEDS)
        found.to_csv(options.out / f"coupling_heads_{name}.csv", index=False)
        print(f"\n{name}\n\n{table(found)}\n", flush=True)


if __name__ == "__main__":
    main()
