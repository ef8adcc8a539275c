"""From rows of any shape and a torch module to a trained module and its report."""

import inspect
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from .._engine import Budget, Options, Run, make_plan, train
from ..components.protocols import PublicInfo
from ..leaks._enclosing import warn_of_leaks
from ._charging import pay
from ._checks import (
    check_class_labels,
    check_labels,
    check_same_numbering,
    encode_labels,
    refuse_unsupported,
    warn_of_delta,
    warn_of_repeats,
)
from ._classes import find_classes, warn_of_empty_classes

Array = NDArray[Any]

#: Parameters of linear heads that mean nothing for a module, and of modules that mean nothing for a head.
_LINEAR = ("l2", "public_l2", "fit_intercept", "center", "normalize", "dtype")
_MODULE = ("trainable", "loss", "chunk_size")


def load_modules() -> Any:
    """The part of the library that knows torch.

    Raises
    ------
    ImportError
        If torch is not installed.
    """
    try:
        from .. import _modules as modules
    except ModuleNotFoundError as error:
        raise ImportError("module=... needs the torch package; install skmixdp[features].") from error
    return modules


def check_module_parameters(classifier: Any) -> None:
    """Check the parameters that depend on whether a module is given."""
    given = classifier.module is not None
    defaults = inspect.signature(type(classifier).__init__).parameters
    for name in _LINEAR if given else _MODULE:
        value, default = getattr(classifier, name), defaults[name].default
        if value is not default and not (isinstance(value, (str, int)) and value == default):
            fix = f"leave it at {default!r}" if given else "pass module=..., or leave it out"
            raise ValueError(
                f"{name}={value!r} has no effect {'beside module' if given else 'without module'}; {fix}."
            )
    if not given:
        return
    torch_side = load_modules()
    if not torch_side.is_module(classifier.module):
        raise TypeError(f"module={classifier.module!r} must be a torch.nn.Module or None.")
    if classifier.loss is not None and not callable(classifier.loss):
        raise ValueError(f"loss={classifier.loss!r} must be None or a function of outputs and labels.")
    size = classifier.chunk_size
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ValueError(f"chunk_size={size!r} must be a whole number of at least 1.")
    if not isinstance(classifier.init, str):
        raise ValueError("init holds coefficients, which a module has not; pass 'public' or 'module'.")
    if classifier.loss is not None and classifier.learning_rate == "auto":
        raise ValueError(
            "learning_rate='auto' knows the scale of the default loss alone; pass a number beside loss."
        )


def fit_module(
    classifier: Any, budget: Budget, X: Any, y: Any, X_pub: Any, y_pub: Any, unsupported: dict[str, Any]
) -> None:
    """Train a copy of the classifier's module, ``module_``, and report; checks come before noise."""
    torch_side = load_modules()
    refuse_unsupported(unsupported)
    warn_of_leaks(public_rows=X_pub is not None)
    X, y, X_pub, y_pub, origin = _check_rows(classifier, torch_side, X, y, X_pub, y_pub)
    n_classes = len(classifier.classes_)
    _warn_of_batch_norms(torch_side.trained_batch_norms(classifier.module))
    torch_side.refuse_quantised(classifier.module)
    worker = torch_side.working_copy(classifier.module, classifier.device)
    W = torch_side.select_parameters(worker, classifier.trainable)
    loss = torch_side.cross_entropy if classifier.loss is None else classifier.loss
    public = torch_side.LabelledRows(X_pub, y_pub, classifier.chunk_size)
    sampling = classifier._sampling(len(X))
    size = _largest_pass(classifier.chunk_size, len(X), sampling.rate(len(X)))
    torch_side.check_forward(W, loss, public, n_classes, X, size, classifier.module)

    noise = classifier._noise_source()
    if classifier.init == "public" and len(public):
        torch_side.warm_start(W, public, loss, noise)
    seed = int(noise.uniform((1,))[0] * 2**53)
    data = torch_side.ModuleData(public, torch_side.ModuleLoss(loss, n_classes), seed)
    info = PublicInfo(data.view(W), budget.mu, len(X), sampling.rate(len(X)) * len(X), math.inf)
    options = Options(classifier.learning_rate, classifier.l2, sampling, exact_sums=noise.needs_grid)
    recipe = classifier._chosen_algorithm().recipe(info, options)
    dtype = np.dtype("float64")
    plan = make_plan(budget, recipe, info, dtype)
    private = torch_side.LabelledRows(X, y, classifier.chunk_size)
    rows = torch_side.ModuleRows(private, loss, exact=noise.needs_grid)
    charge = pay(classifier, plan.event, n_rows=len(X), private=noise.kind != "seeded")
    withheld = None
    with tqdm(total=plan.n_steps, desc=type(classifier).__name__, disable=not classifier.verbose) as bar:
        run = Run(recipe, plan, info, noise, dtype, callback=lambda t, W: bar.update())
        try:
            (W,) = train([run], rows)
        except Exception as error:  # of the module or the loss, which may quote what they were given
            withheld = type(error).__name__
    if withheld is not None:
        raise RuntimeError(
            f"module or loss fails on private rows with {withheld}, whose text is left out since it may "
            "quote them; try the module on rows that are public. What was charged stays charged."
        )
    # A module may keep what passes through it: only the trained parameters leave the copy that saw rows.
    where = str(next(worker.parameters()).device)
    classifier.module_ = torch_side.trained_module(classifier.module, classifier.device, W)
    classifier.n_iter_ = plan.n_steps
    facts = (
        "the module: architecture, initial parameters and buffers, and which parameters are trained",
        "the number of private rows and their shape",
        "that their shapes, finiteness, repeats and labels passed validation",
        f"the classes ({origin})",
    )
    classifier.privacy_ = classifier._report(budget, plan, noise, len(X), len(public), facts, charge, where)


def _check_rows(
    classifier: Any, torch_side: Any, X: Any, y: Any, X_pub: Any, y_pub: Any
) -> tuple[Any, Array, Any, Array, str]:
    """Checked rows with encoded labels, none of them public where none were given, and whence the classes."""
    X = torch_side.check_rows(X, "X", 2)
    y = check_labels(torch_side.as_labels(y), "y", len(X), "X")
    check_class_labels(y, "y")
    public = torch_side.collect_public(X_pub, y_pub, X, check_labels)
    if public is None and classifier.learning_rate == "auto":
        raise ValueError(
            "learning_rate='auto' needs public rows to see the scale of a module's outputs; pass X_pub and "
            "y_pub, or a number."
        )
    X_pub, y_pub = public if public is not None else (X[:0], None)
    if y_pub is not None:
        check_class_labels(y_pub, "y_pub")
    warn_of_repeats(torch_side.as_array(X))
    warn_of_delta(classifier.delta, len(X))
    classifier.classes_, origin = find_classes(classifier, y, y_pub)
    if classifier.classes is None and y_pub is not None:
        check_same_numbering(y, classifier.classes_)
    y = encode_labels(y, classifier.classes_, "y", private=True)
    if y_pub is None:
        return X, y, X_pub, y[:0], origin
    y_pub = encode_labels(y_pub, classifier.classes_, "y_pub", private=False)
    warn_of_empty_classes(y_pub, classifier.classes_)
    return X, y, X_pub, y_pub, origin


def module_outputs(classifier: Any, X: Any) -> Array:
    """Outputs of the fitted module: (n, k), or (n, 1) differences for two classes."""
    torch_side = load_modules()
    X = torch_side.check_rows(X, "X", 1)
    outputs = torch_side.outputs_of(classifier.module_, X, classifier.chunk_size)
    return np.asarray(outputs[:, 1:] - outputs[:, :1] if outputs.shape[1] == 2 else outputs)


def _largest_pass(chunk_size: int, n_rows: int, rate: float) -> int:
    """Rows in the largest pass of private rows: 6 standard deviations above the mean for a drawn batch."""
    mean = rate * n_rows
    return min(chunk_size, n_rows, math.ceil(mean + 6 * math.sqrt(mean * (1 - rate))))


def _warn_of_batch_norms(names: list[str]) -> None:
    if names:
        warnings.warn(
            f"module has batch normalisation in training mode ({names[0]!r}); it runs in evaluation mode, "
            "with its running statistics as they are, which must not come from private rows.",
            UserWarning,
            stacklevel=4,
        )
