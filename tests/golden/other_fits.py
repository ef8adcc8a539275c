"""Seeded fits of the golden master to rows of other kinds, and releases without a head."""

import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPPoissonRegressor,
    AdditiveDPRegressor,
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPPoissonRegressor,
    MixedDPRidge,
    RowMapping,
    Typical,
    ZerothOrderDPModuleClassifier,
    fit_many,
    private_pipeline,
    resumable,
)
from skmixdp.algorithms import PAZO
from skmixdp.inference import private_inference
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger, noise
from skmixdp.privacy.noise import DiscreteNoise
from tests.private_names import GaussianMechanism
from tests.unit.rows.conftest import HELD

_SEED = 20_261_127
_SETTINGS = {"random_state": _SEED, "dtype": "float64"}
#: Public rows in other units: with large budgets, the check of units finds them.
_UNITS = np.array([1.0, 1.0, 30.0, 1.0, 1.0, 1.0, 1.0])

KINDS = {
    "classes": MixedDPLogisticRegression,
    "labels": MixedDPLogisticRegression,
    "targets": MixedDPRidge,
    "two targets": MixedDPRidge,
    "curves of classes": AdditiveDPClassifier,
    "curves of targets": AdditiveDPRegressor,
}


@cache
def rows(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """500 rows and 7 columns, of which one is far from 0, with their labels or targets."""
    if "targets" in kind:
        X, y = make_regression(500, 7, n_targets=2 if kind == "two targets" else 1, noise=5.0, random_state=5)
    else:
        X, y = make_classification(500, 7, n_informative=5, n_classes=3, class_sep=1.5, random_state=5)
    if kind == "labels":
        y = np.stack([y == 1, X[:, 0] > 1, y == 2], axis=1).astype(int)
    return X * [1, 1, 1, 5, 1, 1, 0.1] + [0, 0, 2, 0, 0, 0, 0], y


def _fit(
    kind: str,
    algorithm: Any = None,
    *,
    n_public: int = 60,
    units: Any = 1.0,
    target_units: float = 1.0,
    wrong: bool = False,
    groups: bool = False,
    weights: bool = False,
    unlabeled: int = 0,
    held: str | None = None,
    members: bool = False,
    ledger: Any = None,
    **parameters: Any,
) -> Any:
    """A fit with ``n_public`` public rows, in other units or with wrong labels if asked for."""
    X, y = rows(kind)
    X_pub, y_pub = X[:n_public] * units, y[:n_public]
    if wrong:
        y_pub = -y_pub if "targets" in kind else 1 - y_pub if kind == "labels" else (y_pub + 1) % 3
    if target_units != 1:
        y_pub = y_pub * target_units
    public = {"X_pub": X_pub, "y_pub": y_pub} if n_public else {}
    X, y = X[100:], y[100:]
    settings: dict[str, Any] = {"epsilon": 8.0, **_SETTINGS}
    if parameters.get("noise") == "discrete" or ledger is not None:
        settings["random_state"] = None
    if "classes" in kind:
        settings["classes"] = range(3)
    if algorithm is not None:
        settings["algorithm"] = algorithm
    estimator = KINDS[kind](**settings | parameters, ledger=ledger)
    rng = np.random.default_rng(1)
    extra: dict[str, Any] = {}
    if groups:
        extra["groups"] = rng.integers(0, 200, len(X))
    if weights:
        extra["sample_weight"] = rng.exponential(3.0, len(X))
    if unlabeled:
        extra["X_unlabeled"] = rows(kind)[0][100 - unlabeled : 100]
    if members:
        return fit_many([estimator], X, y, **public, **extra, rows=[np.arange(len(X)) % 3 > 0])[0]
    if held is None:
        return estimator.fit(X, y, **public, **extra)
    with tempfile.TemporaryDirectory() as folder:
        return estimator.fit(*HELD[held](Path(folder), X.astype("f4"), y), **public, **extra)


def _many(kind: str, number: int, *, n_public: int = 0, weights: bool = False, **parameters: Any) -> Any:
    """Heads of one call that share passes."""
    X, y = rows(kind)
    extra = {"sample_weight": np.random.default_rng(1).exponential(3.0, 400)} if weights else {}
    named = {"classes": range(3)} if kind == "classes" else {}
    heads = [
        KINDS[kind](epsilon=epsilon, random_state=_SEED + place, dtype="float64", **named, **parameters)
        for place, epsilon in enumerate((4.0, 8.0, 30.0))
    ]
    public = {"X_pub": X[:n_public], "y_pub": y[:n_public]} if n_public else {}
    return fit_many(heads, X[100:], y[100:], **public, **extra)[number]


def _spread_out(**parameters: Any) -> Any:
    """A fit to rows of 60 columns, with unlabelled rows alone, whose variance is spread out."""
    X = np.random.default_rng(5).normal(size=(900, 60))
    y = np.arange(900) % 3
    X[np.arange(900), y] += 3.0
    head = MixedDPLogisticRegression(epsilon=1.0, classes=range(3), **_SETTINGS | parameters)
    return head.fit(X[:300], y[:300], X_unlabeled=X[300:])


class _Cut(KeyboardInterrupt):
    """An interruption of a fit."""


def _resumed(kind: str, at: int, **parameters: Any) -> Any:
    """A fit that was interrupted before a release and resumed."""
    add_noise, calls = GaussianMechanism.add_noise, []

    def cut(self: Any, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == at:
            raise _Cut
        return add_noise(self, *arguments)

    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(Path(folder) / "ledger.sqlite").add_dataset("rows", epsilon=30, delta=1e-4)
        for _ in range(2):
            try:
                with (
                    mock.patch.object(GaussianMechanism, "add_noise", cut),
                    resumable(Path(folder) / "checkpoint"),
                ):
                    fitted = _fit(kind, ledger=ledger, **parameters)
            except _Cut:
                continue
        fitted.ledger = None  # has times and the path of a file
        return fitted


def _continued(kind: str, **parameters: Any) -> Any:
    """A fit that goes on from a released head."""
    return _fit(kind, init=_fit(kind), **parameters)


def _module(kind: Any, algorithm: str, **parameters: Any) -> Any:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)).double()
    X, y = rows("classes")
    settings = {"n_steps": 6, "random_state": _SEED, "init": "module", "learning_rate": 0.1, "epsilon": 8.0}
    estimator = kind(module, algorithm, **settings | parameters)
    return estimator.fit(X[100:], y[100:], X_pub=X[:60], y_pub=y[:60])


def _piped() -> Any:
    X, y = rows("classes")
    pipe = private_pipeline(
        NoisyScaler(epsilon=4.0, random_state=_SEED),
        MixedDPLogisticRegression(epsilon=4.0, classes=range(3), **_SETTINGS),
    )
    return pipe.fit(X, y)[-1]


def _searched(**parameters: Any) -> Any:
    X, y = rows("classes")
    search = PrivateSearchCV(
        MixedDPLogisticRegression(**_SETTINGS | {"classes": range(3)}),
        {"learning_rate": [0.3, 1.0]},
        epsilon=8.0,
        random_state=_SEED,
        **parameters,
    )
    return search.fit(X[100:], y[100:], X_pub=X[:60], y_pub=y[:60]).best_estimator_


def _zeroth(**parameters: Any) -> Any:
    X, y = rows("classes")
    head = MixedDPLogisticRegression(PAZO("m"), n_steps=10, **_SETTINGS | parameters)
    return head.fit(X[100:], y[100:], X_pub=X[:60], y_pub=y[:60])


def _scaler(**parameters: Any) -> Any:
    groups = np.arange(500) // 2 if parameters.pop("persons", False) else None
    seed = None if parameters.get("noise") == "discrete" else _SEED
    return NoisyScaler(**{"epsilon": 8.0, "random_state": seed} | parameters).fit(
        rows("classes")[0], groups=groups
    )


def _inference(
    family: str = "gaussian", *, n_public: int = 0, weights: bool = False, many: int = 10, **parameters: Any
) -> Any:
    """Coefficients of the rows, repeated ``many`` times with noise, since few rows carry no errors."""
    X, y = rows("classes" if family == "logistic" else "targets")
    rng = np.random.default_rng(2)
    X = np.tile(X[:, :3], (many, 1))
    X = X + rng.normal(size=X.shape)
    y = np.tile(np.minimum(y, 1) if family == "logistic" else y, many)
    extra = dict(parameters)
    if family == "poisson":
        y = rng.poisson(np.exp(0.3 * X[:, 0] / X[:, 0].std()))
        extra["exposure"] = rng.uniform(0.5, 2.0, len(X))
    if weights:
        extra["sample_weight"] = rng.exponential(3.0, len(X))
        if n_public:
            extra["sample_weight_pub"] = extra["sample_weight"][:n_public]
    if extra.pop("persons", False):
        extra["groups"] = rng.integers(0, len(X) // 2, len(X))
    if n_public:
        extra |= {"X_pub": X[:n_public], "y_pub": y[:n_public]}
    if family == "logistic":
        extra["classes"] = [0, 1]
    settings = {"family": family, "epsilon": 20.0, "random_state": _SEED}
    if (predicts := extra.pop("predicts", None)) is not None:
        return predicts(epsilon=20.0, random_state=_SEED).fit(X, y, **extra)
    return private_inference(X, y, **settings | extra)


def _evaluated(kind: str = "classes", **parameters: Any) -> Any:
    X, y = rows(kind)
    model = Ridge() if kind == "targets" else LogisticRegression(max_iter=1000)
    if parameters.pop("two", False):
        y = np.minimum(y, 1)
    if parameters.get("layout") == "deviance":
        model, y = PoissonRegressor(), np.rint(np.abs(y) / 50)
    if parameters.pop("persons", False):
        parameters["groups"] = np.arange(500) // 2
    return private_evaluation(model.fit(X, y), X, y, epsilon=4.0, random_state=_SEED, **parameters)


def _scored(method: str, kind: str = "classes", **parameters: Any) -> Any:
    X, y = rows(kind)
    return getattr(_fit(kind), method)(X, y, epsilon=4.0, delta=1e-5, **parameters)


#: Each name's seeded fit or release; the name is the key of its numbers on file.
OTHER_FITS: dict[str, Callable[[], Any]] = {
    # -- persons
    **{
        f"persons, {kind}": partial(_fit, kind, groups=True)
        for kind in ("classes", "labels", "targets", "two targets", "curves of classes", "curves of targets")
    },
    "persons, no public rows": partial(_fit, "classes", groups=True, n_public=0),
    "persons, targets, no public rows": partial(_fit, "targets", groups=True, n_public=0),
    "persons, balanced weights": partial(_fit, "classes", groups=True, class_weight="balanced"),
    "persons, weights": partial(_fit, "classes", groups=True, weights=True),
    "persons, start left out": partial(_fit, "classes", groups=True, wrong=True, epsilon=60.0),
    "persons, a selection": partial(_fit, "classes", groups=True, members=True),
    # -- weights
    **{f"weights, {kind}": partial(_fit, kind, weights=True) for kind in KINDS},
    "weights, no public rows": partial(_fit, "classes", weights=True, n_public=0),
    "weights, declared": partial(_fit, "classes", weights=True, max_sample_weight=4.0),
    "weights, declared, targets": partial(_fit, "targets", weights=True, max_sample_weight=4.0, n_public=0),
    "weights, targets, no public rows": partial(_fit, "targets", weights=True, n_public=0),
    "weights, balanced": partial(_fit, "classes", weights=True, class_weight="balanced"),
    "weights, of classes": partial(_fit, "classes", weights=True, class_weight={1: 3.0}),
    "weights, labels, no public rows": partial(_fit, "labels", weights=True, n_public=0),
    "weights, start left out": partial(_fit, "targets", weights=True, wrong=True, epsilon=60.0),
    "weights, a selection": partial(_fit, "classes", weights=True, members=True),
    # -- unlabelled rows
    **{f"unlabelled, {kind}": partial(_fit, kind, unlabeled=40, n_public=20) for kind in KINDS},
    "unlabelled, no public rows": partial(_fit, "classes", unlabeled=40, n_public=0),
    "unlabelled, targets, no public rows": partial(_fit, "targets", unlabeled=40, n_public=0),
    "unlabelled, projected": partial(_spread_out),
    "unlabelled, a student": partial(_spread_out, self_training=True),
    "unlabelled, a student, public rows": partial(
        _fit, "classes", unlabeled=40, n_public=20, self_training=True
    ),
    "unlabelled, whitened": partial(_fit, "classes", unlabeled=40, n_public=0, rows=RowMapping(whiten=True)),
    "unlabelled, start left out": partial(_fit, "classes", unlabeled=40, wrong=True, epsilon=60.0),
    # -- discrete noise
    **{
        f"discrete, {kind}": partial(_fit, kind, noise="discrete")
        for kind in ("classes", "labels", "targets", "curves of classes")
    },
    "discrete, no public rows": partial(_fit, "classes", noise="discrete", n_public=0),
    "discrete, targets, no public rows": partial(_fit, "targets", noise="discrete", n_public=0),
    "discrete, weights": partial(_fit, "classes", noise="discrete", weights=True),
    "discrete, start left out": partial(_fit, "classes", noise="discrete", wrong=True, epsilon=60.0),
    # -- curves
    "curves": partial(_fit, "curves of classes"),
    "curves, noisy knots": partial(_fit, "curves of classes", n_public=0, epsilon=60.0),
    "curves, noisy knots, few public rows": partial(_fit, "curves of classes", n_public=8, epsilon=60.0),
    "curves, lines alone": partial(_fit, "curves of classes", n_public=0, epsilon=1.0),
    "curves, pairs": partial(_fit, "curves of classes", n_public=0, epsilon=60.0, interactions=[(0, 1)]),
    "curves, chosen pairs": partial(_fit, "curves of classes", n_public=0, epsilon=60.0, interactions="auto"),
    "curves, targets, chosen pairs, weights": partial(
        _fit, "curves of targets", n_public=0, epsilon=60.0, interactions="auto", weights=True
    ),
    "curves, chosen pairs, public rows": partial(
        _fit, "curves of classes", epsilon=60.0, interactions="auto"
    ),
    "curves, some lines": partial(_fit, "curves of classes", n_public=0, epsilon=60.0, linear=[0, 2]),
    "curves, start left out": partial(_fit, "curves of classes", wrong=True, epsilon=60.0),
    "curves, targets": partial(_fit, "curves of targets", epsilon=60.0),
    "curves, targets, noisy knots": partial(_fit, "curves of targets", n_public=0, epsilon=60.0),
    "curves, targets, lines alone": partial(_fit, "curves of targets", n_public=0, epsilon=1.0),
    "curves, targets, given knots": partial(_fit, "curves of targets", n_knots=4),
    "curves, targets, weights, noisy knots": partial(
        _fit, "curves of targets", n_public=0, weights=True, epsilon=60.0
    ),
    "curves, noisy knots, a selection": partial(
        _fit, "curves of classes", n_public=0, epsilon=60.0, members=True
    ),
    # -- where rows are
    **{
        f"held as {held}": partial(_fit, "classes", held=held, dtype="float32")
        for held in HELD
        if not ("CUDA" in held or "as if" in held or "as on" in held)
    },
    "held as streamed rows, no public rows": partial(
        _fit, "classes", held="npy files", n_public=0, dtype="float32", epsilon=60.0
    ),
    # -- releases before the map
    "targets, no public rows": partial(_fit, "targets", n_public=0),
    "two targets, no public rows": partial(_fit, "two targets", n_public=0),
    "targets, one public row": partial(_fit, "targets", n_public=1),
    "targets, little budget": partial(_fit, "targets", n_public=0, epsilon=0.5),
    "targets, no intercept": partial(_fit, "targets", n_public=0, fit_intercept=False),
    "targets, given steps": partial(_fit, "targets", "noisy-gd", n_public=0, n_steps=20),
    "targets, given noise": partial(_fit, "targets", "adamix", n_public=0, noise_multiplier=3.0),
    "targets, batches": partial(_fit, "targets", "noisy-gd", n_public=0, n_steps=20, batch_size=100),
    "targets, many rows of little noise": partial(_fit, "targets", epsilon=300.0),
    "targets, lengths of gradients": partial(_fit, "targets", epsilon=300.0, n_public=0),
    "targets, declared scale": partial(_fit, "targets", n_public=0, target_scale=50.0, target_center=3.0),
    "labels, no public rows": partial(_fit, "labels", n_public=0),
    "labels, start left out": partial(_fit, "labels", wrong=True, epsilon=60.0),
    "columns, few public rows": partial(_fit, "classes", n_public=8, epsilon=60.0),
    "columns, targets": partial(_fit, "targets", n_public=0, epsilon=60.0),
    **{
        f"declared columns, {kind}": partial(
            _fit, kind, n_public=0, scale={0: Typical(0, 2), 3: Typical.between(-8, 8), 6: Typical(0, 0.2)}
        )
        for kind in ("classes", "targets")
    },
    "declared columns, curves": partial(
        _fit, "curves of classes", n_public=0, scale={j: Typical(0, 1) for j in range(7)}
    ),
    "a second moment": partial(_fit, "classes", n_public=0, epsilon=300.0),
    "geometry of private rows": partial(
        _fit, "classes", n_public=0, rows=RowMapping(geometry=True, whiten=True)
    ),
    "geometry, few public rows": partial(_fit, "classes", n_public=5, scale=False),
    "a noisy length": partial(_fit, "classes", n_public=0, rows=RowMapping(norm="clip"), scale=False),
    "a noisy length, targets": partial(_fit, "targets", n_public=0, scale=False),
    "rows as they are": partial(_fit, "classes", rows=RowMapping(norm=None), learning_rate=0.1),
    "unit rows, no public rows": partial(_fit, "classes", n_public=0, rows=RowMapping(norm="unit")),
    "not centred": partial(_fit, "classes", rows=RowMapping(center=False)),
    "not whitened": partial(_fit, "classes", rows=RowMapping(whiten=False)),
    "no intercept": partial(_fit, "classes", fit_intercept=False),
    # -- public rows that mislead
    "other units": partial(_fit, "classes", units=_UNITS, epsilon=60.0),
    "other units, labels": partial(_fit, "labels", units=_UNITS, epsilon=60.0),
    "other units, targets": partial(_fit, "targets", units=_UNITS, epsilon=60.0),
    "other units, of targets": partial(_fit, "targets", target_units=100.0, epsilon=60.0),
    "other units, of both": partial(_fit, "targets", units=_UNITS, target_units=100.0, epsilon=60.0),
    "other units, balanced weights": partial(
        _fit, "classes", units=_UNITS, epsilon=60.0, class_weight="balanced"
    ),
    "other units, curves": partial(_fit, "curves of classes", units=_UNITS, epsilon=60.0),
    "start left out, targets": partial(_fit, "targets", wrong=True, epsilon=60.0),
    "start left out, two targets": partial(_fit, "two targets", wrong=True, epsilon=60.0),
    "start left out, targets of other units": partial(
        _fit, "targets", wrong=True, target_units=3.0, epsilon=60.0
    ),
    # -- several heads, and heads that go on
    **{f"of {place + 1} heads": partial(_many, "classes", place) for place in range(3)},
    "of heads with public rows": partial(_many, "classes", 1, n_public=60),
    "of heads of targets": partial(_many, "targets", 2),
    "of heads with weights": partial(_many, "targets", 1, weights=True),
    "of heads of labels": partial(_many, "labels", 1),
    "of heads with balanced weights": partial(_many, "classes", 1, class_weight="balanced"),
    "of heads of curves": partial(_many, "curves of targets", 1),
    "goes on from a head": partial(_continued, "classes"),
    "goes on from a head of targets": partial(_continued, "targets", n_public=0),
    "resumed": partial(_resumed, "classes", 5),
    "resumed, no public rows": partial(_resumed, "targets", 6, n_public=0),
    "resumed, start left out": partial(_resumed, "classes", 4, wrong=True, epsilon=20.0),
    "resumed, curves": partial(_resumed, "curves of targets", 3, n_public=0, epsilon=20.0),
    "zeroth order with little noise": partial(_zeroth, epsilon=60.0),
    "a module, noisy-gd": partial(_module, FirstOrderDPModuleClassifier, "noisy-gd"),
    "a module, adamix": partial(_module, FirstOrderDPModuleClassifier, "adamix"),
    "a module, pazo-m": partial(_module, ZerothOrderDPModuleClassifier, "pazo-m"),
    "a pipeline": _piped,
    "a search": _searched,
    # -- releases without a head
    "scaled": _scaler,
    "scaled, little budget": partial(_scaler, epsilon=0.6),
    "scaled by bounds": partial(_scaler, bounds=(-5, 5)),
    "scaled by bounds, discrete": partial(_scaler, bounds=(-5, 5), noise="discrete"),
    "scaled, persons": partial(_scaler, persons=True),
    "inference": _inference,
    "inference, robust": partial(_inference, cov="robust"),
    "inference, public rows": partial(_inference, n_public=60),
    "inference, weights": partial(_inference, weights=True),
    "inference, persons": partial(_inference, persons=True),
    "inference, declared scales": partial(
        _inference, scale={0: Typical(0, 1), 1: Typical(0, 1), 2: Typical(2, 1)}, target_scale=(0, 100)
    ),
    "inference, logistic": partial(_inference, "logistic"),
    "inference, counts": partial(_inference, "poisson", weights=True),
    "curves of counts": partial(_inference, "poisson", predicts=AdditiveDPPoissonRegressor),
    "rates": partial(_inference, "poisson", predicts=MixedDPPoissonRegressor),
    "rates, weights and persons": partial(
        _inference, "poisson", predicts=MixedDPPoissonRegressor, weights=True, persons=True
    ),
    "inference, logistic, public rows and weights": partial(
        _inference, "logistic", n_public=60, weights=True
    ),
    "evaluated": _evaluated,
    "evaluated, one-versus-rest": partial(_evaluated, layout="one_vs_rest"),
    "evaluated, two classes": partial(_evaluated, two=True),
    "evaluated, persons": partial(_evaluated, two=True, persons=True),
    "evaluated, deviance": partial(_evaluated, "targets", layout="deviance"),
    "evaluated, residuals": partial(_evaluated, "targets", target_bounds=(-500, 500)),
    "scored": partial(_scored, "private_score"),
    "scored, targets": partial(_scored, "private_score", "targets"),
    "a confusion": partial(_scored, "private_confusion"),
}


@contextmanager
def without_secrets() -> Iterator[None]:
    """Noise that is secret elsewhere, and discrete noise, are those of a seed."""
    source = random.Random(_SEED)

    def add_noise(self: DiscreteNoise, array: np.ndarray, scale: float, grid: float) -> np.ndarray:
        return array + grid * np.rint(scale / grid * self.normal(array.shape))

    with (
        mock.patch.object(noise.secrets, "randbits", source.getrandbits),
        mock.patch.object(DiscreteNoise, "add_noise", add_noise),
    ):
        yield


def result(name: str) -> Any:
    """What a fit or a release returns."""
    with warnings.catch_warnings(), without_secrets():
        warnings.simplefilter("ignore", UserWarning)  # of seeds, and of rows that mislead
        return OTHER_FITS[name]()


def numbers(found: Any) -> np.ndarray:
    """The released numbers of a result, in one row."""
    if not hasattr(found, "__dict__"):
        return np.ravel(found)  # a score
    if hasattr(found, "coef_"):
        parts = [found.coef_, found.intercept_, found.learning_rate_, found.n_iter_]
    elif hasattr(found, "module_"):
        parts = [each.detach().numpy() for each in found.module_.parameters()]
    elif hasattr(found, "params"):
        parts = [found.params, found.covariance]
    elif hasattr(found, "counts"):
        parts = [found.counts]
    else:
        parts = [found.mean_, found.scale_]
    report = getattr(found, "privacy_", None) or found.privacy
    claims = [report.epsilon, report.noise_multiplier, *(share for _, share in report.shares)]
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in [*parts, claims]])
