"""Queries of one kind are asked as one, and each gets the answer that it would have got alone."""

import numpy as np
import pytest

from skmixdp._linear import LogisticLoss, SoftmaxLoss, SquaredLoss
from skmixdp._rows import InMemoryRows, Request
from skmixdp._rows.joining import Joined
from skmixdp.components.clipping import AutomaticClip, L2Clip
from skmixdp.components.queries import ClippedResiduals
from skmixdp.modelmix.clipping import L2LinfClipAt

rng = np.random.default_rng(0)
N, D = 2000, 12
X = rng.normal(size=(N, D)) / np.sqrt(D)
LOSSES = {
    "softmax": (SoftmaxLoss(5), rng.integers(5, size=N)),
    "wide": (SoftmaxLoss(40), rng.integers(40, size=N).astype(np.int8)),
    "logistic": (LogisticLoss(), rng.integers(2, size=N)),
    "squared": (SquaredLoss(3), rng.normal(size=(N, 3))),
}
CLIPS = {
    "l2": [L2Clip(0.3), L2Clip(0.01), L2Clip(5.0)],
    "mixed": [L2Clip(0.3), AutomaticClip(0.01), L2LinfClipAt(L2Clip(0.3), 8)],
}


def queries(loss, clips, scale=1.0):
    heads = scale * rng.normal(size=(len(clips), loss.n_outputs, D))
    return [Request(W, ClippedResiduals(loss, (clip,))) for W, clip in zip(heads, clips, strict=True)]


@pytest.mark.parametrize("scale", [1.0, 100.0], ids=["moderate", "large outputs"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("clips", CLIPS)
@pytest.mark.parametrize("name", LOSSES)
def test_heads_side_by_side_get_what_each_would_get_alone(name, clips, dtype, scale):
    loss, y = LOSSES[name]
    requests = queries(loss, CLIPS[clips], scale)
    assert len(Joined(requests).requests) == 1
    rows = InMemoryRows(X.astype(dtype), y)
    tolerance = {"float32": 1e-4, "float64": 1e-11}[dtype]
    for (found, nothing), request in zip(rows.private_sums(requests), requests, strict=True):
        ((expected, _),) = rows.private_sums([request])
        assert nothing is None and found.shape == request.points.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LOSSES)
def test_no_row_of_any_head_contributes_more_than_its_own_clip_states(name, dtype):
    loss, y = LOSSES[name]
    clips = CLIPS["l2"]
    (joint,) = Joined(queries(loss, clips)).requests
    seen = []

    def contribute(Z, block):
        C, S = joint.contribute(Z, block)
        seen.append(C.reshape(len(C), len(clips), -1).copy())
        return C, S

    rows = (100 * X).astype(dtype)
    InMemoryRows(rows, y).private_sums([Request(joint.points, contribute, n_joined=len(clips))])
    lengths = np.linalg.norm(rows.astype(np.longdouble), axis=1)
    C = np.concatenate(seen).astype(np.longdouble)
    for j, clip in enumerate(clips):
        contributed = (np.linalg.norm(C[:, j], axis=1) * lengths).max()
        assert contributed <= clip.sensitivity(np.dtype(dtype))
        assert contributed > 0.99 * clip.threshold  # the clip is active


def test_only_questions_of_one_kind_about_the_same_rows_are_joined():
    loss, _ = LOSSES["softmax"]
    mask = rng.random(N) < 0.5
    contribute = ClippedResiduals(loss, (L2Clip(1.0),))
    W = np.zeros((5, D))
    apart = [
        Request(W, contribute),
        Request(W, lambda Z, block: (Z, None)),
        Request(W, ClippedResiduals(SoftmaxLoss(6), (L2Clip(1.0),))),
        Request(W, contribute, mask),
        Request(W, contribute, resolution=0.5),
        Request(W, contribute, n_head=5, run=contribute),
    ]
    assert Joined(apart).requests == apart
    mixed = [apart[0], apart[1], apart[0], apart[3], apart[3]]
    joined = Joined(mixed)
    assert [request.n_joined for request in joined.requests] == [2, 1, 2]
    parts = [(np.arange(4.0), None), (None, np.ones(3)), (np.arange(2.0), None)]
    first, second, third, fourth, fifth = joined.answers(parts)
    np.testing.assert_array_equal(first[0], [0, 1])
    np.testing.assert_array_equal(third[0], [2, 3])
    assert second[0] is None and len(second[1]) == 3
    np.testing.assert_array_equal([fourth[0], fifth[0]], [[0], [1]])


def test_a_row_that_is_not_finite_has_no_part_in_any_head():
    loss, _ = LOSSES["softmax"]
    Z = rng.normal(size=(N, 10))
    Z[3, 2], Z[4, 7] = np.nan, np.inf

    class Rows:
        y, norms = LOSSES["softmax"][1], np.ones(N)

    with np.errstate(invalid="ignore"):
        C, _ = ClippedResiduals(loss, (L2Clip(1.0), L2Clip(2.0)))(np.asfortranarray(Z), Rows())
    assert np.isfinite(C).all()
    for row, columns in ((3, slice(0, 5)), (4, slice(5, 10))):
        np.testing.assert_array_equal(C[row, columns], 0)
        assert np.abs(C[row]).max() > 0  # the other head's part
