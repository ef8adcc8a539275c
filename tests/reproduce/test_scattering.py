"""The quick path of the private head on scattering features, where its data are at hand."""

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


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        scattering.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
