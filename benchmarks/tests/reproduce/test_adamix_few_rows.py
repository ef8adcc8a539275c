"""The quick path of Table 1 by private rows per class, where its data are at hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import adamix_few_rows
from benchmarks.reproduce.adamix_ablation import data_folder


def test_adamix_and_the_default_stay_near_the_public_rows_where_private_ones_are_few(tmp_path, capsys):
    if not (data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    adamix_few_rows.main(["--quick", "--out", str(tmp_path)])
    errors = pd.read_csv(tmp_path / "adamix_few_rows.csv").set_index("method")["error"]
    assert set(errors.index) == {*adamix_few_rows.METHODS, "only public"}
    assert errors["only public"] == pytest.approx(0.34, abs=0.02)
    assert errors["fully private"] > 0.85
    # With the noise of many rows, AdaMix had an error of 0.62.
    np.testing.assert_allclose(errors[["AdaMix", "default"]], errors["only public"], atol=0.02)
    assert "| default gains |" in capsys.readouterr().out


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        adamix_few_rows.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
