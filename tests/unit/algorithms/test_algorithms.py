"""Every algorithm against plain descent, and what each refuses."""

import numpy as np
import pytest
from sklearn.base import clone

from skmixdp.algorithms import BY_NAME, DOPE, GEP, PDADPMD, AdaMix, Auto, Coupling, ModelMix, NoisyGD
from skmixdp.components import SampleWeight
from skmixdp.components.protocols import ReleaseFacts, StepContext
from skmixdp.components.subspaces import Complement, Coordinates
from skmixdp.privacy import NoiseSource
from tests.catalog import ALGORITHMS, UPDATES, WEIGHTINGS
from tests.conftest import make_problem, recipe_or_refusal
from tests.rounding import assert_close

FLOAT = np.dtype("float64")
NO_CLIP = 1e6


def mean_gradient(problem, W, l2, anchor):
    """Gradient of the mean loss over public and private rows, with the regulariser."""
    data = problem.info.view.data
    X, y = np.vstack([data.X, problem.X]), np.concatenate([data.y, problem.y])
    R = problem.info.view.data.loss.residuals(X @ W.T, y)
    return R.T @ X / len(X) + l2 * (W - anchor)


def trained(problem, algorithm, *, n_steps=12, l2=0.01, rate=0.7, **terms):
    recipe = problem.recipe(algorithm, l2=l2, learning_rate=rate)
    return problem.trained(recipe, n_steps=n_steps, **terms)[0]


@pytest.mark.covering
@pytest.mark.parametrize("center", ["zero", "public"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: NoisyGD(clip=NO_CLIP, **kw),
        lambda **kw: AdaMix(clip_floor=NO_CLIP, **kw),
        lambda **kw: AdaMix(clip_floor=NO_CLIP, n_components=9, **kw),
        lambda **kw: DOPE(clip=NO_CLIP, **kw),
        lambda **kw: GEP(clip=NO_CLIP, residual_clip=NO_CLIP, **kw),
        lambda **kw: GEP(3, clip_floor=NO_CLIP, **kw),
    ],
    ids=["noisy-gd", "adamix", "adamix, all dimensions", "dope-sgd", "gep", "gep, few directions"],
)
def test_without_noise_and_clip_it_is_gradient_descent(problem, make, momentum, center):
    W = problem.info.view.W
    anchor = W if center == "public" else 0 * W
    velocity = 0 * W
    for _ in range(12):
        velocity = momentum * velocity + (1 - momentum) * mean_gradient(problem, W, 0.01, anchor)
        W = W - 0.7 * velocity
    found = trained(problem, make(momentum=momentum, center=center))
    np.testing.assert_allclose(found, W, atol=1e-10)


def test_the_theoretical_variant_without_noise_is_averaged_descent_in_a_ball(problem):
    radius, l2, T = 2.0, 0.05, 9
    algorithm = NoisyGD("lipschitz", radius=radius, center="public", schedule="decaying", average=True)
    W = problem.info.view.W
    W = W * min(1, radius / np.linalg.norm(W))
    anchor, average = W, 0 * W
    for t in range(1, T + 1):
        average = average + 2 * t / (T * (T + 1)) * W
        W = W - 2 / (l2 * (t + 1)) * mean_gradient(problem, W, l2, anchor)
        W = W * min(1, radius / np.linalg.norm(W))
    np.testing.assert_allclose(
        trained(problem, algorithm, n_steps=T, l2=l2, rate="auto"), average, atol=1e-10
    )


def test_projection_keeps_the_part_in_the_public_subspace(problem):
    recipe = problem.recipe(AdaMix(clip_floor=NO_CLIP, n_components=3, momentum=0.0), learning_rate=1.0)
    W, _ = problem.trained(recipe, n_steps=1)
    view, start = problem.info.view, problem.info.view.W
    U = view.basis(3)
    private = problem.info.view.data.loss.residuals(problem.X @ start.T, problem.y).T @ problem.X / 300
    a = 24 / 324
    np.testing.assert_allclose(W, start - a * view.gradient - (1 - a) * private @ U @ U.T, atol=1e-12)


def test_the_clip_is_a_quantile_of_public_norms_above_its_floor():
    problem = make_problem()
    query = problem.recipe(AdaMix(0.75, clip_floor=1e-3)).query
    view = problem.info.view
    slack = query.sensitivity(view, FLOAT) / np.quantile(view.gradient_norms, 0.75)
    assert 1 <= slack < 1 + 1e-9
    floored = problem.recipe(AdaMix(0.75, clip_floor=50.0)).query
    assert floored.sensitivity(view, FLOAT) == pytest.approx(50.0)
    bare = make_problem(n_pub=0)
    assert bare.recipe(AdaMix(clip_floor=0.4)).query.sensitivity(bare.info.view, FLOAT) == pytest.approx(0.4)


@pytest.mark.covering
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("n_pub", [24, 0])
def test_every_algorithm_trains_with_and_without_public_rows(name, n_pub):
    problem = make_problem(n_pub=n_pub)
    if recipe_or_refusal(problem, ALGORITHMS[name]) is None:
        return
    W = trained(problem, ALGORITHMS[name], n_steps=3, l2=None, rate="auto", noise=NoiseSource(0))
    assert W.shape == problem.info.view.W.shape
    assert np.isfinite(W).all()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_parameters_behave_as_scikit_learns(name):
    algorithm = ALGORITHMS[name]
    copy = clone(algorithm)
    assert copy is not algorithm
    assert str(copy.get_params()) == str(algorithm.get_params())  # a base within is a copy, too
    assert repr(copy).startswith(type(algorithm).__name__)


@pytest.mark.parametrize("name", UPDATES)
def test_updates_start_in_their_set_and_stay_there(name):
    problem = make_problem()
    update, view = UPDATES[name], problem.info.view
    W, state = update.init(view.W)
    heads = [W]
    for t in range(1, 5):
        data_view = view.data.view(W)
        ctx = StepContext(t, 4, data_view, 300.0, 0.1, 2.0, 0.0, 0 * W, FLOAT, NoiseSource(0), 1.0)
        W, state = update.step(ctx, data_view.gradient, state)
        heads.append(W)
    result = update.result(W, state)
    if "ball" in name:
        assert max(np.linalg.norm(head) for head in [*heads, result]) <= 0.7 * (1 + 1e-12)
    if name == "uniform":
        np.testing.assert_allclose(result, np.mean(heads[1:], axis=0), atol=1e-12)
    elif "average" in name:
        assert_close(result, sum(2 * (t + 1) / 20 * head for t, head in enumerate(heads[:4])))
    else:
        np.testing.assert_array_equal(result, W)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_public_weights_lie_between_zero_and_one(name):
    for n_pub in (0, 24):
        info = make_problem(n_pub=n_pub).info
        rule = WEIGHTINGS[name].bind(info, ReleaseFacts(20.0, 30, 0.5))
        for t in (1, 10, 30):
            assert 0 <= rule(t, info.view) <= 1
            assert name != "sample" or rule(t, info.view) == pytest.approx(n_pub / (n_pub + 300))


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (NoisyGD(schedule="decaying"), r"pass the radius"),
        (NoisyGD(public_weight=1.5), r"^public_weight=1.5 of NoisyGD must be a number from 0 to 1"),
        (AdaMix(public_weight="samples"), r"^public_weight='samples' of AdaMix .*'convex'"),
        (AdaMix(public_weight=True), r"^public_weight=True"),
        (Coupling(public_weight=SampleWeight), r"^public_weight=<class"),
        (Coupling(gamma=0), r"^gamma=0 of Coupling must be a positive finite number"),
        (DOPE(clip="lipschitz"), r"^clip='lipschitz' of DOPE"),
    ],
)
def test_bad_parameters_are_named(algorithm, message):
    """Wrong values of every kind are tried for each parameter in ``tests/sklearn/test_bad_input.py``."""
    with pytest.raises(ValueError, match=message):
        make_problem().recipe(algorithm)


def test_a_decaying_schedule_takes_no_rate_and_no_zero_l2():
    algorithm = NoisyGD(schedule="decaying", radius=3.0)
    with pytest.raises(ValueError, match=r"learning_rate=0.1 cannot be combined"):
        make_problem().recipe(algorithm, learning_rate=0.1)
    with pytest.raises(ValueError, match=r"l2=0 cannot be combined"):
        make_problem().recipe(algorithm, l2=0)
    assert make_problem().recipe(algorithm, l2=0.3).l2 == 0.3


def test_lipschitz_clip_needs_rows_of_known_length():
    problem = make_problem()
    problem.info = type(problem.info)(problem.info.view, 0.27, 300, 300.0, np.inf)
    with pytest.raises(ValueError, match="norm='unit'"):
        problem.recipe(NoisyGD(clip="lipschitz"))


def test_a_basis_that_is_not_orthonormal_is_refused():
    for kind in (Complement, Coordinates):
        with pytest.raises(ArithmeticError, match="not orthonormal"):
            kind(np.eye(5)[:, :2] * 1.001)
        with pytest.raises(ArithmeticError, match="not orthonormal"):
            kind(np.full((5, 2), np.nan))


def test_names_stand_for_defaults():
    assert {name: type(kind()) for name, kind in BY_NAME.items()} == {
        "auto": Auto,
        "noisy-gd": NoisyGD,
        "adamix": AdaMix,
        "modelmix": ModelMix,
        "coupling": Coupling,
        "pda-dpmd": PDADPMD,
        "dope-sgd": DOPE,
        "gep": GEP,
    }
