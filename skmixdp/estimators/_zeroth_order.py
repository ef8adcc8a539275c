"""The classifier that asks private rows for losses alone."""

from typing import Any, ClassVar

from sklearn.utils.metaestimators import available_if

from .._engine import Budget
from ..algorithms import PAZO, Algorithm, DPZero
from ..privacy.seeds import warn_of_seed
from ._checks import check_algorithm, check_choice
from ._fit import all_or_nothing
from ._logistic import MixedDPLogisticRegression
from ._module import check_module_parameters, fit_module, module_outputs

#: Names that ``algorithm`` accepts in place of an object, and what each takes of the estimator.
_TWO_POINT = ("n_directions", "smoothing", "loss_clip", "directions")
_NAMES: dict[str, tuple[type[Algorithm], dict[str, str], tuple[str, ...]]] = {
    "pazo-m": (PAZO, {"variant": "m"}, (*_TWO_POINT, "public_weight", "public_batch_size")),
    "pazo-p": (
        PAZO,
        {"variant": "p"},
        (*_TWO_POINT, "public_batch_size", "n_public_batches", "orthonormal"),
    ),
    "pazo-s": (
        PAZO,
        {"variant": "s"},
        ("loss_clip", "public_batch_size", "n_candidates", "candidate_noise"),
    ),
    "dpzero": (DPZero, {}, _TWO_POINT),
}


def _is_linear(classifier: Any) -> bool:
    if classifier.module is not None:
        raise AttributeError("private_score counts for linear heads, and module is given; score public rows.")
    return True


class ZerothOrderDPClassifier(MixedDPLogisticRegression):
    """Classifier trained from losses of its private rows alone, never from their gradients.

    On a linear head it is :class:`MixedDPLogisticRegression` with a zeroth-order algorithm:
    the same objective, rows, start and attributes. With ``module`` it trains any
    :class:`torch.nn.Module`, on rows of any shape, by forward passes.

    Parameters
    ----------
    algorithm : {"pazo-m", "pazo-p", "pazo-s", "dpzero"} or object, default="pazo-m"
        A name takes the parameters from ``n_directions`` to ``directions`` below; an object
        (:class:`~skmixdp.algorithms.PAZO`, :class:`~skmixdp.algorithms.DPZero`) holds its own.
    epsilon, delta, n_steps, noise_multiplier
        As in :class:`MixedDPLogisticRegression`.
    n_directions : int, default=1
        Directions in each step (all but "pazo-s").
    smoothing : float, default=1e-2
        Distance to either side at which losses are compared, in units of the direction (all but
        "pazo-s").
    loss_clip : float, default=1.0
        Bound on each row's difference of losses, on the scale of a row's gradient; on each row's
        loss for "pazo-s".
    public_weight : {"sample", "coupling", "convex", "cosine"}, float or object, default=0.5
        Weight of the public mean gradient ("pazo-m").
    public_batch_size : int or None, default=None
        Public rows in a batch; None takes all public rows ("pazo-m"), or shares them out.
    n_public_batches : int, default=3
        Public gradients that span the directions ("pazo-p").
    n_candidates : int, default=3
        Public gradients to select from ("pazo-s").
    candidate_noise : float or None, default=1e-3
        Standard deviation of what makes a further candidate of the best one; None for no further
        one ("pazo-s").
    orthonormal : bool, default=True
        Orthonormalise public gradients, or only scale them to unit length ("pazo-p").
    directions : {"sphere", "gaussian"}, default="sphere"
        How directions are drawn (all but "pazo-s").
    module : torch.nn.Module or None, default=None
        What is trained in the place of a linear head: it turns rows (n, ...) into one output for
        each class, (n, n_classes), in the order of ``classes_``, each row by itself: the guarantee
        assumes it, and fit refuses modules that are seen to mix rows, or that are quantised. It stays as
        it is; fit trains a copy, in evaluation mode (no dropout; batch normalisation by the running
        statistics that it has). None is a linear head.
    trainable : list of str, callable or None, default=None
        Parameters of the module to train: names, or the names of submodules, or a function of a
        name. None takes all that require gradients.
    loss : callable or None, default=None
        ``loss(outputs, y)`` to the loss of each row (n,), ``y`` being class indices; None is the
        cross-entropy of logits.
    chunk_size : int, default=1024
        Rows that pass through the module at a time; it bounds the memory of a pass.
    device : "auto" or what torch takes for a device, default="auto"
        Where the module runs; ``"auto"`` leaves it where it is. Rows move there piece by piece. For a
        linear head, as in :class:`MixedDPLogisticRegression`.
    learning_rate, classes, batch_size, neighboring, noise, ledger, random_state, verbose
        As in :class:`MixedDPLogisticRegression`. A module needs public rows for a learning rate of
        ``"auto"``.
    init : {"public", "zeros", "module"} or array, default="public"
        As in :class:`MixedDPLogisticRegression` for linear heads. For a module, ``"public"`` trains
        it on public rows by backpropagation first (Adam; a fifth of the rows is held out to
        choose rate and length), and ``"module"`` takes it as it is.
    l2, public_l2, fit_intercept, center, normalize, dtype
        As in :class:`MixedDPLogisticRegression`; for linear heads alone.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained copy of ``module``, in evaluation mode.
    classes_, privacy_, n_iter_
        As in :class:`MixedDPLogisticRegression`.
    coef_, intercept_, n_features_in_, feature_names_in_
        As in :class:`MixedDPLogisticRegression`; for linear heads alone.

    Notes
    -----
    *Guarantee*: the fitted model is (epsilon, delta)-differentially private in the rows of
    ``X, y``: in each step one Gaussian release of a few numbers, each row's part of which is
    clipped. Public rows, the number of private rows, that validation passed, and what
    ``privacy_`` lists besides are not protected. A module's initial parameters and buffers are
    taken for public: what was trained on the private rows before is not made private by this.

    The clip bounds what a row contributes if the loss of a row is a function of that row alone. Before
    anything is released, fit tries this with full passes of public and made-up rows, extreme ones among
    them. That finds batch statistics, capacities, scales of a whole batch, memory and chance. It cannot
    prove the property, and a module that is written to recognise the trial passes it.

    Private rows pass through a module under ``torch.no_grad``. A direction is a seed from which
    its entries are drawn whenever the parameters move along it, in place, as in MeZO: beside the
    module and the forward pass, "dpzero" takes the memory of the largest parameter tensor, the others
    that of the public gradients which they hold. Moving there and back leaves rounding errors, a
    relative 1e-6 of float32 parameters after hundreds of steps; they depend on nothing but seeds and
    released numbers. Small modules pass through ``torch.func`` instead where eight directions or
    more are asked for, with all at once.

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

    _kinds: ClassVar[dict[str, type[Algorithm]]] = {name: kind for name, (kind, _, _) in _NAMES.items()}

    def __init__(
        self,
        algorithm: Any = "pazo-m",
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        n_steps: int | None = None,
        noise_multiplier: float | None = None,
        n_directions: int = 1,
        smoothing: float = 1e-2,
        loss_clip: float = 1.0,
        public_weight: Any = 0.5,
        public_batch_size: int | None = None,
        n_public_batches: int = 3,
        n_candidates: int = 3,
        candidate_noise: float | None = 1e-3,
        orthonormal: bool = True,
        directions: str = "sphere",
        module: Any = None,
        trainable: Any = None,
        loss: Any = None,
        chunk_size: int = 1024,
        device: Any = "auto",
        learning_rate: Any = "auto",
        l2: Any = "auto",
        public_l2: Any = "auto",
        classes: Any = None,
        fit_intercept: bool = True,
        center: bool = True,
        normalize: bool = True,
        batch_size: int | None = None,
        init: Any = "public",
        neighboring: str = "add_or_remove_one",
        noise: str = "float",
        ledger: Any = None,
        dtype: str = "float32",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            algorithm,
            epsilon=epsilon,
            delta=delta,
            n_steps=n_steps,
            noise_multiplier=noise_multiplier,
            learning_rate=learning_rate,
            l2=l2,
            public_l2=public_l2,
            classes=classes,
            fit_intercept=fit_intercept,
            center=center,
            normalize=normalize,
            batch_size=batch_size,
            init=init,
            neighboring=neighboring,
            noise=noise,
            ledger=ledger,
            device=device,
            dtype=dtype,
            random_state=random_state,
            verbose=verbose,
        )
        self.n_directions = n_directions
        self.smoothing = smoothing
        self.loss_clip = loss_clip
        self.public_weight = public_weight
        self.public_batch_size = public_batch_size
        self.n_public_batches = n_public_batches
        self.n_candidates = n_candidates
        self.candidate_noise = candidate_noise
        self.orthonormal = orthonormal
        self.directions = directions
        self.module = module
        self.trainable = trainable
        self.loss = loss
        self.chunk_size = chunk_size

    def fit(
        self, X: Any, y: Any = None, X_pub: Any = None, y_pub: Any = None, **unsupported: Any
    ) -> "ZerothOrderDPClassifier":
        """Train the head, or the module.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or array or tensor of shape (n_samples, ...)
            PRIVATE rows: a table for a linear head, any shape for a module. Real numbers take the
            module's precision, whole numbers become int64.
        y : array-like of shape (n_samples,)
            Labels of the private rows.
        X_pub : array-like like X, tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,), tuple of such, or None
            Labels of the public rows.

        Returns
        -------
        self : ZerothOrderDPClassifier
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn.
        BudgetExceededError
            If the ledger does not pay for the fit; nothing is released or charged.
        ImportError
            If a module is given and torch is not installed.
        """
        if self.module is None:
            super().fit(X, y, X_pub, y_pub, **unsupported)
            self._forget("module_")
            return self
        with all_or_nothing(self):
            budget = self._check_parameters()
            warn_of_seed(self.random_state)
            fit_module(self, budget, X, y, X_pub, y_pub, unsupported)
            self._forget("coef_", "intercept_", "_row_map", "n_features_in_", "feature_names_in_")
        return self

    @available_if(_is_linear)  # type: ignore[untyped-decorator]
    def private_score(self, X: Any, y: Any, *, noise_multiplier: float) -> float:
        """As in :class:`MixedDPLogisticRegression`, for linear heads: a module has no private score."""
        return super().private_score(X, y, noise_multiplier=noise_multiplier)

    def _forget(self, *names: str) -> None:
        """Drop what an earlier fit of the other kind left."""
        for name in names:
            self.__dict__.pop(name, None)

    def _check_parameters(self) -> Budget:
        budget = super()._check_parameters()
        check_module_parameters(self)
        return budget

    def _named_starts(self) -> tuple[str, ...]:
        return ("public", "zeros") if self.module is None else ("public", "module")

    def _outputs(self, X: Any) -> Any:
        return module_outputs(self, X) if hasattr(self, "module_") else super()._outputs(X)

    def _chosen_algorithm(self) -> Algorithm:
        if isinstance(self.algorithm, (PAZO, DPZero)):
            self._refuse_parameters_beside(self.algorithm)
            return check_algorithm(self.algorithm)
        if isinstance(self.algorithm, Algorithm):
            raise ValueError(
                f"algorithm={self.algorithm!r} asks private rows for gradients; pass PAZO or DPZero, or give "
                "it to MixedDPLogisticRegression."
            )
        check_choice("algorithm", self.algorithm, tuple(_NAMES))
        kind, fixed, names = _NAMES[self.algorithm]
        return kind(**fixed, **{name: getattr(self, name) for name in names})

    def _refuse_parameters_beside(self, algorithm: Algorithm) -> None:
        """A parameter that is set twice would be followed in one place only."""
        defaults = {**PAZO().get_params(deep=False), **DPZero().get_params(deep=False)}
        for name in defaults:
            if name != "variant" and getattr(self, name) != defaults[name]:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect beside an algorithm object; pass it to "
                    f"{type(algorithm).__name__}."
                )
