"""Public rows of another domain, and their number: the quick path, where its data are at hand."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import adamix_shift


def test_outlines_are_bright_where_images_change():
    image = np.zeros((1, 28, 28), np.uint8)
    image[0, 8:20, 8:20] = 100
    (found,) = adamix_shift.outlines(image)
    assert found.dtype == np.uint8 and found.max() == 255
    assert found[14, 14] == found[2, 2] == 0 and found[14, 8] > 100
    assert not adamix_shift.outlines(np.zeros((1, 28, 28), np.uint8)).any()


def test_the_boost_is_the_papers():
    table = pd.DataFrame(
        [
            {"part": "shift", "seed": 0, "method": "non-private", "accuracy": 0.9},
            {"part": "boost", "seed": 0, "method": "only public", "shots": 5, "accuracy": 0.6},
            {"part": "boost", "seed": 0, "method": "AdaMix", "shots": 5, "accuracy": 0.8},
        ]
    )
    (boost,) = adamix_shift.with_boosts(table)["boost"]
    assert boost == pytest.approx((0.4 - 0.1) / (0.2 - 0.1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_quick_path_writes_both_tables_and_the_figure(tmp_path, capsys):
    pytest.importorskip("kymatio", reason="needs kymatio; install skmixdp[features]")
    if not (adamix_shift.data_folder() / "fashion_mnist").is_dir():
        pytest.skip("needs fashion_mnist; set SKMIXDP_DATA to the folder that holds it.")
    adamix_shift.main(["--quick", "--out", str(tmp_path), "--cache", str(tmp_path / "rows")])
    table = pd.read_csv(tmp_path / "adamix_shift.csv")
    shift = table[table["part"] == "shift"].set_index(["method", "domain"])["accuracy"]
    assert shift["only public", adamix_shift.SAME] > shift["only public", adamix_shift.OTHER] + 0.05
    assert shift["AdaMix", adamix_shift.OTHER] > shift["only public", adamix_shift.OTHER]
    assert (tmp_path / "adamix_shift.png").stat().st_size > 1000
    assert "| public rows per class |" in capsys.readouterr().out


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        adamix_shift.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
