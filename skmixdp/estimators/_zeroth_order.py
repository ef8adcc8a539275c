"""The linear classifier that uses losses of private rows, and no gradients."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from .._engine import Budget
from .._utils.validation import Kind, check, shown
from ..algorithms import PAZO, Algorithm, DPZero
from ._checks import refuse_sample_weight
from ._fit import FitCourse, FitData, fit_one
from ._logistic import MixedDPLogisticRegression

#: The algorithm for each name that ``algorithm`` accepts.
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
    """The zeroth-order algorithm, created with default settings if ``algorithm`` is a name."""
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
    """Differentially private linear classifier trained on losses of private rows, without their gradients.

    It is :class:`MixedDPLogisticRegression` with a zeroth-order algorithm. Objective, start and attributes
    are the same. :class:`ZerothOrderDPModuleClassifier` trains a torch module in the same way.

    Parameters
    ----------
    algorithm : {"auto", "pazo-m", "pazo-p", "pazo-s", "dpzero"} or object, default="auto"
        A name selects the algorithm with its default settings; "auto" stands for "pazo-m". An object
        (:class:`~skmixdp.algorithms.PAZO`, :class:`~skmixdp.algorithms.DPZero`) holds its own settings.
    epsilon, delta, n_steps, noise_multiplier, learning_rate, l2, public_l2
        As in :class:`MixedDPLogisticRegression`.
    classes
        As in :class:`MixedDPLogisticRegression`.
    class_weight : None
        Weights are not supported: zeroth-order algorithms clip losses, so weights would not scale gradients.
    logit_adjustment, fit_intercept, center, whiten, geometry, row_norm, scale, batch_size, init
        As in :class:`MixedDPLogisticRegression`; ``whiten="auto"`` and ``geometry="auto"`` are False, and
        ``logit_adjustment="auto"`` is 0. Only public rows tell the scale of columns; without them, rows have
        unit length.
    neighboring, noise, ledger, record_per_instance, device, dtype, random_state, verbose
        As in :class:`MixedDPLogisticRegression`.

    Attributes
    ----------
    classes_, coef_, intercept_, privacy_, n_iter_, learning_rate_, n_features_in_, feature_names_in_
        As in :class:`MixedDPLogisticRegression`.

    Notes
    -----
    *Guarantee*: the fitted head is (epsilon, delta)-differentially private in the rows of ``X, y``. Each
    step is one Gaussian release of a few numbers. Each row contributes clipped losses, or clipped
    differences of losses, to them. The guarantee does not protect public rows, the number of private rows,
    the fact that validation passed, or anything else that ``privacy_`` lists as public.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    def _refuse_for_several_labels(self) -> None:
        raise ValueError(
            "y has several labels per row, and zeroth-order algorithms train on one class per row; use "
            "MixedDPLogisticRegression."
        )

    def _chosen_algorithm(self) -> Algorithm:
        return zeroth_order_algorithm(self.algorithm)

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_pub: Any = None,
        y_pub: Any = None,
        *,
        groups: Any = None,
        **unsupported: Any,
    ) -> "ZerothOrderDPClassifier":
        """Fit the model as :meth:`MixedDPLogisticRegression.fit` does; weights of rows are refused."""
        fit_one(self, FitData(X, y, X_pub, y_pub, groups=groups), unsupported)
        return self

    def _course(self, budget: Budget, data: FitData) -> FitCourse:
        refuse_sample_weight(self, data.sample_weight)
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight={shown(self.class_weight)} cannot be used with zeroth-order algorithms, which "
                "clip losses; pass None, or use MixedDPLogisticRegression."
            )
        return super()._course(budget, data)
