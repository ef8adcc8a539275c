"""The privacy claims of estimators and pipelines."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..privacy import epsilon_of, mu_of_budget


def steps_of(estimator: Any) -> Iterator[Any]:
    """The steps of a pipeline, or the estimator itself."""
    steps = getattr(estimator, "steps", None)
    if steps is None:
        yield estimator
        return
    for _, step in steps:
        yield from steps_of(step)


def trained_step(estimator: Any) -> Any:
    """The last step of a pipeline, or the estimator itself."""
    *_, last = steps_of(estimator)
    return last


@dataclass(frozen=True)
class Claim:
    """The claim of an estimator: epsilon at a delta, and mu. None means no claim."""

    epsilon: float | None
    mu: float | None
    delta: float


def claim_of(estimator: Any, delta: float | None, *, released: bool) -> Claim:
    """The claim of a fitted estimator or pipeline.

    Parameters
    ----------
    estimator : fitted estimator or pipeline
        Its steps that release something have ``privacy_``.
    delta : float or None
        The delta of the claimed epsilon; None is the estimator's own.
    released : bool
        Whether the claim must hold against an attacker who sees every release. ModelMix relies on
        secret mixing weights; its claim is then that of the noise alone.
    """
    reports = [step.privacy_ for step in steps_of(estimator) if hasattr(step, "privacy_")]
    pairs = [_epsilon_and_mu(report, released) for report in reports]
    mus = [mu for _, mu in pairs]
    mu = None if any(mu is None for mu in mus) else math.sqrt(sum(mu**2 for mu in mus if mu is not None))
    stated = sum(report.delta for report in reports)
    if delta is None or (len(reports) == 1 and delta == stated):
        return Claim(sum(epsilon for epsilon, _ in pairs), mu, stated)
    return Claim(None if mu is None else epsilon_of(1 / mu, 1, delta=delta), mu, delta)


def _epsilon_and_mu(report: Any, released: bool) -> tuple[float, float | None]:
    noise_alone = getattr(report, "epsilon_unamplified", None)
    if not released or noise_alone is None:
        return report.epsilon, getattr(report, "mu", None)
    exact = report.sampling_rate == 1 and report.noise != "discrete"
    return noise_alone, mu_of_budget(noise_alone, report.delta) if exact else None
