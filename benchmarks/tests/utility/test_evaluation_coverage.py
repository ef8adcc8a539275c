"""Intervals of private evaluations cover as often as they say."""

import pytest

from benchmarks.utility.evaluation import coverage, draw


def check_coverage(pool, n_rows, runs, least):
    """Intervals cover in 95% of the runs, less what chance takes away, or in more."""
    found = coverage(pool, n_rows, runs, epsilon=1.0)
    assert {name: row[:2] for name, row in found.items() if min(row[:2]) < least} == {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pool", ["even", "rare", "regression"])
def test_intervals_cover_in_most_of_forty_runs(pool):
    # 31 or fewer of 40 at 95% have a probability of 2e-4.
    check_coverage(pool, 3000, 40, 0.79)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_rows", [500, 2000, 10_000, 100_000])
@pytest.mark.parametrize("pool", ["even", "rare", "regression"])
def test_intervals_cover_in_95_percent_of_a_thousand_runs(pool, n_rows):
    # 92.5% of 1,000 is 3.6 standard deviations below 95%.
    check_coverage(pool, n_rows, 1000, 0.925)


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="needs skmixdp[plot]")
    with pytest.warns(UserWarning, match="random_state"):
        draw(tmp_path / "evaluation.png")
    assert (tmp_path / "evaluation.png").stat().st_size > 1000
