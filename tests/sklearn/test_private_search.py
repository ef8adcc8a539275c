"""PrivateSearchCV: one budget for everything, in the shape of GridSearchCV."""

import math
import os
import re
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from scipy.sparse import csr_array
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPModuleClassifier
from skmixdp.algorithms import AdaMix, ModelMix
from skmixdp.model_selection import PrivateSearchCV, public_cross_val_score
from skmixdp.preprocessing import NoisyScaler, PublicOnly
from skmixdp.privacy import GaussianEvent, PrivacyLedger, epsilon_of_event
from skmixdp.privacy.accounting.selection import TrialLaw
from tests.conftest import failing, heads_of_passes
from tests.private_names import Allowance, dotted_path, loop, make_plan, private_search
from tests.rounding import assert_close

DELTA = 1e-3
GRID = {"n_steps": [2, 5], "algorithm__quantile": [0.5, 0.9]}
HEAD = MixedDPLogisticRegression(AdaMix())


def make(grid=None, head=None, **options):
    defaults = {"epsilon": 2.0, "delta": DELTA, "strategy": "grid"}
    return PrivateSearchCV(head or clone(HEAD), grid or GRID, **(defaults | options))


@pytest.fixture
def search(rows):
    def run(*args, **options):
        fitted = make(*args, **options)
        return fitted.fit(rows.X, rows.y, **rows.public)

    return run


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "l.sqlite").add_dataset("p", epsilon=50, delta=DELTA)


@pytest.fixture
def trials(monkeypatch):
    """What every trial was run with, and what came out."""
    found = []

    def spy(token, number, estimator, rows):
        fit = estimator.get_params()
        done = original(token, number, estimator, rows)
        found.append({"fit": fit, "rows": rows, "score": done[0], "fitted": done[1], "number": number})
        return done

    original = private_search.run_trial
    monkeypatch.setattr(private_search, "run_trial", spy)
    return found


class TestBudget:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"scoring": "public"},
            {"score_share": 0.3},
            {"head": MixedDPLogisticRegression(AdaMix(), neighboring="replace_one")},
            {"head": MixedDPLogisticRegression(AdaMix(), noise="discrete")},
        ],
        ids=["counts", "public", "large counts", "replaced", "discrete"],
    )
    def test_what_was_released_composes_to_the_budget(self, search, trials, options):
        """Composed here from what the fits report and the counts were asked for, by definition."""
        fitted = search(**options)
        reports = [trial["fitted"].privacy_ for trial in trials]
        squares = sum(report.n_steps / report.noise_multiplier**2 for report in reports)
        counts = [trial["rows"].score_multiplier for trial in trials]
        squares += sum(1 / sigma**2 for sigma in counts if sigma is not None)
        noise, neighboring = fitted.privacy_.neighboring, reports[0].neighboring
        event = GaussianEvent(1 / math.sqrt(squares), 1, noise=getattr(fitted.estimator, "noise", "float"))
        spent = epsilon_of_event(event, DELTA, neighboring)
        assert noise == neighboring
        assert spent == pytest.approx(fitted.privacy_.epsilon, rel=1e-6)
        assert 2.0 * (1 - 1e-5) < spent <= 2.0
        assert len(trials) == 4

    def test_the_naive_claim_is_that_of_one_fit(self, search):
        fitted = search()
        report, inner = fitted.privacy_, fitted.best_estimator_.privacy_
        assert inner.epsilon == pytest.approx(report.fit_epsilon, rel=1e-6)
        assert report.fit_epsilon < report.epsilon
        assert any("one fit of a search" in warning for warning in inner.warnings)
        assert report.costs["grid"] == report.epsilon and report.affordable["grid"] == report.fit_epsilon

    def test_the_trials_of_a_random_search_are_as_noisy_as_its_event_says(self, search, trials):
        fitted = search(strategy="random", random_state=3, n_trials=5)
        multipliers = {(trial["rows"].score_multiplier, _multiplier(trial)) for trial in trials}
        (event,) = {1 / math.hypot(1 / of_score, 1 / of_fit) for of_score, of_fit in multipliers}
        assert event == pytest.approx(fitted.privacy_.noise_multiplier, rel=1e-6)
        assert 2.0 * (1 - 1e-5) < fitted.privacy_.epsilon <= 2.0

    def test_auto_takes_what_leaves_more_to_a_fit(self, search):
        for grid in ({"n_steps": [2]}, {"n_steps": list(range(1, 17))}):
            report = search(grid, strategy="auto").privacy_
            assert report.fit_epsilon == max(report.affordable.values())
            assert report.strategy == ("grid" if len(grid["n_steps"]) == 1 else "random")

    def test_a_single_candidate_costs_a_fit_and_its_score(self, search):
        report = search({"n_steps": [3]}, scoring="public").privacy_
        assert report.fit_epsilon == pytest.approx(2.0, rel=1e-6)


def _seen(estimator, X, y):
    """A metric that notes the size of the largest file of joblib while it runs."""
    folder = Path(os.environ["FILES_OF_JOBLIB"])
    largest = max((path.stat().st_size for path in folder.rglob("*.pkl")), default=0)
    (folder / f"{os.getpid()}.seen").write_text(str(largest))
    return 1.0


def _multiplier(trial):
    report = trial["fitted"].privacy_
    return report.noise_multiplier / math.sqrt(report.n_steps)


class TestWhatIsShown:
    def test_the_winner_has_the_highest_noisy_score_and_no_exact_one_is_asked_for(self, search, monkeypatch):
        def noisy(head, X, y, *, noise_multiplier):
            return 0.9 if head.n_steps == 3 else 0.1

        monkeypatch.setattr(MixedDPLogisticRegression, "private_score", noisy)
        monkeypatch.setattr(MixedDPLogisticRegression, "score", failing("an exact score"))
        found = search({"n_steps": [2, 3, 4]}, strategy="grid")
        assert (found.best_index_, found.best_score_) == (1, 0.9)

    def test_a_grid_shows_all_candidates_with_the_scores_that_were_paid_for(self, search, trials):
        fitted = search()
        results = fitted.cv_results_
        assert [trial["score"] for trial in trials] == results["mean_test_score"].tolist()
        assert fitted.best_index_ == np.argmax(results["mean_test_score"])
        assert results["rank_test_score"][fitted.best_index_] == 1
        assert fitted.best_score_ == results["split0_test_score"][fitted.best_index_]
        assert fitted.best_params_ == results["params"][fitted.best_index_]
        assert fitted.best_estimator_ is trials[fitted.best_index_]["fitted"]
        assert results["param_n_steps"].tolist() == [p["n_steps"] for p in results["params"]]
        assert not any("time" in name for name in results)

    def test_a_random_search_shows_the_best_trial_alone(self, search, trials):
        fitted = search(strategy="random", n_trials=8, random_state=4, verbose=1)
        assert len(trials) > 1
        best = max(trials, key=lambda trial: trial["score"])
        assert fitted.best_estimator_ is best["fitted"] and fitted.best_score_ == best["score"]
        assert len(fitted.cv_results_["params"]) == 1 and fitted.best_index_ == 0
        shown = repr(vars(fitted)) + str(fitted.privacy_)
        assert not [trial for trial in trials if trial is not best and repr(trial["score"]) in shown]

    def test_nothing_is_left_of_the_allowance(self, search):
        best = search().best_estimator_
        assert best.ledger is None
        clone(best)

    def test_different_grids_leave_gaps(self, search):
        fitted = search([{"n_steps": [2]}, {"algorithm__quantile": [0.5]}])
        assert fitted.cv_results_["param_n_steps"].mask.tolist() == [False, True]

    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
    def test_attributes_and_methods_are_those_of_grid_search(self, search, rows):
        fitted = search(scoring="public")
        ordinary = GridSearchCV(MixedDPLogisticRegression(AdaMix(), delta=DELTA), GRID, cv=2)
        ordinary.fit(rows.X, rows.y, **rows.public)
        own = {name for name in vars(ordinary) if name.endswith("_") and not name.startswith("_")}
        assert own - {"refit_time_"} <= set(dir(fitted))
        missing = {name for name in ordinary.cv_results_ if name not in fitted.cv_results_}
        assert all("time" in name or name.startswith("split1") for name in missing)
        assert fitted.predict(rows.X).shape == (60,)
        assert fitted.predict_proba(rows.X).shape == fitted.decision_function(rows.X).shape == (60, 3)
        assert_close(np.exp(fitted.predict_log_proba(rows.X)), fitted.predict_proba(rows.X))
        assert fitted.score(rows.X, rows.y) == fitted.best_estimator_.score(rows.X, rows.y)
        assert not hasattr(fitted, "transform")
        assert fitted.classes_.tolist() == [0, 1, 2] and fitted.n_features_in_ == 5
        assert "HTML" not in repr(fitted) and fitted._repr_html_()


class TestScores:
    def test_a_count_of_private_rows(self, search, rows, trials):
        search(score_share=0.9, epsilon=1e6)
        for trial in trials:
            assert trial["score"] == pytest.approx(trial["fitted"].score(rows.X, rows.y), abs=0.05)
            assert len(trial["rows"].public[1]) == 60

    @pytest.mark.parametrize(("scoring", "low", "high"), [("public", 0, 1), ("neg_log_loss", -9, 0)])
    def test_public_rows_that_no_fit_has_seen(self, search, rows, trials, scoring, low, high):
        fitted = search(scoring=scoring, holdout=0.25)
        for trial in trials:
            kept, held_out = trial["rows"].public[0], trial["rows"].scorer.X
            assert len(kept) == 45 == trial["fitted"].privacy_.n_public and len(held_out) == 15
            together = np.unique(np.concatenate([kept, held_out]), axis=0)
            np.testing.assert_array_equal(together, np.unique(rows.X_pub, axis=0))
            assert trial["score"] == trial["rows"].scorer(trial["fitted"]) and low <= trial["score"] <= high
        assert fitted.privacy_.n_held_out == 15 and fitted.privacy_.n_public == 60
        assert low <= fitted.score(rows.X, rows.y) <= high

    def test_a_scorer_that_is_not_finite_loses(self, search):
        scores = iter([math.nan, 0.5, 0.7, math.nan])
        fitted = search(scoring=lambda estimator, X, y: next(scores))
        assert fitted.best_score_ == 0.7 and fitted.cv_results_["rank_test_score"].tolist() == [3, 2, 1, 3]

    def test_regression_by_public_scores(self):
        rng = np.random.default_rng(0)
        X, X_pub = rng.normal(size=(80, 3)), rng.normal(size=(20, 3))
        fitted = make({"n_steps": [2, 4]}, MixedDPRidge(), scoring="public")
        fitted.fit(X, X @ [1, 2, 3], X_pub=X_pub, y_pub=X_pub @ [1, 2, 3])
        assert fitted.privacy_.n_held_out == 4 and fitted.predict(X).shape == (80,)


class TestRandomTrials:
    def test_distributions_are_drawn_anew(self, search, trials):
        for strategy in ("grid", "random"):
            trials.clear()
            space = {"learning_rate": uniform(0.1, 2), "n_steps": [2, 3]}
            search(space, strategy=strategy, n_trials=6, random_state=0)
            drawn = [trial["fit"]["learning_rate"] for trial in trials]
            assert len(set(drawn)) == len(drawn) > 1
            assert strategy == "random" or len(drawn) == 6

    def test_the_number_of_trials_is_drawn_once(self, search, monkeypatch):
        """Whoever draws again after a small number draws from another law than the one that is charged."""
        drawn = []

        def number(law, u):
            drawn.append(1 + 4 * len(drawn))
            return drawn[-1]

        monkeypatch.setattr(TrialLaw, "number", number)
        search(strategy="random")
        assert drawn == [1]


class TestComposition:
    def test_a_pipeline_with_transformed_public_rows(self, routing, rows, trials):
        pipe = Pipeline([("scale", PublicOnly(StandardScaler())), ("clf", HEAD)], transform_input=["X_pub"])
        grid = {"clf__algorithm__quantile": [0.5, 0.9], "scale__transformer__with_std": [True, False]}
        for scoring in ("private", "public"):
            fitted = make(grid, pipe, scoring=scoring).fit(rows.X, rows.y, **rows.public)
            assert fitted.best_estimator_["clf"].ledger is None
            assert fitted.privacy_.epsilon <= 2.0 and fitted.predict(rows.X).shape == (60,)
        kept = trials[0]["rows"].public[0]
        assert_close(trials[0]["fitted"]["scale"].transformer_.mean_, kept.mean(axis=0))

    def test_the_search_as_the_last_step_of_a_pipeline(self, routing, rows):
        pipe = Pipeline([("scale", PublicOnly(StandardScaler())), ("s", make())], transform_input=["X_pub"])
        pipe.fit(rows.X, rows.y, **rows.public)
        assert pipe.predict(rows.X).shape == (60,) and pipe["s"].privacy_.n_public == 60

    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
    def test_inside_cross_validation(self, routing, rows):
        params = rows.public
        assert cross_val_score(make(), rows.X, rows.y, cv=2, params=params).shape == (2,)

    def test_heads_as_candidates(self, search):
        grid = {"clf": [HEAD, MixedDPLogisticRegression("noisy-gd")]}
        with pytest.raises(ValueError, match="only with metadata routing"):
            search(grid, Pipeline([("clf", HEAD)]))  # routing is off

    @pytest.mark.parametrize("scoring", ["private", "public"])
    @pytest.mark.parametrize("strategy", ["grid", "random"])
    @pytest.mark.slow
    def test_two_jobs(self, search, scoring, strategy):
        options = {"scoring": scoring, "strategy": strategy}
        fitted = [search(n_jobs=n, random_state=0, **options) for n in (1, 2)]
        # Heads that share a pass are summed in larger blocks; those of a secret number are not.
        rounding = 1e-6 if strategy == "grid" else 0
        assert_close(*[one.best_estimator_.coef_ for one in fitted], rounding)
        assert fitted[0].best_params_ == fitted[1].best_params_

    @pytest.mark.parametrize("call", ["search", "scores"])
    def test_no_process_gets_its_rows_by_a_file(self, rows, search, monkeypatch, call):
        """Files of joblib can be read by others, and stay if its processes are killed."""
        original, limits = joblib.Parallel.__init__, []

        def spy(self, *args, max_nbytes="1M", **options):
            limits.append(max_nbytes)
            original(self, *args, max_nbytes=max_nbytes, **options)

        monkeypatch.setattr(joblib.Parallel, "__init__", spy)
        if call == "search":
            search(strategy="random")
        else:
            public_cross_val_score(HEAD, *rows, cv=2)
        assert limits and set(limits) == {None}

    @pytest.mark.slow
    def test_the_files_of_joblib_hold_no_rows(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FILES_OF_JOBLIB", str(tmp_path))
        get_reusable_executor().shutdown()  # workers of other tests do not know of the folder
        X, y = np.random.default_rng(0).normal(size=(40_000, 8)), np.arange(40_000) % 3
        head = clone(HEAD).set_params(classes=[0, 1, 2])
        with joblib.parallel_config("loky", temp_folder=str(tmp_path)):
            for mine in (True, False):
                if mine:
                    search = make({"n_steps": [2, 3]}, head, n_jobs=2, scoring=_seen, delta=1e-5)
                    search.fit(X, y, X[:60], y[:60])
                else:  # the twin: by default, joblib writes large arrays to files
                    joblib.Parallel(n_jobs=2)(joblib.delayed(_seen)(None, X, y) for _ in range(2))
                sizes = [int(path.read_text()) for path in tmp_path.glob("*.seen")]
                assert sizes and (max(sizes) < X.nbytes / 2) == mine
                for path in tmp_path.glob("*.seen"):
                    path.unlink()

    def test_several_public_sources(self, rows):
        sources = (rows.X_pub[:25], rows.X_pub[25:]), (rows.y_pub[:25], rows.y_pub[25:])
        fitted = make(scoring="public").fit(rows.X, rows.y, *sources)
        assert fitted.privacy_.n_public == 60


class TestLedger:
    @pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("options", [{}, {"strategy": "random"}, {"scoring": "public"}])
    def test_one_charge_of_the_whole(self, search, ledger, options, n_jobs):
        fitted = search(ledger=ledger, n_jobs=n_jobs, **options)
        (charge,) = ledger.charges()
        assert epsilon_of_event(charge.event, DELTA, "add_or_remove_one") == fitted.privacy_.epsilon
        assert charge.private and "PrivateSearchCV of MixedDPLogisticRegression" in charge.description
        assert fitted.privacy_.dataset == "p" and fitted.privacy_.dataset_spent == charge.spent

    @pytest.mark.parametrize("options", [{}, {"strategy": "random"}])
    def test_the_charge_has_the_relation_of_the_search(self, search, ledger, options):
        """A replaced row costs twice the sensitivity, which a ledger knows by the relation alone."""
        head = MixedDPLogisticRegression(AdaMix(), neighboring="replace_one")
        report = search(head=head, ledger=ledger, **options).privacy_
        (charge,) = ledger.charges()
        assert report.neighboring == "replace_one"
        spent = epsilon_of_event(charge.event, DELTA, "replace_one")
        assert charge.spent == report.dataset_spent == pytest.approx(spent) == pytest.approx(report.epsilon)

    def test_sparse_rows_are_counted_as_dense_ones(self, fit, rows):
        clf = fit({"random_state": 0})
        dense = clf.private_score(rows.X, rows.y, noise_multiplier=1e-6)
        sparse = clf.private_score(csr_array(rows.X), rows.y, noise_multiplier=1e-6)
        assert dense == pytest.approx(clf.score(rows.X, rows.y), abs=1e-6)
        assert sparse == pytest.approx(dense, abs=1e-6)


class TestSharedPasses:
    """Trials of a grid are trained side by side: what is released and paid for stays the same."""

    @pytest.fixture
    def trained(self, monkeypatch):
        """Number of heads in each pass over the rows."""
        return heads_of_passes(monkeypatch)

    @pytest.mark.parametrize("scoring", ["private", "public"])
    def test_a_grid_is_one_training(self, search, trained, trials, tmp_path, scoring):
        together = search(scoring=scoring, random_state=0)
        assert trained[0] == 4
        del trained[:]
        together_scores = [trial["score"] for trial in trials]
        apart = search(scoring=scoring, random_state=0, memory=tmp_path)
        assert set(trained) == {1}
        for one, other in zip(trials[:4], trials[4:], strict=True):
            np.testing.assert_allclose(one["fitted"].coef_, other["fitted"].coef_, rtol=1e-5, atol=1e-6)
            assert one["fitted"].privacy_ == other["fitted"].privacy_
            assert one["fitted"].ledger is None
        assert together_scores == [trial["score"] for trial in trials[4:]]
        assert together.privacy_.epsilon == apart.privacy_.epsilon

    def test_every_fit_asks_its_allowance_before_any_of_them_releases(self, search, monkeypatch):
        asked, charge, release = [], Allowance.charge, loop.release

        def ask(allowance, *args, **kwargs):
            if not allowance.rehearsal:
                asked.append(allowance.mu)
            return charge(allowance, *args, **kwargs)

        def released(rows, queries):
            assert len(asked) == 4
            return release(rows, queries)

        monkeypatch.setattr(Allowance, "charge", ask)
        monkeypatch.setattr(loop, "release", released)
        search()
        assert len(asked) == 4

    def test_a_secret_number_of_trials_is_run_one_by_one(self, search, trained):
        search(strategy="random", n_trials=5, random_state=0)
        assert set(trained) == {1}

    def test_the_fits_of_a_pipeline_are_run_by_themselves(self, rows, trained, routing):
        search = make({"clf__n_steps": [2, 3]}, Pipeline([("clf", HEAD)]))
        search.fit(rows.X, rows.y, **rows.public)
        assert set(trained) == {1}


LEDGER = PrivacyLedger(":memory:").add_dataset("p", epsilon=1, delta=DELTA)
STEPS, SCALES = {"grid": {"n_steps": [2]}}, {"target_scale": [1.0, 2.0]}
OF_MODELMIX, OF_MODULE = (
    {"head": head} for head in (MixedDPLogisticRegression(ModelMix()), ZerothOrderDPModuleClassifier(None))
)
BAD = {
    "epsilon=0 ": {"epsilon": 0},
    "epsilon=None": {"epsilon": None},
    "delta=1 ": {"delta": 1},
    "holdout=1.0 must": {"holdout": 1.0},
    "score_share=0 must": {"score_share": 0},
    "strategy='best' must be one of 'auto'": {"strategy": "best"},
    "n_trials=0.5 must be": {"n_trials": 0.5},
    "memory=3 must be a folder": {"memory": 3},
    "ledger='l' must be": {"ledger": "l"},
    r"ledger=PrivacyLedger\(':memory:'\) must be None or a data set": {"ledger": LEDGER.ledger},
    "random_state=-1 must be None for private noise": {"random_state": -1},
    "ledger of the estimator is set": {"head": clone(HEAD).set_params(ledger=LEDGER)},
    "varies epsilon, which the search sets": {"grid": {"epsilon": [1.0]}},
    "varies noise, which the search sets": {"grid": {"noise": ["discrete"]}},
    "no budget to divide": {"head": clone(HEAD).set_params(epsilon=None, n_steps=2, noise_multiplier=9.0)},
    "cannot all be given": {"grid": {"n_steps": [2], "noise_multiplier": [9.0]}},
    r"param_grid\['n_steps'\]=\[\] is empty": {"grid": {"n_steps": []}},
    "param_grid=3 must be a dict": {"grid": 3},
    "param_grid=.* must be a dict": {"grid": {"algorithm": "adamix"}},
    "Invalid parameter 'depth'": {"grid": {"depth": [1]}},
    "must be a private estimator of this library": {"head": StandardScaler()},
    "noisy__epsilon of the estimator is a budget next to": {
        "head": Pipeline([("noisy", NoisyScaler(bounds=(0, 1))), ("clf", HEAD)]),
        "grid": {"clf__n_steps": [2]},
    },
    "only into full batches .* pass batch_size=None": {"head": clone(HEAD).set_params(batch_size=20)},
    "only into full batches .* other than ModelMix": OF_MODELMIX | STEPS,
    "scoring='private' needs noisy scores, which ZerothOrderDPModuleClassifier does not": OF_MODULE | STEPS,
    "varies target_scale, the unit of private scores": {"head": MixedDPRidge(), "grid": SCALES},
    "scoring=3": {"scoring": 3},
}


@pytest.mark.parametrize("match", BAD)
def test_bad_input_is_refused_in_one_sentence(search, trials, match):
    with pytest.raises((ValueError, TypeError)) as caught:
        search(**BAD[match])
    message = str(caught.value)
    assert re.search(match, message), message
    if "Invalid parameter" not in message and "The 'scoring'" not in message:  # scikit-learn's own
        assert "\n" not in message and message.endswith(".")
    assert trials == []


def test_bad_rows_are_refused_in_one_sentence(rows):
    public = {"scoring": "public"}
    cases = [
        ("needs public rows to score on", public, {"X_pub": None, "y_pub": None}),
        ("y_pub=None must be given too", {}, {"y_pub": None}),
        ("y_pub has 59 labels and X_pub 60 rows", {}, {"y_pub": rows.y_pub[1:]}),
        ("no class has two of them", public, {"X_pub": rows.X_pub[:3], "y_pub": rows.y_pub[:3]}),
        ("features", {}, {"X_pub": rows.X_pub[:, :4]}),
        ("does not accept sample_weight", {}, {"sample_weight": np.ones(60)}),
    ]
    for match, options, given in cases:
        with pytest.raises((ValueError, TypeError), match=match):
            make(**options).fit(**(rows._asdict() | given))


@pytest.mark.parametrize("factor", [2.0, 1 + 1e-6])
def test_a_fit_that_costs_more_than_was_set_aside_is_stopped(search, monkeypatch, factor):
    """Should an estimator ask for more than its share, nothing is released."""

    def generous(*args):
        plan = make_plan(*args)
        event = replace(plan.event, noise_multiplier=plan.event.noise_multiplier / factor)
        return replace(plan, event=event)

    monkeypatch.setattr(dotted_path("planning.make_plan"), generous)
    with pytest.raises(RuntimeError, match="more than was set aside"):
        search()


def test_candidates_of_another_relation_are_refused(rows, routing):
    heads = [HEAD, clone(HEAD).set_params(neighboring="replace_one")]
    search = make({"clf": heads}, Pipeline([("clf", HEAD)]))
    with pytest.raises(ValueError, match="neighboring='replace_one' of a candidate differs"):
        search.fit(rows.X, rows.y, **rows.public)


def test_a_fit_that_asks_no_ledger_is_refused(search, trials, monkeypatch):
    charged = dotted_path("transaction.charge_together")
    monkeypatch.setattr(charged, lambda requests: [None] * len(requests))
    with pytest.raises(RuntimeError, match="without asking its ledger"):
        search({"n_steps": [2]})
    assert trials == []
