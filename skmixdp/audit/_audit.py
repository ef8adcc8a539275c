"""Lower bounds on epsilon by experiment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_random_state

from ..privacy import epsilon_of
from ._bounds import (
    epsilon_from_rates,
    mu_from_rates,
    one_run_epsilon,
    one_run_mu,
    separation,
    threshold_bound,
)
from ._canaries import made_up_rows
from ._checks import check_confidence, check_delta, check_whole
from ._fits import Claim, Fits, Rows, check_factory, claim_of
from ._losses import losses_of
from ._white_box import check_visible, evidence_of

FloatArray = NDArray[np.float64]
View = Literal["released", "model"]

#: Shares of the canaries of one fit for which the attacker guesses, tried side by side.
_GUESSED = (1 / 2, 1 / 4, 1 / 8, 1 / 16)

#: Fits without any canary, whose mean losses a model's are compared with.
_N_REFERENCES = 4

#: The many fits of an audit: fewer certify nothing.
_FEWEST_FITS = 10


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Each bound by itself holds with probability ``confidence``: were the mechanism as private as a value
    below it says, such a bound would come out with a probability of at most ``1 - confidence``.

    Attributes
    ----------
    epsilon : float
        Lower bound on epsilon at ``delta``, whatever the mechanism; 0 certifies nothing.
    delta : float
        The delta of ``epsilon`` and of ``claimed_epsilon``.
    mu : float
        Lower bound on the Gaussian-DP parameter: no mechanism of a smaller one has such attacks.
    epsilon_from_mu : float
        Epsilon at ``delta`` of a ``mu``-Gaussian-DP mechanism: a lower bound on the epsilon of one whose
        trade-off function is Gaussian, as that of full-batch releases is.
    measured_mu : float
        Difference of the mean scores with and without the canary over their standard deviation: an
        estimate, not a bound.
    measured_mu_interval : tuple of float
        Its confidence interval, for normal scores.
    claimed_epsilon, claimed_mu : float or None
        What the estimator claims against one who sees this much; None where it makes no such claim.
    confidence : float
        Of each bound, and of the interval.
    view : {"released", "model"}
        What the attacker saw.
    n_fits, n_canaries : int
        Number of fits that the bounds rest on, and of canaries in each.
    included : boolean array
        For each score, whether its canary was included: of one fit's canaries, or of each fit.
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
        """Whether a bound exceeds what is claimed: the guarantee is then refuted.

        For an estimator that keeps its promise, this happens with a probability of at most
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
            f"  {name:<18}  {found:<24}  claimed: {'none' if claim is None else format(claim, '.4g')}"
            for name, found, claim in rows
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


def audit_epsilon(
    factory: Callable[[], Any],
    X: Any,
    y: Any,
    *,
    X_pub: Any = None,
    y_pub: Any = None,
    canaries: tuple[Any, Any] | None = None,
    n_canaries: int | None = None,
    n_fits: int = 1,
    n_guesses: int | None = None,
    view: View = "released",
    delta: float | None = None,
    confidence: float = 0.95,
    random_state: Any = None,
) -> AuditResult:
    """Bound epsilon from below by an attack on fits with and without made-up rows, the *canaries*.

    With ``n_fits=1`` each of many canaries is included in one fit with probability 1/2, and the
    attacker guesses which were. With more fits there is one canary: half of the fits include it,
    and a threshold on its score tells them apart.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a fresh estimator of this library, or a pipeline that ends in
        one. It must have neither a ledger nor the same seed each time.
    X : array-like of shape (n_samples, n_features)
        Private rows that take part in every fit. The canaries are added to them.
    y : array-like of shape (n_samples,) or (n_samples, k)
        Their labels or targets.
    X_pub, y_pub : array-like or None, default=None
        Public rows, handed to ``fit``.
    canaries : tuple (X, y) or None, default=None
        The canaries and their labels. None makes them up, far from the rows in random directions, under
        random labels or with far targets; a trial fit without any of them says which contribute most.
    n_canaries : int or None, default=None
        How many: at most the number of rows; 1 with many fits. None is half the number of rows, 1,000
        at the most, or what ``canaries`` holds.
    n_fits : int, default=1
        1, or an even number of at least 10.
    n_guesses : int or None, default=None
        With one fit, for how many canaries the attacker guesses: an even number. None tries four
        numbers, each at a quarter of the level.
    view : {"released", "model"}, default="released"
        What the attacker sees: every noisy array that is released on the way (white box), or the
        predictions of the fitted model (black box).
    delta : float or None, default=None
        The delta at which epsilon is bounded; None is the estimator's own.
    confidence : float, default=0.95
        Of each bound, in (0, 1).
    random_state : None, int or RandomState, default=None
        Source of made-up canaries and of the choice of those that are included; the estimators' noise
        is their own.

    Returns
    -------
    AuditResult
        The bounds, and what is claimed.

    Raises
    ------
    ValueError, TypeError
        For bad input, before any fit; for what only a fit can tell, after the first.

    Notes
    -----
    *Guarantee*: none. An audit reads private rows, and its result is not private: run it on made-up
    or public rows, or keep the result.

    The relation is that of the estimators: a row is *zeroed out*, that is, it adds zero to every released
    sum, and the public number of rows stays. Both neighbours therefore have as many rows. Under
    ``neighboring="replace_one"`` the bounds still hold but reach half the claimed mu at most, since a row that
    is replaced moves a sum twice as far as one that is zeroed out.

    In the white box, a canary's score is the inner product of what was released, less what the known
    rows contribute, with what the canary alone contributes to the same query, over the noise's variance
    and summed over all releases. For full-batch Gaussian noise it is the logarithm of the likelihood
    ratio but for a shift, and no test does better. In the black box it is the loss of the canary, with its
    sign changed; with one fit, compared with fits that include no canary.

    For one fit, ``epsilon`` is the bound of Steinke, Nasr and Jagielski, Theorem 5.2, and ``mu`` that of
    Mahloujifar, Melis and Chaudhuri for Gaussian trade-off functions. For many fits, both follow from
    Clopper-Pearson bounds on the two error rates, with a threshold that was chosen on other fits. A few
    hundred fits cannot show an epsilon much above ``log(n_fits)`` whatever the mechanism; for a claim of
    Gaussian DP, ``mu`` and ``measured_mu`` say far more.

    References
    ----------
    Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One (1) Training Run"; Mahloujifar, Melis and
    Chaudhuri 2024, "Auditing f-Differential Privacy in One Run"; Nasr et al. 2023, "Tight Auditing of
    Differentially Private Machine Learning"; Jagielski, Ullman and Oprea 2020, "Auditing Differentially
    Private Machine Learning".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.audit import audit_epsilon
    >>> X, y = load_digits(return_X_y=True)
    >>> result = audit_epsilon(
    ...     lambda: MixedDPLogisticRegression(epsilon=1.0, n_steps=2),
    ...     X[100:500], y[100:500], X_pub=X[:100], y_pub=y[:100],
    ...     n_canaries=100, confidence=0.999,
    ... )
    >>> result.exceeds_claim
    False
    """
    check_confidence(confidence)
    check_delta(delta)
    if view not in ("released", "model"):
        raise ValueError(f"view={view!r} must be 'released' or 'model'.")
    check_whole("n_fits", n_fits, 1)
    if n_fits > 1 and (n_fits < _FEWEST_FITS or n_fits % 2):
        raise ValueError(f"n_fits={n_fits!r} must be 1 or an even number of at least {_FEWEST_FITS}.")
    known = _check_rows(X, y, "X", "y", 2)
    given = None if canaries is None else _check_canaries(canaries, known)
    n_canaries = _check_count(n_canaries, n_fits, given, known)
    guesses = _check_guesses(n_guesses, n_canaries, n_fits)
    estimator = check_factory(factory)
    if view == "released":
        check_visible(estimator)
    rng = check_random_state(random_state)

    fits = Fits(factory, known, X_pub, y_pub)
    chosen = given
    if chosen is None:
        chosen = _make_canaries(fits, known, n_canaries, estimator, rng)
    if n_fits == 1:
        included, scores, claim = _one_fit(fits, known, chosen, view, delta, rng)
        level = (1 - confidence) / len(guesses)
        found = [(r, _n_correct(scores, included, r)) for r in guesses]
        m = len(chosen)
        epsilon = max(one_run_epsilon(m, r, v, claim.delta, level) for r, v in found)
        mu = max(one_run_mu(m, r, v, level) for r, v in found)
    else:
        included, scores, claim = _many_fits(fits, known, chosen, n_fits, view, delta)
        bound = partial(threshold_bound, scores[included], scores[~included], 1 - confidence)
        epsilon = bound(partial(epsilon_from_rates, delta=claim.delta))
        mu = bound(mu_from_rates)
    measured, interval = separation(scores[included], scores[~included], confidence)
    return AuditResult(
        epsilon=epsilon,
        delta=claim.delta,
        mu=mu,
        epsilon_from_mu=epsilon_of(1 / mu, 1, delta=claim.delta) if mu > 0 else 0.0,
        measured_mu=measured,
        measured_mu_interval=interval,
        claimed_epsilon=claim.epsilon,
        claimed_mu=claim.mu,
        confidence=float(confidence),
        view=view,
        n_fits=int(n_fits),
        n_canaries=len(chosen),
        included=included,
        scores=scores,
    )


def _one_fit(
    fits: Fits, known: Rows, canaries: Rows, view: View, delta: float | None, rng: np.random.RandomState
) -> tuple[NDArray[np.bool_], FloatArray, Claim]:
    """Which canaries a fit included, their scores (m,), and what was claimed."""
    included = rng.randint(2, size=len(canaries)) == 1
    fitted = fits(canaries, included)
    claim = claim_of(fitted.estimator, delta, released=view == "released")
    if view == "released":
        return included, evidence_of(fitted, known, canaries).scores(), claim
    none = np.zeros(len(canaries), dtype=bool)
    without = [
        losses_of(fits(canaries, none).estimator, canaries.X, canaries.y, "y") for _ in range(_N_REFERENCES)
    ]
    losses = losses_of(fitted.estimator, canaries.X, canaries.y, "y")
    return included, np.mean(without, axis=0) - losses, claim


def _many_fits(
    fits: Fits, known: Rows, canary: Rows, n_fits: int, view: View, delta: float | None
) -> tuple[NDArray[np.bool_], FloatArray, Claim]:
    """Which fits included the canary, its score in each (n_fits,), and what was claimed."""
    included = np.arange(n_fits) % 2 == 0
    scores = np.empty(n_fits)
    for i, taking_part in enumerate(included):
        fitted = fits(canary, np.array([taking_part]))
        if view == "released":
            (scores[i],) = evidence_of(fitted, known, canary).scores()
        else:
            (loss,) = losses_of(fitted.estimator, canary.X, canary.y, "y")
            scores[i] = -loss
    return included, scores, claim_of(fitted.estimator, delta, released=view == "released")


def _make_canaries(
    fits: Fits, known: Rows, n_canaries: int, estimator: Any, rng: np.random.RandomState
) -> Rows:
    """Made-up rows: those that contribute most, by a trial fit that includes none of them."""
    made_up = Rows(
        *made_up_rows(
            known.X,
            known.y,
            max(2 * n_canaries, 32),
            classifier=is_classifier(estimator),
            wrong_labels=n_canaries == 1,
            rng=rng,
        )
    )
    try:
        check_visible(estimator)
    except ValueError:  # nothing tells which contribute most
        return made_up[:n_canaries]
    trial = fits(made_up, np.zeros(len(made_up), dtype=bool))
    strongest = np.argsort(-evidence_of(trial, known, made_up).strengths, kind="stable")
    return made_up[strongest[:n_canaries]]


def _n_correct(scores: FloatArray, included: NDArray[np.bool_], n_guesses: int) -> int:
    """Right guesses, where the highest half of them says "included" and the lowest "excluded"."""
    order = np.argsort(scores, kind="stable")
    half = n_guesses // 2
    return int(np.sum(included[order[-half:]]) + np.sum(~included[order[:half]]))


# -- checks ----------------------------------------------------------------------------------


def _check_rows(X: Any, y: Any, X_name: str, y_name: str, least: int) -> Rows:
    try:
        rows = np.array(X, dtype=np.float64)
    except (TypeError, ValueError):  # whose message would quote an entry
        raise ValueError(f"{X_name} must be a dense table of numbers; pass an array.") from None
    targets = np.array(y)
    if rows.ndim != 2 or len(rows) < least:
        raise ValueError(
            f"{X_name} has shape {rows.shape} and must be a table of at least {least} row(s), (n_samples, "
            "n_features)."
        )
    if targets.ndim == 0 or len(targets) != len(rows):
        raise ValueError(
            f"{y_name} has shape {targets.shape} and {X_name} {len(rows)} rows; pass one label or target "
            "for each."
        )
    return Rows(rows, targets)


def _check_canaries(canaries: Any, known: Rows) -> Rows:
    if not isinstance(canaries, tuple) or len(canaries) != 2:
        raise TypeError(f"canaries must be None or a tuple (X, y), not {type(canaries).__name__}.")
    given = _check_rows(*canaries, "canaries[0]", "canaries[1]", 1)
    if given.X.shape[1] != known.X.shape[1] or given.y.shape[1:] != known.y.shape[1:]:
        raise ValueError(
            f"canaries have {given.X.shape[1]} features and targets of shape {given.y.shape[1:]}, the rows "
            f"{known.X.shape[1]} and {known.y.shape[1:]}; pass the same of both."
        )
    return given


def _check_count(n_canaries: Any, n_fits: int, given: Rows | None, known: Rows) -> int:
    if n_canaries is None:
        default = 1 if n_fits > 1 else min(1000, len(known) // 2)
        n_canaries = default if given is None else len(given)
    check_whole("n_canaries", n_canaries, 1)
    if given is not None and n_canaries != len(given):
        raise ValueError(
            f"n_canaries={n_canaries} and canaries holds {len(given)} rows; leave n_canaries out."
        )
    if n_fits > 1 and n_canaries != 1:
        raise ValueError(
            f"n_canaries={n_canaries} with n_fits={n_fits}: many fits test one canary; pass 1, or n_fits=1."
        )
    if n_canaries > len(known):
        raise ValueError(
            f"n_canaries={n_canaries} exceeds the {len(known)} rows of X, which canaries would outnumber; "
            "pass fewer canaries or more rows."
        )
    if n_fits == 1 and n_canaries < 4:
        raise ValueError(f"n_canaries={n_canaries} is too few for one fit; pass at least 4, or more fits.")
    return int(n_canaries)


def _check_guesses(n_guesses: Any, n_canaries: int, n_fits: int) -> list[int]:
    """The numbers of guesses to try."""
    if n_guesses is None:
        return sorted({2 * max(1, round(share * n_canaries / 2)) for share in _GUESSED})
    if n_fits > 1:
        raise ValueError(f"n_guesses={n_guesses!r} has no effect with many fits; leave it out.")
    check_whole("n_guesses", n_guesses, 2)
    if n_guesses % 2 or n_guesses > n_canaries:
        raise ValueError(
            f"n_guesses={n_guesses} must be even and at most the number of canaries, {n_canaries}."
        )
    return [int(n_guesses)]
