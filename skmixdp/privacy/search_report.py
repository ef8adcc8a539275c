"""The statement of a search's guarantee: the whole of it, beside what one fit would have claimed."""

from dataclasses import dataclass
from typing import ClassVar

from .accounting.events import Neighboring
from .report import Statement


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
        Strategy -> epsilon of one fit for which the whole budget would pay.
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
            trials = f"{self.n_trials:g} candidates, each tried once; all of them are paid for"
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
            ("last fit", "one more, paid for" if self.refit else "none: the best trial is the result"),
            ("such fits cost", _each(self.costs)),
            ("affordable fits", _each(self.affordable)),
            ("rows", f"{self.n_private} private, {self.n_public} public"),
            ("noise source", self.noise),
            ("treated as public", "; ".join(self.treated_as_public)),
            *self._last_rows,
        ]


def _each(epsilons: dict[str, float]) -> str:
    return "; ".join(f"epsilon {epsilon:.6g} by {strategy}" for strategy, epsilon in epsilons.items())
