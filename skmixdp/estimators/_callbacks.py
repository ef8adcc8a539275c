"""Callbacks of scikit-learn, and progress bars. They see only what is released or public."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._engine import StepContext
from .._utils.process import progress_bar, public_code

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's mixin in versions without callbacks."""

        def set_callbacks(self, *callbacks: object) -> Any:
            """Refuse callbacks."""
            raise NotImplementedError(
                "callbacks need scikit-learn 1.9 or later; pass verbose=1 for a progress bar."
            )

    def with_callbacks(method: object) -> Any:
        """Return the method unchanged."""
        return method


#: Quantiles of the gradient norms of public rows that callbacks get.
_QUANTILES = (0.1, 0.5, 0.9)


class PrivateCallbackMixin(CallbackSupportMixin):  # type: ignore[misc]
    """Mixin that accepts callbacks of scikit-learn, except those that ask for the rows of a fit."""

    def set_callbacks(self, *callbacks: object) -> Any:
        """Set the callbacks of the next fits.

        After each step, callbacks get the head that was released in it, as ``fitted_estimator``, and public
        facts of the step, as ``metadata``. See :class:`~skmixdp.inspection.StepHistory`.

        Parameters
        ----------
        *callbacks : FitCallback
            Callbacks in scikit-learn's protocol, which needs scikit-learn 1.9. None removes those set before.

        Returns
        -------
        self : estimator
            This estimator.

        Raises
        ------
        ValueError
            If a callback asks for ``X`` or ``y``, as ``ScoringMonitor`` does: scores on private rows are
            releases that no budget covers.

        Notes
        -----
        *Guarantee*: every head that callbacks get is part of what the fit releases, so it costs nothing more.
        A callback that stops a fit early saves no budget. The guarantee does not cover callbacks that
        read private rows in some other way.
        """
        refuse_row_callbacks(callbacks)
        return super().set_callbacks(*callbacks)


def refuse_row_callbacks(callbacks: Sequence[Any]) -> None:
    """Refuse callbacks that ask for the rows of a fit, which are private."""
    for callback in callbacks:
        for hook in ("on_fit_task_begin", "on_fit_task_end"):
            method = getattr(callback, hook, None)
            names = inspect.signature(method).parameters if callable(method) else {}
            if wanted := [name for name in ("X", "y") if name in names]:
                raise ValueError(
                    f"the callback {type(callback).__name__} asks for {' and '.join(wanted)}, the "
                    "private rows of the fit, and what it computes from them would be a release without a "
                    "budget; use a callback without them, and score its fitted_estimator on public rows."
                )


def run_with_callbacks(estimators: Sequence[Any], work: Callable[[], Any]) -> Any:
    """The result of some fits, before which callbacks are set up, and after which they are torn down."""
    for estimator in reversed(estimators):
        work = partial(_run_with_callbacks_of, estimator, work)
    return work()


@with_callbacks  # type: ignore[untyped-decorator]
def _run_with_callbacks_of(estimator: BaseEstimator, work: Callable[[], Any]) -> Any:
    refuse_row_callbacks(estimator._skl_callbacks)
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator)
    result = work()
    root.call_on_fit_task_end(estimator=estimator)
    return result


@dataclass(repr=False)
class FitTasks:
    """The tasks of a fit that callbacks follow, and its progress bar.

    As a context manager, it is the training: ``n_done`` counts its steps. ``attributes_at`` makes the
    attributes of the estimator at a head (k, d_in); without it, callbacks get no heads.
    """

    estimator: Any
    attributes_at: Any = None
    n_steps: int = 0
    n_done: int = 0

    @public_code()
    def stage_ended(self) -> None:
        """Report the end of a stage before the training."""
        root = vars(self.estimator).get("_callback_fit_ctx")
        if root is not None:
            task = root.subcontext("geometry", max_subtasks=0)
            task.call_on_fit_task_begin(estimator=self.estimator)
            task.call_on_fit_task_end(estimator=self.estimator)

    def __enter__(self) -> "FitTasks":
        estimator = self.estimator
        name, root = type(estimator).__name__, vars(estimator).get("_callback_fit_ctx")
        self._bar = progress_bar(total=self.n_steps, desc=name, verbose=estimator.verbose)
        self._training = None if root is None else root.subcontext("training", max_subtasks=self.n_steps)
        if self._training is not None:
            with public_code():
                self._training.call_on_fit_task_begin(estimator=estimator)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._training is not None and error[0] is None:
            with public_code():
                self._training.call_on_fit_task_end(estimator=self.estimator)

    @public_code()
    def __call__(self, ctx: StepContext, W: Any) -> bool:
        """Report a step, and return whether to stop."""
        self.n_done += 1
        if self._bar is not None:
            self._bar.update()
        if self._training is None:
            return False
        estimator = self.estimator
        task = self._training.subcontext("step")
        task.call_on_fit_task_begin(estimator=estimator)
        stop = task.call_on_fit_task_end(
            estimator=estimator,
            metadata=lambda: step_facts(ctx),
            reconstruction_attributes=self.attributes_at and partial(self.attributes_at, W),
        )
        return bool(stop)


def step_facts(ctx: StepContext) -> dict[str, Any]:
    """Public facts of a step, as :class:`~skmixdp.inspection.StepHistory` records them."""
    norms = getattr(ctx.view, "gradient_norms", None)
    return {
        "step": ctx.t,
        "n_steps": ctx.n_steps,
        "step_size": float(ctx.step_size),
        "public_weight": float(ctx.public_weight),
        "noise_multiplier": float(ctx.noise_multiplier),
        "sensitivities": tuple(float(part.sensitivity) for part in ctx.released),
        "public_gradient_norms": (
            None if norms is None or len(norms) == 0 else tuple(np.quantile(norms, _QUANTILES).tolist())
        ),
    }
