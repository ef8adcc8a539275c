"""The seeded fits of the golden master: small, of every algorithm, source of rows and loss."""

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_regression

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.algorithms import DOPE, GEP, PAZO, AdaMix, DPZero, ModelMix, NoisyGD
from skmixdp.features import ZeroShotHead

_SEED = 20_261_122


@cache
def classes(k: int) -> tuple[np.ndarray, ...]:
    """Private and public rows of ``k`` classes: X, y, X_pub, y_pub."""
    X, y = make_classification(
        460, 9, n_informative=6, n_redundant=1, n_classes=k, class_sep=1.5, random_state=k
    )
    X = X + 0.3
    return X[60:], y[60:], X[:60], y[:60]


@cache
def targets(k: int) -> tuple[np.ndarray, ...]:
    """Private and public rows with ``k`` targets."""
    X, y = make_regression(460, 7, n_targets=k, noise=5.0, random_state=k)
    return X[60:], y[60:], X[:60], y[:60]


def _classifier(
    algorithm: Any = "auto", *, k: int = 3, public: bool = True, wrong: bool = False, **parameters: Any
) -> Any:
    X, y, X_pub, y_pub = classes(k)
    # The adjustment takes a part of the budget; the first recorded fits are from before there was one.
    settings = {"dtype": "float64", "random_state": _SEED, "classes": range(k), "logit_adjustment": 0}
    estimator = MixedDPLogisticRegression(algorithm, **{"epsilon": 2.0} | settings | parameters)
    if not public:
        return estimator.fit(X, y)
    return estimator.fit(X, y, X_pub, (y_pub + 2) % k if wrong else y_pub)


def _sparse(**parameters: Any) -> Any:
    X, y, X_pub, y_pub = classes(3)
    estimator = MixedDPLogisticRegression(
        epsilon=2.0, dtype="float64", random_state=_SEED, logit_adjustment=0, **parameters
    )
    return estimator.fit(sp.csr_array(np.where(np.abs(X) < 1, 0.0, X)), y, X_pub, y_pub)


def _regressor(algorithm: Any = "adamix", *, k: int = 1, wrong: bool = False, **parameters: Any) -> Any:
    X, y, X_pub, y_pub = targets(k)
    settings = {"epsilon": 2.0, "dtype": "float64", "random_state": _SEED}
    estimator = MixedDPRidge(algorithm, **settings | parameters)
    return estimator.fit(X, y, X_pub, -y_pub if wrong else y_pub)


def _rare(n_public: int) -> Any:
    """Two classes of which one is rare, and public rows of which it is half."""
    X, y = make_classification(4000, 5, weights=[0.95], flip_y=0.0, random_state=2)
    public = np.concatenate([np.flatnonzero(y == label)[: n_public // 2] for label in (0, 1)])
    private = np.delete(np.arange(len(y)), public)
    estimator = MixedDPLogisticRegression(epsilon=4.0, classes=[0, 1], dtype="float64", random_state=_SEED)
    return estimator.fit(X[private], y[private], X[public], y[public])


def _several_labels(*, public: bool = True, **parameters: Any) -> Any:
    """Rows of four labels: bits of the class, and two inequalities."""
    X, y, X_pub, y_pub = classes(3)
    labels, labels_pub = (
        np.stack([cls == 1, cls == 2, rows[:, 0] > 1, rows[:, 1] > 0], axis=1).astype(int)
        for rows, cls in ((X, y), (X_pub, y_pub))
    )
    estimator = MixedDPLogisticRegression(
        **{"epsilon": 2.0, "dtype": "float64", "random_state": _SEED} | parameters
    )
    return estimator.fit(X, labels, X_pub, labels_pub) if public else estimator.fit(X, labels)


def _names_of_classes() -> Any:
    """A start from encoded names of classes, whose scale private rows choose."""
    names = ZeroShotHead(["a", "b", "c"], embeddings=np.random.default_rng(0).normal(size=(3, 9)))
    return _classifier(public=False, init=names, epsilon=8.0)


def _unscaled() -> Any:
    """Targets of unit scale, whose rows have no public length."""
    X, y, _, _ = targets(1)
    estimator = MixedDPRidge(epsilon=2.0, target_scale=100.0, dtype="float64", random_state=_SEED)
    return estimator.fit(X, y)


def _zeroth_order(algorithm: Any, *, k: int = 3) -> Any:
    X, y, X_pub, y_pub = classes(k)
    estimator = MixedDPLogisticRegression(
        algorithm, epsilon=2.0, n_steps=15, dtype="float64", random_state=_SEED
    )
    return estimator.fit(X, y, X_pub, y_pub)


def _maps_apart(i: int) -> Any:
    """Heads in one call, each of which learns its own map."""
    X, y, _, _ = classes(3)
    weights = [None, {1: 2.0}, "balanced"]
    heads = [
        MixedDPLogisticRegression(
            epsilon=2.0, dtype="float64", random_state=_SEED + j, classes=range(3), class_weight=weight
        )
        for j, weight in enumerate(weights)
    ]
    return fit_many(heads, X, y)[i]


def _together(i: int) -> Any:
    X, y, X_pub, y_pub = classes(3)
    heads = [
        MixedDPLogisticRegression(
            algorithm, epsilon=2.0, dtype="float64", random_state=_SEED + j, logit_adjustment=0
        )
        for j, algorithm in enumerate(("auto", "adamix", "dope-sgd"))
    ]
    folds = [np.arange(len(X)) % 3 != j for j in range(3)]
    return fit_many(heads, X, y, X_pub, y_pub, rows=folds)[i]


#: Each name's seeded fit; the name is the key of its coefficients on file.
FITS: dict[str, Callable[[], Any]] = {
    "default": _classifier,
    "default, two classes": partial(_classifier, k=2),
    "default, a rare class": partial(_rare, 0),
    "default, a rare class and public rows": partial(_rare, 40),
    "default, no public rows": partial(_classifier, public=False),
    "default, columns of private rows": partial(_classifier, public=False, epsilon=8.0),
    "default, columns and second moment": partial(_classifier, public=False, epsilon=60.0),
    "default, float32": partial(_classifier, dtype="float32"),
    "default, replace one": partial(_classifier, neighboring="replace_one"),
    "default, Poisson batches": partial(_classifier, "adamix", batch_size=80, n_steps=12),
    "default, sparse rows": _sparse,
    "noisy-gd": partial(_classifier, "noisy-gd"),
    "noisy-gd, no public rows, no length": partial(
        _classifier, "noisy-gd", public=False, rows=RowMapping(norm=None), learning_rate=0.1
    ),
    "adamix": partial(_classifier, "adamix"),
    "adamix, projected": partial(_classifier, AdaMix(n_components=3)),
    "coupling": partial(_classifier, "coupling"),
    "pda-dpmd": partial(_classifier, "pda-dpmd"),
    "dope-sgd": partial(_classifier, "dope-sgd"),
    "dope-sgd, fixed clip": partial(_classifier, DOPE(0.2)),
    "gep": partial(_classifier, "gep", n_steps=15),
    "gep, few directions, two classes": partial(_classifier, GEP(3), k=2, n_steps=15),
    "modelmix": partial(_classifier, "modelmix"),
    "modelmix, noisy-gd": partial(_classifier, ModelMix(NoisyGD(momentum=0.0), width=30.0, linf_split=4)),
    "whitened adamix, momentum": partial(
        _classifier, AdaMix(momentum=0.9), rows=RowMapping(whiten=True), init="zeros"
    ),
    "ridge": _regressor,
    "ridge, default": partial(_regressor, "auto", epsilon=8.0),
    "ridge, start left out": partial(_regressor, "auto", wrong=True, epsilon=8.0),
    "ridge, three targets": partial(_regressor, k=3),
    "ridge, pda-dpmd": partial(_regressor, "pda-dpmd"),
    "ridge, noisy-gd, no intercept": partial(_regressor, "noisy-gd", fit_intercept=False),
    "pazo-m": partial(_zeroth_order, PAZO("m")),
    "pazo-p": partial(_zeroth_order, PAZO("p")),
    "pazo-s, two classes": partial(_zeroth_order, PAZO("s"), k=2),
    "pazo-p, two directions": partial(_zeroth_order, PAZO("p", n_directions=2)),
    "dpzero": partial(_zeroth_order, DPZero()),
    "dpzero, gaussian": partial(_zeroth_order, DPZero(2, directions="gaussian")),
    "adjusted": partial(_classifier, logit_adjustment="auto"),
    "adjusted, no public rows": partial(_classifier, logit_adjustment="auto", public=False),
    "adjusted by a given strength": partial(_classifier, logit_adjustment=0.7),
    "balanced weights": partial(_classifier, class_weight="balanced"),
    "balanced weights, two classes": partial(_classifier, k=2, class_weight="balanced"),
    "balanced weights, no public rows": partial(_classifier, class_weight="balanced", public=False),
    "balanced weights, adamix": partial(_classifier, "adamix", class_weight="balanced"),
    "weights of classes": partial(_classifier, class_weight={1: 3.0}),
    "start left out": partial(_classifier, wrong=True, epsilon=30.0),
    "start left out, balanced weights": partial(
        _classifier, wrong=True, epsilon=30.0, class_weight="balanced"
    ),
    "start left out, adjusted": partial(_classifier, wrong=True, epsilon=30.0, logit_adjustment="auto"),
    "start left out, public map": partial(
        _classifier, wrong=True, epsilon=30.0, rows=RowMapping(geometry=False)
    ),
    "geometry": partial(_classifier, rows=RowMapping(geometry=True)),
    "clipped rows": partial(_classifier, rows=RowMapping(norm="clip")),
    "clipped rows, no public rows": partial(_classifier, rows=RowMapping(norm="clip"), public=False),
    "names of classes": _names_of_classes,
    "several labels": _several_labels,
    "several labels, no public rows": partial(_several_labels, public=False, epsilon=8.0),
    "several labels, adamix": partial(_several_labels, algorithm="adamix"),
    "ridge, no public rows": _unscaled,
    "first of three maps": partial(_maps_apart, 0),
    "second of three maps": partial(_maps_apart, 1),
    "third of three maps": partial(_maps_apart, 2),
    "first of three folds": partial(_together, 0),
    "second of three folds": partial(_together, 1),
    "third of three folds": partial(_together, 2),
}


def coefficients(name: str) -> np.ndarray:
    """Coefficients and intercepts of a fit, (k, d + 1), and the claims of its report in a last row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of seeds, and of declared scales
        fitted = FITS[name]()
    head = np.column_stack([np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)])
    report = fitted.privacy_
    claims = np.zeros(head.shape[1])
    claims[:4] = report.epsilon, report.noise_multiplier, report.n_steps, fitted.learning_rate_
    return np.vstack([head, claims])
