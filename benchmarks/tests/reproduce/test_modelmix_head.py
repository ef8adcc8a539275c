"""The quick path of ModelMix for a linear head."""

import pandas as pd
import pytest

from benchmarks.reproduce import modelmix_head
from benchmarks.reproduce.adamix_ablation import data_folder

pytest.importorskip("kymatio", reason="needs kymatio; install skmixdp[features]")


@pytest.mark.slow
def test_the_quick_path_compares_all_methods(tmp_path, capsys):
    if not (data_folder() / "fashion_mnist").is_dir():
        pytest.skip("needs fashion_mnist; set SKMIXDP_DATA to the folder that holds it.")
    modelmix_head.main(["--quick", "--out", str(tmp_path), "--cache", str(tmp_path / "features")])
    found = pd.read_csv(tmp_path / "modelmix_head.csv")
    names = [method.name for method in modelmix_head.methods()]
    assert found["method"].tolist() == names
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name in names)


def test_the_noise_and_the_width_are_those_of_the_paper():
    base, less, mixed, *_ = modelmix_head.methods()
    assert mixed.epsilon == 0.6436 < less.epsilon < base.epsilon == 2
    assert mixed.algorithm.width == pytest.approx(27.8, abs=0.1)
