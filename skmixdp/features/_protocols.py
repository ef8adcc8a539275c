"""Interfaces between transformers, encoders and the extraction loop.

Tensors are PyTorch's, but typed as ``Any``, so that this file does not import PyTorch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Preparation(Protocol):
    """Turns items into a network's input. It is pickled to the loader's workers."""

    def one(self, item: object) -> Any:
        """One item (an 8-bit PIL image, or a text), ready to be stacked."""

    def stack(self, prepared: Sequence[Any]) -> Any:
        """Prepared items as a batch: a tensor, or a dict of tensors, whose first axis counts items."""

    def many(self, pixels: Any) -> Any | None:
        """A batch from a uint8 tensor (n, height, width, channels), or None if these need :meth:`one`."""


class Encoder(Protocol):
    """A frozen network and the preparation of its input.

    Attributes
    ----------
    module : torch.nn.Module
        Moved to the device and put into evaluation mode before each extraction.
    preparation : Preparation
    n_outputs : int
        Number of features of a row.
    description : dict
        Everything except the item that determines a row, as JSON: the model, the preprocessing,
        and ``weights``, a mapping with their ``origin`` and ``sha256``. Without the origin it is
        the key of the cache.
    """

    module: Any
    preparation: Any
    n_outputs: int
    description: dict[str, Any]

    def forward(self, batch: Any) -> Any:
        """Rows (n, n_outputs) of a batch; each depends on its own item alone."""


@dataclass(frozen=True)
class Settings:
    """How to run an encoder; ``precision`` is ``"float32"``, or the type of automatic mixed precision."""

    device: str
    precision: str
    batch_size: int
    n_workers: int


@dataclass(frozen=True)
class Skipped:
    """An item that could not be read: its position, its name and the reason."""

    index: int
    name: str
    reason: str
