"""AdaMix, Figures 1 (right) and 3 (left, centre): attacks, and the privacy loss of each row.

BANKING77 with MiniLM embeddings; 2 public rows per class. A fifth of the other training rows takes no part in
any fit, and the rest is private. Every fit is attacked by the loss-threshold membership attack, which has to
tell the two apart. (The test rows have another mix of classes, which alone would tell them apart.) The fits
at one epsilon also record the privacy loss of each private row. Both look at private rows without noise, as
the paper's figures do: an analysis, not a release.

Run ``python -m benchmarks.reproduce.adamix_privacy``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from tqdm.auto import tqdm

from benchmarks.reproduce.adamix_ablation import Split, data_folder, make_split, markdown
from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.audit import membership_attack, per_instance_epsilon
from skmixdp.inspection import PerInstanceDisplay

Array = NDArray[Any]

DELTA = 1e-5
SHOTS = 2
#: The epsilon of Figure 3.
RECORDED = 3.0

FULLY_PRIVATE, NGD, ADAMIX, DEFAULT = "fully private", "NGD", "AdaMix", "default"
ONLY_PUBLIC, NON_PRIVATE = "only public", "non-private"

METHODS: dict[str, Any] = {
    FULLY_PRIVATE: NoisyGD(),
    NGD: NoisyGD(),
    ADAMIX: AdaMix(clip_floor=0.01, n_components=154),
    DEFAULT: "auto",
}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1)
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0, 10.0)
    n_steps: int | None = None
    n_private: int | None = None


FULL = Size()
QUICK = Size(seeds=(0,), epsilons=(3.0,), n_steps=4, n_private=1500)


def fit(method: str, split: Split, epsilon: float, size: Size, seed: int) -> MixedDPLogisticRegression:
    """One private fit. Fully private training takes public rows as private ones, and starts from zero."""
    clf = MixedDPLogisticRegression(
        METHODS[method],
        epsilon=epsilon,
        delta=DELTA,
        classes=np.unique(split.y_pub),
        n_steps=size.n_steps,
        record_per_instance=epsilon == RECORDED,
        random_state=seed,
    )
    if method == FULLY_PRIVATE:
        return clf.fit(*everything(split))
    return clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)


def everything(split: Split) -> tuple[Array, Array]:
    """Public and private rows."""
    return np.concatenate([split.X_pub, split.X_priv]), np.concatenate([split.y_pub, split.y_priv])


def with_others(split: Split) -> tuple[Split, Array, Array]:
    """The split with four fifths of its private rows, and the rows and labels that are left out."""
    n = len(split.y_priv) * 4 // 5
    kept = replace(split, X_priv=split.X_priv[:n], y_priv=split.y_priv[:n])
    return kept, split.X_priv[n:], split.y_priv[n:]


def attacked(clf: Any, split: Split, X_out: Array, y_out: Array) -> dict[str, float]:
    """Test error, and the area under the attack's curve."""
    found = membership_attack(clf, split.X_priv, split.y_priv, X_out, y_out)
    return {"error": 1 - clf.score(split.X_test, split.y_test), "auc": found.auc}


def run(size: Size) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, MixedDPLogisticRegression]]:
    """Errors and attacks, quantiles of the rows' epsilons, and the recorded fits of the first seed."""
    table: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    shown: dict[str, MixedDPLogisticRegression] = {}
    total = len(size.seeds) * (2 + len(size.epsilons) * len(METHODS))
    with tqdm(total=total, desc="adamix_privacy", unit="fit") as bar:
        for seed in size.seeds:
            split, *others = with_others(make_split(seed, SHOTS, size.n_private))
            known = {ONLY_PUBLIC: (split.X_pub, split.y_pub), NON_PRIVATE: everything(split)}
            for name, (X, y) in known.items():
                plain = LogisticRegression(C=10.0, max_iter=500).fit(X, y)
                table.append({"method": name, "seed": seed, **attacked(plain, split, *others)})
                bar.update()
            for epsilon in size.epsilons:
                for method in METHODS:
                    clf = fit(method, split, epsilon, size, seed)
                    table.append(
                        {"method": method, "epsilon": epsilon, "seed": seed, **attacked(clf, split, *others)}
                    )
                    if epsilon == RECORDED:
                        shown.setdefault(method, clf)
                        rows.append({"method": method, "seed": seed, **summary(per_instance_epsilon(clf))})
                    bar.update()
    return pd.DataFrame(table), pd.DataFrame(rows), shown


def summary(epsilons: Array) -> dict[str, float]:
    """Quantiles of the rows' epsilons, and the part of the rows above 90% of the guarantee."""
    quantiles = {f"{q:.0%}": float(np.quantile(epsilons, q)) for q in (0.1, 0.5, 0.9)}
    return {**quantiles, "near": float(np.mean(epsilons > 0.9 * RECORDED))}


def attack_table(table: pd.DataFrame) -> str:
    """Mean and standard deviation over the seeds."""
    lines = []
    for (method, epsilon), part in table.groupby(["method", "epsilon"], sort=False, dropna=False):
        cells = [_spread(100 * part["error"], 1), _spread(part["auc"], 3)]
        lines.append([str(method), "-" if pd.isna(epsilon) else f"{epsilon:g}", *cells])
    return markdown(["method", "epsilon", "test error, %", "AUC of the attack"], lines)


def row_table(rows: pd.DataFrame) -> str:
    """Means over the seeds."""
    lines = []
    for method, part in rows.groupby("method", sort=False):
        means = part.drop(columns=["method", "seed"]).mean()
        quantiles = [f"{means[name]:.2f}" for name in ("10%", "50%", "90%")]
        lines.append([str(method), *quantiles, f"{100 * means['near']:.0f}"])
    header = ["method", "10% of rows below", "half below", "90% below", "rows above 2.7, %"]
    return markdown(header, lines)


def _spread(values: "pd.Series[float]", digits: int) -> str:
    deviation = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{deviation}"


def picture(table: pd.DataFrame, shown: dict[str, MixedDPLogisticRegression], path: Path) -> None:
    """Figure 1 (right) on the left, Figure 3 (left and centre) on the right."""
    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    display = PerInstanceDisplay.from_estimators(shown, ax=right)
    means = table.groupby(["method", "epsilon"], sort=False, dropna=False)[["error", "auc"]].mean()
    for name, line in display.lines_.items():
        own = means.loc[name]
        (copied,) = left.plot(100 * own["error"], own["auc"])
        copied.update_from(line)
        copied.set(markevery=None, label=name)
        for epsilon, point in own.iterrows():
            place = (100 * point["error"], point["auc"])
            left.annotate(f"{epsilon:g}", place, xytext=(4, 4), textcoords="offset points", fontsize=8)
    for name, marker in ((ONLY_PUBLIC, "x"), (NON_PRIVATE, "*")):
        error, auc = means.loc[name].iloc[0]
        left.plot([100 * error], [auc], marker, color="black", label=name, markersize=9)
    left.axhline(0.5, color="0.6", linewidth=0.8)
    left.set(xlabel="test error (%)", ylabel="AUC of the membership attack")
    left.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=3)
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Attacks on AdaMix, and the privacy loss of each row.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="one split, few rows, few steps")
    options = parser.parse_args(argv)
    if not (data_folder() / "banking77").is_dir():
        parser.error(f"no banking77 in {data_folder()}; set SKMIXDP_DATA to the folder that holds it.")
    table, rows, shown = run(QUICK if options.quick else FULL)
    options.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out / "adamix_privacy.csv", index=False)
    rows.to_csv(options.out / "adamix_privacy_rows.csv", index=False)
    picture(table, shown, options.out / "adamix_privacy.png")
    print(f"\n{attack_table(table)}\n\n{row_table(rows)}\n")


if __name__ == "__main__":
    main()
