"""The quick path of PAZO's comparison, where its data are at hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import pazo_banking77
from benchmarks.reproduce.adamix_ablation import data_folder, make_split


@pytest.fixture(autouse=True)
def data():
    if not (data_folder() / "banking77").is_dir():
        pytest.skip("needs banking77; set SKMIXDP_DATA to the folder that holds it.")


def test_the_quick_path_compares_every_method_and_checks_the_claims(tmp_path, capsys):
    pazo_banking77.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "pazo_banking77.csv")
    assert set(found["method"]) == {*pazo_banking77.GRIDS, "only public"}
    assert found["accuracy"].between(0.6, 1).all()
    assert found.loc[found["method"] != "only public", "control"].between(0, 0.85).all()
    assert (tmp_path / "pazo_banking77.png").stat().st_size > 1000
    printed = capsys.readouterr().out
    assert "| PAZO-S |" in printed and "all PAZO variants above DPZero" in printed
    assert "Private labels permuted:" in printed and "(control)" in printed


def test_rehearsals_use_each_public_row_once_and_every_class_alike():
    split = make_split(0, pazo_banking77.SHOTS, None)
    for parts in pazo_banking77.rehearsals(split, 2):
        assert len(np.unique(np.concatenate(parts))) == len(split.y_pub)
        for rows, count in zip(parts, (2, 2, 1), strict=True):
            assert (np.bincount(split.y_pub[rows]) == count).all()
