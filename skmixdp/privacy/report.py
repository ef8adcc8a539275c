"""Reports of the guarantee of a fit or a search; they do not change afterwards."""

import json
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, ndtr

from .._utils.documents import Document, Section, percent, sentence
from .._utils.validation import (
    FRACTION,
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    Allowed,
    Kind,
    check_params,
    number,
    printable,
    whole_from,
)
from .accounting.events import NEIGHBORING, Neighboring

#: Allowed values of fields, which may have been read from a file.
FINITE = number(-np.inf)
TEXT = Kind("a string", lambda value: isinstance(value, str))
TEXTS = Kind("a tuple of strings", lambda value: isinstance(value, tuple) and all(map(TEXT.admits, value)))
_SUM = number(0, closed="both")
_SHARES = Kind(
    "pairs of a string and a number", lambda value: isinstance(value, tuple) and all(map(_is_entry, value))
)
_COSTS = Kind(
    "a dict of numbers", lambda value: isinstance(value, dict) and all(map(_is_entry, value.items()))
)

#: Those of a ledger's data set; without a ledger all are None.
_DATASET: dict[str, tuple[Allowed, ...]] = {
    "dataset": (TEXT,),
    "dataset_epsilon": (POSITIVE,),
    "dataset_delta": (PROBABILITY,),
    "dataset_spent": (_SUM,),
    "dataset_purpose": (TEXT,),
}


def _is_entry(pair: Any) -> bool:
    """Whether a value is a pair of a text and a number."""
    return isinstance(pair, tuple) and len(pair) == 2 and TEXT.admits(pair[0]) and FINITE.admits(pair[1])


class PrivacyLeakWarning(UserWarning):
    """A fit reads something from private rows that the guarantee does not cover."""


#: What each relation of neighbours means.
RELATION_WORDS = {
    "add_or_remove_one": "one private row added or removed (zeroed out; n is public)",
    "zero_out": "one private row zeroed out (n is public)",
    "replace_one": "one private row replaced by any other",
}

#: The same, for all rows of one person.
_PERSON_WORDS = {
    "add_or_remove_one": "all rows of one {} added or removed (the number of persons is public)",
    "zero_out": "all rows of one {} removed (the number of persons is public)",
    "replace_one": "all rows of one {} replaced by any others (the number of persons is public)",
}


def relation_words(neighboring: str, unit: str = "row") -> str:
    """What a relation of neighbours means for rows, or for the persons of a column named ``unit``."""
    return RELATION_WORDS[neighboring] if unit == "row" else _PERSON_WORDS[neighboring].format(_person(unit))


def counted(n: int, unit: str) -> str:
    """A number with its unit as text: ``12 rows``, or persons if ``unit`` names a column of ids."""
    return f"{n} rows" if unit == "row" else f"{n} {_person(unit, 'persons')}"


def _person(unit: str, word: str = "person") -> str:
    return word if unit == "person" else f"{word} (column {printable(unit)!r})"


def attack_success(epsilon: float, delta: float, mu: float | None = None) -> float:
    """Largest probability of guessing, from a release, which of two neighbouring data sets it came from.

    It is ``Phi(mu / 2)`` (Dong, Roth and Su 2022, Section 2), or else ``(e**epsilon + delta) / (1 +
    e**epsilon)`` (from the two error rates of Kairouz, Oh and Viswanath 2015, Section 2).
    """
    return float(expit(epsilon) + delta * expit(-epsilon) if mu is None else ndtr(mu / 2))


def attack_words(success: float, neighboring: str, unit: str = "row") -> str:
    """What an attacker can do, by the bound of :func:`attack_success`, for rows or persons (``unit``)."""
    single, several = ("row", "rows") if unit == "row" else (_person(unit), _person(unit, "persons"))
    which = f"whether one given {single} is"
    if neighboring == "replace_one":
        which = f"which of two given {several} is"
    return (
        f"guesses right at most {percent(success)} of the time {which} in the data; "
        "a coin toss is right 50% of the time"
    )


def attack_section(success: float, words: str, when: str = "") -> Section:
    """A bound on the success of an attacker, on a scale and, unless there is none, in ``words``."""
    if not words:
        return Section(scale=success)
    claim = sentence(
        f"{when} an attacker {words}. This holds for any attacker, even one who knows all other rows and "
        "everything public, if both answers were equally likely before.".strip()
    )
    return Section(paragraphs=[claim], scale=success)


def first_line(leaks: Iterable[str]) -> str:
    """The first line of a document, which names known leaks; empty without leaks."""
    listed = "; and ".join(dict.fromkeys(leaks))
    return f"NO GUARANTEE: {listed}" if listed else ""


class Report(Document):
    """Base of all reports on a guarantee, which print as a table and convert to HTML and JSON."""

    #: Caption of the table.
    title: ClassVar[str]

    leaks: tuple[str, ...]
    epsilon: float
    delta: float
    neighboring: Neighboring
    unit: str
    mu: float | None

    @property
    def attack_success(self) -> float:
        """Largest probability with which an attacker guesses a row or person right; 1 with a known leak.

        The guess is whether the row or person is in the data, or which of two is. A fair coin decided it.
        The attacker knows all others, everything public, and what was released.
        """
        return attack_success(self.epsilon, self.delta, self.mu) if self.private else 1.0

    @property
    def _attack(self) -> str:
        """Text on :attr:`attack_success`; with a known leak, it claims nothing."""
        return attack_words(self.attack_success, self.neighboring, self.unit) if self.private else ""

    @property
    def no_guarantee(self) -> str:
        """The first line of the document, which names known leaks; empty without leaks.

        That no leak is known proves nothing.
        """
        return first_line(self.leaks)

    @property
    def private(self) -> bool:
        """Whether the guarantee holds, as far as is known."""
        return not self.no_guarantee

    def to_dict(self) -> dict[str, Any]:
        """All fields, ``no_guarantee`` and ``private``, as values that JSON supports."""
        return json.loads(self.to_json())  # type: ignore[no-any-return]

    def to_json(self, indent: int | None = 2) -> str:
        """The document as a JSON object."""
        fields = {"no_guarantee": self.no_guarantee, "private": self.private, **asdict(self)}  # type: ignore[call-overload]
        return json.dumps(fields, indent=indent, default=np.generic.item)  # converts numbers of NumPy's types

    @abstractmethod
    def _rows(self) -> list[tuple[str, str]]:
        """Names and values of the table."""

    def _sections(self) -> list[Section]:
        return [Section(self.title, self._rows())]


@dataclass(frozen=True, kw_only=True)
class Statement(Report):
    """Base of the reports of fits and searches."""

    epsilon: float
    delta: float
    neighboring: Neighboring
    n_private: int
    n_public: int
    treated_as_public: tuple[str, ...]
    noise: str
    warnings: tuple[str, ...]
    leaks: tuple[str, ...] = ()
    dataset: str | None = None
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    dataset_spent: float | None = None
    dataset_purpose: str | None = None
    unit: str = "row"

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "epsilon": (_SUM,),
        "delta": (PROBABILITY,),
        "neighboring": NEIGHBORING,
        "n_private": (whole_from(0),),
        "n_public": (whole_from(0),),
        "treated_as_public": (TEXTS,),
        "noise": ("cryptographic", "seeded", "discrete"),
        "unit": (TEXT,),
        "warnings": (TEXTS,),
        "leaks": (TEXTS,),
    }

    def check_fields(self) -> None:
        """Refuse values that no report of a fit or a search has, such as those of a forged file."""
        without = dict.fromkeys(_DATASET, (None,))
        check_params(self, self._allowed | (_DATASET if self.dataset is not None else without))

    @property
    def no_guarantee(self) -> str:
        """As in :class:`Report`; a seed of the noise is a leak too."""
        return first_line((*self.leaks, *(["the noise comes from a seed"] if self.noise == "seeded" else [])))

    @property
    def _verdict(self) -> str:
        verdict = f"({self.epsilon:.6g}, {self.delta:.3g})-differential privacy"
        if self.noise == "seeded":
            verdict = f"NOT PRIVATE (seeded); with secure noise: {verdict}"
        return f"NO GUARANTEE; without the leaks: {verdict}" if self.leaks else verdict

    @property
    def _sizes(self) -> list[tuple[str, str]]:
        if self.unit == "row":
            public = f", {self.n_public} public" if self.n_public else ""
            return [("rows", f"{self.n_private} private{public}")]
        public_rows = [("public rows", str(self.n_public))] if self.n_public else []
        return [("persons", counted(self.n_private, self.unit)), *public_rows]

    @property
    def _last_rows(self) -> list[tuple[str, str]]:
        rows = [("warning", warning) for warning in self.warnings]
        if self.dataset is None:
            return rows
        budget = f"({self.dataset_epsilon:.6g}, {self.dataset_delta:.3g})"
        purpose = f", for {self.dataset_purpose!r}" if self.dataset_purpose else ""
        spent = f"{self.dataset}{purpose}: epsilon {self.dataset_spent:.6g} of {budget} is spent"
        return [("ledger", spent), *rows]


@dataclass(frozen=True, kw_only=True)
class PrivacyReport(Statement):
    """The guarantee of a fit and its assumptions.

    Attributes
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-differentially private in its private rows, if
        ``private`` is True.
    mu : float or None
        Gaussian-DP parameter of the same releases; None if they have no exact one.
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity of one zeroed-out row.
    n_steps : int
        Number of training steps, each one release.
    sampling_rate : float
        Probability that a row is in the batch of a step; 1 is the full batch.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.
    accountant : str
        The method that computed epsilon.
    n_private, n_public : int
        Number of rows, or of persons and of public rows; both are treated as public.
    treated_as_public : tuple of str
        Everything that the guarantee does not protect.
    noise : {"cryptographic", "seeded", "discrete"}
        Source of the noise.
    warnings : tuple of str
        Caveats to know before quoting epsilon.
    leaks : tuple of str
        What is known to have been read from private rows without a budget, by the fit or by what scikit-learn
        did around it. With any leak there is no guarantee. Without one, nothing is proved.
    epsilon_unamplified : float or None
        Epsilon of the same releases without amplification beyond sampling; None if there is no such
        amplification.
    computed_on : str
        Device that computed the products with private rows. The noise is added on the CPU.
    shares : tuple of (str, float)
        What the budget was spent on, as parts of mu squared; empty if all of it was spent on training.
    dataset : str or None
        Data set of the ledger to which the fit was charged; None without a ledger.
    dataset_epsilon, dataset_delta, dataset_spent : float or None
        Budget of that data set, and its spent epsilon, including this fit.
    dataset_purpose : str or None
        Purpose of the charge; empty if nothing was said, None without a ledger.
    unit : str
        What the guarantee protects: "row", or all rows of one person, by the name of the column of persons.
    """

    title: ClassVar = "Privacy report"

    mu: float | None
    noise_multiplier: float
    n_steps: int
    sampling_rate: float
    accountant: str
    epsilon_unamplified: float | None = None
    computed_on: str = "cpu"
    shares: tuple[tuple[str, float], ...] = ()

    _allowed: ClassVar = Statement._allowed | {
        "mu": (_SUM, None),
        "noise_multiplier": (NON_NEGATIVE,),
        "n_steps": (whole_from(0),),
        "sampling_rate": (FRACTION,),
        "accountant": (TEXT,),
        "epsilon_unamplified": (_SUM, None),
        "computed_on": (TEXT,),
        "shares": (_SHARES,),
    }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("guarantee", self._verdict),
            ("neighbours", relation_words(self.neighboring, self.unit)),
            ("mu (Gaussian DP)", "not exact for this mechanism" if self.mu is None else f"{self.mu:.6g}"),
            ("noise multiplier", f"{self.noise_multiplier:.6g}"),
            ("steps", str(self.n_steps)),
            ("sampling rate", "1 (full batch)" if self.sampling_rate == 1 else f"{self.sampling_rate:.6g}"),
            ("accountant", self.accountant),
            *self._sizes,
            ("noise source", self.noise),
            ("treated as public", "; ".join(self.treated_as_public)),
        ]
        if self.shares:
            spent = ", ".join(f"{share:.1%} {name}" for name, share in self.shares)
            rows.append(("budget spent on", spent))
        if self.computed_on != "cpu":
            rows.append(("computed on", f"{self.computed_on}; the noise is added on the processor"))
        if self.epsilon_unamplified is not None:
            rows.insert(1, ("without amplification", f"({self.epsilon_unamplified:.6g}, {self.delta:.3g})"))
        return rows + self._last_rows


@dataclass(frozen=True, kw_only=True)
class SearchReport(Statement):
    """The guarantee of a search over models, compared with other strategies.

    Attributes
    ----------
    epsilon, delta : float
        All releases of the search together are (epsilon, delta)-differentially private in its private
        rows, if ``private`` is True.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.
    strategy : {"grid", "random"}
        ``"grid"`` is a fixed number of trials with plain composition. ``"random"`` is a secret random number
        of trials, of which only the best is released.
    n_trials : float
        Number of trials, or its mean.
    fit_epsilon : float
        Epsilon of one fit. This is the naive claim, which ignores that a choice was made.
    noise_multiplier : float
        Noise multiplier of one Gaussian release that is equivalent to all releases of a trial.
    scoring : {"public", "private"}
        The rows on which the candidates were scored.
    score_noise : float or None
        Standard deviation of a score's noise, as a fraction of the private rows, or persons. None if
        scores cost no budget.
    costs : dict
        Strategy -> epsilon of a search with fits like these.
    affordable : dict
        Strategy -> epsilon of one fit that the whole budget would cover.
    n_held_out : int
        Number of public rows held out for scoring.
    n_private, n_public, treated_as_public, noise, warnings, leaks
        As in :class:`PrivacyReport`, for the search.
    dataset, dataset_epsilon, dataset_delta, dataset_spent, dataset_purpose, unit
        As in :class:`PrivacyReport`, for the search.
    """

    title: ClassVar = "Privacy report of a search"
    mu = None  # a search has none exactly

    strategy: str
    n_trials: float
    fit_epsilon: float
    noise_multiplier: float
    scoring: str
    score_noise: float | None
    costs: dict[str, float]
    affordable: dict[str, float]
    n_held_out: int

    _allowed: ClassVar = Statement._allowed | {
        "strategy": ("grid", "random"),
        "n_trials": (POSITIVE,),
        "fit_epsilon": (_SUM,),
        "noise_multiplier": (NON_NEGATIVE,),
        "scoring": ("public", "private"),
        "score_noise": (NON_NEGATIVE, None),
        "costs": (_COSTS,),
        "affordable": (_COSTS,),
        "n_held_out": (whole_from(0),),
    }

    def _rows(self) -> list[tuple[str, str]]:
        if self.strategy == "grid":
            trials = f"{self.n_trials:g} candidates, each tried once; all of them are charged"
        else:
            trials = f"a secret random number (geometric, mean {self.n_trials:g}); only the best is released"
        if self.scoring == "public":
            scored = f"{self.n_held_out} public rows kept out of the fits; free"
        else:
            scored = f"private rows, by a noisy score (standard deviation {self.score_noise:.2g})"
        return [
            ("guarantee", self._verdict + " of the whole search"),
            ("neighbours", relation_words(self.neighboring, self.unit)),
            (
                "naive claim",
                f"epsilon {self.fit_epsilon:.6g}: that of one fit, as if nothing had been chosen",
            ),
            ("trials", trials),
            ("scored on", scored),
            ("such fits cost", _by_strategy(self.costs)),
            ("affordable fits", _by_strategy(self.affordable)),
            *self._sizes,
            ("noise source", self.noise),
            ("treated as public", "; ".join(self.treated_as_public)),
            *self._last_rows,
        ]


def _by_strategy(epsilons: dict[str, float]) -> str:
    return "; ".join(f"epsilon {epsilon:.6g} by {strategy}" for strategy, epsilon in epsilons.items())
