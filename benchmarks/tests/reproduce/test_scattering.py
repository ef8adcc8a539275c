"""The quick path of the private head on scattering features, where its data are at hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import scattering

pytest.importorskip("kymatio", reason="needs kymatio; install skmixdp[features]")


@pytest.mark.parametrize("choose", [False, True], ids=["test images", "held-out training images"])
def test_the_quick_path_spends_the_budget_and_no_more(tmp_path, capsys, choose):
    if not (scattering.data_folder() / "fashion_mnist").is_dir():
        pytest.skip("needs fashion_mnist; set SKMIXDP_DATA to the folder that holds it.")
    arguments = ["--quick", "--out", str(tmp_path), "--cache", str(tmp_path / "rows")]
    scattering.main([*arguments, *(["--choose"] if choose else [])])
    table = pd.read_csv(tmp_path / ("scattering_choice.csv" if choose else "scattering.csv"))
    settings = scattering.GRID if choose else (scattering.DEFAULT, scattering.CHOSEN)
    assert list(table["setting"]) == [setting.name for setting in settings]
    # The means and the head together, not one after the other.
    assert table["epsilon"].to_numpy() == pytest.approx(scattering.EPSILON, rel=1e-6)
    # Of 800 rows there is little to be learnt, and of their means nothing.
    assert table.set_index("setting")["accuracy"][scattering.DEFAULT.name] > 0.3
    assert f"| {scattering.CHOSEN.name} | 3.000 | 5 |" in capsys.readouterr().out


def test_damping_leaves_a_share_of_what_channels_have_in_common():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 81 * 4)).astype(np.float32)
    np.testing.assert_allclose(scattering.damped(X, 1.0), X, atol=1e-6)
    common = np.tile(np.r_[0, np.ones(80)][:, None], (1, 4)).astype(np.float32).reshape(1, -1)
    np.testing.assert_allclose(scattering.damped(common, 0.3), 0.3 * common, atol=1e-5)
    rest = scattering.damped(X, 0.0)
    np.testing.assert_allclose(rest.reshape(3, 81, 4)[:, 1:].mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(scattering.damped(rest, 0.3), rest, atol=1e-5)


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        scattering.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
