"""The quick path of the comparison of starts, where its data are at hand."""

import pandas as pd
import pytest

from benchmarks.reproduce import zero_shot


def test_the_quick_path_orders_the_starts_as_the_paper_does(tmp_path, capsys):
    if not (zero_shot.data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    zero_shot.main(["--quick", "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "zero_shot.csv")
    assert set(table["method"]) == {*zero_shot.STARTS, *map(zero_shot.TEXT_ALONE.format, zero_shot.BETAS)}
    found = table[table["shots"] == 2].set_index("method")["accuracy"]
    # After ten steps on few rows the start still shows.
    assert found[zero_shot.ZERO] < found[zero_shot.NAMES] < found[zero_shot.BOTH]
    assert found[zero_shot.FEW] < found[zero_shot.BOTH]
    assert (tmp_path / "zero_shot.png").stat().st_size > 1000
    assert f"| 2 | {zero_shot.BOTH} |" in capsys.readouterr().out


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        zero_shot.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
