"""The result of an audit."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
View = Literal["released", "model"]


@dataclass(frozen=True)
class AuditResult:
    """Lower bounds of an audit, next to what the estimator claims.

    Each bound by itself holds with probability ``confidence``: it exceeds the true value with a
    probability of at most ``1 - confidence``.

    Attributes
    ----------
    epsilon : float
        Lower bound on epsilon at ``delta``, for any mechanism; 0 is no bound.
    delta : float
        The delta of ``epsilon`` and of ``claimed_epsilon``.
    mu : float
        Lower bound on the Gaussian-DP parameter.
    epsilon_from_mu : float
        Epsilon at ``delta`` of a ``mu``-Gaussian-DP mechanism. It is a lower bound on epsilon for
        mechanisms with a Gaussian trade-off function, such as full-batch releases.
    measured_mu : float
        Difference of the mean scores with and without the canary, divided by their standard deviation.
        It is an estimate, not a bound.
    measured_mu_interval : tuple of float
        Confidence interval of ``measured_mu``, for normal scores.
    claimed_epsilon, claimed_mu : float or None
        The claim of the estimator against this attacker; None if it makes none.
    confidence : float
        Confidence of each bound and of the interval.
    view : {"released", "model"}
        What the attacker saw.
    n_fits, n_canaries : int
        Number of fits used for the bounds, and of canaries in each.
    included : boolean array
        For each score, whether its canary was included.
    scores : array
        The attacker's scores.
    """

    epsilon: float
    delta: float
    mu: float
    epsilon_from_mu: float
    measured_mu: float
    measured_mu_interval: tuple[float, float]
    claimed_epsilon: float | None
    claimed_mu: float | None
    confidence: float
    view: View
    n_fits: int
    n_canaries: int
    included: NDArray[np.bool_] = field(repr=False, compare=False)
    scores: FloatArray = field(repr=False, compare=False)

    @property
    def exceeds_claim(self) -> bool:
        """Whether a bound exceeds the claim, which refutes the guarantee.

        If the claim is true, this happens with a probability of at most
        ``2 (1 - confidence)``.
        """
        too_large_epsilon = self.claimed_epsilon is not None and self.epsilon > self.claimed_epsilon
        return too_large_epsilon or (self.claimed_mu is not None and self.mu > self.claimed_mu)

    def __str__(self) -> str:
        low, high = self.measured_mu_interval
        rows = [
            ("epsilon", f"at least {self.epsilon:.3g}", self.claimed_epsilon),
            ("mu (Gaussian DP)", f"at least {self.mu:.3g}", self.claimed_mu),
            ("epsilon of that mu", f"at least {self.epsilon_from_mu:.3g}", self.claimed_epsilon),
            ("measured mu", f"{self.measured_mu:.3g} ({low:.3g} to {high:.3g})", self.claimed_mu),
        ]
        lines = [
            f"  {name:<18}  {bound:<24}  claimed: {'none' if claim is None else format(claim, '.4g')}"
            for name, bound, claim in rows
        ]
        verdict = "THE CLAIM IS REFUTED" if self.exceeds_claim else "the claim is not refuted"
        plural = "s" if self.n_fits > 1 else ""
        title = f"Privacy audit: {self.n_fits} fit{plural}, {self.n_canaries} canaries, view {self.view!r}"
        return "\n".join(
            [
                title.replace(" 1 canaries", " 1 canary"),
                *lines,
                f"  delta {self.delta:.3g}, confidence {self.confidence:g}: {verdict}",
            ]
        )
