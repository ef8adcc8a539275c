"""The classifier that asks private rows for losses alone."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from .._params import Kind, check
from ..algorithms import PAZO, Algorithm, DPZero
from ._logistic import MixedDPLogisticRegression

#: Names that ``algorithm`` accepts, and what each stands for.
ZEROTH_ORDER: dict[str, Callable[[], Algorithm]] = {
    "auto": PAZO,
    "pazo-m": PAZO,
    "pazo-p": partial(PAZO, "p"),
    "pazo-s": partial(PAZO, "s"),
    "dpzero": DPZero,
}

_OBJECT = Kind(
    "an object: PAZO or DPZero from skmixdp.algorithms", lambda value: isinstance(value, (PAZO, DPZero))
)


def zeroth_order_algorithm(algorithm: Any) -> Algorithm:
    """The zeroth-order algorithm that a name stands for, or that an object is.

    Raises
    ------
    ValueError
        If it is neither, or if it needs gradients of private rows.
    """
    check(
        "algorithm",
        algorithm,
        *ZEROTH_ORDER,
        _OBJECT,
        remedy="algorithms that need gradients of private rows work with MixedDPLogisticRegression",
    )
    found: Algorithm = ZEROTH_ORDER[algorithm]() if isinstance(algorithm, str) else algorithm
    return found


class ZerothOrderDPClassifier(MixedDPLogisticRegression):
    """Linear classifier trained from losses of its private rows alone, never from their gradients.

    It is :class:`MixedDPLogisticRegression` with a zeroth-order algorithm: the same objective, rows,
    start and attributes. :class:`ZerothOrderDPModuleClassifier` trains a torch module in the same way.

    Parameters
    ----------
    algorithm : {"auto", "pazo-m", "pazo-p", "pazo-s", "dpzero"} or object, default="auto"
        A name stands for its defaults, and "auto" for "pazo-m". An object
        (:class:`~skmixdp.algorithms.PAZO`, :class:`~skmixdp.algorithms.DPZero`) holds its own settings.
    epsilon, delta, n_steps, noise_multiplier, learning_rate, l2, public_l2
        As in :class:`MixedDPLogisticRegression`.
    classes, fit_intercept, center, whiten, normalize, batch_size, init
        As in :class:`MixedDPLogisticRegression`; ``whiten="auto"`` is False.
    neighboring, noise, ledger, device, dtype, random_state, verbose
        As in :class:`MixedDPLogisticRegression`.

    Attributes
    ----------
    classes_, coef_, intercept_, privacy_, n_iter_, learning_rate_, n_features_in_, feature_names_in_
        As in :class:`MixedDPLogisticRegression`.

    Notes
    -----
    *Guarantee*: the fitted head is (epsilon, delta)-differentially private in the rows of ``X, y``. Each
    step is one Gaussian release of a few numbers, to which each row contributes a clipped difference of
    losses. Public rows, the number of private rows, that validation passed, and what else ``privacy_``
    lists are not protected.

    References
    ----------
    Gong and Li 2025, "Private Zeroth-Order Optimization with Public Data" (PAZO); Zhang et al.
    2024 (DPZero); Malladi et al. 2023 (MeZO).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import ZerothOrderDPClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = ZerothOrderDPClassifier("pazo-m", epsilon=1.0)
    >>> clf = clf.fit(X[100:1400], y[100:1400], X_pub=X[:100], y_pub=y[:100])
    >>> bool(clf.score(X[1400:], y[1400:]) > 0.8)
    True
    """

    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = ZEROTH_ORDER

    def _chosen_algorithm(self) -> Algorithm:
        return zeroth_order_algorithm(self.algorithm)
