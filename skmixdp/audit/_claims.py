"""What fitted estimators claim of their privacy, for all rows and for each one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._utils.models import Model, last_step, record_of, report_of
from .._utils.validation import PROBABILITY, check
from ..privacy import PerInstanceRecord, epsilon_of, mu_of_budget
from ..privacy.report import PrivacyReport

FloatArray = NDArray[np.float64]


def steps_of(estimator: BaseEstimator) -> Iterator[Any]:
    """The steps of a pipeline, or the estimator itself."""
    if not isinstance(estimator, Pipeline):
        yield estimator
        return
    for _, step in estimator.steps:
        yield from steps_of(step)


@dataclass(frozen=True)
class Claim:
    """The guarantee that an estimator claims: epsilon at a delta, and mu. None means no claim."""

    epsilon: float | None
    mu: float | None
    delta: float


def claim_of(estimator: Model, delta: float | None, *, released: bool) -> Claim:
    """The claim of a fitted estimator or pipeline, at its own or another delta.

    Against an attacker who sees all that is ``released``, the claim of ModelMix is that of the noise alone.
    """
    reports = [report for step in steps_of(estimator) if (report := report_of(step)) is not None]
    pairs = [_epsilon_and_mu(report, released) for report in reports]
    mus = [mu for _, mu in pairs]
    mu = None if any(mu is None for mu in mus) else math.sqrt(sum(mu**2 for mu in mus if mu is not None))
    stated = sum(report.delta for report in reports)
    if delta is None or (len(reports) == 1 and delta == stated):
        return Claim(sum(epsilon for epsilon, _ in pairs), mu, stated)
    return Claim(None if mu is None else epsilon_of(1 / mu, 1, delta=delta), mu, delta)


def _epsilon_and_mu(report: Any, released: bool) -> tuple[float, float | None]:
    noise_alone = report.epsilon_unamplified if isinstance(report, PrivacyReport) else None
    if not released or noise_alone is None:
        return report.epsilon, report.mu
    exact = report.sampling_rate == 1 and report.noise != "discrete"
    return noise_alone, mu_of_budget(noise_alone, report.delta) if exact else None


def per_instance_epsilon(estimator: BaseEstimator, delta: float | None = None) -> FloatArray:
    """Epsilon of each private row in a recorded fit; PRIVATE, like the rows.

    Differential privacy bounds the worst row of the worst data set. For one row, compare the releases with
    and without it. They are a composition of Gaussian releases, along the heads that the fit went through.
    The result is the epsilon of that composition.

    Parameters
    ----------
    estimator : fitted estimator or pipeline
        Its last step was fitted with ``record_per_instance=True``.
    delta : float or None, default=None
        The delta of all epsilons, in (0, 1). None is the estimator's own.

    Returns
    -------
    array of shape (n_samples,)
        Epsilon of each row, in the order of ``X`` in ``fit``. None exceeds the epsilon of the guarantee at
        this delta.

    Raises
    ------
    ValueError
        If the fit was not recorded, or if another step of the pipeline released something that has no exact
        Gaussian-DP parameter.

    Notes
    -----
    *Guarantee*: none. The result depends on all private rows. Do not publish it, its plot, or anything
    chosen by it. It describes this fit, looking back; only ``privacy_`` promises something.

    A row's ``mu_i`` satisfies ``mu_i^2 = sum_t (l_it / s_t)^2``. Here ``l_it`` is how far removing the row
    moves the array that was released in step t, and ``s_t`` is the standard deviation of its noise. All
    releases of the fit count: geometry, class counts, training and comparisons. Lengths include the rounding
    of sums, and no row is understated. In a pipeline, other steps with a budget, such as ``NoisyScaler``,
    count in full.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix), Proposition 14 and
    Appendix C; Wang 2019, "Per-instance differential privacy".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.audit import per_instance_epsilon
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = MixedDPLogisticRegression(epsilon=3.0, record_per_instance=True)
    >>> clf = clf.fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    >>> epsilons = per_instance_epsilon(clf)
    >>> epsilons.shape
    (1697,)
    >>> bool(epsilons.max() <= 3.0)
    True
    """
    check("delta", delta, PROBABILITY, None)
    check_is_fitted(estimator)
    trained = last_step(estimator)
    record = record_of(trained)
    if not isinstance(record, PerInstanceRecord):
        raise ValueError(
            f"{type(trained).__name__} has no record of its rows; fit it with record_per_instance=True."
        )
    claim = claim_of(estimator, delta, released=True)
    others = [report_of(step) for step in steps_of(estimator) if step is not trained]
    mus = [report.mu for report in others if report is not None]
    if None in mus:
        raise ValueError(
            "a step before the estimator made releases without an exact Gaussian-DP parameter, so they "
            "cannot be added to those of each row; record the estimator without that step."
        )
    epsilons = record.epsilon(claim.delta, sum(mu**2 for mu in mus))
    # Rounding must not raise an epsilon above the claim.
    return epsilons if claim.epsilon is None else np.minimum(epsilons, claim.epsilon)
