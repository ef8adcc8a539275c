"""Methods, one adapter for each way to get a head.

A method of the configuration names an adapter and its options, so another algorithm of the library,
or another setting, is a line there. A new adapter is a module with a function
``fit(problem, epsilons, **options) -> list of Score`` and a line in :data:`ADAPTERS`.
"""

from . import (
    adassp,
    diffprivlib_head,
    dp_ebm,
    feature_covariance,
    heads,
    hindsight,
    least_squares,
    non_private,
    objective_perturbation,
    only_public,
    opacus_head,
    ppgd,
    private_alone,
    prototypes,
    references,
    ridge,
    scaled,
    scaling_rule,
)
from .contract import Adapter, Score, UnavailableError

ADAPTERS = {
    "head": Adapter(heads.fit),
    "hindsight": Adapter(hindsight.fit),
    "ppgd": Adapter(ppgd.fit, varies=("shots", "seed")),
    "opacus": Adapter(opacus_head.fit),
    "ridge": Adapter(ridge.fit, varies=("shots", "seed")),
    "private_prototypes": Adapter(prototypes.fit_mean, varies=("shots", "seed")),
    "public_prototypes": Adapter(prototypes.fit_public, varies=("shots", "seed")),
    "least_squares": Adapter(least_squares.fit, varies=("shots", "seed")),
    "feature_covariance": Adapter(feature_covariance.fit, varies=("shots", "seed")),
    "scaling_rule": Adapter(scaling_rule.fit, varies=("shots", "seed")),
    "objective_perturbation": Adapter(objective_perturbation.fit, varies=("shots", "seed")),
    "adassp": Adapter(adassp.fit, varies=("shots", "seed")),
    "boosted_adassp": Adapter(adassp.fit_boosted, varies=("shots", "seed")),
    "scaled": Adapter(scaled.fit, varies=("shots", "seed")),
    "base_rates": Adapter(references.fit_base_rates, varies=("seed",), private=False),
    "standardised": Adapter(references.fit_standardised, varies=("seed",), private=False),
    "diffprivlib": Adapter(diffprivlib_head.fit, varies=("seed",)),
    "additive": Adapter(heads.fit_additive, varies=("shots", "seed")),
    "dp_ebm": Adapter(dp_ebm.fit, varies=("seed",)),
    "boosting": Adapter(references.fit_boosting, varies=("seed",), private=False),
    "splines": Adapter(references.fit_splines, varies=("seed",), private=False),
    "only_public": Adapter(only_public.fit, varies=("start", "shots", "seed"), private=False),
    "fully_private": Adapter(private_alone.fit, varies=("seed",)),
    "fully_private_hindsight": Adapter(hindsight.fit, varies=("seed",)),
    "only_private": Adapter(private_alone.fit, varies=("shots", "seed")),
    "few_private": Adapter(private_alone.fit_few, varies=("shots", "seed")),
    "non_private": Adapter(non_private.fit, varies=(), private=False),
}

__all__ = ["ADAPTERS", "Adapter", "Score", "UnavailableError"]
