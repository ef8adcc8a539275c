"""Scores of canaries for an attacker who sees every released array."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._engine.recording import KnownRows, RecordedRelease
from .._utils.models import last_step, report_of
from ..privacy import PrivacyReport
from ._checks import AuditRows
from ._fits import ROWS_OF_PERSON, Fitted

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Sufficient statistics of the released arrays of one fit for its m canaries.

    Let ``c_i`` be all contributions of canary i in units of the noise's standard deviation, and ``b_i`` in
    {0, 1} whether it was included. Without the known contributions, the released arrays are ``sum_i (b_i -
    1/2) c_i`` plus standard normal noise. ``gram`` (m, m) has the inner products of the ``c_i``, and
    ``products`` (m,) those of the arrays with each ``c_i``: ``gram (b - 1/2)`` plus noise of covariance
    ``gram``.
    """

    products: FloatArray
    gram: FloatArray

    def scores(self) -> FloatArray:
        """Score of each canary (m,): normal with variance 1 if the claim is true.

        A single canary has ``products / strength``, a multiple of its log-likelihood ratio. Several overlap,
        which the best linear estimate of ``b - 1/2`` accounts for: ``u = (I + gram / 4)^-1 products``.
        Including canary i moves it by ``a_i``, the diagonal of ``(I + gram / 4)^-1 gram``; its variance is
        otherwise ``a_i (1 - a_i / 4)``.
        """
        whitener = np.eye(len(self.gram)) + self.gram / 4
        u = np.linalg.solve(whitener, self.products)
        a = np.diag(np.linalg.solve(whitener, self.gram)).clip(0)
        spread = np.sqrt(a * (1 - a / 4).clip(0))
        return np.asarray(np.divide(u, spread, out=np.zeros_like(u), where=spread > 0))


def evidence_of(fitted: Fitted, known_rows: AuditRows, canaries: AuditRows) -> Evidence:
    """Compare released arrays with the answers of known rows and canaries to the same queries.

    The attacker knows all rows except the canaries, so the known rows' contributions are subtracted from each
    release; for a sampled batch, their expectation.
    """
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
