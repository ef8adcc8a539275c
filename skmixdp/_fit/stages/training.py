"""The training of the head, which gets what is left of the budget: its plan, its clip and its steps."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..._engine import Options, Plan, Procedure, make_plan, sampling_of, training, training_steps
from ..._linear.arrays import row_norms
from ..._linear.losses import with_weights
from ..._rows.source import BinCounts, Block, Contribution
from ...components import BalancedSteps
from ...components.protocols import FloatArray, PrivateQuery, PublicInfo, ReleasedArray
from ...components.public import PublicData
from ...components.updates import TowardsStart
from ...privacy.accounting.budgets import Budget
from ..stage import RARE, Fit, Head, MappedRows, Price, Stage, Steps
from ..statistics import Learner, Learning
from .comparison import can_balance

Array = NDArray[Any]


@runtime_checkable
class NamedStart(Protocol):
    """A start that is computed from the names of the classes."""

    def start(self, classes: Array, data: PublicData, widen: Callable[[Array], Array]) -> Array:
        """The head (k, d_in); ``widen`` turns coefficients (k, n_features) into a head."""


def public_info(fit: Fit, share: float = 1.0) -> PublicInfo:
    """The public facts of a training for a share of mu squared."""
    settings, private, mapping = fit.settings, fit.data.private, fit.mapping
    row_map, n_rows = mapping.row_map, fit.data.n_rows
    l2 = None if settings.public_l2 == "auto" else settings.public_l2 * len(fit.public.X)
    weights = fit.weights.of_public(fit.public.y)
    y_pub = fit.public.y if weights is None else with_weights(fit.public.y, weights)
    moves = _moves(fit)
    data = PublicData(row_map(fit.public.X, np.float64), y_pub, fit.data.loss, l2, private.dtype, moves)
    start = _start_of(fit, moves)  # which does not hold the private rows
    return PublicInfo(
        view=data.view(start(data)),
        mu=fit.budget.mu * math.sqrt(share),
        n_private=n_rows,
        batch_size=sampling_of(settings.batch_size, n_rows).rate(n_rows) * n_rows * fit.weights.mean,
        row_norm_bound=row_map.norm_bound,
        start=start,
        # If a release will tell the second moment of rows of bounded length, a plan assumes 1.
        second_moment=1.0 if fit.assumed and settings.rows.norm is not None else mapping.second_moment,
        of_persons=private.table.unit != "row",
        moments=mapping.moments,
        preconditioner=mapping.preconditioner,
        gradient_bound=mapping.gradient_bound,
        centered=row_map.mean is not None,
        mean_weight=fit.weights.mean,
    )


def planned(fit: Fit) -> Fit:
    """The fit with a plan of its training, which gets what is left after all other releases."""
    if fit.plan is not None:
        return fit
    settings, private, row_map = fit.settings, fit.data.private, fit.mapping.row_map
    all_spent = fit  # as if all stages before the training had run, so that the rest is for the training
    for _, stage, due in fit.priced(fit.stages.before):
        all_spent = all_spent.spent(stage, due)
    share = all_spent.share_left
    info = public_info(fit, share)
    if settings.learning_rate == "auto" and not math.isfinite(info.largest_second_moment):
        raise ValueError(
            "learning_rate='auto' needs rows of a known scale; pass rows=RowMapping(norm='unit'), "
            "public rows, or a learning_rate."
        )
    balances = settings.logit_adjustment == "auto" and not fit.weights.of_any_class and can_balance(info)
    options = Options(
        settings.learning_rate,
        None if settings.l2 == "auto" else settings.l2,
        sampling_of(settings.batch_size, fit.data.n_rows),
        private.exact,
        row_map.intercept_value if balances else None,
    )
    algorithm = settings.algorithm
    if fit.labels.rarest < RARE and len(fit.public.X):  # which have other shares, and cannot judge the head
        algorithm = replace(algorithm, shrink=False)
    recipe = algorithm.recipe(info, options)
    if settings.known_map is not None and recipe.comparison is None:
        recipe = replace(recipe, update=TowardsStart(recipe.update))
    fit = replace(fit, recipe=recipe)
    after = len(fit.stages.before) + 1
    share -= sum(due for _, stage, due in fit.priced(fit.stages.all, after))
    plan = make_plan(fit.budget, recipe, info, private.dtype, share)
    if private.record is not None and plan.event.unamplified is not plan.event:
        recorded = fit.tasks.estimator.record_per_instance
        refuse_record(recorded, "ModelMix, whose guarantee rests on mixing", "another algorithm")
    if n_steps_before := all_spent.n_steps_before:
        if plan.n_steps <= n_steps_before:
            raise ValueError(
                f"the budget is enough for {plan.n_steps} releases, and the scale of the targets needs "
                f"{n_steps_before} before the first step; pass target_scale from prior knowledge, "
                "or a larger noise_multiplier."
            )
        plan = replace(plan, n_steps=plan.n_steps - n_steps_before)
    return replace(fit, plan=plan)


def _moves(fit: Fit) -> Array:
    """Logits (k,) of the start less those of the public rows, whose classes may have other shares."""
    y, logits = fit.public.y, fit.labels.logits
    if logits is None:
        return np.zeros(fit.data.loss.n_outputs)
    if not len(y):
        return logits
    n_first, n_second = np.bincount(y, fit.weights.of_public(y), minlength=2).tolist()
    return logits - math.log((n_second + 1) / (n_first + 1))


def _start_of(fit: Fit, moves: Array) -> Callable[[PublicData], Array]:
    """The function that makes the head before the first step, (k, d_in), from public rows alone.

    ``moves`` (k,) are added to its outputs. For a fit that may come, a start by name is zeros: its shape is
    known to be right.
    """
    init = "zeros" if fit.assumed and isinstance(fit.settings.init, str) else fit.settings.init
    classes, targets = fit.settings.classes, fit.labels.target_map
    row_map, n_features = fit.mapping.row_map, fit.data.n_features

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
        if row_map.intercept_value is not None:
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


#: Share of mu squared for a first head.
_FIRST_SHARE = 0.08
#: Share of mu squared for the histogram of the lengths of its gradients.
_LENGTHS_SHARE = 0.02
#: Most steps of the first head.
_FIRST_STEPS = 15
#: Bins of lengths for each power of two.
_PARTS = 2
#: Exponent of the smallest length.
_LEAST = -10
#: Exponent of the largest length.
_LARGEST = 12
#: Number of bins of lengths.
BINS = _PARTS * (_LARGEST - _LEAST)
#: Expected number of rows beyond the clip, times mu and divided by the width of a row. Fewer rows mean more
#: noise, and more rows mean more bias. On five skewed and five usual targets, 2 and 6 were about as good.
_ROWS_BEYOND = 3.0
#: Standard deviations of noise above which a bin surely has rows.
_SURE_DEVIATIONS = 5.0
#: Standard deviations of noise above which a bin probably has rows.
_LIKELY_DEVIATIONS = 2.0
#: Beyond the last sure bin, this many bins count if they probably have rows: a length four times as large.
_FURTHER_BINS = 2 * _PARTS
#: Largest noise in the head, ``width / (mu n_rows)``, with which a longer clip helps. With more noise, the
#: bias of Huber's loss is smaller than the noise.
_MOST_NOISE_OF_HEAD = 0.01


def noisy_gradient_bound(plan: Plan, learner: Learner, budget: Budget) -> Learning[float]:
    """A length that few gradients of private rows exceed at a first head, for squared loss.

    The best threshold for a noisy sum is exceeded by about as many rows as the noise outweighs.

    *Guarantee*: the releases of the first head, and one of a histogram, to which a row adds 1.

    Source: Amin, Kulesza, Munoz Medina and Vassilvitskii 2019, "Bounding user contributions: a bias-variance
    trade-off in differential privacy".
    """
    info = replace(plan.info, mu=budget.mu * math.sqrt(_FIRST_SHARE))
    assert isinstance(plan.recipe.steps, BalancedSteps)
    recipe = replace(plan.recipe, comparison=None, steps=replace(plan.recipe.steps, maximum=_FIRST_STEPS))
    first = make_plan(budget, recipe, info, plan.dtype, _FIRST_SHARE)
    W = yield from training(first, learner.noise, learner.members)
    query = PrivateQuery(np.nan_to_num(W), _lengths, (ReleasedArray(1.0),))
    counts, noise = yield from learner.ask(budget.multiplier(_LENGTHS_SHARE), query)
    # Rows at and beyond each bin, and the standard deviation of their noise.
    beyond = np.cumsum(counts[::-1])[::-1]
    deviation = noise * np.sqrt(np.arange(BINS, 0, -1))
    outweighed = _ROWS_BEYOND * W.shape[1] / budget.mu
    surely, rule = (
        int(np.append(beyond <= np.maximum(outweighed, times * deviation), True).argmax())
        for times in (_SURE_DEVIATIONS, _LIKELY_DEVIATIONS)
    )
    return length_at(min(rule, surely + _FURTHER_BINS))


def length_at(place: int) -> float:
    """The shortest length in a bin; all lengths in the bins before are shorter."""
    return float(2.0 ** (_LEAST + place / _PARTS))


def places_of(lengths: FloatArray) -> NDArray[np.intp]:
    """Bins of lengths; the end bins have all other lengths."""
    places = _PARTS * (np.log2(np.maximum(lengths, 2.0**_LEAST)) - _LEAST)
    # Unlike np.clip, this replaces NaN.
    return np.asarray(np.fmin(places, BINS - 1).astype(np.intp))


def _lengths(Z: FloatArray, block: Block) -> Contribution:
    """Bins (rows, 1) of the lengths of gradients without weights."""
    residuals = Z.astype(np.float64) - np.asarray(block.y)[:, : Z.shape[1]]
    return None, BinCounts(places_of(row_norms(residuals) * block.norms)[:, np.newaxis], BINS)


class GradientLengths(Stage):
    """The clip of a regression with little noise."""

    name = "lengths of gradients"
    limits = (_FIRST_SHARE + _LENGTHS_SHARE,) * 2
    needs = ("targets", "default", "divides")
    assumes = False  # the plan of the first head tells what is left

    def price(self, fit: Fit) -> Price | None:
        clear = fit.data.n_features <= _MOST_NOISE_OF_HEAD * fit.budget.mu * fit.data.n_rows
        return self.limits[0] if clear else None

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        return (("first head", _FIRST_SHARE), (self.name, _LENGTHS_SHARE))

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        fit = planned(fit)
        assert fit.plan is not None
        bound = yield from fit.ask(
            noisy_gradient_bound(fit.plan, fit.counting, fit.budget), fit.mapping.row_map
        )
        return fit.spent(self, price).mapped(gradient_bound=bound)


class Training(Stage):
    """The steps of the algorithm."""

    name = "training"
    limits = (0.0, 1.0)

    def price(self, fit: Fit) -> Price | None:
        return fit.share_left

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        assert fit.plan is not None
        if fit.n_steps_before:
            return ((self.name, Steps(fit.plan.n_steps)),)
        return ((self.name, price),) if price < 1 else ()

    def rows(self, fit: Fit) -> MappedRows:
        return fit.data.private.mapped(fit.mapping.row_map)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        fit = planned(fit)
        plan = fit.plan
        assert plan is not None
        if plan.event != fit.transaction.event:
            raise RuntimeError("the plan is not the one that was charged.")
        attributes_at = partial(
            fit.tasks.attributes_at, row_map=fit.mapping.row_map, target_map=fit.labels.target_map
        )
        with replace(fit.tasks, n_steps=plan.n_steps, attributes_at=attributes_at) as done:
            queries = training_steps(plan, fit.transaction.noise, fit.data.members, done)
            W, state = yield from fit.ask(queries, fit.mapping.row_map)
        # A callback may have stopped the fit before the planned number of steps.
        return fit.spent(self, plan.share, head=Head(W, state, done.n_done))
