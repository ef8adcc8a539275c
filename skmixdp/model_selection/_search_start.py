"""How a search begins: its trials are drawn, checked and charged for, before anything is released."""

import uuid
from typing import Any

import joblib

from ..privacy import NoiseSource
from ._candidates import Candidates
from ._resume import Progress
from ._search_plan import SearchPlan, seed_of
from ._search_rows import Rows
from ._trial_warnings import common, quiet, recorded, show
from ._trials import Allowance, head_of, prepare, rehearse, silenced

#: Seeds of the trials of a seeded search.
_SEEDS = 2**32


def begin(
    search: Any,
    plan: SearchPlan,
    candidates: Candidates,
    rows: Rows,
    progress: Progress,
    shown: list[Warning],
) -> tuple[str, list[dict[str, Any]], list[int | None], Any]:
    """Draw the trials, check that they can be run, and charge for them.

    Of a grid all candidates are checked, drawn or not: neither an error nor the time that this takes
    depends on what was drawn.
    """
    seed, (_, head) = seed_of(search.random_state), head_of(search.estimator)
    noise = NoiseSource(seed)
    tried = plan.draw(candidates, noise)
    seeds = [None if seed is None else int(u * _SEEDS) for u in noise.uniform((len(tried) + 1,))]
    # None at all is checked as one, so that bad input is an error whatever was drawn.
    checked = candidates.every() if candidates.size is not None else tried or [candidates.at(0.0)]
    warned = []
    with quiet():
        for candidate in {joblib.hash(one): one for one in checked}.values():
            with recorded() as caught:
                rehearse(prepared(search, plan, candidate, seeds[0], rehearsal=True), rows)
            warned.append(caught)
    if plan.strategy == "grid":
        show((warning for caught in warned for warning in caught), shown, stacklevel=4)
    elif candidates.size is not None:  # what all candidates have in common tells of none
        show(common(warned), shown, stacklevel=4)
    charge = None
    if search.ledger is not None:
        charge = search.ledger.charge(
            plan.terms.event(plan.trials, plan.fit_epsilon),
            neighboring=plan.terms.neighboring,
            description=f"PrivateSearchCV of {type(head).__name__}",
            private=not is_seeded(search),
        )
    drawn = uuid.uuid4().hex, tried, seeds, charge
    progress.save(drawn)
    return drawn


def prepared(
    search: Any, plan: SearchPlan, candidate: dict[str, Any], seed: int | None, *, rehearsal: bool = False
) -> Any:
    """A candidate as an estimator with its share of the budget, that cannot spend more than it.

    ``seed`` is that of the trial in a seeded search; a ``rehearsal`` stops before its first release.
    """
    terms, epsilon = plan.terms, plan.fit_epsilon
    allowance = Allowance(
        terms.fit_mu(epsilon),
        terms.neighboring,
        terms.noise,
        private=not is_seeded(search),
        rehearsal=rehearsal,
    )
    settings = {"epsilon": epsilon, "delta": search.delta, "ledger": allowance}
    if seed is not None:
        settings["random_state"] = seed
    trial = prepare(search.estimator, candidate, settings)
    return silenced(trial) if plan.strategy == "random" else trial


def is_seeded(search: Any) -> bool:
    """Whether the noise of all trials comes from seeds; trials that are not alike in this are refused."""
    own: bool = search.random_state is not None
    return own or head_of(search.estimator)[1].random_state is not None
