import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from examples import quickstart
from skmixdp import MixedDPLogisticRegression
from tests.rounding import assert_close


def small_search(estimator, grid, cv):
    """What scikit-learn chooses without privacy is not looked at here, and takes longer than all else."""
    return GridSearchCV(estimator, {"C": grid["C"][::4]}, cv=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quickstart, "GridSearchCV", small_search)
        quickstart.main(["--out", str(out), "--splits", "2", "--draws", "1"])
    return out


def test_it_writes_a_tidy_table_with_one_row_per_fit(finished):
    table = pd.read_csv(finished / "quickstart.csv")
    assert list(table.columns) == [
        "method",
        "epsilon",
        "delta",
        "split",
        "draw",
        "n_steps",
        "noise_multiplier",
        "accuracy",
    ]
    assert list(table["method"].unique()) == list(quickstart.METHODS)
    assert len(table) == 2 * (2 + 4 * 3)
    assert table["accuracy"].between(0.5, 1).all()
    without_noise = table["method"].isin([quickstart.ONLY_PUBLIC, quickstart.NON_PRIVATE])
    assert table.loc[without_noise, "epsilon"].isna().all()
    assert set(table.loc[~without_noise, "epsilon"]) == {0.5, 1, 3}


def test_it_writes_the_tables_and_the_picture(finished):
    text = (finished / "quickstart.md").read_text(encoding="utf-8")
    assert text.count("\n| Default ") == 2
    assert all(f"| {method} " in text for method in quickstart.METHODS)
    assert (finished / "quickstart.png").read_bytes().startswith(b"\x89PNG")


def test_it_prints_the_tables_a_report_and_where_the_files_are(tmp_path, capsys, monkeypatch):
    table = constructed({"Default": (0.9, 0.91)})
    monkeypatch.setattr(quickstart, "run", lambda splits, draws: (table, "the report"))
    quickstart.main(["--out", str(tmp_path / "new")])
    printed = capsys.readouterr().out
    assert quickstart.summary(table) in printed
    assert "the report" in printed
    assert all(str(path) in printed for path in (tmp_path / "new").iterdir())


@pytest.mark.parametrize("options", [["--splits", "1"], ["--draws", "0"]])
def test_too_few_fits_are_refused(options, capsys):
    with pytest.raises(SystemExit):
        quickstart.main(options)
    assert "pass at least" in capsys.readouterr().err


def test_a_split_sets_apart_what_it_says():
    split = quickstart.make_split(0)
    assert [len(part) for part in (split.X_test, split.X_pub, split.X_priv)] == [400, 50, 1347]
    np.testing.assert_array_equal(np.bincount(split.y_pub), [5] * 10)
    rows = np.concatenate([split.X_test, split.X_train])
    assert len(np.unique(rows, axis=0)) == 1797


def test_only_public_is_the_head_that_adamix_starts_from():
    split = quickstart.make_split(0)
    # One step of no length ends where it started.
    still = MixedDPLogisticRegression(
        "adamix", epsilon=None, noise_multiplier=1e3, n_steps=1, learning_rate=1e-12
    )
    still.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)
    public = quickstart.fit_only_public(split)
    np.testing.assert_allclose(
        public.predict_proba(split.X_test), still.predict_proba(split.X_test), atol=1e-4
    )


# -- claims --------------------------------------------------------------------------------


def constructed(means):
    """A results table in which every method has 0.8 in both splits, except for ``means``."""
    rows = []
    for method in quickstart.METHODS:
        budgets = quickstart.EPSILONS if method in quickstart.PRIVATE_METHODS else (None,)
        rows += [
            {"method": method, "epsilon": epsilon, "split": split, "draw": draw, "accuracy": score + noise}
            for epsilon in budgets
            for split, score in enumerate(means.get(method, (0.8, 0.8)))
            for draw, noise in enumerate((-0.05, 0.05))
        ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.0, 1.05], "ours is better"),
        ([-1.0, -1.1, -0.9, -1.0, -1.05], "theirs is better"),
        ([1.0, 3.0, -0.5, 2.0, 0.1], "not told apart"),
        ([-1.0, -3.0, 0.5, -2.0, -0.1], "not told apart"),
        ([0.0, 0.0, 0.0, 0.0, 0.0], "not told apart"),
    ],
)
def test_better_is_said_only_where_the_interval_excludes_zero(differences, verdict):
    assert quickstart.Difference.of(differences).verdict("ours", "theirs") == verdict


def test_the_interval_is_students_with_one_degree_of_freedom_less_than_splits():
    found = quickstart.Difference.of([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.7764451 * np.sqrt(2.5 / 5)
    assert_close([found.mean, found.low, found.high], [3, 3 - half, 3 + half], 1e-8)  # digits of a table


def test_draws_are_averaged_before_pairing():
    found = quickstart.paired_difference(constructed({"Default": (0.9, 0.91)}), quickstart.NGD, 1.0)
    assert_close([found.mean, found.high - found.mean], [10.5, 12.7062047 * 0.5], 1e-8)


def test_the_table_claims_in_both_directions_and_not_otherwise():
    table = constructed({"Default": (0.9, 0.9), "Non-private": (0.95, 0.95), "Only-Public": (0.7, 1.0)})
    verdicts = {line[0]: line[-1] for line in quickstart.difference_table(table)[1:]}
    assert verdicts == {
        quickstart.ADAMIX: "Default is better",
        quickstart.NGD: "Default is better",
        quickstart.FULLY_PRIVATE: "Default is better",
        quickstart.ONLY_PUBLIC: "not told apart",
        quickstart.NON_PRIVATE: "Non-private is better",
    }
