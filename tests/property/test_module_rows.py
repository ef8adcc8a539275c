"""What a row of a module contributes is, bit by bit, a function of that row alone."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.algorithms import PAZO, DPZero
from skmixdp.components import FullBatch, PoissonBatch
from tests.conftest import Watched, make_problem, train
from tests.module_problems import LabelledRows, ModuleRows, cross_entropy, module_info
from tests.module_zoo import HONEST, MIXING
from tests.private_names import _LANES, _rounded_sums, n_lanes, rounds, training

N_ROWS = 300
MODULES = HONEST | {"neighbour": (MIXING["Neighbour"], (6,), 0)}
ALGORITHMS = {"dpzero": DPZero(2, loss_clip=2.0), "pazo-s": PAZO("s", loss_clip=1.5)}
SAMPLINGS = {"full batch": FullBatch(), "Poisson": PoissonBatch(180), "small batches": PoissonBatch(3)}
#: Entries of a row that make losses ordinary, huge, tiny, zero or not finite.
ENTRIES = st.one_of(
    st.floats(-3, 3, width=32),
    st.sampled_from([0.0, 1e-40, -1e-30, 1e6, -1e18, 3e38, np.inf, -np.inf, np.nan]),
)


class WatchedRows(ModuleRows):
    """Keeps what each row contributes to each query."""

    def private_sums(self, requests):
        (request,) = requests
        self.contributions = getattr(self, "contributions", [])

        def contribute(losses, block):
            C, S = request.query.contribute(losses, block)
            self.contributions.append((self.visited(request), S.copy()))
            return C, S

        return super().private_sums([request.with_query(contribute=contribute)])

    def visited(self, request):
        """The rows in the order in which they pass, and -1 for those that take no part."""
        taken, rows = request.batch.mask, np.arange(self.n_rows)
        if taken is None:
            return rows
        if n_lanes([request.batch.rate], self.n_rows, _LANES):
            rows = np.concatenate(list(rounds(taken, self.rows_in_pass(request.batch.rate))))
        return np.where(taken[rows], rows, -1)


class Experiment:
    """One step on rows that differ in one, with everything else the same."""

    def __init__(self, kind, algorithm, sampling, chunk_size):
        make, shape, tokens = MODULES[kind]
        rng = np.random.default_rng(0)
        self.tokens = tokens
        size = (N_ROWS, *shape)
        self.X = rng.integers(0, tokens, size) if tokens else np.float32(rng.normal(size=size))
        self.y = np.arange(N_ROWS) % 3
        problem = make_problem(3, N_ROWS, n_pub=12)
        public = LabelledRows(self.X[:12], self.y[:12], chunk_size)
        info = module_info(problem, make(), chunk_size=chunk_size)
        info.view.data.rows = public
        self.info, self.chunk_size = info, chunk_size
        self.start = [tensor.clone() for tensor in info.view.W.tensors]
        problem = replace(problem, info=info)
        self.recipe = problem.recipe(ALGORITHMS[algorithm], sampling=SAMPLINGS[sampling], learning_rate=0.01)
        self.plan = problem.plan(self.recipe, n_steps=1)
        self.before = self.contributions(self.X, self.y)

    def contributions(self, X, y):
        self.info.view.W.assign(self.start)
        rows = WatchedRows(LabelledRows(X, y, self.chunk_size), cross_entropy)
        train([training(self.plan, Watched(3))], rows)
        return rows.contributions


@cache
def experiment(*terms):
    return Experiment(*terms)


def changed_others(tried, i, X, y):
    """Whether any row but ``i`` contributes other bits than before."""
    after = tried.contributions(X, y)
    assert len(after) == len(tried.before) >= 1
    changed = False
    for (rows, S), (same, T) in zip(tried.before, after, strict=True):
        assert np.array_equal(rows, same)
        others = (rows != i) & (rows >= 0)
        assert np.isfinite(T).all()
        changed |= S[others].tobytes() != T[others].tobytes()
    return changed


@pytest.mark.parametrize(
    ("kind", "algorithm", "sampling"),
    [
        ("perceptron", "dpzero", "full batch"),
        ("perceptron", "pazo-s", "Poisson"),
        ("convolutions", "pazo-s", "full batch"),
        ("convolutions", "dpzero", "Poisson"),
        ("attention", "dpzero", "full batch"),
        ("recurrent", "dpzero", "Poisson"),
        ("perceptron", "dpzero", "small batches"),
        ("convolutions", "pazo-s", "small batches"),
    ],
)
@given(data=st.data())
def test_other_rows_contribute_the_same_bits(kind, algorithm, sampling, data):
    tried = experiment(kind, algorithm, sampling, data.draw(st.sampled_from([40, 64, 1024])))
    i = data.draw(st.integers(0, N_ROWS - 1))
    X, y = tried.X.copy(), tried.y.copy()
    elements = st.integers(0, tried.tokens - 1) if tried.tokens else ENTRIES
    X[i] = data.draw(hnp.arrays(X.dtype, X.shape[1:], elements=elements))
    y[i] = data.draw(st.integers(0, 2))
    assert not changed_others(tried, i, X, y)


def test_the_comparison_sees_a_module_that_mixes_rows():
    tried = experiment("neighbour", "dpzero", "full batch", 64)
    X, y = tried.X.copy(), tried.y.copy()
    X[9] *= 2
    assert changed_others(tried, 9, X, y)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 2, 31, 32, 33, 1000, 40_000]),
    bound=st.sampled_from([0.1, 1 / 3, 1.0, 1e6 + 0.1]),
    kind=st.sampled_from(["equal", "alternating", "uniform", "tiny ones"]),
)
def test_a_zeroed_row_moves_the_rounded_sum_by_less_than_its_bound(seed, n, bound, kind):
    """Exactly: both sums are taken for the rational numbers that they are."""
    rng = np.random.default_rng(seed)
    with_row = {
        "equal": np.full(n, bound),
        "alternating": bound * (1.0 - 2 * (np.arange(n) % 2)),
        "uniform": rng.uniform(-bound, bound, n),
        "tiny ones": bound * 2.0 ** -rng.integers(0, 60, n),
    }[kind][:, np.newaxis]
    i = rng.integers(n)
    with_row[i] = bound
    zeroed = with_row.copy()
    zeroed[i] = 0
    (one,), (other,) = _rounded_sums(with_row, n), _rounded_sums(zeroed, n)
    moved = abs(Fraction(one) - Fraction(other))
    assert moved <= Fraction(bound)
    assert float(moved) == pytest.approx(bound, rel=1e-7)
