"""Lower bounds on epsilon by experiment."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_random_state

from .._utils.process import progress_bar
from .._utils.validation import PROBABILITY, check
from ..privacy import epsilon_of
from ..privacy.units import units_of
from ._bounds import (
    epsilon_from_rates,
    mu_from_rates,
    one_run_epsilon,
    one_run_mu,
    separation,
    threshold_bound,
)
from ._claims import claim_of
from ._fits import Fits, Fitted, check_factory, check_releases_visible, contribution_lengths, evidence_of
from ._membership import losses_of
from ._result import AuditResult, View
from ._rows import AuditRows, check_canaries, check_numbers, check_rows, synthetic_rows

FloatArray = NDArray[np.float64]

#: Number of fits without canaries, whose losses are the reference for view "model".
_N_REFERENCES = 4


def audit_epsilon(
    factory: Callable[[], Any],
    X: object,
    y: object,
    *,
    X_pub: object = None,
    y_pub: object = None,
    groups: object = None,
    canaries: tuple[Any, Any] | None = None,
    n_canaries: int | None = None,
    n_fits: int = 1,
    n_guesses: int | None = None,
    view: View = "released",
    delta: float | None = None,
    confidence: float = 0.95,
    random_state: object = None,
) -> AuditResult:
    """Lower bounds on epsilon and mu, by an attack on fits with and without synthetic rows, the *canaries*.

    With ``n_fits=1``, one fit includes each of many canaries with probability 1/2, and the attacker
    guesses which were included. With more fits there is one canary. Half of the fits include it, and
    a threshold on its score tells the fits apart.

    Parameters
    ----------
    factory : callable
        Called without arguments, returns a new estimator of this library, or a pipeline that ends in
        one. It must not have a ledger, nor the same seed each time.
    X : array-like of shape (n_samples, n_features)
        Private rows that take part in every fit. The canaries are added to them.
    y : array-like of shape (n_samples,) or (n_samples, k)
        Their labels or targets.
    X_pub, y_pub : array-like or None, default=None
        Public rows, passed to ``fit``.
    groups : array-like of shape (n_samples,) or None, default=None
        Ids of the persons of the private rows, passed to ``fit``. A canary is then a person with ten rows
        that are alike.
    canaries : tuple (X, y) or None, default=None
        The canaries and their labels. None generates them: far from the rows in random directions, with
        random labels or far targets. A trial fit without any of them selects those that contribute most.
    n_canaries : int or None, default=None
        Number of canaries, at most the number of rows; 1 with many fits. None is the number in
        ``canaries``, or else half the number of rows, at most 1,000.
    n_fits : int, default=1
        1, or an even number of at least 10.
    n_guesses : int or None, default=None
        With one fit, the number of canaries for which the attacker guesses, an even number. None tries
        four numbers, each at a quarter of the level.
    view : {"released", "model"}, default="released"
        What the attacker sees: every released noisy array (white box), or the predictions of the fitted
        model (black box).
    delta : float or None, default=None
        The delta at which epsilon is bounded; None is the estimator's own.
    confidence : float, default=0.95
        Confidence of each bound, in (0, 1).
    random_state : None, int or RandomState, default=None
        Source of generated canaries and of the choice of the included ones. It does not affect the
        noise of the estimators.

    Returns
    -------
    AuditResult
        The bounds and the claims.

    Raises
    ------
    ValueError, TypeError
        For bad input: before any fit where possible, otherwise after the first.

    Notes
    -----
    *Guarantee*: none. An audit reads private rows, and its result is not private. Run it on synthetic
    or public rows, or keep the result as private as the rows.

    The neighbouring relation is that of the estimators. A row is *zeroed out*: it adds zero to every
    released sum, and the public number of rows stays the same. Under ``neighboring="replace_one"`` the
    bounds still hold, but reach at most half of the claimed mu. A replaced row moves a sum twice as far
    as a row that is zeroed out.

    In the white box, the contributions of the known rows are subtracted from each release. A canary's
    score is the inner product with the canary's own contribution to the same query, divided by the
    variance of the noise and summed over all releases. For full-batch Gaussian noise it is the
    logarithm of the likelihood ratio up to a shift, and no test is better. In the black box, the score
    is the negative loss of the canary. With one fit, it is compared with fits that include no canary.

    For one fit, ``epsilon`` is the bound of Steinke, Nasr and Jagielski, Theorem 5.2, and ``mu`` that of
    Mahloujifar, Melis and Chaudhuri for Gaussian trade-off functions. For many fits, both follow from
    Clopper-Pearson bounds on the two error rates, with a threshold chosen on other fits. The number of
    fits limits ``epsilon``: a few hundred cannot show much more than ``log(n_fits)``. For a claim of
    Gaussian DP, ``mu`` and ``measured_mu`` are far more informative.

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
    check("confidence", confidence, PROBABILITY)
    check("delta", delta, PROBABILITY, None)
    check("view", view, "released", "model")
    known_rows = check_rows(X, y, "X", "y", 2)
    units = units_of(groups, len(known_rows), None)
    chosen = None if canaries is None else check_canaries(canaries, known_rows)
    n_canaries, guesses = check_numbers(n_fits, n_canaries, n_guesses, chosen, known_rows)
    estimator = check_factory(factory)
    if view == "released":
        check_releases_visible(estimator)
    rng = check_random_state(random_state)

    fits = Fits(factory, known_rows, X_pub, y_pub, units)
    if chosen is None:
        chosen = _make_canaries(fits, n_canaries, estimator, rng)
    m = len(chosen)
    if n_fits == 1:
        included = rng.randint(2, size=m) == 1
        fitted = fits(chosen, included)
        scores = _scores(fitted, known_rows, chosen, view)
        if view == "model":
            without = [fits(chosen, np.zeros(m, dtype=bool)) for _ in range(_N_REFERENCES)]
            scores -= np.mean([_scores(each, known_rows, chosen, view) for each in without], axis=0)
    else:
        included = np.arange(n_fits) % 2 == 0
        scores = np.empty(n_fits)
        bar = progress_bar(included, desc="audit_epsilon", unit="fit", verbose=False)
        for i, takes_part in enumerate(bar):
            fitted = fits(chosen, np.array([takes_part]))
            (scores[i],) = _scores(fitted, known_rows, chosen, view)
    claim = claim_of(fitted.estimator, delta, released=view == "released")
    if n_fits == 1:
        level = (1 - confidence) / len(guesses)
        # Guesses are that canaries with the lowest scores are out, and those with the highest in.
        ranked = included[np.argsort(scores, kind="stable")]
        guessed = [(r, int(np.sum(~ranked[: r // 2]) + np.sum(ranked[m - r // 2 :]))) for r in guesses]
        epsilon = max(one_run_epsilon(m, r, v, claim.delta, level) for r, v in guessed)
        mu = max(one_run_mu(m, r, v, level) for r, v in guessed)
    else:
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
        n_canaries=m,
        included=included,
        scores=scores,
    )


def _scores(fitted: Fitted, known_rows: AuditRows, canaries: AuditRows, view: View) -> FloatArray:
    """Scores (m,) of canaries by the releases of a fit, or by their losses."""
    if view == "released":
        return evidence_of(fitted, known_rows, canaries).scores()
    return -losses_of(fitted.estimator, canaries.X, canaries.y, "y")


def _make_canaries(
    fits: Fits, n_canaries: int, estimator: BaseEstimator, rng: np.random.RandomState
) -> AuditRows:
    """Generate canaries; a trial fit without them selects those that contribute most."""
    kinds = {"classifier": is_classifier(estimator), "wrong_labels": n_canaries == 1}
    generated = synthetic_rows(fits.known_rows, max(2 * n_canaries, 32), **kinds, rng=rng)
    try:
        check_releases_visible(estimator)
    except ValueError:  # no way to measure contributions
        return generated[:n_canaries]
    trial = fits(generated, np.zeros(len(generated), dtype=bool))
    strongest = np.argsort(-contribution_lengths(trial, generated), kind="stable")
    return generated[strongest[:n_canaries]]
