"""The plan of the training: public facts at the start, the algorithm's recipe, and what is left for it."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._engine import Options, make_plan
from .._linear import with_weights
from ..components.protocols import PublicInfo
from ..components.public import PublicData
from ..components.updates import TowardsStart
from .stage import Fit
from .stages.comparison import can_balance

Array = NDArray[Any]


@runtime_checkable
class NamedStart(Protocol):
    """A start that is computed from the names of the classes."""

    def start(self, classes: Array, data: PublicData, widen: Callable[[Array], Array]) -> Array:
        """The head (k, d_in); ``widen`` turns coefficients (k, n_features) into a head."""


def planned(fit: Fit) -> Fit:
    """The fit with a plan of its training, which gets what is left after all other releases."""
    if fit.plan is not None:
        return fit
    settings, private, loss = fit.settings, fit.data.private, fit.data.loss
    mapping, row_map, n_rows = fit.mapping, fit.row_map, fit.n_rows
    all_spent = fit.set_aside()
    share = all_spent.left
    l2 = None if settings.public_l2 == "auto" else settings.public_l2 * len(fit.public.X)
    weights = fit.weights.of_public(fit.public.y)
    y_pub = fit.public.y if weights is None else with_weights(fit.public.y, weights)
    data = PublicData(row_map(fit.public.X, np.float64), y_pub, loss, l2, private.dtype)
    start = _start_of(fit)  # which does not hold the private rows
    sampling = fit.sampling
    info = PublicInfo(
        view=data.view(start(data)),
        mu=fit.mu * math.sqrt(share),
        n_private=n_rows,
        batch_size=sampling.rate(n_rows) * n_rows * fit.weights.mean,
        row_norm_bound=row_map.norm_bound,
        start=start,
        # What is learned of rows of bounded length tells their second moment.
        second_moment=1.0 if fit.assumed and settings.rows.norm is not None else mapping.second_moment,
        of_persons=private.table.unit != "row",
        moments=mapping.moments,
        preconditioner=mapping.preconditioner,
        gradient_bound=mapping.gradient_bound,
        centered=row_map.mean is not None,
        mean_weight=fit.weights.mean,
    )
    if settings.learning_rate == "auto" and not math.isfinite(info.largest_second_moment):
        raise ValueError(
            "learning_rate='auto' needs rows of a known scale; pass rows=RowMapping(norm='unit'), "
            "public rows, or a learning_rate."
        )
    balances = settings.logit_adjustment == "auto" and not fit.weights.of_any_class and can_balance(info)
    options = Options(
        settings.learning_rate,
        None if settings.l2 == "auto" else settings.l2,
        sampling,
        private.exact,
        row_map.intercept_value if balances else None,
    )
    recipe = settings.algorithm.recipe(info, options)
    if settings.known_map is not None and recipe.comparison is None:
        recipe = replace(recipe, update=TowardsStart(recipe.update))
    fit = replace(fit, recipe=recipe)
    if later := [price for stage in fit.stages.after if (price := stage.price(fit))]:
        share -= sum(later)
    plan = make_plan(fit.budget, recipe, info, private.dtype, share)
    if private.record is not None and plan.event.unamplified is not plan.event:
        recorded = fit.tasks.estimator.record_per_instance
        refuse_record(recorded, "ModelMix, whose guarantee rests on mixing", "another algorithm")
    if n_first := all_spent.n_first:
        if plan.n_steps <= n_first:
            raise ValueError(
                f"the budget is enough for {plan.n_steps} releases, and the scale of the targets needs "
                f"{n_first} before the first step; pass target_scale from prior knowledge, "
                "or a larger noise_multiplier."
            )
        plan = replace(plan, n_steps=plan.n_steps - n_first)
    return replace(fit, plan=plan)


def _start_of(fit: Fit) -> Callable[[PublicData], Array]:
    """The function that makes the head before the first step, (k, d_in), from public rows alone.

    For a fit that may come, computing a start by name takes time, and its shape is known to be right.
    """
    init = "zeros" if fit.assumed and isinstance(fit.settings.init, str) else fit.settings.init
    classes, targets, logits = fit.settings.classes, fit.labels.target_map, fit.labels.logits
    row_map, n_features = fit.row_map, fit.data.n_features
    public_logit = 0.0
    if logits is not None and len(fit.public.X):  # classes have other shares among public rows
        y = fit.public.y
        n_first, n_second = np.bincount(y, fit.weights.of_public(y), minlength=2).tolist()
        public_logit = math.log((n_second + 1) / (n_first + 1))

    def widen(coef: Array) -> Array:
        if coef.shape[1] != n_features:
            raise ValueError(
                f"init has encodings of {coef.shape[1]} features, but X has {n_features}; "
                "encode the class names with the network that produced the rows."
            )
        return row_map.join(coef, len(coef), n_features)

    def start(data: PublicData) -> Array:
        if isinstance(init, np.ndarray):
            coef = init
            if targets is not None:
                coef = np.atleast_2d(coef)
                if coef.shape[0] == len(targets.scale):  # another shape is refused below
                    coef = coef / targets.scale[:, np.newaxis]
                    if coef.shape[1] == n_features + 1:
                        coef[:, -1] -= targets.center / targets.scale
            return row_map.join(coef, data.loss.n_outputs, n_features)
        if not isinstance(init, str):
            assert classes is not None  # targets have no names
            return np.asarray(init.start(classes, data, widen))
        public = init == "public" and data.n_rows > 0
        W: Array = data.solution if public else np.zeros((data.loss.n_outputs, data.X.shape[1]))
        moves = logits if logits is None or not public else logits - public_logit
        if moves is not None and row_map.intercept_value is not None:
            W = W.copy()
            W[:, -1] += moves / row_map.intercept_value
        return W

    return start


def refuse_record(value: object, obstacle: str, remedy: str) -> NoReturn:
    """Refuse the record of each row's own privacy loss."""
    raise ValueError(
        f"record_per_instance={value!r} cannot be combined with {obstacle}; pass {remedy}, or "
        "record_per_instance=False."
    )
