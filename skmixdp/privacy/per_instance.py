"""Records of the privacy loss of each private row, along one fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accounting.events import Neighboring, Noise
from .accounting.gaussian import epsilon_of_rho, epsilons_for

FloatArray = NDArray[np.float64]


class PerInstanceRecord:
    """Privacy loss of each private row in one fit. PRIVATE: computed from the rows without noise.

    A fit with ``record_per_instance=True`` leaves it in ``per_instance_``. Use
    :func:`skmixdp.audit.per_instance_epsilon` to read it. Printing it shows no value, and it refuses to be
    pickled unless the fit was told to allow it. ``del estimator.per_instance_`` removes it.

    Parameters
    ----------
    n_rows : int
        Number of private rows.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours. With ``"replace_one"``, the other row is taken to be the worst.
    noise : {"float", "discrete"}
        Continuous or discrete Gaussian noise.
    picklable : bool
        Whether it may be pickled, with the estimator or alone.

    Notes
    -----
    *Guarantee*: none. The losses of the rows depend on all rows.
    """

    def __init__(self, n_rows: int, neighboring: Neighboring, noise: Noise, *, picklable: bool) -> None:
        self._squares = np.zeros(n_rows)
        self._neighboring = neighboring
        self._noise: Noise = noise
        self._picklable = picklable

    @property
    def n_rows(self) -> int:
        """Number of private rows, which is public."""
        return len(self._squares)

    @property
    def mu(self) -> FloatArray:
        """Gaussian-DP parameter (n_rows,) of each row's releases. PRIVATE."""
        return np.sqrt(self._squares)

    def add(self, lengths: FloatArray, largest: float, scale: float) -> None:
        """Add a Gaussian release of sensitivity ``largest``, with noise of standard deviation ``scale``.

        ``lengths`` (n_rows,) are upper bounds on how far removing each row moves the released array in L2
        norm, zero for rows that take no part. ``scale`` is zero for an array that does not depend on the
        rows.
        """
        if scale == 0:
            return
        if self._neighboring == "replace_one":
            lengths = lengths + largest  # also for a row of length zero, which may replace another row
        self._squares += (lengths / scale) ** 2

    def epsilon(self, delta: float, more: float = 0.0) -> FloatArray:
        """Epsilon (n_rows,) of each row at a delta. PRIVATE.

        ``more`` is the squared Gaussian-DP parameter of other releases, in which each row counts as the
        worst.
        """
        squares = self._squares + more
        if self._noise != "discrete":
            return np.asarray(epsilons_for(np.sqrt(squares), delta))
        losses, index = np.unique(squares, return_inverse=True)
        epsilons = [epsilon_of_rho(loss / 2, delta) if loss > 0 else 0.0 for loss in losses]
        return np.array(epsilons)[index]

    def __repr__(self) -> str:
        return f"<PerInstanceRecord of {self.n_rows} rows: its values are private and not shown>"

    # Copies of an estimator can share it, since it does not change after the fit.
    def __copy__(self) -> "PerInstanceRecord":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "PerInstanceRecord":
        return self

    def __getstate__(self) -> dict[str, Any]:
        if not self._picklable:
            raise TypeError(
                "the estimator holds per_instance_, the privacy loss of each private row, which is itself "
                "private; del estimator.per_instance_ before saving it, or fit with "
                "record_per_instance='picklable'."
            )
        return vars(self)
