"""Weights of rows change neither what a row can contribute nor what other rows contribute."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp import MixedDPLogisticRegression
from skmixdp.components.clipping import clipped_residuals, weighted_query
from skmixdp.components.protocols import PrivateQuery, ReleasedArray
from skmixdp.components.public import PublicData
from tests.catalog import ALGORITHMS, CLIPPERS
from tests.conftest import Watched, make_label_problem, make_problem, make_regression_problem, train
from tests.private_names import (
    Block,
    LogisticLoss,
    MultilabelLoss,
    RowMap,
    SoftmaxLoss,
    SquaredLoss,
    WeightedLoss,
    fit_stage,
    labels_module,
    row_norms,
    training,
    with_weights,
)
from tests.property.spies import Recorded, prepare, source

#: As they are after they were divided by the largest one.
WEIGHTS = st.sampled_from([0.0, 5e-324, 1e-45, 1e-30, 0.3, 1 / 3, 0.7, 1.0])
VALUES = st.one_of(st.floats(-3, 3, width=32), st.sampled_from([0.0, 1e-30, 1e6, 1e18, -1e18]))
LOSSES = {
    "two classes": LogisticLoss(),
    "four classes": SoftmaxLoss(4),
    "several labels": MultilabelLoss(3),
    "targets": SquaredLoss(2),
}


def labels_of(loss, n, rng):
    if isinstance(loss, SquaredLoss):
        return rng.normal(size=(n, 2))
    if isinstance(loss, MultilabelLoss):
        return rng.integers(2, size=(n, 3), dtype=np.int8)
    return rng.integers(max(loss.n_outputs, 2), size=n)


@pytest.mark.parametrize("clip", CLIPPERS)
@given(data=st.data())
def test_no_weighted_row_contributes_more_than_the_clip_states(clip, data):
    loss = LOSSES[data.draw(st.sampled_from(sorted(LOSSES)))]
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    n = data.draw(st.integers(1, 6))
    X = data.draw(hnp.arrays(np.float64, (n, 5), elements=VALUES)).astype(dtype)
    W = data.draw(hnp.arrays(np.float64, (loss.n_outputs, 5), elements=st.floats(-50, 50)))
    weights = data.draw(hnp.arrays(np.float64, n, elements=WEIGHTS))
    rng = np.random.default_rng(0)
    public = PublicData(rng.normal(size=(9, 5)), labels_of(loss, 9, rng), WeightedLoss(loss))
    y = with_weights(labels_of(loss, n, rng), weights)
    fixed = CLIPPERS[clip].at(public.view(W))
    with np.errstate(all="ignore"):
        contribute = partial(clipped_residuals, loss=WeightedLoss(loss), clip=fixed)
        query = PrivateQuery(W, contribute, (ReleasedArray(1.0),))
        of_rows = weighted_query(query, WeightedLoss(loss), of_gradients=True)
        C, _ = of_rows.contribute(X @ W.T.astype(dtype), Block(X, y, row_norms(X)))
    assert np.isfinite(C).all()
    lengths = np.linalg.norm(C.astype(np.longdouble), axis=1) * np.linalg.norm(
        X.astype(np.longdouble), axis=1
    )
    # No more than three times the weight, too.
    assert (
        lengths <= fixed.sensitivity(np.dtype(dtype)) * np.minimum(3 * weights * (1 + 1e-6), 1) + 1e-44
    ).all()
    assert not C[weights == 0].any()


N, D = 90, 8
KINDS = ["memory", "sparse", "memory map", "memory map, as if wide", "dask", "torch", "torch, as on a device"]
PROBLEMS = {
    "two classes": make_problem(2, n_rows=N, d=D),
    "four classes": make_problem(4, n_rows=N, d=D),
    "several labels": make_label_problem(3, n_rows=N, d=D),
    "targets": make_regression_problem(2, n_rows=N, d=D),
}
NAMES = ["noisy-gd, private alone", "auto", "adamix", "coupling", "dope-sgd", "gep"]


def weighted(info):
    """Public facts of a fit whose private rows carry weights."""
    data = info.view.data
    other = PublicData(data.X, data.y, WeightedLoss(data.loss), data.l2, data.multiplied.dtype)
    return replace(info, view=other.view(info.view.W))


@cache
def planned(name, algorithm, dtype):
    problem = PROBLEMS[name]
    try:
        recipe = problem.recipe(ALGORITHMS[algorithm])
    except ValueError:
        return None
    return problem.plan(recipe, n_steps=2, dtype=dtype)


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_weight_of_a_row_moves_no_other_row(kind, tmp_path_factory, monkeypatch, data):
    prepare(kind, monkeypatch)
    name = data.draw(st.sampled_from(sorted(PROBLEMS)))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    plan = planned(name, data.draw(st.sampled_from([each for each in NAMES if each in ALGORITHMS])), dtype)
    if plan is None:
        return
    problem, place = PROBLEMS[name], data.draw(st.integers(0, N - 1))
    row_map = RowMap(None, True, 0.4)
    X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    weights = np.random.default_rng(1).exponential(size=N)
    info, seen, sums = weighted(problem.info), [], []
    members = np.arange(N) != place
    fold = replace(info, n_private=N - 1, batch_size=float(N - 1))
    for weight in (1.0, data.draw(WEIGHTS)):
        weights[place] = weight
        held = source(
            kind, tmp_path_factory.mktemp("rows"), X, with_weights(problem.y, weights), row_map, dtype
        )
        rows, watched = Recorded(held), Watched(2)
        runs = [
            training(replace(plan, info=info), Watched(1)),
            training(replace(plan, info=fold), watched, members),
        ]
        train(runs, rows)
        seen.append(rows.seen)
        sums.append(watched.sums)
    gone = seen[0] - seen[1]
    assert sum(gone.values()) <= sum(seen[0].values()) // N
    # A fold without the row is released the same sums, bit for bit.
    for one, other in zip(*sums, strict=True):
        np.testing.assert_array_equal(one, other)


def test_balanced_weights_are_those_of_released_counts_whatever_the_other_rows_are(monkeypatch):
    """A sum or mean of the weights over private rows would let one row change the weights of all others."""
    shares = np.array([0.5, 0.3, 0.2])
    given = []

    def recorded(y, weights):
        given.append(weights)
        return with_weights(y, weights)

    monkeypatch.setattr(labels_module, "class_shares", lambda counts, scale, n_rows: shares)
    monkeypatch.setattr(fit_stage, "with_weights", recorded)
    X = np.random.default_rng(0).normal(size=(300, 4))
    for y in (np.arange(300) % 3, np.minimum(np.arange(300) % 7, 2)):
        own = 1.0 + np.arange(300) % 5
        for sample_weight, scale in ((None, 1.0), (own, 4.0), (1e-300 * own, 4e-300)):
            head = MixedDPLogisticRegression(
                "noisy-gd", epsilon=9.0, delta=1e-4, classes=range(3), class_weight="balanced"
            ).set_params(max_sample_weight=max(scale, 1e-100))
            head.fit(X, y, sample_weight=sample_weight)
            expected = (0.2 / shares)[y]
            if sample_weight is not None:
                expected = expected * np.minimum(sample_weight / max(scale, 1e-100), 1.0)
            np.testing.assert_allclose(given[-1], expected, rtol=0, atol=1e-14)
