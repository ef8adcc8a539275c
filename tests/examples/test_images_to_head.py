import json

import joblib
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="needs the extra features")

from examples import images_to_head
from tests.unit.cli.test_extract import save_classes

OPTIONS = json.dumps({"pretrained": False, "image_size": 32})


@pytest.fixture
def folders(tmp_path):
    folders = [tmp_path / name for name in ("private", "public", "new")]
    for seed, folder in enumerate(folders):
        save_classes(folder, 8, seed)
    return [str(folder) for folder in folders]


@pytest.mark.slow
def test_from_folders_to_predictions(folders, tmp_path, capfd):
    private, public, new = folders
    out = tmp_path / "results"
    command = [private, public, "--new", new, "--model", "timm:resnet18", "--options", OPTIONS]
    assert images_to_head.main([*command, "--out", str(out)]) == 0
    assert joblib.load(out / "head.joblib").classes_.tolist() == ["cat", "dog"]
    assert json.loads((out / "report.json").read_text())["epsilon"] == pytest.approx(1)
    predictions = pd.read_csv(out / "predictions.csv")
    assert (predictions["prediction"] == np.repeat(["cat", "dog"], 8)).mean() > 0.8
    printed = capfd.readouterr().out
    assert printed.count("$ python -m skmixdp ") == 5
    assert "(1, 1e-05)-differential privacy" in printed
    # A second run replaces its results, and computes no row again.
    assert images_to_head.main([*command, "--out", str(out)]) == 0
    assert capfd.readouterr().out.count("16 rows of 512 features, 0 computed") == 3


@pytest.mark.slow
def test_the_first_failure_ends_it(folders, tmp_path, capfd):
    code = images_to_head.main(
        [
            *(folders[0], str(tmp_path / "none"), "--model", "timm:resnet18", "--options", OPTIONS, "--out"),
            str(tmp_path / "out"),
        ]
    )
    assert code == 2
    assert not (tmp_path / "out" / "head.joblib").exists()
    assert "IMAGES" in capfd.readouterr().err
