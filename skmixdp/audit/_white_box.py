"""Scores of canaries for one who sees every released array."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.release import RecordedRelease
from ..rows import InMemoryRows, Request
from ._fits import Fitted, Rows, steps_of

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

    @property
    def strengths(self) -> FloatArray:
        """Lengths (m,) of the contributions: the mu that each canary by itself can show."""
        return np.sqrt(np.diag(self.gram))

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
        spread = np.sqrt(a * (1 - a / 4))
        return np.divide(u, spread, out=np.zeros_like(u), where=spread > 0)


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
    points_of = _Asked(fitted, known)
    alone = [_Asked(fitted, canaries[[i]]) for i in range(len(canaries))]
    rate = float(getattr(list(steps_of(fitted.estimator))[-1].privacy_, "sampling_rate", 1.0))
    products = np.zeros(len(canaries))
    gram = np.zeros((len(canaries), len(canaries)))
    for release in fitted.releases:
        if not points_of.understands(release):
            continue  # a count or a scaler's moments: ignoring a release takes nothing from the bound
        expected = points_of.answer(release)
        answers = [source.answer(release) for source in alone]
        for part, (array, scale) in enumerate(zip(release.arrays, release.scales, strict=True)):
            own = np.array([answer[part].ravel() for answer in answers]) / scale
            rest = (array - rate * expected[part]).ravel() / scale - rate / 2 * own.sum(axis=0)
            products += own @ rest
            gram += own @ own.T
    return Evidence(products, gram)


def check_visible(estimator: Any) -> None:
    """Refuse an estimator whose releases cannot be asked of other rows."""
    head = list(steps_of(estimator))[-1]
    if not hasattr(head, "_as_trained") or getattr(head, "module", None) is not None:
        raise ValueError(
            f"view='released' needs an estimator that trains one linear head, and {type(head).__name__} "
            "does not as it was configured; pass view='model'."
        )


class _Asked:
    """Rows as the head saw them, which answer the queries that private rows were asked."""

    def __init__(self, fitted: Fitted, rows: Rows) -> None:
        *_, head = steps_of(fitted.estimator)
        X = rows.X if head is fitted.estimator else fitted.estimator[:-1].transform(rows.X)
        seen, labels = head._as_trained(np.asarray(X), rows.y)
        self._d_in = seen.shape[1]
        self._rows = InMemoryRows(seen, labels)

    def understands(self, release: RecordedRelease) -> bool:
        points = release.question.points
        return isinstance(points, np.ndarray) and len(points) > 0 and points.shape[1] == self._d_in

    def answer(self, release: RecordedRelease) -> tuple[FloatArray, ...]:
        """What these rows add to the released arrays."""
        question = release.question
        (sums,) = self._rows.private_sums([Request(question.points, question.contribute)])
        return tuple(np.asarray(array, dtype=np.float64) for array in question.assemble(sums))
