"""Methods, one adapter for each way to get a head.

A method of the configuration names an adapter and its options, so another algorithm of the library,
or another setting, is a line there. A new adapter is a module with a function
``fit(problem, epsilons, **options) -> list of Score`` and a line in :data:`ADAPTERS`.
"""

from . import diffprivlib_head, heads, hindsight, non_private, only_public, opacus_head, ppgd, private_alone
from .contract import Adapter, Score, UnavailableError

ADAPTERS = {
    "head": Adapter(heads.fit),
    "hindsight": Adapter(hindsight.fit),
    "ppgd": Adapter(ppgd.fit, varies=("shots", "seed")),
    "opacus": Adapter(opacus_head.fit),
    "diffprivlib": Adapter(diffprivlib_head.fit, varies=("seed",)),
    "only_public": Adapter(only_public.fit, varies=("start", "shots", "seed"), private=False),
    "fully_private": Adapter(private_alone.fit, varies=("seed",)),
    "fully_private_hindsight": Adapter(hindsight.fit, varies=("seed",)),
    "only_private": Adapter(private_alone.fit, varies=("shots", "seed")),
    "few_private": Adapter(private_alone.fit_few, varies=("shots", "seed")),
    "non_private": Adapter(non_private.fit, varies=(), private=False),
}

__all__ = ["ADAPTERS", "Adapter", "Score", "UnavailableError"]
