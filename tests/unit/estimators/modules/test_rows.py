"""What the rows of a module promise: no gradients, little memory, exact sums where they are asked for."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from skmixdp.algorithms import PAZO, DPZero
from skmixdp.privacy.noise import DiscreteNoise
from tests.asking import request_of
from tests.conftest import Silent
from tests.module_problems import module_problem, module_rows, torch, two_layers


class WatchExact(DiscreteNoise):
    """Records whether what is about to be perturbed is made of whole multiples of its grid."""

    def add_noise(self, array, scale, grid):
        assert np.array_equal(array, np.round(array / grid) * grid)
        assert np.abs(array).max() / grid < 2**53
        self.seen = getattr(self, "seen", 0) + 1
        return super().add_noise(array, scale, grid)


@pytest.mark.parametrize(
    "algorithm", [DPZero(3), PAZO("p"), PAZO("s", loss_clip=3.0)], ids=["dpzero", "p", "s"]
)
def test_discrete_noise_gets_whole_multiples_of_its_grid(algorithm):
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    problem = module_problem(two_layers())
    noise, rows = WatchExact(), module_rows(problem, exact=True)
    problem.trained(problem.recipe(algorithm, exact=True), noise=noise, rows=rows, n_steps=3)
    assert noise.seen >= 3


def test_truncated_contributions_are_no_longer_than_the_rows_own():
    problem = module_problem(two_layers())
    points = problem.info.view.probe([problem.info.view.gradient], [(0, 0.1), (0, -0.1)]).points
    sums = {}
    for resolution in (None, 2.0**-4):
        request = request_of(points, lambda losses, block: (None, losses), resolution=resolution)
        ((_, sums[resolution]),) = module_rows(problem, exact=True).private_sums([request])
    assert (sums[2.0**-4] <= sums[None]).all()
    assert (sums[2.0**-4] > sums[None] - len(problem.y) * 2.0**-4).all()
    assert (sums[2.0**-4] % 2.0**-4 == 0).all()


def test_private_rows_pass_in_chunks_without_gradients():
    module = two_layers()
    seen = []
    module[0].register_forward_pre_hook(
        lambda part, inputs: seen.append((len(inputs[0]), torch.is_grad_enabled()))
    )
    problem = module_problem(module)
    seen.clear()
    points = problem.info.view.probe(
        [problem.info.view.random_directions(Silent(0), 1, 1.0, sphere=True)[0]], [(0, 0.1), (0, -0.1)]
    ).points
    rows = module_rows(problem, chunk_size=70)
    rows.private_sums([request_of(points, lambda losses, block: (None, losses))])
    assert seen == [(size, False) for size in [70, 70, 70, 70, 20]] * 2


def test_parameters_that_are_not_trained_stay_and_need_no_gradient():
    module = two_layers()
    frozen = module[0].weight
    problem = module_problem(module)
    W = type(problem.info.view.W)(module, ["2.weight", "2.bias"])
    assert not frozen.requires_grad
    before = frozen.clone()
    view = problem.info.view.data.view(W)
    assert view.n_parameters == 7 * 4 + 4
    (direction,) = view.random_directions(Silent(0), 1, 1.0, sphere=True)
    assert view.moved(direction, 0.5) is W
    assert torch.equal(frozen, before)
    assert [tuple(tensor.shape) for tensor in view.gradient.formed(W.tensors)] == [(4, 7), (4,)]


def test_a_parameter_that_the_outputs_do_not_need_has_no_gradient():
    module = two_layers()
    module.register_parameter("idle", torch.nn.Parameter(torch.ones(3, dtype=torch.float64)))
    view = module_problem(module).info.view
    gradients = dict(zip(view.W.names, view.gradient.formed(view.W.tensors), strict=True))
    assert not gradients["idle"].any()
    assert gradients["0.weight"].any()
    assert np.isfinite(view.data.largest_second_moment(np.inf))


def test_trained_parameters_that_reach_no_output_have_no_public_gradient():
    module = two_layers()
    module.register_parameter("idle", torch.nn.Parameter(torch.ones(3, dtype=torch.float64)))
    problem = module_problem(module)
    W = type(problem.info.view.W)(module, ["idle"])
    with pytest.raises(ValueError, match="no gradient in the trained parameters"):
        problem.info.view.data.view(W).batch_gradients([np.arange(3)])


MEMORY = """
    import resource, sys
    import numpy as np, torch
    from skmixdp.algorithms import DPZero
    from skmixdp.components import FullBatch
    from skmixdp.components.protocols import PublicInfo
    from skmixdp._engine import Options, make_plan, training
    from skmixdp.privacy.accounting.budgets import Budget
    from tests.conftest import train
    from skmixdp._torch.modules import (
        LabelledRows, ModuleData, ModuleLoss, ModuleParameters, ModuleRows, cross_entropy
    )
    from skmixdp.privacy import NoiseSource

    torch.set_num_threads(1)
    module = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(20)))
    W = ModuleParameters(module.eval(), [name for name, _ in module.named_parameters()])
    none = LabelledRows(np.zeros((0, 1024)), np.zeros(0, int), 8)
    data = ModuleData(none, ModuleLoss(cross_entropy, 1024), 0, W)
    info = PublicInfo(data.view(W), 1.0, 4, 4.0, np.inf)
    recipe = DPZero().recipe(info, Options(1e-3, None, FullBatch(), False))
    budget = Budget(1.0, 1e-5, 1, None, "add_or_remove_one", "float")
    plan = make_plan(budget, recipe, info, np.dtype("float64"))
    rows = ModuleRows(LabelledRows(np.ones((4, 1024)), np.arange(4), 8), cross_entropy)
    with torch.no_grad():
        module(torch.ones(4, 1024))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    train([training(plan, NoiseSource(0))], rows)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 4096)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux states it")
@pytest.mark.slow
def test_steps_take_the_memory_of_one_tensor_beside_the_parameters():
    """20 tensors of 4 MiB: a copy of the parameters would be 20 tensors, and a kept direction 20 more."""
    code = textwrap.dedent(MEMORY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tensors = float(done.stdout)
    assert tensors < 10
