"""What an encoder is, as seen by the transformers and by the extraction loop.

Tensors are PyTorch's and are written as ``Any``, so that this file imports none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Preparation(Protocol):
    """What turns items into a network's input. It is pickled to the loader's workers."""

    def one(self, item: Any) -> Any:
        """One item (an 8-bit PIL image, or a text), ready to be stacked."""

    def stack(self, prepared: Sequence[Any]) -> Any:
        """Prepared items as a batch: a tensor, or a dict of tensors, whose first axis counts items."""

    def many(self, pixels: Any) -> Any | None:
        """A batch from a uint8 tensor (n, height, width, channels) on any device.

        None if these pixels must be prepared one by one.
        """


class Encoder(Protocol):
    """A frozen network with the preparation of its input.

    Attributes
    ----------
    module : torch.nn.Module
        What is moved to the device and put into evaluation mode before each extraction.
    preparation : Preparation
    n_outputs : int
        Number of features of a row.
    description : mapping
        Everything that decides a row apart from its item, as JSON can hold it: the model, the
        preprocessing, and ``weights``, a mapping with their ``origin`` and ``sha256``. But for
        the origin it is the key of the cache.
    """

    @property
    def module(self) -> Any: ...
    @property
    def preparation(self) -> Preparation: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def description(self) -> Mapping[str, Any]: ...

    def forward(self, batch: Any) -> Any:
        """Rows (n, n_outputs) of a batch, each from its own item alone."""


@dataclass(frozen=True)
class Settings:
    """How to run an encoder; None of the numbers changes rows by more than rounding.

    ``precision`` is ``"float32"``, or the type that automatic mixed precision uses.
    """

    device: str
    precision: str
    batch_size: int
    n_workers: int


@dataclass(frozen=True)
class Skipped:
    """An item that could not be read: its place among the items, its name, and why."""

    index: int
    name: str
    reason: str
