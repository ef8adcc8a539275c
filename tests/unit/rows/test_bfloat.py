from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp import MixedDPLogisticRegression
from skmixdp._engine import Run, train
from skmixdp._kernels import PANEL_ROWS, bfloat16_product
from skmixdp._linear import SoftmaxLoss
from skmixdp._rows import BFloat16Rows, InMemoryRows, Request, bfloat
from skmixdp._rows.bfloat import from_bits, shortened, to_bits
from skmixdp.components.clipping import L2Clip
from skmixdp.components.queries import clipped_residuals
from skmixdp.public import PublicData
from tests.catalog import ALGORITHMS, CLIPPERS
from tests.conftest import Watched

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 7)).astype(np.float32)
Y = rng.integers(4, size=3000)


def asking(W, loss, clip, mask=None):
    """A request for clipped gradients, which bound themselves."""
    return Request(W, partial(clipped_residuals, loss=loss, clip=clip), mask, bounds_itself=True)


class Multiplied:
    """Products of bfloat16 matrices, and what was multiplied; in float32 where no library does it."""

    def __init__(self, product):
        self.product = product or (lambda A, B, out: np.matmul(from_bits(A), from_bits(B), out=out))
        self.left = []

    def __call__(self, A, B, out):
        self.left.append(A.copy())
        return self.product(A, B, out)


@pytest.fixture(params=["emulated", "oneDNN", "none"])
def multiplied(request, monkeypatch):
    """How bfloat16 matrices are multiplied, if they are."""
    product = bfloat16_product() if request.param == "oneDNN" else None
    if request.param == "oneDNN" and product is None:
        pytest.skip("no oneDNN with bfloat16 products for this processor; install skmixdp[onednn]")
    found = None if request.param == "none" else Multiplied(product)
    monkeypatch.setattr(bfloat, "bfloat16_product", lambda: found)
    return found


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


ROWS_AND_HEADS = given(
    X=hnp.arrays(np.float32, (4, 5), elements=st.floats(-(2.0**60), 2.0**60, width=32)),
    W=hnp.arrays(np.float64, (4, 5), elements=st.floats(-50, 50)),
)


def fixed_clip(name, W):
    """The loss of four classes, and a clip at the head ``W``."""
    loss = SoftmaxLoss(4)
    public = PublicData(np.random.default_rng(0).normal(size=(9, 5)), np.arange(9) % 4, loss)
    return loss, CLIPPERS[name].at(public.view(W))


@pytest.mark.parametrize("name", CLIPPERS)
@ROWS_AND_HEADS
def test_no_row_contributes_more_than_the_clip_states(name, X, W):
    """What a single row adds to the sums, in the arithmetic of reals, nearly."""
    loss, clip = fixed_clip(name, W)
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


@pytest.mark.parametrize("name", CLIPPERS)
@ROWS_AND_HEADS
def test_nor_does_what_is_multiplied_in_bfloat16(name, X, W):
    """Weighted residuals as they stand in the product, against the rows that they meet there."""
    loss, clip = fixed_clip(name, W)
    multiplied = Multiplied(bfloat16_product())
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(bfloat, "bfloat16_product", lambda: multiplied)
        BFloat16Rows([X], np.arange(4)).private_sums([asking(W, loss, clip)])
    points, weighted = multiplied.left
    np.testing.assert_array_equal(points, to_bits(W.astype(np.float32)))
    C, rows = from_bits(weighted).astype(np.longdouble).T, from_bits(to_bits(X)).astype(np.longdouble)
    lengths = np.linalg.norm(C, axis=1) * np.linalg.norm(rows, axis=1)
    assert lengths.max() <= clip.sensitivity(np.dtype("float32"))
    if "linf" in name:
        entries = np.abs(C).max(axis=1) * np.abs(rows).max(axis=1)
        assert entries.max() <= clip.largest_entry(np.dtype("float32"))


def test_weighted_residuals_that_are_rounded_to_the_nearest_would_break_the_bound():
    """The twin of the property above."""
    C = rng.normal(size=(3000, 4)).astype(np.float32)
    lengths = np.linalg.norm(C.astype(float), axis=1)
    nearest, zero = (from_bits(bits).astype(float) for bits in (to_bits(C), shortened(C)))
    assert np.max(np.linalg.norm(nearest, axis=1) / lengths) > 1 + 1e-3
    assert np.all(np.abs(zero) <= np.abs(C)) and np.all(np.abs(zero) >= np.abs(C) * (1 - 2**-7))


def test_sums_of_gradients_are_those_of_float32_to_eight_bits(multiplied):
    loss, labels = SoftmaxLoss(4), rng.integers(4, size=3000)
    mask = rng.random(3000) < 0.3
    requests = [
        asking(W, loss, L2Clip(0.5), taking) for W in rng.normal(size=(2, 4, 7)) for taking in (None, mask)
    ]
    rows = BFloat16Rows([X], labels, block_bytes=7 * 1024)
    wide = InMemoryRows(from_bits(to_bits(X)), labels).private_sums(requests)
    for (found, nothing), (expected, _) in zip(rows.private_sums(requests), wide, strict=True):
        assert nothing is None and found.dtype == np.float64
        allowed = 1e-5 if multiplied is None else 2**-7
        assert np.linalg.norm(found - expected) <= allowed * np.linalg.norm(expected)
    # Products of rows with points, and the sums of panels of rows: the points are asked for in each block.
    assert multiplied is None or len(multiplied.left) > 4


def test_questions_whose_bounds_need_exact_products_are_multiplied_in_float32(multiplied):
    rows = BFloat16Rows([X], Y)
    gradient = asking(np.ones((4, 7)), SoftmaxLoss(4), L2Clip(0.5))
    other = Request(np.ones((4, 7)), lambda Z, block: (Z, None))
    rows.private_sums([gradient, other])
    assert multiplied is None or multiplied.left == []
    rows.private_sums([gradient])
    assert multiplied is None or len(multiplied.left) == 1 + -(-3000 // PANEL_ROWS)


def test_lengths_of_rows_that_were_not_rounded_would_break_the_bound():
    """The twin of the property above: rounding can lengthen a row by more than is allowed for."""
    lengths = np.linalg.norm(from_bits(to_bits(X)).astype(float), axis=1)
    assert np.max(lengths / np.linalg.norm(X.astype(float), axis=1)) > 1 + 1e-3


@pytest.mark.parametrize("name", ["adamix", "dope-sgd", "gep", "modelmix, noisy-gd, linf", "pazo-m"])
def test_removing_a_row_moves_every_sum_by_at_most_its_sensitivity(problem, name, multiplied):
    recipe = problem.recipe(ALGORITHMS[name])
    plan = problem.plan(recipe, n_steps=3, dtype="float32")
    rows, labels = problem.X.astype(np.float32), problem.y.copy()
    rows[0] *= 100
    watched = []
    for start in (0, 1):
        noise = Watched(5)
        source = BFloat16Rows([rows[start:]], labels[start:])
        train([Run(recipe, plan, problem.info, noise, np.dtype("float32"))], source)
        watched.append(noise)
    one, other = watched
    for a, b, scale in zip(one.sums, other.sums, one.scales, strict=True):
        # Two releases of a step may share it; float32 sums of 300 rows are off by some 1e-5.
        assert np.linalg.norm(a - b) <= scale / plan.noise_multiplier + 1e-4


def test_a_fit_in_bfloat16_is_about_as_good(multiplied):
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
        (X, {"noise": "discrete"}, "has no exact sums; pass dtype='float32'"),
        (sp.csr_array(X), {}, "X is a SparseTable; pass dtype='float32'"),
    ],
)
def test_what_bfloat16_cannot_do_is_refused(rows, parameters, message):
    pytest.importorskip("opendp") if parameters else None
    head = MixedDPLogisticRegression(dtype="bfloat16", classes=range(4), **parameters)
    with pytest.raises(ValueError, match=message):
        head.fit(rows, Y)
