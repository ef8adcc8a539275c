"""Networks of open_clip as encoders of images and of texts."""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import open_clip
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from torch import Tensor

from .images import ImagePreparation
from .loading import check_row_wise, file_hash, loading, weights_hash


def load(
    model_name: str, pretrained: str | os.PathLike[str] | bool, tower: str = "image"
) -> "OpenClipEncoder":
    """The encoder that these parameters of ``OpenClipFeatures`` describe."""
    if pretrained is not False and not isinstance(pretrained, (str, os.PathLike)):
        raise TypeError(
            f"pretrained={pretrained!r} must be the tag of weights, the path of a checkpoint, or False."
        )
    path = None if pretrained is False else os.fspath(pretrained)
    stamp = Path(path).stat().st_mtime_ns if path and Path(path).is_file() else None
    return OpenClipEncoder(*_model(model_name, path, stamp), model_name, tower)


# Shared by the encoders of images and of texts.
@lru_cache(maxsize=1)
def _model(model_name: str, pretrained: str | None, stamp: int | None) -> tuple[Any, dict[str, Any]]:
    """The network in evaluation mode, and the origin and hash of its weights."""
    folder_or_hub = ":" in model_name
    remedy = (
        "use a pair of open_clip.list_pretrained(), or, where there is no network, pass the path of a "
        "checkpoint as pretrained"
    )
    with loading(f"model_name={model_name!r} with pretrained={pretrained!r} cannot be loaded", remedy):
        module = open_clip.create_model(
            model_name,
            None if folder_or_hub else pretrained,
            require_pretrained=folder_or_hub or pretrained is not None,
        )
    check_row_wise(module, model_name)
    origin: dict[str, Any] = {"origin": model_name if folder_or_hub else pretrained or "random weights"}
    if stamp is not None and not folder_or_hub:
        origin["file_sha256"] = file_hash(str(pretrained))
    return module.to(memory_format=torch.channels_last).eval(), {**origin, "sha256": weights_hash(module)}


class OpenClipEncoder:
    """The image or text tower of an open_clip network."""

    def __init__(self, module: Any, weights: dict[str, Any], model_name: str, tower: str) -> None:
        self.module = module
        self._encode = module.encode_image if tower == "image" else module.encode_text
        self.preparation: Any
        if tower == "image":
            config = PreprocessCfg(**module.visual.preprocess_cfg)
            self.preparation = ImagePreparation(image_transform_v2(config, is_train=False), 3)
        else:
            self.preparation = TextPreparation(open_clip.get_tokenizer(model_name))
        with torch.inference_mode():
            tokens = TextPreparation(open_clip.get_tokenizer(model_name)).stack(["a"])
            device = next(module.parameters()).device
            self.n_outputs = int(module.encode_text(tokens.to(device)).shape[1])
        self.description: dict[str, Any] = {
            "library": "open_clip",
            "model": model_name,
            "weights": weights,
            "preprocessing": repr(self.preparation),
            "tower": tower,
        }

    def forward(self, batch: Tensor) -> Tensor:
        rows: Tensor = self._encode(batch, normalize=True)
        return rows


class TextPreparation:
    """The network's own tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def one(self, item: object) -> Any:
        return item

    def stack(self, prepared: Sequence[Any]) -> Any:
        return self._tokenizer(list(prepared))

    def __repr__(self) -> str:
        length = getattr(self._tokenizer, "context_length", None)
        return f"{type(self._tokenizer).__name__}(context_length={length})"
