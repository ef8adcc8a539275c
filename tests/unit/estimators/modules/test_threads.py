"""The threads of a fit with a module: measured, and set back."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="modules need skmixdp[features]")

from skmixdp import ZerothOrderDPModuleClassifier  # noqa: E402
from tests.private_names import ModuleParameters, limited_threads, threads_for  # noqa: E402
from tests.private_names import threads as module_threads  # noqa: E402


class Watching(torch.nn.Module):
    """A linear module that records the number of threads of each pass."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.seen = []

    def forward(self, x):
        self.seen.append(torch.get_num_threads())
        return self.linear(x.float())

    def __deepcopy__(self, memo):
        copy = Watching()
        copy.load_state_dict(self.state_dict())
        copy.seen = self.seen
        return copy


@pytest.fixture
def two_threads():
    with limited_threads(2):
        yield


def parameters_of(module):
    return ModuleParameters(module, [name for name, _ in module.named_parameters()])


@pytest.mark.parametrize(("together", "chosen"), [(0.5, 2), (0.9, 1), (7.0, 1)])
def test_all_threads_are_used_where_they_are_faster(two_threads, monkeypatch, together, chosen):
    seconds = {2: together, 1: 1.0}
    monkeypatch.setattr(module_threads, "_seconds", lambda parameters, x, n_threads: seconds[n_threads])
    assert threads_for(parameters_of(Watching()), np.zeros((5, 4)), 3) == chosen


@pytest.mark.parametrize("X", [np.zeros((5, 4)), torch.zeros((5, 4), dtype=torch.bfloat16)])
def test_passes_are_timed_with_either_number_of_threads(two_threads, X):
    module = Watching()
    assert threads_for(parameters_of(module), X, 3) in (1, 2)
    assert module.seen == [2] + 3 * [2] + 3 * [1]
    assert torch.get_num_threads() == 2


def test_long_passes_are_timed_once(two_threads, monkeypatch):
    monkeypatch.setattr(module_threads, "_LONG", -1.0)
    module = Watching()
    threads_for(parameters_of(module), np.zeros((5, 4)), 3)
    assert module.seen == [2, 2, 1]


def test_one_thread_is_not_timed():
    module = Watching()
    with limited_threads(1):
        assert threads_for(parameters_of(module), np.zeros((5, 4)), 3) == 1
    assert module.seen == []


def test_a_module_that_fails_is_left_to_the_checks(two_threads):
    assert threads_for(parameters_of(Watching()), np.zeros((5, 7)), 3) == 2


def test_a_fit_uses_what_was_chosen_and_sets_it_back(two_threads, monkeypatch):
    monkeypatch.setattr(module_threads, "_seconds", lambda parameters, x, n_threads: 1.0)
    module, rng = Watching(), np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
    clf = ZerothOrderDPModuleClassifier(module, n_steps=2)
    clf.fit(X[20:], y[20:], X_pub=X[:20], y_pub=y[:20])
    assert module.seen[0] == 2 and set(module.seen[1:]) == {1}
    assert torch.get_num_threads() == 2
