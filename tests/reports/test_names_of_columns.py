"""Misspelt names of columns: a remedy names one of the same letters, and no other."""

import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression, Typical
from skmixdp.datasets import open_rows
from skmixdp.inference import private_inference
from skmixdp.model_selection import private_evaluation
from tests.private_names import main

TABLE = pd.DataFrame({"Age": range(40), "Churn?": [0, 1] * 20})
HEAD = MixedDPLogisticRegression(epsilon=5.0, delta=1e-3, classes=[0, 1]).fit(TABLE[["Age"]], TABLE["Churn?"])


def evaluated(name):
    options = {"epsilon": 1.0, "delta": 1e-3, "by": name, "by_values": [0, 1]}
    private_evaluation(HEAD, TABLE, TABLE["Churn?"], **options)


def inferred(name):
    scale = {name: Typical(0, 1)}
    private_inference(TABLE[["Churn?"]], TABLE["Churn?"], epsilon=1.0, classes=[0, 1], scale=scale)


def opened(name):
    TABLE.to_parquet("rows.parquet")
    open_rows("rows.parquet", label=name)


@pytest.mark.parametrize("use", [evaluated, inferred, opened])
@pytest.mark.parametrize("name", ["churn", "CHURN?", "churn ?"])
def test_another_spelling_is_suggested(use, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"; did you mean 'Churn\?'\?$"):
        use(name)
    with pytest.raises(ValueError, match="height") as refused:
        use("height")
    assert "Churn" not in str(refused.value)


@pytest.mark.parametrize("flag", ["--label-column", "--id"])
def test_the_command_line_suggests_it_too(flag, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("rows.csv", index=False)
    HEAD.save("m.safetensors")
    if flag == "--id":
        command = ["predict", "m.safetensors", "rows.csv", "--id", "churn", "--out", "p.csv"]
    else:
        command = [
            "fit",
            "--private",
            "rows.csv",
            "--label-column",
            "churn",
            "--out",
            "m",
            "--classes",
            "0,1",
        ]
    assert main(command) == 2
    assert "did you mean 'Churn?'?" in capsys.readouterr().err
