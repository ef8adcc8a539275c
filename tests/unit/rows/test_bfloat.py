import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp import MixedDPLogisticRegression
from skmixdp.components.queries import clipped_residuals
from skmixdp.engine import Run, train
from skmixdp.linear import SoftmaxLoss
from skmixdp.public import PublicData
from skmixdp.rows import BFloat16Rows, InMemoryRows, Request
from skmixdp.rows.bfloat import from_bits, to_bits
from tests.catalog import ALGORITHMS, CLIPPERS
from tests.conftest import Watched

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 7)).astype(np.float32)
Y = rng.integers(4, size=3000)


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float32, 20, elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_each_number_becomes_the_nearest_of_eight_bits(values):
    rounded = from_bits(to_bits(values))
    assert np.all(rounded.view(np.uint32) & 0xFFFF == 0)
    for step in (-1, 1):  # neither neighbour is nearer
        other = from_bits((to_bits(values).astype(np.int32) + step).astype(np.uint16)).astype(np.float64)
        nearer = np.abs(other - values) < np.abs(rounded.astype(np.float64) - values)
        assert not np.any(nearer & np.isfinite(other))
    np.testing.assert_array_equal(to_bits(rounded), to_bits(values))


def test_the_sums_are_those_of_the_rounded_rows():
    def half(Z, block):
        return Z / 2, block.norms[:, None]

    rows = BFloat16Rows([X[:1000], X[1000:]], Y)
    rounded = from_bits(to_bits(X))
    assert 0 < np.abs(rounded - X).max() < 2**-8 * np.abs(X).max()
    requests = [Request(np.ones((2, 7)), half), Request(np.eye(7), half, rng.random(3000) < 0.2)]
    for found, expected in zip(
        rows.private_sums(requests), InMemoryRows(rounded, Y).private_sums(requests), strict=True
    ):
        for part, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CLIPPERS)
@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(np.float32, (4, 5), elements=st.floats(-(2.0**60), 2.0**60, width=32)),
    W=hnp.arrays(np.float64, (4, 5), elements=st.floats(-50, 50)),
)
def test_no_row_contributes_more_than_the_clip_states(name, X, W):
    """What a single row adds to the sums, in the arithmetic of reals, nearly."""
    loss = SoftmaxLoss(4)
    public = PublicData(np.random.default_rng(0).normal(size=(9, 5)), np.arange(9) % 4, loss)
    clip = CLIPPERS[name].at(public.view(W))
    seen = []

    def contribute(Z, block):
        with np.errstate(all="ignore"):
            C, S = clipped_residuals(Z, block, loss, clip)
        seen.append(C.copy())
        return C, S

    with np.errstate(all="ignore"):
        BFloat16Rows([X], np.arange(4)).private_sums([Request(W, contribute)])
    rows = from_bits(to_bits(X)).astype(np.longdouble)
    lengths = np.linalg.norm(seen[0].astype(np.longdouble), axis=1) * np.linalg.norm(rows, axis=1)
    assert lengths.max() <= clip.sensitivity(np.dtype("float32"))


def test_lengths_of_rows_that_were_not_rounded_would_break_the_bound():
    """The twin of the property above: rounding can lengthen a row by more than is allowed for."""
    lengths = np.linalg.norm(from_bits(to_bits(X)).astype(float), axis=1)
    assert np.max(lengths / np.linalg.norm(X.astype(float), axis=1)) > 1 + 1e-3


@pytest.mark.parametrize("name", ["adamix", "dope-sgd", "gep", "modelmix, noisy-gd, linf", "pazo-m"])
def test_removing_a_row_moves_every_sum_by_at_most_its_sensitivity(problem, name):
    recipe = problem.recipe(ALGORITHMS[name])
    plan = problem.plan(recipe, n_steps=3, dtype="float32")
    rows, labels = problem.X.astype(np.float32), problem.y.copy()
    rows[0] *= 100
    watched = []
    for start in (0, 1):
        noise = Watched(5)
        source = BFloat16Rows([rows[start:]], labels[start:])
        train([Run(recipe, plan, problem.scene, noise, np.dtype("float32"))], source)
        watched.append(noise)
    one, other = watched
    for a, b, scale in zip(one.sums, other.sums, one.scales, strict=True):
        # Two releases of a step may share it; float32 sums of 300 rows are off by some 1e-5.
        assert np.linalg.norm(a - b) <= scale / plan.noise_multiplier + 1e-4


def test_a_fit_in_bfloat16_is_about_as_good():
    centres = rng.normal(size=(4, 7))
    rows = (centres[Y] + 0.5 * X).astype(np.float32)
    scores = []
    for dtype in ("float32", "bfloat16"):
        head = MixedDPLogisticRegression(epsilon=2.0, dtype=dtype, random_state=0)
        head.fit(rows[200:], Y[200:], X_pub=rows[:200], y_pub=Y[:200])
        scores.append(head.score(rows, Y))
    assert scores[1] == pytest.approx(scores[0], abs=0.01)
    assert scores[0] > 0.8


@pytest.mark.parametrize(
    ("rows", "parameters", "message"),
    [
        (X, {"noise": "hardened"}, "has no exact sums; pass dtype='float32'"),
        (sp.csr_array(X), {}, "X is a SparseTable; pass dtype='float32'"),
    ],
)
def test_what_bfloat16_cannot_do_is_refused(rows, parameters, message):
    pytest.importorskip("opendp") if parameters else None
    head = MixedDPLogisticRegression(dtype="bfloat16", classes=range(4), **parameters)
    with pytest.raises(ValueError, match=message):
        head.fit(rows, Y)
