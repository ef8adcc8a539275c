"""``python -m benchmarks.audit``: audits of every algorithm of ``tests/catalog.py``, as CSV and a table.

Each algorithm is audited by many fits in the white box, by fewer in the black box, and by one fit. Rows
that ``audit.csv`` in ``--out`` holds already are not computed again, so that a run can be cut short and
resumed. On one core the defaults take some ten minutes.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.audit import AuditResult, audit_epsilon
from tests.catalog import ALGORITHMS

MU, STEPS, DELTA, CONFIDENCE = 0.925, 4, 1e-5, 0.99

#: Rows, features, classes and public rows: of audits by many fits, and of those by one.
MANY = (100, 8, 4, 24)
ONE = (200, 80, 10, 60)

#: A unit row does not reach the bound on its part in these, or not in every step: rows keep their length.
LONG_ROWS = ("dpzero", "pazo", "coupling", "modelmix, coupling")

Arrays = dict[str, Any]


def draw(n: int, d: int, n_classes: int, n_pub: int, *, targets: bool) -> Arrays:
    """Gaussian classes about Gaussian centres, or targets that are linear but for some noise."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, d))
    data = {}
    for count, ending in ((n, ""), (n_pub, "_pub")):
        y = np.arange(count) % n_classes
        X = data[f"X{ending}"] = centres[y] + rng.normal(size=(count, d))
        data[f"y{ending}"] = X[:, 0] + 0.1 * rng.normal(size=count) if targets else y
    return data


def factories() -> Iterator[tuple[str, bool, Callable[[], Any]]]:
    """Name, whether targets are measured, and what makes the estimator."""
    parameters = {
        "epsilon": None,
        "noise_multiplier": math.sqrt(STEPS) / MU,
        "n_steps": STEPS,
        "delta": DELTA,
    }
    for name, algorithm in ALGORITHMS.items():
        settings = parameters | {"rows": RowMapping(norm=None if name.startswith(LONG_ROWS) else "unit")}
        yield name, False, lambda algorithm=algorithm, of=settings: MixedDPLogisticRegression(algorithm, **of)
    for name in ("adamix", "noisy-gd"):
        yield f"ridge, {name}", True, lambda name=name: MixedDPRidge(ALGORITHMS[name], **parameters)


def audit(make: Callable[[], Any], targets: bool, fits: int, black_fits: int) -> dict[str, Any]:
    """One row of the table."""
    started = time.perf_counter()
    many, one = draw(*MANY, targets=targets), draw(*ONE, targets=targets)
    audits: dict[str, AuditResult] = {
        "white": audit_epsilon(make, **many, n_fits=fits, confidence=CONFIDENCE, random_state=0),
        "one": audit_epsilon(make, **one, n_canaries=ONE[0], confidence=CONFIDENCE, random_state=0),
        "black": audit_epsilon(
            make, **many, n_fits=black_fits, view="model", confidence=CONFIDENCE, random_state=0
        ),
    }
    row: dict[str, Any] = {}
    for name, result in audits.items():
        fields = ("epsilon", "mu", "measured_mu", "claimed_epsilon", "claimed_mu", "exceeds_claim")
        row |= {f"{name}_{field}": getattr(result, field) for field in fields}
        row[f"{name}_low"], row[f"{name}_high"] = result.measured_mu_interval
    return row | {"seconds": time.perf_counter() - started}


_HEAD = """# Audits of every algorithm

Made by `python -m benchmarks.audit`; [docs/audit.md](../docs/audit.md) says what the columns mean. Bounds are
lower bounds and should stay below the claim. Measured mu is an estimate and should be near the claim.

- Data: Gaussian classes. Many fits: {n} private rows and one canary, {d} features, {k} classes, {n_pub}
  public rows. One fit: {m} private rows, {m} canaries, {d_one} features, {k_one} classes, {n_pub_one} public
  rows.
- Rows have unit length, except where names begin with {long}.
  There they have their own length: a unit row does not reach the bound on its part.
- Claim: {steps} steps of noise multiplier {sigma:.4f}, hence mu {mu}, and epsilon at delta {delta:g}.
- White box: {fits} fits. Black box: {black_fits} fits. One fit: white box. Confidence of each bound and
  interval: {confidence}.
- Time: {minutes:.0f} minutes on one thread of a machine of {cores} cores, which other work shared.
- {refuted} of {audits} audits refute a claim; if every claim is true, at most {chance:.0f} are expected to.
- White box: the claimed mu lies in the interval of the measured one for {inside} of {algorithms} algorithms.
  {near} measured values are within 0.1 of the claim, {close} within 0.2.

| algorithm | claimed epsilon | claimed mu | white box: epsilon | mu | measured mu \
| one fit: epsilon | mu | black box: claimed epsilon | mu | measured mu |
|{rules}
"""

_ROW = (
    "| {algorithm} | {white_claimed_epsilon:.2f} | {white_claimed_mu:.3f} "
    "| {white_epsilon:.2f} | {white_mu:.2f} "
    "| {white_measured_mu:.2f} ({white_low:.2f} to {white_high:.2f}) | {one_epsilon:.2f} | {one_mu:.2f} "
    "| {black_claimed_epsilon:.2f} | {black_mu:.2f} "
    "| {black_measured_mu:.2f} ({black_low:.2f} to {black_high:.2f}) |"
)


def table(rows: pd.DataFrame, fits: int, black_fits: int) -> str:
    """The rows as Markdown, with what they were measured on."""
    n, d, k, n_pub = MANY
    m, d_one, k_one, n_pub_one = ONE
    audits = ("white", "one", "black")
    claim = rows["white_claimed_mu"]
    distance = (rows["white_measured_mu"] - claim).abs()
    head = _HEAD.format(
        n=n,
        d=d,
        k=k,
        n_pub=n_pub,
        m=m,
        d_one=d_one,
        k_one=k_one,
        n_pub_one=n_pub_one,
        steps=STEPS,
        sigma=math.sqrt(STEPS) / MU,
        mu=MU,
        delta=DELTA,
        fits=fits,
        black_fits=black_fits,
        confidence=CONFIDENCE,
        minutes=rows["seconds"].sum() / 60,
        cores=os.cpu_count(),
        refuted=int(sum(rows[f"{audit}_exceeds_claim"].sum() for audit in audits)),
        audits=len(rows) * len(audits),
        chance=2 * len(rows) * len(audits) * (1 - CONFIDENCE),
        inside=int(claim.between(rows["white_low"], rows["white_high"]).sum()),
        algorithms=len(rows),
        near=int((distance <= 0.1).sum()),
        close=int((distance <= 0.2).sum()),
        long=", ".join(LONG_ROWS),
        rules=" --- |" * 11,
    )
    return head + "\n".join(_ROW.format(**row) for row in rows.to_dict("records")) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/audit"))
    parser.add_argument("--fits", type=int, default=300, help="fits in the white box")
    parser.add_argument("--black-fits", type=int, default=80, help="fits in the black box")
    parser.add_argument("--only", nargs="*", help="names of algorithms; all of them if left out")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "audit.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {row["algorithm"] for row in rows}
    for name, targets, make in factories():
        if name in done or (chosen.only and name not in chosen.only):
            continue
        rows.append({"algorithm": name, **audit(make, targets, chosen.fits, chosen.black_fits)})
        pd.DataFrame(rows).to_csv(path, index=False)
        print(
            f"{name}: measured mu {rows[-1]['white_measured_mu']:.3f}, {rows[-1]['seconds']:.0f} s",
            flush=True,
        )
    order = [name for name, _, _ in factories()]
    rows.sort(key=lambda row: order.index(row["algorithm"]))
    found = table(pd.DataFrame(rows), chosen.fits, chosen.black_fits)
    (chosen.out / "audit_results.md").write_text(found, encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
