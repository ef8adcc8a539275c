"""What a mechanism did to its private rows, as data.

An event says nothing about trainers: it is what accounting needs and no more.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

Neighboring = Literal["add_or_remove_one", "replace_one"]
Noise = Literal["float", "hardened"]
NOISE: tuple[Noise, ...] = get_args(Noise)
NEIGHBORING: tuple[Neighboring, ...] = get_args(Neighboring)


@dataclass(frozen=True)
class GaussianEvent:
    """``n_steps`` releases of ``sum + N(0, (noise_multiplier * sensitivity)**2 I)``.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of the sum when one
        row is zeroed out.
    n_steps : int
        Number of releases, each allowed to depend on the earlier ones.
    sampling_rate : float, default=1.0
        Probability with which each row takes part in a release, independently (Poisson
        sampling). 1 is the full batch.
    noise : {"float", "hardened"}, default="float"
        Continuous Gaussian noise; or, on sums that are multiples of a grid, discrete
        Gaussian noise on that grid.
    """

    noise_multiplier: float
    n_steps: int
    sampling_rate: float = 1.0
    noise: Noise = "float"

    def mu(self, neighboring: Neighboring) -> float | None:
        """Gaussian-DP parameter of the composition; None where it has none exactly.

        A discrete Gaussian has the zero-concentrated guarantee ``rho = mu**2 / 2`` of the
        continuous one, but not its Gaussian-DP curve.
        """
        if self.sampling_rate < 1 or self.noise == "hardened":
            return None
        return math.sqrt(2 * self.rho(neighboring))

    def rho(self, neighboring: Neighboring) -> float:
        """Zero-concentrated DP parameter at full batch: ``sum_t 1 / (2 sigma_t**2)``."""
        # Replacing a row moves the sum by at most twice what zeroing it out does.
        factor = 4.0 if neighboring == "replace_one" else 1.0
        return factor * self.n_steps / (2 * self.noise_multiplier**2)
