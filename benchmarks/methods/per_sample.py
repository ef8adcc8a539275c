"""A step of the same clipped sum by libraries that make or weigh each row's gradient in torch.

Opacus with hooks (every gradient is made), Opacus with ghost clipping (lengths first, then a
weighted sum), Opacus as its ``PrivacyEngine`` sets it up, and ``torch.func``. They visit the rows in
blocks, which is faster for all of them than one batch and needs less memory.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..measure import Case
from ..problems import Problem

_BLOCK_ROWS = 1000
_CLIP = 0.5


def cases(problem: Problem) -> list[Case]:
    """One case for each library that is installed; what is missing is said."""
    found = []
    for module, make in (("opacus", _opacus), ("torch", _torch_func)):
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed, so its steps are not measured; see the extra `bench`.")
        else:
            found += [Case("per_sample", name, "step", run) for name, run in make(problem)]
    return found


def _blocks(problem: Problem) -> Iterator[tuple[Any, Any]]:
    import torch

    X, y = torch.from_numpy(problem.X), torch.from_numpy(problem.y)
    for start in range(0, len(X), _BLOCK_ROWS):
        yield X[start : start + _BLOCK_ROWS], y[start : start + _BLOCK_ROWS]


def _linear(problem: Problem) -> Any:
    import torch

    torch.set_num_threads(1)
    head = torch.nn.Linear(problem.size.d_in, problem.size.k, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(problem.W.astype(np.float32)))
    return head


def _opacus(problem: Problem) -> list[tuple[str, Callable[[], str]]]:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus import PrivacyEngine
        from opacus.grad_sample import GradSampleModule
        from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
            GradSampleModuleFastGradientClipping,
        )
        from opacus.optimizers import DPOptimizer
        from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    loss = torch.nn.CrossEntropyLoss(reduction="sum")
    settings: dict[str, Any] = {
        "noise_multiplier": 1.0,
        "max_grad_norm": _CLIP,
        "expected_batch_size": problem.size.n,
        "loss_reduction": "sum",
    }

    def hooks() -> str:
        head = GradSampleModule(_linear(problem), loss_reduction="sum")
        optimizer = DPOptimizer(torch.optim.SGD(head.parameters(), lr=1e-3), **settings)
        return _step(head, optimizer, loss)

    def ghost() -> str:
        head = GradSampleModuleFastGradientClipping(
            _linear(problem), max_grad_norm=_CLIP, use_ghost_clipping=True, loss_reduction="sum"
        )
        optimizer = DPOptimizerFastGradientClipping(torch.optim.SGD(head.parameters(), lr=1e-3), **settings)
        return _step(head, optimizer, DPLossFastGradientClipping(head, optimizer, loss, loss_reduction="sum"))

    def _step(head: Any, optimizer: Any, criterion: Any) -> str:
        last = (problem.size.n - 1) // _BLOCK_ROWS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, (X, y) in enumerate(_blocks(problem)):
                optimizer.signal_skip_step(do_skip=number < last)
                criterion(head(X), y).backward()
                optimizer.step()
                optimizer.zero_grad()
        return f"blocks of {_BLOCK_ROWS}"

    def engine() -> str:
        head = _linear(problem)
        data = torch.utils.data.TensorDataset(torch.from_numpy(problem.X), torch.from_numpy(problem.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            head, optimizer, loader = PrivacyEngine().make_private(
                module=head,
                optimizer=torch.optim.SGD(head.parameters(), lr=1e-3),
                data_loader=torch.utils.data.DataLoader(data, batch_size=_BLOCK_ROWS),
                noise_multiplier=1.0,
                max_grad_norm=_CLIP,
                poisson_sampling=False,
            )
            for X, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(head(X), y).backward()
                optimizer.step()
        return f"batches of {_BLOCK_ROWS}, a release each"

    return [("Opacus, hooks", hooks), ("Opacus, ghost clipping", ghost), ("Opacus, PrivacyEngine", engine)]


def _torch_func(problem: Problem) -> list[tuple[str, Callable[[], str]]]:
    import torch
    from torch.func import grad, vmap

    _linear(problem)  # one thread
    W = torch.from_numpy(problem.W.astype(np.float32))

    def loss(W: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy((W @ x)[None], y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))

    def step() -> str:
        total = torch.zeros_like(W)
        for X, y in _blocks(problem):
            G = each(W, X, y)
            factors = (_CLIP / G.flatten(1).norm(dim=1)).clamp(max=1.0)
            total += torch.einsum("i,ikd->kd", factors, G)
        return f"blocks of {_BLOCK_ROWS}"

    return [("torch.func", step)]
