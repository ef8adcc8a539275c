"""Wavelet scattering as an encoder: kymatio's filters and its front end for PyTorch.

The front end is imported by its own path, since ``kymatio.torch`` also imports what newer
versions of SciPy no longer have.
"""

from collections.abc import Sequence
from typing import Any

import torch
from kymatio.scattering2d.frontend.torch_frontend import ScatteringTorch2D
from torch import Tensor
from torch.nn.functional import group_norm
from torchvision import transforms

from .images import ImagePreparation
from .loading import weights_hash


class ScatteringEncoder:
    """Scattering coefficients of order 0 to 2, normalised within each image if ``n_groups`` is given."""

    def __init__(
        self, J: int, L: int, image_size: int | Sequence[int], n_channels: int, n_groups: int | None
    ) -> None:
        shape = (image_size, image_size) if isinstance(image_size, int) else image_size
        self.module: Any = ScatteringTorch2D(J=J, shape=tuple(shape), L=L)
        steps = [transforms.Resize(list(shape)), transforms.ToTensor()]
        self.preparation = ImagePreparation(transforms.Compose(steps), n_channels)
        self._n_groups = n_groups
        with torch.inference_mode():
            self.n_outputs = int(self.forward(torch.zeros((1, n_channels, *shape))).shape[1])
        self.description: dict[str, Any] = {
            "library": "kymatio",
            "model": f"two-layer scattering, J={J}, L={L}",
            "weights": {"origin": "Morlet wavelets", "sha256": weights_hash(self.module)},
            "preprocessing": repr(self.preparation),
            "shape": list(shape),
            "n_channels": n_channels,
            "n_groups": n_groups,
        }

    def forward(self, batch: Tensor) -> Tensor:
        # Always float32, since Fourier transforms have no half precision.
        with torch.autocast(batch.device.type, enabled=False):
            paths = self.module.scattering(batch.float().contiguous())
            channels: Tensor = paths.flatten(1, 2)
            if self._n_groups is not None:
                channels = group_norm(channels, self._n_groups)
        return channels.flatten(1)


#: The encoder that the parameters of ``ScatteringFeatures`` describe.
load = ScatteringEncoder
