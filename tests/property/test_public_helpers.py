"""No private row arrives where public rows are wanted, whatever it is called on the way."""

import math
import sys
from dataclasses import fields, is_dataclass
from inspect import unwrap

import numpy as np
import pytest

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPRegressor,
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    RowMapping,
    fit_many,
)
from skmixdp.algorithms import PAZO
from skmixdp.inference import private_inference
from skmixdp.model_selection import PrivateSearchCV
from tests.replay import Calls, check_neighbours, facts_of, seen, shown

#: Functions and methods that are given public rows, their targets, or what follows from them.
NAMES = """
columns_of Whitening.of RowMap.of RowMap.with_intercept_for TargetMap.of PublicData.__init__ variance_of_mean
public_columns public_scales Regression.__init__ columns_in_other_units usual_gain n_groups
start_is_useful hold_out GradientEmbedding.__init__
"""
#: Arguments that hold private rows, which are queried through noise.
APART = {"self", "cls", "learner"}

N, D, K = 600, 4, 3
rng = np.random.default_rng(0)
CENTRES = 2 * rng.normal(size=(K, D))
COEF = rng.normal(size=D)
TERMS = {"epsilon": 30.0, "delta": 1e-4}


def drawn(n, labels):
    return CENTRES[labels] + rng.normal(size=(n, D))


Y_PUB, Y = np.arange(40) % K, np.arange(N) % K
X_PUB, X = drawn(40, Y_PUB), drawn(N, Y)
X_MORE = drawn(300, np.arange(300) % K)
#: Rows of another place, scale and shape, most of them of one class.
OTHERS = 50.0 + 30.0 * rng.lognormal(size=(N, D)) * [1, 1e3, -1, 1e-3], np.where(np.arange(N) < 9, Y, 1)


def head(kind, algorithm=None, *, n_public=40, targets=False, fitted=None, **parameters):
    """A path: a fit with public rows, to classes or to numbers."""
    fitted = {"X_pub": X_PUB[:n_public], "y_pub": of_rows(X_PUB, Y_PUB, targets)[:n_public], **(fitted or {})}
    parameters = {**TERMS, **parameters, **({} if algorithm is None else {"algorithm": algorithm})}

    def path(X, y, calls):
        model = kind(**parameters, **({} if targets else {"classes": range(K)}))
        model.set_callbacks(calls).fit(X, of_rows(X, y, targets), **fitted)
        return shown(model)

    return path


def of_rows(X, y, targets):
    return X @ COEF if targets else y


def inference(family, **options):
    def path(X, y, calls):
        X, y = X[:, :2], of_rows(X, y, family == "gaussian")
        public = {"X_pub": X_PUB[:, :2], "y_pub": of_rows(X_PUB, Y_PUB, family == "gaussian")}
        return private_inference(X, y, family=family, **public, epsilon=100.0, delta=1e-4, **options)

    return path


def together(X, y, calls):
    heads = [MixedDPLogisticRegression(classes=range(K), **TERMS) for _ in range(2)]
    folds = [np.arange(N) % 2 == 0, np.arange(N) % 2 == 1]
    fit_many(heads, X, y, X_PUB, Y_PUB, rows=folds)
    return [shown(each) for each in heads]


def search(X, y, calls):
    inner = MixedDPLogisticRegression("noisy-gd", n_steps=3, classes=range(K))
    found = PrivateSearchCV(inner, {"learning_rate": [0.3, 1.0]}, **TERMS, strategy="grid", scoring="public")
    found.fit(X, y, X_PUB, Y_PUB)
    return shown(found.best_estimator_), found.cv_results_["mean_test_score"]


def module(X, y, calls):
    torch = pytest.importorskip("torch", reason="modules need skmixdp[features]")
    torch.manual_seed(0)
    model = FirstOrderDPModuleClassifier(
        torch.nn.Linear(D, K), "adamix", n_steps=3, classes=range(K), **TERMS
    )
    model.fit(X.astype("f4"), y, X_PUB.astype("f4"), Y_PUB)
    return model.predict(X_PUB.astype("f4")), str(model.privacy_)


LOGISTIC, RIDGE = MixedDPLogisticRegression, MixedDPRidge
PATHS = {
    "default": head(LOGISTIC),
    "few public rows": head(LOGISTIC, n_public=6),
    "balanced": head(LOGISTIC, class_weight="balanced", logit_adjustment=1.0),
    "whitened": head(LOGISTIC, rows=RowMapping(whiten=True, geometry=True, norm="unit")),
    "clipped": head(LOGISTIC, rows=RowMapping(norm="clip"), scale=True),
    "unlabelled": head(LOGISTIC, fitted={"X_unlabeled": X_MORE}),
    "other units": head(LOGISTIC, fitted={"X_pub": 1e3 * X_PUB}),
    "adamix": head(LOGISTIC, "adamix", n_steps=3),
    "gep": head(LOGISTIC, "gep", n_steps=3),
    "dope-sgd": head(LOGISTIC, "dope-sgd", n_steps=3),
    "coupling": head(LOGISTIC, "coupling", n_steps=3),
    "pda-dpmd": head(LOGISTIC, "pda-dpmd", n_steps=3),
    "regression": head(RIDGE, targets=True),
    "regression, few public rows": head(RIDGE, n_public=6, targets=True),
    "pazo-s": head(MixedDPLogisticRegression, PAZO("s"), n_steps=3),
    "additive": head(AdditiveDPClassifier),
    "additive, unlabelled": head(AdditiveDPClassifier, n_public=9, fitted={"X_unlabeled": X_MORE}),
    "additive regression": head(AdditiveDPRegressor, targets=True, n_knots=4),
    "inference": inference("logistic"),
    "inference of targets": inference("gaussian"),
    "folds": together,
    "search": search,
    "module": module,
}


def codes():
    """The code of each function of public rows, and its name, in whatever module it is."""
    found = {}
    modules = [module for name, module in sys.modules.items() if name.startswith("skmixdp.")]
    for name in NAMES.split():
        first, *rest = name.split(".")
        function = next(vars(module)[first] for module in modules if first in vars(module))
        for part in rest:
            function = getattr(function, part)
        found[getattr(unwrap(function), "__func__", unwrap(function)).__code__] = name
    return found


def arrays_of(value):
    """Arrays in an argument, and in arguments that are made of some."""
    if isinstance(value, np.ndarray):
        return facts_of(value, "")
    parts = value if isinstance(value, (list, tuple)) else ()
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    return [arrays_of(part) for part in parts]


def arriving(path, X, y):
    """The path, with what arrived at each function of public rows as a part of its outcome."""
    known = codes()

    def run(calls):
        log = []

        def look(frame, event, argument):
            if event == "call" and frame.f_code in known:
                code = frame.f_code
                arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                arrived = [arrays_of(frame.f_locals[each]) for each in arguments if each not in APART]
                log.append((known[code], arrived))

        sys.setprofile(look)
        try:
            outcome = path(X, y, calls)
        finally:
            sys.setprofile(None)
        return log, outcome

    return run


@pytest.mark.parametrize("name", PATHS)
def test_what_arrives_does_not_depend_on_private_rows(monkeypatch, name):
    path = PATHS[name]
    one, other = arriving(path, X, Y), arriving(path, *OTHERS)
    if name != "folds":  # the first row is in one of them
        check_neighbours(monkeypatch, one, other, 0, math.inf, each_row=False)
    else:
        first = seen(monkeypatch, one, each_row=False)
        assert not first.failed and first.facts == seen(monkeypatch, other, first, each_row=False).facts


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_function_is_called_on_some_path():
    missing = set(NAMES.split())
    for name in PATHS.keys() - {"module"}:
        log, _ = arriving(PATHS[name], X, Y)(Calls())
        missing -= {function for function, _ in log}
    assert not missing
