"""A long tail of classes in any data set: few rows of most of them.

The test rows stay as they are. The accuracy is that for rows with the training rows' shares of the classes;
the balanced accuracy weights all classes alike.
"""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..problems import Rows


def load(
    cache: Path, *, of: str, smallest: float = 0.02, at_least: int = 6, tail_seed: int = 0, **options: Any
) -> Rows:
    """Training rows of which each class keeps a share between 1 and ``smallest``.

    The shares fall geometrically, over the classes in an order drawn with ``tail_seed``. So are the rows that
    a class keeps.

    Parameters
    ----------
    cache : Path
        Folder for what takes long to compute.
    of : str
        The adapter of the whole data set, which takes the other options.
    smallest : float
        Share of the smallest class.
    at_least : int
        Rows that each class keeps in any case, so that 5 of them can be public.
    tail_seed : int
        Of the order of the classes and of the rows.
    """
    rows: Rows = import_module(f"{__package__}.{of}").load(cache, **options)
    rng = np.random.default_rng(tail_seed)
    classes = rng.permutation(np.unique(rows.y))
    shares = smallest ** (np.arange(len(classes)) / (len(classes) - 1))
    kept = []
    for label, share in zip(classes, shares, strict=True):
        own = rng.permutation(np.flatnonzero(rows.y == label))
        kept.append(own[: max(at_least, round(share * len(own)))])
    chosen = np.sort(np.concatenate(kept))
    y = rows.y[chosen]
    return replace(rows, X=rows.X[chosen], y=y, shares=np.unique(y, return_counts=True)[1] / len(y))
