"""Several heads in one pass: each gets the answer that it would have got alone."""

from functools import partial

import numpy as np
import pytest

from skmixdp.components.clipping import AutomaticClip, L2Clip, clipped_residuals
from tests.asking import request_of
from tests.private_names import (
    PANEL_ROWS,
    Batch,
    InMemoryRows,
    L2LinfClipAt,
    LogisticLoss,
    MultilabelLoss,
    SoftmaxLoss,
    SquaredLoss,
)

rng = np.random.default_rng(0)
N, D = 2000, 12
X = rng.normal(size=(N, D)) / np.sqrt(D)
LOSSES = {
    "softmax": (SoftmaxLoss(5), rng.integers(5, size=N)),
    "wide": (SoftmaxLoss(40), rng.integers(40, size=N).astype(np.int8)),
    "logistic": (LogisticLoss(), rng.integers(2, size=N)),
    "labels": (MultilabelLoss(3), rng.integers(2, size=(N, 3), dtype=np.int8)),
    "squared": (SquaredLoss(3), rng.normal(size=(N, 3))),
}
CLIPS = [L2Clip(0.3), AutomaticClip(0.01), L2LinfClipAt(L2Clip(0.3), 8), L2Clip(5.0)]


def requests_of(loss, scale=1.0):
    heads = scale * rng.normal(size=(len(CLIPS), loss.n_outputs, D))
    mask = rng.random(N) < 0.5
    return [
        request_of(
            W,
            partial(clipped_residuals, loss=loss, clip=clip),
            Batch(members=members),
            panel_rows=0 if wide else PANEL_ROWS,
        )
        for W, clip, members, wide in zip(
            heads, CLIPS, [None, mask, ~mask, None], [False, False, True, True], strict=True
        )
    ]


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1.0, 100.0], ids=["moderate", "large outputs"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOSSES)
def test_heads_side_by_side_get_what_each_would_get_alone(name, dtype, scale):
    loss, y = LOSSES[name]
    requests = requests_of(loss, scale)
    rows = InMemoryRows(X.astype(dtype), y)
    tolerance = {"float32": 1e-4, "float64": 1e-11}[dtype]
    for (found, nothing), request in zip(rows.private_sums(requests), requests, strict=True):
        ((expected, _),) = rows.private_sums([request])
        assert nothing is None and found.shape == request.query.points.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_a_row_that_is_not_finite_has_no_part_in_a_sum():
    loss, y = LOSSES["softmax"]
    Z = rng.normal(size=(N, 5))
    Z[3, 2], Z[4, 1] = np.nan, np.inf

    class Rows:
        norms, max_abs = np.ones(N), np.ones(N)

    block = Rows()
    block.y = y
    with np.errstate(invalid="ignore"):
        for clip in CLIPS:
            C, _ = clipped_residuals(np.asfortranarray(Z), block, loss, clip)
            assert np.isfinite(C).all()
            np.testing.assert_array_equal(C[3:5], 0)
            assert np.abs(C[5]).max() > 0
