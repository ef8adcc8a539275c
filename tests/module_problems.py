"""Small modules with public and private rows, and linear ones whose answers are known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skmixdp.components.protocols import PublicInfo
from tests.conftest import Problem, make_problem

torch = pytest.importorskip("torch", reason="needs torch; install skmixdp[features]")

from tests.private_names import (  # noqa: E402
    Direction,
    GradientData,
    GradientRows,
    ModuleData,
    ModuleLoss,
    ModuleParameters,
    ModuleRows,
    Seeded,
    cross_entropy,
    flat,
)
from tests.private_names import LabelledRows_of_modules as LabelledRows  # noqa: E402

__all__ = [
    "Direction",
    "GradientRows",
    "LabelledRows",
    "Seeded",
    "all_of",
    "cross_entropy",
    "gradient_problem",
    "linear_module",
    "loss_of_those_present",
    "module_info",
    "module_problem",
    "module_rows",
    "torch",
    "two_layers",
]


def loss_of_those_present(outputs, y):
    """Cross-entropy; a row with the label -1 is zeroed out: the number of rows is public."""
    return torch.where(y >= 0, cross_entropy(outputs, y.clamp(min=0)), 0)


def all_of(module) -> ModuleParameters:
    """Every parameter of a module, to be moved in place."""
    return ModuleParameters(module.eval(), [name for name, _ in module.named_parameters()])


def two_layers(d: int = 9, hidden: int = 7, k: int = 4, seed: int = 0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(d, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, k))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5)
    return module.to(dtype)


def linear_module(W: np.ndarray):
    """The module that a head ``W`` (k, d_in) is."""
    module = torch.nn.Linear(W.shape[1], W.shape[0], bias=False).double()
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(W))
    return module


def module_info(problem: Problem, module: Any = None, loss=cross_entropy, chunk_size: int = 64) -> PublicInfo:
    """The problem's info with a module, by default that of its start, in the place of the head."""
    public = problem.info.view.data
    W = all_of(linear_module(problem.info.view.W) if module is None else module)
    rows = LabelledRows(public.X, public.y, chunk_size)
    data = ModuleData(rows, ModuleLoss(loss, len(problem.info.view.W)), 3, W)
    return replace(problem.info, view=data.view(W), row_norm_bound=np.inf)


def module_rows(problem: Problem, *, exact: bool = False, chunk_size: int = 64) -> ModuleRows:
    return ModuleRows(LabelledRows(problem.X, problem.y, chunk_size), cross_entropy, exact=exact)


def module_problem(module: Any = None, **sizes) -> Problem:
    """A problem whose info is a module's."""
    problem = make_problem(**sizes)
    return replace(problem, info=module_info(problem, module))


def gradient_problem(module: Any = None, loss=cross_entropy, chunk_size: int = 64, weights=None, **sizes):
    """A problem whose info is a module's, for steps of first order, and what makes a source of rows."""
    problem = make_problem(**sizes)
    public = problem.info.view.data
    W = all_of(linear_module(problem.info.view.W) if module is None else module)
    rows = LabelledRows(public.X, public.y, chunk_size)
    of_outputs = ModuleLoss(loss, len(problem.info.view.W), weighted=weights is not None)
    data = GradientData(rows, of_outputs, 3, W)
    info = replace(problem.info, view=data.view(flat(W.tensors)), row_norm_bound=np.inf)

    def source(X: Any, y: Any) -> GradientRows:
        return GradientRows(LabelledRows(X, y, chunk_size, weights), loss, W)

    return replace(problem, info=info), source
