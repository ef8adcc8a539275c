"""The quick path of the small networks."""

import pandas as pd
import pytest

from benchmarks.reproduce.adamix_ablation import data_folder

torch = pytest.importorskip("torch", reason="needs torch; install skmixdp[features]")

from benchmarks.reproduce import small_networks  # noqa: E402


def test_the_net_has_the_parameters_of_the_paper():
    module = small_networks.network(0)
    assert sum(parameter.numel() for parameter in module.parameters()) == 26_010
    assert module(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


@pytest.mark.parametrize("part", small_networks.PARTS)
def test_the_quick_path_runs_every_fit_once(part, tmp_path, capsys, recwarn):
    if not (data_folder() / "fashion_mnist").is_dir():
        pytest.skip("needs fashion_mnist; set SKMIXDP_DATA to the folder that holds it.")
    for _ in range(2):  # the second time, the runs are there
        small_networks.main(["--quick", "--part", part, "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / f"small_networks_{part}.csv")
    fits = small_networks.PARTS[part]
    assert set(found["name"]) - {"only public"} == {fit.name for fit in fits}
    assert len(found) == len(fits) + (part != "modelmix") and found["accuracy"].between(0, 90).all()
    assert capsys.readouterr().out.count(f"| {fits[0].name} |") == 2 * sum(
        fit.name == fits[0].name for fit in fits
    )
