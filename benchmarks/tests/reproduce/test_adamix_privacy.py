"""The quick path of attacks and per-instance curves, where its data are at hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import adamix_privacy


@pytest.mark.filterwarnings("ignore")
def test_the_quick_path_writes_both_tables_and_the_figure(tmp_path, capsys):
    if not (adamix_privacy.data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    adamix_privacy.main(["--quick", "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "adamix_privacy.csv").set_index("method")
    assert set(table.index) == {
        *adamix_privacy.METHODS,
        adamix_privacy.ONLY_PUBLIC,
        adamix_privacy.NON_PRIVATE,
    }
    # Who trains without privacy is attacked best; who looks at public rows alone, not at all.
    assert table["auc"].idxmax() == adamix_privacy.NON_PRIVATE
    assert abs(table.loc[adamix_privacy.ONLY_PUBLIC, "auc"] - 0.5) < 0.03
    rows = pd.read_csv(tmp_path / "adamix_privacy_rows.csv").set_index("method")
    assert set(rows.index) == set(adamix_privacy.METHODS)
    assert (rows[["10%", "50%", "90%"]].to_numpy() <= adamix_privacy.RECORDED).all()
    assert (tmp_path / "adamix_privacy.png").stat().st_size > 1000
    assert "| AdaMix | 3 |" in capsys.readouterr().out


def test_rows_near_the_guarantee_are_counted():
    found = adamix_privacy.summary(np.array([1.0, 2.0, 2.8, 2.9, 3.0]))
    assert found["near"] == 0.6 and found["50%"] == 2.8


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        adamix_privacy.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
