"""A recipe says which pieces an algorithm is made of."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..components.protocols import Query, Sampling, Steps, Update, Weighting
from ..privacy import EventFamily, GaussianEvent

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Options:
    """What the estimator's user chose for any algorithm.

    Attributes
    ----------
    learning_rate : float or "auto"
        Step size for the mean objective.
    l2 : float or "auto"
        Strength of the regulariser in the mean objective.
    sampling : Sampling
        Which private rows take part in a step.
    exact_sums : bool
        Whether sums must be released as they are, on their grid: no projection before the
        noise.
    """

    learning_rate: float | Literal["auto"]
    l2: float | Literal["auto"]
    sampling: Sampling
    exact_sums: bool


@dataclass(frozen=True)
class Recipe:
    """The pieces of one algorithm, and the regulariser ``l2 / 2 |W - anchor|^2``.

    ``event`` makes what accounting has to know of a run from its noise multiplier, steps,
    sampling rate and kind of noise; moving thresholds are no part of it.
    """

    sampling: Sampling
    query: Query
    weighting: Weighting
    steps: Steps
    update: Update
    l2: float
    anchor: FloatArray
    event: EventFamily = GaussianEvent
