"""Fits to data sets that differ only in their canaries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._engine.recording import RecordedRelease, recorded_releases
from .._utils.models import Model, report_of
from ..privacy.units import Units
from ._checks import AuditRows
from ._result import steps_of

Array = NDArray[Any]

#: Number of rows of a canary that is a person.
ROWS_OF_PERSON = 10


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, its recorded releases, and the persons of the known rows as numbers, if any."""

    estimator: Model
    releases: list[RecordedRelease]
    codes: NDArray[np.intp] | None = None


class Fits:
    """Fit new estimators of ``factory`` to the known rows and the included canaries.

    The guarantee's neighbours have one row *zeroed out*: it adds zero to every sum, and the public number of
    rows stays. No row of numbers does that, so an excluded canary is zeroed out where sums are released. In
    ``X`` the mean of two known rows replaces it, so that no other step of a pipeline sees it. With
    persons as the ``units`` of the known rows, each canary is a person with several rows, which are copies.
    """

    def __init__(
        self, factory: Callable[[], Any], known_rows: AuditRows, X_pub: object, y_pub: object, units: Units
    ) -> None:
        self._factory = factory
        self._known = known_rows
        self._units = units
        self._public = {} if X_pub is None and y_pub is None else {"X_pub": X_pub, "y_pub": y_pub}

    def __call__(self, canaries: AuditRows, included: NDArray[np.bool_]) -> Fitted:
        """Fit with those canaries that are ``included`` (m,)."""
        known_rows, n, m = self._known, len(self._known), len(canaries)
        i = np.arange(m)
        # Means of two rows take the place of excluded canaries, since copies would cause a warning of
        # repeated rows.
        X, y = (known_rows.X[i % n] + known_rows.X[(i + 1 + i // n) % n]) / 2, known_rows.y[i % n]
        pool = AuditRows(np.concatenate([X, canaries.X]), np.concatenate([y, canaries.y]))
        added = pool[i + m * included]
        (codes, n_units, _), passed = self._units, self._public
        if codes is not None:
            of_canaries = np.repeat(i, ROWS_OF_PERSON)
            added = added[of_canaries]
            passed = {**passed, "groups": np.concatenate([codes, n_units + of_canaries])}
        X, y = np.concatenate([known_rows.X, added.X]), np.concatenate([known_rows.y, added.y])
        taking_part = np.concatenate([np.ones(n_units, dtype=bool), included])
        estimator = self._factory()
        with recorded_releases(None if taking_part.all() else ~taking_part) as releases:
            estimator.fit(X, y, **passed)
        if not releases or not any(map(report_of, steps_of(estimator))):
            raise ValueError(
                f"factory returns {type(estimator).__name__}, which released nothing through skmixdp; pass a "
                "factory of this library's estimators, or of pipelines that end in one."
            )
        return Fitted(estimator, releases, codes)


def check_factory(factory: object) -> Any:
    """Return an estimator of the factory; refuse one that does not return new, unseeded estimators."""
    if not callable(factory):
        raise TypeError(
            f"factory={factory!r} must be a function that returns an unfitted estimator; pass "
            "lambda: clone(estimator)."
        )
    first, second = factory(), factory()
    for estimator in (first, second):
        if not callable(getattr(estimator, "fit", None)):
            raise TypeError(f"factory returns {estimator!r}, which has no fit; return an estimator.")
        if any(map(report_of, steps_of(estimator))):
            raise ValueError("factory returns a fitted estimator; return a fresh one, by clone(estimator).")
        if any(_parameters(step).get("ledger") is not None for step in steps_of(estimator)):
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
            f"factory returns estimators with random_state={seeds[0][0]}, the same seed each time, so the "
            "noise would not change from fit to fit; leave random_state at None."
        )
    return first


def _noise_seed(step: object) -> int | None:
    """The seed of a step's noise, if it is a number."""
    parameters = _parameters(step)
    seed = parameters.get("random_state") if "epsilon" in parameters else None
    return int(seed) if isinstance(seed, (int, np.integer)) else None


def _parameters(step: object) -> dict[str, Any]:
    """The parameters of a step of a pipeline, which may be a text."""
    return dict(step.get_params(deep=False)) if isinstance(step, BaseEstimator) else {}
