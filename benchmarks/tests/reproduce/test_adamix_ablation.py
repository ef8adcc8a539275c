"""The quick path of the ablation, where its data are at hand."""

import pandas as pd
import pytest

from benchmarks.reproduce import adamix_ablation


def test_the_quick_path_writes_both_tables_and_the_figure(tmp_path, capsys):
    if not (adamix_ablation.data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    adamix_ablation.main(["--quick", "--out", str(tmp_path)])
    accuracies = pd.read_csv(tmp_path / "adamix_ablation.csv")
    assert set(accuracies["method"]) == {*adamix_ablation.METHODS, "Only-Public"}
    assert accuracies["accuracy"].between(0.5, 1).all()
    errors = pd.read_csv(tmp_path / "adamix_ablation_reconstruction.csv")
    means = errors.groupby(["P", "gradient", "subspace"])["error"].mean().unstack()
    # The larger the subspace the better, and the public one better than a random one.
    assert (means["public"] < means["random"]).all()
    assert means.groupby("gradient")["public"].is_monotonic_decreasing.all()
    assert (tmp_path / "adamix_ablation.png").stat().st_size > 1000
    assert "| both (AdaMix) |" in capsys.readouterr().out


def test_public_rows_are_the_first_of_each_class_and_the_rest_is_private():
    if not (adamix_ablation.data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")
    split = adamix_ablation.make_split(0, 2, None)
    assert len(split.y_pub) == 154
    assert len(split.y_pub) + len(split.y_priv) == 10003
    assert (pd.Series(split.y_pub).value_counts() == 2).all()


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        adamix_ablation.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
