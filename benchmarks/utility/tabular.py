"""Splits of the tables that the configuration names."""

from pathlib import Path

import yaml

from . import data
from .problems import Array, make_problem

CONFIG = Path(__file__).with_name("config.yaml")


def split(table: str, shots: int, seed: int) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Rows of one split as the benchmark makes it: ``X, y, X_pub, y_pub, X_test, y_test``.

    Parameters
    ----------
    table : str
        Name among the configuration's data.
    shots : int
        Public rows of each class, or public rows of a regression.
    seed : int
        Of the split.
    """
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    problem = make_problem(data.load(cache=Path(), **config["data"][table]), shots, seed)
    return problem.X, problem.y, problem.X_pub, problem.y_pub, problem.X_test, problem.y_test
