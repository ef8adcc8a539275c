"""What several test modules share."""

import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from skmixdp.algorithms import PAZO
from skmixdp.components import FullBatch
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData
from skmixdp.privacy import NoiseSource
from skmixdp.privacy.accounting.budgets import Budget
from tests.audit_problems import fix_noise
from tests.covering import leave_out_the_rest, mark_the_rest_slow
from tests.private_names import (
    InMemoryRows,
    Learner,
    MultilabelLoss,
    OpenRows,
    Options,
    RowMap,
    SquaredLoss,
    bind_rows,
    classification_loss,
    drive,
    loop,
    make_plan,
    public_code,
    training,
)

# The numbers of examples stand here and nowhere else. `make test` tries the same few on every machine;
# `make test-all` draws new ones each time. A busy machine fails no test.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", _PATIENT, max_examples=8, derandomize=True)
settings.register_profile("full", _PATIENT, max_examples=300)
# `make fuzz`: so many cases in 15 tests.
_N_CASES = int(os.environ.get("CASES", "50000"))
settings.register_profile("fuzz", _PATIENT, max_examples=-(-_N_CASES // 15), database=None, print_blob=True)
settings.load_profile("fast")


# Thousands of clones and fits ask for the names of a class's parameters, which takes 5% of the time.
BaseEstimator._get_param_names = classmethod(cache(BaseEstimator._get_param_names.__func__))


def failing(text):
    """A function that fails the test with a text, also where a fit would replace errors of others."""

    def fail(*args, **named):
        with public_code():
            raise AssertionError(text)

    return fail


def train(trainings, rows):
    """The heads of several trainings on the rows of one source, which share its passes."""
    source = OpenRows(rows)
    return drive([bind_rows(source, each) for each in trainings])


class Watched(NoiseSource):
    """Records the sums to which noise is added, and releases noise alone.

    What is released does not depend on the rows, so two runs on neighbouring rows take the
    same heads and their sums can be compared step by step.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.sums: list[np.ndarray] = []
        self.scales: list[float] = []

    def add_noise(self, array, scale, grid):
        self.sums.append(np.array(array))
        self.scales.append(scale)
        return super().add_noise(np.zeros_like(array), scale, grid)

    def moves(self, other: "Watched", noise_multiplier: float, rounding: float = 0.0) -> list[float]:
        """How far each sum is from that of another run, in units of what its noise is for."""
        return [
            max(np.linalg.norm(a - b) - rounding * np.linalg.norm(a), 0) * noise_multiplier / scale
            for a, b, scale in zip(self.sums, other.sums, self.scales, strict=True)
        ]


class Silent(NoiseSource):
    """No noise: what is released is the sum itself."""

    def add_noise(self, array, scale, grid):
        return array


@dataclass
class Problem:
    """A small head with public and private rows."""

    X: np.ndarray
    y: np.ndarray
    info: PublicInfo

    def recipe(
        self,
        algorithm: Any,
        *,
        l2: float | None = None,
        learning_rate: Any = "auto",
        exact: bool = False,
        sampling=None,
    ):
        return algorithm.recipe(self.info, Options(learning_rate, l2, sampling or FullBatch(), exact))

    def plan(self, recipe, *, n_steps: int = 4, epsilon: float = 1.0, dtype: str = "float64"):
        budget = Budget(epsilon, 1e-5, n_steps, None, "add_or_remove_one", "float")
        return make_plan(budget, recipe, self.info, np.dtype(dtype))

    def trained(self, recipe, *, noise=None, rows=None, callback=None, dtype="float64", **terms):
        """The head of a recipe and the plan; without noise unless some is given."""
        plan = self.plan(recipe, dtype=dtype, **terms)
        run = training(plan, noise or Silent(0), callback=callback)
        return train([run], InMemoryRows(self.X, self.y) if rows is None else rows)[0], plan


def _problem(X, y, X_pub, y_pub, loss, row_map):
    data = PublicData(row_map(X_pub, np.float64), y_pub, loss)
    start = data.fit(1.0) if len(X_pub) else np.zeros((loss.n_outputs, X.shape[1] + 1))
    info = PublicInfo(data.view(start), 0.27, len(X), float(len(X)), np.hypot(1, 0.4) * (1 + 1e-6))
    return Problem(row_map(X, np.float64), y, info)


def make_problem(
    n_classes: int = 4, n_rows: int = 300, d: int = 8, n_pub: int = 24, seed: int = 0, normalize=True
):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, d))
    y, y_pub = rng.integers(n_classes, size=n_rows), np.arange(n_pub) % n_classes
    X = centres[y] + rng.normal(size=(n_rows, d))
    X_pub = centres[y_pub] + rng.normal(size=(n_pub, d))
    row_map = RowMap(X_pub.mean(axis=0) if n_pub else None, normalize, 0.4)
    return _problem(X, y, X_pub, y_pub, classification_loss(n_classes), row_map)


def make_regression_problem(
    n_targets: int = 2, n_rows: int = 300, d: int = 8, n_pub: int = 24, seed: int = 0
):
    """Squared loss on targets of unit scale, some of them far out."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(n_targets, d)) / np.sqrt(d)
    X, X_pub = rng.normal(size=(n_rows, d)), rng.normal(size=(n_pub, d))
    y, y_pub = (rows @ coef.T + 0.5 * rng.standard_t(2, size=(len(rows), n_targets)) for rows in (X, X_pub))
    return _problem(X, y, X_pub, y_pub, SquaredLoss(n_targets), RowMap(None, True, 0.4))


def make_label_problem(k: int = 5, n_rows: int = 300, d: int = 8, n_pub: int = 24, seed: int = 0):
    """Rows with several labels."""
    rng = np.random.default_rng(seed)
    coef = 3 * rng.normal(size=(k, d)) / np.sqrt(d)
    X, X_pub = rng.normal(size=(n_rows, d)), rng.normal(size=(n_pub, d))
    y, y_pub = (
        ((rows @ coef.T + rng.logistic(size=(len(rows), k))) > 1).astype(np.int8) for rows in (X, X_pub)
    )
    return _problem(X, y, X_pub, y_pub, MultilabelLoss(k), RowMap(None, True, 0.4))


def exactly_whitened(rows, whitening):
    """Whitened rows in extended precision, by the matrices as they are stored."""
    change = rows = rows.astype(np.longdouble)
    for matrix in whitening.factorised:
        change = change @ matrix.astype(np.longdouble)
    return np.longdouble(whitening.rest) * rows + change


def learned(rows, learn, *arguments, noise=None, members=None):
    """What a generator of ``_fit`` tells of the rows of a source; without noise unless some is given."""
    n_rows = rows.n_rows if members is None else int(np.sum(members))
    learner = Learner(n_rows, members, noise or Silent(0), np.dtype("float64"))
    (found,) = drive([bind_rows(OpenRows(rows), learn(learner, *arguments))])
    return found


def heads_of_passes(monkeypatch):
    """For each pass over private rows from now on, the number of fits that it answers."""
    numbers, release = [], loop.release

    def watched(rows, asked):
        numbers.append(len(asked))
        return release(rows, asked)

    monkeypatch.setattr(loop, "release", watched)
    return numbers


def recipe_or_refusal(problem, algorithm, **options):
    """An algorithm trains the problem, or says in one sentence what it lacks."""
    try:
        return problem.recipe(algorithm, **options)
    except ValueError as error:
        message = str(error)
    if problem.info.view.data.n_rows == 0 and isinstance(algorithm, PAZO):
        assert "needs public rows" in message and "use DPZero" in message
    else:
        assert f"cannot train {problem.info.view.data.loss.name}: " in message
    assert ". " not in message and message.endswith(".")
    return None


@pytest.fixture(autouse=True)
def _no_figures_left():
    """Figures of a test are closed after it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def _same_noise(request, monkeypatch):
    """`make test` draws the same noise in every run, as hypothesis its examples; `make test-all` new noise.

    Tests of the noise itself draw it anew each time, and state how rarely they fail by chance. So do discrete
    noise, which OpenDP draws, and fixtures that several tests share, which are made before this one.
    """
    if settings().derandomize and {"statistical", "faults"}.isdisjoint(request.path.parts):
        fix_noise(monkeypatch, request.node.nodeid)


@pytest.fixture
def no_noise(monkeypatch):
    """Any draw from any source of noise fails the test."""

    def kinds(cls):
        return [cls, *(kind for child in cls.__subclasses__() for kind in kinds(child))]

    for kind in kinds(NoiseSource):
        for name, member in vars(kind).items():
            if callable(member) and not name.startswith("_"):
                monkeypatch.setattr(kind, name, failing("noise was drawn"))


@pytest.fixture(params=[2, 4], ids=["two classes", "four classes"])
def problem(request):
    return make_problem(request.param)


@pytest.fixture(scope="module")
def digits():
    """Private rows and labels of digits, and public ones."""
    X, y = load_digits(return_X_y=True)
    return X[60:400], y[60:400], X[:60], y[:60]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--covering", action="store_true", help="a covering set of every product of parameters")


def _keep_what_is_left() -> None:
    """What is there now stays until the end, such as tests and imported modules: it is not searched again."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    _keep_what_is_left()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Many tests import further libraries."""
    if nextitem is not None and nextitem.path != item.path:
        _keep_what_is_left()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """`make test` makes no cases that it would leave out."""
    yield
    if metafunc.config.option.markexpr.startswith("not slow"):
        leave_out_the_rest(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of products of parameters, leave what is redundant to `make test-all`."""
    if not config.option.markexpr.startswith("not slow"):
        mark_the_rest_slow(items)
