"""What the runner knows of a method."""

from collections.abc import Callable
from dataclasses import dataclass

from ..problems import Measures


class UnavailableError(Exception):
    """A method cannot run here; says why."""


@dataclass(frozen=True)
class Score:
    """Outcome of one fit.

    Attributes
    ----------
    epsilon : float or None
        Its budget; None where nothing private was done, or nothing was protected.
    measures : Measures
        On the test rows.
    setting : str
        Which of several settings it is, for a method that tries some. The tables show the one with the best
        mean over the seeds, by each measure, and say that it was chosen on test rows.
    note : str
        Whatever a reader of the results may want to know.
    """

    epsilon: float | None
    measures: Measures
    setting: str = ""
    note: str = ""


@dataclass(frozen=True)
class Adapter:
    """A way to get heads, and what they depend on.

    Attributes
    ----------
    fit : callable
        ``(problem, epsilons, **options) -> list of Score``: all budgets of one problem, so that
        heads may share passes over the rows.
    varies : tuple of str
        Which of "start", "shots" and "seed" matter to it. It is run once for all values of the others,
        with no public rows where the shots do not matter.
    private : bool
        Whether it has a budget.
    """

    fit: Callable[..., list[Score]]
    varies: tuple[str, ...] = ("start", "shots", "seed")
    private: bool = True
