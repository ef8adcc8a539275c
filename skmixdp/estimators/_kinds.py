"""What the steps before a head tell of its columns: public facts, by which fewer columns need a scale."""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from .._fit.stage import Kinds
from ..preprocessing import PublicOnly, TableColumn, TableEncoder
from ..preprocessing._cells import FARTHEST
from ._base import current_pipeline


def kinds_of_columns(n_features: int) -> Kinds | None:
    """The kinds of the columns of a head that is fitted in a pipeline; None if they are unknown."""
    pipeline = current_pipeline.get()
    steps = [] if pipeline is None else pipeline.steps[:-1]
    kinds = _of(steps[-1][1], n_features) if steps else None
    return kinds if kinds is not None and len(kinds.numbers) == n_features else None


def _of(step: object, width: int) -> Kinds | None:
    """The kinds of the columns that a fitted step makes, None if they are unknown."""
    if isinstance(step, PublicOnly):
        return _of(step.transformer_, width)
    if isinstance(step, Pipeline):
        return _of(step.steps[-1][1], width)
    if isinstance(step, TableEncoder):
        columns = step.columns_.values()
        flags = [flag for column in columns for flag in _are_numbers(column)]
        return Kinds(np.array(flags), sum(column.square for column in columns if not _is_bare(column)))
    if isinstance(step, OneHotEncoder):
        return Kinds(np.zeros(width, dtype=bool), float(step.n_features_in_))
    if isinstance(step, ColumnTransformer):
        numbers, square = np.ones(width, dtype=bool), 0.0
        for name, places in step.output_indices_.items():
            kinds = _of(step.named_transformers_.get(name), places.stop - places.start)
            if kinds is not None:
                numbers[places], square = kinds.numbers, square + kinds.square
        return Kinds(numbers, square)
    return None


def _is_bare(column: TableColumn) -> bool:
    """Whether this is a column of lists of numbers whose unit is unknown."""
    return column.kind == "list" and column.cut == FARTHEST


def _are_numbers(column: TableColumn) -> list[bool]:
    flags = column.are_numbers()
    return [True] * len(flags) if _is_bare(column) else flags
