"""A model's own preprocessing, for one PIL image or for a batch of pixels."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import transforms
from torchvision.transforms.v2 import functional


class ImagePreparation:
    """The evaluation transform of a library, with the same results for PIL images and batches of pixels.

    Tensors of 8 bits give the same pixels as PIL images up to one grey level. Channels are last in memory, as
    convolutions run fastest (1.4 to 1.8 times on a CPU).
    """

    def __init__(self, transform: Any, n_channels: int) -> None:
        if n_channels not in (1, 3):
            raise ValueError(
                f"the model takes images of {n_channels} channels; use one for grey (1) or colour (3) images."
            )
        self._transform = transform
        self._n_channels = n_channels
        self._steps = _steps_for_tensors(transform)

    def one(self, item: Any) -> Any:
        return self._transform(item.convert("L" if self._n_channels == 1 else "RGB"))

    def stack(self, prepared: Sequence[Any]) -> Any:
        return torch.stack(list(prepared)).contiguous(memory_format=torch.channels_last)

    def many(self, pixels: Any) -> Any | None:
        n_channels = pixels.shape[3]
        # Images that become grey are left to PIL, since torch rounds grey values differently.
        if self._steps is None or n_channels not in (1, self._n_channels):
            return None
        batch = pixels.permute(0, 3, 1, 2)
        before, after = self._steps
        for step in before:
            batch = _resized(step, batch) if isinstance(step, transforms.Resize) else step(batch)
        batch = batch.to(torch.float32) / 255
        if n_channels != self._n_channels:
            batch = batch.expand(-1, self._n_channels, -1, -1)
        for step in after:
            batch = step(batch)
        return batch.contiguous(memory_format=torch.channels_last)

    def __repr__(self) -> str:
        return " ".join(repr(self._transform).split())


def _resized(step: transforms.Resize, pixels: Tensor) -> Tensor:
    """Resize the width, then the height, rounding to 8 bits in between, as PIL does.

    One pass would cut off bicubic overshoot once and not twice, which changes sharp edges by up to 16 levels.
    """
    height, width = step(torch.empty((1, 1, *pixels.shape[2:]), device="meta")).shape[2:]
    for size in ([pixels.shape[2], width], [height, width]):
        pixels = functional.resize(pixels, size, step.interpolation, antialias=step.antialias)
    return pixels


def _steps_for_tensors(transform: Any) -> tuple[list[Any], list[Any]] | None:
    """The steps before and after scaling to [0, 1]; None if a step needs PIL images."""
    before: list[Any] = []
    after: list[Any] | None = None
    for step in getattr(transform, "transforms", ()):
        if isinstance(step, transforms.ToTensor):
            after = []
        elif type(step) in (transforms.Resize, transforms.CenterCrop) and after is None:
            before.append(step)
        elif type(step) is transforms.Normalize and after is not None:
            after.append(step)
        elif type(step).__name__ != "MaybeConvertMode":
            return None
    return None if after is None else (before, after)
