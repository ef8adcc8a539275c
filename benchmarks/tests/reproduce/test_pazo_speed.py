"""The quick path of PAZO's tables of time and operations."""

import pandas as pd
import pytest

from benchmarks.reproduce import pazo_speed


# Said of Opacus's hooks, where that is installed.
@pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")
def test_the_quick_path_counts_what_every_method_computes(tmp_path, capsys):
    pazo_speed.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "pazo_speed.csv").set_index("method")
    assert set(pazo_speed.METHODS) <= set(found.index)
    assert (found["seconds"] > 0).all()
    forward, sums, public = found["forward"], found["sums"], found["public"]
    # Zeroth order sums no gradients.
    for name in found.index:
        assert sums[name] == (0 if name.startswith(("DPZero", "PAZO")) else 1)
    assert forward["DP-SGD, closed form"] == 1
    assert forward["DPZero, q = 1"] == 2
    assert forward["DPZero, q = 5"] == 6
    assert forward["PAZO-M, q = 1"] == 2
    assert forward["PAZO-P, k = 3, q = 1"] == 2
    assert forward["PAZO-S, k = 3"] == 6
    assert public["PAZO-M, q = 1"] == 1 and public["PAZO-P, k = 3, q = 1"] == 3
    assert public["PAZO-S, k = 3"] == 3 and public["DPZero, q = 1"] == 0
    assert "| PAZO-S, k = 3 |" in capsys.readouterr().out
