"""Coupling, Tables 2 and 6.

Run ``python -m benchmarks.reproduce.coupling_tables [--out results/reproduce] [--quick]``.

Table 6 converts (epsilon, 1e-5) to (epsilon', n_priv^-1.1). With our accountant the conversion
is exact for full batches, and an upper bound by privacy loss distributions for the paper's
Poisson batches (expected size 1,000, 5 epochs). Table 2 sets methods apart by their public
weight and their clip: each of its rows is one line of configuration here. "C = 1" is the
original description of two methods, without clipping; a private run needs a bound, which is the
threshold 1 of the DPMD experiments and the loss's own bound for SampleMechanism.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from skmixdp.algorithms import AdaMix, Algorithm, Coupling, NoisyGD
from skmixdp.components import CosineWeight
from skmixdp.privacy import epsilon_of, noise_multiplier_for

#: Data set, n_priv, epsilon at delta = 1e-5, and the printed (epsilon', delta').
TABLE_6 = (
    ("CIFAR10, r_pub 0.05", 47_500, 2.0, 2.00001, 7.17e-6),
    ("CIFAR10, r_pub 0.2", 40_000, 2.0, 2.00001, 8.66e-6),
    ("CIFAR10, r_pub 0.2", 40_000, 5.0, 5.00003, 8.66e-6),
    ("SST2, r_pub 0.2", 53_879, 2.0, 2.00001, 6.24e-6),
    ("QNLI, r_pub 0.2", 83_794, 2.0, 2.00001, 3.84e-6),
)
DELTA = 1e-5
BATCH, EPOCHS = 1000, 5


@dataclass(frozen=True)
class Method:
    """A row of Table 2: its name, the paper's public weight and clip, and our configuration."""

    name: str
    weight: str
    clip: str
    algorithm: Algorithm


TABLE_2 = (
    Method(
        "Coupling", "alpha(B, d, n, T, epsilon)", "1 / (|g| + 1)", Coupling(1.0, public_weight="coupling")
    ),
    Method("DPMD", "1 - cos(pi t / (2 K))", "1", NoisyGD(1.0, momentum=0.0, public_weight=CosineWeight(200))),
    Method("AdaMix, sum of losses", "0.5", "min(R / |g|, 1)", AdaMix(public_weight=0.5)),
    Method("AdaMix, mean of losses", "n_pub / n", "min(R / |g|, 1)", AdaMix(public_weight="sample")),
    Method("SampleMechanism", "n_pub / n", "1", NoisyGD(clip="lipschitz", public_weight="sample")),
    Method("OnlyPublic", "1", "1", NoisyGD(public_weight=1.0)),
    Method("OnlyPrivate", "0", "min(R / |g|, 1)", NoisyGD(public_weight=0.0)),
)


def conversions(quick: bool) -> pd.DataFrame:
    """Table 6 with our numbers; ``quick`` leaves out the sampled batches."""
    lines = []
    for name, n, epsilon, printed, printed_delta in TABLE_6:
        delta = n**-1.1
        sigma = noise_multiplier_for(epsilon, DELTA, n_steps=1)
        line = {
            "data": name,
            "n_priv": n,
            "epsilon at 1e-5": epsilon,
            "delta": delta,
            "printed delta": printed_delta,
            "printed epsilon": printed,
            "full batch": epsilon_of(sigma, 1, delta=delta),
        }
        if not quick:
            rate, steps = BATCH / n, EPOCHS * n // BATCH
            sampled = noise_multiplier_for(epsilon, DELTA, n_steps=steps, sampling_rate=rate)
            line["Poisson batches"] = epsilon_of(sampled, steps, delta=delta, sampling_rate=rate)
            line["sigma"] = sampled
        lines.append(line)
    return pd.DataFrame(lines)


def markdown(table: pd.DataFrame) -> str:
    """The conversions as a Markdown table."""
    formats = {"delta": "{:.2e}", "printed delta": "{:.2e}", "n_priv": "{:,}", "printed epsilon": "{:.5f}"}
    lines = [f"| {' | '.join(table.columns)} |", "| --- " * len(table.columns) + "|"]
    for _, row in table.iterrows():
        cells = [
            value if isinstance(value, str) else formats.get(name, "{:.4f}").format(value)
            for name, value in row.items()
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def configurations() -> str:
    """Table 2 as a Markdown table of configurations."""
    lines = ["| method | public weight | C(|g|) | here |", "| --- | --- | --- | --- |"]
    for row in TABLE_2:
        clip = row.clip.replace("|", "\\|")
        lines.append(f"| {row.name} | {row.weight} | {clip} | `{row.algorithm!r}` |")
    return "\n".join(lines).replace("C(|g|)", "C(\\|g\\|)")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Tables 2 and 6 of Coupling.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="full batches only")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    table = conversions(options.quick)
    table.to_csv(options.out / "coupling_tables.csv", index=False)
    print(f"{markdown(table)}\n\n{configurations()}")


if __name__ == "__main__":
    main()
