"""A linear layer trained by Opacus: the same rows and the same start, its own clipping and accounting."""

import importlib.util
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from ..problems import DELTA, Array, Problem
from .contract import Score, UnavailableError
from .only_public import public_head


def fit(
    problem: Problem,
    epsilons: Sequence[float],
    *,
    learning_rates: Sequence[float],
    n_epochs: int,
    batch_share: float,
    clip: float = 1.0,
) -> list[Score]:
    """DP-SGD on Poisson batches from the public fit; one head for each budget and learning rate.

    Opacus has no rule for the learning rate. Several are tried, and the tables take the best in
    hindsight, which favours it. ``batch_share`` is the expected share of the rows in a batch; ``clip``
    is that of its tutorials.
    """
    if importlib.util.find_spec("opacus") is None:
        raise UnavailableError("opacus is not installed; see the extra `bench`.")
    mean = problem.X_pub.mean(axis=0)

    def unit(X: Array) -> Array:
        return np.asarray(normalize(X - mean), dtype=np.float32)

    X_test = unit(problem.X_test)
    rows = _loader(unit(problem.X), np.searchsorted(problem.classes, problem.y), batch_share)
    found = []
    for epsilon in epsilons:
        sigma = _noise_multiplier(epsilon, 1 / len(rows), n_epochs)
        for rate in learning_rates:
            # Seeds PyTorch, and with it the batches and the noise.
            head = _start(problem)
            _train(head, rows, sigma, rate, n_epochs, clip)
            guessed = problem.classes[_outputs(head, X_test).argmax(axis=1)]
            found.append(
                Score(
                    epsilon,
                    problem.measures_of(guessed),
                    setting=f"learning rate {rate:g}",
                    note=f"{n_epochs} epochs of batches of {batch_share:g} n, noise multiplier {sigma:.3g}",
                )
            )
    return found


def _loader(X: Array, y: Array, batch_share: float) -> Any:
    """Opacus makes Poisson batches of it, with a sampling rate of one over its length."""
    from torch import from_numpy
    from torch.utils.data import DataLoader, TensorDataset

    rows = TensorDataset(from_numpy(X), from_numpy(y))
    return DataLoader(rows, batch_size=math.ceil(batch_share * len(X)))


def _noise_multiplier(epsilon: float, sampling_rate: float, n_epochs: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.accountants.utils import get_noise_multiplier

        sigma = get_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=DELTA,
            sample_rate=sampling_rate,
            epochs=n_epochs,
            accountant="rdp",
        )
    return float(sigma)


def _start(problem: Problem) -> Any:
    import torch

    public = public_head(problem)
    coef, intercept = public.coef_, public.intercept_
    if len(problem.classes) == 2:  # one output, the second class against the first
        coef, intercept = (np.concatenate([-part / 2, part / 2]) for part in (coef, intercept))
    torch.set_num_threads(1)
    torch.manual_seed(problem.seed)
    head = torch.nn.Linear(problem.X.shape[1], len(problem.classes))
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(coef))
        head.bias.copy_(torch.from_numpy(intercept))
    return head


def _train(head: Any, rows: Any, sigma: float, rate: float, n_epochs: int, clip: float) -> None:
    """``n_epochs`` on Poisson batches; the layer is changed in place."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus import PrivacyEngine

        module, optimizer, batches = PrivacyEngine().make_private(
            module=head,
            # Momentum in the averaged form, so that it leaves the size of the steps as it is.
            optimizer=torch.optim.SGD(head.parameters(), lr=rate, momentum=0.9, dampening=0.9),
            data_loader=rows,
            noise_multiplier=sigma,
            max_grad_norm=clip,
        )
        for _ in range(n_epochs):
            for X, y in batches:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(module(X), y).backward()
                optimizer.step()


def _outputs(head: Any, X: Array) -> Array:
    import torch

    with torch.no_grad():
        return np.asarray(head(torch.from_numpy(X)))
