"""The procedure of a linear head's fit: its queries of private rows in order, and its shares of the budget.

:func:`prepare` makes the frozen :class:`Problem` of a fit and refuses whatever can be refused.
:func:`fit_procedure` solves it.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism, Options, Plan, Procedure, bind_rows, make_plan, sampling_of, training
from .._learning.columns import columns_in_other_units, unit_share, unmapped
from .._learning.corrections import LogitAdjustment, can_balance, start_is_useful, temperature
from .._learning.noisy_statistics import Learner, count_share, noisy_logits, share_for
from .._learning.targets import (
    FEWEST,
    TARGET_RELEASES,
    ZEROS,
    bound_shares,
    noisy_gradient_bound,
    noisy_targets,
)
from .._linear import with_weights, work_of_pass
from .._rows import RowMap, TargetMap
from .._utils.process import warn_later
from .._utils.validation import shown
from ..components.protocols import PublicInfo
from ..components.public import PublicData
from ..components.updates import TowardsStart
from ._base import EstimatorProcedure
from ._maps import MapStage, first_stage, learned_map, learns_geometry
from ._problem import FitInputs, MappedRows, refuse_record
from ._weights import OF_WEIGHTS, counting, learned_weights, public_weights, weight_shares

Array = NDArray[Any]

#: Target for the noise in the accuracy of the start.
_CHECK_ERROR = 0.03
#: With more noise than this in the accuracy, the start is not checked.
_MOST_CHECK_ERROR = 0.1

#: A fit without public rows warns if the number of rows times mu is below this multiple of the root of the
#: number of columns: noise then hides what the rows show.
_CLEAR = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A prepared fit, which has passed every check.

    ``balanced`` are the ``inputs`` with weights of private rows as far as they are known. ``first`` is the
    first stage of the map, and ``alone`` the one without public rows; None if the start is not checked.
    ``planned`` is the plan; None if it depends on releases. ``spent`` and ``checking`` are shares of the
    squared budget, by what they are spent on: what is released before the map, and after it a check of the
    start and a length that few gradients exceed.
    """

    inputs: FitInputs
    balanced: FitInputs
    first: MapStage
    alone: MapStage | None
    planned: Plan | None
    spent: dict[str, float]
    checking: dict[str, float]


def prepare(inputs: FitInputs, earlier: Sequence[Problem] = ()) -> Problem:
    """The problem of a fit, after every refusal that depends on public facts.

    ``earlier`` are problems of fits to the same private rows. Those with the same labels, weights and map
    share passes.
    """
    twins = [other for other in earlier if _same_labels(inputs, other.inputs)]
    if twins:
        inputs = replace(inputs, private=twins[0].inputs.private)
    stages = [one for other in twins for one in (other.first, other.alone) if one is not None]
    maps = [row_map for one in stages for row_map in (one.asked_map, one.row_map)]
    table, n_features = inputs.private.table, inputs.private.table.shape[1]
    mu, n_rows = inputs.budget.mu, inputs.n_rows
    if not len(inputs.X_pub) and mu * n_rows < _CLEAR * math.sqrt(n_features + 1):
        warnings.warn(
            f"this budget leaves more noise than {n_rows} {table.unit}s can show through, so "
            "predictions may be no better than guesses; pass a larger epsilon, more private rows, or public "
            "rows.",
            UserWarning,
            stacklevel=6,
        )
    spent = dict(inputs.spent)
    balanced = inputs
    if inputs.sample_weight is not None or inputs.class_weight is not None or inputs.n_counted:
        spent |= weight_shares(inputs)
        # Weights that are not known yet are assumed, until noisy ones are released.
        balanced = inputs.weighted(inputs.largest_weight or 1.0, inputs.class_weight)
        if twins:
            balanced = replace(balanced, private=twins[0].balanced.private)
    if inputs.label_share:
        spent["label shares"] = inputs.label_share
    if inputs.target_share:
        spent["scale of the targets"] = inputs.target_share
    bounded = inputs.loss.quadratic and inputs.is_default and inputs.divides
    check, first, alone, planned = _check_share(inputs), first_stage(balanced, maps), None, None
    checking = {"check of the start": check} if check else {}
    checking |= bound_shares(mu, n_rows, n_features) if bounded else {}
    if check and not inputs.private.exact and inputs.preconditions and inputs.scale is not False:
        n_columns = n_features + (inputs.loss.n_outputs if inputs.loss.quadratic else 0)
        if units := unit_share(mu, n_rows, len(inputs.X_pub), n_columns):  # 0 if units cannot be compared
            spent["check of units"] = units
    if first.shares:
        draws = refuse_ahead(balanced, first, spent | first.most | checking)
    else:
        planned = plan(balanced, first, spent | checking)
        draws = planned.recipe.draws
    if check:
        without = balanced.without_public_rows()
        alone = first_stage(without, maps)
        most = _unused(spent | first.most, inputs) | checking | alone.most
        refuse_ahead(without, alone, most | {"scale of the targets": inputs.relearned_share})
    transaction = inputs.transaction
    if transaction.event is None:  # additive models prepare again after their charge, which stays what it was
        transaction.event = inputs.budget.whole if planned is None else planned.event
    transaction.n_units, transaction.unit, transaction.rows = n_rows, table.unit, first.rows(balanced.private)
    if table.is_shared:
        transaction.work = work_of_pass(len(inputs.private.y), n_features, inputs.loss.n_outputs)
    if inputs.private.record is None and not draws:
        known = inputs.X_pub, inputs.y_pub, inputs.X_unlabeled, inputs.classes, inputs.target_map
        transaction.public = inputs.tasks.estimator, *known
    return Problem(inputs, balanced, first, alone, planned, spent, checking)


def _same_labels(one: FitInputs, other: FitInputs) -> bool:
    """Whether fits to the same private rows have the same labels and weights, by public facts."""

    def facts(inputs: FitInputs) -> tuple[Any, ...]:
        target_map, weights = inputs.target_map, inputs.class_weight
        return (
            (inputs.loss, inputs.private.dtype, inputs.private.exact, inputs.private.table.device),
            None if inputs.classes is None else inputs.classes.tolist(),
            None if target_map is None else (target_map.center.tolist(), target_map.scale.tolist()),
            inputs.target_share > 0 or inputs.target_steps > 0,
            (inputs.n_counted, inputs.largest_weight, None if weights is None else weights.tolist()),
        )

    recorded = one.private.record is not None or other.private.record is not None
    return not recorded and facts(one) == facts(other)


def fit_procedure(problem: Problem) -> EstimatorProcedure:
    """Yield the charge and the queries of a fit, and return the fitted attributes, which are released.

    It first yields the transaction, whose answer is the charge. The others are queries of private rows, with
    noisy answers.
    """
    inputs, balanced, mapped, alone = problem.inputs, problem.balanced, problem.first, problem.alone
    spent, checking, planned = problem.spent, problem.checking, problem.planned
    tasks = inputs.tasks
    learner = Learner(inputs.n_rows, inputs.members, inputs.transaction.noise, inputs.private.dtype)
    yield inputs.transaction

    if balanced is not inputs and spent:  # rows have weights
        balanced = yield from learned_weights(inputs, learner, spent)
    if inputs.label_share:
        multiplier = inputs.budget.multiplier(inputs.label_share)
        counted = noisy_logits(counting(learner, balanced), inputs.loss.n_outputs, multiplier)
        logits = yield from balanced.stage(MappedRows(balanced.private, None), counted)
        balanced = replace(balanced, label_logits=logits)
    if inputs.target_share or inputs.target_steps:
        balanced = yield from _with_scaled_targets(balanced, learner, planned)
    if planned is not None and balanced is not problem.balanced:
        planned = plan(balanced, mapped, spent | checking)
    if alone is not None and "check of units" in spent:
        found = yield from _columns_in_other_units(balanced, learner, spent["check of units"])
        if found:
            checking = {name: share for name, share in checking.items() if name != "check of the start"}
            if found[-1] >= inputs.private.table.shape[1]:
                balanced, spent = yield from _with_relearned_targets(balanced, learner, spent)
            balanced = balanced.without_public_rows()
            mapped, alone, planned = alone, None, None
    if planned is None:
        mapped = yield from learned_map(balanced, mapped, learner)
        spent = spent | mapped.shares
        planned = plan(balanced, mapped, spent | checking)
    if alone is not None:
        multiplier = inputs.budget.multiplier(checking["check of the start"])
        checked = start_is_useful(planned.info, learner, multiplier)
        if not (yield from balanced.stage(MappedRows(balanced.private, mapped.row_map), checked)):
            balanced, spent = yield from _with_relearned_targets(balanced, learner, spent)
            balanced = balanced.without_public_rows()
            mapped = yield from learned_map(balanced, alone, learner)
            spent = _unused(spent, inputs) | mapped.shares
            planned = plan(balanced, mapped, spent | checking)
    if "lengths of gradients" in checking:
        bounded = noisy_gradient_bound(planned, counting(learner, balanced), inputs.budget)
        bound = yield from balanced.stage(MappedRows(balanced.private, mapped.row_map), bounded)
        planned = plan(balanced, replace(mapped, gradient_bound=bound), spent | checking)
    rows = MappedRows(balanced.private, mapped.row_map)
    if planned.event != inputs.transaction.event:
        raise RuntimeError("the plan is not the one that was charged.")
    attributes_at = partial(tasks.attributes_at, row_map=mapped.row_map, target_map=balanced.target_map)
    with replace(tasks, n_steps=planned.n_steps, attributes_at=attributes_at) as done:
        W = yield from bind_rows(rows, training(planned, learner.noise, learner.members, done))
    fitted: dict[str, Any] = attributes_at(W)
    if not (np.all(np.isfinite(fitted["coef_"])) and np.all(np.isfinite(fitted["intercept_"]))):
        raise ValueError(
            f"the head diverged: its coefficients are not finite; pass learning_rate='auto' (now "
            f"{shown(inputs.learning_rate)}), a larger epsilon, or rows and targets of a usual "
            "scale."
        )
    report = inputs.transaction.report(
        inputs.treated_as_public,
        n_public=len(balanced.X_pub),
        plan=planned,
        computed_on="cpu" if inputs.private.exact else inputs.private.table.device,
        shares=tuple({**spent, **checking, **planned.shares}.items()),
    )
    # A callback may have stopped the fit before the planned number of steps.
    fitted |= {"learning_rate_": planned.step_size(1), "n_iter_": done.n_done, "privacy_": report}
    if inputs.private.record is not None:
        fitted["per_instance_"] = inputs.private.record
    for post_training, _ in planned.post_training:
        fitted |= post_training.attributes
    return fitted


def _unused(spent: dict[str, float], inputs: FitInputs) -> dict[str, float]:
    """Shares that were spent; those of the map by public rows, which is replaced, are renamed as unused."""
    kept = {*OF_WEIGHTS, *inputs.spent, "check of units", "scale of the targets"}
    return {name if name in kept else f"unused {name}": share for name, share in spent.items()}


# -- the plan --------------------------------------------------------------------------------


def refuse_ahead(inputs: FitInputs, mapped: MapStage, spent: dict[str, float]) -> bool:
    """Refuse a fit that the least budget left rules out; return whether its steps draw random numbers."""
    if isinstance(inputs.init, str):  # computing this start takes time, and its shape is known to be right
        inputs = replace(inputs, init="zeros")
    return plan(inputs, replace(mapped, second_moment=1.0), spent).recipe.draws


def _start_of(inputs: FitInputs, row_map: RowMap) -> Callable[[PublicData], Array]:
    """The function that makes the head before the first step, (k, d_in), from public rows alone."""
    init, classes, targets = inputs.init, inputs.classes, inputs.target_map
    logits, n_features = inputs.label_logits, inputs.private.table.shape[1]

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
        if init == "public" and data.n_rows:
            return data.solution
        W = np.zeros((data.loss.n_outputs, data.X.shape[1]))
        if logits is not None and row_map.intercept_value is not None:
            W[:, -1] = logits / row_map.intercept_value
        return W

    return start


def plan(inputs: FitInputs, mapped: MapStage, spent: dict[str, float]) -> Plan:
    """Plan the steps of a fit to mapped rows, with the part of the squared budget that is left."""
    row_map, private = mapped.row_map, inputs.private
    n_rows, loss, weights = inputs.n_rows, inputs.loss, public_weights(inputs)
    share = 1 - sum(spent.values())
    l2 = None if inputs.public_l2 == "auto" else inputs.public_l2 * len(inputs.X_pub)
    y_pub = inputs.y_pub if weights is None else with_weights(inputs.y_pub, weights)
    data = PublicData(row_map(inputs.X_pub, np.float64), y_pub, loss, l2, private.dtype)
    start = _start_of(inputs, row_map)  # which does not hold the private rows
    sampling = sampling_of(inputs.batch_size, n_rows)
    info = PublicInfo(
        view=data.view(start(data)),
        mu=inputs.budget.mu * math.sqrt(share),
        n_private=n_rows,
        batch_size=sampling.rate(n_rows) * n_rows * inputs.mean_weight,
        row_norm_bound=row_map.norm_bound,
        start=start,
        second_moment=mapped.second_moment,
        of_persons=private.table.unit != "row",
        preconditioner=mapped.preconditioner,
        gradient_bound=mapped.gradient_bound,
        centered=row_map.mean is not None,
        mean_weight=inputs.mean_weight,
    )
    if inputs.learning_rate == "auto" and not math.isfinite(info.largest_second_moment):
        raise ValueError(
            "learning_rate='auto' needs rows of a known scale; pass row_norm='unit', public rows, or a "
            "learning_rate."
        )
    strength, weighted = inputs.logit_adjustment, inputs.class_weight is not None or inputs.n_counted > 0
    constant, corrections = row_map.intercept_value, []
    if inputs.is_default and not loss.quadratic and (found := temperature(inputs.budget.mu, info)):
        corrections.append(found)
    n_classes = max(loss.n_outputs, 2)
    if strength == "auto":
        possible = inputs.is_default and loss.has_classes and n_classes > 2 and not weighted
        adjusts = possible and obstacle_to_counts(inputs) is None
    else:
        adjusts = strength != 0
        if adjusts:
            refuse_without_counts("logit_adjustment", strength, inputs)
    if adjusts and constant is not None:  # None before the map is known
        asked = None if strength == "auto" else float(strength)
        adjustment = LogitAdjustment(asked, n_classes, constant, inputs.budget.mu, info)
        # After the temperature, since the adjustment is in units of calibrated logits.
        corrections.append(adjustment.release)
    balances = strength == "auto" and not weighted and can_balance(info)
    options = Options(
        inputs.learning_rate,
        None if inputs.l2 == "auto" else inputs.l2,
        sampling,
        private.exact,
        constant if balances else None,
    )
    recipe = replace(inputs.algorithm.recipe(info, options), corrections=tuple(corrections))
    if inputs.known_map is not None and recipe.comparison is None:
        recipe = replace(recipe, update=TowardsStart(recipe.update))
    steps = make_plan(inputs.budget, recipe, info, private.dtype, share)
    if private.record is not None and steps.event.unamplified is not steps.event:
        given = inputs.tasks.estimator.record_per_instance
        refuse_record(given, "ModelMix, whose guarantee rests on mixing", "another algorithm")
    if inputs.target_steps:
        # The first releases of the plan give the scale of the targets.
        total, left = steps.n_steps, steps.n_steps - inputs.target_steps
        if left < 1:
            raise ValueError(
                f"the budget is enough for {total} releases, and the scale of the targets needs "
                f"{inputs.target_steps} before the first step; pass target_scale from prior knowledge, "
                "or a larger noise_multiplier."
            )
        shares = {"scale of the targets": inputs.target_steps / total, "training": left / total}
        steps = replace(steps, n_steps=left, shares=shares)
    return steps


def refuse_without_counts(name: str, value: object, inputs: FitInputs) -> None:
    """Refuse a parameter that needs noisy class counts if the budget has no share for them."""
    obstacle = obstacle_to_counts(inputs)
    if name == "logit_adjustment" and not inputs.fit_intercept:
        obstacle = "fit_intercept=False leaves no intercepts to adjust"
    if obstacle is not None:
        raise ValueError(
            f"{name}={value!r} needs noisy class counts, but {obstacle}; pass "
            f"{'a dict of weights or None' if name == 'class_weight' else 0}."
        )


def obstacle_to_counts(inputs: FitInputs) -> str | None:
    """Why no share of the budget can be spent on class counts; None if one can."""
    n_classes = max(inputs.loss.n_outputs, 2)
    if not inputs.budget.is_divisible:
        return "n_steps or noise_multiplier leaves no budget that could be divided"
    if inputs.batch_size is not None:
        return f"batch_size={inputs.batch_size} excludes releases over all rows"
    if not count_share(inputs.budget.mu, inputs.n_rows, n_classes):
        return f"{inputs.n_rows} rows of {n_classes} classes are too few for this budget"
    return None


# -- the start and the targets ---------------------------------------------------------------


def _check_share(inputs: FitInputs) -> float:
    """Share of the squared budget for checking the start on private rows; 0 if the check is not useful."""
    init = inputs.init
    enough = len(inputs.X_pub) >= (2 if inputs.loss.has_classes else FEWEST)
    public = isinstance(init, str) and init == "public" and enough
    # The check may change the centre after the charge. Without a bound on lengths, a row could then be too
    # long, and refusing it would reveal it.
    if not (inputs.is_default and public and inputs.divides) or inputs.row_norm is None:
        return 0.0
    without = inputs.without_public_rows()
    if without.whitens_alone and not learns_geometry(without, None):
        return 0.0
    return share_for(inputs.budget.mu, inputs.n_rows, 1.0, _CHECK_ERROR, _MOST_CHECK_ERROR)


def _columns_in_other_units(inputs: FitInputs, learner: Learner, share: float) -> Procedure[list[int]]:
    """Numbers of the columns, then targets, that have other units in public rows; a warning names them."""
    n_features = inputs.private.table.shape[1]
    y_pub = inputs.y_pub if inputs.loss.quadratic else np.zeros((len(inputs.X_pub), 0))
    asked = columns_in_other_units(learner, inputs.X_pub, y_pub, inputs.budget.multiplier(share))
    rows = MappedRows(inputs.private, unmapped(n_features))
    other = yield from inputs.stage(rows, asked)
    found: list[int] = np.flatnonzero(other).tolist()
    if found:
        columns = [column for column in found if column < n_features][:8]
        named = f"the columns {columns} of X_pub, counted from 0," if columns else "the targets y_pub"
        warn_later(
            f"{named} have another unit or centre than private ones, so the fit left them out; pass public "
            "rows in the same units and transformed alike, or none."
        )
    return found


def _with_relearned_targets(
    inputs: FitInputs, learner: Learner, spent: dict[str, float]
) -> Procedure[tuple[FitInputs, dict[str, float]]]:
    """The inputs with noisy units of the targets in place of those of public targets, and what is spent."""
    if not inputs.relearned_share:
        return inputs, spent
    private, target_map, k = inputs.private, inputs.target_map, inputs.loss.n_outputs
    assert target_map is not None
    y = np.column_stack([private.y[:, :k] * target_map.scale + target_map.center, private.y[:, k:]])
    raw = replace(inputs, private=replace(private, y=y), target_share=inputs.relearned_share)
    inputs = yield from _with_scaled_targets(raw, learner, None)
    return inputs, spent | {"scale of the targets": raw.target_share}


def _with_scaled_targets(inputs: FitInputs, learner: Learner, planned: Plan | None) -> Procedure[FitInputs]:
    """The inputs with targets of unit scale, by a noisy centre and scale."""
    k, private, target_map = inputs.loss.n_outputs, inputs.private, inputs.target_map
    assert target_map is not None
    if inputs.target_share:
        multiplier = inputs.budget.multiplier(inputs.target_share, TARGET_RELEASES)
    else:
        assert planned is not None  # without a share, the first steps of the plan release the scale
        learner = replace(learner, sampling=planned.recipe.sampling)
        multiplier = planned.noise_multiplier
    mechanism = GaussianMechanism(multiplier, TARGET_RELEASES, learner.noise)
    asked = noisy_targets(learner, k, mechanism)
    center, scale = yield from inputs.stage(MappedRows(private, None), asked)
    if not np.all(scale > 0):
        warn_later(unknown_scale("is hidden by noise"))
    elif np.any(scale < ZEROS):
        warn_later(
            "nearly all targets y are 0 and noise hides the others, so predictions are about 0; pass "
            "target_scale from prior knowledge, a larger epsilon or public rows."
        )
    known = center if inputs.learns_center else target_map.center
    spread = np.hypot(scale, center - known)
    target_map = TargetMap(known, np.where(scale > 0, spread, 1.0))
    y = target_map(private.y[:, :k], private.dtype)
    if private.y.shape[1] > k:  # weights, in double precision
        y = np.column_stack([y, private.y[:, k:]])
    y_pub = target_map(inputs.y_pub, np.float64)
    return replace(inputs, private=replace(private, y=y), y_pub=y_pub, target_map=target_map)


def unknown_scale(why: str) -> str:
    """The warning that the fit assumes targets of unit scale, since their scale is not known."""
    return (
        f"the scale of the targets y {why}, so the fit assumes a scale of 1; pass target_scale and "
        "target_center from prior knowledge, or two public rows or more."
    )
