"""Adaptive composition: events that are chosen one by one, each after seeing earlier results.

An accountant for mechanisms that are fixed in advance cannot decide whether one more event fits, because its
answer would influence later releases. A *privacy filter* can (Rogers, Roth, Ullman and Vadhan 2016). Two
filters are known that lose nothing compared with a composition fixed in advance. Both sum one number per
event, and the sum must stay within a limit fixed beforehand:

- the sum of ``mu**2`` for events that are ``mu``-Gaussian-DP (Smith and Thakurta 2022);
- the sum of Renyi divergences of ONE order (Feldman and Zrnic 2021, Section 3).

"At least one of several orders still has room" gives no bound at the same delta. The order with room at the
end may depend on released results, and the outcomes for each order need a delta of their own. The same holds
for choosing between the two sums during the composition. So the first event of a data set fixes its sum and
order, before any release. The sum is Gaussian-DP if the event has it exactly; otherwise it uses the order
at which the event fits most often. The privacy loss distribution is tighter than both, but it composes only
events fixed in advance. It gives the cost of a single event: a first event that fits only by it is also the
last.
"""

import math
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import Literal, get_args

import numpy as np

from . import gaussian
from .budgets import epsilon_of_event
from .events import GaussianEvent, Neighboring
from .gaussian import ORDERS, FloatArray, rdp_limits

Composition = Literal["gaussian", "renyi"]
COMPOSITION: tuple[Composition, ...] = get_args(Composition)

#: Fraction of a limit by which a sum may exceed it: the parts of a divided budget add up to the whole only up
#: to rounding.
_SLACK = 1e-10


@singledispatch
def rdp_of_event(event: object, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    """Upper bounds on the Renyi divergences of ``event``, one per order; infinite if unknown.

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
    # Sampling never costs privacy, so the divergences of the full batch are bounds too.
    full_batch = event.rho(neighboring) * orders
    if event.sampling_rate == 1:  # discrete noise has the same divergences
        return np.asarray(full_batch)
    from . import sampled  # imported here, since dp-accounting takes a second

    return np.asarray(np.minimum(full_batch, sampled.renyi(event, orders, neighboring)))


@singledispatch
def mu_of_event(event: object, neighboring: Neighboring) -> float:
    """Smallest ``mu`` for which ``event`` is known to be ``mu``-Gaussian-DP; infinite if none is known.

    It is infinite for event classes without a registered function.
    """
    return math.inf


@mu_of_event.register
def _(event: GaussianEvent, neighboring: Neighboring) -> float:
    # Sampling never costs privacy. Discrete noise has no Gaussian-DP curve.
    return math.inf if event.noise == "discrete" else event.full_mu(neighboring)


@lru_cache(maxsize=256)
def divergences_of(event: object, neighboring: Neighboring) -> FloatArray:
    """Renyi divergences of an event at ``ORDERS``; cached, since sampling is slow and fits repeat."""
    divergences = rdp_of_event(event, ORDERS, neighboring)
    divergences.flags.writeable = False
    return divergences


@dataclass(frozen=True)
class PrivacyFilter:
    """A privacy filter: a sum of privacy losses that must stay within a limit fixed before the first release.

    Attributes
    ----------
    epsilon, delta : float
        The budget. All admitted events together are (epsilon, delta)-differentially private, however they
        are chosen.
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
        """The filter of a data set from which nothing was released before ``event``; parameters as above.

        ``composition=None`` takes "gaussian" for full batches of continuous Gaussian noise, "renyi"
        otherwise.
        """
        if composition is None:
            exact = isinstance(event, GaussianEvent) and event.mu(neighboring) is not None
            composition = "gaussian" if exact else "renyi"
        if composition == "gaussian":
            return cls(epsilon, delta, neighboring, composition)
        divergences = np.maximum(divergences_of(event, neighboring), np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # a tiny cost may fit infinitely often
            often = rdp_limits(epsilon, delta, ORDERS) / divergences
        return cls(epsilon, delta, neighboring, composition, float(ORDERS[np.argmax(often)]))

    @property
    def limit(self) -> float:
        """The limit of the sum of :meth:`cost`."""
        if self.order is None:
            return gaussian.mu_for(self.epsilon, self.delta) ** 2
        return float(rdp_limits(self.epsilon, self.delta, np.array([self.order]))[0])

    def cost(self, event: object) -> float:
        """What ``event`` adds to the sum, or infinity if this sum cannot include it.

        Invalid numbers of the event are a ValueError.
        """
        if self.order is None:
            cost = mu_of_event(event, self.neighboring) ** 2
        else:
            cost = float(divergences_of(event, self.neighboring)[self.order == ORDERS][0])
        if not cost > 0:
            raise ValueError(f"{event!r} has a cost of {cost:g}, not a positive one; check its numbers.")
        return cost

    def admits(self, spent: float, event: object) -> bool:
        """Whether ``event`` fits in addition to the sum ``spent``; ask before it releases anything.

        A first event may also be admitted by its own accountant: if the sum has no room for it, no second
        event will fit, and the composition is not adaptive.
        """
        if spent + self.cost(event) <= self.most:
            return True
        return spent == 0 and epsilon_of_event(event, self.delta, self.neighboring) <= self.epsilon

    @property
    def most(self) -> float:
        """The largest sum of losses that the filter allows."""
        return self.limit * (1 + _SLACK)

    def after(self, spent: float, event: object) -> float:
        """The sum after ``event``, rounded up, so that even tiny events count."""
        return math.nextafter(spent + self.cost(event), math.inf)

    def repetitions(self, spent: float, event: object) -> int:
        """The exact number of equal events that fit one after another in addition to the sum ``spent``.

        It takes a few steps for each power of two that the sum passes, however many events fit.
        """
        n = 0
        while self.admits(spent, event):
            n, before, spent = n + 1, spent, self.after(spent, event)
            exponent = math.frexp(spent)[1]
            if spent < self.most and exponent == math.frexp(before)[1]:
                # Floats between two powers of two are equally far apart. So each step in such a range adds
                # the same, without rounding, except perhaps the first. One step fewer covers the rounding of
                # the division.
                step, end = self.after(spent, event) - spent, min(self.most, math.ldexp(1.0, exponent))
                more = max(0, int((end - spent) / step) - 1)
                n, spent = n + more, spent + more * step
        return n
