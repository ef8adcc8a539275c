"""Laws of the rules for the public weight."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skmixdp.components import ConvexWeight, CosineWeight, CouplingWeight
from skmixdp.components.protocols import PublicInfo, ReleaseFacts
from skmixdp.components.public import PublicData
from tests.conftest import make_problem
from tests.private_names import SoftmaxLoss, held_out_losses, solution_error
from tests.rounding import assert_close

POSITIVE = st.floats(1e-3, 1e3)
COUPLING = {
    "b": st.floats(1, 1e6),
    "L": POSITIVE,
    "L0": POSITIVE,
    "sigma": st.floats(0.1, 1e3),
    "p": st.integers(1, 10**5),
}


def coupling(b, L, L0, sigma, p, S=1.0):
    data = PublicData(np.ones((2, p)), np.array([0, 1]), SoftmaxLoss(3))
    view = data.view(np.zeros((1, p)))
    info = PublicInfo(view, mu=1.0, n_private=10**6, batch_size=b, row_norm_bound=1.0)
    return CouplingWeight(L, L0).bind(info, ReleaseFacts(sigma, 10, S))(1, view)


@pytest.mark.parametrize(("name", "sign"), [("b", -1), ("L", -1), ("L0", -1), ("sigma", 1), ("p", 1)])
@given(values=st.fixed_dictionaries(COUPLING), factor=st.integers(2, 10))
def test_coupling_is_monotone(name, sign, values, factor):
    a = coupling(**values)
    moved = coupling(**{**values, name: values[name] * factor})
    assert 0 < a < 1
    assert sign * (moved - a) >= -1e-12
    # And by more than rounding, unless the other term under the root drowns the change.
    share = values["b"] ** 2 / (values["b"] ** 2 + values["sigma"] ** 2 * values["p"])
    if 0.01 < share < 0.99 and 0.01 < a < 0.99:
        assert sign * (moved - a) > 0


@given(values=st.fixed_dictionaries(COUPLING), S=st.floats(0.01, 10))
def test_coupling_is_equation_5_with_the_thresholds_b(values, S):
    b, L, L0, sigma, p = (values[name] for name in ("b", "L", "L0", "sigma", "p"))
    expected = 1 / (1 + b / S * np.sqrt(2 * L * L0 / (b**2 + sigma**2 * p)))
    assert coupling(**values, S=S) == pytest.approx(expected)


@given(
    D=st.floats(0, 1e3),
    V=st.floats(0, 1e3),
    sigma=st.floats(0.1, 1e3),
    T=st.integers(1, 1000),
    S=st.floats(0.01, 10),
    n_pub=st.integers(2, 60),
    n_priv=st.integers(2, 10**5),
)
def test_convex_is_the_minimiser_on_a_dense_grid(D, V, sigma, T, S, n_pub, n_priv):
    data = PublicData(np.ones((n_pub, 3)), np.arange(n_pub) % 2, SoftmaxLoss(4))
    view = data.view(np.zeros((4, 3)))
    info = PublicInfo(view, 1.0, n_priv, float(n_priv), 1.0)
    a = ConvexWeight(D, V).bind(info, ReleaseFacts(sigma, T, S))(1, view)
    assert n_pub / (n_pub + n_priv) <= a <= 1
    mu, p = np.sqrt(T) / sigma, 12

    def bound(a):
        optimisation = S * D * (1 - a) * np.sqrt(p) / (mu * n_priv)
        return optimisation + np.sqrt(((1 - a) ** 2 / n_priv + a**2 / n_pub) * V * p)

    lowest = bound(np.linspace(0, 1, 20_001)).min()
    assert bound(a) <= lowest + 1e-9 * max(lowest, bound(0.0))


def test_convex_takes_public_rows_alone_where_the_budget_is_next_to_nothing():
    info = make_problem().info
    assert ConvexWeight().bind(info, ReleaseFacts(1e9, 1, 1.0))(1, info.view) == 1.0
    generous = ConvexWeight().bind(info, ReleaseFacts(1e-9, 1, 1.0))(1, info.view)
    assert generous == pytest.approx(24 / 324, rel=1e-6)


def test_constants_come_from_held_out_public_rows():
    """A start fitted to the public rows is not taken for the optimum, nor their losses for new ones."""
    info = make_problem().info
    data, facts = info.view.data, ReleaseFacts(20.0, 30, 0.5)
    fitted = replace(info, view=data.view(data.solution))
    by_rule = ConvexWeight().bind(fitted, facts)(1, fitted.view)
    by_hand = ConvexWeight(solution_error(data), float(np.var(held_out_losses(data))))
    assert by_rule == by_hand.bind(fitted, facts)(1, fitted.view)
    assert solution_error(data) > 0
    seen = data.loss.values(data.X @ data.solution.T, data.y)
    assert held_out_losses(data).mean() > seen.mean()
    assert len(held_out_losses(data)) == 24
    for half in data.halves:
        assert np.bincount(half.y, minlength=4).tolist() == [3] * 4


def test_coupling_measures_the_initial_loss_at_zero():
    info, facts = make_problem().info, ReleaseFacts(20.0, 30, 0.5)
    by_hand = CouplingWeight(info.curvature, np.log(4)).bind(info, facts)(1, info.view)
    assert CouplingWeight().bind(info, facts)(1, info.view) == pytest.approx(by_hand)


def test_cosine_turns_from_private_to_public_and_stays():
    info, facts = make_problem().info, ReleaseFacts(20.0, 30, 0.5)
    rule = CosineWeight(20).bind(info, facts)
    weights = [rule(t, info.view) for t in range(1, 31)]
    assert_close(weights[:19], 1 - np.cos(np.pi * np.arange(1, 20) / 40))
    assert weights[19:] == [1.0] * 11
    assert CosineWeight().bind(info, facts)(30, info.view) == pytest.approx(1 - np.sqrt(0.5))


@pytest.mark.parametrize("n_pub", [0, 1])
def test_too_few_public_rows_to_measure_anything(n_pub):
    info, facts = make_problem(n_pub=n_pub).info, ReleaseFacts(20.0, 30, 0.5)
    assert ConvexWeight().bind(info, facts)(1, info.view) == n_pub / (n_pub + 300)
    if n_pub == 0:
        for rule in (CouplingWeight(), CosineWeight(3)):
            assert rule.bind(info, facts)(5, info.view) == 0
