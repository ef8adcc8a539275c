"""The quick path of Coupling's weights."""

import pandas as pd

from benchmarks.reproduce import coupling_weights


def test_the_quick_path_tries_every_weight(tmp_path, capsys):
    coupling_weights.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "coupling_weights.csv")
    assert set(found["weight"]) == {str(weight) for weight in coupling_weights.WEIGHTS}
    assert found["accuracy"].between(0.2, 1).all()
    assert "| public share |" in capsys.readouterr().out
