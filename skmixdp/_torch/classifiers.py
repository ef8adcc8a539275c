"""The classifiers that train a torch module: on clipped gradients of private rows, or on losses alone."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._rows.source import PrivateRows
from .._utils.validation import Kind
from ..algorithms import PAZO, AdaMix, Algorithm, Coupling, DPZero, ModelMix, NoisyGD
from ..components.protocols import PublicView
from ..estimators._base import FitData, fit_one
from ..estimators._problem import WEIGHT, WEIGHTS_BY_CLASS, check_class_weight, check_sample_weight
from ..privacy.accounting.budgets import Budget
from .module import ModuleClassifier, load_modules

Array = NDArray[Any]

#: Names that ``algorithm`` accepts, and their algorithms.
FIRST_ORDER: dict[str, Callable[[], Algorithm]] = {
    "auto": AdaMix,
    "noisy-gd": NoisyGD,
    "adamix": AdaMix,
    "coupling": Coupling,
    "pda-dpmd": partial(NoisyGD, momentum=0.0, public_weight="cosine"),
    "modelmix": ModelMix,
}


def _asks_for_gradients(algorithm: object) -> bool:
    """Whether an algorithm needs clipped sums of gradients only, and nothing that only linear heads have."""
    if isinstance(algorithm, ModelMix):
        return algorithm.base is None or _asks_for_gradients(algorithm.base)
    if isinstance(algorithm, AdaMix):
        return algorithm.n_components is None
    return isinstance(algorithm, (NoisyGD, Coupling))


_OBJECT = Kind(
    "an object: NoisyGD, AdaMix without n_components, Coupling, or ModelMix of one of these",
    _asks_for_gradients,
)


@dataclass(eq=False, repr=False)
class FirstOrderDPModuleClassifier(ModuleClassifier):
    """Differentially private classifier that trains a torch module on clipped gradients of private rows.

    It trains any :class:`torch.nn.Module` that :mod:`torch.func` can differentiate row by row, with the
    algorithms of linear heads. It is made for small modules, or for a few layers of a larger one.

    Parameters
    ----------
    module : torch.nn.Module
        As in :class:`ZerothOrderDPModuleClassifier`.
    algorithm : {"auto", "noisy-gd", "adamix", "coupling", "pda-dpmd", "modelmix"} or object, default="auto"
        A name selects an algorithm with its default settings; "auto" stands for "adamix", and "pda-dpmd" for
        ``NoisyGD(momentum=0, public_weight="cosine")``. An object holds its own settings. Algorithms that
        need products with rows are refused: DOPE, GEP, exact mirror descent, and AdaMix's subspace.
    trainable, loss
        As in :class:`ZerothOrderDPModuleClassifier`.
    chunk_size : int, default=128
        Number of rows whose gradients are computed at a time. Each takes the memory of three float64 copies
        of the trained parameters, in addition to its pass.
    epsilon, delta, n_steps, noise_multiplier
        As in :class:`MixedDPLogisticRegression`.
    learning_rate : float or "auto", default="auto"
        Step size for the mean objective; ``"auto"`` needs the default loss. It also shortens steps that
        change the outputs of public rows by more than a trust region, except for "modelmix". Made-up rows of
        standard deviation 1, or of zeros and ones, take the place of public rows if there are none.
    classes, batch_size
        As in :class:`MixedDPLogisticRegression`.
    class_weight : dict or None, default=None
        Weights of the classes, whose ratios count (:ref:`what a weight means <what-a-weight-means>`); 1 for
        classes that a dict leaves out.
    max_sample_weight : float or None, default=None
        The ``sample_weight`` that counts as 1; larger ones count as 1, too. Declare it from prior knowledge,
        to pass weights.
    init : {"public", "module"}, default="public"
        As in :class:`ZerothOrderDPModuleClassifier`.
    neighboring, ledger
        As in :class:`MixedDPLogisticRegression`.
    noise : {"float"}, default="float"
        Discrete noise is refused, since gradients of a module are on no grid.
    device, random_state, verbose
        As in :class:`ZerothOrderDPModuleClassifier`.

    Attributes
    ----------
    module_, classes_, privacy_, n_iter_, learning_rate_, n_features_in_, feature_names_in_
        As in :class:`ZerothOrderDPModuleClassifier`.

    Notes
    -----
    *Guarantee*: the fitted module is (epsilon, delta)-differentially private in the rows of ``X, y``. Each
    step is one Gaussian release of a sum of gradients, one for each row, each clipped before it is added. The
    guarantee does not protect public rows, the number of private rows, the fact that validation passed, or
    anything else that ``privacy_`` lists as public. The initial parameters and buffers of the module count as
    public. A module that was already trained on the private rows is not made private by this fit.

    The gradient of a row is that of a pass of this row alone, mapped over a chunk by ``torch.func.vmap``, and
    converted to float64. The clip uses an upper bound on its norm that includes rounding, and the sensitivity
    includes the rounding of the sum. A gradient that is not finite, or that cannot be computed, is zero, and
    no other row changes. Before the first release, all private rows pass forward once, and a fit is refused
    there if the module or the loss fails on a row.

    As for :class:`ZerothOrderDPModuleClassifier`, ``fit`` first tests whether the loss of a row depends on
    that row alone. The same test is made of the gradients. It cannot prove the property, and a module can be
    written to recognise the test and pass.

    A step that would make parameters, or outputs of public rows, not finite is not taken; "modelmix" returns
    its last finite parameters. This and the trust region look at released steps and public rows only.

    The trained parameters are held as one float64 vector. Each pass rounds them to the module's precision.

    References
    ----------
    Abadi et al. 2016, "Deep Learning with Differential Privacy"; the algorithms name their own papers.
    """

    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = FIRST_ORDER
    _objects = _OBJECT
    _remedy = (
        "the others need products with rows or a convex public loss, and work with MixedDPLogisticRegression"
    )

    _allowed: ClassVar = {
        **ModuleClassifier._allowed,
        "class_weight": (None, WEIGHTS_BY_CLASS),
        "max_sample_weight": (None, WEIGHT),
    }

    _: KW_ONLY
    chunk_size: int = 128
    class_weight: Mapping[Any, float] | None = None
    max_sample_weight: float | None = None

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        *,
        sample_weight: object = None,
        **unsupported: object,
    ) -> Self:
        """Train a copy of the module on private rows and, if there are any, public rows.

        Parameters
        ----------
        X, y, X_pub, y_pub : array-like
            As in :meth:`ZerothOrderDPModuleClassifier.fit`.
        sample_weight : array-like of shape (n_samples,) or None
            Non-negative weights of the private rows. They are PRIVATE, like labels. Only their ratios to
            ``max_sample_weight`` count. All public rows have the same weight.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn.
        BudgetExceededError
            If the ledger does not allow the fit; nothing is released or charged.
        ImportError
            If torch is not installed.
        RuntimeError
            If the module fails on public rows after the first step, or the device fails.
        """
        fit_one(self, FitData(X, y, X_pub, y_pub, sample_weight), unsupported)
        return self

    def _weights(self, sample_weight: object, y: Array, y_pub: Array) -> tuple[Array | None, Array | None]:
        if sample_weight is not None and self.max_sample_weight is None:
            raise ValueError(
                "sample_weight needs max_sample_weight, since the largest weight is private; declare it from "
                "prior knowledge, such as max_sample_weight=1.0."
            )
        row_weights = check_sample_weight(sample_weight, len(y))
        if row_weights is None and self.class_weight is None:
            return None, None
        weights, of_public = np.ones(len(y)), None
        if self.class_weight is not None:
            by_class = check_class_weight(self.class_weight, self.classes_)
            weights *= (by_class / by_class.max())[y]
            mean = by_class[y_pub].mean() if by_class[y_pub].any() else 1.0
            of_public = by_class / mean
        if row_weights is not None:
            weights *= np.minimum(row_weights / self.max_sample_weight, 1.0)
        return weights, of_public

    def _check_parameters(self) -> Budget:
        budget = super()._check_parameters()
        if self.noise == "discrete":
            raise ValueError(
                "noise='discrete' needs sums on a grid, and gradients of a module are on none; pass "
                "noise='float', or use ZerothOrderDPModuleClassifier."
            )
        return budget

    def _source(self, private: object, loss: object, W: Any, exact: bool) -> PrivateRows:
        source: PrivateRows = load_modules().GradientRows(private, loss, W)
        return source

    def _public_view(self, public: object, loss: object, seed: int, W: Any, made_up: object) -> PublicView:
        torch_side = load_modules()
        data = torch_side.GradientData(public, loss, seed, W, made_up)
        view: PublicView = data.view(torch_side.flat(W.tensors))
        return view


@dataclass(eq=False, repr=False)
class ZerothOrderDPModuleClassifier(ModuleClassifier):
    """Differentially private classifier that trains a torch module on losses of private rows.

    It trains any :class:`torch.nn.Module` on rows of any shape, and needs only forward passes of private
    rows.

    Parameters
    ----------
    module : torch.nn.Module
        The module to train. It maps rows (n, ...) to one output per class, (n, n_classes), in the order of
        ``classes_``, and must process each row separately. ``fit`` trains a copy in evaluation mode, without
        dropout and with fixed running statistics in batch normalisation.
    algorithm : {"auto", "pazo-m", "pazo-p", "pazo-s", "dpzero"} or object, default="auto"
        A name selects the algorithm with its default settings; "auto" stands for "pazo-m". An object
        (:class:`~skmixdp.algorithms.PAZO`, :class:`~skmixdp.algorithms.DPZero`) holds its own settings.
    trainable : list of str, callable or None, default=None
        Parameters to train: names of parameters or submodules, or a function of a name. None trains all
        parameters that require gradients.
    loss : callable or None, default=None
        ``loss(outputs, y)`` returns the loss of each row (n,); ``y`` holds class indices. None is the
        cross-entropy of logits.
    chunk_size : int, default=1024
        Number of rows that pass through the module at a time. It bounds the memory of a pass.
    epsilon, delta, n_steps, noise_multiplier
        As in :class:`MixedDPLogisticRegression`.
    learning_rate : float or "auto", default="auto"
        Step size for the mean objective; ``"auto"`` needs the default loss. It also shortens steps that
        change the outputs of public rows by more than a trust region. Made-up rows of
        standard deviation 1, or of zeros and ones, take the place of public rows if there are none.
    classes, batch_size
        As in :class:`MixedDPLogisticRegression`.
    init : {"public", "module"}, default="public"
        ``"public"`` first trains the module on public rows by backpropagation with Adam. A fifth of these
        rows is held out to choose the learning rate and the length. ``"module"`` uses the module as passed.
    neighboring, noise, ledger
        As in :class:`MixedDPLogisticRegression`.
    device : "auto" or torch device, default="auto"
        The device that runs the module. ``"auto"`` leaves it where it is. Rows move there in chunks.
    random_state, verbose
        As in :class:`MixedDPLogisticRegression`.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained copy of ``module``, in evaluation mode.
    classes_, privacy_, n_iter_, learning_rate_
        As in :class:`MixedDPLogisticRegression`.
    n_features_in_, feature_names_in_
        As in :class:`MixedDPLogisticRegression`, for data frames only.

    Notes
    -----
    *Guarantee*: the fitted module is (epsilon, delta)-differentially private in the rows of ``X, y``. Each
    step is one Gaussian release of a few numbers. Each row contributes clipped losses, or clipped
    differences of losses, to them. The guarantee does not protect public rows, the number of private rows,
    the fact that validation passed, or anything else that ``privacy_`` lists as public. The initial
    parameters and buffers of the module count as public. A module that was already trained on the private
    rows is not made private by this fit.

    Before the first release, all private rows pass through the module once. A fit is refused there if the
    module or the loss fails on a row. If it fails on a row later, at other parameters, that row contributes
    a difference of 0, or the largest loss where candidates are compared, and no other row changes. Errors
    that stop a device, such as failed assertions in CUDA, end the fit at a step that may tell of a row.

    The clip bounds the contribution of a row only if the loss of a row depends on that row alone. Before
    the first release, ``fit`` tests this with full passes of public and made-up rows, including extreme
    values. The test finds batch statistics, expert capacities, scales of a whole batch, memory and
    randomness. It cannot prove the property, and a module can be written to recognise the test and pass.

    A step that would make parameters, or outputs of public rows, not finite is not taken.

    Private rows pass through the module under ``torch.no_grad``. A direction is stored as a seed, and its
    entries are drawn again each time the parameters move along it, in place, as in MeZO. In addition to
    the module and the forward pass, "dpzero" needs the memory of the largest parameter tensor. The other
    algorithms need the memory of the public gradients that they hold. Moving back and forth leaves rounding
    errors: a relative 1e-6 of float32 parameters after hundreds of steps. These errors depend only on seeds
    and released numbers.

    References
    ----------
    Gong and Li 2025, "Private Zeroth-Order Optimization with Public Data" (PAZO); Zhang et al.
    2024 (DPZero); Malladi et al. 2023 (MeZO).
    """

    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = {
        "auto": PAZO,
        "pazo-m": PAZO,
        "pazo-p": partial(PAZO, "p"),
        "pazo-s": partial(PAZO, "s"),
        "dpzero": DPZero,
    }
    _objects = Kind(
        "an object: PAZO or DPZero from skmixdp.algorithms", lambda value: isinstance(value, (PAZO, DPZero))
    )
    _remedy = "algorithms that need gradients of private rows work with MixedDPLogisticRegression"

    def _source(self, private: object, loss: object, W: Any, exact: bool) -> PrivateRows:
        source: PrivateRows = load_modules().ModuleRows(private, loss, exact=exact)
        return source

    def _public_view(self, public: object, loss: object, seed: int, W: Any, made_up: object) -> PublicView:
        view: PublicView = load_modules().ModuleData(public, loss, seed, W, made_up).view(W)
        return view
