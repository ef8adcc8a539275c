"""What only a GPU can show."""

import numpy as np
import pytest
import torch

from skmixdp.features import TimmFeatures
from tests.unit.features.conftest import TinyFeatures, make_pixels, save_images

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU.")


def resnet(**parameters):
    return TimmFeatures("resnet18", pretrained=False, image_size=64, **parameters)


@pytest.mark.parametrize("in_memory", [True, False])
def test_rows_are_those_of_the_cpu(in_memory, tmp_path):
    pixels = make_pixels(50, size=70)
    X = pixels if in_memory else save_images(tmp_path / "images", pixels)
    reference = resnet(device="cpu").transform(X)
    found = resnet(device="cuda", amp=False, batch_size=8, n_workers=0 if in_memory else 2).extract(X)
    assert found.report["device"] == "cuda" and found.report["precision"] == "float32"
    np.testing.assert_allclose(found.features, reference, rtol=1e-2, atol=1e-2 * np.abs(reference).max())
    half = resnet(device="auto", batch_size=8).extract(X)
    assert half.report["precision"] in ("bfloat16", "float16")
    np.testing.assert_allclose(half.features, reference, rtol=0.1, atol=0.05 * np.abs(reference).max())


def test_rows_that_are_fetched_late_belong_to_their_items(encoder):
    pixels = make_pixels(500)
    rows = TinyFeatures(encoder, device="cuda", amp=False, batch_size=7).transform(pixels)
    reference = TinyFeatures(encoder, device="cpu").transform(pixels)
    np.testing.assert_allclose(rows, reference, rtol=1e-3, atol=0.2)


def test_memory_that_runs_out_shrinks_the_batch():
    """A limit on this process's share of the memory stands in for a small GPU."""
    pixels = make_pixels(2048, size=64)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, 0.5 * 2**30 / total))
    try:
        rows = resnet(device="cuda", amp=False, batch_size=2048).transform(pixels)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    some = resnet(device="cuda", amp=False, batch_size=64).transform(pixels[:64])
    np.testing.assert_allclose(rows[:64], some, rtol=1e-2, atol=1e-2 * np.abs(some).max())
