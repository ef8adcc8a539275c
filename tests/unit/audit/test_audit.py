"""How an audit fits, what it sees, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, RowMapping, ZerothOrderDPModuleClassifier
from skmixdp.audit import audit_epsilon
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.preprocessing import NoisyScaler, PublicOnly
from skmixdp.privacy import NoiseSource, epsilon_of
from skmixdp.privacy.units import Units
from tests.audit_problems import DELTA, draw, draw_targets, factory, fix_noise, one_of_each
from tests.catalog import ALGORITHMS
from tests.private_names import AuditRows, Evidence, Fits, Places, claim_of, contribution_lengths, evidence_of
from tests.rounding import assert_close

NAMES = [*ALGORITHMS, "ridge, adamix", "ridge, noisy-gd"]
# At most n_steps / noise_multiplier**2 is spent; the accountant of the rest is slow, and tested elsewhere.
MU = 0.9


def problem(name):
    return draw_targets() if name.startswith("ridge") else draw()


def canaries_for(data, count=6, seed=1):
    rng = np.random.default_rng(seed)
    X = data["X"].mean(axis=0) + 20 * rng.normal(size=(count, data["X"].shape[1]))
    return AuditRows(X, rng.permutation(data["y"])[:count] * (1.0 if data["y"].dtype.kind == "i" else 30.0))


def fits_of(data, make):
    units = Units(None, len(data["X"]))
    return Fits(make, AuditRows(data["X"], data["y"]), data["X_pub"], data["y_pub"], units)


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_the_released_arrays_are_what_the_evidence_says(monkeypatch, name):
    """Known rows are subtracted to rounding, and each included canary adds its own contribution."""
    monkeypatch.setattr(NoiseSource, "add_noise", lambda self, array, scale, grid: array)
    data = problem(name)
    canaries = canaries_for(data)
    included = np.array([True, False, True, True, False, False])
    fitted = fits_of(data, factory(name, MU, dtype="float64"))(canaries, included)
    evidence = evidence_of(fitted, AuditRows(data["X"], data["y"]), canaries)
    assert np.diag(evidence.gram).min() > 0
    np.testing.assert_allclose(evidence.products, evidence.gram @ (included - 0.5), atol=1e-6)
    assert_close(contribution_lengths(fitted, canaries) ** 2, np.diag(evidence.gram))


@pytest.mark.parametrize("name", one_of_each(NAMES))
def test_no_canary_contributes_more_than_is_claimed_and_the_chosen_one_almost_as_much(monkeypatch, name):
    fix_noise(monkeypatch)
    data = problem(name)
    result = audit_epsilon(factory(name, MU), **data, n_canaries=20, random_state=0)
    assert result.claimed_mu == pytest.approx(MU, rel=1e-6)
    canaries = canaries_for(data, 30)
    fitted = fits_of(data, factory(name, MU))(canaries, np.ones(30, dtype=bool))
    strengths = contribution_lengths(fitted, canaries)
    # The theoretical clip is the longest gradient that any unit row may have, at any head.
    least = 0.4 if "theoretical" in name else 0.65
    assert strengths.max() <= MU * (1 + 1e-6)
    assert strengths.max() > least * MU


def test_an_excluded_canary_has_no_effect_at_all(monkeypatch):
    monkeypatch.setattr(NoiseSource, "add_noise", lambda self, array, scale, grid: array)
    data = draw()
    run = fits_of(data, factory("noisy-gd", MU, dtype="float64"))
    heads = [run(canaries_for(data, seed=seed), np.zeros(6, dtype=bool)).estimator.coef_ for seed in (1, 2)]
    np.testing.assert_array_equal(*heads)
    # Zeroed out, and not removed: sums over the known rows are divided by the number of all rows.
    known = MixedDPLogisticRegression(ALGORITHMS["noisy-gd"], epsilon=None, noise_multiplier=2.0, n_steps=1)
    one_step = factory("noisy-gd", 0.5, n_steps=1, learning_rate=1.0, init="zeros", dtype="float64")
    known.set_params(
        learning_rate=1.0, init="zeros", dtype="float64", rows=RowMapping(norm="unit"), scale=False
    )
    alone = known.fit(**data).coef_
    fitted = fits_of(data, one_step)(canaries_for(data), np.zeros(6, dtype=bool)).estimator
    assert fitted.privacy_.n_private == 106
    weight = 24 / 124, 24 / 130
    public = known.set_params(l2=0.0).fit(**data)._row_map(data["X_pub"], np.float64)
    residuals = np.full((24, 4), 0.25) - np.eye(4)[data["y_pub"]]
    gradient = (residuals.T @ public / 24)[:, :-1]
    private = [-(W + a * gradient) / (1 - a) for W, a in zip((alone, fitted.coef_), weight, strict=True)]
    assert_close(private[0] * 100, private[1] * 106)


def test_the_coins_are_fair_and_the_choice_is_reproducible(monkeypatch):
    fix_noise(monkeypatch)
    data = draw(n=200)
    results = [
        audit_epsilon(factory("noisy-gd", 4.0), **data, n_canaries=40, random_state=3) for _ in range(2)
    ]
    np.testing.assert_array_equal(results[0].included, results[1].included)
    assert 10 < results[0].included.sum() < 30
    assert len(results[0].scores) == results[0].n_canaries == 40
    # Guesses are right more often than wrong: 85 of 100, with a standard deviation of 5 between audits.
    correct = (results[0].scores > 0) == results[0].included
    assert correct.mean() > 0.6


def test_half_of_many_fits_include_the_canary_and_the_result_prints(monkeypatch):
    fix_noise(monkeypatch)
    result = audit_epsilon(factory("adamix", 3.0), **draw(), n_fits=40, random_state=0)
    assert result.included.sum() == 20
    assert result.claimed_epsilon == pytest.approx(epsilon_of(1 / 3, 1, delta=DELTA))
    assert 0 < result.epsilon < result.epsilon_from_mu < result.claimed_epsilon
    assert not result.exceeds_claim
    text = str(result)
    assert "40 fits, 1 canary, view 'released'" in text and "not refuted" in text


@pytest.mark.parametrize(("view", "n_fits"), [("released", 1), ("model", 1), ("released", 10), ("model", 10)])
def test_regression_and_given_canaries(view, n_fits):
    data = draw_targets()
    X = data["X"].mean(axis=0) + 50 * np.eye(8)
    given = (X, np.full(8, 1e4)) if n_fits == 1 else (X[:1], np.array([1e4]))
    result = audit_epsilon(
        factory("ridge, adamix", MU),
        **data,
        canaries=given,
        n_fits=n_fits,
        view=view,
        confidence=1 - 1e-7,
        random_state=0,
    )
    assert result.n_canaries == len(given[0])
    assert not result.exceeds_claim


def test_several_targets_and_text_labels():
    data = draw_targets()
    for name in ("y", "y_pub"):
        data[name] = np.column_stack([data[name], -data[name]])
    result = audit_epsilon(factory("ridge, adamix", MU), **data, n_canaries=20, confidence=1 - 1e-7)
    assert not result.exceeds_claim
    data = draw()
    names = np.array(["a", "bb", "ccc", "dddd"])
    data |= {name: names[data[name]] for name in ("y", "y_pub")}
    data["y"][data["y"] == "dddd"] = "a"  # of which only public rows and canaries are
    data["y"] = data["y"].astype("<U3")
    longer = data["X"][:5] + 30, np.array(["dddd"] * 5)
    result = audit_epsilon(factory("noisy-gd", MU), **data, canaries=longer, confidence=1 - 1e-7)
    assert not result.exceeds_claim


def test_a_sampled_batch_is_audited_without_a_claimed_mu():
    make = factory("noisy-gd", MU, batch_size=25)
    result = audit_epsilon(make, **draw(), n_canaries=20, confidence=1 - 1e-7, random_state=0)
    assert result.claimed_mu is None and result.claimed_epsilon is not None
    assert not result.exceeds_claim


def test_the_claim_of_modelmix_depends_on_the_view():
    """Its noisy sums stay secret: who sees them is promised less."""
    data = draw()
    make = factory("modelmix", MU, delta=1e-3)
    claims = [
        audit_epsilon(make, **data, n_fits=10, view=view, random_state=0) for view in ("released", "model")
    ]
    assert claims[0].claimed_epsilon == pytest.approx(epsilon_of(1 / MU, 1, delta=1e-3), rel=1e-6)
    assert claims[0].claimed_epsilon >= claims[1].claimed_epsilon
    assert claims[1].claimed_mu is None


def test_another_delta_changes_the_claim():
    result = audit_epsilon(factory("noisy-gd", MU), **draw(), n_canaries=20, delta=1e-2)
    assert (result.delta, result.claimed_epsilon) == (1e-2, pytest.approx(epsilon_of(1 / MU, 1, delta=1e-2)))


class Nosy(TransformerMixin, BaseEstimator):
    """Leaks: what it does to all rows depends on the longest one."""

    def fit(self, X, y=None):
        self.longest_ = np.abs(X).max()
        return self

    def transform(self, X):
        return np.clip(X, -1, 1) * (1e-3 if self.longest_ > 40 else 1.0)


def test_the_black_box_sees_what_leaks_outside_the_mechanism(monkeypatch):
    fix_noise(monkeypatch)
    data = {name: value for name, value in draw().items() if not name.endswith("pub")}
    given = np.full((1, 8), 100.0), np.array([0])

    def audited(step):
        def make():
            return make_pipeline(
                step(),
                factory("noisy-gd", 0.5, classes=range(4), rows=RowMapping(norm=None), learning_rate=1.0)(),
            )

        return audit_epsilon(make, **data, canaries=given, n_fits=60, view="model", confidence=0.999)

    with pytest.warns(PrivacyLeakWarning, match="nosy"):
        leaky = audited(Nosy)
    assert leaky.exceeds_claim
    assert "REFUTED" in str(leaky)
    assert not audited(lambda: sklearn.preprocessing.FunctionTransformer(np.tanh)).exceeds_claim


def test_the_white_box_looks_through_a_pipeline_and_adds_up_its_claims():
    with sklearn.config_context(enable_metadata_routing=True):
        steps = [("scale", PublicOnly(StandardScaler())), ("clf", factory("adamix", 2.0)())]

        def make():
            return sklearn.clone(Pipeline(steps, transform_input=["X_pub"]))

        data = draw()
        result = audit_epsilon(make, **data, n_fits=20, confidence=0.999, random_state=0)
        assert result.claimed_mu == pytest.approx(2.0)
        assert result.measured_mu > 0.5
    bare = {name: value for name, value in data.items() if not name.endswith("pub")}

    def noisy():
        clf = factory("noisy-gd", 2.0, classes=range(4))()
        return make_pipeline(NoisyScaler(1.0, DELTA, bounds=(-9.0, 9.0)), clf)

    result = audit_epsilon(noisy, **bare, n_canaries=20, confidence=0.999, random_state=0)
    assert result.claimed_mu == pytest.approx(np.hypot(2.0, 0.26805), rel=1e-3)
    assert result.delta == 2 * DELTA
    assert not result.exceeds_claim


def test_claims_add_up_where_there_is_no_mu():
    class Step:
        def __init__(self, **report):
            self.privacy_ = type("Report", (), report)

    one = Step(epsilon=1.0, delta=1e-6, mu=0.3)
    two = Step(epsilon=2.0, delta=1e-5, mu=None)
    pipe = Pipeline([("one", one), ("two", two)])
    claim = claim_of(pipe, None, released=False)
    assert (claim.epsilon, claim.mu, claim.delta) == (3.0, None, pytest.approx(1.1e-5))
    assert claim_of(pipe, 1e-4, released=False).epsilon is None


def test_a_module_is_audited_by_its_predictions_alone():
    torch = pytest.importorskip("torch")

    def make():
        head = factory("dpzero", MU, n_steps=1, learning_rate=0.1)()
        terms = (
            "epsilon",
            "delta",
            "n_steps",
            "noise_multiplier",
            "learning_rate",
            "classes",
            "random_state",
        )
        terms = {name: getattr(head, name) for name in terms}
        return ZerothOrderDPModuleClassifier(torch.nn.Linear(8, 4), "dpzero", init="module", **terms)

    data = draw(n=40)
    with pytest.raises(ValueError, match=r"view='released' needs .* pass view='model'"):
        audit_epsilon(make, **data, n_canaries=20)
    result = audit_epsilon(make, **data, n_canaries=20, view="model", confidence=1 - 1e-7)
    assert not result.exceeds_claim


BAD = {
    "confidence=1": ({"confidence": 1}, ValueError, r"confidence=1 must be a number strictly"),
    "confidence=nan": ({"confidence": float("nan")}, ValueError, r"confidence=nan must be a number strictly"),
    "delta": ({"delta": 0}, ValueError, r"delta=0 must be a number strictly between 0 and 1"),
    "view": ({"view": "gradients"}, ValueError, r"view='gradients' must be 'released' or 'model'"),
    "fits": ({"n_fits": 0}, ValueError, r"n_fits=0 must be a whole number of at least 1"),
    "odd fits": ({"n_fits": 11}, ValueError, r"n_fits=11 must be 1 or an even number of at least 10"),
    "few fits": ({"n_fits": 8}, ValueError, r"n_fits=8 must be 1 or an even number"),
    "many canaries": ({"n_canaries": 101}, ValueError, r"n_canaries=101 exceeds the 100 rows of X"),
    "few canaries": ({"n_canaries": 3}, ValueError, r"n_canaries=3 is too few for one fit"),
    "text": ({"n_canaries": "all"}, ValueError, r"n_canaries='all' must be a whole number"),
    "many of both": ({"n_canaries": 5, "n_fits": 10}, ValueError, r"many fits test one canary"),
    "odd guesses": ({"n_guesses": 7}, ValueError, r"n_guesses=7 must be even and at most .* 50"),
    "guesses of many": ({"n_guesses": 2, "n_fits": 10}, ValueError, r"n_guesses=2 has no effect"),
    "instance": ({"factory": MixedDPLogisticRegression()}, TypeError, r"pass lambda: clone\(estimator\)"),
    "no estimator": ({"factory": lambda: 3}, TypeError, r"factory returns 3, which has no fit"),
    "seeded": (
        {"factory": lambda: MixedDPLogisticRegression(random_state=4)},
        ValueError,
        r"random_state=4, the same seed each time",
    ),
    "ledger": (
        {"factory": lambda: MixedDPLogisticRegression(ledger="any")},
        ValueError,
        r"a ledger, which every fit of the audit would charge",
    ),
    "not ours": (
        {"factory": LogisticRegression, "view": "model", "X_pub": None, "y_pub": None},
        ValueError,
        r"released nothing through",
    ),
    "not a head": ({"factory": LogisticRegression}, ValueError, r"needs an estimator that trains one linear"),
    "flat rows": ({"X": np.zeros(100)}, ValueError, r"X has shape \(100,\), not \(n_samples, n_features\)"),
    "text rows": ({"X": [["private"]] * 100}, ValueError, r"X holds text; encode it as numbers"),
    "labels": ({"y": np.zeros(99)}, ValueError, r"y has 99 entries and its rows are 100"),
    "canaries": ({"canaries": np.zeros((5, 8))}, TypeError, r"canaries must be None or a tuple \(X, y\)"),
    "wide": ({"canaries": (np.zeros((5, 9)), np.zeros(5))}, ValueError, r"canaries have 9 features"),
    "counted twice": (
        {"canaries": (np.zeros((5, 8)), np.zeros(5)), "n_canaries": 4},
        ValueError,
        r"n_canaries=4 and canaries holds 5 rows",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_sentence(case):
    given, kind, message = BAD[case]
    arguments = {"factory": factory("noisy-gd", MU)} | draw() | given
    with pytest.raises(kind, match=message) as error:
        audit_epsilon(**arguments)
    assert ". " not in str(error.value) and str(error.value).endswith(".")
    assert "private'" not in str(error.value)


def test_fitted_and_shared_estimators_are_refused():
    data = draw()
    shared = factory("noisy-gd", MU)()
    with pytest.raises(ValueError, match="returns the same estimator twice"):
        audit_epsilon(lambda: shared, **data)
    shared.fit(**data)
    with pytest.raises(ValueError, match="returns a fitted estimator"):
        audit_epsilon(lambda: shared, **data)


def test_scores_of_overlapping_canaries_are_standard_normal_and_centred():
    """By simulation from the model that :class:`Evidence` states; two canaries are almost the same."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(5, 6)) * [[3.0], [1.0], [1.0], [0.3], [0.0]]
    directions[2] = directions[1] + 0.05 * rng.normal(size=6)
    gram = directions @ directions.T
    scores, coins = [], rng.integers(2, size=(4000, 5))
    for included in coins:
        released = (included - 0.5) @ directions + rng.normal(size=6)
        scores.append(Evidence(directions @ released, gram).scores())
    scores = np.array(scores)
    np.testing.assert_array_equal(scores[:, 4], 0)  # contributes nothing
    for i in range(4):
        of_one, of_other = scores[coins[:, i] == 1, i], scores[coins[:, i] == 0, i]
        assert of_one.mean() == pytest.approx(-of_other.mean(), abs=0.1)
        assert of_one.std() == pytest.approx(1, abs=0.06)
        # The overlap costs power, and never adds any.
        assert 0 < of_one.mean() - of_other.mean() <= np.sqrt(gram[i, i]) + 0.1
    alone = Evidence(np.array([3.0]), np.array([[4.0]])).scores()
    assert alone == pytest.approx([1.5])


def test_an_array_without_noise_is_left_out(monkeypatch):
    """No row moves an array of sensitivity 0, and nothing is divided by its noise."""
    fix_noise(monkeypatch)
    data = draw()
    canaries = canaries_for(data)
    fitted = fits_of(data, factory("gep", MU))(canaries, np.ones(6, dtype=bool))
    strengths = contribution_lengths(fitted, canaries)
    first = [replace(release, scales=(0.0, release.scales[1])) for release in fitted.releases]
    without = contribution_lengths(replace(fitted, releases=first), canaries)
    assert np.all(np.isfinite(without)) and np.all(without < strengths)


@pytest.mark.parametrize("averaged", [True, False])
def test_an_audit_of_persons_refutes_the_claim_where_rows_are_not_averaged(monkeypatch, averaged):
    """Each canary has ten rows."""
    if not averaged:
        made = Places.__init__

        def summed(self, *arguments):
            made(self, *arguments)
            self.weight = self.taken * 1.0

        monkeypatch.setattr(Places, "__init__", summed)
    data = {**draw(n=400, d=64), "groups": np.arange(400) // 4}

    def make():
        return MixedDPLogisticRegression("noisy-gd", epsilon=1.0, delta=1e-5, n_steps=3)

    result = audit_epsilon(make, **data, n_canaries=100, confidence=0.999, random_state=0)
    assert result.exceeds_claim != averaged and result.n_canaries == 100
