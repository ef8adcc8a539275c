"""The quick path of the control with permuted private labels."""

import pandas as pd
import pytest

from benchmarks.reproduce import pazo_control


def test_the_quick_path_compares_true_and_permuted_labels(tmp_path, capsys):
    pazo_control.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "pazo_control.csv").set_index("method")
    assert list(found.index) == ["pazo-m", "pazo-s"]
    assert found[["true", "permuted", "public"]].stack().between(0.7, 1).all()
    assert found.loc["pazo-s", "true"] == pytest.approx(found.loc["pazo-s", "permuted"], abs=0.03)
    assert (tmp_path / "pazo_control.png").stat().st_size > 1000
    assert "| public rows alone |" in capsys.readouterr().out
