"""ModelMix, Figure 3, Theorem 4.2 and section 5.3: epsilon with mixing at a sampling rate of 0.02.

The setting is the paper's: n = 50,000, q = 0.02 (an expected batch b = 1,000), clip c = 20, delta =
1e-5, T = 5,000 steps, and noise of standard deviation sigma c. It prints no sigma: 0.364 gives about its
epsilon of 200 without mixing. The mixing thresholds are tau_mix = 0.075, 0.15 and 0.3 step sizes on the
scale of the MEAN gradient; the accounting is on the scale of the clipped sum, so ``w = b tau_mix / step
size``, and the width in clips is ``w / c``. Nothing is random and no data is used.

Section 4.3 prints the nine values of Figure 3. Wider thresholds show how fast epsilon falls with them, for
Theorem 4.2. Section 5.3 trains a linear head with three thresholds in turn (Appendix E).

Run ``python -m benchmarks.reproduce.modelmix_fig3 --out results/reproduce``.
"""

import argparse
import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from dp_accounting import calibrate_dp_mechanism
from dp_accounting.dp_event import DpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from matplotlib.figure import Figure

from skmixdp._papers.modelmix.accountant import log_moments
from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.privacy import epsilon_of
from skmixdp.privacy.accounting.budgets import amplified_epsilon

CLIP, BATCH, RATE, DELTA, N_STEPS, SIGMA = 20, 1000, 0.02, 1e-5, 5000, 0.364
THRESHOLDS = (0.075, 0.15, 0.3)
SPLITS = (1, 25, 100)
RELATION = "add_or_remove_one"

#: The values that section 4.3 prints, by split and threshold.
PRINTED = {
    (1, 0.075): 57.2,
    (1, 0.15): 40.4,
    (1, 0.3): 31.7,
    (25, 0.075): 17.9,
    (25, 0.15): 9.0,
    (25, 0.3): 5.4,
    (100, 0.075): 15.3,
    (100, 0.15): 7.9,
    (100, 0.3): 4.8,
}

#: Thresholds for the slopes of Theorem 4.2.
WIDER = (0.075, 0.15, 0.3, 0.6, 1.2, 2.4)

#: Section 5.3 and Appendix E: batch, clip, thresholds of 500 steps each, and the factor of the noise.
HEAD_BATCH, HEAD_CLIP, HEAD_N, HEAD_STEPS = 1024, 0.1, 50_000, 500
HEAD_THRESHOLDS, HEAD_FACTOR, HEAD_PRINTED = (0.0075, 0.005, 0.0025), 0.85, 0.64


def width_of(threshold: float) -> float:
    """Width of the mixing in units of the clip."""
    return BATCH * threshold / CLIP


def mixed_epsilon(threshold: float, split: int, conversion: str, n_steps: int = N_STEPS) -> float:
    """Epsilon by the amplified bound alone."""
    event = ModelMixEvent(
        SIGMA, n_steps, RATE, width=width_of(threshold), linf_split=split, conversion=conversion
    )
    return amplified_epsilon(event, DELTA, RELATION)


def renyi_epsilon_without_mixing() -> float:
    """Epsilon of the same DP-SGD by fractional Renyi orders and the classic conversion.

    By the same quadrature with next to no mixing: dp-accounting drops these orders at so small
    a sigma.
    """
    orders = 1 + np.geomspace(0.01, 10, 200)
    moments = log_moments(orders, 1 / SIGMA, 1e-4, RATE, 1)
    return float(np.min((N_STEPS * moments - math.log(DELTA)) / (orders - 1)))


def distribution_epsilon_without_mixing() -> float:
    """Epsilon of the same DP-SGD by privacy loss distributions.

    The library's own accountant takes Renyi orders above 1 there, and its bound is ten times as large.
    """
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(PoissonSampledDpEvent(RATE, GaussianDpEvent(SIGMA)), N_STEPS)
    return float(accountant.get_epsilon(DELTA))


def total_multiplier(threshold: float) -> float:
    """Multiplier of Gaussian noise with the variance of the noise and the mixing together."""
    return math.hypot(SIGMA, width_of(threshold) / math.sqrt(12))


def table(*, quick: bool = False) -> pd.DataFrame:
    """One row for each of the figure's nine values; ``quick`` leaves out what takes seconds."""
    rows = []
    for threshold in THRESHOLDS:
        multiplier = total_multiplier(threshold)
        same = math.nan if quick else epsilon_of(multiplier, N_STEPS, delta=DELTA, sampling_rate=RATE)
        for split in SPLITS:
            printed = PRINTED[split, threshold]
            classic = mixed_epsilon(threshold, split, "classic")
            rows.append(
                {
                    "threshold": threshold,
                    "width": width_of(threshold),
                    "split": split,
                    "printed": printed,
                    "classic": classic,
                    "off_by": classic / printed - 1,
                    "tight": mixed_epsilon(threshold, split, "tight"),
                    "total_multiplier": multiplier,
                    "gaussian_of_same_variance": same,
                }
            )
    return pd.DataFrame(rows)


def slopes(splits: Sequence[int] = SPLITS, thresholds: Sequence[float] = WIDER) -> pd.DataFrame:
    """``d log epsilon / d log threshold`` between neighbouring thresholds, one column a split."""
    ratios = np.diff(np.log(thresholds))
    logs = {s: np.log([mixed_epsilon(x, s, "classic") for x in thresholds]) for s in splits}
    index = [f"{a:g} to {b:g}" for a, b in itertools.pairwise(thresholds)]
    return pd.DataFrame({split: np.diff(values) / ratios for split, values in logs.items()}, index=index)


def head_epsilon() -> float:
    """Epsilon of section 5.3: 0.85 times the noise of (2, 1e-5) in 2,700 steps, by Renyi orders."""
    rate = HEAD_BATCH / HEAD_N

    def steps(sigma: float) -> DpEvent:
        return SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), 2700)

    sigma = HEAD_FACTOR * calibrate_dp_mechanism(RdpAccountant, steps, 2.0, DELTA)
    orders = np.concatenate([1 + np.geomspace(0.01, 10, 150), np.arange(12, 400)])
    widths = [HEAD_BATCH * threshold / HEAD_CLIP / sigma for threshold in HEAD_THRESHOLDS]
    moments = sum(HEAD_STEPS * log_moments(orders, 1 / sigma, width, rate, 1) for width in widths)
    return float(np.min((moments - math.log(DELTA)) / (orders - 1)))


def markdown(found: pd.DataFrame) -> str:
    """The table for people."""
    lines = [
        "| tau_mix / step | width / clip | s | paper | here, classic | off by | here, tight | "
        "Gaussian of the same variance (multiplier) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.threshold:g} | {row.width:g} | {row.split} | {row.printed:g} | {row.classic:.2f} | "
        f"{row.off_by:+.1%} | {row.tight:.2f} | {row.gaussian_of_same_variance:.2f} "
        f"({row.total_multiplier:.2f}) |"
        for row in found.itertuples()
    ]
    return "\n".join(lines)


#: Okabe-Ito colours, each with a line of its own kind.
STYLES = {
    1: {"color": "#0072B2", "linestyle": "-"},
    25: {"color": "#D55E00", "linestyle": "--"},
    100: {"color": "#009E73", "linestyle": "-."},
}
TICKS = (2, 5, 10, 20, 50)


def picture(path: Path, n_points: int) -> None:
    """Epsilon against steps, one panel a threshold, as in the paper's panels (a) to (c)."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    steps = np.unique(np.round(np.linspace(100, N_STEPS, n_points)).astype(int))
    for axes, threshold in zip(figure.subplots(1, 3, sharey=True), THRESHOLDS, strict=True):
        for split in SPLITS:
            curve = [mixed_epsilon(threshold, split, "classic", int(n)) for n in steps]
            axes.plot(steps, curve, label=f"s = {split}", **STYLES[split])
            axes.plot(N_STEPS, PRINTED[split, threshold], "k_", markersize=12)
        axes.set(yscale="log", xlabel="steps", title=f"tau_mix = {threshold:g} step sizes")
    figure.axes[0].set_ylabel("epsilon")
    figure.axes[0].set_yticks(TICKS, map(str, TICKS))
    figure.axes[0].minorticks_off()
    figure.axes[0].legend()
    figure.suptitle("ModelMix at q = 0.02, classic conversion; bars: the paper's values")
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    """Compute the figure's values and write them."""
    parser = argparse.ArgumentParser(description="ModelMix, Figure 3.")
    parser.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder to write to")
    parser.add_argument("--quick", action="store_true", help="leave out what takes seconds")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    found = table(quick=options.quick)
    found.to_csv(options.out / "modelmix_fig3.csv", index=False)
    picture(options.out / "modelmix_fig3.png", 4 if options.quick else 25)
    print(markdown(found))
    if not options.quick:
        renyi = renyi_epsilon_without_mixing()
        plain = distribution_epsilon_without_mixing()
        print(
            f"\nThe same without mixing: {renyi:.1f} by fractional Renyi orders and the classic conversion, "
            f"{plain:.1f} by PLD."
        )
        print(f"\nSlopes by split:\n\n{slopes().round(2).to_string()}")
        print(f"\nSection 5.3: {head_epsilon():.4f}, printed {HEAD_PRINTED}.")


if __name__ == "__main__":
    main()
