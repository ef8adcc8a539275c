"""The epsilon of each private row."""

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._utils.models import last_step, record_of, report_of
from .._utils.validation import PROBABILITY, check
from ..privacy import PerInstanceRecord
from ._result import claim_of, steps_of

FloatArray = NDArray[np.float64]


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
    others = [
        report
        for step in steps_of(estimator)
        if step is not trained and (report := report_of(step)) is not None
    ]
    mus = [report.mu for report in others]
    if None in mus:
        raise ValueError(
            "a step before the estimator made releases without an exact Gaussian-DP parameter, so they "
            "cannot be added to those of each row; record the estimator without that step."
        )
    epsilons = record.epsilon(claim.delta, sum(mu**2 for mu in mus))
    # Rounding must not raise an epsilon above the claim.
    return epsilons if claim.epsilon is None else np.minimum(epsilons, claim.epsilon)
