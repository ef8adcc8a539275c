"""Training a module on clipped gradients: what it equals, what it accepts, and what it leaves alone."""

import numpy as np
import pytest

from skmixdp import FirstOrderDPModuleClassifier
from skmixdp.algorithms import DOPE, GEP, PDADPMD, AdaMix, Coupling, DPZero, ModelMix, NoisyGD
from skmixdp.components import FullBatch, L2Clip, PoissonBatch
from skmixdp.components.clipping import clipped_residuals
from skmixdp.privacy import NoiseSource, PrivacyLedger
from tests.asking import request_of
from tests.conftest import Silent, make_problem
from tests.module_problems import cross_entropy, gradient_problem, torch
from tests.module_zoo import HONEST, MIXING
from tests.private_names import InMemoryRows, Options
from tests.rounding import assert_close
from tests.unit.estimators.modules.test_failing_rows import BAD, Fails
from tests.unit.estimators.modules.test_fit import X_PUB, X_TEST, Y_PUB, Y_TEST, X, Y, network, short_starts

__all__ = ["short_starts"]  # a fixture for all tests here

nn = torch.nn


def classifier(name="auto", module=None, **parameters):
    given = {"delta": 1e-4, "n_steps": 8, "random_state": 0, "init": "module", "learning_rate": 0.3}
    return FirstOrderDPModuleClassifier(network() if module is None else module, name, **given | parameters)


def fitted(name="auto", module=None, X=X, **parameters):
    return classifier(name, module, **parameters).fit(X, Y, X_pub=X_PUB, y_pub=Y_PUB)


# -- a linear module is a linear head --------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize("sampling", [FullBatch(), PoissonBatch(40)], ids=["full", "poisson"])
@pytest.mark.parametrize(
    "algorithm",
    [
        NoisyGD(0.3, public_weight=0.0),
        NoisyGD(0.3, momentum=0.5, radius=2.0, average=True),
        AdaMix(0.5),
        Coupling(0.1, public_weight=0.4),
        NoisyGD(0.3, momentum=0.0, public_weight="cosine", second_clip=0.2),
        ModelMix(NoisyGD(0.3, momentum=0.0), width=1.0, linf_split=4),
    ],
    ids=str,
)
def test_a_linear_module_is_trained_as_the_head_that_it_is(algorithm, sampling):
    problem = make_problem()
    module, source = gradient_problem()
    found = []
    for one, rows in ((problem, InMemoryRows(problem.X, problem.y)), (module, source(module.X, module.y))):
        recipe = algorithm.recipe(one.info, Options(0.7, None, sampling, False))
        W, _ = one.trained(recipe, noise=Silent(2), rows=rows, n_steps=5)
        found.append(W.ravel())
    assert_close(found[1], found[0], 1e-9)
    assert np.abs(found[0] - problem.info.view.W.ravel()).max() > 1e-3


def test_sums_and_public_facts_are_those_of_the_head():
    problem = make_problem()
    module, source = gradient_problem()
    clip, sums = L2Clip(0.2), []
    for one, rows in ((problem, InMemoryRows(problem.X, problem.y)), (module, source(module.X, module.y))):
        loss = one.info.view.data.loss

        def contribute(Z, block, loss=loss):
            return clipped_residuals(Z, block, loss, clip)

        ((total, _),) = rows.private_sums([request_of(one.info.view.W, contribute)])
        sums.append(total.ravel())
    assert_close(sums[1], sums[0], 1e-11)
    mine, theirs = module.info.view, problem.info.view
    assert mine.n_parameters == theirs.n_parameters
    assert_close(mine.gradient.ravel(), theirs.gradient.ravel(), 1e-11)
    assert_close(mine.gradient_norms, theirs.gradient_norms, 1e-11)


def test_the_rounding_of_sums_is_stated():
    module, source = gradient_problem()
    error = source(module.X, module.y).sum_error(request_of(module.info.view.W, None))
    assert 1e-15 < error.of(1.0) < 1e-9


# -- fits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("learning_rate", [0.3, "auto"])
def test_without_public_rows(learning_rate):
    given = {"classes": range(3), "epsilon": 3.0, "n_steps": 30, "learning_rate": learning_rate}
    assert classifier("noisy-gd", **given).fit(X, Y).score(X_TEST, Y_TEST) > 0.6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": PDADPMD()}, "convex public loss"),
        ({"algorithm": AdaMix(n_components=3)}, "AdaMix without n_components"),
        ({"algorithm": GEP()}, "products with rows"),
        ({"algorithm": ModelMix(DOPE())}, "products with rows"),
        ({"algorithm": DPZero()}, "products with rows"),
        ({"algorithm": "gep"}, "'gep' must be 'auto'"),
        ({"algorithm": NoisyGD("lipschitz")}, "residuals of bounded length"),
        ({"algorithm": Coupling(public_weight="convex")}, "needs the public fit of a linear head"),
        ({"noise": "discrete", "random_state": None}, "noise='float'"),
    ],
    ids=str,
)
def test_what_modules_do_not_have_is_refused_before_noise_and_charge(
    tmp_path, monkeypatch, parameters, message
):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=2.0, delta=1e-4)
    monkeypatch.setattr(NoiseSource, "add_noise", None)
    given = {"name": "auto", "ledger": ledger, "random_state": None, **parameters}
    given["name"] = given.pop("algorithm", given["name"])
    with pytest.raises(ValueError, match=message) as refused:
        fitted(**given)
    assert ". " not in str(refused.value) and len(ledger.charges()) == 0


# -- rows by themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MIXING, "statistics of the batch"])
def test_modules_that_mix_rows_are_refused(name):
    make = MIXING.get(name, lambda: network(0, nn.BatchNorm1d(8, track_running_stats=False)).eval())
    with pytest.raises(ValueError, match=r"the loss of a row (depends|differs)|has no gradient for single"):
        fitted(module=make())


class MixedBackwards(torch.autograd.Function):
    """The identity, whose gradients are mixed among the rows of a chunk."""

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(_, gradient):
        return Mixed.apply(gradient)

    @staticmethod
    def vmap(_, in_dims, x):
        return MixedBackwards.apply(x), in_dims[0]


class Mixed(MixedBackwards):
    @staticmethod
    def vmap(_, in_dims, gradient):
        return gradient + gradient.mean(in_dims[0], keepdim=True), in_dims[0]


class HonestForwards(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = network()[0], network()[2]

    def forward(self, x):
        return self.second(MixedBackwards.apply(self.first(x)))


def test_a_module_that_mixes_gradients_alone_is_refused():
    with pytest.raises(ValueError, match="the loss of a row depends on the values of other rows"):
        fitted(module=HonestForwards())


def test_a_module_that_has_no_gradient_of_rows_is_refused():
    class Decides(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            return self.layer(x * (1 if bool((x.sum() != 0.5).item()) else 2))

    with pytest.raises(ValueError, match=r"no gradient for single rows .* ZerothOrderDPModuleClassifier"):
        fitted(module=Decides())


@pytest.mark.parametrize("name", [name for name in HONEST if name not in ("recurrent", "finite rows alone")])
def test_honest_modules_are_trained(name):
    make, shape, tokens = HONEST[name]
    rng = np.random.default_rng(0)
    rows = rng.integers(0, tokens, (60, *shape)) if tokens else rng.normal(size=(60, *shape)).astype("f4")
    if name == "codes":
        rows[:, 0] = rng.integers(0, 4, 60)
    clf = classifier(module=make().eval(), n_steps=2).fit(rows, np.arange(60) % 3, rows[:9], np.arange(9) % 3)
    assert clf.n_iter_ == 2


@pytest.mark.parametrize("batch_size", [None, 60])
def test_a_row_whose_gradient_fails_later_contributes_nothing_and_ends_nothing(batch_size):
    rows = X.copy()
    rows[11, 0] = BAD
    module, source = gradient_problem(Fails().double(), d=5)
    W = module.info.view.W
    good = source(X.astype("f8"), Y).private_sums([request_of(W + 1e-3, plain)])
    bad = source(rows.astype("f8"), Y).private_sums([request_of(W + 1e-3, plain)])
    ((alone, _),) = source(X[11:12].astype("f8"), Y[11:12]).private_sums([request_of(W + 1e-3, plain)])
    assert_close(good[0][0] - alone, bad[0][0], 1e-10)
    clf = fitted("noisy-gd", module=network(), X=rows, batch_size=batch_size)
    assert clf.n_iter_ == 8


def plain(Z, block):
    return np.ones_like(Z), None


def test_gradients_that_are_not_finite_are_zero():
    module, source = gradient_problem(nn.Linear(9, 4).double())
    rows = module.X.copy()
    rows[3] = np.finfo("f8").max
    with np.errstate(all="ignore"):  # as in a release
        ((total, _),) = source(rows, module.y).private_sums([request_of(module.info.view.W, plain)])
    assert np.isfinite(total).all()


def test_cross_entropy_is_the_default_loss():
    assert_close(
        fitted().predict_proba(X_TEST), fitted(loss=cross_entropy, learning_rate=0.3).predict_proba(X_TEST)
    )
