"""No row adds more to the sums of a stage than is stated, whatever it holds, and others add the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.asking import exact_sums
from tests.private_names import (
    Block,
    InMemoryRows,
    MultilabelLoss,
    SquaredLoss,
    at_shares,
    at_temperature,
    at_temperature_of_rare,
    classification_loss,
    comparison_query,
    gains_query,
    recalibrated,
    with_weights,
)

EXTREME = [0.0, 1.0, -7.5, 30.0, 1e15, 1e18, -1e38, 1e300, -1e300, np.inf, -np.inf, np.nan, 5e-324, 1e-300]
ENTRIES = st.floats(-50, 50) | st.floats(-3, 3) | st.sampled_from(EXTREME)
LIMITS = st.sampled_from([5e-324, 1e-9, 1.0, 1e300])


def zeros(k, m=1):
    """A head of ``k`` outputs, and ``m`` others."""
    return np.zeros((k, k)), [np.zeros((k, k))] * m


def mean_prediction(k, loss):
    return next(at_shares(np.zeros((k, k)), 1e-9, logits=np.zeros(k), loss=loss, n_rows=5000, constant=0.5))


def temperature(k, has_classes=True):
    return next(at_temperature(np.zeros((k, k)), 1.0, has_classes=has_classes, mu=1.0))


def rare(logit):
    """Both queries for a rare class."""
    head, terms = np.zeros((1, 2)), {"mu": 1.0, "logit": logit, "n_rare": 400.0, "constant": 1.0}
    rounds = at_temperature_of_rare(head, 1e-3, **terms)
    return next(rounds), rounds.send((np.array([300.0, 50.0]),))


def residuals(k, head=0.0, target=0.0):
    """Both queries for a head, with exact answers to the first."""
    rounds = recalibrated(np.full((k, 2), head), 1e-9, n_rows=8000, constant=0.5)
    first = next(rounds)
    return first, rounds.send((exact_sums(first, InMemoryRows(np.ones((40, 2)), np.full((40, k), target))),))


def comparison(k, m):
    return comparison_query(*zeros(k, m))


def gains(k, m, limit, loss):
    return gains_query(*zeros(k, m), limit, loss)


#: Kind of labels, outputs of a head, heads, and the queries, by what else is drawn.
QUERIES = {
    "comparison": ("classes", 3, 4, lambda draw: [comparison(3, 3)]),
    "gains of targets": ("targets", 2, 4, lambda draw: [gains(2, 3, draw(LIMITS), SquaredLoss(2))]),
    "gains of labels": ("labels", 3, 3, lambda draw: [gains(3, 2, draw(LIMITS), MultilabelLoss(3))]),
    "rare class": ("classes", 1, 1, lambda draw: rare(draw(st.sampled_from([-7.0, -2.0, 3.0])))),
}
for _k in (1, 3, 10, 77):
    QUERIES |= {
        f"mean prediction, {_k} of classes": (
            *("classes", _k, 1),
            lambda draw, k=_k: [mean_prediction(k, classification_loss(max(k, 2)))],
        ),
        f"mean prediction, {_k} of labels": (
            *("labels", _k, 1),
            lambda draw, k=_k: [mean_prediction(k, MultilabelLoss(k))],
        ),
        f"residuals, {_k}": (
            *("targets", _k, 1),
            lambda draw, k=_k: residuals(k, draw(st.floats(-3, 3)), draw(st.floats(-9, 9))),
        ),
        f"temperature, {_k} of classes": ("classes", _k, 1, lambda draw, k=_k: [temperature(k)]),
        f"temperature, {_k} of labels": ("labels", _k, 1, lambda draw, k=_k: [temperature(k, False)]),
    }
#: Shape, type and entries of labels.
LABELS = {
    "classes": lambda n, k: hnp.arrays(np.intp, n, elements=st.integers(0, max(k, 2) - 1)),
    "labels": lambda n, k: hnp.arrays(np.int8, (n, k), elements=st.integers(0, 1)),
    "targets": lambda n, k: hnp.arrays(np.float64, (n, k), elements=ENTRIES),
}


@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data(), dtype=st.sampled_from(["f4", "f8"]))
def test_no_row_adds_more_than_is_stated_and_its_sums_are_its_own(name, data, dtype):
    kind, k, n_heads, queries = QUERIES[name]
    n = data.draw(st.integers(1, 5))
    with np.errstate(all="ignore"):
        Z = data.draw(hnp.arrays(np.float64, (n, k * n_heads), elements=ENTRIES)).astype(dtype)
        y = data.draw(LABELS[kind](n, k))
        y = y.astype(dtype) if kind == "targets" else y
        weights = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0, 1e300])))
        asked = queries(data.draw)
        assert sum(query.releases[0].share for query in asked) == pytest.approx(1, abs=1e-12)
        for query in asked:

            def sums(rows, labels=y, query=query):
                n_rows = len(Z[rows])
                C, S = query.contribute(
                    Z[rows].copy(), Block(np.ones((n_rows, 2)), labels[rows], np.ones(n_rows))
                )
                assert C is None
                return np.asarray(S)

            together = sums(slice(None))
            assert np.isfinite(together).all()
            assert np.all(np.linalg.norm(together, axis=1) <= query.releases[0].sensitivity)
            for i in range(n):
                np.testing.assert_array_equal(sums(slice(i, i + 1))[0], together[i])
            np.testing.assert_array_equal(sums(slice(None), with_weights(y, weights)), together)


WRONG = np.array([1])
#: A query, and the outputs and labels of a row that reaches its bound.
REACHED = {
    **{
        f"comparison of {m}": (comparison(2, m), np.hstack([[[1.0, 0.0]], np.tile([[0.0, 1.0]], m)]), WRONG)
        for m in (1, 2, 3, 5)
    },
    **{
        f"gains, {m}": (gains(1, m, 0.5, SquaredLoss(1)), np.array([[3.0] + [0.0] * m]), np.zeros((1, 1)))
        for m in (1, 2, 5)
    },
    "mean prediction, 2": (mean_prediction(1, classification_loss(2)), np.full((1, 1), -60.0), WRONG),
    "mean prediction, 4": (
        *(mean_prediction(4, classification_loss(4)), np.array([[60.0, -60.0, -60.0, -60.0]]), WRONG),
    ),
    "mean prediction of labels": (
        *(mean_prediction(3, MultilabelLoss(3)), np.full((1, 3), -60.0), np.ones((1, 3), int)),
    ),
    **{
        f"residuals, {k}, {i}": (residuals(k)[i], np.full((1, k), 1e9), np.full((1, k), -1e9))
        for k in (1, 3)
        for i in (0, 1)
    },
    "temperature": (temperature(3), 1e6 * np.eye(3)[:1], WRONG),
    **{
        f"rare class, {logit}": (rare(logit)[0], np.array([[60.0 if logit < 0 else -60.0]]), WRONG)
        for logit in (-7.0, -2.0, 3.0)
    },
}


@pytest.mark.parametrize("name", REACHED)
def test_the_sensitivity_is_reached_and_not_more_than_needed(name):
    query, Z, y = REACHED[name]
    _, S = query.contribute(Z.copy(), Block(np.ones((1, 1)), y, np.ones(1)))
    moved = float(np.linalg.norm(np.asarray(S)))
    assert moved * (1 - 1e-12) <= query.releases[0].sensitivity <= 1.001 * moved
