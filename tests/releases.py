"""Every public call that releases noisy numbers, by name: one line here has every contract tested.

Each takes rows, labels and the terms of its release: ``epsilon``, ``delta``, ``neighboring``, ``ledger``,
``random_state``, ``noise`` and ``groups``, as far as it has them.
"""

import copy
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

import skmixdp
from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPPoissonRegressor,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    MixedDPPoissonRegressor,
    MixedDPRidge,
    fit_many,
)
from skmixdp.algorithms import DPZero
from skmixdp.inference import private_inference
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler

N = 1200
_rng = np.random.default_rng(0)
X = _rng.normal(size=(N, 3))
TWO = (X[:, 0] + _rng.normal(size=N) > 0).astype(int)
THREE = np.arange(N) % 3
TARGETS = X @ [1.0, 2.0, 0.0] + _rng.normal(size=N)
COUNTS = _rng.poisson(np.exp(0.3 * X[:, 0]))
LABELS = np.column_stack([TWO, 1 - TWO])
#: Two rows of each of 600 persons.
PERSONS = np.arange(N) // 2

TWO_CLASSES = MixedDPLogisticRegression(classes=[0, 1])
THREE_CLASSES = MixedDPLogisticRegression(classes=[0, 1, 2])
RIDGE = MixedDPRidge(target_scale=1.0)


class Release(NamedTuple):
    """A call, its labels, the numbers that it releases, what it does not have, and how often it can warn.

    ``lacks`` has terms, forms of rows, "refusal of gaps" if it takes missing cells, and "grid" if it adds up
    what is on no grid.
    """

    call: Callable[..., Any]
    y: Any
    numbers: Callable[[Any], Any]
    lacks: frozenset[str] = frozenset()
    n_warnings: int = 1

    def __call__(self, X: Any = X, y: Any = None, **terms: Any) -> Any:
        return self.call(X, self.y if y is None else y, **terms)

    def report(self, result: Any) -> Any:
        """The privacy report of what was released; a score alone has none."""
        result = result[-1] if isinstance(result, list) else result
        return getattr(result, "privacy_", getattr(result, "privacy", None))


def _persons(groups: Any) -> dict[str, Any]:
    return {} if groups is None else {"groups": groups}


def _fit(head: Any, **arguments: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, groups: Any = None, **terms: Any) -> Any:
        return clone(head).set_params(**terms).fit(X, y, **_persons(groups), **arguments)

    return call


def _models() -> dict[str, Any]:
    heads = {"two": (TWO_CLASSES, TWO), "three": (THREE_CLASSES, THREE), "targets": (RIDGE, TARGETS)}
    heads |= {
        "labels": (MixedDPLogisticRegression(), LABELS),
        "counts": (MixedDPPoissonRegressor(epsilon=8.0), COUNTS),
    }
    with warnings.catch_warnings(action="ignore"):
        return {
            name: clone(head).set_params(random_state=0).fit(X, y).set_params(random_state=None)
            for name, (head, y) in heads.items()
        }


#: Fitted models that are measured.
MODELS = _models()


def _measure(kind: str, method: str) -> Callable[..., Any]:
    def call(X: Any, y: Any, groups: Any = None, epsilon: Any = 1.0, delta: Any = None, **terms: Any) -> Any:
        model = copy.copy(MODELS[kind]).set_params(**terms)
        return getattr(model, method)(X, y, epsilon=epsilon, delta=delta, **_persons(groups))

    return call


def _evaluation(kind: str, **options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, **terms: Any) -> Any:
        return private_evaluation(MODELS[kind], X, y, **{"epsilon": 1.0} | options | terms)

    return call


def _inference(family: str, **options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, **terms: Any) -> Any:
        return private_inference(X, y, family=family, **{"epsilon": 8.0} | options | terms)

    return call


def _search(strategy: str) -> Callable[..., Any]:
    def call(X: Any, y: Any, groups: Any = None, delta: Any = 1e-5, **terms: Any) -> Any:
        head = clone(TWO_CLASSES).set_params(delta=delta)
        search = PrivateSearchCV(head, {"l2": [0.1, 1.0]}, strategy=strategy, delta=delta, **terms)
        return search.fit(X, y, **_persons(groups))

    return call


def _many(X: Any, y: Any, groups: Any = None, **terms: Any) -> Any:
    heads = [clone(TWO_CLASSES).set_params(l2=l2, **terms) for l2 in (0.1, 1.0)]
    return fit_many(heads, X, y, **_persons(groups))


def _scaler(**options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, groups: Any = None, **terms: Any) -> Any:
        return NoisyScaler(**options | terms).fit(X, **_persons(groups))

    return call


def _module(kind: str, **options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, **terms: Any) -> Any:
        torch = pytest.importorskip("torch", reason="needs skmixdp[features]")
        with torch.random.fork_rng():
            torch.manual_seed(0)
            module = torch.nn.Linear(3, 2)
        X = X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype.kind == "f" else X
        options_ = {"classes": [0, 1], "n_steps": 2, "learning_rate": 0.1} | options | terms
        return getattr(skmixdp, kind)(module, **options_).fit(X, y)

    return call


def _coef(result: Any) -> Any:
    result = result[0] if isinstance(result, list) else result
    return np.column_stack([np.atleast_2d(result.coef_), np.atleast_1d(result.intercept_)])


def _weights(result: Any) -> Any:
    return np.concatenate([each.detach().numpy().ravel() for each in result.module_.parameters()])


def _params(result: Any) -> Any:
    return result.params.to_numpy()


def _of_scaler(result: Any) -> Any:
    return np.append(result.mean_, result.scale_)


_NO_NOISE = frozenset({"noise"})
_OF_SEARCH = frozenset({"noise", "neighboring"})
_OF_CURVES = frozenset({"refusal of gaps"})
_OF_MODULES = frozenset({"groups", "objects"})
RELEASES = {
    "fit": Release(_fit(TWO_CLASSES), TWO, _coef),
    "fit of three classes": Release(_fit(THREE_CLASSES), THREE, _coef),
    "fit of labels": Release(_fit(MixedDPLogisticRegression()), LABELS, _coef),
    "fit by losses": Release(
        _fit(MixedDPLogisticRegression(DPZero(), classes=[0, 1], n_steps=5)), TWO, _coef
    ),
    "regression": Release(_fit(RIDGE), TARGETS, _coef),
    "curves": Release(_fit(AdditiveDPClassifier(classes=[0, 1])), TWO, _coef, _OF_CURVES),
    "curves of a regression": Release(
        _fit(AdditiveDPRegressor(target_scale=1.0)), TARGETS, _coef, _OF_CURVES
    ),
    "curves of counts": Release(_fit(AdditiveDPPoissonRegressor(epsilon=40.0)), COUNTS, _coef, _OF_CURVES),
    "rates": Release(_fit(MixedDPPoissonRegressor(epsilon=8.0)), COUNTS, _coef),
    "rates of weighted rows": Release(
        _fit(MixedDPPoissonRegressor(epsilon=8.0), sample_weight=np.arange(N) % 3 + 0.5), COUNTS, _coef
    ),
    "inference": Release(_inference("logistic", classes=[0, 1]), TWO, _params, _NO_NOISE),
    "inference of numbers": Release(_inference("gaussian"), TARGETS, _params, _NO_NOISE),
    "inference of counts": Release(_inference("poisson", epsilon=40.0), COUNTS, _params, _NO_NOISE),
    "score": Release(_measure("two", "private_score"), TWO, float),
    "score of a regression": Release(_measure("targets", "private_score"), TARGETS, float),
    "score of counts": Release(_measure("counts", "private_score"), COUNTS, float),
    "confusion": Release(_measure("three", "private_confusion"), THREE, np.asarray),
    "evaluation": Release(_evaluation("two"), TWO, lambda result: result.counts),
    "evaluation of one against the rest": Release(
        _evaluation("three", layout="one_vs_rest"), THREE, lambda result: result.counts
    ),
    "evaluation of labels": Release(_evaluation("labels"), LABELS, lambda result: result.counts),
    "evaluation of a regression": Release(
        _evaluation("targets", target_bounds=(-9, 9)), TARGETS, lambda result: result.counts
    ),
    "evaluation of counts": Release(_evaluation("counts"), COUNTS, lambda result: result.counts),
    "scaler": Release(_scaler(bounds=(-9, 9), epsilon=8.0), None, _of_scaler),
    "scaler without bounds": Release(_scaler(epsilon=8.0), None, _of_scaler, frozenset({"grid"})),
    "search": Release(_search("grid"), TWO, lambda result: _coef(result.best_estimator_), _OF_SEARCH),
    "search by chance": Release(
        _search("random"), TWO, lambda result: _coef(result.best_estimator_), _OF_SEARCH
    ),
    "several fits": Release(_many, TWO, _coef, n_warnings=2),
    "module": Release(_module("FirstOrderDPModuleClassifier"), TWO, _weights, _OF_MODULES | {"grid"}),
    "module by losses": Release(
        _module("ZerothOrderDPModuleClassifier", algorithm="dpzero"), TWO, _weights, _OF_MODULES
    ),
}
