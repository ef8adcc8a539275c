"""Fits of plain estimators to data sets that differ in their canaries alone."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.release import RecordedRelease, recorded_releases
from ..privacy import epsilon_of, mu_of_budget

Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """Rows and their labels or targets."""

    X: Array
    y: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Any) -> "Rows":
        return Rows(self.X[index], self.y[index])


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, and what its mechanism released."""

    estimator: Any
    releases: list[RecordedRelease]


def steps_of(estimator: Any) -> Iterator[Any]:
    """The steps of a pipeline, or the estimator itself; its last one is trained."""
    steps = getattr(estimator, "steps", None)
    if steps is None:
        yield estimator
        return
    for _, step in steps:
        yield from steps_of(step)


class Fits:
    """Fits to known rows and to those canaries that are included.

    Parameters
    ----------
    factory : callable
        Returns a fresh estimator.
    known : Rows
        Private rows that take part in every fit.
    X_pub, y_pub : array-likes or None
        Public rows, handed to ``fit``.

    Notes
    -----
    The neighbours of which a guarantee speaks have a row that is *zeroed out*: it adds zero to every
    sum, and the public number of rows stays. No row of numbers does that by itself, since after
    centring, with an intercept, a row of zeros has a gradient like any other. So an excluded canary
    is zeroed out where sums are released, and a known row's copy stands in its place in ``X``: what
    else an estimator or a pipeline reads from ``X`` does not see the canary either, and if it is private
    as claimed, the copy changes nothing.
    """

    def __init__(self, factory: Callable[[], Any], known: Rows, X_pub: Any, y_pub: Any) -> None:
        self._factory = factory
        self._known = known
        self._public = {} if X_pub is None and y_pub is None else {"X_pub": X_pub, "y_pub": y_pub}

    def __call__(self, canaries: Rows, included: NDArray[np.bool_]) -> Fitted:
        """Fit with some of the canaries.

        Raises
        ------
        ValueError
            If the estimator releases nothing by this library's mechanism.
        """
        known = self._known
        stand_ins = known[np.arange(len(canaries)) % len(known)]
        X = np.concatenate([known.X, stand_ins.X])
        y = np.concatenate([known.y, stand_ins.y])
        taking_part = np.concatenate([np.ones(len(known), dtype=bool), included])
        X[len(known) :][included] = canaries.X[included]
        y[len(known) :][included] = canaries.y[included]
        estimator = self._factory()
        with recorded_releases(None if taking_part.all() else ~taking_part) as releases:
            estimator.fit(X, y, **self._public)
        if not releases or not any(hasattr(step, "privacy_") for step in steps_of(estimator)):
            raise ValueError(
                f"factory returns {type(estimator).__name__}, which released nothing through skmixdp; pass a "
                "factory of this library's estimators, or of pipelines that end in one."
            )
        return Fitted(estimator, releases)


def check_factory(factory: Any) -> Any:
    """Refuse a factory that does not return fresh, unseeded estimators; one of its estimators."""
    if not callable(factory):
        raise TypeError(
            f"factory={factory!r} must be a function that returns an unfitted estimator; pass "
            "lambda: clone(estimator)."
        )
    first, second = factory(), factory()
    for estimator in (first, second):
        if not callable(getattr(estimator, "fit", None)):
            raise TypeError(f"factory returns {estimator!r}, which has no fit; return an estimator.")
        if any(hasattr(step, "privacy_") for step in steps_of(estimator)):
            raise ValueError("factory returns a fitted estimator; return a fresh one, by clone(estimator).")
        if any(getattr(step, "ledger", None) is not None for step in steps_of(estimator)):
            raise ValueError(
                "factory returns an estimator with a ledger, which every fit of the audit would charge; "
                "leave ledger out."
            )
    if first is second:
        raise ValueError("factory returns the same estimator twice; return a fresh one, by clone(estimator).")
    seeds = [
        [seed for step in steps_of(estimator) if (seed := _noise_seed(step)) is not None]
        for estimator in (first, second)
    ]
    if any(seed in seeds[1] for seed in seeds[0]):
        raise ValueError(
            f"factory returns estimators with random_state={seeds[0][0]}, the same seed each time, so the noise "
            "would not change from fit to fit; leave random_state at None."
        )
    return first


def _noise_seed(step: Any) -> int | None:
    """The seed of a step's noise, where it is a number."""
    seed = getattr(step, "random_state", None) if hasattr(step, "epsilon") else None
    return seed if isinstance(seed, (int, np.integer)) else None


@dataclass(frozen=True)
class Claim:
    """What an estimator claims: epsilon at a delta, and mu; None where it claims none."""

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
        At which epsilon is wanted; None is the estimator's own.
    released : bool
        Whether the claim must hold for one who sees every release. One that counts on something
        else staying secret, as ModelMix does, is then replaced by that of the noise alone.
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
    exact = report.sampling_rate == 1 and report.noise != "hardened"
    return noise_alone, mu_of_budget(noise_alone, report.delta) if exact else None
