"""The utility benchmark on a small made-up problem: no data, no network."""

import math

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from benchmarks import elsewhere
from benchmarks.tests.utility.conftest import TINY
from benchmarks.utility import data, measures, run, tables
from benchmarks.utility.data import adult
from benchmarks.utility.methods import ADAPTERS, UnavailableError, hindsight, opacus_head, ppgd
from benchmarks.utility.problems import BOTH, NAMES, PUBLIC, ZEROS, Rows, make_problem
from benchmarks.utility.units import left_over, units
from skmixdp import MixedDPLogisticRegression
from tests.rounding import assert_close
from tests.stand_ins import interpreter


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return data.load(cache=tmp_path_factory.mktemp("cache"), **TINY)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("utility")
    run.main(["--profile", "quick", "--out", str(folder), "--cache", str(folder)])
    return folder


# -- the quick profile ---------------------------------------------------------------------


def test_every_method_of_the_profile_has_its_results(out, config):
    found = run.read_results(out / "results.csv")
    wanted = {name for entry in config["profiles"]["quick"] for name in entry["methods"]}
    assert set(found["method"]) == wanted
    regressions = found["data"] == "tiny regression"
    for measure in ("accuracy", "balanced_accuracy"):
        assert found.loc[~regressions, measure].between(0, 1).all()
        assert found.loc[regressions, measure].isna().all()
    assert found.loc[regressions, "r2"].le(1).all() and found.loc[~regressions, "r2"].isna().all()
    assert not found.duplicated(["data", "start", "shots", "seed", "method", "epsilon", "setting"]).any()


def test_what_makes_no_difference_is_run_once(out):
    found = run.read_results(out / "results.csv")
    assert found.loc[found["method"] == "non-private", "data"].tolist() == ["tiny mixture", "tiny regression"]
    fully = found[found["method"] == "fully private"]
    assert fully["shots"].isna().all() and fully["start"].eq("").all()
    assert len(fully) == fully["seed"].nunique() * fully["epsilon"].nunique()


def test_adamix_is_the_hindsight_with_its_own_step(out):
    """Not so the default, whose checks on private rows are those of ``algorithm="auto"`` alone."""
    found = run.read_results(out / "results.csv")
    keys = ["data", "start", "shots", "seed", "epsilon"]
    own = found[found["method"] == "AdaMix"].set_index(keys)["accuracy"]
    scaled = found[(found["method"] == "AdaMix, best step") & (found["setting"] == "x 1")]
    assert len(scaled) > 0
    pd.testing.assert_series_equal(
        own.loc[pd.MultiIndex.from_frame(scaled[keys])], scaled.set_index(keys)["accuracy"]
    )


def test_the_tables_and_the_figures_are_written(out):
    text = (out / "tables.md").read_text(encoding="utf-8")
    titles = ("AdaMix, Table 1", "Coupling, Table 3", "best step", "no privacy", "CPU seconds")
    of_tests = ("default compared with the best peer: test balanced accuracy", "All methods: test accuracy")
    of_targets = ("default ridge compared with the best peer: test R²", "All methods: test R²")
    assert [title for title in (*titles, *of_tests, *of_targets) if title not in text] == []
    assert "default, best step (best of 7 on the test rows)" in text
    for line_group in text.split("\n\n"):
        lines = [line for line in line_group.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
    pictures = sorted(path.stem for path in out.glob("*.png"))
    assert pictures == ["epsilon_tiny_mixture_public_5", "rows_tiny_mixture", "starts_tiny_mixture"]


def test_a_second_run_goes_on_from_what_is_there(out, tmp_path, monkeypatch):
    whole = (out / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "results.csv").write_text("".join(whole[:-3]), encoding="utf-8")
    fitted = []
    once = run.run_unit
    monkeypatch.setattr(run, "run_unit", lambda *given: fitted.append(given[1]) or once(*given))
    arguments = ["--profile", "quick", "--out", str(tmp_path), "--cache", str(tmp_path)]
    run.main([*arguments, "--stages", "run"])
    assert 1 <= len(fitted) <= 3
    columns = ["method", "seed", "epsilon", "setting", "accuracy"]
    again = run.read_results(tmp_path / "results.csv")[columns]
    pd.testing.assert_frame_equal(again, run.read_results(out / "results.csv")[columns])
    run.main([*arguments, "--stages", "run"])
    assert len(run.read_results(tmp_path / "results.csv")) == len(again) and len(fitted) <= 3


def test_processes_find_what_one_finds(tmp_path, config):
    planned = [
        unit
        for unit in units(config, ["quick"])
        if unit.method in ("only public", "only private") and unit.seed == 0 and unit.start in (None, PUBLIC)
    ]
    for jobs in (1, 2):
        assert run.run(config, planned, tmp_path / f"{jobs}.csv", tmp_path, jobs) == []
    keys = ["method", "shots", "epsilon", "accuracy"]
    one, two = (run.read_results(tmp_path / f"{jobs}.csv")[keys].sort_values(keys) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one.reset_index(drop=True), two.reset_index(drop=True))


def test_the_order_in_which_results_came_does_not_matter(out, config):
    found = run.in_order(run.read_results(out / "results.csv"), config)
    shuffled = run.in_order(found.sample(frac=1, random_state=0), config)
    keys = ["data", "shots", "start", "method", "seed", "epsilon"]
    pd.testing.assert_frame_equal(found[keys].reset_index(drop=True), shuffled[keys].reset_index(drop=True))
    methods = list(config["methods"])
    own = found[(found["data"] == "tiny mixture") & (found["shots"] == 5) & (found["start"] == PUBLIC)]
    own = own["method"].map(methods.index)
    assert own.is_monotonic_increasing


# -- configuration -------------------------------------------------------------------------


def test_every_profile_names_what_there_is_and_the_report_too(config):
    for profile in config["profiles"]:
        assert units(config, [profile])
    report = config["report"]
    figures = [report[figure] for figure in ("figure_1", "figure_2", "figure_4")]
    named = {*report["table_1"], *report["table_3"]}.union(*(figure["methods"] for figure in figures))
    named.update(*report["hindsight"].items(), *report["compared_with"].values(), report["compared_with"])
    named.update(*((group["ours"], *group["methods"]) for group in report["peers"]))
    assert named <= set(config["methods"])
    shown = {panel["data"] for panel in report["figure_1"]["panels"]}
    assert shown | {*report["figure_2"]["data"], *report["figure_4"]["data"]} <= set(config["data"])


def test_a_method_that_is_not_there_is_named(config, tmp_path, capsys):
    broken = {**config, "profiles": {"quick": [{**config["profiles"]["quick"][0], "methods": ["magic"]}]}}
    with pytest.raises(ValueError, match="methods has no 'magic'"):
        units(broken, ["quick"])
    with pytest.raises(SystemExit):
        run.main(["--profile", "slow", "--out", str(tmp_path)])
    assert "'slow'" in capsys.readouterr().err


def test_only_missing_budgets_are_left_over(config):
    unit = next(unit for unit in units(config, ["quick"]) if unit.method == "AdaMix")
    assert unit.epsilons == (1.0, 3.0)
    done = {tuple(unit.key(1.0).values())}
    assert left_over(unit, done).epsilons == (3.0,)
    assert left_over(unit, done | {tuple(unit.key(3.0).values())}) is None
    public = next(unit for unit in units(config, ["quick"]) if unit.method == "only public")
    assert left_over(public, set()) == public
    assert left_over(public, {tuple(public.key(None).values())}) is None


def test_what_is_not_to_be_had_is_said(config, tmp_path, monkeypatch):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    unit = next(unit for unit in units(config, ["default"]) if unit.data == "BANKING77")
    (reason,) = run.run(config, [unit], tmp_path / "results.csv", tmp_path, 1)
    assert "BANKING77" in reason and "SKMIXDP_DATA" in reason
    monkeypatch.setattr(opacus_head.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match="bench"):
        opacus_head.fit(None, [1.0], learning_rates=[1.0], n_epochs=1, batch_share=0.1)


def test_no_result_at_all_is_said(config, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path / "nowhere"))
    alone = {"data": ["Adult"], "methods": ["only public"], "starts": [PUBLIC]}
    entry = {**config["profiles"]["default"][0], **alone}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**config, "profiles": {"default": [entry]}}))
    with pytest.raises(SystemExit):
        run.main(["--config", str(path), "--out", str(tmp_path)])
    said = capsys.readouterr()
    assert said.out.count("Adult is left out") == 1 and "no results" in said.err


# -- problems ------------------------------------------------------------------------------


def test_public_rows_are_the_first_of_each_class_of_the_permutation(rows):
    problem = make_problem(rows, 2, seed=3)
    order = np.random.default_rng(3).permutation(len(rows.X))
    first = [order[rows.y[order] == label][:2] for label in range(3)]
    np.testing.assert_array_equal(problem.X_pub, rows.X[np.concatenate(first)])
    assert len(problem.X) == len(rows.X) - 6
    together = np.concatenate([problem.X, problem.X_pub])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(rows.X, axis=0))
    assert make_problem(rows, 0, seed=3).X_pub.shape == (0, 8)


def test_starts_are_the_classifiers(rows):
    assert [make_problem(rows, 2, 0, start).init for start in (PUBLIC, ZEROS)] == ["public", "zeros"]
    assert [make_problem(rows, 2, 0, start).init.few_shot for start in (NAMES, BOTH)] == [False, True]
    with pytest.raises(ValueError, match="'random'"):
        make_problem(rows, 2, 0, "random")
    nameless = data.digits.load(None)
    with pytest.raises(ValueError, match="without class names"):
        make_problem(nameless, 2, 0, NAMES)


def test_adult_is_bounded_by_what_is_declared():
    numbers = {"age": [17, 100], "education-num": [1, 16], "hours-per-week": [50, 99]}
    amounts = {"capital-gain": [0, 99_999], "capital-loss": [0, 10**6]}
    missing = {name: ["?", "?"] for name in adult.CATEGORIES if name != "education-num"}
    table = pd.DataFrame({**numbers, **amounts, **missing, "sex": ["Male", " Female"]})
    found = adult.features(table)
    assert found.min() == 0 and found.max() == 1
    assert_close(found[0, :5], [0, 0, 0.5, 0, 0])
    assert_close(found[1, :5], 1)
    # One level of education and one sex; what is missing is nowhere.
    np.testing.assert_array_equal(found[:, 5:].sum(axis=1), 2)
    # A row's features do not depend on the others.
    np.testing.assert_array_equal(adult.features(table[1:]), found[1:])


# -- methods -------------------------------------------------------------------------------


def test_only_public_is_the_start_of_the_private_fit(rows):
    problem = make_problem(rows, 5, 0)
    (score,) = ADAPTERS["only_public"].fit(problem, ())
    still = {"n_steps": 1, "noise_multiplier": 1e-6, "learning_rate": 1e-9, "random_state": 0}
    clf = MixedDPLogisticRegression("noisy-gd", epsilon=None, **still)
    clf.fit(problem.X, problem.y, X_pub=problem.X_pub, y_pub=problem.y_pub)
    assert score.epsilon is None and score.measures.accuracy == problem.measures(clf).accuracy
    (chance,) = ADAPTERS["only_public"].fit(make_problem(rows, 5, 0, ZEROS), ())
    assert chance.measures.accuracy == pytest.approx(1 / 3)


def test_rescaled_steps_are_those_of_a_given_learning_rate(rows):
    problem = make_problem(rows, 5, 0)

    def coefficients(algorithm, rate):
        clf = MixedDPLogisticRegression(algorithm, n_steps=10, learning_rate=rate, random_state=0)
        return clf.fit(problem.X, problem.y, X_pub=problem.X_pub, y_pub=problem.y_pub).coef_

    scaled = hindsight.Rescaled(hindsight.BY_NAME["adamix"](), 4.0)
    assert_close(coefficients(scaled, 0.5), coefficients("adamix", 2.0))
    assert not np.allclose(coefficients(scaled, 0.5), coefficients("adamix", 0.5))


def test_full_privacy_in_hindsight_is_full_privacy_at_other_steps(rows):
    problem = make_problem(rows, 0, 0)
    (plain,) = ADAPTERS["fully_private"].fit(problem, [1.0])
    scaled = ADAPTERS["fully_private_hindsight"].fit(problem, [1.0], algorithm="noisy-gd")
    assert {score.setting: score.measures.accuracy for score in scaled}["x 1"] == plain.measures.accuracy
    assert len(scaled) == 7 and len({score.measures.accuracy for score in scaled}) > 1


def test_ppgd_stays_near_the_private_head_and_clips_at_the_mean_public_gradient(rows, monkeypatch):
    problem = make_problem(rows, 5, 0)

    def head(strength):
        monkeypatch.setattr(ppgd, "_STRENGTHS", (strength,))
        clf = MixedDPLogisticRegression(ppgd.PPGD(), epsilon=3.0, init="zeros", random_state=0)
        return clf.fit(problem.X, problem.y, X_pub=problem.X_pub, y_pub=problem.y_pub)

    private, near, far = head(1e9), head(1e3), head(1e-3)
    distances = [np.linalg.norm(clf.coef_ - private.coef_) for clf in (near, far)]
    assert 0 < distances[0] < distances[1]
    assert private.privacy_.epsilon == pytest.approx(3.0)


def test_ppgd_asks_its_public_rows_how_near(rows):
    problem = make_problem(rows, 5, 0)
    scores = ADAPTERS["ppgd"].fit(problem, [1.0, 3.0])
    assert [score.epsilon for score in scores] == [1.0, 3.0]
    assert min(score.measures.accuracy for score in scores) > 0.7


def test_private_rows_alone_are_all_or_the_few(rows):
    none, some = make_problem(rows, 0, 0), make_problem(rows, 5, 0)
    settings = {"epsilon": 3.0, "classes": range(3), "init": "zeros", "random_state": 0}
    private = MixedDPLogisticRegression("noisy-gd", **settings)
    for name, problem, X, y in (
        ("fully_private", none, none.X, none.y),
        ("few_private", some, some.X_pub, some.y_pub),
    ):
        (score,) = ADAPTERS[name].fit(problem, [3.0])
        assert score.measures == problem.measures(private.fit(X, y))


def test_an_opacus_head_is_trained(rows):
    pytest.importorskip("opacus", reason="needs the extra `bench`")
    options = {"learning_rates": [0.5, 2.0], "n_epochs": 2, "batch_share": 0.2}
    scores = ADAPTERS["opacus"].fit(make_problem(rows, 5, 0), [3.0], **options)
    assert [score.setting for score in scores] == ["learning rate 0.5", "learning rate 2"]
    assert max(score.measures.accuracy for score in scores) > 0.7


def test_diffprivlib_runs_in_an_environment_of_its_own(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(elsewhere, "PYTHON", tmp_path / "python")
    with pytest.raises(UnavailableError, match="make diffprivlib"):
        ADAPTERS["diffprivlib"].fit(make_problem(rows, 0, 0), [1.0])
    # A stand-in for that library, which is enough for what travels there and back.
    interpreter(
        tmp_path,
        "diffprivlib.models",
        "from sklearn.linear_model import LogisticRegression as Plain\n"
        "def LogisticRegression(*, epsilon, data_norm, random_state):\n"
        "    assert data_norm == 1 and random_state == 0\n"
        "    return Plain(C=epsilon)\n",
    )
    problem = make_problem(rows, 0, 0)
    found = ADAPTERS["diffprivlib"].fit(problem, [1e-6, 10.0])
    assert [score.epsilon for score in found] == [1e-6, 10.0]
    assert found[0].measures.accuracy < found[1].measures.accuracy
    plain = LogisticRegression(C=10.0).fit(normalize(problem.X), problem.y)
    assert found[1].measures.accuracy == pytest.approx(plain.score(normalize(problem.X_test), problem.y_test))


#: A stand-in that checks what arrives, and predicts by its rate.
BOOSTING = """
import numpy as np

class DPExplainableBoostingClassifier:
    def __init__(self, **told):
        assert told['feature_types'] == ['continuous', 'continuous', 'nominal']
        assert sorted(told['privacy_bounds']) == [0, 1] and told['delta'] == 1e-5
        self.told = told

    def fit(self, X, y):
        assert set(X[:, 2]) <= set('0123') and len(X) == len(y) == 60
        return self

    def predict(self, X):
        assert (self.told['privacy_target_min'], self.told['privacy_target_max']) == (0.0, 10.0)
        return np.full(len(X), self.told.get('learning_rate', 0.25))

    def predict_proba(self, X):
        p = np.full(len(X), self.told.get('learning_rate', 0.25) * self.told['epsilon'])
        return np.stack([1 - p, p], axis=1)

DPExplainableBoostingRegressor = DPExplainableBoostingClassifier
"""


@pytest.mark.parametrize("bounds", [None, (0.0, 10.0)])
def test_explainable_boosting_runs_in_an_environment_of_its_own(bounds, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(90, 2)), np.eye(3)[rng.integers(0, 3, 90)]])
    X[5, 2:] = 0  # a text that is missing
    y = (X[:, 0] > 0).astype(float)
    table = Rows(X, y, np.empty((0, 5)), np.empty(0), bounds=bounds, n_test=30, texts=((2, 3, 4),))
    problem = make_problem(table, 0, 0)
    options = {"rounds_and_rates": [[30, 0.5]], "bins": [8], "leaves": [3]}
    monkeypatch.setattr(elsewhere, "INTERPRET", tmp_path / "python")
    with pytest.raises(UnavailableError, match="make interpret"):
        ADAPTERS["dp_ebm"].fit(problem, [1.0], **options)
    interpreter(tmp_path, "interpret.privacy", BOOSTING)
    found = ADAPTERS["dp_ebm"].fit(problem, [1.0, 1.5], **options)
    tried = [(epsilon, setting) for epsilon in (1.0, 1.5) for setting in ("defaults", "max_roun")]
    assert [(score.epsilon, score.setting[:8]) for score in found] == tried
    if bounds is None:
        assert found[-1].measures.accuracy == problem.y_test.mean()
        assert found[0].measures.accuracy == 1 - problem.y_test.mean()
    else:
        assert found[0].measures == problem.measures_of(np.full(30, 0.25))


@pytest.mark.parametrize("name", ["boosting", "splines"])
def test_models_without_privacy_bend(name):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(400, 2)), rng.integers(0, 2, 400)])
    none = np.empty((0, 3)), np.empty(0)
    classes = Rows(X, (np.abs(X[:, 0]) > 0.7).astype(int), *none, n_test=100)
    (score,) = ADAPTERS[name].fit(make_problem(classes, 0, 0), [])
    assert score.measures.accuracy > 0.9
    numbers = Rows(X, np.abs(X[:, 0]), *none, bounds=(0, 5), n_test=100)
    (score,) = ADAPTERS[name].fit(make_problem(numbers, 0, 0), [])
    assert score.measures.r2 > 0.9


# -- measures ----------------------------------------------------------------------------


def test_intervals_are_students():
    found = measures.Interval.of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert_close([found.mean, found.half], [3, 2.7764451 * np.sqrt(2.5 / 5)], 1e-8)
    assert f"{found}" == "3.0 ± 2.0" and f"{found:+.1f}" == "+3.0 ± 2.0"
    assert f"{measures.Interval.of([7.25])}" == "7.2"


def test_the_boost_is_that_of_the_papers():
    # Coupling, Table 3, CIFAR10 and vit-small with 20% public rows.
    assert measures.performance_boost(97.84, 98.40, max(97.29, 97.11)) == pytest.approx(1.11 / 0.56)
    assert measures.performance_boost(90.0, 95.0, 90.0) == 1.0
    assert measures.performance_boost(95.0, 95.0, 90.0) == math.inf


def test_the_excess_error_is_relative():
    # AdaMix, Table 1, MIT-67 at epsilon 1.
    assert measures.excess_error(1 - 0.4046, 1 - 0.2517) == pytest.approx(0.6075, abs=1e-4)


def constructed(lines):
    """Results of single fits: (method, seed, setting, accuracy)."""
    table = pd.DataFrame(lines, columns=["method", "seed", "setting", "accuracy"])
    return table.assign(data="d", start=PUBLIC, shots=5.0, epsilon=1.0, seconds=0.0, note="")


def test_the_best_setting_is_that_of_the_mean_over_the_seeds():
    table = constructed([("m", 0, "a", 0.9), ("m", 1, "a", 0.1), ("m", 0, "b", 0.6), ("m", 1, "b", 0.6)])
    best = measures.at_best_setting(table)
    assert best["setting"].unique().tolist() == ["b"]
    assert measures.label(best, "m") == "m (best of 2 on the test rows)"


def test_differences_are_paired_by_seed():
    lines = [("ours", seed, "", 0.80 + 0.05 * seed) for seed in range(4)]
    lines += [("theirs", seed, "x 2", 0.81 + 0.05 * seed) for seed in range(3)]
    table = measures.at_best_setting(constructed(lines))
    line = tables.hindsight_table(table, "ours", "theirs").splitlines()[-1]
    assert "| 3 | 85.0 ± 12.4 | 86.0 ± 12.4 | x 2 | -1.0 ± 0.0 |" in line
    line = tables.difference_table(table, "ours", ["theirs", "nobody"]).splitlines()[-1]
    assert line.endswith("| 1 | 87.5 ± 10.3 | -1.0 ± 0.0 | - |")


def test_keys_that_make_no_difference_match_any():
    table = constructed([("m", 0, "", 0.9), ("limit", math.nan, "", 0.95)])
    table.loc[1, ["start", "shots", "epsilon"]] = ["", math.nan, math.nan]
    assert len(measures.select(table, data="d", start=BOTH, shots=2, epsilon=3.0)) == 1
    assert measures.accuracies(table, shots=5, method="limit", epsilon=1.0).tolist() == [95.0]


def test_each_measure_has_its_own_best_setting_and_its_own_best_peer():
    lines = [("a", 0, "x", 0.9), ("a", 0, "y", 0.8), ("b", 0, "", 0.85), ("ours", 0, "", 0.88)]
    table = constructed(lines).assign(balanced_accuracy=[0.5, 0.7, 0.6, 0.72], r2=math.nan)
    plain, balanced = (measures.at_best_setting(table, name) for name in ("accuracy", "balanced_accuracy"))
    assert plain["setting"].tolist() == ["x", "", ""] and balanced["setting"].tolist() == ["y", "", ""]
    line = tables.peer_table(plain, "ours", ["a", "b"], "accuracy").splitlines()[-1]
    assert line == "| d | 5 | 1 | 1 | a | x | 90.0 | 88.0 | -2.0 |"
    line = tables.peer_table(balanced, "ours", ["a", "b"], "balanced_accuracy").splitlines()[-1]
    assert line == "| d | 5 | 1 | 1 | a | y | 70.0 | 72.0 | +2.0 |"
    assert tables.peer_table(measures.at_best_setting(table, "r2"), "ours", ["a", "b"], "r2") == ""
    assert measures.best_of(plain, ["nobody"], data="d")[0] == ""


def test_results_with_other_columns_are_not_added_to(config, tmp_path, capsys):
    (tmp_path / "results.csv").write_text("data,accuracy\nd,0.5\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        run.main(["--profile", "quick", "--out", str(tmp_path), "--cache", str(tmp_path)])
    assert "other columns; delete it" in capsys.readouterr().err
    assert (tmp_path / "results.csv").read_text(encoding="utf-8") == "data,accuracy\nd,0.5\n"


def test_some_methods_of_a_profile_can_be_run_alone(config):
    chosen = units(config, ["peers"], ["DP-LS"])
    assert {unit.method for unit in chosen} == {"DP-LS"}
    assert [unit.seed for unit in chosen] == sorted(unit.seed for unit in chosen)
    with pytest.raises(ValueError, match="peers has no method 'AdaSSP'"):
        units(config, ["peers"], ["AdaSSP"])


def test_profiles_share_what_both_ask_for(config):
    both = units(config, ["default", "peers"])
    assert len(set(map(str, both))) == len({(u.data, u.method, u.start, u.shots, u.seed) for u in both})
    wanted = ("digits", "default", 5, 0, PUBLIC)
    (one,) = (u for u in both if (u.data, u.method, u.shots, u.seed, u.start) == wanted)
    assert sorted(one.epsilons) == [0.1, 0.5, 1, 2, 3, 8]


def test_balanced_accuracy_weights_classes_alike(rows):
    problem = make_problem(rows, 0, 0)
    guessed = np.where(problem.y_test == 2, 0, problem.y_test)
    found = problem.measures_of(guessed)
    assert found.accuracy == np.mean(problem.y_test != 2)
    assert found.balanced_accuracy == pytest.approx(2 / 3) and math.isnan(found.r2)
