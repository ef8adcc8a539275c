"""The columns of an encoder as columns of a regression."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._utils.validation import shown, sources_of
from ..estimators._row_mapping import scales_of
from ._estimating import Design

Array = NDArray[Any]


#: Kinds of columns whose first entry has a unit.
_UNITS = ("number", "amount", "boolean", "date", "datetime")

#: Centre and spread of columns within -1 and 1, such as zeros and ones, which are good enough.
OF_RANGE = (0.0, 0.5)


@dataclass(frozen=True)
class Encoded:
    """The columns of an encoder without the reference category of each, and the units of their cells."""

    encoder: Any
    #: Places of the retained columns, and what their entries are times and plus in the units of cells.
    retained: NDArray[np.intp]
    center: Array
    scale: Array
    #: The categories left out.
    references: dict[str, str]
    #: Centre and spread, by place, of columns whose range is public, and places of numbers with bounds.
    ranges: dict[int, tuple[float, float]]
    bounded: tuple[int, ...]

    @classmethod
    def of(cls, encoder: Any, wanted: Any, X_pub: object) -> "Encoded":
        """The columns without the ``wanted`` references, or those that are most frequent in public rows."""
        if not hasattr(encoder, "columns_"):
            raise TypeError(
                f"encoder={shown(encoder)} must be a fitted skmixdp.preprocessing.TableEncoder; fit it to "
                "public rows, or with declared columns."
            )
        declared: dict[Any, Any] = dict(wanted) if isinstance(wanted, Mapping) else {}
        if wanted is not None and not declared:
            raise TypeError(f"reference={shown(wanted)} must be a dict of column: category, or None.")
        columns: dict[str, Any] = encoder.columns_
        factors = {name: column for name, column in columns.items() if column.kind == "category"}
        for name, category in declared.items():
            if name not in factors or category not in factors[name].categories:
                raise ValueError(
                    f"reference={shown(wanted)} must map columns of categories to one of theirs; "
                    f"{shown(name)} is no such column, or has no such category."
                )
        frequent = np.zeros(sum(len(column.names("")) for column in columns.values()))
        for X in () if X_pub is None else sources_of(X_pub):
            frequent += encoder.transform(X).sum(axis=0)
        retained: list[int] = []
        center, scale, place = [], [], 0
        references, ranges, bounded = {}, {}, []
        for name, column in columns.items():
            width = len(column.names(name))
            left_out = None
            if name in factors:
                usual = int(np.argmax(frequent[place : place + width]))
                left_out = column.categories.index(declared[name]) if name in declared else usual
                references[name] = column.categories[left_out]
            for number, is_number in enumerate(column.are_numbers()):
                if number != left_out:
                    if column.cut == 1.0 and is_number:
                        bounded.append(len(retained))
                    elif not is_number and column.kind != "list":
                        ranges[len(retained)] = OF_RANGE
                    retained.append(place)
                    in_cells = number == 0 and column.kind in _UNITS
                    # Truth values are encoded as -1 and 1.
                    middle, unit = (0.5, 0.5) if column.kind == "boolean" else (column.center, column.scale)
                    center.append(middle if in_cells else 0.0)
                    scale.append(unit if in_cells else 1.0)
                place += 1
        units = np.array(center), np.array(scale)
        return cls(encoder, np.array(retained), *units, references, ranges, tuple(bounded))

    @property
    def _names(self) -> list[str]:
        names = self.encoder.get_feature_names_out()
        return [str(names[place]) for place in self.retained]

    @property
    def units(self) -> dict[str, str]:
        """The unit of each encoded column: a day, or empty; zeros, ones and waves have none."""
        numbers = [name for place, name in enumerate(self._names) if place not in self.ranges]
        columns = self.encoder.columns_
        return {name: "days" if name in columns and columns[name].periods else "" for name in numbers}

    def cells(self, X: object) -> pd.DataFrame:
        """Encoded rows, in the units of the cells of the table; truth values are 0 and 1."""
        return self(X) * self.scale + self.center

    def __call__(self, X: object) -> pd.DataFrame:
        """Encoded rows, without reference categories."""
        return pd.DataFrame(self.encoder.transform(X)[:, self.retained], columns=self._names)

    def scales_of(self, scale: Mapping[Any, Any]) -> dict[int, tuple[float, float]]:
        """Declared centre and spread, by place, of columns of the table in the units of its cells."""
        declared = scales_of(scale, self.encoder)
        return {j: declared[place] for j, place in enumerate(self.retained.tolist()) if place in declared}

    def in_cells(self, design: Design) -> Design:
        """A design of scaled columns, converted to the units of the table's cells."""
        center, scale = self.center[design.columns], self.scale[design.columns]
        return Design(design.columns, center + scale * design.center, scale * design.spread)
