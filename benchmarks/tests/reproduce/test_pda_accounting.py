"""The sigma and epsilon of the PDA-DPMD paper, and the time that calibration takes."""

import csv

import pytest

from benchmarks.reproduce.pda_accounting import PAIRS, exact_rdp_epsilon, main, rdp_epsilon
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


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=label)
def test_privacy_loss_distributions_are_tighter(pair):
    found = epsilon_of(pair.sigma, pair.n_steps, delta=pair.delta, sampling_rate=pair.sampling_rate)
    assert found == pytest.approx(PLD[pair.printed], rel=4e-3)
    assert found < float(pair.printed)


@pytest.mark.slow
def test_the_quick_run_writes_its_tables(tmp_path, capsys):
    main(["--quick", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.count("| CIFAR-10 |") == 2 and "CPU seconds" in printed
    with (tmp_path / "pda_accounting.csv").open(encoding="utf-8") as file:
        assert [row["paper"] for row in csv.DictReader(file)] == [pair.printed for pair in PAIRS]
    with (tmp_path / "pda_accounting_timings.csv").open(encoding="utf-8") as file:
        timings = list(csv.DictReader(file))
    assert len(timings) == 3
    for row in timings:
        assert 0.998 * float(row["epsilon"]) < float(row["spent"]) <= float(row["epsilon"])
        assert float(row["CPU seconds"]) < 10  # about 0.5 on a quiet machine
