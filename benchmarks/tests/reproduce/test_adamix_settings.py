"""The quick path of AdaMix's Figures 7 and 8, where its data are at hand."""

import pandas as pd
import pytest

from benchmarks.reproduce import adamix_settings
from benchmarks.reproduce.adamix_ablation import data_folder


def test_each_setting_is_fitted_and_keeps_its_start(tmp_path, capsys):
    if not (data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    adamix_settings.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "adamix_settings.csv")
    assert list(found["figure"]) == ["quantile", "quantile", "noise, AdaMix", "noise, NGD"]
    assert found["error"].max() < 0.4  # public rows alone have 0.34
    assert "| best total rate |" in capsys.readouterr().out


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        adamix_settings.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
