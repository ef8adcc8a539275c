"""Where residuals are cut: what noise hides of a tail is bounded, and what it shows is not cut."""

import numpy as np
import pytest

from tests.private_names import Tail, bins_of

N, N_BINS = 20_000, 142


def tail(residuals, scale, seed=0):
    counts = np.bincount(bins_of(residuals), minlength=N_BINS).astype(float)
    noise = scale * np.random.default_rng(seed).normal(size=N_BINS)
    return Tail.of(counts + noise, scale, np.zeros(N_BINS))


@pytest.mark.parametrize("scale", [3.0, 15.0, 60.0])
@pytest.mark.parametrize("law", ["normal", "exponential", "lognormal", "pareto", "zeros"])
def test_what_is_lost_is_less_than_what_is_stated_and_the_error_of_a_score(law, scale):
    """The error of a score counts sampling, the noise with this cut, and the allowance for what is lost."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        residuals = {
            "normal": rng.normal(size=N),
            "exponential": rng.exponential(size=N),
            "lognormal": rng.lognormal(0, 1.2, N),
            "pareto": rng.pareto(2.5, N),
            "zeros": np.abs(rng.lognormal(0, 1, N) * (rng.random(N) < 0.2) - 0.33),
        }[law]
        cut, lost = tail(residuals, scale, seed).cut(5.0)
        true = float(np.maximum(residuals - cut, 0).sum())
        ratios.append(true / np.sqrt(lost**2 + (5.0 * cut) ** 2 + (residuals**2).sum()))
    assert np.median(ratios) < 0.7 and np.max(ratios) < 2.0


def test_a_tail_that_falls_too_slowly_has_no_bound():
    rng = np.random.default_rng(1)
    for power, endless in ((1.5, True), (0.3, False)):
        _, lost = tail(rng.random(N) ** -power, 5.0).cut(5.0)
        assert np.isinf(lost) == endless


def test_without_noise_nothing_is_cut():
    residuals = np.random.default_rng(1).normal(size=N)
    cut, lost = tail(residuals, 1e-6).cut(1e-9)
    assert cut > np.abs(residuals).max() / 2**0.25 and lost < 1e-3


def test_where_noise_hides_all_rows_the_cut_is_one_and_what_it_takes_is_unknown():
    assert Tail.of(np.zeros(N_BINS), 1.0, np.zeros(N_BINS)).cut(1.0) == (1.0, np.inf)
    assert Tail.of(np.zeros(N_BINS), 1.0, np.zeros(N_BINS), goes_on=False).cut(1.0) == (1.0, np.inf)


def test_a_histogram_of_noise_shows_no_large_residual():
    """One of 2,000 windows in 1e6 is taken for rows."""
    for seed in range(20):
        cut, _ = tail(np.random.default_rng(seed).normal(size=N), 15.0, seed).cut(5.0)
        assert cut < 50
