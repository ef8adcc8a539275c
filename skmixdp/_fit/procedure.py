"""The procedure of a fit: every way that it may go is planned, then it is charged, then its stages run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .._engine import ChargedProcedure
from .._linear.products import work_of_pass
from .._utils.process import warn
from .stage import Fit, without_queries
from .stages.training import planned

#: A fit without public rows warns if the number of rows times mu is below this multiple of the root of the
#: number of columns: noise then hides what the rows show.
_CLEAR = 3.0

#: What rounding may add to a price.
_ROUNDING = 1e-12


def possible_fits(fit: Fit, first: int = 0) -> Iterator[Fit]:
    """Every way that a fit may go before its training, from a place on; first the usual one."""
    following = next(fit.priced(fit.stages.before, first), None)
    if following is None:
        yield fit
        return
    place, stage, price = following
    for outcome in stage.outcomes(fit, price):
        # Only other public rows can change the prices of earlier stages.
        yield from possible_fits(outcome, place + 1 if outcome.public is fit.public else 0)


def prepared(fit: Fit, earlier: Sequence[Fit] = ()) -> Fit:
    """The fit before its charge, after every refusal.

    ``earlier`` fits of one call with the same rows, labels, weights and map share its passes.
    """
    for previous in earlier:
        if _same_labels(fit, previous):
            data = replace(fit.data, private=previous.data.private, loss=previous.data.loss)
            fit = replace(fit, data=data)
            break
    else:
        if fit.weights.of_any_class or fit.weights.sample_weight is not None:
            # Weights that are not known yet are assumed.
            fit = replace(fit, data=fit.weights.applied(fit.weights.of_classes))
    n_rows, needed = fit.data.n_rows, _CLEAR * math.sqrt(fit.data.n_features + 1)
    if not len(fit.public.X) and fit.budget.mu * n_rows < needed:
        warn(
            f"this budget leaves more noise than {n_rows} {fit.data.private.table.unit}s can show "
            "through, so predictions may be no better than guesses; pass a larger epsilon, more private "
            "rows, or public rows. Declare typical values of columns in scale: that costs nothing."
        )
    following = next(fit.priced(fit.stages.before), None)
    if following is not None and not following[2]:  # what is free needs no charge
        fit = without_queries(following[1], fit)
    ways = list(possible_fits(fit))
    foreseen = []
    if not ways[0].assumed:  # what is usual is planned as it will run
        usual = planned(ways.pop(0))
        fit = replace(fit, recipe=usual.recipe, plan=usual.plan)
        foreseen.append(usual)
    # Of the ways with as many public rows, the one with the least budget left is planned: it is the dearest.
    ways.sort(key=lambda way: -way.share_left)
    foreseen += map(planned, {len(way.public.X): way for way in ways}.values())
    _describe(fit, foreseen[0])
    return fit


def procedure(fit: Fit) -> ChargedProcedure[Fit]:
    """Yield the transaction of a prepared fit, then the queries of its stages; return the fit at its end.

    The answer to the transaction is the charge. What fails after it fails by released numbers alone.
    """
    yield fit.transaction
    place = 0
    while (following := next(fit.priced(fit.stages.all, place), None)) is not None:
        (place, stage, price), before = following, fit
        fit = yield from stage.run(fit, price)
        place = place + 1 if fit.public is before.public else 0
        if before.share_left - fit.share_left > price + _ROUNDING:
            raise RuntimeError(f"the stage {stage.name!r} has spent more than its price.")
        if price and fit.head is None:
            fit.tasks.stage_ended()
    return fit


def _same_labels(fit: Fit, previous: Fit) -> bool:
    """Whether fits to the same private rows have the same labels and weights, by public facts."""

    def facts(fit: Fit) -> tuple[Any, ...]:
        target_map, weights, data = fit.labels.target_map, fit.weights, fit.weights.bare
        return (
            (data.loss, data.private.dtype, data.private.exact, data.private.table.device),
            None if fit.settings.classes is None else fit.settings.classes.tolist(),
            None if target_map is None else (target_map.center.tolist(), target_map.scale.tolist()),
            (fit.labels.is_scaled, weights.n_counted, weights.largest, weights.sample_weight is None),
            None if weights.of_classes is None else weights.of_classes.tolist(),
        )

    recorded = fit.data.private.record is not None or previous.data.private.record is not None
    return not recorded and facts(fit) == facts(previous)


def _describe(fit: Fit, way: Fit) -> None:
    """Complete the transaction of a fit, by a planned way that it may go."""
    transaction, table, data = fit.transaction, way.data.private.table, way.data
    assert way.plan is not None and way.recipe is not None
    keys = (stage.rows(fit) for _, stage, _ in fit.priced((*fit.stages.before, fit.stages.training)))
    transaction.rows = next(rows for rows in keys if rows is not None)
    transaction.event, transaction.n_units, transaction.unit = way.plan.event, fit.data.n_rows, table.unit
    if table.is_shared:
        transaction.work = work_of_pass(len(data.private.y), data.n_features, data.loss.n_outputs)
    if data.private.record is None and not way.recipe.draws:
        public, settings = fit.public, fit.settings
        facts = public.X, public.y, public.unlabeled, settings.classes, fit.labels.target_map
        transaction.public = fit.tasks.estimator, *facts
