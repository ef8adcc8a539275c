"""Scores of canaries for one who sees every released array."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine.release import RecordedRelease
from .._rows import InMemoryRows, Request
from ._claims import trained_step
from ._fits import Fitted
from ._rows import Rows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """What the released arrays of one fit say of its canaries.

    With ``c_i`` all contributions of canary i, one after the other and in units of the noise's
    standard deviation, and ``b_i`` in {0, 1} for whether it was included, the released arrays less
    what is known are ``sum_i (b_i - 1/2) c_i`` plus standard normal noise, and all that they say of b is

    Attributes
    ----------
    products : array of shape (m,)
        Their inner products with each ``c_i``: ``gram (b - 1/2)`` plus noise of covariance ``gram``.
    gram : array of shape (m, m)
        Inner products of the contributions.
    """

    products: FloatArray
    gram: FloatArray

    def scores(self) -> FloatArray:
        """How much speaks for each canary (m,): normal scores of variance 1 if all is as claimed.

        Without other canaries it is ``products / strength``, a multiple of the logarithm of the
        likelihood ratio between N(mu / 2, 1) and N(-mu / 2, 1). Others overlap with it, and the
        best linear estimate of ``b - 1/2`` allows for that: ``u = (I + gram / 4)^-1 products`` moves by
        ``a_i``, the diagonal of ``(I + gram / 4)^-1 gram``, when canary i comes in, and its variance is
        otherwise ``a_i (1 - a_i / 4)``.
        """
        whitener = np.eye(len(self.gram)) + self.gram / 4
        u = np.linalg.solve(whitener, self.products)
        a = np.diag(np.linalg.solve(whitener, self.gram)).clip(0)
        spread = np.sqrt(a * (1 - a / 4).clip(0))
        return np.asarray(np.divide(u, spread, out=np.zeros_like(u), where=spread > 0))


def evidence_of(fitted: Fitted, known: Rows, canaries: Rows) -> Evidence:
    """Ask known rows and canaries what private rows were asked, and compare with what was released.

    Parameters
    ----------
    fitted : Fitted
        A fit to the known rows and to some of the canaries.
    known, canaries : Rows
        As they were handed to ``fit``.

    Notes
    -----
    The attacker of differential privacy knows all rows but the canaries, so what the known ones add
    to a release is subtracted. A sampled batch is not known: its expectation is.
    """
    others, alone = _Asked(fitted, known), _one_by_one(fitted, canaries)
    rate = float(getattr(trained_step(fitted.estimator).privacy_, "sampling_rate", 1.0))
    products = np.zeros(len(canaries))
    gram = np.zeros((len(canaries), len(canaries)))
    for release in others.understood(fitted.releases):
        expected = others.answer(release)
        for part, own in _contributions(alone, release):
            released = release.arrays[part] - rate * expected[part]
            rest = released.ravel() / release.scales[part] - rate / 2 * own.sum(axis=0)
            products += own @ rest
            gram += own @ own.T
    return Evidence(products, gram)


def strengths_of(fitted: Fitted, canaries: Rows) -> FloatArray:
    """Lengths (m,) of the contributions that canaries would have made: the mu that each can show."""
    alone = _one_by_one(fitted, canaries)
    squares = np.zeros(len(canaries))
    for release in alone[0].understood(fitted.releases):
        for _, own in _contributions(alone, release):
            squares += np.sum(own**2, axis=1)
    return np.sqrt(squares)


def check_visible(estimator: Any) -> None:
    """Refuse an estimator whose releases cannot be asked of other rows."""
    head = trained_step(estimator)
    if not hasattr(head, "_as_trained"):
        raise ValueError(
            f"view='released' needs an estimator that trains one linear head, and {type(head).__name__} "
            "does not as it was configured; pass view='model'."
        )


class _Asked:
    """Rows as the head saw them, which answer the queries that private rows were asked."""

    def __init__(self, fitted: Fitted, rows: Rows) -> None:
        head = trained_step(fitted.estimator)
        X = rows.X if head is fitted.estimator else fitted.estimator[:-1].transform(rows.X)
        seen, labels = head._as_trained(np.asarray(X), rows.y)
        self._d_in = seen.shape[1]
        self._rows = InMemoryRows(seen, labels)

    def understood(self, releases: Sequence[RecordedRelease]) -> Iterator[RecordedRelease]:
        """The releases of the head's training; others, such as a scaler's, are left out.

        To ignore a release takes power from an attack and nothing from its bounds.
        """
        for release in releases:
            points = release.query.points
            if isinstance(points, np.ndarray) and len(points) > 0 and points.shape[1] == self._d_in:
                yield release

    def answer(self, release: RecordedRelease) -> tuple[FloatArray, ...]:
        """What these rows add to the released arrays."""
        query = release.query
        (sums,) = self._rows.private_sums([Request(query.points, query.contribute)])
        return tuple(np.asarray(array, dtype=np.float64) for array in query.assemble(sums))


def _one_by_one(fitted: Fitted, rows: Rows) -> list[_Asked]:
    return [_Asked(fitted, rows[[i]]) for i in range(len(rows))]


def _contributions(alone: Sequence[_Asked], release: RecordedRelease) -> Iterator[tuple[int, FloatArray]]:
    """For each released array its place, and what each row alone adds to it (m, size), in units of the noise.

    An array that no row can move has no noise and shows nothing.
    """
    answers = [source.answer(release) for source in alone]
    for part, scale in enumerate(release.scales):
        if scale > 0:
            yield part, np.array([answer[part].ravel() for answer in answers]) / scale
