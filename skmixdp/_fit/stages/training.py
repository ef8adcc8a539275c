"""The training of the head, which gets what is left of the budget."""

from dataclasses import replace
from functools import partial

from ..._engine import Procedure, bind_rows, training_steps
from ..planning import planned
from ..rows import MappedRows
from ..stage import Fit, Head, Price, Stage, Steps


class Training(Stage):
    """The steps of the algorithm."""

    name = "training"
    limits = (0.0, 1.0)

    def price(self, fit: Fit) -> Price | None:
        return fit.left

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        assert fit.plan is not None
        if fit.n_first:
            return ((self.name, Steps(fit.plan.n_steps)),)
        return ((self.name, price),) if price < 1 else ()

    def rows(self, fit: Fit) -> MappedRows:
        return fit.data.private.mapped(fit.row_map)

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        fit = planned(fit)
        plan = fit.plan
        assert plan is not None
        if plan.event != fit.transaction.event:
            raise RuntimeError("the plan is not the one that was charged.")
        attributes_at = partial(
            fit.tasks.attributes_at, row_map=fit.row_map, target_map=fit.labels.target_map
        )
        with replace(fit.tasks, n_steps=plan.n_steps, attributes_at=attributes_at) as done:
            queries = training_steps(plan, fit.transaction.noise, fit.data.members, done)
            W, state = yield from bind_rows(self.rows(fit), queries)
        # A callback may have stopped the fit before the planned number of steps.
        return replace(fit.spent(self, plan.share), head=Head(W, state, done.n_done))
