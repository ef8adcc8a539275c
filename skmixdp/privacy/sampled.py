"""Privacy of Poisson-sampled Gaussian releases, through ``dp-accounting``.

The privacy loss distribution (PLD) is discretised pessimistically: the result is an upper
bound on epsilon that comes closer to it as the interval shrinks.
"""

from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant

from .events import GaussianEvent, Neighboring

_RELATION = {
    # Zeroing out a row has the same privacy loss as adding or removing it.
    "add_or_remove_one": privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE,
    # The accountant doubles the sensitivity by itself here: the multiplier is not halved.
    "replace_one": privacy_accountant.NeighboringRelation.REPLACE_ONE,
}


def epsilon_of(event: GaussianEvent, delta: float, neighboring: Neighboring, interval: float = 1e-4) -> float:
    """Epsilon of ``event`` at ``delta``, an upper bound at any ``interval``."""
    accountant = pld_privacy_accountant.PLDAccountant(
        _RELATION[neighboring], value_discretization_interval=interval
    )
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    step = dp_event.PoissonSampledDpEvent(event.sampling_rate, release)
    accountant.compose(step, event.n_steps)
    return float(accountant.get_epsilon(delta))
