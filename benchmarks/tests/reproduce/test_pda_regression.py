"""The quick path of the reproduction, and its data."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce.pda_regression import COLD, METHODS, MIRROR, QUICK, WARM, Draw, main


@pytest.mark.slow
def test_the_quick_path_writes_and_prints(tmp_path, capsys):
    main(["--quick", "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "pda_regression.csv")
    assert set(table["method"]) == set(METHODS)
    means = table.groupby(["p", "method"])["loss"].mean()
    for p in (60, 120):
        # Two runs of a small problem tell the warm methods from the cold one, not from each other.
        start = table.loc[table["p"] == p, "start"].mean()
        assert max(means[p, MIRROR], means[p, WARM]) < min(means[p, COLD], start)
    assert (tmp_path / "pda_regression.png").stat().st_size > 0
    assert "| 120 | PDA-DPMD |" in capsys.readouterr().out


def test_the_data_are_the_papers():
    draw = Draw.make(500, 400, 0)
    for X in (draw.X, draw.public.X):
        assert set(np.unique(X)) == {0.0, 0.05}
        np.testing.assert_array_equal((X[:, :100] > 0).sum(axis=1), 40)
        np.testing.assert_array_equal((X[:, 100:] > 0).sum(axis=1), 80)
    assert draw.public.n_rows == 750
    again = Draw.make(500, 400, 0)
    np.testing.assert_array_equal(draw.X, again.X)


def test_one_direction_of_the_public_hessian_has_no_curvature(tmp_path, capsys):
    main(["--quick", "--spectra", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "pda_spectra.csv")
    np.testing.assert_allclose(found["least"], 0, atol=1e-9)
    draw = Draw.make(60, QUICK.n_private, 0)
    exact = np.linalg.eigvalsh(draw.public.X.T @ draw.public.X)
    np.testing.assert_allclose(found.loc[0, ["second", "largest"]].astype(float), exact[[1, -1]], atol=1e-9)
    assert "| 120 |" in capsys.readouterr().out
