"""PDA-DPMD: the sigma and epsilon of the paper, the time that calibration takes, and the regression."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import pda_accounting, pda_regression
from benchmarks.reproduce.pda_accounting import PAIRS, exact_rdp_epsilon, rdp_epsilon
from benchmarks.reproduce.pda_regression import COLD, METHODS, MIRROR, QUICK, WARM, Draw
from skmixdp.privacy import epsilon_of

EMNIST_SMALL = PAIRS[2]
FIVE = [pair for pair in PAIRS if pair is not EMNIST_SMALL]
PLD = {"3.51": 3.23, "0.19": 0.164, "25.80": 23.06, "0.48": 0.441, "15.7": 13.76, "1.71": 1.55}


def label(pair):
    return f"{pair.data}, {pair.sigma}"


@pytest.mark.parametrize("pair", FIVE, ids=label)
def test_five_pairs_come_out_as_printed(pair):
    epsilon, order = rdp_epsilon(pair)
    assert pair.digits(epsilon) == pair.printed
    assert pair.digits(exact_rdp_epsilon(pair, order)) == pair.printed


def test_the_sixth_comes_out_as_printed_without_the_series_bound():
    """dp-accounting adds the magnitudes of a series whose terms alternate in sign."""
    epsilon, order = rdp_epsilon(EMNIST_SMALL)
    assert epsilon == pytest.approx(25.93, abs=0.01)
    assert order == pytest.approx(1.9)
    exact = exact_rdp_epsilon(EMNIST_SMALL, order)
    assert exact < epsilon
    assert EMNIST_SMALL.digits(exact) == "25.80" == EMNIST_SMALL.printed


def test_quadrature_equals_the_finite_sum_at_integer_orders():
    for pair, order in ((PAIRS[1], 63.0), (PAIRS[3], 42.0)):
        assert rdp_epsilon(pair)[0] <= exact_rdp_epsilon(pair, order) * (1 + 1e-6)
    epsilon, order = rdp_epsilon(PAIRS[1])
    assert order.is_integer()
    assert exact_rdp_epsilon(PAIRS[1], order) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("pair", PAIRS, ids=label)
def test_privacy_loss_distributions_are_tighter(pair):
    found = epsilon_of(pair.sigma, pair.n_steps, delta=pair.delta, sampling_rate=pair.sampling_rate)
    assert found == pytest.approx(PLD[pair.printed], rel=4e-3)
    assert found < float(pair.printed)


def test_accounting_writes_its_tables(quick, tmp_path):
    _, printed = quick(pda_accounting)
    assert printed.count("| CIFAR-10 |") == 2 and "CPU seconds" in printed
    found = pd.read_csv(tmp_path / "pda_accounting.csv", dtype=str)
    assert found["paper"].tolist() == [pair.printed for pair in PAIRS]
    timings = pd.read_csv(tmp_path / "pda_accounting_timings.csv")
    assert len(timings) == 3
    assert (0.998 * timings["epsilon"] < timings["spent"]).all()
    assert (timings["spent"] <= timings["epsilon"]).all()
    assert (timings["CPU seconds"] < 10).all()  # about 0.5 on a quiet machine


def test_warm_methods_of_the_regression_beat_the_cold_one(quick, picture):
    table, printed = quick(pda_regression)
    assert set(table["method"]) == set(METHODS)
    means = table.groupby(["p", "method"])["loss"].mean()
    for p in (60, 120):
        # Two runs of a small problem tell the warm methods from the cold one, not from each other.
        start = table.loc[table["p"] == p, "start"].mean()
        assert max(means[p, MIRROR], means[p, WARM]) < min(means[p, COLD], start)
    assert picture("pda_regression") and "| 120 | PDA-DPMD |" in printed


def test_the_data_are_the_papers():
    draw = Draw.make(500, 400, 0)
    for X in (draw.X, draw.public.X):
        assert set(np.unique(X)) == {0.0, 0.05}
        np.testing.assert_array_equal((X[:, :100] > 0).sum(axis=1), 40)
        np.testing.assert_array_equal((X[:, 100:] > 0).sum(axis=1), 80)
    assert draw.public.n_rows == 750
    again = Draw.make(500, 400, 0)
    np.testing.assert_array_equal(draw.X, again.X)


def test_one_direction_of_the_public_hessian_has_no_curvature(quick):
    found, printed = quick(pda_regression, "--spectra", table="pda_spectra")
    np.testing.assert_allclose(found["least"], 0, atol=1e-9)
    draw = Draw.make(60, QUICK.n_private, 0)
    exact = np.linalg.eigvalsh(draw.public.X.T @ draw.public.X)
    np.testing.assert_allclose(found.loc[0, ["second", "largest"]].astype(float), exact[[1, -1]], atol=1e-9)
    assert "| 120 |" in printed
