"""No row moves the histograms of an evaluation by more than the stated sensitivity, whatever it holds."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.model_selection import private_evaluation
from tests.given_models import GivenPredictions, GivenScores, RoundedByPlace
from tests.private_names import GaussianMechanism, recorded_releases

pytestmark = pytest.mark.filterwarnings("ignore:delta:UserWarning")

N, K = 12, 3
SCORES = st.one_of(
    st.floats(0, 1), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0, 0.5, -3.0, 7.0, 5e-324, 1 / 3])
)
TARGETS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308])
)
PREDICTIONS = st.one_of(st.floats(), st.sampled_from([math.nan, math.inf, -math.inf]))


def released(X, y, **parameters):
    """The sum to which noise is added, its stated sensitivity, and the evaluation."""
    found = []
    model = parameters.pop("model", None)
    if model is None:
        model = GivenPredictions() if "target_bounds" in parameters else GivenScores(X.shape[1])

    def add_noise(self, query, arrays, grid):
        found.append((np.array(arrays[0]), query.releases[0].sensitivity))
        return tuple(arrays)

    with patch.object(GaussianMechanism, "add_noise", add_noise):
        evaluation = private_evaluation(model, X, y, epsilon=1.0, **parameters)
    ((exact, sensitivity),) = found
    return exact, sensitivity, evaluation


def absent(X, y, row, **parameters):
    """The sum without one row."""
    absent = np.zeros(len(y), bool)
    absent[row] = True
    with recorded_releases(absent):
        return released(X, y, **parameters)[0]


def check(X, y, n_histograms, **parameters):
    """Each row adds 1 to one cell of each histogram, and no row moves what another adds."""
    exact, sensitivity, evaluation = released(X, y, **parameters)
    assert math.sqrt(n_histograms) <= sensitivity <= math.sqrt(n_histograms) * (1 + 1e-6)
    counts = exact.reshape(n_histograms, -1)
    np.testing.assert_array_equal(counts, np.round(counts))
    np.testing.assert_array_equal(counts.sum(axis=1), len(y))
    move = exact - absent(X, y, 0, **parameters)
    assert np.linalg.norm(move) == pytest.approx(math.sqrt(n_histograms))
    assert np.linalg.norm(move) <= sensitivity and np.all((move == 0) | (move == 1))
    assert evaluation.cells.n_rows == len(y)


@given(p=hnp.arrays(np.float64, N, elements=SCORES), y=hnp.arrays(np.int64, N, elements=st.integers(0, 1)))
def test_two_classes(p, y):
    check(np.column_stack([1 - p, p]), y, 1)


@given(
    P=hnp.arrays(np.float64, (N, K), elements=SCORES),
    y=hnp.arrays(np.int64, N, elements=st.integers(0, K - 1)),
)
@pytest.mark.parametrize(("layout", "n_histograms"), [("auto", 1), ("top", 1), ("one_vs_rest", K)])
def test_several_classes(P, y, layout, n_histograms):
    check(P, y, n_histograms, layout=layout)


@given(
    P=hnp.arrays(np.float64, (N, K), elements=SCORES),
    y=hnp.arrays(np.int64, (N, K), elements=st.integers(0, 1)),
)
def test_several_labels(P, y):
    check(P, y, K)


@given(
    predicted=hnp.arrays(np.float64, N, elements=PREDICTIONS),
    y=hnp.arrays(np.float64, N, elements=TARGETS),
    bound=st.sampled_from([None, 1e-3, 2.0, 1e100]),
)
def test_regression(predicted, y, bound):
    check(predicted[:, np.newaxis], y, 2, target_bounds=(-1.0, 3.0), residual_bound=bound)


@given(
    P=hnp.arrays(np.float64, (N, K), elements=SCORES),
    y=hnp.arrays(np.int64, N, elements=st.integers(0, K - 1)),
    other=hnp.arrays(np.float64, K, elements=SCORES),
    label=st.integers(0, K - 1),
)
def test_another_row_in_its_place_moves_no_other(P, y, other, label):
    """What is replaced moves at most two cells of each histogram, and the layout stays."""
    Q, z = P.copy(), y.copy()
    Q[0], z[0] = other, label
    before, after = (released(A, b, layout="one_vs_rest") for A, b in ((P, y), (Q, z)))
    assert before[0].shape == after[0].shape and before[1] == after[1]
    np.testing.assert_array_equal(before[2].logits, after[2].logits)
    assert np.linalg.norm(before[0] - after[0]) <= 2 * before[1]
    assert np.abs(before[0] - after[0]).reshape(K, -1).sum(axis=1).max() <= 2


def test_ties_and_ends_have_fixed_cells():
    """Scores that are no probabilities are in the first cell or the last, as are 0 and 1."""
    p = np.array([math.nan, -1.0, 0.0, 1.0, 0.5, 0.5])
    exact, _, found = released(np.column_stack([1 - p, p]), np.zeros(6, int), n_bins=8)
    np.testing.assert_array_equal(exact.ravel()[:8], [3, 0, 0, 0, 2, 0, 0, 1])
    assert len(found.logits) == 9


@pytest.mark.parametrize("n_more", [1, 7, 1000])
def test_a_person_that_grows_moves_no_score_of_another(n_more):
    """Models round a row by its place and by how many rows there are."""
    groups = np.arange(100) // 2
    X = np.tile([0.8, 0.2], (100, 1))
    grown, more = np.concatenate([X, X[:1].repeat(n_more, 0)]), np.append(groups, np.zeros(n_more, int))
    sums = [
        released(rows, np.zeros(len(rows), int), model=RoundedByPlace(), groups=persons)
        for rows, persons in ((X, groups), (np.roll(grown, n_more, 0), np.roll(more, n_more)))
    ]
    assert np.linalg.norm(sums[0][0] - sums[1][0]) <= 2 * sums[0][1]
