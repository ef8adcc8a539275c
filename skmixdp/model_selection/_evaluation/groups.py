"""Metrics of groups of rows, from one noisy histogram."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._utils.documents import Document, Section
from ..._utils.frames import n_rows_of
from ..._utils.lazy_imports import annex
from ..._utils.validation import FLAG, check, respelt, shown
from ...preprocessing._cells import listed
from ...preprocessing._one_cell import text_of
from ...privacy import PrivacyReport
from ...privacy.units import Units
from .cells import Estimate, NoisyCells, cost_of
from .scores import ScoreEvaluation

#: Name of the group of all rows without a declared group.
OTHER = "other"

#: A group is shown as unknown if its noisy number of rows is below this many standard deviations.
_SURE_DEVIATIONS = 4.0


@dataclass(frozen=True, repr=False)
class GroupedEvaluation(Document):
    """Metrics of each group of rows, from one release.

    :func:`private_evaluation` makes it from ``by`` and ``by_values``. ``evaluation[group]`` has the metrics
    of a group.

    Attributes
    ----------
    groups : dict
        The evaluation of each group; the last one is ``"other"``.
    unknown : tuple
        Groups of too few rows: noise hides how many.
    privacy : PrivacyReport
        The guarantee of the release.

    Notes
    -----
    A group's number of rows is private. So means are ratios of noisy sums, and their intervals count the
    noise in both.
    """

    groups: dict[Any, Any]
    unknown: tuple[Any, ...]
    privacy: PrivacyReport

    @property
    def no_guarantee(self) -> str:
        """The first line of the text, which names known leaks; empty without leaks."""
        return self.privacy.no_guarantee

    def __getitem__(self, group: object) -> Any:
        return self.groups[group]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def _terms(self) -> str:
        """The level of the intervals, and the noise, as text."""
        return str(next(iter(self.groups.values()))._terms)

    def summary(self) -> pd.DataFrame:
        """The main metrics of all groups.

        Returns
        -------
        DataFrame
            A row for each group. Columns are pairs of a metric and "value", "low" or "high"; unknown groups
            have NaN. The metric "rows" is the noisy number of rows, or of persons.
        """
        rows = []
        for group, evaluation in self.groups.items():
            metrics = evaluation.summary()
            if isinstance(evaluation, ScoreEvaluation) and evaluation.question == "label":
                metrics["selection rate at 0.5"] = evaluation.at(0.5)["selection rate"]
            if group in self.unknown:
                metrics = dict.fromkeys(metrics, Estimate(math.nan, math.nan, math.nan))
            n_rows, half = evaluation.cells.n_rows, evaluation.cells.z * evaluation.cells.total_scale
            metrics = {"rows": Estimate(n_rows, n_rows - half, n_rows + half), **metrics}
            # Distances that hold most residuals differ between groups, and so do their names.
            alike = {name: end for name, end in metrics.items() if not name.startswith("share within")}
            rows.append(pd.DataFrame(alike, Estimate._fields).unstack())
        return pd.DataFrame(rows, pd.Index(list(self.groups), tupleize_cols=False))

    def plot(self, metric: str | None = None, *, ax: object = None) -> Any:
        """Draw a metric of :meth:`summary` (the first after the number of rows) on ``ax`` or a new figure."""
        return annex("EvaluationDisplay").from_evaluation(self, kind=metric, ax=ax)

    def compare(self, metric: str, reference: object = None, *, ratio: bool = False) -> pd.DataFrame:
        """Differences or ratios of a metric between groups, with intervals, at no cost.

        Groups share no row, and each cell has noise of its own. So the errors of two groups are independent.

        Parameters
        ----------
        metric : str
            A metric of :meth:`summary`.
        reference : object, default=None
            The group with which the others are compared; None is the first.
        ratio : bool, default=False
            Whether to divide by the metric of the reference, or to subtract it.

        Returns
        -------
        DataFrame
            Columns ``value``, ``low`` and ``high``, one row for each other group; NaN if a group is unknown.

        Raises
        ------
        ValueError
            For a metric or a group that the evaluation does not have.

        References
        ----------
        G. Y. Zou and A. Donner (2008). Construction of confidence limits about effect measures: a general
        approach. Statistics in Medicine 27(10), 1693-1702.
        """
        table = self.summary()
        check("metric", metric, *table.columns.get_level_values(0).unique())
        check("ratio", ratio, FLAG)
        groups = list(self.groups)
        first = groups[0] if reference is None else reference
        if first not in groups:
            raise ValueError(f"reference={shown(first)} is no group; name one of {shown(groups)}.")
        ends = table[metric].to_numpy(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.log(np.maximum(ends, 0.0)) if ratio else ends
            base = ends[groups.index(first)]
            value = ends[:, 0] - base[0]
            low = value - np.hypot(ends[:, 0] - ends[:, 1], base[2] - base[0])
            high = value + np.hypot(ends[:, 2] - ends[:, 0], base[0] - base[1])
            compared = np.column_stack([value, low, high])
            compared = np.exp(compared) if ratio else compared
        others = [place for place, group in enumerate(groups) if group != first]
        return pd.DataFrame(compared[others], table.index[others], list(Estimate._fields))

    def _sections(self) -> list[Section]:
        table, groups = self.summary(), range(len(self))
        rows = [
            (name, *(_cell(Estimate(*table[name].iloc[place]), name) for place in groups))
            for name in dict.fromkeys(table.columns.get_level_values(0))
        ]
        columns = "", *map(name_of, self.groups)
        return [Section(self._heading, rows, columns, notes=[cost_of(self.privacy)])]

    __repr__ = Document.__str__

    @property
    def _heading(self) -> str:
        return f"GroupedEvaluation of {len(self)} groups, with intervals"


@dataclass(frozen=True)
class Parts:
    """The group of each row, as the index (n_rows,) of a declared name; None puts all rows in one group."""

    codes: NDArray[np.intp] | None
    names: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any, by: Any, values: object) -> "Parts":
        """The groups from the parameters ``by`` and ``by_values``, which are checked."""
        if by is None:
            if values is not None:
                raise ValueError("by_values needs by, the group of each row; pass both or none.")
            return cls(None)
        if values is None:
            raise ValueError(
                "by needs by_values, the list of groups, which must not be read from private rows."
            )
        if isinstance(by, (list, tuple)) and len(by) == 2 and set(by) <= set(getattr(X, "columns", ())):
            return cls._crossed(X, by, values)
        names = list(values) if isinstance(values, (list, tuple, np.ndarray)) else []
        places = {_text_of(name): place for place, name in enumerate(names)}
        if not names or len(places) < len(names) or OTHER in places or None in places:
            raise ValueError(
                f"by_values={shown(values)} must be a list of different groups, none missing, without "
                f"{OTHER!r}, which is the name of all others."
            )
        if isinstance(by, str):
            columns = getattr(X, "columns", [])
            if by not in columns:
                remedy = respelt(by, columns, "pass its name, or the group of each row")
                raise ValueError(f"by={by!r} is no column of X; {remedy}")
            by = X[by]
        try:
            shape = np.asarray(by, dtype=object).shape
        except Exception:  # of pyarrow, with a text that is not UTF-8
            shape = (len(by),)
        n_rows = n_rows_of(X)
        if shape != (n_rows,):
            raise ValueError(
                f"by has shape {shape} and X {n_rows} rows; pass a flat array of one group for each row."
            )
        # Cells are read one by one, since one odd cell may change the type and the spelling of a column.
        codes = np.array([places.get(_text_of(cell), len(names)) for cell in listed(by)], np.intp)
        return cls(codes, (*names, OTHER))

    @classmethod
    def _crossed(cls, X: Any, by: Any, values: Any) -> "Parts":
        """The groups by two columns, whose names are pairs."""
        if not (isinstance(values, (list, tuple)) and len(values) == 2):
            raise ValueError(
                f"by_values={shown(values)} must be two lists, one for each of the columns {shown(by)}."
            )
        first, second = (cls.of(X, name, part) for name, part in zip(by, values, strict=True))
        assert first.codes is not None and second.codes is not None
        names = list(product(first.names[:-1], second.names[:-1]))
        n_first, n_second = first.number - 1, second.number - 1
        declared = (first.codes < n_first) & (second.codes < n_second)
        codes = np.where(declared, first.codes * n_second + second.codes, len(names))
        return cls(codes, (*names, OTHER))

    @property
    def number(self) -> int:
        """Number of groups."""
        return max(len(self.names), 1)

    @property
    def places(self) -> Any:
        """The index of the group of each row, (n_rows, 1), or 0 for one group."""
        return 0 if self.codes is None else self.codes[:, np.newaxis]

    @property
    def facts(self) -> tuple[str, ...]:
        """What the report says of the groups."""
        return () if self.codes is None else ("the names of the groups (declared)",)

    def split(
        self,
        counts: NDArray[np.float64],
        scale: float,
        report: PrivacyReport,
        units: Units,
        evaluation: Callable[[NoisyCells, PrivacyReport], Any],
    ) -> Any:
        """The evaluation of all rows, or that of each group, from noisy histograms (h, n_bins * number).

        *Guarantee*: that of one release of h histograms, since each row is in one group.
        """
        if self.codes is None:
            return evaluation(NoisyCells(counts, scale, units.n_units), report)
        groups, unknown = {}, []
        for name, part in zip(self.names, np.split(counts, self.number, axis=1), strict=True):
            cells = NoisyCells(part, scale, max(float(part.sum(axis=1).mean()), 1.0), noisy=True)
            if cells.n_rows < _SURE_DEVIATIONS * cells.total_scale:
                unknown.append(name)
            groups[name] = evaluation(cells, report)
        return GroupedEvaluation(groups, tuple(unknown), report)


def name_of(group: object) -> str:
    """The name of a group as text."""
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def _cell(estimate: Estimate, metric: str) -> str:
    """An estimate as text."""
    if math.isnan(estimate.value):
        return "unknown"
    digits = 0 if metric == "rows" else 3
    value, low, high = (f"{end:.{digits}f}" for end in estimate)
    return f"{value} ({low} to {high})"


def _text_of(cell: object) -> str | None:
    """A group as text; bytes are decoded, since one of them makes bytes of all numbers in an array."""
    return text_of(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell)
