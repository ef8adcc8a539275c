"""Evaluations of groups of rows: metrics of each, what is refused, and what one row moves."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from skmixdp.model_selection import GroupedEvaluation, private_evaluation
from tests.given_models import GivenPredictions, GivenScores
from tests.private_names import Parts
from tests.replay import check_neighbours, compare, seen

pytestmark = pytest.mark.filterwarnings(
    "ignore:delta:UserWarning", "ignore::skmixdp.exceptions.NotPrivateWarning"
)

N = 6000
NAMES = ["a", "b", "c"]


def problem(seed=0, n=N):
    """Scores, labels and groups; scores of group b say less."""
    rng = np.random.default_rng(seed)
    group = rng.choice([*NAMES, "rare"], n, p=[0.6, 0.3, 0.099, 0.001])
    logits = rng.normal(size=n) * 2
    y = (rng.random(n) < expit(np.where(group == "b", 0.2, 1.0) * logits)).astype(int)
    p = expit(logits)
    return np.column_stack([1 - p, p]), y, group


def evaluated(P, y, group, **options):
    options = {"epsilon": 2.0, "by": group, "by_values": NAMES} | options
    return private_evaluation(GivenScores(2), P, y, **options)


def test_intervals_cover_the_metrics_of_each_group():
    """Of 60 intervals, fewer than 48 is rarer than 1e-5 at coverage .95."""
    inside = 0
    for seed in range(20):
        P, y, group = problem(seed)
        found = evaluated(P, y, group, random_state=seed)
        for name in NAMES:
            rows = group == name
            right = float(((P[rows, 1] > 0.5) == y[rows]).mean())
            accuracy = found[name].with_intervals(sampling=False).at(0.5)["accuracy"]
            inside += accuracy.low <= right <= accuracy.high
    assert inside >= 48


def test_groups_differ_and_rare_ones_are_unknown():
    P, y, group = problem()
    found = evaluated(P, y, group, random_state=0)
    assert isinstance(found, GroupedEvaluation) and list(found) == [*NAMES, "other"] and len(found) == 4
    assert found["a"].roc_auc().value > found["b"].roc_auc().high
    assert found.unknown == ("other",)
    assert "the names of the groups (declared)" in found.privacy.treated_as_public
    table = found.summary()
    assert table.loc["other", "ROC AUC"].isna().all() and "unknown" in str(found)
    low, value, high = (table.loc["a", ("rows", end)] for end in ("low", "value", "high"))
    assert low < (group == "a").sum() < high and low < value < high
    assert 0.4 < table.loc["a", ("selection rate at 0.5", "value")] < 0.6
    assert "about" in str(found["a"])
    mpl.use("agg")
    assert len(found.plot("ROC AUC").ax_.get_yticks()) == 4
    with pytest.raises(ValueError, match="kind='none' does not suit"):
        found.plot("none")


def test_one_row_moves_one_cell_of_one_group(monkeypatch):
    """Whatever group a row claims to have, and whatever it holds."""
    P, y, group = problem(n=300)
    paths = []
    for odd in ("a", "never declared", None, 5, float("nan"), "x" * 1000):
        other = group.astype(object)
        other[0] = odd
        Q, z = P.copy(), y.copy()
        Q[0], z[0] = [0.1, 0.9], 1
        paths.append((Q, z, other))
    one = seen(monkeypatch, lambda calls: evaluated(P, y, group.astype(object)))
    assert [release.sensitivity for release in one.releases] == pytest.approx([1.0], abs=1e-9)
    for path in paths:
        compare(one, seen(monkeypatch, lambda calls, path=path: evaluated(*path), one), 0)


@pytest.mark.parametrize("persons", [None, np.arange(1000) // 2])
@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_no_exact_number_of_rows_of_a_group_is_seen(monkeypatch, bounds, persons):
    """Groups of 1 to 40 rows, known or not by their noisy numbers, and entirely other groups."""
    P, y, _ = problem(n=1000)
    names = [str(number) for number in range(41)]
    sizes = np.repeat(np.arange(41), np.arange(41))
    group = np.r_[sizes, np.full(1000 - len(sizes), 40)].astype(str)
    model = GivenScores(2) if bounds is None else GivenPredictions()

    def path(by):
        def run(calls):
            X = P if bounds is None else P[:, 1:]
            options = {"by": by, "by_values": names, "groups": persons, "epsilon": 8.0}
            found = private_evaluation(model, X, y, target_bounds=bounds, **options)
            return found, str(found), found.summary().to_numpy()

        return run

    one = check_neighbours(monkeypatch, path(group), path(group[::-1]), 0, math.inf, each_row=False)
    unknown = [name for name in one.facts if name.startswith("outcome[0].unknown[")]
    assert 0 < len(unknown) < 41
    alike = (np.arange(1000) % 41).astype(str)
    for each in (group, alike):
        check_neighbours(monkeypatch, path(each), path(np.full(1000, "40")), 0, math.inf, each_row=False)


@pytest.mark.parametrize("declared", [[0, 1, 2], ["0", "1", "2"], [0.0, np.int8(1), "2.0"]])
@pytest.mark.parametrize(
    "odd", [0.5, True, "x", None, 2**70, pd.NaT, b"1", [1], pd.Timestamp(0), "\ud800", np.float32(0.1)]
)
def test_an_odd_group_leaves_all_others_where_they_are(odd, declared):
    """Whatever type it gives the column: objects, or texts as in a file."""
    cells = [i % 3 for i in range(20)]
    expected = Parts.of(np.empty((20, 1)), cells, declared).codes
    assert expected.tolist() == cells
    columns = [[*cells, odd], pd.Series([*cells, odd], dtype=object)]
    columns.append(pd.Series([*map(str, cells), str(odd)], dtype=object))
    if isinstance(odd, bytes):
        columns.append(np.array([*cells, odd]))
    if isinstance(odd, float | bool):
        columns += [np.array([*cells, odd]), pd.Series([*cells, odd]).astype("Float64")]
    for column in columns:
        assert np.array_equal(Parts.of(np.empty((21, 1)), column, declared).codes[:20], expected)


def test_truth_values_are_the_same_group_however_they_are_spelt():
    for column in ([True, False], np.array([1, 0]), ["True", "false"], pd.array([True, False]), ["1", "0.0"]):
        assert Parts.of(np.empty((2, 1)), column, [True, False]).codes.tolist() == [0, 1]


def test_persons_in_several_groups_add_their_shares():
    """Two rows in two groups: half a person in each."""
    P, y, _ = problem(n=4000)
    group, groups = np.tile(["a", "b"], 2000), np.repeat(np.arange(2000), 2)
    found = evaluated(P, y, group, groups=groups, epsilon=1e5)
    assert found["a"].cells.n_rows == pytest.approx(1000, abs=1)
    assert found.privacy.unit == "person" and "persons" in str(found["a"])


def test_a_column_a_regression_and_several_classes():
    P, y, group = problem()
    frame = pd.DataFrame({"predicted": P[:, 1], "group": group})

    class OfColumn(GivenPredictions):
        def predict(self, X):
            return X["predicted"].to_numpy()

    found = private_evaluation(
        OfColumn(), frame, y, epsilon=2.0, by="group", by_values=NAMES, target_bounds=(0, 1)
    )
    assert (
        found["b"].summary()["mean absolute error"].value > found["a"].summary()["mean absolute error"].value
    )
    assert not any(name.startswith("share within") for name in found.summary().columns.get_level_values(0))
    Q = np.column_stack([P[:, 0], P[:, 1] / 2, P[:, 1] / 2])
    for layout in ("top", "one_vs_rest"):
        several = private_evaluation(
            GivenScores(3), Q, y, epsilon=2.0, by=group, by_values=NAMES, layout=layout
        )
        assert len(several.summary()) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by_values": None}, "by needs by_values"),
        ({"by": None}, "by_values needs by"),
        ({"by_values": []}, r"by_values=\[\]"),
        ({"by_values": ["a", "a"]}, "different groups"),
        ({"by_values": [1, "1.0"]}, "different groups"),
        ({"by_values": ["a", None]}, "none missing"),
        ({"by_values": ["other"]}, "'other'"),
        ({"by_values": "abc"}, "by_values='abc'"),
        ({"by": ["a"]}, r"by has shape \(1,\)"),
        ({"by": "group"}, "by='group' is no column"),
    ],
)
def test_bad_groups_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        evaluated(*problem(n=100), **options)


@pytest.mark.parametrize(("spread", "share"), [(0.5, 0.5), (0.25, 0.5), (0.5, 0.1)])
def test_areas_of_narrow_scores_are_covered(spread, share):
    """Two groups have 16 cells, of which scores fill few. 40 of 48 intervals is rarer than 1e-4 at .95."""
    rng = np.random.default_rng(0)
    start = np.log(share / (1 - share))
    s = start + spread * rng.normal(size=500_000)
    true = roc_auc_score(rng.random(len(s)) < expit(s), s)
    inside = 0
    for seed in range(24):
        rng = np.random.default_rng([seed, 1])
        s = start + spread * rng.normal(size=20_000)
        y, by = (rng.random(len(s)) < expit(s)).astype(int), rng.integers(0, 2, len(s))
        scores = np.column_stack([expit(-s), expit(s)])
        found = private_evaluation(GivenScores(2), scores, y, epsilon=1.0, by=by, by_values=[0, 1])
        areas = [found[group].roc_auc() for group in (0, 1)]
        inside += sum(area.low < true < area.high for area in areas)
    assert inside >= 41


def test_groups_are_compared_by_differences_and_ratios():
    """Of 60 intervals, fewer than 50 is rarer than 1e-4 at coverage .95."""
    P, y, group = problem(99, 400_000)
    true = {name: y[group == name].mean() for name in NAMES}
    inside = 0
    for seed in range(15):
        P, y, group = problem(seed)
        found = evaluated(P, y, group, random_state=seed)
        for ratio in (False, True):
            table = found.compare("share of class 1", "a", ratio=ratio)
            for name in ("b", "c"):
                wanted = true[name] / true["a"] if ratio else true[name] - true["a"]
                inside += table["low"][name] < wanted < table["high"][name]
    assert inside >= 50
    text = str(found)
    assert "with intervals" in text and " to " in text and "unknown" in text
    assert np.isnan(found.compare("share of class 1")["value"]["other"])
    for arguments, words in ((("speed",), "metric='speed'"), (("ROC AUC", "z"), "'z' is no group")):
        with pytest.raises(ValueError, match=words):
            found.compare(*arguments)


def test_two_columns_make_groups_of_pairs():
    P, y, group = problem()
    sex = np.random.default_rng(5).choice(["f", "m", "x"], N, p=[0.5, 0.49, 0.01])
    frame = pd.DataFrame({"group": group, "sex": sex, "score": P[:, 1]})
    options = {"epsilon": 50.0, "by": ["group", "sex"], "by_values": [["a", "b"], ["f", "m"]]}
    found = private_evaluation(OfFrame(), frame, y, **options)
    assert list(found) == [("a", "f"), ("a", "m"), ("b", "f"), ("b", "m"), "other"]
    for pair in list(found)[:-1]:
        n_rows = int(((group == pair[0]) & (sex == pair[1])).sum())
        assert abs(found[pair].cells.n_rows - n_rows) < 6 * found[pair].cells.total_scale
    assert "a, f" in str(found) and list(found.summary().index) == list(found)
    assert len(found.compare("ROC AUC", ("a", "m"))) == 4
    with pytest.raises(ValueError, match="must be two lists"):
        private_evaluation(OfFrame(), frame, y, **{**options, "by_values": ["a", "b", "c"]})


class OfFrame(GivenScores):
    """A classifier whose probability is a column."""

    def predict_proba(self, X):
        p = X["score"].to_numpy(float)
        return np.column_stack([1 - p, p])
