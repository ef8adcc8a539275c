"""Whatever a row or a person holds, it moves what an inference releases by no more than is stated."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import AdditiveDPPoissonRegressor, MixedDPPoissonRegressor, Typical
from skmixdp.exceptions import NotPrivateWarning, PrivacyLeakWarning
from skmixdp.inference import private_inference
from skmixdp.privacy import mu_of_budget
from tests.replay import check_neighbours, check_sensitivities

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N, N_PUBLIC = 400, 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2)) * [1.0, 30.0] + [0.0, 100.0]
Y = (X[:, 0] + RNG.logistic(size=N) > 0).astype(int)
W = RNG.lognormal(size=N)
T = 5 * X[:, 0] + RNG.normal(size=N)
#: Targets that follow no column: residuals are cut at more than one spread of the targets.
LOOSE = RNG.normal(size=N)
X_PUB = RNG.normal(size=(N_PUBLIC, 2)) * [1.0, 30.0] + [0.0, 100.0]
Y_PUB = np.arange(N_PUBLIC) % 3
PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}
PUBLIC_TARGETS = {"X_pub": X_PUB, "y_pub": 5 * X_PUB[:, 0] + RNG.normal(size=N_PUBLIC)}

#: Rows that take the place of the first, with its label and its target.
ODD = [
    *(([0.0, 0.0], 0, 0.0), ([1e300, -1e300], 1, 1e300), ([5e-324, -5e-324], 1, -1e300)),
    *(([np.finfo(float).max, 100.0], 0, 5e-324), ([0.0, 1e8], 1, 1e5), ([3.0, 190.0], 0, -500.0)),
    (
        [1.0, 130.0],
        1,
        -1e4,
    ),  # as far from the centre as rows keep their weight, so that its score is the longest
]
KINDS = [
    ("logistic", {"classes": [0, 1]}, Y),
    ("logistic", {"classes": [0, 1], "cov": "robust"}, Y),
    ("logistic", {"classes": [0, 1, 2]}, Y),
    ("gaussian", {}, T),
    ("gaussian", {"cov": "robust", "target_scale": (0.0, 5.0)}, T),
    ("gaussian", {"scale": {0: Typical(0.0, 1.0), 1: Typical(100.0, 30.0)}}, T),
    ("logistic", {"classes": [0, 1], "sample_weight": W}, Y),
    ("gaussian", {"sample_weight": W, "max_sample_weight": 2.0}, T),
    ("logistic", PUBLIC, Y),
    ("gaussian", PUBLIC_TARGETS, T),
    ("gaussian", {**PUBLIC_TARGETS, "cov": "robust", "neighboring": "replace_one"}, T),
    ("logistic", {"classes": [0, 1], "neighboring": "replace_one"}, Y),
    ("gaussian", {}, LOOSE),
    ("gaussian", {"cov": "robust", "neighboring": "zero_out"}, LOOSE),
    ("gaussian", {"sample_weight": W, "sample_weight_pub": np.ones(N_PUBLIC), **PUBLIC_TARGETS}, T),
    ("logistic", {"classes": [0, 1], "sample_weight": W, "max_sample_weight": 50.0}, Y),
]

#: Counts and exposures, and those of public rows.
C = RNG.poisson(np.exp(0.5 * X[:, 0]))
E = RNG.lognormal(size=N)
PUBLIC_COUNTS = {"X_pub": X_PUB, "y_pub": RNG.poisson(np.ones(N_PUBLIC))}
KINDS += [
    ("poisson", {}, C),
    ("poisson", {"exposure": E, "cov": "robust"}, C),
    ("poisson", {"exposure": E, "sample_weight": W, "max_sample_weight": 2.0}, C),
    ("poisson", {"exposure": E, "exposure_pub": np.ones(N_PUBLIC), **PUBLIC_COUNTS}, C),
    ("poisson", {"exposure": E, "neighboring": "replace_one"}, C),
]

#: Rates are predicted, with other releases.
RATES = {"rates": MixedDPPoissonRegressor, "curves": AdditiveDPPoissonRegressor}
KINDS += [
    ("rates", {}, C),
    ("rates", {"exposure": E, "sample_weight": W, "max_sample_weight": 2.0}, C),
    ("rates", {"exposure": E, "exposure_pub": np.ones(N_PUBLIC), **PUBLIC_COUNTS}, C),
    ("rates", {"exposure": E, "neighboring": "replace_one"}, C),
    ("rates", {"exposure": E, "noise": "discrete"}, C),
]

#: Curves of rates have knots of noisy histograms, and another length of rows.
KINDS += [("curves", {"exposure": E}, C), ("curves", {"exposure": E, "sample_weight": W}, C)]
KINDS += [("curves", {"exposure": E, "noise": "discrete", "neighboring": "replace_one"}, C)]

#: Exposures of the odd rows.
ODD_EXPOSURES = [1e300, 5e-324, 1e-300, 1.0, 2.0**64, 1e-3, 1e3]

#: Weights of the odd rows.
ODD_WEIGHTS = [0.0, 1e300, 5e-324, 1.0, 2.0**64, 1e-3, 1e3]


def epsilon_for(family):
    return 40.0 if family in ("logistic", "gaussian") else 160.0


def path(rows, labels, family, options):
    def run(calls):
        epsilon = epsilon_for(family)
        if family in RATES:
            names = ("max_sample_weight", "neighboring", "noise")
            of_model = {name: value for name, value in options.items() if name in names}
            model = RATES[family](epsilon=epsilon, delta=1e-3, **of_model)
            of_fit = {name: value for name, value in options.items() if name not in names}
            return model.fit(rows, labels, **of_fit)
        return private_inference(rows, labels, family=family, epsilon=epsilon, delta=1e-3, **options)

    return run


def with_odd_row(kind, number):
    """The rows, labels and options of a kind, whose first row is an odd one."""
    family, options, labels = KINDS[kind]
    row, label, target = ODD[number]
    rows, labels = X.copy(), labels.astype(float) if labels is C else labels.copy()
    count = min(abs(target), 1e300)
    odd = {"logistic": label, "gaussian": target, "poisson": count} | dict.fromkeys(RATES, count)
    rows[0], labels[0] = row, odd[family]
    if "exposure" in options:
        options = {**options, "exposure": np.r_[ODD_EXPOSURES[number], E[1:]]}
    if "sample_weight" in options:
        options = {**options, "sample_weight": np.r_[ODD_WEIGHTS[number], W[1:]]}
    return rows, labels, family, options


@pytest.mark.parametrize("neighbour", range(len(ODD)))
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_rows(monkeypatch, kind, neighbour):
    family, options, labels = KINDS[kind]
    paths = path(X, labels, family, options), path(*with_odd_row(kind, neighbour))
    one = check_neighbours(monkeypatch, *paths, 0)
    terms = {name: options[name] for name in ("neighboring", "noise") if name in options}
    whole = mu_of_budget(epsilon_for(family), 1e-3, **terms)
    assert one.stated == pytest.approx(whole, rel=1e-3)
    assert one.stated <= whole * (1 + 1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("neighbour", range(len(ODD)))
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_row_that_is_zeroed_out_moves_no_release_by_more_than_its_sensitivity(monkeypatch, kind, neighbour):
    run = path(*with_odd_row(kind, neighbour))
    check_sensitivities(monkeypatch, lambda: run(None), N, more_than=6)


@pytest.mark.parametrize("rows", [1e-3 * X[:, ::-1] - 7.0, X * [0.0, 1.0]], ids=["other", "constant"])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_entirely_other_rows_show_nothing_else(monkeypatch, kind, rows):
    """All that is seen is a function of noisy numbers and public facts, however unlike the rows are."""
    family, options, labels = KINDS[kind]
    others = np.ones(N, int) if family == "logistic" else np.abs(1e6 * (labels + RNG.lognormal(size=N)))
    if "exposure" in options:
        options = {**options, "exposure": 1e3 * E[::-1]}
    if "sample_weight" in options:
        options = {**options, "sample_weight": 1e3 * W[::-1]}
    paths = path(X, labels, family, KINDS[kind][1]), path(rows, others, family, options)
    check_neighbours(monkeypatch, *paths, 0, math.inf, each_row=False)


@pytest.mark.parametrize("neighbour", range(len(ODD)))
@pytest.mark.parametrize("family", ["logistic", "gaussian", "poisson", *RATES])
@pytest.mark.parametrize("public", [False, True])
def test_persons(monkeypatch, family, neighbour, public):
    """A person of one row gets 40 rows more, or other rows."""
    row, label, target = ODD[neighbour]
    labels, options = {"logistic": (Y, {"classes": [0, 1]}), "gaussian": (LOOSE, {})}.get(family, (C, {}))
    target = abs(target) if labels is C else target
    if public:
        known = {"X_pub": X_PUB, "y_pub": Y_PUB % 2}
        options |= {"logistic": known, "gaussian": PUBLIC_TARGETS}.get(family, PUBLIC_COUNTS)
    groups = np.r_[0, np.arange(N - 1) // 3 + 1]
    more = np.r_[np.tile(row, (41, 1)), X[1:]]
    others = np.r_[np.full(41, label if family == "logistic" else target), labels[1:]]
    one = path(X, labels, family, {**options, "groups": groups})
    other = path(more, others, family, {**options, "groups": np.r_[np.zeros(41, int), groups[1:]]})
    check_neighbours(monkeypatch, one, other, 0, each_row=False)


@pytest.mark.parametrize("n_rows", [1, 4, 40])
def test_what_is_refused_follows_from_the_number_of_persons(n_rows):
    rows, labels = np.repeat(X[:100], n_rows, axis=0), np.repeat(Y[:100], n_rows)
    options = {"classes": [0, 1], "scale": {0: Typical(0.0, 1.0), 1: Typical(100.0, 30.0)}, "epsilon": 3.0}
    groups = np.repeat(np.arange(100), n_rows)
    with pytest.raises(ValueError, match="noise would hide with 100 rows"):
        private_inference(rows, labels, groups=groups, delta=1e-3, **options)


def test_classes_are_those_of_public_rows():
    """Private labels add none, and take none away."""
    found = private_inference(X, Y, epsilon=40.0, delta=1e-3, **PUBLIC)
    assert found.classes == ("0", "1", "2")
    with pytest.raises(ValueError, match="y holds a label that is not one of the classes"):
        private_inference(X, np.r_[3, Y[1:]], epsilon=40.0, delta=1e-3, **PUBLIC)


def test_a_seed_and_a_large_delta_are_said_by_the_number_of_persons():
    groups = np.r_[0, np.arange(N - 1) // 3 + 1]  # 134 of them, with 400 rows
    for delta, is_large in ((1 / 200, False), (1 / 100, True)):
        options = {"classes": [0, 1], "groups": groups, "random_state": 0}
        with pytest.warns(NotPrivateWarning, match="random_state is set") as warned:
            found = private_inference(X, Y, epsilon=40.0, delta=delta, **options)
        assert any("not below 1/n" in str(each.message) for each in warned) == is_large
        assert found.no_guarantee == "NO GUARANTEE: the noise comes from a seed"


class Inferring(BaseEstimator):
    """A last step that fits by an inference."""

    def fit(self, X, y):
        self.result_ = private_inference(X, y, epsilon=40.0, delta=1e-3, classes=[0, 1])
        return self


def test_a_leak_before_an_inference_is_named_by_all_that_states_its_guarantee():
    with warnings.catch_warnings(record=True, action="always") as warned:
        found = make_pipeline(StandardScaler(), Inferring()).fit(X, Y)[-1].result_
    assert [one for one in warned if one.category is PrivacyLeakWarning]
    words = "NO GUARANTEE: StandardScaler"
    assert found.no_guarantee.startswith(words) and not found.privacy_.private
    for text in (str(found), str(found.privacy_), found.to_dict()["privacy"]["no_guarantee"]):
        assert text.startswith(words)
    assert words in found._repr_html_()
    assert not private_inference(X, Y, epsilon=40.0, delta=1e-3, classes=[0, 1]).no_guarantee
