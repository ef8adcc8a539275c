import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skmixdp.components.public import PublicData
from tests.conftest import make_problem
from tests.private_names import SoftmaxLoss, SquaredLoss, classification_loss
from tests.rounding import assert_close


def test_the_fit_is_scikit_learns_minimiser(problem):
    data = problem.info.view.data
    W = data.fit(0.3)
    reference = LogisticRegression(C=1 / 0.3, fit_intercept=False, tol=1e-10, max_iter=10_000)
    reference.fit(data.X, data.y)
    np.testing.assert_allclose(W, reference.coef_, atol=2e-4)


@pytest.mark.parametrize("l2", [1e-3, 0.2, 10.0])
def test_the_fit_has_converged(problem, l2):
    data = problem.info.view.data
    W = data.fit(l2)
    gradient = data.n_rows * data.view(W).gradient + l2 * W
    assert np.linalg.norm(gradient) / l2 < 1e-2 * max(1, np.linalg.norm(W))


def test_the_fit_works_with_a_class_that_has_no_row():
    problem = make_problem(4)
    data = problem.info.view.data
    seen = data.y != 2
    W = PublicData(data.X[seen], data.y[seen], SoftmaxLoss(4)).fit(0.2)
    assert np.isfinite(W).all()
    assert (data.X[seen] @ W.T).argmax(axis=1).tolist().count(2) == 0


def test_a_view_equals_the_dense_gradients(problem):
    view, data = problem.info.view, problem.info.view.data
    R = data.loss.residuals(data.X @ view.W.T, data.y)
    dense = R[:, :, None] * data.X[:, None, :]
    assert_close(view.gradient, dense.mean(axis=0))
    assert_close(view.gradient_norms, np.linalg.norm(dense.reshape(len(dense), -1), axis=1))


@pytest.mark.parametrize(("size", "narrow"), [(1.0, True), (1e20, False)])
def test_a_view_multiplies_in_the_dtype_of_private_products(problem, size, narrow):
    """Only that: what it says is float64. Rows whose products could overflow stay float64."""
    wide = problem.info.view.data
    data = PublicData(size * wide.X, wide.y, wide.loss, dtype=np.dtype(np.float32))
    view, want = data.view(problem.info.view.W / size), wide.view(problem.info.view.W)
    assert data.multiplied.dtype == (np.float32 if narrow else np.float64)
    tolerance = 1e-6 if narrow else 1e-12
    for found, right in (
        (view.residuals, want.residuals),
        (view.gradient, size * want.gradient),
        (view.gradient_norms, size * want.gradient_norms),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, right, rtol=0, atol=tolerance * np.abs(right).max())


def test_rounding_is_no_direction_of_the_basis():
    """Softmax gradients sum to zero over k classes: k - 1 directions, in float32 too."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 30)), np.arange(40) % 4
    W = 0.3 * rng.normal(size=(4, 30))
    bases = [
        PublicData(X, y, SoftmaxLoss(4), dtype=np.dtype(dtype)).view(W).basis(6)
        for dtype in ("float32", "float64")
    ]
    shared = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    np.testing.assert_allclose(shared, 1, atol=1e-5)


class TestBasis:
    def test_it_starts_with_the_gradients_own_directions(self, problem):
        view = problem.info.view
        k = len(view.W)
        U = view.basis(k)
        if k == 1:
            assert_close(np.abs(U[:, 0] @ view.gradient[0]), np.linalg.norm(view.gradient))
        np.testing.assert_allclose(view.gradient @ U @ U.T, view.gradient, atol=1e-10)

    def test_it_is_orthonormal_and_nested(self, problem):
        view = problem.info.view
        larger = view.basis(6)
        np.testing.assert_allclose(larger.T @ larger, np.eye(6), atol=1e-12)
        np.testing.assert_array_equal(larger, view.data.view(view.W).basis(6))
        smaller = view.basis(3)
        np.testing.assert_allclose(smaller.T @ larger @ larger.T, smaller.T, atol=1e-10)

    def test_it_is_completed_by_the_rows_principal_directions(self, problem):
        view, data = problem.info.view, problem.info.view.data
        U = view.basis(len(view.W) + 1)
        strongest = data.principal_directions[0]
        np.testing.assert_allclose(strongest @ U @ U.T, strongest, atol=1e-8)

    def test_it_stops_at_the_rank_of_the_public_rows(self):
        data = make_problem(4, n_pub=4).info.view.data
        assert data.view(np.zeros((4, data.X.shape[1]))).basis(9).shape[1] == 4
        zeros = PublicData(np.zeros((3, 5)), np.array([0, 1, 2]), classification_loss(3))
        assert zeros.view(np.zeros((3, 5))).basis(2).shape == (5, 0)


def test_without_rows_the_gradient_is_zero():
    problem = make_problem(n_pub=0)
    assert problem.info.view.data.n_rows == 0
    np.testing.assert_array_equal(problem.info.view.gradient, 0)


@pytest.mark.parametrize(
    ("n", "bound", "times"), [(5, 9.0, 4.0), (45, 9.0, 4 / 3), (5, 0.1, 1.0), (5, np.inf, 4.0)]
)
def test_few_rows_with_targets_may_hide_a_larger_second_moment(n, bound, times):
    """Squared loss bears no step that is too long for a direction in which public rows are short."""
    X = np.random.default_rng(0).normal(size=(n, 15))
    seen = np.linalg.norm(X, 2) ** 2 / n
    with_targets = PublicData(X, np.zeros((n, 1)), SquaredLoss(1)).largest_second_moment(bound)
    assert_close(with_targets, seen * times if bound == np.inf or times == 1 else min(seen * times, bound**2))
    assert_close(PublicData(X, np.zeros(n, int), SoftmaxLoss(3)).largest_second_moment(bound), seen)
