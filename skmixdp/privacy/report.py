"""What a fit or a search guarantees, frozen when it ends."""

import html
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from .accounting.events import Neighboring

_RELATION_WORDS = {
    "add_or_remove_one": "one private row added or removed (zeroed out; n is public)",
    "zero_out": "one private row zeroed out (n is public)",
    "replace_one": "one private row replaced by any other",
}


class Statement(ABC):
    """How every report states a guarantee: as a table, as HTML and as JSON."""

    #: Caption of the table.
    title: ClassVar[str]

    epsilon: float
    delta: float
    neighboring: Neighboring
    noise: str
    warnings: tuple[str, ...]
    dataset: str | None
    dataset_epsilon: float | None
    dataset_delta: float | None
    dataset_spent: float | None

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: noise that anyone can regenerate protects nothing."""
        return self.noise != "seeded"

    def to_dict(self) -> dict[str, Any]:
        """All fields and ``private``, as JSON-ready values."""
        return json.loads(self.to_json())  # type: ignore[no-any-return]

    def to_json(self, indent: int | None = 2) -> str:
        """The report as a JSON object."""
        return json.dumps({"private": self.private, **asdict(self)}, indent=indent)  # type: ignore[call-overload]

    @property
    def _verdict(self) -> str:
        verdict = f"({self.epsilon:.6g}, {self.delta:.3g})-differential privacy"
        return verdict if self.private else f"NOT PRIVATE (seeded); with secure noise: {verdict}"

    @property
    def _neighbours(self) -> str:
        return _RELATION_WORDS[self.neighboring]

    @property
    def _last_rows(self) -> list[tuple[str, str]]:
        rows = [("warning", warning) for warning in self.warnings]
        if self.dataset is not None:
            budget = f"({self.dataset_epsilon:.6g}, {self.dataset_delta:.3g})"
            rows.insert(
                0, ("ledger", f"{self.dataset}: epsilon {self.dataset_spent:.6g} of {budget} is spent")
            )
        return rows

    @abstractmethod
    def _rows(self) -> list[tuple[str, str]]:
        """Names and values of the table."""

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.title, *(f"  {name:<{width}}  {value}" for name, value in rows)])

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return f"<table><caption>{self.title}</caption>{body}</table>"


@dataclass(frozen=True)
class PrivacyReport(Statement):
    """What a fit guarantees, and under which assumptions.

    Attributes
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-differentially private in its private rows, if
        ``private`` is True.
    mu : float or None
        Gaussian-DP parameter of the same release; None where sampling makes it not exact.
    noise_multiplier : float
        Noise standard deviation divided by the L2 sensitivity of one zeroed-out row.
    n_steps : int
        Number of releases.
    sampling_rate : float
        Probability with which a row takes part in a step; 1 is the full batch.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.
    accountant : str
        How epsilon was computed.
    n_private, n_public : int
        Number of rows; both are treated as public.
    treated_as_public : tuple of str
        Everything the guarantee does not protect.
    noise : {"cryptographic", "seeded", "discrete"}
        Where the noise came from.
    warnings : tuple of str
        What a reader must know before quoting epsilon.
    epsilon_unamplified : float or None
        Epsilon of the same releases if nothing but their noise is counted; None where epsilon
        counts nothing else.
    computed_on : str
        Device on which private rows were multiplied; the noise is added on the processor.
    dataset : str or None
        Data set of the ledger that the fit was charged to; None without a ledger.
    dataset_epsilon, dataset_delta, dataset_spent : float or None
        Budget of that data set, and the epsilon spent of it, this fit included.
    """

    title: ClassVar = "Privacy report"

    epsilon: float
    delta: float
    mu: float | None
    noise_multiplier: float
    n_steps: int
    sampling_rate: float
    neighboring: Neighboring
    accountant: str
    n_private: int
    n_public: int
    treated_as_public: tuple[str, ...]
    noise: str
    warnings: tuple[str, ...]
    epsilon_unamplified: float | None = None
    computed_on: str = "cpu"
    dataset: str | None = None
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    dataset_spent: float | None = None

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("guarantee", self._verdict),
            ("neighbours", self._neighbours),
            ("mu (Gaussian DP)", "not exact for this mechanism" if self.mu is None else f"{self.mu:.6g}"),
            ("noise multiplier", f"{self.noise_multiplier:.6g}"),
            ("steps", str(self.n_steps)),
            ("sampling rate", "1 (full batch)" if self.sampling_rate == 1 else f"{self.sampling_rate:.6g}"),
            ("accountant", self.accountant),
            ("rows", f"{self.n_private} private, {self.n_public} public"),
            ("noise source", self.noise),
            ("treated as public", "; ".join(self.treated_as_public)),
        ]
        if self.computed_on != "cpu":
            rows.append(("computed on", f"{self.computed_on}; the noise is added on the processor"))
        if self.epsilon_unamplified is not None:
            rows.insert(1, ("without amplification", f"({self.epsilon_unamplified:.6g}, {self.delta:.3g})"))
        return rows + self._last_rows


@dataclass(frozen=True)
class SearchReport(Statement):
    """What a search over models guarantees, and what it would have cost otherwise.

    Attributes
    ----------
    epsilon, delta : float
        Everything that the search released is (epsilon, delta)-differentially private in its private
        rows, if ``private`` is True.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.
    strategy : {"grid", "random"}
        A fixed number of trials, plainly composed; or a secret random one of which the best is released.
    n_trials : float
        Number of trials, or its mean.
    distribution : str, float or None
        Law of a random number of trials.
    fit_epsilon : float
        Epsilon of one fit: the naive claim, which ignores that a choice was made.
    noise_multiplier : float
        Of one Gaussian release that stands for all releases of a trial.
    scoring : {"public", "private"}
        Which rows the candidates were scored on.
    score_noise : float or None
        Standard deviation of a score's noise, as a fraction of the private rows; None where scores are
        free.
    refit : bool
        Whether the winner was fitted once more.
    costs : dict
        Strategy -> epsilon of a search with fits like these.
    affordable : dict
        Strategy -> epsilon of one fit that the whole budget would cover.
    n_private, n_public, n_held_out : int
        Number of rows; the last are the public rows that were kept for scoring.
    treated_as_public : tuple of str
        Everything the guarantee does not protect.
    noise : {"cryptographic", "seeded", "discrete"}
        Where the noise came from.
    warnings : tuple of str
        What a reader must know before quoting epsilon.
    dataset : str or None
        Data set of the ledger that the search was charged to; None without a ledger.
    dataset_epsilon, dataset_delta, dataset_spent : float or None
        Budget of that data set, and the epsilon spent of it, this search included.
    """

    title: ClassVar = "Privacy report of a search"

    epsilon: float
    delta: float
    neighboring: Neighboring
    strategy: str
    n_trials: float
    distribution: str | float | None
    fit_epsilon: float
    noise_multiplier: float
    scoring: str
    score_noise: float | None
    refit: bool
    costs: dict[str, float]
    affordable: dict[str, float]
    n_private: int
    n_public: int
    n_held_out: int
    treated_as_public: tuple[str, ...]
    noise: str
    warnings: tuple[str, ...]
    dataset: str | None = None
    dataset_epsilon: float | None = None
    dataset_delta: float | None = None
    dataset_spent: float | None = None

    def _rows(self) -> list[tuple[str, str]]:
        if self.strategy == "grid":
            trials = f"{self.n_trials:g} candidates, each tried once; all of them are charged"
        else:
            law = self.distribution if isinstance(self.distribution, str) else f"shape {self.distribution:g}"
            trials = f"a secret random number ({law}, mean {self.n_trials:g}); only the best is released"
        if self.scoring == "public":
            scored = f"{self.n_held_out} public rows kept out of the fits; free"
        else:
            scored = f"private rows, by a noisy count (standard deviation {self.score_noise:.2g} of the rows)"
        return [
            ("guarantee", self._verdict + " of the whole search"),
            ("neighbours", self._neighbours),
            (
                "naive claim",
                f"epsilon {self.fit_epsilon:.6g}: that of one fit, as if nothing had been chosen",
            ),
            ("trials", trials),
            ("scored on", scored),
            (
                "last fit",
                "one more, charged" if self.refit else "none: the best trial is the result",
            ),
            ("such fits cost", _each(self.costs)),
            ("affordable fits", _each(self.affordable)),
            ("rows", f"{self.n_private} private, {self.n_public} public"),
            ("noise source", self.noise),
            ("treated as public", "; ".join(self.treated_as_public)),
            *self._last_rows,
        ]


def _each(epsilons: dict[str, float]) -> str:
    return "; ".join(f"epsilon {epsilon:.6g} by {strategy}" for strategy, epsilon in epsilons.items())
