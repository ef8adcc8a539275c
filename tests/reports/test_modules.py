"""Modules as people train them: a rate that follows from a rule is never far behind the best of five."""

import warnings
from itertools import product
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import load_digits

from skmixdp import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier
from skmixdp.algorithms import NoisyGD
from tests.covering import covering_set
from tests.module_problems import torch
from tests.private_names import FiniteSteps

nn = torch.nn

X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
X, Y = (X[ORDER] / 16).astype(np.float32), Y[ORDER]
N_PUBLIC, N_TRAIN = 100, 1400


def layers(activation, *sizes, norm=False, dropout=0.0):
    parts, width = [], 64
    for size in sizes:
        parts += [nn.Linear(width, size), *([nn.LayerNorm(size)] if norm else []), activation()]
        parts += [nn.Dropout(dropout)] if dropout else []
        width = size
    return nn.Sequential(*parts, nn.Linear(width, 10))


class Tied(nn.Module):
    """The same layer twice."""

    def __init__(self, activation):
        super().__init__()
        self.first, self.twice, self.last = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 10)
        self.activation = activation()

    def forward(self, x):
        x = self.activation(self.first(x))
        return self.last(self.activation(self.twice(self.activation(self.twice(x)))))


class Grey(nn.Module):
    """An embedding of each grey value."""

    def __init__(self):
        super().__init__()
        self.values, self.hidden, self.last = nn.Embedding(17, 8), nn.Linear(512, 32), nn.Linear(32, 10)

    def forward(self, x):
        codes = (16 * x).round().long().clamp(0, 16)
        return self.last(self.hidden(self.values(codes).flatten(1)).relu())


def convolutions(activation):
    return nn.Sequential(
        *(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), activation(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), activation(), nn.Flatten(), nn.Linear(256, 10)),
    )


MODULES = {
    "no hidden layer": lambda: layers(nn.ReLU),
    "one layer of ReLU": lambda: layers(nn.ReLU, 32),
    "two layers of ReLU": lambda: layers(nn.ReLU, 32, 32),
    "three layers of ReLU": lambda: layers(nn.ReLU, 32, 32, 32),
    "two layers of tanh": lambda: layers(nn.Tanh, 32, 32),
    "one wide layer of GELU": lambda: layers(nn.GELU, 64),
    "three layers of GELU": lambda: layers(nn.GELU, 32, 32, 32),
    "layer norms": lambda: layers(nn.ReLU, 32, 32, norm=True),
    "dropout": lambda: layers(nn.ReLU, 64, 32, dropout=0.2),
    "tied ReLU": lambda: Tied(nn.ReLU),
    "tied tanh": lambda: Tied(nn.Tanh),
    "an embedding": Grey,
    "convolutions of ReLU": lambda: convolutions(nn.ReLU),
    "convolutions of tanh": lambda: convolutions(nn.Tanh),
}
ALGORITHMS = ["auto", "noisy-gd", "coupling", "pda-dpmd"]
CASES = [
    dict(zip(("module", "epsilon", "init", "algorithm", "seed"), values, strict=True))
    for values in product(MODULES, [0.5, 1.0, 3.0, 8.0], ["module", "public"], ALGORITHMS, [0, 1])
]
CHOSEN = [CASES[number] for number in sorted(covering_set(CASES, [("init", "algorithm")]))]
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)


def assert_finite(model):
    for name, parameter in model.module_.named_parameters():
        assert torch.isfinite(parameter).all(), name


def accuracy(case, rate="auto", kind=FirstOrderDPModuleClassifier, n_public=N_PUBLIC, n_steps=40):
    torch.manual_seed(case["seed"])
    terms = {"epsilon": case["epsilon"], "delta": 1e-5, "init": case["init"], "random_state": case["seed"]}
    terms |= {"n_steps": n_steps, "learning_rate": rate, "classes": range(10)}
    model = kind(MODULES[case["module"]](), case["algorithm"], **terms)
    public = {"X_pub": X[:n_public], "y_pub": Y[:n_public]} if n_public else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* steps were not taken")
        model.fit(X[n_public:N_TRAIN], Y[n_public:N_TRAIN], **public)
    assert_finite(model)
    with torch.no_grad():
        outputs = model.module_(torch.from_numpy(X[N_TRAIN:]))
    return float((outputs.argmax(dim=1).numpy() == Y[N_TRAIN:]).mean())


@pytest.mark.slow
@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: "-".join(map(str, case.values())))
def test_no_rate_by_hand_is_five_points_better(case):
    best = max(accuracy(case, rate) for rate in RATES)
    assert accuracy(case) >= best - 0.05


FIRST = {"module": "two layers of ReLU", "epsilon": 3.0, "init": "module", "algorithm": "auto", "seed": 0}


def test_the_module_that_became_not_a_number_learns():
    assert accuracy(FIRST, n_steps=20) > 0.7


def test_a_rate_that_is_absurd_warns_and_leaves_a_finite_module():
    torch.manual_seed(0)
    terms = {"epsilon": 3.0, "n_steps": 4, "init": "module", "learning_rate": 1e38}
    model = FirstOrderDPModuleClassifier(MODULES["two layers of ReLU"](), **terms)
    with pytest.warns(UserWarning, match="of 4 steps were not taken, since .* smaller learning_rate"):
        model.fit(X[100:400], Y[100:400], X_pub=X[:100], y_pub=Y[:100])
    assert_finite(model)
    assert np.isfinite(model.predict_proba(X[:100])).all()


@pytest.mark.parametrize("algorithm", ["auto", "noisy-gd", "coupling", "pda-dpmd", "modelmix"])
@pytest.mark.parametrize("n_public", [0, 60])
def test_no_algorithm_returns_what_is_not_finite(algorithm, n_public):
    torch.manual_seed(0)
    terms = {"n_steps": 4, "init": "module", "learning_rate": 1e300, "classes": range(10)}
    model = FirstOrderDPModuleClassifier(layers(nn.ReLU, 8), algorithm, **terms)
    public = {"X_pub": X[:n_public], "y_pub": Y[:n_public]} if n_public else {}
    with pytest.warns(UserWarning, match="were not taken"):
        model.fit(X[100:300], Y[100:300], **public)
    assert_finite(model)


@pytest.mark.parametrize("algorithm", ["pazo-m", "dpzero"])
@pytest.mark.parametrize("rate", [1e30, 1e300])
def test_steps_of_losses_stay_finite_too(algorithm, rate):
    torch.manual_seed(0)
    terms = {"n_steps": 3, "init": "module", "learning_rate": rate}
    model = ZerothOrderDPModuleClassifier(nn.Linear(64, 10), algorithm, **terms)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* steps were not taken")
        model.fit(X[100:300], Y[100:300], X_pub=X[:100], y_pub=Y[:100])
    assert_finite(model)
    assert np.isfinite(model.predict_proba(X[:100])).all()


def test_an_average_of_heads_takes_the_steps_that_were_not_taken_as_heads_too():
    """Weights of the average sum to 1 for any number of steps that are not taken."""
    torch.manual_seed(0)
    module, terms = nn.Linear(64, 10), {"n_steps": 3, "init": "module", "learning_rate": 1e300}
    model = FirstOrderDPModuleClassifier(module, NoisyGD(average=True), **terms)
    with pytest.warns(UserWarning, match="3 of 3 steps were not taken"):
        model.fit(X[100:300], Y[100:300], X_pub=X[:100], y_pub=Y[:100])
    for mine, given in zip(model.module_.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(mine, given)


@pytest.mark.filterwarnings("ignore")
def test_mixed_heads_take_whole_steps():
    """Their accounting holds for no others, so a step that is too long for its region is not shortened."""
    torch.manual_seed(0)
    model = FirstOrderDPModuleClassifier(nn.Linear(64, 10), "modelmix", n_steps=3, init="module")
    with mock.patch.object(FiniteSteps, "step", autospec=True, side_effect=FiniteSteps.step) as shortened:
        model.fit(X[100:300], Y[100:300], X_pub=X[:100], y_pub=Y[:100])
    assert not shortened.called


@pytest.mark.parametrize(
    ("module", "algorithm"), [("two layers of ReLU", "auto"), ("no hidden layer", "noisy-gd")]
)
def test_modules_learn_without_public_rows_at_a_rate_that_a_rule_chooses(module, algorithm):
    case = FIRST | {"module": module, "algorithm": algorithm}
    assert accuracy(case, n_public=0, n_steps=20) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_no_rate_by_hand_is_five_points_better_without_public_rows(module):
    case = FIRST | {"module": module, "algorithm": "noisy-gd"}
    best = max(accuracy(case, rate, n_public=0) for rate in RATES)
    assert accuracy(case, n_public=0) >= best - 0.05


class Codes(nn.Module):
    """Whole numbers, each with an embedding."""

    def __init__(self):
        super().__init__()
        self.values, self.last = nn.Embedding(17, 8), nn.Linear(512, 10)

    def forward(self, x):
        return self.last(self.values(x).flatten(1))


@pytest.mark.parametrize("algorithm", ["auto", "modelmix"])
@pytest.mark.filterwarnings("ignore")
def test_codes_without_public_rows(algorithm):
    codes = (16 * X).astype(np.int64)
    torch.manual_seed(0)
    model = FirstOrderDPModuleClassifier(Codes(), algorithm, n_steps=3, init="module", classes=range(10))
    model.fit(codes[100:300], Y[100:300])
    assert_finite(model)
    assert model.learning_rate_ > 0
