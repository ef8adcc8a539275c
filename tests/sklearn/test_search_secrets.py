"""A search tells no more than its guarantee covers: seeds of candidates, and trials that must stay secret."""

import pickle
import re
import warnings
from collections import Counter

import joblib
import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix
from skmixdp.exceptions import NotPrivateWarning
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.privacy import PrivacyLedger
from skmixdp.privacy.accounting.selection import TrialLaw
from tests.private_names import private_search
from tests.secrets import Heard

DELTA = 1e-3
HEAD = MixedDPLogisticRegression(AdaMix(), delta=DELTA)


def seeded(seed=7):
    return clone(HEAD).set_params(random_state=seed)


def run(rows, grid, head=HEAD, **options):
    options = {"epsilon": 2.0, "delta": DELTA, "strategy": "random"} | options
    search = PrivateSearchCV(head, grid, **options)
    return search.fit(rows.X, rows.y, **rows.public)


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:").add_dataset("d", epsilon=10.0, delta=DELTA)


@pytest.fixture
def n_trials(monkeypatch):
    """Sets the secret number of trials."""

    def to(number):
        monkeypatch.setattr(TrialLaw, "number", lambda law, u: number)

    return to


# -- seeds ---------------------------------------------------------------------------------

SEEDED_CANDIDATES = {
    "objects": (Pipeline([("clf", HEAD)]), {"clf": [seeded(7), seeded(8)]}),
    "one object": (Pipeline([("clf", HEAD)]), {"clf": [HEAD, HEAD, seeded()]}),
    "a state": (Pipeline([("clf", HEAD)]), {"clf": [seeded(np.random.RandomState(0)), HEAD]}),
    "a pipeline as a step": (
        Pipeline([("outer", Pipeline([("clf", HEAD)]))]),
        {"outer": [Pipeline([("clf", HEAD)]), Pipeline([("clf", seeded())])]},
    ),
}


@pytest.mark.covering
@pytest.mark.parametrize("strategy", ["grid", "random"])
@pytest.mark.parametrize("case", SEEDED_CANDIDATES)
def test_a_seeded_candidate_is_refused_whatever_is_drawn(routing, rows, n_trials, case, strategy, ledger):
    head, grid = SEEDED_CANDIDATES[case]
    n_trials(1)
    with pytest.raises(ValueError, match=r"^random_state of a candidate is set, .* NOT private\.$"):
        run(rows, grid, head, strategy=strategy, ledger=ledger)
    assert ledger.charges() == []


@pytest.mark.parametrize("strategy", ["grid", "random"])
def test_a_mix_of_seeds_and_none_is_refused(routing, rows, strategy):
    head = Pipeline([("clf", seeded())])
    with pytest.raises(ValueError, match=r"^random_state=None of a candidate differs .* private\.$"):
        run(rows, {"clf": [seeded(8), HEAD]}, head, strategy=strategy)


@pytest.mark.covering
@pytest.mark.parametrize("strategy", ["grid", "random"])
@pytest.mark.parametrize("where", ["search", "estimator", "both", "search and a candidate"])
def test_a_seed_of_all_trials_is_reported_and_recorded(routing, rows, where, strategy):
    head = Pipeline([("clf", seeded() if where in ("estimator", "both") else HEAD)])
    grid = {"clf__n_steps": [2, 3]}
    if where == "search and a candidate":
        grid = {"clf": [seeded(), HEAD]}
    ledger = PrivacyLedger(":memory:").add_dataset("d", epsilon=10.0, delta=DELTA, composition="renyi")
    options = {} if where == "estimator" else {"random_state": 3}
    with pytest.warns(NotPrivateWarning, match="random_state is set") as caught:
        fitted = run(rows, grid, head, strategy=strategy, ledger=ledger, **options)
    assert len(caught) == 1
    assert not fitted.privacy_.private and fitted.privacy_.noise == "seeded"
    assert [charge.private for charge in ledger.charges()] == [False] and not ledger.account.private


def test_a_search_without_seeds_is_private(routing, rows, ledger):
    grid = {"clf": [HEAD, clone(HEAD)]}
    report = run(rows, grid, Pipeline([("clf", HEAD)]), strategy="grid", ledger=ledger).privacy_
    assert report.private and report.noise == "cryptographic" and ledger.charges()[0].private


# -- warnings ------------------------------------------------------------------------------


class Chatty(TransformerMixin, BaseEstimator):
    """Warns, prints its verbose state and logs nothing; which of several it is, its mark says."""

    def __init__(self, mark="", verbose=0, fails=False):
        self.mark = mark
        self.verbose = verbose
        self.fails = fails

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        warnings.warn("said by all", UserWarning, stacklevel=2)
        warnings.warn(f"said by {self.mark}", UserWarning, stacklevel=2)
        if self.verbose:
            print(f"fitting {self.mark}")  # noqa: T201 (what verbose transformers do)
        return self

    def transform(self, X):
        return X


MARKS = [f"mark-{number:03d}" for number in range(12)]


def chatty(**options):
    head = clone(HEAD).set_params(n_steps=2, classes=[0, 1, 2], verbose=1)
    return Pipeline([("chatty", Chatty(verbose=1)), ("clf", head)], verbose=True), {"chatty__mark": MARKS}


def everything(rows, **options):
    """A search, and all that is seen of it from outside, without the winner's own mark."""
    head, grid = chatty()
    with joblib.parallel_config(verbose=50):
        return Heard(lambda: run(rows, grid, head, **options), KeyboardInterrupt)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="one"),
        pytest.param({"n_jobs": 2}, marks=pytest.mark.slow, id="two"),
        pytest.param({"memory": True}, marks=pytest.mark.slow, id="memory"),
    ],
)
def test_a_secret_number_of_trials_leaves_the_same_traces(routing, rows, n_trials, tmp_path, options):
    if "memory" in options:
        options = {"memory": tmp_path / "m"}
    traces = []
    for number in (1, 6):
        n_trials(number)
        state = np.random.get_state()[1].copy()  # noqa: NPY002 (the legacy state is what is watched)
        heard = everything(rows, verbose=1, **options)
        fitted, warned, records = heard.result, heard.warned, heard.records
        np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
        mine = fitted.best_params_["chatty__mark"]
        own = Counter(text for text in warned if "said by" in text)
        assert own == {"said by all": 1, f"said by {mine}": 1}
        assert heard.printed == ""
        shown = repr(vars(fitted)) + repr(fitted.cv_results_)
        shown += str(fitted.privacy_) + fitted.privacy_.to_json()
        for text in (shown, *warned, *records):
            # Some attributes are what the user passed: the grid, with all its marks.
            text = text.replace(repr(MARKS), "").replace(repr(np.array(MARKS)), "")
            assert set(re.findall(r"mark-\d+", text)) <= {mine} or "param_grid" in text
        assert fitted.best_index_ == 0 and len(fitted.cv_results_["params"]) == 1
        assert fitted.best_estimator_.verbose is True and fitted.best_estimator_["clf"].verbose == 1
        assert fitted.best_estimator_["chatty"].verbose == 1
        folder = sorted(path.relative_to(tmp_path).name for path in tmp_path.rglob("*") if path.is_file())
        given = fitted.get_params(deep=False)
        own_state = {name: value for name, value in vars(fitted).items() if name not in given}
        traces.append(
            {
                "warnings": sorted(text.replace(mine, "") for text in warned),
                "records": len(records),
                "in place of a bar": heard.complained,
                "attributes": sorted(own_state),
                "results": {name: len(column) for name, column in fitted.cv_results_.items()},
                "report": sorted(fitted.privacy_.to_dict()),
                "trials": fitted.privacy_.n_trials,
                "files": len(folder),
            }
        )
        pickled = pickle.dumps(own_state)
        assert {mark for mark in MARKS if mark.encode() in pickled} == {mine}
        if not options:
            traces[-1]["bytes"] = len(pickled) // 200  # numbers take a few bytes more or less
    assert traces[0] == {**traces[1], "files": traces[0]["files"]}
    assert traces[0]["files"] <= traces[1]["files"] + 1


def test_threads_keep_their_warnings_apart(routing, rows, n_trials):
    n_trials(8)
    with joblib.parallel_config(backend="threading"):
        for _ in range(3):
            heard = everything(rows, n_jobs=4)
            mine = heard.result.best_params_["chatty__mark"]
            said = Counter(text for text in heard.warned if "said by" in text)
            assert said == {"said by all": 1, f"said by {mine}": 1}


def test_warnings_after_the_fit_are_shown_as_before(routing, rows):
    before = warnings.showwarning, list(warnings.filters)
    head, grid = chatty()
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        run(rows, grid, head, n_trials=3)
    assert (warnings.showwarning, warnings.filters) == before


def test_a_grid_says_each_warning_once_and_before_the_charge(routing, rows, ledger):
    head, _ = chatty()
    grid = {"chatty__mark": MARKS[:3]}
    with warnings.catch_warnings(record=True, action="always") as caught:
        quiet = clone(head).set_params(verbose=False, chatty__verbose=0, clf__verbose=0)
        run(rows, grid, quiet, strategy="grid")
    said = Counter(str(w.message) for w in caught if "said by" in str(w.message))
    assert said == {"said by all": 1, **{f"said by {mark}": 1 for mark in MARKS[:3]}}
    assert {w.filename for w in caught} == {__file__}
    with pytest.raises(UserWarning, match="said by all"):  # an error, by the tests' own filter
        run(rows, grid, head, strategy="grid", ledger=ledger)
    assert ledger.charges() == []


def test_what_all_candidates_say_is_said_before_the_charge(routing, rows, n_trials, ledger):
    n_trials(4)
    head, grid = chatty()
    with pytest.raises(UserWarning, match="said by all"):
        run(rows, grid, head, ledger=ledger)
    assert ledger.charges() == []


def test_a_filter_that_makes_errors_does_not_lose_a_search_that_was_charged(routing, rows):
    head, _ = chatty()
    search = PrivateSearchCV(head, {"chatty__mark": MARKS}, epsilon=2.0, delta=DELTA, strategy="random")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "said by all")
        for aid in ("steps of the pipeline", "the pipeline does not"):  # Chatty is fitted on private rows
            warnings.filterwarnings("ignore", aid)
        with pytest.raises(UserWarning, match="said by mark-"):
            search.fit(rows.X, rows.y, **rows.public)
    assert search.predict(rows.X).shape == (60,)
    assert search.privacy_.leaks == ("Chatty: whatever its fit stores",)


def test_the_attack_by_warnings_that_depend_on_what_was_released():
    """Candidates whose heads are worse than the public one warn of it, at the end of their fits."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 6)) * 3
    y, y_pub = np.arange(300) % 3, np.arange(90) % 3
    X, X_pub = centres[y] + rng.normal(size=(300, 6)), centres[y_pub] + rng.normal(size=(90, 6))
    numbers = []
    grid = {"learning_rate": [1e-3, "auto", 30.0]}
    for seed in range(2):  # the test must not fail by chance
        options = {"epsilon": 0.1, "strategy": "random", "n_trials": 8, "random_state": seed}
        search = PrivateSearchCV(MixedDPLogisticRegression("auto"), grid, **options)
        with warnings.catch_warnings(record=True, action="always") as caught:
            search.fit(X, y, X_pub=X_pub, y_pub=y_pub)
        numbers.append(sum("public rows suffice" in str(w.message) for w in caught))
    assert set(numbers) == {0, 1}


# -- failures ------------------------------------------------------------------------------


@pytest.fixture
def failing(monkeypatch):
    """Trials of some marks fail after the charge."""

    def of(*marks, error=None):
        original = private_search.run_trial

        def trial(token, number, estimator, rows):
            if estimator.get_params().get("n_steps") in marks:
                raise error or FloatingPointError("a secret of mark-007")
            return original(token, number, estimator, rows)

        monkeypatch.setattr(private_search, "run_trial", trial)

    return of


@pytest.mark.parametrize("options", [{}, {"scoring": lambda *args: float("nan")}], ids=["", "no number"])
def test_a_trial_that_fails_loses_and_nothing_tells(rows, n_trials, failing, options):
    """Also to a score that is no number."""
    n_trials(12)
    failing(2)
    with warnings.catch_warnings(record=True, action="always") as caught:
        fitted = run(rows, {"n_steps": [2, 3]}, random_state=5, **options)
    assert fitted.best_params_ == {"n_steps": 3} and len(fitted.cv_results_["params"]) == 1
    assert np.isnan(fitted.best_score_) == bool(options)
    assert options or [w.category for w in caught] == [NotPrivateWarning]


def test_all_failures_are_one_error_that_names_none(rows, n_trials, failing, ledger):
    messages = []
    for number in (1, 5):
        n_trials(number)
        failing(2, 3)
        with pytest.raises(RuntimeError, match="every trial failed") as caught:
            run(rows, {"n_steps": [2, 3]}, ledger=ledger)
        messages.append(str(caught.value))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert len(set(messages)) == 1 and "mark" not in messages[0] and len(ledger.charges()) == 2


def test_an_interruption_is_not_a_failure(rows, failing):
    failing(2, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(rows, {"n_steps": [2]})


def test_a_failure_ends_a_grid(rows, failing):
    failing(3)
    with pytest.raises(ValueError, match="an error that is left out"):
        run(rows, {"n_steps": [2, 3]}, strategy="grid")


@pytest.mark.parametrize("candidates", [[*[0.5] * 30, 7.0], uniform(2, 1)], ids=["listed", "drawn"])
@pytest.mark.parametrize("number", [1, 3])
def test_bad_candidates_are_refused_before_the_charge(rows, n_trials, ledger, number, candidates):
    n_trials(number)
    with pytest.raises(ValueError, match="quantile"):
        run(rows, {"algorithm__quantile": candidates}, ledger=ledger)
    assert ledger.charges() == []
