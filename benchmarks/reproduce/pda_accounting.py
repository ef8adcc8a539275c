"""The six pairs of sigma and epsilon in the PDA-DPMD paper, and how long calibration takes.

Run ``python -m benchmarks.reproduce.pda_accounting [--out results/reproduce] [--quick]``. Needs
no data: the pairs follow from the numbers of rows, batches and epochs.

Source: Amid et al. 2022, "Public Data-Assisted Mirror Descent for Private Model Training"
(PDA-DPMD), section 4.
"""

import argparse
import csv
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant

from skmixdp.privacy import epsilon_of, noise_multiplier_for

#: Share of the rows that is private: 4% of each training set serves as public data.
PRIVATE_SHARE = 0.96


@dataclass(frozen=True)
class Pair:
    """One setting of the paper and the epsilon that it prints."""

    data: str
    n_rows: int
    batch_size: int
    epochs: int
    sigma: float
    delta: float
    printed: str

    @property
    def sampling_rate(self) -> float:
        return self.batch_size / round(PRIVATE_SHARE * self.n_rows)

    @property
    def n_steps(self) -> int:
        return round(self.epochs / self.sampling_rate)

    def digits(self, epsilon: float) -> str:
        """An epsilon with as many digits as the paper prints."""
        return f"{epsilon:.{len(self.printed.partition('.')[2])}f}"


PAIRS = (
    Pair("CIFAR-10", 50_000, 500, 100, 1.51, 1e-5, "3.51"),
    Pair("CIFAR-10", 50_000, 500, 100, 20.0, 1e-5, "0.19"),
    Pair("EMNIST", 697_932, 500, 50, 0.41, 1e-6, "25.80"),
    Pair("EMNIST", 697_932, 500, 50, 1.89, 1e-6, "0.48"),
    Pair("WikiText-2", 48_764, 250, 20, 0.5, 1e-5, "15.7"),
    Pair("WikiText-2", 48_764, 250, 20, 1.08, 1e-5, "1.71"),
)


def rdp_epsilon(pair: Pair) -> tuple[float, float]:
    """Epsilon and best order of dp-accounting's RDP accountant, its default orders."""
    accountant = rdp_privacy_accountant.RdpAccountant()
    step = dp_event.PoissonSampledDpEvent(pair.sampling_rate, dp_event.GaussianDpEvent(pair.sigma))
    accountant.compose(step, pair.n_steps)
    epsilon, order = accountant.get_epsilon_and_optimal_order(pair.delta)
    return float(epsilon), float(order)


def exact_rdp_epsilon(pair: Pair, order: float) -> float:
    """Epsilon at one order, the Renyi divergence by quadrature instead of a series.

    ``log E_{x ~ N(0, sigma^2)} [(1 - q + q exp((2x - 1) / (2 sigma^2)))^order] / (order - 1)``
    per step (Mironov, Talwar and Zhang 2019), with the conversion of Canonne, Kamath and Steinke
    2020, Proposition 12.
    """
    q, sigma = pair.sampling_rate, pair.sigma
    reach = 12 * sigma
    x = np.linspace(-reach, order + reach, 400_001)
    log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * sigma**2))
    log_density = -(x**2) / (2 * sigma**2) - 0.5 * math.log(2 * math.pi * sigma**2)
    log_moment = math.log(np.sum(np.exp(log_density + order * log_ratio)) * (x[1] - x[0]))
    divergence = pair.n_steps * log_moment / (order - 1)
    conversion = math.log1p(-1 / order) - math.log(pair.delta * order) / (order - 1)
    return divergence + conversion


def pair_rows() -> list[dict[str, Any]]:
    """One row of the table for each pair."""
    rows = []
    for pair in PAIRS:
        epsilon, order = rdp_epsilon(pair)
        pld = epsilon_of(pair.sigma, pair.n_steps, delta=pair.delta, sampling_rate=pair.sampling_rate)
        rows.append(
            {
                "data": pair.data,
                "batch size": pair.batch_size,
                "steps": pair.n_steps,
                "sigma": pair.sigma,
                "delta": pair.delta,
                "paper": pair.printed,
                "RDP (dp-accounting)": f"{epsilon:.4f}",
                "order": f"{order:g}",
                "RDP (quadrature)": f"{exact_rdp_epsilon(pair, order):.4f}",
                "PLD (skmixdp)": f"{pld:.4f}",
            }
        )
    return rows


#: Sampling rates, steps and budgets of the timings.
RATES, STEPS, EPSILONS = (0.0005, 0.005, 0.05, 0.5), (100, 1_000, 10_000), (0.1, 1.0, 8.0, 20.0)


def timing_rows(
    rates: Sequence[float] = RATES, steps: Sequence[int] = STEPS, epsilons: Sequence[float] = EPSILONS
) -> list[dict[str, Any]]:
    """CPU seconds of each calibration, in one process, delta 1e-5."""
    noise_multiplier_for(1.0, 1e-5, n_steps=10, sampling_rate=0.1)  # imports are no part of it
    rows = []
    for rate in rates:
        for n_steps in steps:
            for epsilon in epsilons:
                start = time.process_time()
                sigma = noise_multiplier_for(epsilon, 1e-5, n_steps=n_steps, sampling_rate=rate)
                seconds = time.process_time() - start
                spent = epsilon_of(sigma, n_steps, delta=1e-5, sampling_rate=rate)
                rows.append(
                    {
                        "sampling rate": rate,
                        "steps": n_steps,
                        "epsilon": epsilon,
                        "noise multiplier": f"{sigma:.4f}",
                        "spent": f"{spent:.5f}",
                        "CPU seconds": f"{seconds:.2f}",
                    }
                )
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table in Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"))
    parser.add_argument("--quick", action="store_true", help="time three calibrations only")
    options = parser.parse_args(arguments)
    pairs = pair_rows()
    write(options.out / "pda_accounting.csv", pairs)
    print(markdown(pairs))
    timings = timing_rows((0.05,), (1_000,), (0.1, 1.0, 8.0)) if options.quick else timing_rows()
    write(options.out / "pda_accounting_timings.csv", timings)
    print()
    print(markdown(timings))


if __name__ == "__main__":
    main()
