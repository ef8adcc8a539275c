"""Lower bounds on epsilon by experiment."""

from collections.abc import Callable
from functools import partial
from typing import Any

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
from ._checks import (
    check_canaries,
    check_confidence,
    check_count,
    check_delta,
    check_fits,
    check_guesses,
    check_rows,
)
from ._claims import Claim, claim_of
from ._fits import Fits, check_factory
from ._losses import losses_of
from ._result import AuditResult, View
from ._rows import Rows
from ._white_box import check_visible, evidence_of, strengths_of

FloatArray = NDArray[np.float64]

#: Fits without any canary, whose mean losses a model's are compared with.
_N_REFERENCES = 4


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
    ``neighboring="replace_one"`` the bounds still hold but reach half the claimed mu at most, since a
    row that is replaced moves a sum twice as far as one that is zeroed out.

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
    check_fits(n_fits)
    known = check_rows(X, y, "X", "y", 2)
    given = None if canaries is None else check_canaries(canaries, known)
    n_canaries = check_count(n_canaries, n_fits, given, known)
    guesses = check_guesses(n_guesses, n_canaries, n_fits)
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
    strongest = np.argsort(-strengths_of(trial, made_up), kind="stable")
    return made_up[strongest[:n_canaries]]


def _n_correct(scores: FloatArray, included: NDArray[np.bool_], n_guesses: int) -> int:
    """Right guesses, where the highest half of them says "included" and the lowest "excluded"."""
    order = np.argsort(scores, kind="stable")
    half = n_guesses // 2
    return int(np.sum(included[order[-half:]]) + np.sum(~included[order[:half]]))
