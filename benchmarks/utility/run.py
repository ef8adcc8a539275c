"""``python -m benchmarks.utility.run``: fit, then tabulate, then draw.

Every result is appended to ``results.csv`` as soon as it is there, and a second run computes only what
is missing. Tables and figures are made from that file alone. Delete it, or name another folder,
after a change of the library or of the configuration that should change its numbers.
"""

import argparse
import csv
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from . import data
from .figures import write_figures
from .methods import ADAPTERS, UnavailableError
from .problems import MEASURES, PUBLIC, STARTS, make_problem
from .tables import write_tables
from .tabular import write_tabular
from .units import KEYS, Config, Unit, left_over, units

CONFIG = Path(__file__).with_name("config.yaml")
STAGES = ("run", "tables", "figures")
COLUMNS = (*KEYS, "setting", *MEASURES, "seconds", "note")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility.run", description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument(
        "--profile", nargs="+", default=["default"], help="entries of the configuration's profiles"
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="only these methods of the profiles")
    parser.add_argument("--out", type=Path, default=Path("results/utility"))
    parser.add_argument("--cache", type=Path, default=Path("results/features"), help="folder of features")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    config = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    path = options.out / "results.csv"
    if "run" in options.stages:
        try:
            planned = units(config, options.profile, options.methods)
            reasons = run(config, planned, path, options.cache, options.jobs)
        except ValueError as problem:
            parser.error(str(problem))
        for reason in reasons:
            print(reason)
    results = in_order(read_results(path), config)
    if results.empty:
        parser.error(f"{path} has no results to show.")
    tabular = config["report"]["tabular"]
    on_tables = results["data"].isin([name for part in tabular["parts"].values() for name in part])
    others, own = results[~on_tables], results[on_tables]
    if "tables" in options.stages:
        if len(others):
            print(write_tables(others, options.out, config["report"]))
        if len(own):
            print(write_tabular(own, options.out, tabular))
    if "figures" in options.stages and len(others):
        write_figures(others, options.out, config["report"])


def read_results(path: Path) -> pd.DataFrame:
    """The table of all fits so far; missing keys mean that a method does not depend on them."""
    missing = dict.fromkeys(("shots", "seed", "epsilon", *MEASURES), "")
    return pd.read_csv(path, keep_default_na=False, na_values=missing)


def in_order(results: pd.DataFrame, config: Config) -> pd.DataFrame:
    """Results in the order of the configuration, whichever came first."""
    orders = {"data": list(config["data"]), "method": list(config["methods"]), "start": ["", *STARTS]}
    places = {name: {value: place for place, value in enumerate(order)} for name, order in orders.items()}
    return results.sort_values(
        ["data", "shots", "start", "method", "seed", "epsilon"],
        key=lambda column: column.map(places[column.name]) if column.name in places else column,
        kind="stable",
        na_position="first",
    )


def run(config: Config, planned: Sequence[Unit], path: Path, cache: Path, jobs: int) -> list[str]:
    """Append the missing results to a file; returns why some could not be had.

    Raises
    ------
    ValueError
        If the file has other columns.
    """
    done: set[tuple[str, ...]] = set()
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            if tuple(table.fieldnames or COLUMNS) != COLUMNS:
                raise ValueError(f"{path} has other columns; delete it or name another folder with --out.")
            done = {tuple(row[key] for key in KEYS) for row in table}
    todo = [left for unit in planned if (left := left_over(unit, done)) is not None]
    reasons: dict[str, None] = {}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            writer.writeheader()
        for found in tqdm(_outcomes(config, todo, cache, jobs), total=len(todo), desc="utility", unit="unit"):
            if isinstance(found, str):
                reasons[found] = None
            else:
                writer.writerows(found)
                file.flush()
    return list(reasons)


def _outcomes(config: Config, todo: Sequence[Unit], cache: Path, jobs: int) -> Iterator[Any]:
    if jobs == 1:
        for unit in todo:
            yield run_unit(config, unit, cache)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(run_unit, config, unit, cache) for unit in todo]
        try:
            for finished in as_completed(waiting):
                yield finished.result()
        finally:  # what fails or is interrupted need not wait for all the others
            pool.shutdown(cancel_futures=True)


def run_unit(config: Config, unit: Unit, cache: Path) -> list[dict[str, str]] | str:
    """Rows of the results, or a sentence where the method or the data are not to be had."""
    method = dict(config["methods"][unit.method])
    adapter = ADAPTERS[method.pop("adapter")]
    try:
        with threadpool_limits(1):
            rows = data.load(cache=cache, **config["data"][unit.data])
            problem = make_problem(rows, unit.shots or 0, unit.seed or 0, unit.start or PUBLIC)
            began = _cpu_seconds()
            scores = adapter.fit(problem, unit.epsilons, **method)
    except UnavailableError as reason:
        return f"{unit.method} is left out: {reason}"
    except FileNotFoundError as reason:
        return f"{unit.data} is left out: {reason}"
    each = (_cpu_seconds() - began) / len(scores)
    return [
        {
            **unit.key(score.epsilon),
            "setting": score.setting,
            **{
                name: "" if math.isnan(value) else f"{value:.6f}"
                for name, value in asdict(score.measures).items()
            },
            "seconds": f"{each:.3f}",
            "note": score.note,
        }
        for score in scores
    ]


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it waited for."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
