"""Privacy of the best of a random number of trials, through ``dp-accounting``.

The bounds are Theorems 2 (truncated negative binomial laws) and 6 (Poisson) of Papernot and Steinke
2022, "Hyperparameter Tuning with Renyi Differential Privacy".
"""

from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.typing import NDArray

from .events import Neighboring, SelectionEvent

FloatArray = NDArray[np.floating[Any]]

#: The bound at one order is a minimum over others: they lie close enough to lose nothing to speak of.
_ORDERS = np.concatenate([1 + np.geomspace(0.01, 1, 30), np.geomspace(2.05, 1e5, 160)])


def epsilon_of(event: SelectionEvent, delta: float, neighboring: Neighboring) -> float:
    """Epsilon of ``event`` at ``delta``, an upper bound."""
    return float(_accountant(event, _ORDERS, neighboring).get_epsilon(delta))


def renyi(event: SelectionEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    """Renyi divergences of ``event``, upper bounds of shape (n_orders,)."""
    every = np.union1d(_ORDERS, orders)
    divergences = np.asarray(_accountant(event, every, neighboring).rdp, dtype=np.float64)
    return divergences[np.searchsorted(every, orders)]


def _accountant(
    event: SelectionEvent, orders: FloatArray, neighboring: Neighboring
) -> rdp_privacy_accountant.RdpAccountant:
    # Replacing a row moves a sum by at most twice what zeroing it out does. Continuous and discrete
    # noise have the same bound on their divergences.
    factor = 2.0 if neighboring == "replace_one" else 1.0
    accountant = rdp_privacy_accountant.RdpAccountant(orders)
    trial = dp_event.GaussianDpEvent(event.noise_multiplier / factor)
    accountant.compose(dp_event.RepeatAndSelectDpEvent(trial, event.law.mean, event.law.shape))
    if event.refit_multiplier is not None:
        accountant.compose(dp_event.GaussianDpEvent(event.refit_multiplier / factor))
    return accountant
