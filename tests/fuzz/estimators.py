"""Fits of the estimators: hostile rows, hostile parameters, and containers of the same rows."""

import inspect
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import skmixdp
from skmixdp import (
    MixedDPLogisticRegression,
    MixedDPRidge,
    ZerothOrderDPClassifier,
    ZerothOrderDPModuleClassifier,
    algorithms,
    components,
)
from skmixdp.privacy import PrivacyLedger

from .harness import (
    BAD_INPUT,
    SECRET,
    SECRET_SIGNS,
    Draw,
    Ending,
    PromiseError,
    Tally,
    attempt,
    case,
    check_html,
    check_message,
    describe,
    finite,
    fresh_folder,
)
from .values import FAITHFUL, LABELS, NAMES, NOT_FINITE, hold, hostile, labels, matrix

HEADS = (MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier)

#: Arguments of ``fit`` and words for them, of which a message about rows names one.
ARGUMENTS = (
    *(
        "X",
        "y",
        "X_pub",
        "y_pub",
        "sample_weight",
        "classes",
        "class_weight",
        "learning_rate",
        "l2",
        "row_norm",
    ),
    *(
        "batch_size",
        "init",
        "target_center",
        "target_scale",
        "logit_adjustment",
        "algorithm",
        "epsilon",
        "delta",
    ),
    *(
        "dtype",
        "noise",
        "noise_multiplier",
        "device",
        "geometry",
        "whiten",
        "scale",
        "center",
        "clip",
        "n_steps",
    ),
)


def parameters(draw: Draw, head: type, k: int, n: int) -> dict[str, Any]:
    """Valid parameters, some of them extreme."""
    given: dict[str, Any] = {
        "random_state": draw.whole(0, 99),
        "delta": draw.pick((1e-5, 1e-3, 1e-300, 0.999)),
    }
    given["epsilon"] = draw.pick((1.0, 1.0, 1e-3, 1e-8, 20.0, 1e4, 1e15))
    options: dict[str, tuple[Any, ...]] = {
        "dtype": ("float32", "float64"),
        "neighboring": ("add_or_remove_one", "zero_out", "replace_one"),
        "fit_intercept": (True, False),
        "center": (True, False),
        "whiten": ("auto", True, False),
        "geometry": ("auto", True, False),
        "row_norm": ("unit", "clip", None),
        "scale": ("auto", True, False),
        "init": ("public", "zeros"),
        "l2": ("auto", 0.0, 1e-3, 1e300, 5e-324),
        "learning_rate": ("auto", "auto", 0.1, 1e300, 1e-300),
        "public_l2": ("auto", 1e-3, 1e300, 5e-324),
        "batch_size": (None, None, 1, n, n + 1),
        "record_per_instance": (False, True),
    }
    if given.get("batch_size") is not None and draw.whole(0, 20):
        given |= {"epsilon": 1.0, "delta": 1e-5, "n_steps": 3}  # its accounting takes seconds, once
    if head is not MixedDPRidge:
        given["classes"] = None
        options |= {"logit_adjustment": ("auto", 0, 1.0, 1e300), "class_weight": (None, None, "balanced")}
    else:
        options |= {"target_center": (None, 0.0, 1e300), "target_scale": (None, 1.0, 1e300, 5e-324)}
    for name, values in options.items():
        if draw.chance(4):
            given[name] = draw.pick(values)
    if head is ZerothOrderDPClassifier:
        given["n_steps"] = draw.pick((1, 3, 5))
        given["algorithm"] = draw.pick(("auto", *algorithms_of(ZerothOrderDPClassifier)))
    else:
        given["algorithm"] = draw.pick(("auto", "auto", *algorithms_of(head)))
        if draw.chance(3):
            given["n_steps"] = draw.pick((1, 2, 5))
    return given


@cache
def algorithms_of(head: type) -> tuple[str, ...]:
    names: Mapping[str, Any] = head._algorithms  # type: ignore[attr-defined]
    return tuple(names)


def fit_rows(draw: Draw, tally: Tally) -> None:
    """Hostile private and public rows, labels and weights."""
    head = draw.pick(HEADS)
    gentle = draw.whole(0, 3) > 0  # only numbers are hostile then, so that most fits are accepted
    n, d, k = draw.pick((12, 5, 20, 40, 2)), draw.pick((3, 1, 2, 6)), draw.pick((2, 3, 5))
    if not gentle:
        n, d, k = draw.pick((n, 1, 0)), draw.pick((d, d, 0)), draw.pick((k, k, 1, 150))
    rng = draw.rng()
    X, index = matrix(draw, n, d, rng), rng.integers(k, size=n)
    if draw.chance(6):
        index[:] = 0
    given = parameters(draw, head, k, n)
    secret = draw.chance(3)
    if secret and X.size:
        X[rng.integers(n), 0] = SECRET
    if not gentle and X.size and draw.chance(4):
        X.flat[rng.integers(X.size)] = draw.pick(NOT_FINITE)
    odd = 0 if gentle else 4
    container, rows = hold(draw, X, odd=odd)
    kind = draw.pick(("numbers", "from seven", "text", "odd names", "huge") if gentle else [*LABELS])
    arguments: dict[str, Any] = {}
    if head is MixedDPRidge:
        y: Any = matrix(draw, n, draw.pick((1, 1, 3)), rng)
        y = y[:, 0] if y.shape[1] == 1 else y
    else:
        y = labels(draw, index, kind)
        if gentle or draw.chance(2):
            given["classes"] = [LABELS[kind](j) for j in range(k)]
    public = draw.whole(0, 5)
    if public:
        m = draw.pick((6, 12, 3, 1, 0))
        width = d + 1 if not gentle and draw.chance(8) else d
        X_pub, index_pub = matrix(draw, m, width, rng), np.arange(m) % k
        targets = matrix(draw, m, 1, rng)[:, 0] if head is MixedDPRidge else labels(draw, index_pub, kind)
        if head is MixedDPRidge and np.ndim(y) == 2:
            targets = np.repeat(targets[:, None], 3, axis=1)
        if public > 3:  # sources of several kinds
            half = m // 2
            arguments["X_pub"] = tuple(hold(draw, part, odd=odd)[1] for part in (X_pub[:half], X_pub[half:]))
            arguments["y_pub"] = (targets[:half], targets[half:])
        else:
            arguments["X_pub"], arguments["y_pub"] = hold(draw, X_pub, odd=odd)[1], targets
    if draw.chance(8):
        arguments["sample_weight"] = draw.pick(
            (
                np.ones(n),
                np.zeros(n),
                np.full(n, 1e300),
                np.full(n, 5e-324),
                np.full(n, -1.0),
                np.ones(n + 1),
                "1",
                2.0,
            )
        )
    describe(head=head.__name__, parameters=given, container=container, X=X, y=y, arguments=arguments)
    kept = X.copy()
    with case(tally):
        secrets = SECRET_SIGNS if secret else ()
        end, model = _charged_fit(tally, lambda: head(**given), rows, y, arguments, secrets)
        if not np.array_equal(kept, X, equal_nan=True):
            raise PromiseError("the fit changed its rows")
        if end.error is not None:
            check_message(end.message, ARGUMENTS)
            return
        check_fitted(draw, model, d, tally)


def _charged_fit(
    tally: Tally, make: Any, rows: Any, y: Any, arguments: dict[str, Any], secrets: Any = ()
) -> tuple[Ending, Any]:
    """Fit with a ledger: charged once if it fits, and not at all if it is refused."""
    ledger = PrivacyLedger(":memory:")
    data = ledger.add_dataset("d", epsilon=1e16, delta=0.9999)
    models: list[Any] = []

    def act() -> Any:
        models.append(make().set_params(ledger=data))
        return models[0].fit(rows, y, **arguments)

    end = attempt(tally, act, *BAD_INPUT, secrets=secrets)
    charges = data.charges()
    if charges and "not finite" in end.message:  # a head that diverged, after its releases
        if [charge.outcome for charge in charges] != ["failed: ValueError"]:
            raise PromiseError(f"a fit that diverged was charged as {charges}")
        return end, None
    if end.error is None:
        if [charge.outcome for charge in charges] != ["finished"]:
            raise PromiseError(f"a fit was charged as {charges}")
        return end, models[0]
    if charges:
        raise PromiseError(f"a refused fit was charged: {end.message}") from end.error
    if models and any(name.endswith("_") and not name.startswith("_") for name in vars(models[0])):
        raise PromiseError(f"a refused fit left {sorted(vars(models[0]))}")
    return end, None


def check_fitted(draw: Draw, model: Any, d: int, tally: Tally) -> None:
    """What a fit gives is finite, predicts in range, and is shown without harm."""
    finite("coef_", model.coef_)
    finite("intercept_", model.intercept_)
    if not 0 <= model.privacy_.epsilon <= model.epsilon * (1 + 1e-6):
        raise PromiseError(f"epsilon {model.privacy_.epsilon} of {model.epsilon}")
    rng = draw.rng()
    X = matrix(draw, 5, d, rng)
    check_predictions(model, X)
    if draw.chance(8):
        check_html(model._repr_html_(), NAMES, scripts=99)
        check_html(model.privacy_._repr_html_(), NAMES)
        model.privacy_.to_json()
        str(model.privacy_)
    if draw.chance(8):
        with fresh_folder() as folder:
            end = attempt(tally, lambda: _saved(model, folder / "m.safetensors"), TypeError)
            tally.ended.subtract(["done" if end.error is None else "TypeError"])
            if end.error is not None:
                check_message(end.message)
            else:
                first, second = (each.predict(X) for each in (model, end.result))
                if not np.array_equal(first, second):
                    raise PromiseError("a saved model predicts otherwise")


def _saved(model: Any, path: Any) -> Any:
    model.save(path)
    return skmixdp.load(path)


def check_predictions(model: Any, X: np.ndarray) -> None:
    """Predictions for finite rows are finite, in range, and of known classes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.predict(X)
        except ValueError as error:
            if "outputs are not finite" not in str(error):
                raise
            return
        if not hasattr(model, "predict_proba"):
            finite("predict", model.predict(X))
        else:
            found = model.predict_proba(X)
            finite("predict_proba", found)
            if found.min(initial=0) < 0 or not np.allclose(found.sum(axis=1), 1, atol=1e-6):
                raise PromiseError(f"probabilities {found}")
            predicted = set(model.predict(X).tolist())
            if not predicted <= set(model.classes_.tolist()):
                raise PromiseError(f"predictions {predicted}")
            # A probability of zero has an infinite logarithm; scikit-learn's classifiers say so too.
            if np.isnan(model.predict_log_proba(X)).any():
                raise PromiseError("predict_log_proba holds NaN")
    known = ("divide by zero encountered in log", "valid feature names")
    others = [w for w in caught if not any(words in str(w.message) for words in known)]
    if others:
        raise PromiseError(
            f"{others[0].category.__name__} {others[0].message} ({others[0].filename}:{others[0].lineno})"
        )


# -- containers -----------------------------------------------------------------------------


def fit_containers(draw: Draw, tally: Tally) -> None:
    """The same rows in another container give the same head, with the same seed."""
    head = draw.pick(HEADS)
    n, d, k = draw.pick((20, 8, 40)), draw.pick((3, 1, 6)), draw.pick((2, 3))
    rng = draw.rng()
    X, index = rng.normal(size=(n, d)), np.arange(n) % k
    X_pub, index_pub = rng.normal(size=(6, d)), np.arange(6) % k
    if draw.chance(3):
        X, X_pub = np.round(X), np.round(X_pub)
    y = (X[:, 0], X_pub[:, 0]) if head is MixedDPRidge else (index, index_pub)
    given = {"dtype": "float64", "random_state": 0, "epsilon": 5.0, "row_norm": draw.pick(("unit", "clip"))}
    given["center"] = draw.pick((True, False))
    if head is ZerothOrderDPClassifier:
        given["n_steps"] = 3
    private, public = draw.pick([*FAITHFUL]), draw.pick([*FAITHFUL])
    describe(head=head.__name__, parameters=given, private=private, public=public, X=X)
    with case(tally):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = head(**given).fit(X, y[0], X_pub, y[1])
        end, model = _charged_fit(
            tally,
            lambda: head(**given),
            FAITHFUL[private](X),
            y[0],
            {"X_pub": FAITHFUL[public](X_pub), "y_pub": y[1]},
        )
        if end.error is not None:
            check_message(end.message, ("X", "X_pub"))
            # Names of columns must be text, and those of public frames as those of the private one.
            if (
                "frame" in private
                or "frame" in public
                or "csr" in private + public
                or "coo" in private + public
            ):
                return
            raise PromiseError(f"{private} and {public} are refused: {end.message}") from end.error
        new = rng.normal(size=(4, d))
        scale = 1 + np.abs(plain.coef_).max()
        exact = all(name not in private for name in ("csr", "csc", "coo", "dok"))
        tolerance = 1e-7 if exact else 1e-5
        if not np.allclose(model.coef_, plain.coef_, rtol=0, atol=tolerance * scale):
            raise PromiseError(f"{private} rows give another head: {model.coef_} and {plain.coef_}")
        held = FAITHFUL[private](new)
        if not np.array_equal(np.shape(model.predict(held)), np.shape(plain.predict(new))):
            raise PromiseError("predictions have another shape")


# -- parameters -----------------------------------------------------------------------------

#: Parameters for which large whole numbers are valid, and take as long as they say.
LONG = frozenset({"n_steps", "n_directions", "chunk_size", "verbose", "public_batch_size", "cosine_steps"})


@cache
def _clean(k: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(k)
    X, X_pub = rng.normal(size=(16, 3)), rng.normal(size=(8, 3))
    return X, np.arange(16) % k, X_pub, np.arange(8) % k


def names_of(kind: type) -> list[str]:
    """Parameters of a class."""
    return [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs")]


#: Classes of pieces that are parameters of algorithms or estimators.
PIECES = tuple(
    kind
    for room in (algorithms, components)
    for kind in (getattr(room, name) for name in room.__all__)
    if inspect.isclass(kind) and issubclass(kind, algorithms.Algorithm) and not inspect.isabstract(kind)
)


def fit_parameters(draw: Draw, tally: Tally) -> None:
    """A parameter of an estimator or algorithm that may be anything."""
    head = draw.pick(HEADS)
    X, y, X_pub, y_pub = _clean(draw.pick((2, 3)))
    given: dict[str, Any] = {"random_state": 0}
    if head is ZerothOrderDPClassifier:
        given["n_steps"] = 2
    piece = draw.chance(2)
    if piece:
        kinds = [kind for kind in PIECES if names_of(kind)]
        kind = draw.pick(kinds)
        names = names_of(kind)
        values = {draw.pick(names): _value(draw) for _ in range(draw.pick((1, 1, 2)))}
        hostile_names = [*values, kind.__name__, "algorithm"]
        describe(head=head.__name__, algorithm=kind.__name__, parameters=values)
        if any(name in LONG and _is_large(value) for name, value in values.items()):
            return
    else:
        names = [name for name in names_of(head) if name not in ("ledger",)]
        values = {draw.pick(names): _value(draw) for _ in range(draw.pick((1, 1, 2)))}
        hostile_names = [*values]
        describe(head=head.__name__, parameters=values)
        if any(name in LONG and _is_large(value) for name, value in values.items()):
            return

    def make() -> Any:
        if piece:
            return head(kind(**values), **given)
        return head(**(given | values))

    with case(tally):
        arguments = {"X_pub": X_pub, "y_pub": y_pub} if draw.whole(0, 3) else {}
        end, model = _charged_fit(tally, make, X, y, arguments)
        if end.error is not None:
            related = (
                "noise_multiplier",
                "n_steps",
                "epsilon",
                "delta",
                "classes",
                "X_pub",
                "algorithm",
                "cannot train",
            )
            check_message(end.message, [*hostile_names, *related])
            return
        finite("coef_", model.coef_)
        check_predictions(model, X)


def _value(draw: Draw) -> Any:
    return hostile(draw)


def _is_large(value: Any) -> bool:
    try:
        return float(value) > 1000
    except Exception:
        return False


# -- modules --------------------------------------------------------------------------------


def fit_modules(draw: Draw, tally: Tally) -> None:
    """Torch modules on hostile rows and labels."""
    import torch

    n, d, k = draw.pick((8, 6, 16, 2)), draw.pick((3, 1, 4)), draw.pick((2, 3))
    rng = draw.rng()
    X = matrix(draw, n, d, rng)
    for _ in range(draw.pick((0, 0, 0, 1))):
        X.flat[rng.integers(X.size)] = draw.pick(NOT_FINITE)
    secret = draw.chance(3)
    if secret:
        X[rng.integers(n), 0] = SECRET
    rows = draw.pick((X, X.astype(np.float32) if np.abs(X).max() < 1e38 else X, X.tolist(), X[::-1][::-1]))
    kind = draw.pick(("numbers", "text", "odd names", "from seven", "bytes", "fractions"))
    y, classes = labels(draw, rng.integers(k, size=n), kind), [LABELS[kind](j) for j in range(k)]
    torch.manual_seed(0)
    width = draw.pick((d, d, d, d, d + 1))
    shapes = {
        "linear": lambda: torch.nn.Linear(width, k),
        "two layers": lambda: torch.nn.Sequential(
            torch.nn.Linear(width, 4), torch.nn.ReLU(), torch.nn.Linear(4, k)
        ),
        "other outputs": lambda: torch.nn.Linear(width, k + 1),
        "batch norm": lambda: torch.nn.Sequential(torch.nn.BatchNorm1d(width), torch.nn.Linear(width, k)),
        "nothing to train": lambda: torch.nn.Flatten(),
        "nan": lambda: _filled(torch.nn.Linear(width, k), float("nan")),
        "huge": lambda: _filled(torch.nn.Linear(width, k), 3e38),
    }
    shape = draw.pick([*shapes])
    public = draw.chance(2)
    arguments = {"X_pub": X[: n // 2], "y_pub": labels(draw, np.arange(n // 2) % k, kind)} if public else {}
    given: dict[str, Any] = {"n_steps": 2, "random_state": 0, "classes": classes}
    if not public:
        given |= {"init": "module", "learning_rate": draw.pick((0.01, 1e30))}
    describe(shape=shape, X=X, y=y, classes=classes, public=public, d=width)
    with case(tally):
        end, model = _charged_fit(
            tally,
            lambda: ZerothOrderDPModuleClassifier(shapes[shape](), **given),
            rows,
            y,
            arguments,
            SECRET_SIGNS if secret else (),
        )
        if end.error is not None:
            check_message(end.message, (*ARGUMENTS, "module", "rows"))
            return
        small = np.clip(np.nan_to_num(X), -1, 1)
        end = attempt(tally, lambda: model.predict_proba(small), ValueError)
        tally.ended.subtract(["done" if end.error is None else "ValueError"])
        if end.error is None:
            finite("predict_proba", end.result)
        else:
            check_message(end.message, ("X",))


def _filled(module: Any, value: float) -> Any:
    import torch

    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(value)
    return module


def predict_rows(draw: Draw, tally: Tally) -> None:
    """Hostile rows for a fitted estimator."""
    model = _fitted(draw.whole(0, 2))
    n, d = draw.pick((1, 3, 0)), draw.pick((3, 3, 3, 2, 4))
    X = matrix(draw, n, d, draw.rng())
    for _ in range(draw.pick((0, 0, 1))):
        if X.size:
            X.flat[0] = draw.pick(NOT_FINITE)
    if X.size and draw.chance(3):
        X.flat[-1] = SECRET
    container, rows = hold(draw, X, odd=2)
    methods = [
        name
        for name in ("predict", "predict_proba", "decision_function", "predict_log_proba")
        if hasattr(model, name)
    ]
    method = draw.pick(methods)
    describe(model=type(model).__name__, method=method, container=container, X=X)
    with case(tally):
        end = attempt(
            tally, lambda: _silent_log(getattr(model, method), rows), *BAD_INPUT, secrets=SECRET_SIGNS
        )
        if end.error is not None:
            check_message(end.message.replace("\n", " "), ("X",))
        elif method != "predict_log_proba" and np.asarray(end.result).dtype.kind == "f":
            finite(method, end.result)


def _silent_log(method: Any, rows: Any) -> Any:
    with np.errstate(divide="ignore"):
        return method(rows)


@cache
def _fitted(which: int) -> Any:
    X, y, X_pub, y_pub = _clean(3)
    kinds = (MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kinds[which](random_state=0, epsilon=5.0, n_steps=3).fit(X, y, X_pub, y_pub)
