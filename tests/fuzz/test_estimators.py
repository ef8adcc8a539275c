"""Fits of the estimators: hostile rows, hostile parameters, and containers of the same rows."""

import inspect
import warnings
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, note

import skmixdp
from skmixdp import (
    MixedDPLogisticRegression,
    MixedDPRidge,
    RowMapping,
    ZerothOrderDPModuleClassifier,
    algorithms,
    components,
)
from skmixdp.algorithms import PAZO, DPZero
from skmixdp.privacy import PrivacyLedger
from tests.parameters import EXTREMES, HOSTILE, NOT_FINITE, table_of, takes_long, valid
from tests.secrets import NUMBER, Heard

from .limits import BAD_INPUT, attempt, check_html, check_message, finite, fuzzed, limits, one_in, pick, seeds
from .values import FAITHFUL, LABELS, NAMES, held, labels, matrices

pytestmark = pytest.mark.filterwarnings("ignore")

HEADS = (MixedDPLogisticRegression, MixedDPRidge)

_WORDS = """
X y X_pub y_pub sample_weight classes class_weight learning_rate l2 norm batch_size init target_center
target_scale logit_adjustment algorithm epsilon delta dtype noise noise_multiplier device geometry whiten
scale center clip n_steps public_l2 max_sample_weight rows
"""
#: Arguments of ``fit`` and words for them, of which a message about rows names one.
ARGUMENTS = _WORDS.split()

#: Right values of parameters that no table lists.
UNLISTED: dict[str, tuple[Any, ...]] = {
    "delta": (1e-5, 1e-3, 1e-300, 0.999),
    "epsilon": (1.0, 1.0, 1e-3, 1e-8, 20.0, 1e4, 1e15),
    "neighboring": ("add_or_remove_one", "zero_out", "replace_one"),
    "init": ("public", "zeros"),
}
OF_TARGETS = {"target_center": (None, 0.0, 1e300), "target_scale": (None, 1.0, 1e300, 5e-324)}


@st.composite
def parameters(draw: Any, head: Any, n: int) -> dict[str, Any]:
    """Valid parameters, some of them extreme."""
    chosen = {"random_state": draw(st.integers(0, 99))}
    chosen |= {name: draw(pick(UNLISTED[name])) for name in ("delta", "epsilon")}
    options: dict[str, Any] = {name: pick(values) for name, values in UNLISTED.items()}
    listed = {name: rules for name, rules in table_of(head).items() if name not in ("ledger", "verbose")}
    options |= {name: valid(rules) for name, rules in listed.items()}
    options["batch_size"] = pick((None, 1, n, n + 1))
    of_rows = {name: valid(rules) for name, rules in table_of(RowMapping).items()}
    options["rows"] = st.builds(RowMapping, **of_rows)
    if head is MixedDPRidge:
        options |= {name: pick(values) for name, values in OF_TARGETS.items()}
    known = inspect.signature(head).parameters
    for name, strategy in options.items():
        if name in known and draw(one_in(4)):
            chosen[name] = draw(strategy)
    if chosen.get("batch_size") and draw(st.integers(0, 20)):  # its accounting takes seconds, once
        chosen |= {"epsilon": 1.0, "delta": 1e-5, "n_steps": 3}
    losses = () if head is MixedDPRidge else (DPZero(), PAZO("m"), PAZO("p"), PAZO("s"))
    chosen["algorithm"] = draw(pick(("auto", "auto", *head._algorithms, *losses)))
    if chosen["algorithm"] in losses or draw(one_in(3)):
        chosen["n_steps"] = draw(pick((1, 3, 5)))
    return chosen


@fuzzed(6)
@given(st.data())
def test_rows(data):
    """Hostile private and public rows, labels and weights."""
    draw = data.draw
    head, gentle = draw(pick(HEADS)), draw(st.integers(0, 3)) > 0  # gentle: only numbers are hostile
    n, d, k = draw(pick((12, 5, 20, 40, 2))), draw(pick((3, 1, 2, 6))), draw(pick((2, 3, 5)))
    if not gentle:
        n, d, k = draw(pick((n, 1, 0))), draw(pick((d, d, 0))), draw(pick((k, k, 1, 150)))
    rng = np.random.default_rng(draw(seeds))
    X = draw(matrices(n, d))
    index = np.zeros(n, int) if draw(one_in(6)) else rng.integers(k, size=n)
    chosen, secret, regression = draw(parameters(head, n)), draw(one_in(3)), head is MixedDPRidge
    if secret and X.size:
        X[rng.integers(n), 0] = NUMBER
    if not gentle and X.size and draw(one_in(4)):
        X.flat[rng.integers(X.size)] = draw(pick(NOT_FINITE))
    odd = 0 if gentle else 4
    kind = draw(pick(("numbers", "from seven", "text", "odd names", "huge") if gentle else [*LABELS]))
    several = regression and draw(one_in(3))
    if not regression and (gentle or draw(st.booleans())):
        chosen["classes"] = [LABELS[kind](j) for j in range(k)]

    def targets(n_rows, of_class):
        if not regression:
            return draw(labels(of_class, kind))
        y = draw(matrices(n_rows, 3 if several else 1))
        return y if several else y[:, 0]

    arguments: dict[str, Any] = {}
    y, kept, (_, rows) = targets(n, index), X.copy(), draw(held(X, odd))
    if public := draw(st.integers(0, 5)):
        m, width = draw(pick((6, 12, 3, 1, 0))), d + 1 if not gentle and draw(one_in(8)) else d
        X_pub, y_pub, half = draw(matrices(m, width)), targets(m, np.arange(m) % k), m // 2
        arguments = {"X_pub": draw(held(X_pub, odd))[1], "y_pub": y_pub}
        if public > 3:  # sources of several kinds
            parts = (X_pub[:half], X_pub[half:])
            arguments["X_pub"] = tuple(draw(held(part, odd))[1] for part in parts)
            arguments["y_pub"] = (y_pub[:half], y_pub[half:])
    if draw(one_in(8)):
        same = [np.full(n, weight) for weight in (1.0, 0.0, 1e300, 5e-324, -1.0)]
        weights = [*same, np.ones(n + 1), "1", 2.0]
        arguments["sample_weight"] = weights[draw(st.integers(0, len(weights) - 1))]
    note(f"{head.__name__} {chosen} {arguments}")
    with limits() as folder:
        heard, model = charged_fit(lambda: head(**chosen), rows, y, arguments, secret=secret)
        assert np.array_equal(kept, X, equal_nan=True), "the fit changed its rows"
        if heard.error is not None:
            check_message(str(heard.error), ARGUMENTS)
        else:
            check_fitted(draw, model, d, folder)


def charged_fit(
    make: Any, rows: Any, y: Any, arguments: dict[str, Any], *, secret: bool = False
) -> tuple[Heard, Any]:
    """Fit with a ledger: charged once if it fits, and not at all if it is refused."""
    data = PrivacyLedger(":memory:").add_dataset("d", epsilon=1e16, delta=0.9999)
    models: list[Any] = []

    def act() -> Any:
        models.append(make().set_params(ledger=data))
        return models[0].fit(rows, y, **arguments)

    heard = attempt(act, *BAD_INPUT, secret=secret)
    outcomes = [charge.outcome for charge in data.charges()]
    if outcomes and "not finite" in str(heard.error):  # a head that diverged, after its releases
        assert outcomes == ["failed: ValueError"], f"a fit that diverged was charged as {outcomes}"
        return heard, None
    if heard.error is None:
        assert outcomes == ["finished"], f"a fit was charged as {outcomes}"
        return heard, models[0]
    assert not outcomes, f"a refused fit was charged: {heard.error}"
    left = [name for name in (vars(models[0]) if models else ()) if name.endswith("_") and name[0] != "_"]
    assert not left, f"a refused fit left {left}"
    return heard, None


def check_fitted(draw: Any, model: Any, d: int, folder: Any) -> None:
    """What a fit gives is finite, predicts in range, and is shown without harm."""
    finite("coef_ and intercept_", model.coef_, model.intercept_)
    assert 0 <= model.privacy_.epsilon <= model.epsilon * (1 + 1e-6)
    X = draw(matrices(5, d))
    check_predictions(model, X)
    if draw(one_in(8)):
        check_html(model._repr_html_(), NAMES, scripts=99)
        check_html(model.privacy_._repr_html_(), NAMES)
        assert model.privacy_.to_json() and str(model.privacy_)
    if draw(one_in(8)):
        heard = attempt(lambda: model.save(folder / "m.safetensors"), TypeError)
        if heard.error is not None:
            check_message(str(heard.error))
        else:
            assert np.array_equal(model.predict(X), skmixdp.load(folder / "m.safetensors").predict(X))


def check_predictions(model: Any, X: np.ndarray) -> None:
    """Predictions for finite rows are finite, in range, and of known classes."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            predicted = model.predict(X)
        except ValueError as error:
            if "outputs are not finite" not in str(error):
                raise
            return
        if not hasattr(model, "predict_proba"):
            finite("predict", predicted)
        else:
            found = model.predict_proba(X)
            finite("predict_proba", found)
            assert found.min(initial=0) >= 0 and np.allclose(found.sum(axis=1), 1, atol=1e-6)
            assert set(predicted.tolist()) <= set(model.classes_.tolist())
            # A probability of zero has an infinite logarithm; scikit-learn's classifiers say so too.
            assert not np.isnan(model.predict_log_proba(X)).any()
    known = ("divide by zero encountered in log", "valid feature names")
    others = [str(w) for w in caught if not any(words in str(w.message) for words in known)]
    assert not others, others[0]


@fuzzed(2)
@given(st.data())
def test_containers(data):
    """The same rows in another container give the same head, with the same seed."""
    draw = data.draw
    head, n, d, k = draw(pick(HEADS)), draw(pick((20, 8, 40))), draw(pick((3, 1, 6))), draw(pick((2, 3)))
    rng = np.random.default_rng(draw(seeds))
    X, X_pub, new = rng.normal(size=(n, d)), rng.normal(size=(6, d)), rng.normal(size=(4, d))
    if draw(one_in(3)):
        X, X_pub = np.round(X), np.round(X_pub)
    y = (X[:, 0], X_pub[:, 0]) if head is MixedDPRidge else (np.arange(n) % k, np.arange(6) % k)
    chosen = {"dtype": "float64", "random_state": 0, "epsilon": 5.0}
    chosen |= {"rows": RowMapping(norm=draw(pick(("unit", "clip"))), center=draw(st.booleans()))}
    private, public = draw(pick([*FAITHFUL])), draw(pick([*FAITHFUL]))
    note(f"{head.__name__} {chosen} {private} {public}")
    with limits():
        with warnings.catch_warnings(action="ignore"):
            plain = head(**chosen).fit(X, y[0], X_pub, y[1])
        arguments = {"X_pub": FAITHFUL[public](X_pub), "y_pub": y[1]}
        heard, model = charged_fit(lambda: head(**chosen), FAITHFUL[private](X), y[0], arguments)
        if heard.error is not None:
            check_message(str(heard.error), ("X", "X_pub"))
            # Names of columns must be text, and those of public frames as those of the private one.
            assert any(part in private + public for part in ("frame", "csr", "coo")), heard.everything
            return
        scale = 1 + np.abs(plain.coef_).max()
        exact = all(name not in private for name in ("csr", "csc", "coo", "dok"))
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=(1e-7 if exact else 1e-5) * scale)
        assert np.shape(model.predict(FAITHFUL[private](new))) == np.shape(plain.predict(new))


# -- parameters -----------------------------------------------------------------------------


@cache
def _clean(k: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(k)
    X, X_pub = rng.normal(size=(16, 3)), rng.normal(size=(8, 3))
    return X, np.arange(16) % k, X_pub, np.arange(8) % k


#: Classes of pieces that are parameters of algorithms or estimators.
PIECES = tuple(
    kind
    for room in (algorithms, components)
    for kind in (getattr(room, name) for name in room.__all__)
    if inspect.isclass(kind) and issubclass(kind, algorithms.Algorithm) and not inspect.isabstract(kind)
)


@st.composite
def any_values(draw: Any, kind: type) -> dict[str, Any]:
    """Some parameters of a class, each with a value of any kind: of its table, or hostile."""
    names = [name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs", "ledger")]
    found = {}
    for name in draw(st.lists(pick(names), min_size=1, max_size=2, unique=True)):
        rules = table_of(kind).get(name)
        found[name] = draw(pick(HOSTILE) | pick(EXTREMES) | (valid(rules) if rules else st.nothing()))
    return found


@fuzzed(10)
@given(st.data())
def test_parameters(data):
    """A parameter of an estimator or algorithm that may be anything."""
    draw = data.draw
    head = draw(pick(HEADS))
    X, y, X_pub, y_pub = _clean(draw(pick((2, 3))))
    fixed = {"random_state": 0}
    kind = draw(pick([head, *(kind for kind in PIECES if inspect.signature(kind).parameters)]))
    values = draw(any_values(kind))
    assume(not any(takes_long(name, value) for name, value in values.items()))
    make = (lambda: head(**(fixed | values))) if kind is head else (lambda: head(kind(**values), **fixed))
    related = ("noise_multiplier", "n_steps", "epsilon", "delta", "classes", "X_pub", "algorithm")
    with limits():
        arguments = {"X_pub": X_pub, "y_pub": y_pub} if draw(st.integers(0, 3)) else {}
        heard, model = charged_fit(make, X, y, arguments)
        if heard.error is not None:
            check_message(str(heard.error), [*values, kind.__name__, *related, "cannot train"])
        else:
            finite("coef_", model.coef_)
            check_predictions(model, X)


# -- modules --------------------------------------------------------------------------------


@fuzzed(1)
@given(st.data())
def test_modules(data):
    """Torch modules on hostile rows and labels."""
    torch = pytest.importorskip("torch", reason="needs skmixdp[features]")
    nn, draw = torch.nn, data.draw
    n, d, k = draw(pick((8, 6, 16, 2))), draw(pick((3, 1, 4))), draw(pick((2, 3)))
    rng, X, secret = np.random.default_rng(draw(seeds)), draw(matrices(n, d)), draw(one_in(3))
    if draw(one_in(4)):
        X.flat[rng.integers(X.size)] = draw(pick(NOT_FINITE))
    if secret:
        X[rng.integers(n), 0] = NUMBER
    forms = [X, X.astype(np.float32) if np.abs(X).max() < 1e38 else X, X.tolist(), X[::-1][::-1]]
    rows = forms[draw(st.integers(0, 3))]
    kind = draw(pick(("numbers", "text", "odd names", "from seven", "bytes", "fractions")))
    y, classes = draw(labels(rng.integers(k, size=n), kind)), [LABELS[kind](j) for j in range(k)]
    torch.manual_seed(0)
    width = draw(pick((d, d, d, d, d + 1)))
    shapes = {
        "linear": lambda: nn.Linear(width, k),
        "two layers": lambda: nn.Sequential(nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, k)),
        "other outputs": lambda: nn.Linear(width, k + 1),
        "batch norm": lambda: nn.Sequential(nn.BatchNorm1d(width), nn.Linear(width, k)),
        "nothing to train": lambda: nn.Flatten(),
        "nan": lambda: _filled(nn.Linear(width, k), float("nan")),
        "huge": lambda: _filled(nn.Linear(width, k), 3e38),
    }
    shape = draw(pick([*shapes]))
    chosen: dict[str, Any] = {"n_steps": 2, "random_state": 0, "classes": classes}
    if draw(st.booleans()):
        arguments = {"X_pub": X[: n // 2], "y_pub": draw(labels(np.arange(n // 2) % k, kind))}
    else:
        arguments = {}
        chosen |= {"init": "module", "learning_rate": draw(pick((0.01, 1e30)))}
    with limits():
        make = lambda: ZerothOrderDPModuleClassifier(shapes[shape](), **chosen)  # noqa: E731
        heard, model = charged_fit(make, rows, y, arguments, secret=secret)
        if heard.error is not None:
            check_message(str(heard.error), (*ARGUMENTS, "module", "rows"))
            return
        heard = attempt(lambda: model.predict_proba(np.clip(np.nan_to_num(X), -1, 1)), ValueError)
        if heard.error is None:
            finite("predict_proba", heard.result)
        else:
            check_message(str(heard.error), ("X",))


def _filled(module: Any, value: float) -> Any:
    for parameter in module.parameters():
        parameter.data.fill_(value)
    return module


# -- predictions ----------------------------------------------------------------------------


@cache
def _fitted(head: Any) -> Any:
    X, y, X_pub, y_pub = _clean(3)
    with warnings.catch_warnings(action="ignore"):
        return head(random_state=0, epsilon=5.0, n_steps=3).fit(X, y, X_pub, y_pub)


@fuzzed(10)
@given(st.data())
def test_rows_to_predict(data):
    """Hostile rows for a fitted estimator."""
    draw = data.draw
    model = _fitted(draw(pick(HEADS)))
    X = draw(matrices(draw(pick((1, 3, 0))), draw(pick((3, 3, 3, 2, 4)))))
    if X.size and draw(one_in(3)):
        X.flat[0] = draw(pick(NOT_FINITE))
    if X.size and draw(one_in(3)):
        X.flat[-1] = NUMBER
    container, rows = draw(held(X, odd=2))
    methods = ("predict", "predict_proba", "decision_function", "predict_log_proba")
    method = draw(pick([name for name in methods if hasattr(model, name)]))
    note(f"{type(model).__name__}.{method} of {container}")

    def predicted() -> Any:
        with np.errstate(divide="ignore"):
            return getattr(model, method)(rows)

    with limits():
        heard = attempt(predicted, *BAD_INPUT, secret=True)
        if heard.error is not None:
            check_message(str(heard.error).replace("\n", " "), ("X",))
        elif method != "predict_log_proba" and np.asarray(heard.result).dtype.kind == "f":
            finite(method, heard.result)
