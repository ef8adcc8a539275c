"""The classifier that trains a torch module on losses of private rows, and no gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from .._rows.source import PrivateRows
from .._utils.validation import Kind
from ..algorithms import PAZO, Algorithm, DPZero
from ..components.protocols import PublicView
from .module import ModuleClassifier, load_modules


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
        view: PublicView = load_modules().ModuleData(public, loss, seed, made_up).view(W)
        return view
