"""``python -m benchmarks.run``: measure, then tabulate, then plot.

Times are CPU times of one thread. The results of each stage are files, so that the table and
the picture can be made again without measuring.
"""

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from threadpoolctl import threadpool_limits

from .measure import Measurement, measure
from .problems import Size, make_problem
from .report import write_plot, write_table

STAGES = ("run", "table", "plot")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("config.yaml"))
    parser.add_argument("--profile", default="default", help="an entry of the configuration")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.csv"
    if "run" in options.stages:
        run(yaml.safe_load(options.config.read_text())[options.profile]).to_csv(results, index=False)
    if "table" in options.stages:
        write_table(pd.read_csv(results), options.out / "table.md")
        print((options.out / "table.md").read_text())
    if "plot" in options.stages:
        write_plot(pd.read_csv(results), options.out / "ratios.png")


def run(profile: list[dict[str, Any]]) -> pd.DataFrame:
    """Measure a profile of the configuration; one row for each size and case."""
    found: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for entry in profile:
            methods = [importlib.import_module(f"{__package__}.methods.{name}") for name in entry["methods"]]
            for shape in entry["sizes"]:
                problem = make_problem(Size(**shape))
                cases = [case for method in methods for case in method.cases(problem)]
                found += [{**shape, **row} for row in _rows(measure(cases, entry["seconds"]))]
    return pd.DataFrame(found)


def _rows(measurements: list[Measurement]) -> list[dict[str, Any]]:
    """Results of one size. The limit is the fastest way to compute the two products."""
    limit = min(found.seconds for found in measurements if found.case.role == "limit")
    return [
        {
            "method": found.case.method,
            "variant": found.case.variant,
            "role": found.case.role,
            "seconds": found.seconds,
            "ratio": found.seconds / (found.case.allowed or limit),
            "peak_bytes": found.peak_bytes,
            "repetitions": found.repetitions,
            "note": found.note,
        }
        for found in measurements
    ]


if __name__ == "__main__":
    main()
