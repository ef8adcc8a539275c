"""The quick path of the comparison of searches, where its data are at hand."""

import pandas as pd
import pytest

from benchmarks.reproduce import private_search


def test_the_quick_path_states_naive_and_true_epsilons(tmp_path, capsys):
    if not (private_search.data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    private_search.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "private_search.csv").set_index("method")
    assert set(found.index) == set(private_search.METHODS)
    assert found["accuracy"].between(0.5, 1).all()
    ordinary = found.loc["GridSearchCV, 3 folds"]
    # Nine of the thirteen fits see a row: 3 * mu(3).
    assert ordinary["naive"] == pytest.approx(3.0) and ordinary["true"] == pytest.approx(10.98, abs=0.01)
    honest = found[found.index.str.startswith("PrivateSearchCV")]
    assert (honest["true"] <= 3.0).all() and (honest["true"] > 2.99).all()
    assert (honest["naive"] < 2.0).all()
    assert "| GridSearchCV, 3 folds |" in capsys.readouterr().out


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        private_search.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
