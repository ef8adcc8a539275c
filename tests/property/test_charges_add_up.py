"""All releases of a fit, whatever stages it has, add up to the budget that its report states."""

import math

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import PAZO, DPZero
from skmixdp.estimators import fit_many
from skmixdp.features import ZeroShotHead
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger, mu_of_budget
from tests.noise import watch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N, D, K = 2000, 6, 4
RNG = np.random.default_rng(0)
CENTRES = 2.0 * RNG.normal(size=(K, D))
Y = np.minimum(RNG.geometric(0.5, N) - 1, K - 1)
X = CENTRES[Y] + RNG.normal(size=(N, D)) + 1.0
Y_PUB = np.arange(40) % K
X_PUB = CENTRES[Y_PUB] + RNG.normal(size=(40, D)) + 1.0
NAMES = ZeroShotHead(list("abcd"), embeddings=CENTRES)

#: Public rows, and the start, of each case.
STARTS = {
    "public": (X_PUB, Y_PUB, "public"),
    "left out": (X_PUB, (Y_PUB + 1) % K, "public"),
    "none": (None, None, "public"),
    "names": (None, None, NAMES),
}
#: Kind of noise, and which data sets are neighbours. A replaced row costs twice the sensitivity.
RELATIONS = [("float", "add_or_remove_one"), ("float", "replace_one"), ("discrete", "zero_out")]
TERMS = {"epsilon": 3.0, "delta": 1e-5}
#: A mu that belongs to an epsilon is rounded down, by some 1e-9; the least share is 0.002 of its square.
ROUNDED = 1e-8


def spent(log, neighboring="add_or_remove_one"):
    """What the releases cost together, as a Gaussian-DP parameter."""
    factor = 2 if neighboring == "replace_one" else 1
    return factor * math.sqrt(sum((release.sensitivity / release.scale) ** 2 for release in log))


def stated(report):
    """The Gaussian-DP parameter that a report states; discrete noise has that of its epsilon."""
    noise = "discrete" if report.noise == "discrete" else "float"
    of_epsilon = mu_of_budget(report.epsilon, report.delta, noise=noise)
    assert report.mu is None or report.mu <= of_epsilon * (1 + ROUNDED)
    return of_epsilon if report.mu is None else report.mu


def assert_adds_up(log, report):
    """The releases cost what is stated; no more, and next to no less."""
    cost, limit = spent(log, report.neighboring), stated(report)
    assert cost <= limit * (1 + ROUNDED), f"the releases cost {cost / limit - 1:.2g} more than is stated"
    assert cost >= limit * (1 - 1e-5), f"{1 - cost / limit:.2g} of the stated budget buys no release"
    assert not report.shares or math.isclose(sum(share for _, share in report.shares), 1, abs_tol=1e-12)
    assert report.epsilon <= TERMS["epsilon"] * (1 + 1e-9)


def assert_adds_up_to(log, mu):
    """The releases of several fits cost what these state together."""
    assert mu * (1 - 1e-5) <= spent(log) <= mu * (1 + ROUNDED)


def terms_of(relation):
    """The parameters of a budget and of a relation. A seed makes sure that checks find what they should."""
    noise, neighboring = relation
    if noise == "discrete":
        pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    seed = {"random_state": 0} if noise == "float" else {}  # discrete noise has none
    return {**TERMS, **seed, "noise": noise, "neighboring": neighboring}


@pytest.mark.covering("start class_weight", "start relation", "algorithm start")
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 1.0, 2: 1.0, 3: 2.0}], ids=str)
@pytest.mark.parametrize("logit_adjustment", ["auto", 0.7])
@pytest.mark.parametrize("geometry", ["auto", True, False])
@pytest.mark.parametrize("algorithm", ["auto", "adamix", "gep"])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
def test_stages_of_a_classifier(
    monkeypatch, start, class_weight, logit_adjustment, geometry, algorithm, relation
):
    terms, noise = terms_of(relation), relation[0]
    X_pub, y_pub, init = STARTS[start]
    if X_pub is None and algorithm != "auto":
        algorithm = "noisy-gd"  # the others need public rows
    if noise == "discrete" and algorithm == "gep":
        algorithm = "coupling"  # coordinates in a subspace are on no grid
    log = watch(monkeypatch)
    terms |= {"class_weight": class_weight, "logit_adjustment": logit_adjustment}
    terms["rows"] = RowMapping(geometry=geometry)
    head = MixedDPLogisticRegression(algorithm, **terms, classes=range(K), init=init)
    head.fit(X, Y, X_pub, y_pub)
    assert_adds_up(log, head.privacy_)
    names = {name for name, _ in head.privacy_.shares}
    starts_at_shares = init == "public" and not head.privacy_.n_public
    assert ("class counts" in names) == (class_weight == "balanced" or starts_at_shares)
    assert geometry is not True or {"mean", "unused mean"} & names
    if start == "left out" and algorithm == "auto":
        assert "check of the start" in names
        assert head.privacy_.n_public == 0  # the start was left out
        assert geometry is not True or {"mean", "unused mean"} <= names


@pytest.mark.covering
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
@pytest.mark.parametrize("start", ["public", "left out", "none", "weights"])
@pytest.mark.parametrize("geometry", ["auto", False])
def test_stages_of_several_labels(monkeypatch, start, geometry, relation):
    head = MixedDPLogisticRegression(**terms_of(relation), rows=RowMapping(geometry=geometry))
    log = watch(monkeypatch)
    labels, labels_pub = (classes[:, np.newaxis] == np.arange(K) for classes in (Y, Y_PUB))
    if start in ("public", "left out"):
        head.fit(X, labels, X_PUB, labels_pub if start == "public" else ~labels_pub)
    else:
        head.fit(X, labels, sample_weight=None if start == "none" else np.ones(N))
    assert_adds_up(log, head.privacy_)
    names = {name for name, _ in head.privacy_.shares}
    assert ("label shares" in names) == (start != "public")
    assert "temperature" in names
    assert ({"scale of weights", "mean weight"} <= set(names)) == (start == "weights")
    assert head.privacy_.n_public == (40 if start == "public" else 0)


@pytest.mark.covering
@pytest.mark.parametrize("geometry", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_start_that_is_left_out_is_paid_for(monkeypatch, class_weight, geometry):
    """With what was learned by its public rows, and with the class counts, which are still of use."""
    log = watch(monkeypatch)
    terms = {"class_weight": class_weight, "logit_adjustment": 0, "random_state": 0}
    terms["rows"] = RowMapping(geometry=geometry)
    head = MixedDPLogisticRegression(**TERMS, **terms, classes=range(K))
    head.fit(X, Y, X_PUB, (Y_PUB + 1) % K)
    assert_adds_up(log, head.privacy_)
    unused = {name for name, _ in head.privacy_.shares if name.startswith("unused")}
    assert unused - {"unused second moment"} == ({"unused mean"} if geometry else set())


@pytest.mark.covering
@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
def test_checks_of_a_regression(monkeypatch, left_out, relation):
    head, noise = MixedDPRidge(**terms_of(relation)), relation[0]
    log = watch(monkeypatch)
    head.fit(X, X[:, :2], X_PUB, -X_PUB[:, :2] if left_out else X_PUB[:, :2])
    assert_adds_up(log, head.privacy_)
    names = {name for name, _ in head.privacy_.shares} - {"second moment", "unused second moment", "columns"}
    asked = {"first head", "lengths of gradients", "training"}
    if relation[1] != "replace_one":  # which leaves half of mu, and too much noise
        asked |= {"residuals"}
    if noise == "float":
        asked |= {"check of units"}
    # Units that are others leave the start out before it is checked.
    asked |= {"check of the start"} & (names if noise == "float" and left_out else {"check of the start"})
    assert names == asked | {"scale of the targets" if left_out else "comparison"}
    assert head.privacy_.n_public == (0 if left_out else 40)


@pytest.mark.covering("head public", "head relation")
@pytest.mark.parametrize("head", [MixedDPLogisticRegression, MixedDPRidge])
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_lengths_that_are_learned(monkeypatch, head, public, relation, class_weight):
    terms, noise = {**terms_of(relation), "rows": RowMapping(norm="clip"), "scale": False}, relation[0]
    if head is MixedDPRidge:
        estimator, y, y_pub = head(target_scale=1.0, **terms), X[:, :2], X_PUB[:, :2]
    else:
        estimator = head(classes=range(K), class_weight=class_weight, **terms)
        y, y_pub = Y, Y_PUB
    log = watch(monkeypatch)
    estimator.fit(X, y, *((X_PUB, y_pub) if public else ()))
    assert_adds_up(log, estimator.privacy_)
    learned = "length of the rows" in dict(estimator.privacy_.shares)
    assert learned == (not public and noise == "float")


@pytest.mark.covering("algorithm public")
@pytest.mark.parametrize("algorithm", [DPZero(), PAZO("m"), PAZO("s", candidate_noise=None)], ids=str)
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
def test_losses_instead_of_gradients(monkeypatch, algorithm, public, relation):
    kind = algorithm if public else DPZero()
    head = MixedDPLogisticRegression(kind, classes=range(K), **terms_of(relation))
    log = watch(monkeypatch)
    head.fit(X, Y, *((X_PUB, Y_PUB) if public else ()))
    assert_adds_up(log, head.privacy_)


@pytest.mark.covering
@pytest.mark.parametrize("algorithm", ["dpzero", "pazo-m", "pazo-s", "adamix", "coupling"])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
def test_modules(monkeypatch, algorithm, relation):
    torch = pytest.importorskip("torch", reason="needs skmixdp[features]")
    terms = {**terms_of(relation), "n_steps": 5, "learning_rate": 1e-3}
    from skmixdp import FirstOrderDPModuleClassifier, ZerothOrderDPModuleClassifier

    first_order = algorithm in ("adamix", "coupling")
    if first_order and relation[0] == "discrete":
        pytest.skip("gradients of modules are on no grid")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.ReLU(), torch.nn.Linear(5, K))
    kind = FirstOrderDPModuleClassifier if first_order else ZerothOrderDPModuleClassifier
    head = kind(module, algorithm, classes=range(K), **terms)
    log = watch(monkeypatch)
    head.fit(X[:200].astype(np.float32), Y[:200], X_PUB.astype(np.float32), Y_PUB)
    assert_adds_up(log, head.privacy_)


@pytest.mark.parametrize("bounds", [(-20.0, 20.0), None])
def test_a_scaler_and_a_head_share_a_ledger(monkeypatch, tmp_path, bounds):
    """Both fits together cost what the ledger says that is spent."""
    dataset = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=9.0, delta=1e-5)
    log = watch(monkeypatch)
    scaler = NoisyScaler(1.0, 1e-5, bounds=bounds, ledger=dataset).fit(X)
    assert_adds_up(log, scaler.privacy_)
    first = len(log)
    head = MixedDPLogisticRegression(**TERMS, classes=range(K), class_weight="balanced", ledger=dataset)
    head.fit(scaler.transform(X), Y)
    assert_adds_up(log[first:], head.privacy_)
    assert_adds_up_to(log, mu_of_budget(dataset.spent, 1e-5))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_folds_that_are_fitted_together(monkeypatch, class_weight):
    """Each pass answers all heads; all releases together cost what all reports together state."""
    folds = [np.flatnonzero(np.arange(N) % 2 == part) for part in (0, 1)]
    heads = [MixedDPLogisticRegression(**TERMS, classes=range(K), class_weight=class_weight) for _ in folds]
    log = watch(monkeypatch)
    fit_many(heads, X, Y, X_PUB, Y_PUB, rows=folds)
    assert_adds_up_to(log, math.hypot(*(head.privacy_.mu for head in heads)))


@pytest.mark.parametrize("batch_size", [None, 200])
def test_a_fit_that_diverges_releases_no_more_than_was_charged(monkeypatch, batch_size):
    dataset = PrivacyLedger(":memory:").add_dataset("rows", epsilon=9.0, delta=1e-5)
    log = watch(monkeypatch)
    terms = {"epsilon": None, "noise_multiplier": 5.0, "n_steps": 7, "delta": 1e-5, "classes": range(K)}
    far = {"learning_rate": 1e200, "l2": 1.0}  # each step is longer than the last one by the product
    head = MixedDPLogisticRegression("noisy-gd", **terms, **far, batch_size=batch_size, ledger=dataset)
    with pytest.raises(ValueError, match="diverged"):
        head.fit(X, Y)
    (charge,) = dataset.charges()
    assert len(log) == charge.event.n_steps == 7
    assert all(math.isclose(release.scale, 5.0 * release.sensitivity, rel_tol=1e-12) for release in log)
