"""What went into each release, what noise it was given, and what came out.

The one place where tests know the name of the method that adds noise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skmixdp.privacy import NoiseSource

#: ``NoiseSource.<METHOD>(array, scale, grid)``: the array plus noise.
METHOD = "perturb"


@dataclass(frozen=True)
class Release:
    """One array that left private rows.

    Attributes
    ----------
    exact : array
        The sums that went in.
    scale : float
        Standard deviation that was asked for.
    grid : float or None
        Of what hardened noise was asked to keep multiples.
    noisy : array
        What came out.
    """

    exact: np.ndarray
    scale: float
    grid: float | None
    noisy: np.ndarray

    @property
    def standardised(self) -> np.ndarray:
        """The noise in units of its scale."""
        return np.ravel(self.noisy - self.exact) / self.scale


class Recorded:
    """Stands in for a source of noise, and keeps what was released.

    Parameters
    ----------
    source : NoiseSource
        The source that does the work, all attributes included.
    change : callable or None
        ``(recorded, release)`` to the array that is handed out in the place of ``release.noisy``: a
        sabotage.
    """

    def __init__(self, source: NoiseSource, change: Any = None) -> None:
        self._source = source
        self._change = change
        self.releases: list[Release] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def _released(self, array, scale, grid):
        given = np.array(array, dtype=np.float64)
        noisy = getattr(self._source, METHOD)(array, scale, grid)
        release = Release(given, float(scale), grid, np.array(noisy))
        if self._change is not None:
            noisy = self._change(self, release)
            release = Release(given, float(scale), grid, np.array(noisy))
        self.releases.append(release)
        return noisy


setattr(Recorded, METHOD, Recorded._released)
