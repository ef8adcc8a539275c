"""Fits to data sets that differ only in their canaries, and what an attacker sees in their releases."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._engine.recording import KnownRows, RecordedRelease, recorded_releases
from .._utils.models import Model, last_step, report_of
from ..privacy import PrivacyReport
from ..privacy.units import Units
from ._claims import steps_of
from ._rows import AuditRows

FloatArray = NDArray[np.float64]

#: Number of rows of a canary that is a person.
ROWS_OF_PERSON = 10


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, its recorded releases, and the persons of the known rows as numbers, if any."""

    estimator: Model
    releases: list[RecordedRelease]
    codes: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class Fits:
    """Fits of new estimators of ``factory`` to the known rows and the included canaries.

    An excluded canary is zeroed out where sums are released. In ``X`` the mean of two known rows replaces it,
    so that no other step of a pipeline sees it. With persons as ``units``, a canary is one with equal rows.
    """

    factory: Callable[[], Any]
    known_rows: AuditRows
    X_pub: object
    y_pub: object
    units: Units

    def __call__(self, canaries: AuditRows, included: NDArray[np.bool_]) -> Fitted:
        """Fit with those canaries that are ``included`` (m,)."""
        known_rows, n, m = self.known_rows, len(self.known_rows), len(canaries)
        i = np.arange(m)
        # Means of two rows take the place of excluded canaries, since copies would cause a warning of
        # repeated rows.
        X, y = (known_rows.X[i % n] + known_rows.X[(i + 1 + i // n) % n]) / 2, known_rows.y[i % n]
        pool = AuditRows(np.concatenate([X, canaries.X]), np.concatenate([y, canaries.y]))
        added = pool[i + m * included]
        codes, n_units, _ = self.units
        has_public = self.X_pub is not None or self.y_pub is not None
        passed: dict[str, Any] = {"X_pub": self.X_pub, "y_pub": self.y_pub} if has_public else {}
        if codes is not None:
            of_canaries = np.repeat(i, ROWS_OF_PERSON)
            added = added[of_canaries]
            passed["groups"] = np.concatenate([codes, n_units + of_canaries])
        X, y = np.concatenate([known_rows.X, added.X]), np.concatenate([known_rows.y, added.y])
        taking_part = np.concatenate([np.ones(n_units, dtype=bool), included])
        estimator = self.factory()
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
    seeds: list[set[int]] = []
    for estimator in (first, second):
        if not callable(getattr(estimator, "fit", None)):
            raise TypeError(f"factory returns {estimator!r}, which has no fit; return an estimator.")
        steps = list(steps_of(estimator))  # steps of a pipeline may be strings, such as "passthrough"
        parameters = [step.get_params(deep=False) for step in steps if isinstance(step, BaseEstimator)]
        if any(map(report_of, steps)):
            raise ValueError("factory returns a fitted estimator; return a fresh one, by clone(estimator).")
        if any(own.get("ledger") is not None for own in parameters):
            raise ValueError(
                "factory returns an estimator with a ledger, which every fit of the audit would charge; "
                "leave ledger out."
            )
        states = [own.get("random_state") for own in parameters if "epsilon" in own]
        seeds.append({int(seed) for seed in states if isinstance(seed, (int, np.integer))})
    if first is second:
        raise ValueError("factory returns the same estimator twice; return a fresh one, by clone(estimator).")
    if same := seeds[0] & seeds[1]:
        raise ValueError(
            f"factory returns estimators with random_state={min(same)}, the same seed each time, so the "
            "noise would not change from fit to fit; leave random_state at None."
        )
    return first


@dataclass(frozen=True)
class Evidence:
    """Sufficient statistics of what one fit released for its m canaries.

    Without known rows, the releases are ``sum_i (b_i - 1/2) c_i`` plus standard normal noise: ``c_i`` is what
    canary i adds, and ``b_i`` in {0, 1} whether it is in. ``gram`` (m, m) has the inner products of the
    ``c_i``, and ``products`` (m,) those of the releases with each: ``gram (b - 1/2)`` plus noise.
    """

    products: FloatArray
    gram: FloatArray

    def scores(self) -> FloatArray:
        """Score of each canary (m,): normal with variance 1 if the claim is true.

        Canaries overlap, so ``u = (I + gram / 4)^-1 products`` is the best linear estimate of ``b - 1/2``.
        Including canary i moves it by ``a_i``, the diagonal of ``(I + gram / 4)^-1 gram``; its variance is
        otherwise ``a_i (1 - a_i / 4)``.
        """
        whitener = np.eye(len(self.gram)) + self.gram / 4
        u = np.linalg.solve(whitener, self.products)
        a = np.diag(np.linalg.solve(whitener, self.gram)).clip(0)
        spread = np.sqrt(a * (1 - a / 4).clip(0))
        return np.asarray(np.divide(u, spread, out=np.zeros_like(u), where=spread > 0))


def evidence_of(fitted: Fitted, known_rows: AuditRows, canaries: AuditRows) -> Evidence:
    """What releases say of canaries, without the contributions of known rows, or their mean in a batch."""
    others, alone = KnownRows(*_training_rows(fitted, known_rows), fitted.codes), _lone_rows(fitted, canaries)
    report = report_of(last_step(fitted.estimator))
    rate = report.sampling_rate if isinstance(report, PrivacyReport) else 1.0
    products = np.zeros(len(canaries))
    gram = np.zeros((len(canaries), len(canaries)))
    for release in others.of_training(fitted.releases):
        expected = others.answer(release)
        for part, contributions in _contributions(alone, release):
            released = release.arrays[part] - rate * expected[part]
            rest = released.ravel() / release.scales[part] - rate / 2 * contributions.sum(axis=0)
            products += contributions @ rest
            gram += contributions @ contributions.T
    return Evidence(products, gram)


def contribution_lengths(fitted: Fitted, canaries: AuditRows) -> FloatArray:
    """Lengths (m,) of the canaries' contributions: the largest mu that each can show."""
    alone = _lone_rows(fitted, canaries)
    squares = np.zeros(len(canaries))
    for release in alone[0].of_training(fitted.releases):
        for _, contributions in _contributions(alone, release):
            squares += np.sum(contributions**2, axis=1)
    return np.sqrt(squares)


def check_releases_visible(estimator: BaseEstimator) -> None:
    """Refuse an estimator whose queries cannot be sent to other rows."""
    head = last_step(estimator)
    if not hasattr(head, "_training_rows"):
        raise ValueError(
            f"view='released' needs an estimator that trains one linear head, and {type(head).__name__} "
            "does not as it was configured; pass view='model'."
        )


def _training_rows(fitted: Fitted, rows: AuditRows) -> tuple[FloatArray, NDArray[Any]]:
    """Rows and labels as the head saw them in training."""
    head, X = last_step(fitted.estimator), rows.X
    if isinstance(fitted.estimator, Pipeline):
        X = fitted.estimator[:-1].transform(X)
    X, y = head._training_rows(np.asarray(X), rows.y)
    return X, y


def _lone_rows(fitted: Fitted, rows: AuditRows) -> list[KnownRows]:
    X, y = _training_rows(fitted, rows)
    n_rows = 1 if fitted.codes is None else ROWS_OF_PERSON
    codes = None if fitted.codes is None else np.zeros(n_rows, np.intp)
    return [KnownRows(X[[i] * n_rows], y[[i] * n_rows], codes) for i in range(len(X))]


def _contributions(alone: Sequence[KnownRows], release: RecordedRelease) -> Iterator[tuple[int, FloatArray]]:
    """Position of each noisy released array, and each row's contribution (m, size) in units of the noise."""
    answers = [source.answer(release) for source in alone]
    for part, scale in enumerate(release.scales):
        if scale > 0:
            yield part, np.array([answer[part].ravel() for answer in answers]) / scale
