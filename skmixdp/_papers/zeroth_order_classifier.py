"""The linear classifier that uses losses of private rows, and no gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from .._utils.validation import Kind
from ..algorithms import PAZO, Algorithm, DPZero
from ..estimators._base import EstimatorProcedure, FitData, fit_one
from ..estimators._logistic import MixedDPLogisticRegression
from ..estimators._problem import refuse_sample_weight
from ..privacy.accounting.budgets import Budget

#: Names that ``algorithm`` accepts, and their algorithms.
ZEROTH_ORDER: dict[str, Callable[[], Algorithm]] = {
    "auto": PAZO,
    "pazo-m": PAZO,
    "pazo-p": partial(PAZO, "p"),
    "pazo-s": partial(PAZO, "s"),
    "dpzero": DPZero,
}

OBJECT = Kind(
    "an object: PAZO or DPZero from skmixdp.algorithms", lambda value: isinstance(value, (PAZO, DPZero))
)


REMEDY = "algorithms that need gradients of private rows work with MixedDPLogisticRegression"


@dataclass(eq=False, repr=False)
class ZerothOrderDPClassifier(MixedDPLogisticRegression):
    """Differentially private linear classifier trained on losses of private rows, without their gradients.

    It is :class:`MixedDPLogisticRegression` with a zeroth-order algorithm. Objective, start and attributes
    are the same. Rows and classes have no weights: losses are clipped, so weights would not scale gradients.
    :class:`ZerothOrderDPModuleClassifier` trains a torch module in the same way.

    Parameters
    ----------
    algorithm : {"auto", "pazo-m", "pazo-p", "pazo-s", "dpzero"} or object, default="auto"
        A name selects the algorithm with its default settings; "auto" stands for "pazo-m". An object
        (:class:`~skmixdp.algorithms.PAZO`, :class:`~skmixdp.algorithms.DPZero`) holds its own settings.
    epsilon, delta, n_steps, noise_multiplier, learning_rate, l2, public_l2
        As in :class:`MixedDPLogisticRegression`.
    classes, self_training
        As in :class:`MixedDPLogisticRegression`.
    fit_intercept, center, whiten, geometry, row_norm, scale, batch_size, init, logit_adjustment
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
    _objects, _remedy = OBJECT, REMEDY
    _allowed: ClassVar = MixedDPLogisticRegression._allowed | {
        "class_weight": (None,),
        "max_sample_weight": ("auto",),
    }

    # They are no parameters here: weights would not scale gradients.
    class_weight: Any = field(default=None, init=False)
    max_sample_weight: Any = field(default="auto", init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    def _refuse_for_several_labels(self) -> None:
        raise ValueError(
            "y has several labels per row, and zeroth-order algorithms train on one class per row; use "
            "MixedDPLogisticRegression."
        )

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        *,
        groups: object = None,
        **unsupported: object,
    ) -> "ZerothOrderDPClassifier":
        """Fit the model as :meth:`MixedDPLogisticRegression.fit` does; weights of rows are refused."""
        fit_one(self, FitData(X, y, X_pub, y_pub, groups=groups), unsupported)
        return self

    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        refuse_sample_weight(self, data.sample_weight)
        return super()._fit_procedure(budget, data)
