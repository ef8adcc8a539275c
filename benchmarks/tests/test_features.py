import re
from importlib import import_module

import pytest

pytest.importorskip("torch", reason="needs the extra features")


@pytest.fixture
def features():
    """Imported late, since it imports libraries of networks."""
    return import_module("benchmarks.features")


def test_it_prints_a_line_of_finite_figures_for_each_network(features, capsys):
    small = ["--image-size", "32", "--images", "4", "--batch-size", "2", "--rounds", "1", "--device", "cpu"]
    features.main(["--networks", "timm:resnet18", "timm:mobilenetv3_small_050", *small])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1
    for line, name in zip(lines[2:], ("timm:resnet18", "timm:mobilenetv3_small_050"), strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:3] == [name, "32 x 32", "cpu, float32"]
        assert all(re.fullmatch(r"\d+(\.\d+)?", cell) and float(cell) > 0 for cell in cells[3:])


def test_images_fill_whole_batches(features, capsys):
    with pytest.raises(SystemExit):
        features.main(["--images", "5", "--batch-size", "2"])
    assert "--images must be a multiple of --batch-size" in capsys.readouterr().err


def test_a_slower_action_takes_longer(features):
    times = features.measure({"short": lambda: sum(range(10_000)), "long": lambda: sum(range(1_000_000))}, 3)
    assert times["long"] > 10 * times["short"]
