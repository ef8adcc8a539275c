"""How rows are mapped: the parameters ``rows`` and ``scale``, and the kinds of columns in a pipeline."""

import math
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from .._fit.stage import Kinds
from .._utils.models import names_of_features
from .._utils.validation import FLAG, Allowed, Kind, respelt, shown
from ..preprocessing import PublicOnly, TableEncoder
from ..preprocessing._cells import FARTHEST

Array = NDArray[Any]

#: The pipeline that is fitted in this context, whose head may ask what its columns are.
current_pipeline: ContextVar[Any] = ContextVar("current_pipeline", default=None)

#: Smallest spread, and largest magnitude of both numbers.
_SMALLEST, _LARGEST = 1e-15, 1e15
#: Quantiles of 5% and 95% of a normal distribution are this many spreads apart.
_APART = 3.29

#: Values of ``scale`` that declare columns.
DECLARED = Kind("a dict of column: Typical(value, distance)", lambda value: isinstance(value, Mapping))


@dataclass(eq=False, repr=False)
class RowMapping(BaseEstimator):  # type: ignore[misc]
    """How rows are mapped before training: the parameter ``rows`` of the heads.

    Rows are standardised (``scale`` of the head), centred, whitened and bounded in length, by public or noisy
    values. The map is a part of the fitted model. In a parameter grid, use names such as ``rows__whiten``.

    Parameters
    ----------
    center : bool, default=True
        Whether to subtract the mean of the public rows, that of noisy columns (``scale``), or the one that
        ``geometry`` learns.
    whiten : bool or "auto", default="auto"
        Whether to shrink the directions in which public rows of the same class differ. For a regression,
        these are the directions in which rows differ most, by noisy second moments of the private rows if
        these are many, or by more than 20 public rows. ``"auto"`` is True only for ``algorithm="auto"``.
    geometry : bool or "auto", default="auto"
        Whether to learn the centre and the leading directions from the private rows, for 3 to 10% of the
        squared budget (``mu**2``). ``"auto"`` does so for classes and ``algorithm="auto"`` with few public
        rows, where rows have unit length.
    norm : {"auto", "unit", "clip", None}, default="auto"
        How the lengths of rows are bounded. ``"unit"`` divides each row by its L2 norm, so that the model
        cannot use lengths. ``"clip"`` divides all rows by one length and shortens longer ones, and None
        leaves rows unchanged. ``"auto"`` is ``"clip"`` for a regression. For classes, it is ``"clip"`` for
        standardised columns, and ``"unit"`` for others.

    See Also
    --------
    MixedDPLogisticRegression, MixedDPRidge

    Examples
    --------
    >>> from skmixdp import MixedDPLogisticRegression, RowMapping
    >>> clf = MixedDPLogisticRegression(rows=RowMapping(whiten=False, norm="clip"))
    >>> clf.set_params(rows__norm="unit").rows
    RowMapping(norm='unit', whiten=False)
    """

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "center": (FLAG,),
        "whiten": (FLAG, "auto"),
        "geometry": (FLAG, "auto"),
        "norm": ("auto", "unit", "clip", None),
    }

    _: KW_ONLY
    center: bool = True
    whiten: Any = "auto"
    geometry: Any = "auto"
    norm: str | None = "auto"


#: What ``rows`` may be besides "auto".
ROW_MAPPING = Kind(
    "an object such as skmixdp.RowMapping(whiten=False)", lambda value: isinstance(value, RowMapping)
)


class Typical(NamedTuple):
    """What is known of a column beforehand: a typical value, and how far values usually are from it.

    A value of the parameter ``scale`` of the heads and the additive models. A rough declaration is enough:
    the distance may be off by a factor of 2, and the value by half the distance. It must come from prior
    knowledge, never from the private rows. It costs no budget.

    Parameters
    ----------
    value : float
        A typical value, such as the mean or the median, in the units of the column.
    distance : float
        The usual distance of values from it, such as the standard deviation; positive.

    Examples
    --------
    >>> from skmixdp import Typical
    >>> Typical(45, 15)
    Typical(value=45, distance=15)
    >>> Typical.between(0, 100).value
    50.0
    """

    value: float
    distance: float

    @classmethod
    def between(cls, low: float, high: float) -> "Typical":
        """That of a column of which nine values in ten are between two numbers: its 5% and 95% quantiles.

        Parameters
        ----------
        low, high : float
            The two numbers, in the units of the column. Bounds of a skewed column lie far beyond its
            quantiles, so name numbers that usual values reach.

        Returns
        -------
        Typical
            The middle, and the spread of a normal distribution with these quantiles.
        """
        return cls((low + high) / 2, (high - low) / _APART)


def declared_scales(estimator: BaseEstimator, n_features: int) -> Array | None:
    """Declared centres and spreads (2, n_features) of the columns of ``X``, NaN of those not declared.

    Behind a :class:`~skmixdp.preprocessing.TableEncoder`, columns are those of the frame; the numbers and
    days that the encoder makes of them are declared, and all else is between 0 and 1.
    """
    if not isinstance(estimator.scale, Mapping):
        return None
    pipeline = current_pipeline.get()
    encoder = pipeline.steps[-2][1] if pipeline is not None and len(pipeline.steps) > 1 else None
    declared = np.full((2, n_features), math.nan)
    if isinstance(encoder, TableEncoder):
        numbers = encoder.columns_.numbers
        if len(numbers) == n_features:
            declared[:, ~numbers] = 0.5
        scales = scales_of(estimator.scale, encoder)
    else:
        names = names_of_features(estimator)
        scales = scales_of(estimator.scale, range(n_features) if names is None else names)
    for place, pair in scales.items():
        declared[:, place] = pair
    return declared


def scales_of(scale: Mapping[Any, Any], columns: Any) -> dict[int, tuple[float, float]]:
    """Declared centre and spread by place, for ``columns``: a fitted encoder of a frame, or names.

    Columns with names may be declared by place, too. Those of an encoder are in the units of the cells.
    """
    places: dict[Any, int] = {}
    units: dict[int, tuple[float, float]] = {}
    if isinstance(columns, TableEncoder):
        first = 0
        for name, column in columns.columns_.items():
            if any(column.are_numbers()):
                places[name], units[first] = first, (column.center, column.scale)
            first += len(column.are_numbers())
    else:
        places = {j: j for j in range(len(columns))} | {name: j for j, name in enumerate(columns)}
    scales = {}
    for name, value in scale.items():
        if not isinstance(name, (str, int, np.integer)) or isinstance(name, bool) or name not in places:
            remedy = respelt(name, [*places], "name columns of X")
            raise ValueError(
                f"scale names the column {shown(name)}, which is no numeric column of X; {remedy}"
            )
        (center, spread), place = _centre_and_spread(name, value), places[name]
        zero, unit = units.get(place, (0.0, 1.0))
        scales[place] = (center - zero) / unit, spread / unit
    return scales


def _centre_and_spread(name: object, value: object) -> tuple[float, float]:
    """A declared centre and spread; plain pairs are refused, since those of an encoder are bounds."""
    center = spread = math.nan
    if isinstance(value, Typical):
        with suppress(TypeError, ValueError):
            center, spread = map(float, value)
    if not (abs(center) <= _LARGEST and _SMALLEST <= spread <= _LARGEST):
        raise ValueError(
            f"scale[{name!r}]={shown(value)} must be Typical(value, distance) of two finite numbers up to "
            "1e15, with a distance of at least 1e-15, or Typical.between(low, high); choose them from prior "
            "knowledge, never from the private rows."
        )
    return center, spread


def kinds_of_columns(n_features: int) -> Kinds | None:
    """The kinds of the columns of a head that is fitted in a pipeline; None if they are unknown."""
    pipeline = current_pipeline.get()
    steps = [] if pipeline is None else pipeline.steps[:-1]
    kinds = _kinds_from_step(steps[-1][1], n_features) if steps else None
    return kinds if kinds is not None and len(kinds.numbers) == n_features else None


def _kinds_from_step(step: object, width: int) -> Kinds | None:
    """The kinds of the columns that a fitted step makes, None if they are unknown."""
    if isinstance(step, PublicOnly):
        return _kinds_from_step(step.transformer_, width)
    if isinstance(step, Pipeline):
        return _kinds_from_step(step.steps[-1][1], width)
    if isinstance(step, TableEncoder):
        numbers: list[bool] = []
        square = 0.0
        for column in step.columns_.values():
            flags = column.are_numbers()
            lacks_unit = column.kind == "list" and column.cut == FARTHEST
            numbers += [True] * len(flags) if lacks_unit else flags
            square += 0.0 if lacks_unit else column.sum_of_squares
        return Kinds(np.array(numbers), square)
    if isinstance(step, OneHotEncoder):
        return Kinds(np.zeros(width, dtype=bool), float(step.n_features_in_))
    if isinstance(step, ColumnTransformer):
        flagged, square = np.ones(width, dtype=bool), 0.0
        for name, places in step.output_indices_.items():
            kinds = _kinds_from_step(step.named_transformers_.get(name), places.stop - places.start)
            if kinds is not None:
                flagged[places], square = kinds.numbers, square + kinds.square
        return Kinds(flagged, square)
    return None
