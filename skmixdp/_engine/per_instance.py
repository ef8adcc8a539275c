"""Records of the privacy loss of each private row, updated with each release.

A release adds Gaussian noise of standard deviation ``s`` to an array. Removing row i moves the array by some
length ``l_i``, so this release is ``l_i / s``-Gaussian-DP for that pair of data sets. The squares add up over
all releases of a fit (AdaMix, Proposition 14). The lengths are measured where the rows contribute, so stages
before and after the training, and every algorithm are covered alike.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows.source import Block, Contribute, Contribution, Lengths, ReleasedArray, Request, term_lengths
from .._rows.table import from_device

FloatArray = NDArray[np.float64]


class Observation:
    """How far each of a source's ``n_rows`` rows moves the arrays that one query releases.

    Send its ``request`` in place of the query's request; it observes what rows contribute.
    """

    def __init__(self, request: Request, n_rows: int) -> None:
        query = request.query
        self._releases = query.releases
        everyone = np.ones(n_rows, dtype=bool)
        self._members = everyone if request.batch.members is None else request.batch.members
        self._taken = everyone if request.batch.taken is None else request.batch.taken
        self._lengths = np.zeros((len(query.releases), n_rows))
        self._measure = query.lengths
        if query.lengths is None and query.assemble is tuple:
            self._measure = Lengths(term_lengths)
        self.request = replace(request, observe=self._observe)
        if self._measure is not None and self._measure.points is not None:
            self._n_asked = len(query.points)
            mean_clip = query.mean_clip
            self.request = self.request.with_query(
                points=np.concatenate([query.points, self._measure.points]),
                contribute=self._of_asked(query.contribute),
                mean_clip=mean_clip and replace(mean_clip, contribute=self._of_asked(mean_clip.contribute)),
            )

    def _of_asked(self, contribute: Contribute) -> Contribute:
        return lambda Z, block: contribute(Z[:, : self._n_asked], block)

    def _observe(self, rows: Any, block: Block, Z: Any, contribution: Contribution) -> None:
        if self._measure is None:
            lengths_of: Sequence[Any] = [np.full(len(Z), np.inf)] * len(self._releases)
        else:
            more = self._measure.points is not None
            host = Block(
                None,
                np.empty(0),
                from_device(block.norms),
                compute_rounding_scale=lambda: from_device(block.rounding_scale),
            )
            C, S = (None if part is None else from_device(part) for part in contribution)
            lengths_of = self._measure.of(C, S, from_device(Z[:, self._n_asked :]) if more else None, host)
        for j, (part, lengths) in enumerate(zip(self._releases, lengths_of, strict=True)):
            # Where a row's own bound is NaN or larger than the sensitivity, the sensitivity holds.
            self._lengths[j, rows] = np.where(lengths <= part.sensitivity, lengths, part.sensitivity)

    def lengths(self, stated: Sequence[ReleasedArray]) -> list[FloatArray]:
        """The most by which each row can move each computed array, (n_rows,), by the stated sensitivities.

        The rounding of sums may move the array by as much as the stated sensitivity exceeds the exact one. A
        coin that left a row out lowers nothing: another coin would have moved the array by the sensitivity.
        """
        moved = []
        for lengths, part, computed in zip(self._lengths, self._releases, stated, strict=True):
            rounding = computed.sensitivity - part.sensitivity
            drawn = np.where(self._taken, lengths, part.sensitivity)
            moved.append(np.where(self._members, drawn + rounding, 0.0))
        return moved
