"""Parts that classifiers of torch modules share."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine import OpenRows, Options, Plan, Transaction, bind_rows, make_plan, sampling_of, training
from .._rows.source import PrivateRows
from .._rows.table import check_labels
from .._utils.frames import is_frame
from .._utils.models import names_of_features
from .._utils.process import LEFT_OUT, is_own, own_errors, warn, warn_later
from .._utils.validation import COUNT, Allowed, Kind, how_to_install, passed, shown
from ..components.protocols import PublicInfo, PublicView
from ..estimators._base import EstimatorProcedure, FitData, PrivateEstimator, fit_one
from ..estimators._callbacks import FitTasks
from ..estimators._outputs import Classifier
from ..estimators._problem import encode_classes, refuse_sample_weight
from ..preprocessing._leaks._enclosing import check_public_rows, warn_of_leaks
from ..privacy.accounting.budgets import Budget
from ..privacy.accounting.events import Noise
from .module_steps import guarded

Array = NDArray[Any]


def module_procedure(
    head: BaseEstimator,
    transaction: Transaction,
    plan: Plan,
    source: Any,
    worker: Any,
    report: Callable[..., Any],
) -> EstimatorProcedure:
    """Yield the charge and the queries of a module's fit, and return the fitted attributes."""
    rows, modules = OpenRows(source), load_modules()
    transaction.event, transaction.n_units, transaction.rows = plan.event, plan.info.n_private, rows
    yield transaction
    withheld = False
    try:
        with FitTasks(head, n_steps=plan.n_steps) as tasks:
            W = yield from bind_rows(rows, training(plan, transaction.noise, callback=tasks))
    except Exception as error:  # its message may quote private rows
        if is_own(error):
            raise
        withheld = True
    if withheld:
        raise RuntimeError(
            f"training ended with {LEFT_OUT}; try the module on public rows, and on another device. What was "
            "charged stays charged."
        )
    public: Any = plan.info.view.data
    if left_out := public.n_left_out:
        warn_later(
            f"{left_out} of {tasks.n_done} steps were not taken, since parameters or outputs would not have "
            "been finite; pass a smaller learning_rate, or a module of bounded outputs."
        )
    return {
        # Only the trained parameters are taken from the copy that saw rows: a module may store its inputs.
        "module_": modules.trained_module(head.module, head.device, source.at(W)),
        "learning_rate_": plan.step_size(1),
        "privacy_": report(computed_on=str(next(worker.parameters()).device)),
        "n_iter_": tasks.n_done,  # fewer than planned if a callback stopped the fit
    }


@dataclass(eq=False, repr=False)
class ModuleClassifier(Classifier, PrivateEstimator):
    """Base class of classifiers that train a torch module; subclasses define the queries of private rows."""

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PrivateEstimator._allowed,
        "chunk_size": (COUNT,),
        "loss": (None, Kind("a function of outputs and labels", callable)),
    }
    _starts: ClassVar[tuple[str, ...]] = ("public", "module")
    _saved: ClassVar[tuple[str, ...]] = (
        *PrivateEstimator._saved,
        *("classes_", "n_features_in_", "feature_names_in_", "module_"),
    )

    module: Any
    algorithm: Any = "auto"
    _: KW_ONLY
    trainable: Any = None
    loss: Any = None
    chunk_size: int = 1024
    epsilon: float | None = 1.0
    delta: float = 1e-5
    n_steps: int | None = None
    noise_multiplier: float | None = None
    learning_rate: Any = "auto"
    classes: Any = None
    batch_size: int | None = None
    init: str = "public"
    neighboring: str = "add_or_remove_one"
    noise: Noise = "float"
    ledger: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0

    def fit(
        self, X: object, y: object = None, X_pub: object = None, y_pub: object = None, **unsupported: object
    ) -> Self:
        """Train a copy of the module on private rows and, if there are any, public rows.

        Parameters
        ----------
        X : array or tensor of shape (n_samples, ...)
            PRIVATE rows. Real numbers are converted to the module's precision, integers to int64.
        y : array-like of shape (n_samples,)
            Labels of the private rows.
        X_pub : array or tensor of shape (n_pub, ...), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,), tuple of such, or None
            Labels of the public rows.

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
        fit_one(self, FitData(X, y, X_pub, y_pub), unsupported)
        return self

    def _check_parameters(self) -> Budget:
        torch_side = load_modules()
        if not torch_side.is_module(self.module):
            raise TypeError(f"module={shown(self.module)} must be a torch.nn.Module.")
        if not isinstance(self.init, str):
            raise ValueError(
                "init is an array of coefficients, which modules do not accept; pass 'public' or 'module'."
            )
        budget = super()._check_parameters()
        if self.loss is not None and self.learning_rate == "auto":
            raise ValueError(
                "learning_rate='auto' works only with the default loss; pass a number together with loss."
            )
        return budget

    @abstractmethod
    def _source(self, private: object, loss: object, W: Any, exact: bool) -> PrivateRows:
        """The source of private rows, for sums on a grid if ``exact``."""

    @abstractmethod
    def _public_view(self, public: object, loss: object, seed: int, W: Any, made_up: object) -> PublicView:
        """The public rows at the start of a fit, or made-up ones where a rule needs rows."""

    def _weights(self, sample_weight: object, y: Array, y_pub: Array) -> tuple[Array | None, Array | None]:
        """Weights (n_rows,) of private rows, from 0 to 1, and those of public rows by class (k,)."""
        refuse_sample_weight(self, sample_weight)
        return None, None

    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        if data.rows is not None:
            raise ValueError(
                f"{data.rows[0]} selects rows, which only linear heads support; pass those rows as X."
            )
        torch_side = load_modules()
        self._leaks = warn_of_leaks(data.X, public_rows=data.X_pub is not None)
        X, y, X_pub, y_pub, origin = self._check_rows(torch_side, data)
        n_classes, n_rows = len(self.classes_), len(X)
        weights, by_class = self._weights(data.sample_weight, y, y_pub)
        if names := torch_side.trained_batch_norms(self.module):
            warn(
                f"module has batch normalisation in training mode ({names[0]!r}); it will run in evaluation "
                "mode with its present running statistics, which must not come from private rows."
            )
        torch_side.refuse_quantised(self.module)
        worker = torch_side.working_copy(self.module, self.device)
        W = torch_side.select_parameters(worker, self.trainable)
        loss = torch_side.cross_entropy if self.loss is None else self.loss
        public = torch_side.LabelledRows(X_pub, y_pub, self.chunk_size)
        leaks = self.__dict__.pop("_leaks")
        transaction = Transaction(budget, type(self).__name__, self.ledger, self.random_state, leaks)
        noise = transaction.noise
        options = Options(self.learning_rate, None, sampling_of(self.batch_size, n_rows), noise.needs_grid)
        rate = options.sampling.rate(n_rows)
        private = torch_side.LabelledRows(X, y, self.chunk_size, weights)
        of_outputs = torch_side.ModuleLoss(loss, n_classes, weighted=weights is not None, by_class=by_class)
        source: Any = self._source(private, loss, W, noise.needs_grid)
        size = source.rows_in_pass(rate)
        torch_side.check_forward(W, loss, public, n_classes, X, size, self.module, source.gradients)
        if self.init == "public" and len(public):
            torch_side.warm_start(W, public, of_outputs.of_public, noise)
        seed = int(noise.uniform((1,))[0] * 2**53)
        made_up = None
        if self.learning_rate == "auto" and not len(public):
            n_made_up = torch_side.SCALE_ROWS
            made_up, _ = torch_side.ordinary_rows(W, loss, public, n_classes, X, n_made_up)
        view = self._public_view(public, of_outputs, seed, W, made_up)
        info = PublicInfo(view, budget.mu, n_rows, rate * n_rows, math.inf)
        recipe = self._chosen_algorithm().recipe(info, options)
        recipe = guarded(recipe, view.data, within_region=self.learning_rate == "auto")
        plan = make_plan(budget, recipe, info, np.dtype("float64"))
        source.check(W)
        treated_as_public = (
            "the module: architecture, initial parameters and buffers, and which parameters are trained",
            "the number of private rows, their shape, and the type of their array (declared)",
            passed("shapes", "finiteness", "labels"),
            "that neither the module nor the loss failed on them before the first step",
            f"the classes ({origin})",
        )
        report = partial(transaction.report, treated_as_public, n_public=len(public), plan=plan)
        return module_procedure(self, transaction, plan, source, worker, report)

    def _check_rows(self, torch_side: Any, data: FitData) -> tuple[Any, Array, Any, Array, str]:
        """Checked rows with encoded labels, and the origin of the classes."""
        X = torch_side.check_rows(data.X, "X", 2)
        check_public_rows(len(X), data.X_pub)
        y = check_labels(torch_side.as_labels(data.y), "y", len(X), "X")
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # the names of an earlier fit
        if is_frame(data.X):
            validate_data(self, data.X, skip_check_array=True)
        names = names_of_features(self)
        public = torch_side.collect_public(data.X_pub, data.y_pub, names, X, check_labels)
        X_pub, y_pub = public if public is not None else (X[:0], None)
        y, y_pub, origin = encode_classes(self, y, y_pub)
        return X, y, X_pub, y[:0] if y_pub is None else y_pub, origin

    @np.errstate(all="ignore")  # a warning or error of NumPy could reveal tiny or huge rows
    @own_errors()
    def _outputs(self, X: object, *, decisive: bool = False) -> Array:
        """Outputs of the fitted module: (n, k), or (n, 1) differences for two classes; all ``decisive``."""
        check_is_fitted(self)
        torch_side = load_modules()
        if is_frame(X) and names_of_features(self) is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
        X = torch_side.check_rows(X, "X", 1)
        outputs = torch_side.outputs_of(self.module_, X, self.chunk_size)
        if not np.isfinite(outputs).all():
            raise ValueError(
                "X has rows whose outputs of the module are not finite; scale the rows, or check the "
                "module's parameters."
            )
        return np.asarray(outputs[:, 1:] - outputs[:, :1] if outputs.shape[1] == 2 else outputs)

    def _module_state(self) -> dict[str, Any]:
        """The trained parameters and buffers as arrays, for a file."""
        state: dict[str, Any] = load_modules().state_of(self.module_)
        return state

    def _set_module_state(self, state: Any) -> None:
        """Set ``module_`` to a copy of ``module`` with the parameters and buffers of a file."""
        torch_side = load_modules()
        if not torch_side.is_module(self.module):
            raise TypeError(f"module={shown(self.module)} must be a torch.nn.Module.")
        self.module_ = torch_side.with_state(self.module, state)


def load_modules() -> Any:
    """The package for torch modules, imported when it is needed."""
    try:
        from . import modules
    except ModuleNotFoundError as error:
        raise ImportError(f"modules need the torch package; {how_to_install('features')}.") from error
    return modules
