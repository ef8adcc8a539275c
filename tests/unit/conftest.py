"""What test modules of several folders share."""

import json

import pytest

#: A configuration of open_clip, as small as it gets.
CLIP = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 16, "head_width": 8, "patch_size": 16},
    "text_cfg": {"context_length": 12, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory):
    """A folder with a network of open_clip: small, with random weights."""
    import skmixdp.features.backends  # noqa: F401  isort: skip  (makes torchvision importable)
    import open_clip
    import torch
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("clip")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = open_clip.CLIP(**CLIP)
    preprocessing = {"mean": [0.5] * 3, "std": [0.25] * 3, "interpolation": "bilinear"}
    config = {"model_cfg": CLIP, "preprocess_cfg": preprocessing}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    save_file(module.state_dict(), folder / "open_clip_model.safetensors")
    return folder
