"""The account of one data set: its budget and the sums of its charges."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..._utils.validation import POSITIVE, PROBABILITY, Allowed, Kind, check, number
from ..accounting import gaussian
from ..accounting.budgets import epsilon_of_event, noise_multiplier_for
from ..accounting.composition import COMPOSITION, Composition, PrivacyFilter, divergences_of, mu_of_event
from ..accounting.events import NEIGHBORING, GaussianEvent, Neighboring, OtherRelease, relation_name
from ..accounting.gaussian import ORDERS, epsilon_of_rdp
from ..report import attack_success

_SUM = number(0, closed="both")

#: Relative tolerance for sums that reach a limit, since sums are rounded.
_SLACK = 1e-10

#: Fields with a number from 0 to infinity, which is the sum of unknown divergences and the epsilon of it.
_SUMS = (
    *("total", "spent", "n_charges"),
    *("others_epsilon", "others_delta", "others_spent_epsilon", "others_spent_delta"),
)

#: Relative tolerance for comparing sums, which processors and versions of libraries round differently.
_AGREEMENT = 1e-6

#: Lone halves of surrogate pairs cannot be encoded and so not be written to a file.
TEXT = Kind(
    "a string of valid Unicode",
    lambda value: isinstance(value, str) and value.encode(errors="ignore").decode() == value,
)
NAME = Kind("a string that is not empty", lambda value: TEXT.admits(value) and value != "")
PURPOSE = Kind(
    "a text of 1 to 120 printable characters in one line",
    lambda value: (
        isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= len(value) <= 120
    ),
)

#: Allowed values of the fields of an account, which may have been read from a damaged file.
_ALLOWED: dict[str, tuple[Allowed, ...]] = {
    "dataset": (NAME,),
    "unit": (NAME,),
    "epsilon": (POSITIVE,),
    "delta": (PROBABILITY,),
    "neighboring": (*NEIGHBORING, None),
    "composition": (*COMPOSITION, None),
    **dict.fromkeys(_SUMS, (_SUM,)),
}


class BudgetExceededError(RuntimeError):
    """A charge exceeds the remaining budget of a data set; nothing was released."""


@dataclass(frozen=True)
class Account:
    """A data set's budget and the running sums of its charges; :meth:`after` returns the next account.

    The first charge decides ``neighboring``, ``composition`` and the Renyi ``order``. ``total`` is the
    filter's sum, and ``divergences`` those at ``ORDERS``, or empty. ``spent`` is the smallest epsilon of a
    budget that would have admitted all charges. ``others_...`` are the part of the budget for releases of
    other tools, whose epsilons and deltas add up; ``spent`` includes these.
    """

    dataset: str
    epsilon: float
    delta: float
    neighboring: Neighboring | None = None
    composition: Composition | None = None
    order: float | None = None
    total: float = 0.0
    divergences: tuple[float, ...] = ()
    spent: float = 0.0
    n_charges: int = 0
    private: bool = True
    unit: str = "row"
    others_epsilon: float = 0.0
    others_delta: float = 0.0
    others_spent_epsilon: float = 0.0
    others_spent_delta: float = 0.0

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            check(name, vars(self)[name], *allowed)
        if self.neighboring is not None:
            vars(self).update(neighboring=relation_name(self.neighboring))
        if self.order is not None and not np.any(self.order == ORDERS):
            raise ValueError(f"order={self.order!r} must be a Renyi order that ledgers sum.")
        if self.divergences and len(self.divergences) != len(ORDERS):
            raise ValueError(
                f"divergences must hold {len(ORDERS)} numbers, and hold {len(self.divergences)}."
            )
        for value in self.divergences:
            check("divergences", value, _SUM)
        if not (self.others_epsilon < self.epsilon and self.others_delta < self.delta):
            raise ValueError("the part of the budget for other tools must be smaller than the budget.")
        undecided = self.total > 0 and None in (self.neighboring, self.composition)
        if undecided or (self.n_charges > 0 and self.neighboring is None):
            raise ValueError("an account with charges must say its neighboring and its composition.")
        if (self.order is not None) != (self.total > 0 and self.composition == "renyi"):
            raise ValueError(f"order={self.order!r} must be set by the first charge that is summed as Renyi.")

    def agrees_with(self, events: Mapping[object, int]) -> bool:
        """Whether these events of all charges that count, and their numbers, have the sum ``total``."""
        if self.order is not None:  # it may take seconds to compute Renyi divergences again
            return True
        relation = self.neighboring or NEIGHBORING[0]
        own = {event: n for event, n in events.items() if not isinstance(event, OtherRelease)}
        total = math.fsum(n * mu_of_event(event, relation) ** 2 for event, n in own.items())
        return math.isclose(self.total, total, rel_tol=_AGREEMENT, abs_tol=_SLACK)

    def after(
        self, event: object, neighboring: Neighboring, private: bool = True, unit: str = "row"
    ) -> "Account":
        """The account after charging ``event``; an error if it does not fit into the budget."""
        if unit != self.unit:
            remedy = (
                f"add a data set with unit={unit!r}"
                if self.unit == "row"
                else f"pass groups, a column named {self.unit!r}, or add a data set with unit={unit!r}"
            )
            raise ValueError(
                f"unit={unit!r} is not what dataset={self.dataset!r} protects, whose budget is that of one "
                f"{self.unit!r}; {remedy}."
            )
        neighboring = relation_name(neighboring)
        if self.neighboring not in (None, neighboring):
            raise ValueError(
                f"neighboring={neighboring!r} is not the relation of dataset={self.dataset!r}, whose charges "
                f"are accounted for under {self.neighboring!r}; use that one."
            )
        if isinstance(event, OtherRelease):
            return self._after_other(event, neighboring, private)
        rule = self._rule(event, neighboring)
        if not rule.admits(self.total, event):
            raise BudgetExceededError(self._refusal(event, rule))
        total = rule.after(self.total, event)
        divergences: tuple[float, ...] = ()
        if rule.composition == "renyi":
            more = divergences_of(event, neighboring)
            divergences = tuple(np.nextafter(np.array(self.divergences or 0.0) + more, math.inf).tolist())
        spent = self._epsilon_of(total, divergences)
        if self.total == 0:
            spent = min(spent, single_epsilon(event, self._delta, neighboring))
        return replace(
            self,
            neighboring=neighboring,
            composition=rule.composition,
            order=rule.order,
            total=total,
            divergences=divergences,
            spent=spent + self.others_spent_epsilon,
            n_charges=self.n_charges + 1,
            private=self.private and private,
        )

    def without(self, event: object) -> "Account":
        """The account without a charge of which nothing was released; its sums are rounded up."""
        # What the first charge decided stays, so that all decisions of the filter are those of one sum.
        rule = self._filter
        if rule is None or not self.total < math.inf:  # no room for any charge, with or without this one
            return self
        total = math.nextafter(max(self.total - rule.cost(event), 0.0), math.inf)
        divergences = self.divergences
        if divergences:
            with np.errstate(invalid="ignore"):  # unknown divergences stay infinite
                less = np.array(divergences) - divergences_of(event, rule.neighboring)
            less = np.where(np.isnan(less), math.inf, np.maximum(less, 0.0))
            divergences = tuple(np.nextafter(less, math.inf).tolist())
        spent = min(self._epsilon_of(total, divergences) + self.others_spent_epsilon, self.spent)
        return replace(self, total=total, divergences=divergences, spent=spent)

    def _epsilon_of(self, total: float, divergences: tuple[float, ...]) -> float:
        """Epsilon of charges that were fixed in advance, from their sums."""
        if divergences:
            return epsilon_of_rdp(np.array(divergences), self._delta, ORDERS)
        return gaussian.epsilon_for(math.sqrt(total), self._delta)

    def _after_other(self, event: OtherRelease, neighboring: Neighboring, private: bool) -> "Account":
        """The account after a release of another tool; an error if its part of the budget is too small."""
        epsilon = math.nextafter(self.others_spent_epsilon + event.epsilon, math.inf)
        delta = self.others_spent_delta + event.delta
        delta = math.nextafter(delta, math.inf) if event.delta else delta
        if self.repetitions(event) < 1:
            raise BudgetExceededError(
                f"dataset={self.dataset!r} reserves (epsilon={self.others_epsilon:g}, "
                f"delta={self.others_delta:g}) for releases of other tools, of which "
                f"({self.others_spent_epsilon:.4g}, {self.others_spent_delta:.4g}) is spent, and this one "
                f"costs ({event.epsilon:g}, {event.delta:g}); reserve more by add_dataset(..., "
                "others=(epsilon, delta)) before its first charge."
            )
        return replace(
            self,
            neighboring=neighboring,
            spent=self.spent - self.others_spent_epsilon + epsilon,
            n_charges=self.n_charges + 1,
            private=self.private and private,
            others_spent_epsilon=epsilon,
            others_spent_delta=delta,
        )

    @property
    def _epsilon(self) -> float:
        """Epsilon of the part of the budget that is left for fits."""
        return self.epsilon - self.others_epsilon

    @property
    def _delta(self) -> float:
        """Delta of the part of the budget that is left for fits."""
        return self.delta - self.others_delta

    def fits_left(self, epsilon: float, delta: float) -> int:
        """Number of full-batch fits with this budget that the remaining budget allows one after another."""
        relation = self.neighboring or NEIGHBORING[0]
        return self.repetitions(
            GaussianEvent(noise_multiplier_for(epsilon, delta, n_steps=1, neighboring=relation), 1)
        )

    def repetitions(self, event: object) -> int:
        """How many charges of ``event`` fit one after another, under the relation of the data set."""
        if isinstance(event, OtherRelease):
            left = [
                (most * (1 + _SLACK) - spent) / cost
                for most, spent, cost in (
                    (self.others_epsilon, self.others_spent_epsilon, event.epsilon),
                    (self.others_delta, self.others_spent_delta, event.delta),
                )
                if cost
            ]
            return max(0, math.floor(min(2**53, *left)))  # cut, since tiny costs have no limit
        return self._rule(event, self.neighboring or NEIGHBORING[0]).repetitions(self.total, event)

    @property
    def attack_success(self) -> float:
        """Bound on the success of a guess after all charges that the budget allows; 1 with a known leak."""
        if not self.private:
            return 1.0
        # Charges that are summed as Gaussian DP are so together, unless the first alone was over the sum.
        rule = None if self.others_epsilon else self._filter
        summed = rule is not None and rule.order is None and self.total <= rule.most
        return attack_success(self.epsilon, self.delta, math.sqrt(rule.most) if rule and summed else None)

    @property
    def remaining(self) -> float:
        """Epsilon of the largest full-batch Gaussian charge that still fits."""
        rule = self._filter
        if rule is None:
            return self._epsilon
        mu_squared = rule.limit - self.total
        if rule.order is not None:
            mu_squared *= 2 / rule.order
        return 0.0 if mu_squared <= 0 else gaussian.epsilon_for(math.sqrt(mu_squared), self.delta)

    def _rule(self, event: object, neighboring: Neighboring) -> PrivacyFilter:
        """The privacy filter for ``event``, which may be the first charge."""
        return self._filter or PrivacyFilter.for_first(
            event,
            epsilon=self._epsilon,
            delta=self._delta,
            neighboring=neighboring,
            composition=self.composition,
        )

    @property
    def _filter(self) -> PrivacyFilter | None:
        """The privacy filter of the data set; None before its first charge."""
        if self.total == 0 or self.neighboring is None or self.composition is None:
            return None
        return PrivacyFilter(self._epsilon, self._delta, self.neighboring, self.composition, self.order)

    def _refusal(self, event: object, rule: PrivacyFilter) -> str:
        wanted = single_epsilon(event, self.delta, rule.neighboring)
        fix = "use a smaller epsilon, or private rows of other people"
        if rule.composition == "gaussian" and _costs_less_than_in_full(event, rule.neighboring):
            fix = (
                "its charges are summed as Gaussian-DP, which sampled, mixed or discrete releases fit badly: "
                "use full batches, or data sets added with composition='renyi' before their first charge"
            )
        return (
            f"dataset={self.dataset!r} has {self.remaining:.4g} left of epsilon={self.epsilon:g} at "
            f"delta={self.delta:g}, and this charge alone costs {wanted:.4g}; {fix}."
        )


def _costs_less_than_in_full(event: object, neighboring: Neighboring) -> bool:
    """Whether Renyi accounting charges an event less than its Gaussian-DP bound."""
    in_full = mu_of_event(event, neighboring) ** 2 / 2 * ORDERS
    return bool(np.any(divergences_of(event, neighboring) < in_full * (1 - 1e-9)))


@lru_cache(maxsize=256)
def single_epsilon(event: object, delta: float, neighboring: Neighboring) -> float:
    """Epsilon of an event alone; cached, since some accountants take a second."""
    return epsilon_of_event(event, delta, neighboring)
