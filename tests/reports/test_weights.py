"""What people expect of weights: they count by their ratios, as in scikit-learn, in any unit."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score

from skmixdp import FirstOrderDPModuleClassifier, MixedDPLogisticRegression, MixedDPRidge, fit_many

RNG = np.random.default_rng(0)
N = 8000
ALL = RNG.normal(size=(N + 4000, 4))
LABELS = (ALL @ [1.5, -1.0, 0.0, 0.5] + RNG.logistic(size=len(ALL)) > 3.0).astype(int)
X, X_TEST, Y, Y_TEST = ALL[:N], ALL[N:], LABELS[:N], LABELS[N:]
PUBLIC = {"no public rows": {}, "public rows": {"X_pub": X_TEST[:60], "y_pub": Y_TEST[:60]}}


def head(**parameters):
    return MixedDPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], "random_state": 0, **parameters})


def recall(model):
    return recall_score(Y_TEST, model.predict(X_TEST))


@pytest.mark.parametrize("public", PUBLIC)
@pytest.mark.parametrize("unit", [0.1, 0.03, 1e-200, 1e90])
def test_class_weights_in_another_unit_do_the_same(unit, public):
    one = head(class_weight={0: 1, 1: 10}).fit(X, Y, **PUBLIC[public])
    other = head(class_weight={0: unit, 1: 10 * unit}).fit(X, Y, **PUBLIC[public])
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("public", PUBLIC)
@pytest.mark.parametrize("class_weight", [{0: 1, 1: 10}, {0: 0.1, 1: 1}, "balanced"], ids=str)
def test_class_weights_find_as_many_of_the_rare_class_as_scikit_learn(class_weight, public):
    heads = [head(epsilon=2.0, class_weight=class_weight, random_state=seed) for seed in range(4)]
    found = np.mean([recall(each.fit(X, Y, **PUBLIC[public])) for each in heads])
    assert found == pytest.approx(recall(LogisticRegression(class_weight=class_weight).fit(X, Y)), abs=0.1)
    assert found > recall(head().fit(X, Y, **PUBLIC[public])) + 0.2


def test_balanced_weights_of_four_classes():
    terms = {"n_informative": 10, "n_classes": 4, "n_clusters_per_class": 1, "flip_y": 0, "random_state": 0}
    rows, y = make_classification(12_000, 20, weights=[0.7, 0.2, 0.07, 0.03], **terms)
    balanced = []
    for seed in range(3):
        model = head(classes=range(4), class_weight="balanced", random_state=seed)
        predicted = model.fit(rows[:8000], y[:8000]).predict(rows[8000:])
        balanced.append(balanced_accuracy_score(y[8000:], predicted))
    assert np.mean(balanced) > 0.775  # scikit-learn: 0.818


@pytest.mark.parametrize("public", PUBLIC)
@pytest.mark.parametrize("weight", [100.0, 0.01, 1e-15, 7.3e18, 3])
def test_one_weight_of_all_rows_changes_next_to_nothing(weight, public):
    plain = head(epsilon=8.0).fit(X, Y, **PUBLIC[public])
    model = head(epsilon=8.0).fit(X, Y, **PUBLIC[public], sample_weight=np.full(N, weight))
    probabilities, expected = (m.predict_proba(X_TEST)[:, 1] for m in (model, plain))
    assert np.abs(probabilities - expected).mean() < 0.02
    assert model.score(X_TEST, Y_TEST) > plain.score(X_TEST, Y_TEST) - 0.01
    assert {"scale of weights", "mean weight"} <= set(dict(model.privacy_.shares))
    assert sum(dict(model.privacy_.shares).values()) == pytest.approx(1)


@pytest.mark.parametrize("weight", [1.0, 100.0, 0.01, 1e-99])
def test_a_declared_largest_weight_of_all_rows_is_a_weight_of_one(weight):
    terms = {"algorithm": "noisy-gd", "n_steps": 10, "dtype": "float64"}
    plain = head(**terms).fit(X[:500], Y[:500])
    model = head(**terms, max_sample_weight=weight).fit(X[:500], Y[:500], sample_weight=np.full(500, weight))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-9)


def test_weights_above_the_declared_one_count_as_it():
    terms = {"algorithm": "noisy-gd", "n_steps": 10, "dtype": "float64", "max_sample_weight": 2.0}
    weights = RNG.exponential(size=500)
    cut, huge = (np.where(weights > 1.5, large, weights) for large in (2.0, 1e300))
    one, other = (head(**terms).fit(X[:500], Y[:500], sample_weight=each).coef_ for each in (cut, huge))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_sample_weights_by_class_are_class_weights(unit):
    weights = np.where(Y == 1, 10.0, 1.0)
    found = [recall(head(random_state=s).fit(X, Y, sample_weight=weights * unit)) for s in range(4)]
    expected = recall(LogisticRegression().fit(X, Y, sample_weight=weights))
    assert np.mean(found) == pytest.approx(expected, abs=0.1)


def test_probabilities_are_those_of_the_weighted_rows():
    weights = np.where(Y == 1, 10.0, 1.0)
    model = head(epsilon=4.0).fit(X, Y, sample_weight=weights)
    mean = np.average(model.predict_proba(X)[:, 1], weights=weights)
    assert mean == pytest.approx(np.average(Y, weights=weights), abs=0.1)


@pytest.mark.parametrize("unit", [1.0, 100.0, 0.01])
def test_weighted_least_squares(unit):
    first = X[:, 3] > 0
    y = np.where(first, 1.0, -1.0) * X[:, 0] + 0.1 * X[:, 1]
    weights = np.where(first, 4.0, 1.0) * unit
    model = MixedDPRidge(epsilon=3.0, random_state=0).fit(X, y, sample_weight=weights)
    expected = LinearRegression().fit(X, y, sample_weight=weights)
    assert model.predict(X_TEST) == pytest.approx(expected.predict(X_TEST), abs=0.3)


def test_several_labels_take_weights_of_any_unit():
    labels = np.stack([Y, (X[:, 1] > 0).astype(int)], axis=1)
    plain, model = (MixedDPLogisticRegression(epsilon=2.0, random_state=0) for _ in range(2))
    plain.fit(X, labels)
    model.fit(X, labels, sample_weight=np.full(N, 1e-3))
    assert np.abs(model.predict_proba(X_TEST) - plain.predict_proba(X_TEST)).mean() < 0.03


@pytest.mark.parametrize("class_weight", [{0: 1, 1: 10}, {0: 0.1, 1: 1}], ids=str)
def test_persons_count_by_the_weights_of_their_rows(class_weight):
    model = head(epsilon=2.0, class_weight=class_weight).fit(X, Y, groups=np.arange(N) // 2)
    expected = recall(LogisticRegression(class_weight=class_weight).fit(X, Y))
    assert recall(model) == pytest.approx(expected, abs=0.12)


def test_persons_whose_rows_all_have_one_weight():
    groups = np.arange(N) // 2
    terms = {"algorithm": "noisy-gd", "n_steps": 10, "dtype": "float64", "max_sample_weight": 5.0}
    one = head(**terms).fit(X, Y, groups=groups, sample_weight=np.full(N, 5.0)).coef_
    np.testing.assert_allclose(head(**terms).fit(X, Y, groups=groups).coef_, one, rtol=1e-9, atol=1e-9)


def test_fits_together_take_weights_of_any_unit():
    heads = [head(random_state=seed) for seed in (0, 1)]
    fit_many(heads, X, Y, sample_weight=np.full(N, 1e4))
    assert min(each.score(X_TEST, Y_TEST) for each in heads) > 0.87


def test_weights_that_cannot_be_used_are_refused():
    weights = np.ones(N)
    for terms in ({"n_steps": 5}, {"batch_size": 50}, {"noise_multiplier": 9.0}):
        with pytest.raises(ValueError, match=r"max_sample_weight='auto' .*declare the largest weight"):
            head(**terms).fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match="max_sample_weight=0"):
        head(max_sample_weight=0).fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match="class_weight is zero for all classes"):
        head(class_weight={0: 0, 1: 0}).fit(X, Y)
    with pytest.raises(ValueError, match="finite numbers"):
        head().fit(X, Y, sample_weight=np.where(np.arange(N) == 3, np.inf, 1.0))


# -- modules -----------------------------------------------------------------------------------


FEW = 1500


def module_classifier(*hidden, public="no public rows", sample_weight=None, **parameters):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(*sizes) for sizes in pairwise((4, *hidden, 2))]
    network = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))[:-1]
    terms = {"epsilon": 4.0, "n_steps": 10, "classes": [0, 1], "random_state": 0, **parameters}
    known = dict(PUBLIC[public])
    if known:
        known["X_pub"] = known["X_pub"].astype("f4")
    if sample_weight is not None:
        known["sample_weight"] = sample_weight[:FEW]
    return FirstOrderDPModuleClassifier(network, **terms).fit(X[:FEW].astype("f4"), Y[:FEW], **known)


def probabilities_of(model):
    return model.predict_proba(X_TEST.astype("f4"))


@pytest.mark.parametrize("public", PUBLIC)
@pytest.mark.parametrize("hidden", [(), (8,)], ids=["linear", "one layer"])
def test_class_weights_of_a_module_count_by_their_ratios(hidden, public):
    plain = module_classifier(*hidden, public=public)
    one = module_classifier(*hidden, public=public, class_weight={0: 1, 1: 10})
    other = module_classifier(*hidden, public=public, class_weight={0: 0.1, 1: 1})
    np.testing.assert_allclose(probabilities_of(other), probabilities_of(one), atol=1e-5)
    found, without = (recall_score(Y_TEST, probabilities_of(model)[:, 1] > 0.5) for model in (one, plain))
    assert found > max(0.6, without + 0.1)  # scikit-learn: 0.85


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_sample_weights_of_a_module_are_weights_by_class(unit):
    weights = unit * np.where(Y == 1, 10.0, 1.0)
    by_row = module_classifier(sample_weight=weights, max_sample_weight=10 * unit)
    by_class = module_classifier(class_weight={0: 1, 1: 10})
    np.testing.assert_allclose(probabilities_of(by_row), probabilities_of(by_class), atol=1e-5)


def test_equal_weights_of_a_module_are_none():
    plain = probabilities_of(module_classifier())
    for options in (
        {"class_weight": {0: 3, 1: 3}},
        {"sample_weight": np.full(N, 7.0), "max_sample_weight": 7.0},
        {"sample_weight": np.full(N, 7.0), "max_sample_weight": 2.0},
    ):
        np.testing.assert_allclose(probabilities_of(module_classifier(**options)), plain, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": np.ones(N)}, "sample_weight needs max_sample_weight, .* declare it"),
        ({"sample_weight": np.ones(3), "max_sample_weight": 1.0}, "sample_weight has shape"),
        ({"sample_weight": -np.ones(N), "max_sample_weight": 1.0}, "finite numbers of at least 0"),
        ({"max_sample_weight": "auto"}, "max_sample_weight='auto' must be None or"),
        ({"class_weight": "balanced"}, "class_weight='balanced' must be None or a dict of weights"),
        ({"class_weight": {5: 1.0}}, "class_weight has a weight for 5"),
        ({"class_weight": {0: -1.0}}, "must be"),
    ],
)
def test_weights_that_a_module_cannot_have_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        module_classifier(**options)
