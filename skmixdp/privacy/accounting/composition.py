"""Composing events that are chosen one after the other, each after seeing what came before.

An accountant for mechanisms that are fixed in advance must not be asked whether one more fits: the
answer decides what is released next. A *privacy filter* may (Rogers, Roth, Ullman and Vadhan 2016).
Each filter here is the sum of one number per event, which must stay within a limit fixed beforehand.
Two are known that lose nothing compared with a composition that is fixed in advance:

- the sum of ``mu**2`` for events that are ``mu``-Gaussian-DP (Smith and Thakurta 2022);
- the sum of Renyi divergences of ONE order (Feldman and Zrnic 2021, Section 3).

"At least one of several orders still has room" gives no bound at the same delta. Which order has room in
the end may depend on what was released. The outcomes that end with each order then need a delta of their
own. The same holds for choosing between the two sums as one goes.

So the first event of a data set fixes its sum and its order, before anything was released. The sum is
Gaussian-DP if the event has it exactly. Otherwise it is the order at which the event fits most often. The
privacy loss distribution is tighter than both, but composes only what is fixed in advance. It says what a
single event costs: a first event that fits by no sum is also the last.

Orders are floats above 1; budgets are pairs (epsilon, delta).
"""

import math
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from . import gaussian
from .accountants import epsilon_of_event
from .events import GaussianEvent, Neighboring

FloatArray = NDArray[np.floating[Any]]
Composition = Literal["gaussian", "renyi"]
COMPOSITION: tuple[Composition, ...] = get_args(Composition)

#: The orders at which Renyi divergences are kept. Small budgets need large orders.
ORDERS: FloatArray = np.concatenate(
    [np.arange(11, 110) / 10, np.arange(11, 65), [72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024]]
).astype(np.float64)

#: Relative margin by which a limit is rounded down, and the part of it that a sum may use: whole
#: budgets are divided into parts that add up to them but for rounding.
_SAFETY, _SLACK = 1e-9, 1e-10


@singledispatch
def rdp_of_event(event: object, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    """Renyi divergences that ``event`` does not exceed, one per order; infinite where unknown.

    Parameters
    ----------
    event : event
        Of a registered kind.
    orders : array of shape (n_orders,)
        Orders, above 1.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.

    Returns
    -------
    array of shape (n_orders,)
        Upper bounds, for both directions of the divergence.

    Raises
    ------
    TypeError
        If no Renyi accountant is registered for this kind of event.
    """
    raise TypeError(f"no Renyi accountant knows the event {event!r}; register one with rdp_of_event.")


@rdp_of_event.register
def _(event: GaussianEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    # Sampling never costs privacy: a sampled release is the full one, now and then replaced.
    full_batch = event.rho(neighboring) * orders
    if event.sampling_rate == 1:  # discrete noise has the same divergences
        return np.asarray(full_batch)
    from . import sampled  # late, as in accountants.py

    return np.asarray(np.minimum(full_batch, sampled.renyi(event, orders, neighboring)))


@singledispatch
def mu_of_event(event: object, neighboring: Neighboring) -> float:
    """Least ``mu`` for which ``event`` is known to be ``mu``-Gaussian-DP; infinite where none is.

    A kind of event that is registered nowhere here has none.
    """
    return math.inf


@mu_of_event.register
def _(event: GaussianEvent, neighboring: Neighboring) -> float:
    # Sampled batches: as above. Discrete noise has no Gaussian-DP curve.
    return math.inf if event.noise == "discrete" else math.sqrt(2 * event.rho(neighboring))


@lru_cache(maxsize=256)
def divergences_of(event: object, neighboring: Neighboring) -> FloatArray:
    """Renyi divergences of an event at ``ORDERS``; kept, since fits are alike and sampling takes time."""
    divergences = rdp_of_event(event, ORDERS, neighboring)
    divergences.flags.writeable = False
    return divergences


@dataclass(frozen=True)
class PrivacyFilter:
    """A sum that must stay within a limit, both fixed before the first release.

    Attributes
    ----------
    epsilon, delta : float
        The budget: whatever is charged, and however it is chosen, the whole is
        (epsilon, delta)-differentially private.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.
    composition : {"gaussian", "renyi"}
        What is summed.
    order : float or None
        The Renyi order whose divergences are summed; one of ``ORDERS``.
    """

    epsilon: float
    delta: float
    neighboring: Neighboring
    composition: Composition
    order: float | None = None

    @classmethod
    def for_first(
        cls,
        event: object,
        *,
        epsilon: float,
        delta: float,
        neighboring: Neighboring,
        composition: Composition | None = None,
    ) -> "PrivacyFilter":
        """The filter of a data set whose first event this is.

        Parameters
        ----------
        event : event
            Nothing was released from the private rows before it.
        epsilon, delta : float
            The budget.
        neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
            Which data sets count as neighbours.
        composition : {"gaussian", "renyi"} or None, default=None
            None takes "gaussian" for full batches of continuous Gaussian noise, "renyi" otherwise.
        """
        if composition is None:
            exact = isinstance(event, GaussianEvent) and event.mu(neighboring) is not None
            composition = "gaussian" if exact else "renyi"
        if composition == "gaussian":
            return cls(epsilon, delta, neighboring, composition)
        divergences = np.maximum(divergences_of(event, neighboring), np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # next to no cost fits more often than a float can say
            often = rdp_limits(epsilon, delta, ORDERS) / divergences
        return cls(epsilon, delta, neighboring, composition, float(ORDERS[np.argmax(often)]))

    @property
    def limit(self) -> float:
        """What the sum of :meth:`cost` must not exceed."""
        if self.order is None:
            mu = gaussian.mu_for(self.epsilon, self.delta)
            return mu**2
        return float(rdp_limits(self.epsilon, self.delta, np.array([self.order]))[0])

    def cost(self, event: object) -> float:
        """What ``event`` adds to the sum; infinite if the sum cannot hold it.

        Raises
        ------
        ValueError
            If the event's own numbers make no sense.
        """
        if self.order is None:
            cost = mu_of_event(event, self.neighboring) ** 2
        else:
            cost = float(divergences_of(event, self.neighboring)[self.order == ORDERS][0])
        if not cost > 0:
            raise ValueError(f"{event!r} has a cost of {cost:g}, not a positive one; check its numbers.")
        return cost

    def admits(self, spent: float, event: object) -> bool:
        """Whether ``event`` fits on top of what is ``spent``; decide before it releases anything.

        A first event may also be admitted by its own accountant. If no sum has room for it, there is no
        second one, so nothing is chosen as one goes.
        """
        if spent + self.cost(event) <= self.limit * (1 + _SLACK):
            return True
        return spent == 0 and epsilon_of_event(event, self.delta, self.neighboring) <= self.epsilon


def rdp_limits(epsilon: float, delta: float, orders: FloatArray) -> FloatArray:
    """Largest Renyi divergence of each order that (epsilon, delta) allows; negative where none does.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    limits = epsilon - _conversion_cost(delta, orders)
    return np.asarray(limits - _SAFETY * np.abs(limits))


def epsilon_of_rdp(divergences: FloatArray, delta: float, orders: FloatArray) -> float:
    """Smallest epsilon to which Renyi divergences fixed in advance convert at ``delta``.

    Source: as for :func:`rdp_limits`.
    """
    return max(0.0, float(np.min(divergences + _conversion_cost(delta, orders))))


def _conversion_cost(delta: float, orders: FloatArray) -> FloatArray:
    return np.asarray(np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))
