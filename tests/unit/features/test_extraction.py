"""The loop: rows that keep to themselves, items that fail, memory that runs out."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.features.conftest import TinyEncoder, TinyFeatures, library, make_pixels, save_images


@pytest.mark.parametrize("batch_size", [1, 3, 10, 64])
def test_rows_do_not_influence_each_other(batch_size, pixels, paths, tiny):
    """Permuted and split into batches of any size, each item keeps its row."""
    reference = tiny(batch_size=10).transform(pixels)
    order = np.random.default_rng(1).permutation(10)
    for X in (pixels[order], [paths[i] for i in order]):
        found = tiny(batch_size=batch_size).transform(X)
        np.testing.assert_allclose(found, reference[order], rtol=1e-5, atol=1e-4)
    other = pixels.copy()
    other[1:] = 0
    np.testing.assert_allclose(tiny(batch_size=10).transform(other)[0], reference[0], rtol=1e-5, atol=1e-4)


def test_the_check_above_would_notice_training_mode(pixels, encoder):
    """In training mode the tiny network does mix rows, so the test before can fail."""
    encoder.module.train()
    batch = torch.from_numpy(pixels).permute(0, 3, 1, 2).float()
    with torch.no_grad():
        alone, together = encoder.module(batch[:5]), encoder.module(batch)[:5]
    assert not torch.allclose(alone, together, rtol=1e-2)


def test_a_network_in_training_mode_is_put_into_evaluation_mode(pixels, encoder, tiny):
    reference = tiny().transform(pixels)
    running = encoder.module[1].running_mean.clone()
    encoder.module.train()
    np.testing.assert_array_equal(tiny().transform(pixels), reference)
    assert not encoder.module.training
    torch.testing.assert_close(encoder.module[1].running_mean, running)
    assert not any(parameter.requires_grad for parameter in encoder.module.parameters())


def test_a_layer_that_stays_in_training_mode_is_refused(pixels, encoder, tiny):
    class Stubborn(nn.Dropout):
        def train(self, mode=True):
            return super().train(True)

    encoder.module.append(Stubborn())
    with pytest.raises(ValueError, match="the layer 4 of the encoder stays in training mode"):
        tiny().transform(pixels)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d, nn.BatchNorm1d, nn.SyncBatchNorm])
def test_layers_without_running_statistics_are_refused(norm):
    check_row_wise = library("skmixdp.features.backends.loading").check_row_wise
    module = nn.Sequential(nn.Identity(), norm(3, track_running_stats=False))
    with pytest.raises(ValueError, match="model 'x' has the layer 1 that normalises by the statistics of"):
        check_row_wise(module, "x")
    check_row_wise(nn.Sequential(nn.BatchNorm2d(3), nn.GroupNorm(1, 3), nn.InstanceNorm2d(3)), "x")


def test_workers_do_what_one_process_does(pixels, paths, tiny):
    here = tiny(batch_size=4).transform(paths)
    np.testing.assert_array_equal(tiny(batch_size=4, n_workers=2).transform(paths), here)


@pytest.mark.parametrize("n_workers", [0, 1])
def test_the_callers_random_numbers_stay_as_they_are(n_workers, paths, tiny):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    tiny(n_workers=n_workers).transform(paths)
    assert torch.rand(1) == expected


class Hungry(TinyEncoder):
    """Memory for a few items at a time."""

    room = 3

    def forward(self, batch):
        self.batches.append(len(batch))
        if len(batch) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self.module(batch).flatten(1)


@pytest.mark.parametrize("in_memory", [True, False])
def test_the_batch_shrinks_when_memory_runs_out(in_memory, pixels, paths):
    encoder = Hungry()
    rows = TinyFeatures(encoder, batch_size=8).transform(pixels if in_memory else paths)
    np.testing.assert_allclose(rows, TinyFeatures(TinyEncoder()).transform(pixels), rtol=1e-5, atol=1e-4)
    # 8 and 4 do not fit; after that, two at a time and no more attempts.
    assert encoder.batches == [8, 4, 2, 2, 2, 2, 2]
    # A batch that is smaller than the limit shrinks from its own size.
    encoder = Hungry()
    TinyFeatures(encoder, batch_size=1000).transform(pixels)
    assert encoder.batches == [10, 5, 2, 2, 2, 2, 2]


def test_one_item_that_does_not_fit_is_told(pixels):
    encoder = Hungry()
    encoder.room = 0
    with pytest.raises(MemoryError, match="device='cpu' has not enough memory for a single item; free some"):
        TinyFeatures(encoder, batch_size=4).transform(pixels)
    assert encoder.batches == [4, 2, 1]


def test_batches_may_be_dicts_of_tensors(pixels):
    """As a tokenizer makes them."""

    class Masked(Hungry):
        @property
        def preparation(self):
            return self

        @preparation.setter
        def preparation(self, value):
            self._inner = value

        def one(self, item):
            return self._inner.one(item)

        def stack(self, prepared):
            return {"pixels": torch.stack(list(prepared)), "mask": torch.ones(len(prepared))}

        def many(self, pixels):
            return None

        def forward(self, batch):
            assert len(batch["mask"]) == len(batch["pixels"])
            return super().forward(batch["pixels"])

    rows = TinyFeatures(Masked(), batch_size=4).transform(pixels)
    np.testing.assert_allclose(rows, TinyFeatures(TinyEncoder()).transform(pixels), rtol=1e-5, atol=1e-4)


def test_mixed_precision_is_close_and_is_told(pixels, tiny):
    exact, half = tiny(), tiny(amp="bfloat16")
    assert exact.extract(pixels).report["precision"] == "float32"
    assert half.extract(pixels).report["precision"] == "bfloat16"
    difference = np.abs(exact.transform(pixels) - half.transform(pixels)).max()
    assert 0 < difference < 2e-2 * np.abs(exact.transform(pixels)).max()


@pytest.fixture
def machine():
    return library("skmixdp.features.backends.loop")


def test_auto_means_no_mixed_precision_on_a_cpu_and_some_on_a_gpu(monkeypatch, machine):
    assert machine.resolve_precision("auto", "cpu") == "float32"
    assert machine.resolve_precision(True, "cpu") == "bfloat16"
    for native, expected in ((True, "bfloat16"), (False, "float16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda native=native, **options: native)
        assert machine.resolve_precision("auto", "cuda:0") == expected
    assert machine.resolve_precision(False, "cuda") == "float32"
    assert machine.resolve_precision("float16", "cuda") == "float16"


def test_auto_is_the_gpu_where_there_is_one(monkeypatch, machine):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert machine.resolve_device("auto") == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.resolve_device("auto") == "cpu"
    assert machine.resolve_device("cpu") == "cpu"


@pytest.mark.parametrize("device", ["cuda", "nowhere", "cuda:99"])
def test_a_device_that_is_not_there_is_told(device, pixels, tiny):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ValueError, match=rf"device='{device}' cannot be used \(.*\); use 'auto' or 'cpu'"):
        tiny(device=device).transform(pixels)


def test_rows_that_are_not_finite_are_refused(pixels, encoder, tiny):
    with torch.no_grad():
        encoder.module[0].weight.mul_(1e4)
    with pytest.raises(ValueError, match="the row of item 0 is not finite with dtype='float16'; use dtype="):
        tiny(dtype="float16").transform(pixels)
    assert np.isfinite(tiny().transform(pixels)).all()


class TestDamagedImages:
    @pytest.fixture
    def damaged(self, tmp_path):
        """Ten files, of which the third is cut off, the fifth is text and the last is missing."""
        paths = save_images(tmp_path / "some", make_pixels(10, size=40), ".jpg")
        whole = Path(paths[2]).read_bytes()
        Path(paths[2]).write_bytes(whole[: len(whole) // 2])
        Path(paths[4]).write_text("not an image")
        Path(paths[9]).unlink()
        return paths

    @pytest.mark.parametrize("cached", [False, True])
    def test_the_path_is_told(self, cached, damaged, tiny, tmp_path):
        cache = tmp_path / "cache" if cached else None
        with pytest.raises(ValueError, match=r"0002\.jpg cannot be read \(damaged.*\); fix or remove it"):
            tiny(cache=cache).transform(damaged)
        with pytest.raises(ValueError, match=r"0009\.jpg cannot be read \(No such file or directory\)"):
            tiny(cache=cache).transform(damaged[5:])

    @pytest.mark.parametrize("n_workers", [0, 2])
    def test_extract_leaves_them_out_and_keeps_the_places(self, n_workers, damaged, tiny):
        good = [0, 1, 3, 5, 6, 7, 8]
        found = tiny(on_error="skip", n_workers=n_workers, batch_size=3).extract(damaged)
        np.testing.assert_array_equal(found.index, good)
        np.testing.assert_allclose(
            found.features, tiny(batch_size=3).transform([damaged[i] for i in good]), rtol=1e-5, atol=1e-4
        )
        assert [(item.index, item.name) for item in found.skipped] == [(i, damaged[i]) for i in (2, 4, 9)]
        assert found.n_computed == 7
        nothing = tiny(on_error="skip").extract([damaged[2], damaged[4]])
        assert nothing.features.shape == (0, 16) and len(nothing.skipped) == 2

    def test_transform_keeps_their_places_with_nan_and_warns(self, damaged, tiny):
        with pytest.warns(UserWarning, match=r"3 of 10 items could not be read and have rows of NaN: .*0002"):
            rows = tiny(on_error="skip").transform(damaged)
        assert rows.shape == (10, 16)
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(rows).all(axis=1)), [2, 4, 9])
        assert np.isfinite(np.delete(rows, [2, 4, 9], axis=0)).all()

    def test_a_repeated_image_that_is_damaged(self, damaged, tiny, tmp_path):
        found = tiny(on_error="skip", cache=tmp_path / "c").extract([damaged[2], damaged[0], damaged[2]])
        assert [item.index for item in found.skipped] == [0, 2] and found.index.tolist() == [1]


def test_a_bar_shows_progress_only_on_request(pixels, tiny, capsys):
    tiny().transform(pixels)
    assert capsys.readouterr().err == ""
    tiny(verbose=1).transform(pixels)
    assert "TinyFeatures: 100%" in capsys.readouterr().err
