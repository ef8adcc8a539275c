"""The loop that loads items, passes them through an encoder and fetches the rows, and where it runs.

On a GPU the steps overlap: workers prepare batches into pinned memory, batches are copied
while earlier ones are computed, and rows are fetched one batch late.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .._extraction import Encoder, Settings, Skipped
from .._inputs import ItemError, Items

Chunk = tuple[list[int], NDArray[np.float32], list[Skipped]]
#: Positions of some items, their batch (None if all failed), and the items that failed.
Loaded = tuple[list[int], Any, list[Skipped]]


def run(encoder: Encoder, items: Items, places: Sequence[int], settings: Settings) -> Iterator[Chunk]:
    """Yield the rows of the items at ``places``, chunk by chunk, with the items that failed."""
    if not places:
        return
    module = encoder.module
    cuda = settings.device.startswith("cuda")
    module.requires_grad_(False)
    module.to(settings.device)
    module.eval()
    training = [name or type(module).__name__ for name, layer in module.named_modules() if layer.training]
    if training:
        raise ValueError(
            f"the layer {training[0]} of the encoder stays in training mode, in which rows of a batch "
            "influence each other; use an encoder whose eval() reaches all layers."
        )
    forward = _Forward(encoder, settings)
    waiting: deque[tuple[list[int], Callable[[], NDArray[np.float32]], list[Skipped]]] = deque()
    for numbers, batch, failures in _load(encoder, items, places, settings):
        rows = torch.empty((0, encoder.n_outputs)) if batch is None else forward(batch)
        waiting.append((numbers, _start_fetch(rows), failures))
        if len(waiting) > int(cuda):
            numbers, fetch, failed = waiting.popleft()
            yield numbers, fetch(), failed
    for numbers, fetch, failed in waiting:
        yield numbers, fetch(), failed


def _start_fetch(rows: Tensor) -> Callable[[], NDArray[np.float32]]:
    """Start to copy rows from a GPU to the host, and return a function that waits for them."""
    event: Any = None
    if rows.is_cuda:
        stream = torch.cuda.current_stream(rows.device)
        rows = rows.to("cpu", non_blocking=True)
        event = torch.cuda.Event()
        event.record(stream)

    def fetched() -> NDArray[np.float32]:
        if event is not None:
            event.synchronize()
        return np.asarray(rows.to("cpu", torch.float32))

    return fetched


class _Forward:
    """Forward passes with smaller batches when the device runs out of memory."""

    def __init__(self, encoder: Encoder, settings: Settings) -> None:
        self._encoder = encoder
        self._settings = settings
        self._limit = settings.batch_size

    def __call__(self, batch: Any) -> Tensor:
        n = _batch_size(batch)
        while True:
            rows = self._attempt(batch, n)
            if rows is not None:
                return rows
            # Outside of the handler, whose traceback would keep the tensors in memory.
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            if min(n, self._limit) == 1:
                raise MemoryError(
                    f"device={self._settings.device!r} has not enough memory for a single item; free some, "
                    "or use device='cpu' or a smaller model."
                )
            self._limit = min(n, self._limit) // 2

    def _attempt(self, batch: Any, n: int) -> Tensor | None:
        """Rows of a batch, in parts of the present limit; None if memory ran out."""
        try:
            parts = [
                self._rows(_slice(batch, start, start + self._limit)) for start in range(0, n, self._limit)
            ]
            return parts[0] if len(parts) == 1 else torch.cat(parts)
        except torch.OutOfMemoryError:
            return None

    def _rows(self, batch: Any) -> Tensor:
        device, precision = self._settings.device, self._settings.precision
        kind, dtype = device.partition(":")[0], getattr(torch, precision)
        mixed = torch.autocast(kind, dtype) if dtype is not torch.float32 else nullcontext()
        with torch.inference_mode(), mixed:
            batch = _to_device(batch, device)
            if isinstance(batch, Tensor) and batch.dtype is torch.uint8:
                batch = self._encoder.preparation.many(batch)
            rows: Tensor = self._encoder.forward(batch)
            return rows.to(torch.float32)


def resolve_device(device: str) -> str:
    """The name of a usable device; ``"auto"`` is the GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    # AssertionError: raised by a PyTorch without CUDA
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={device!r} cannot be used ({reason}); use 'auto' or 'cpu'.") from error
    return device


def resolve_precision(amp: bool | str, device: str) -> str:
    """``"float32"``, or the type of automatic mixed precision."""
    gpu = device.startswith("cuda")
    if amp is False or (amp == "auto" and not gpu):
        return "float32"
    if isinstance(amp, str) and amp != "auto":
        return amp
    return "bfloat16" if not gpu or torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def _to_device(batch: Any, device: str) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    return {name: value.to(device, non_blocking=True) for name, value in batch.items()}


def _batch_size(batch: Any) -> int:
    return len(batch if isinstance(batch, Tensor) else next(iter(batch.values())))


def _slice(batch: Any, start: int, stop: int) -> Any:
    if isinstance(batch, Mapping):
        return {name: value[start:stop] for name, value in batch.items()}
    return batch[start:stop]


def _load(encoder: Encoder, items: Items, places: Sequence[int], settings: Settings) -> Iterator[Loaded]:
    """Batches of prepared items, or of pixels that are prepared on the device."""
    preparation, pin = encoder.preparation, settings.device.startswith("cuda")
    size = settings.batch_size
    first = items.pixels(places[:1])
    if first is not None and preparation.many(torch.from_numpy(first)) is not None:
        for start in range(0, len(places), size):
            numbers = list(places[start : start + size])
            pixels = torch.from_numpy(items.pixels(numbers))
            yield numbers, pixels.pin_memory() if pin else pixels, []
        return
    loader: DataLoader[Loaded] = DataLoader(
        _Prepared(preparation.one, items, places),
        batch_size=size,
        num_workers=settings.n_workers,
        collate_fn=partial(_stacked, preparation.stack),
        pin_memory=pin,
        generator=torch.Generator(),  # leaves the random state of the caller unchanged
    )
    yield from loader


class _Prepared(Dataset[Any]):
    """Prepared items. A failure is returned and not raised, so that the worker goes on."""

    def __init__(self, prepare: Callable[[Any], Any], items: Items, places: Sequence[int]) -> None:
        self._prepare = prepare
        self._items = items
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Any:
        place = self._places[number]
        try:
            return place, self._prepare(self._items[place])
        except ItemError as error:
            return Skipped(place, self._items.name(place), str(error))


def _stacked(stack: Callable[[list[Any]], Any], prepared: Sequence[Any]) -> Loaded:
    """Prepared items as a batch, made in the loader's worker."""
    failures = [item for item in prepared if isinstance(item, Skipped)]
    good = [item for item in prepared if not isinstance(item, Skipped)]
    numbers = [place for place, _ in good]
    batch = stack([item for _, item in good]) if good else None
    return numbers, batch, failures
