"""A linear layer trained by Opacus: the same rows and the same start, its own clipping and accounting."""

import importlib.util
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
    batch_size: int,
    clip: float = 1.0,
) -> list[Score]:
    """DP-SGD on Poisson batches from the public fit; one head for each budget and learning rate.

    Opacus has no rule for the learning rate. Several are tried, and the tables take the best in
    hindsight, which favours it. ``clip`` is that of its tutorials.
    """
    if importlib.util.find_spec("opacus") is None:
        raise UnavailableError("opacus is not installed; see the extra `bench`.")
    found = []
    public = public_head(problem)
    for epsilon in epsilons:
        for rate in learning_rates:
            predict = _train(problem, public, epsilon, rate, n_epochs, batch_size, clip)
            accuracy = float(np.mean(problem.classes[predict(problem.X_test)] == problem.y_test))
            note = f"{n_epochs} epochs of batches of {batch_size}, clip {clip:g}"
            found.append(Score(epsilon, accuracy, setting=f"learning rate {rate:g}", note=note))
    return found


def _train(
    problem: Problem, public: Any, epsilon: float, rate: float, n_epochs: int, batch_size: int, clip: float
) -> Any:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus import PrivacyEngine

        mean = problem.X_pub.mean(axis=0)

        def rows(X: Array) -> Any:
            return torch.from_numpy(normalize(X - mean).astype(np.float32))

        coef, intercept = public.coef_, public.intercept_
        if len(problem.classes) == 2:  # one output, the second class against the first
            coef, intercept = (np.concatenate([-part / 2, part / 2]) for part in (coef, intercept))
        torch.manual_seed(problem.seed)
        head = torch.nn.Linear(problem.X.shape[1], len(problem.classes))
        with torch.no_grad():
            head.weight.copy_(torch.from_numpy(coef))
            head.bias.copy_(torch.from_numpy(intercept))
        y = torch.from_numpy(np.searchsorted(problem.classes, problem.y))
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(rows(problem.X), y), batch_size=batch_size
        )
        private, optimizer, batches = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
            module=head,
            optimizer=torch.optim.SGD(head.parameters(), lr=rate, momentum=0.9, dampening=0.9),
            data_loader=loader,
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=n_epochs,
            max_grad_norm=clip,
        )
        for _ in range(n_epochs):
            for X, labels in batches:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(private(X), labels).backward()
                optimizer.step()

    def predict(X: Array) -> Array:
        with torch.no_grad():
            return np.asarray(head(rows(X)).argmax(dim=1))

    return predict
