"""One trial of a search: a fit that spends its share of the budget, and its score."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from ..privacy import GaussianEvent, Neighboring, Noise
from ._search_rows import Rows
from ._trial_warnings import distinct, recorded

#: What an estimator must have for a search to divide its budget.
_NEEDED = frozenset({"epsilon", "delta", "noise_multiplier", "neighboring", "noise", "ledger"})

#: Rounding in the price of a fit.
_ROUNDING = 1e-9


class Rehearsed(Exception):  # noqa: N818
    """A fit went well up to where it would have released something, and stopped there."""


class Allowance:
    """Stands in the place of a ledger within a trial: a fit may cost what was set aside, and no more.

    The search has been charged as a whole, or is about to be, so nothing is recorded.

    Parameters
    ----------
    mu : float
        What one fit may cost: full-batch Gaussian-DP parameter of a zeroed-out row.
    neighboring, noise : str
        Of the search.
    private : bool, default=True
        Whether the noise of the search is secret; a fit for which the opposite holds is refused.
    rehearsal : bool, default=False
        Stop every fit here, before its first release.
    """

    def __init__(
        self,
        mu: float,
        neighboring: Neighboring,
        noise: Noise,
        *,
        private: bool = True,
        rehearsal: bool = False,
    ) -> None:
        self.mu = mu
        self.neighboring = neighboring
        self.noise = noise
        self.private = private
        self.rehearsal = rehearsal

    def charge(self, event: Any, *, neighboring: Any, private: bool, **unused: Any) -> None:
        """Let a fit pass that costs no more than it may.

        Raises
        ------
        ValueError
            If it is not full batches of Gaussian noise, on the terms of the search, or if its noise comes
            from a seed and that of the search does not.
        RuntimeError
            If it costs more.
        Rehearsed
            In a rehearsal, if all is well.
        """
        if type(event) is not GaussianEvent or event.sampling_rate != 1:
            raise ValueError(
                f"a search cannot divide its budget into fits like {event!r}, only into full batches of "
                "Gaussian noise; pass batch_size=None and an algorithm other than ModelMix."
            )
        for name, value in (("neighboring", neighboring), ("noise", event.noise)):
            if value != getattr(self, name):
                raise ValueError(
                    f"{name}={value!r} of a candidate differs from {name}={getattr(self, name)!r} of the "
                    "estimator; a search needs one for all its fits."
                )
        if private != self.private:
            raise ValueError(
                "random_state of a candidate is set, which would take the guarantee from the whole search; "
                "leave it at None, or pass random_state to PrivateSearchCV for a search that is reproducible "
                "and NOT private."
                if self.private
                else "random_state=None of a candidate differs from that of the estimator, which is set; "
                "give a seed to all of them, or to none for a search that is private."
            )
        if math.sqrt(event.n_steps) / event.noise_multiplier > self.mu * (1 + _ROUNDING):
            raise RuntimeError(f"a fit asked for {event!r}, more than was set aside: mu={self.mu:g}.")
        if self.rehearsal:
            raise Rehearsed


def head_of(estimator: Any) -> tuple[str, Any]:
    """The private estimator, itself or the last step of a Pipeline, and the prefix of its parameters.

    Raises
    ------
    TypeError
        If there is none, or if something else in it spends a budget of its own.
    """
    prefix, head = "", estimator
    while hasattr(head, "steps"):
        name, head = head.steps[-1]
        prefix += f"{name}__"
    if not (hasattr(head, "get_params") and set(head.get_params(deep=False)) >= _NEEDED):
        raise TypeError(
            f"estimator={estimator!r} must be a private estimator of this library, such as "
            "MixedDPLogisticRegression(), or a Pipeline that ends in one."
        )
    spending = {name for name in estimator.get_params() if name.split("__")[-1] == "epsilon"}
    if others := sorted(spending - {f"{prefix}epsilon"}):
        raise TypeError(
            f"{others[0]} of the estimator is a budget beside that of its last step, and a search divides "
            "only the latter; fit that step beforehand."
        )
    return prefix, head


def prepare(estimator: Any, candidate: dict[str, Any], settings: dict[str, Any]) -> Any:
    """A clone of the estimator with the parameters of a candidate and of its head's share.

    Parameters
    ----------
    estimator : estimator
        What is searched over.
    candidate : dict
        Parameters to try; estimators among them are cloned.
    settings : dict
        Parameters of the head.
    """
    trial = clone(estimator).set_params(**{name: clone(v, safe=False) for name, v in candidate.items()})
    prefix, _ = head_of(trial)
    return trial.set_params(**{prefix + name: value for name, value in settings.items()})


def verbosity_of(estimator: Any) -> dict[str, Any]:
    """The parameters ``verbose`` of an estimator and of its parts."""
    return {
        name: value for name, value in estimator.get_params().items() if name.split("__")[-1] == "verbose"
    }


def silenced(estimator: Any) -> Any:
    """The estimator, which prints nothing and shows no progress: what it shows counts its fits."""
    shown = verbosity_of(estimator)
    return estimator.set_params(**{name: type(value)(0) for name, value in shown.items() if value})


def rehearse(estimator: Any, rows: Rows) -> None:
    """Let a fit check its input and make its plan, without a release.

    Raises
    ------
    Exception
        Whatever the fit raises for bad input.
    """
    try:
        rows.fit(estimator)
    except Rehearsed:
        return
    raise RuntimeError(f"{estimator!r} was fitted without asking its ledger; a search cannot account for it.")


#: Score of a trial, the fitted estimator, and what it warned of.
Outcome = tuple[float | None, Any, list[Warning]]


def run_trial(token: str, number: int, estimator: Any, rows: Rows, scored: bool) -> Outcome:
    """Fit and score one candidate: its score, None unless ``scored``, the fitted estimator, its warnings.

    ``token`` and ``number`` name the trial, for a cache.
    """
    with recorded() as caught:
        rows.fit(estimator)
        prefix, _ = head_of(estimator)
        estimator.set_params(**{f"{prefix}ledger": None})
        score = rows.score(estimator) if scored else None
    return score, estimator, distinct(caught)


def run_secret_trial(run: Callable[..., Outcome], *trial: Any) -> Outcome | None:
    """A trial that must not be told from others by its failure; None if it failed."""
    try:
        return run(*trial)
    except Exception:  # whatever it is, to say it is to say that this candidate was tried
        return None


#: What :func:`run_trial` takes after a trial's name.
Trial = tuple[Any, Rows, bool]


def fitted_side_by_side(trials: list[Trial]) -> list[Trial]:
    """The trials with their fits done, in shared passes over the rows; as they are where that cannot be.

    Pipelines transform rows, each in its own way, and modules are fitted by themselves. Each fit asks
    its allowance before the first of them releases anything.
    """
    estimators = [estimator for estimator, _, _ in trials]
    if not all(hasattr(estimator, "_fit_many") for estimator in estimators):
        return trials
    if trials:
        trials[0][1].fit_side_by_side(estimators)
    return [(estimator, replace(rows, fitted=True), scored) for estimator, rows, scored in trials]
