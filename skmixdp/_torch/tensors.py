"""Private rows in a torch tensor, which stay on the processor or on a device.

Loaded only for tensors and devices. A device is a row source with two products, like any other. Contributions
are computed where the rows are if the query takes tensors; otherwise outputs and weighted residuals go back
and forth. The noise is added to the sums on the processor, by the same generator as always.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._linear.arrays import FloatArray, row_norms, row_slices
from .._linear.sums import BLOCK_ROWS, Cascade
from .._rows.blockwise import Arithmetic, BlockRows, InMemoryRows, Selection, Visit, block_size, check_lengths
from .._rows.row_map import RowFunction, RowMap
from .._rows.source import Block, Contribution, Labels, PrivateRows, Request, Sums, Table
from .._rows.table import from_device
from .._utils.process import warn
from .._utils.validation import check_finite, shown

#: Bytes and most rows of a block. A block on a device has a fixed cost of about a millisecond.
_BLOCKS = {"cpu": (2**21, BLOCK_ROWS)}
_DEVICE_BLOCKS = (2**30, 2**18)

#: Minimum rows per block.
_FEWEST_ROWS = 512

#: Rows that are measured at a time in float64.
_MEASURED_ROWS = 2**12
#: Rows that are mapped at a time in float64.
_MAPPED_ROWS = 2**14

#: Most entries of sums of panels that are held together.
_PANEL_ENTRIES = 2**25

#: Types of devices with float64, on which rows are mapped and measured.
_KINDS = ("cpu", "cuda", "xpu")


class TorchRows(BlockRows):
    """Private rows in a float32 or float64 tensor (n_rows, d_in), after the row map.

    Products are computed on ``device``, by default that of ``X``; blocks of rows elsewhere are sent there in
    every pass. Rows so long that products could overflow are a ValueError.

    *Guarantee*: that of :class:`InMemoryRows`. Products must be those of IEEE arithmetic in
    the rows' precision or better: TensorFloat-32 is not used.
    """

    def __init__(
        self,
        X: torch.Tensor,
        y: Labels,
        *,
        device: torch.device | None = None,
        block_bytes: int | None = None,
    ) -> None:
        self._X = X
        self.device = X.device if device is None else device
        self.n_rows = len(X)
        dtype = np.dtype(np.float64 if X.dtype == torch.float64 else np.float32)
        usual_bytes, most_rows = _BLOCKS.get(self.device.type, _DEVICE_BLOCKS)
        self.arithmetic = Arithmetic(dtype, block_rows=most_rows)
        wanted = (block_bytes or usual_bytes) // max(X.shape[1] * dtype.itemsize, 1)
        self._block_rows = block_size(wanted, most=most_rows)
        lengths = [array_of(row_norms(part)) for part in _chunks_of(X)]
        norms = np.concatenate(lengths) if lengths else np.empty(0)
        check_lengths(norms, dtype)
        labels = torch.from_numpy(np.array(y))
        if not labels.is_floating_point():
            labels = labels.long()
        self._y = labels.to(self.device)
        self._norms = torch.from_numpy(norms).to(self.device)
        self._streamed = X.device != self.device

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        supported = [request if request.query.takes_tensors else _on_host(request) for request in requests]
        sums: list[Any] = []
        with full_precision():
            while not sums:
                # Room is made after the error is gone, since it holds what was computed.
                with suppress(torch.OutOfMemoryError):
                    sums = self._sums(supported)
                if not sums:
                    self._make_room()
        return [(from_device(matrix), from_device(vector)) for matrix, vector in sums]

    def _make_room(self) -> None:
        """Make blocks smaller; if they are already small, move the rows to the host."""
        if self._block_rows > _FEWEST_ROWS:
            self._block_rows = max(_FEWEST_ROWS, self._block_rows // 4)
        elif not self._streamed:
            self._X, self._streamed = self._X.cpu(), True
            _warn_of_streaming(self.device)
        else:
            raise MemoryError(
                f"{self.device} has no room for {self._block_rows} rows at a time; pass device='cpu'."
            )

    def wanted_rows(self, m: int) -> int:
        return self._block_rows

    def visits(self, blocks: Sequence[Selection], block_rows: int, m: int) -> Iterator[Visit]:
        placed: list[torch.Tensor] = []  # the points of this pass, on the device

        def times(X: torch.Tensor, points: FloatArray) -> torch.Tensor:
            if not placed:
                placed.append(torch.from_numpy(np.ascontiguousarray(points)).to(self.device))
            return products(X, placed[0])

        for rows in blocks:
            X = self._taken(rows)
            number = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self.device)
            block = Block(X, self._y[number], self._norms[number])
            yield Visit(rows, block, partial(times, X), partial(add_tensor_products, X))

    def _taken(self, rows: Selection) -> torch.Tensor:
        index = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self._X.device)
        return self._X[index].to(self.device)


def _on_host(request: Request) -> Request:
    """A request that accepts tensors, by copies of its arguments to the host and of its results back."""

    def copied(Z: torch.Tensor, block: Block) -> Contribution:
        y, norms = array_of(block.y), array_of(block.norms)
        host = Block(None, y, norms, compute_max_abs=lambda: array_of(block.max_abs))
        C, S = request.query.contribute(array_of(Z), host)
        return (
            None if C is None else torch.from_numpy(np.ascontiguousarray(C)).to(Z.device),
            None if S is None else torch.from_numpy(np.ascontiguousarray(S)).to(Z.device),
        )

    return request.with_query(contribute=copied)


def products(X: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """``X points^T``, shape (rows, m)."""
    # (On a processor, X @ points^T is slower: by half with few points.)
    return torch.mm(points, X.t()).t() if X.device.type == "cpu" else torch.mm(X, points.t())


def add_tensor_products(X: torch.Tensor, C: torch.Tensor, total: Cascade, panel_rows: int) -> None:
    """Add ``C^T X`` (k, d_in) to a total, with the error of ``skmixdp._linear.products.add_products``."""
    if panel_rows == 0 or C.dtype == torch.float64:
        for rows in row_slices(max(len(X), 1), BLOCK_ROWS):
            # (X^T C is slower: ten times with few outputs.)
            total.add(torch.mm(C[rows].double().t(), X[rows].double()))
        return
    n_panels = len(X) // panel_rows
    whole = n_panels * panel_rows
    left = C[:whole].t().reshape(C.shape[1], n_panels, panel_rows).transpose(0, 1)
    right = X[:whole].reshape(n_panels, panel_rows, X.shape[1])
    at_once = max(_PANEL_ENTRIES // max(C.shape[1] * X.shape[1], 1), 1)
    for panels in row_slices(n_panels, at_once):
        total.add(torch.bmm(left[panels], right[panels]).sum(dim=0, dtype=torch.float64))
    total.add(torch.mm(C[whole:].t(), X[whole:]).double())


@contextmanager
def full_precision() -> Iterator[None]:
    """A context in which float32 products have full precision, even if the user allows less elsewhere.

    A row's part in a sum is bounded by what was clipped. TensorFloat-32 would round rows and weighted
    residuals to 11 bits after that, so that a part could exceed its bound by one in a thousand; and
    bounds on the rounding of products (:func:`~skmixdp._linear.sums.dot_error`) would no longer hold.
    """
    # Since torch 2.9 every backend has a separate setting, which the common one may contradict.
    owners: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
    settings = [(owner, getattr(owner, "fp32_precision", None)) for owner in owners]
    allowed = None
    with suppress(RuntimeError):
        allowed = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if allowed is not None:
            torch.set_float32_matmul_precision(allowed)
        for owner, precision in settings:
            if isinstance(precision, str):
                owner.fp32_precision = precision


class TorchTable(Table):
    """A tensor that a user passed; private rows are held on ``place``, by default where the tensor is."""

    is_movable = True

    def __init__(self, X: torch.Tensor, place: torch.device | None = None) -> None:
        self._X = X.detach()
        self._place = X.device if place is None else place
        self.device = str(self._place)
        self.shape: tuple[int, int] = tuple(X.shape)  # type: ignore[assignment]

    @classmethod
    def of_array(cls, X: NDArray[Any], device: str) -> "TorchTable":
        """The table of an array in the memory of the host, without a copy."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
            return cls(torch.from_numpy(np.ascontiguousarray(X)), torch.device(device))

    @staticmethod
    def device_name(device: Any) -> str:
        """The name of a torch device, ``"cpu"`` for the processor; a ValueError without one with float64."""
        try:
            place = torch.empty(0, device=device, dtype=torch.float64).device
        # The type of the error depends on the device.
        except Exception:
            place = None
        if place is None or place.type not in _KINDS:
            here = [*(f"'cuda:{number}'" for number in range(torch.cuda.device_count())), "'cpu'", "'auto'"]
            raise ValueError(
                f"device={shown(device)} is none that torch has here and that knows float64; pass one of "
                f"{', '.join(here)}."
            )
        return "cpu" if place.type == "cpu" else str(torch.device(device))

    def on_device(self, device: str) -> "TorchTable":
        place = torch.device(device)
        return TorchTable(self._X.cpu() if place.type == "cpu" else self._X, place)

    def check(self, name: str, *, finite: bool = True) -> None:
        if self._X.ndim != 2:
            raise ValueError(
                f"{name} has shape {tuple(self._X.shape)}, not (n_samples, n_features); Reshape your data "
                "to a table."
            )
        if self._X.layout != torch.strided or self._X.is_complex():
            raise ValueError(f"{name} must be a dense tensor of real numbers; convert it first.")
        if finite:
            check_finite(all(bool(torch.isfinite(part).all()) for part in _chunks_of(self._X)), name)

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            host = [row_map(block, dtype) for block in self.blocks()]
            return InMemoryRows(np.concatenate(host), y, exact=True)
        precision = torch.float64 if dtype == np.float64 else torch.float32
        if is_processor(self._place):  # NumPy's products are faster there
            return InMemoryRows(array_of(mapped(self._X, row_map, precision, self._place)), y)
        try:
            return TorchRows(mapped(self._X, row_map, precision, self._place), y)
        except torch.OutOfMemoryError:
            _warn_of_streaming(self._place)
        streamed = mapped(self._X, row_map, precision, torch.device("cpu"))
        return TorchRows(streamed, y, device=self._place)

    def blocks(self) -> Iterator[NDArray[Any]]:
        for part in _chunks_of(self._X):
            yield array_of(part if part.dtype in (torch.float32, torch.float64) else part.double())

    def transformed(self, function: RowFunction) -> Table:
        return self.of_array(np.concatenate([function(block) for block in self.blocks()]), self.device)


def mapped(X: torch.Tensor, row_map: RowMap, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The rows of a tensor (n, n_features) after a :class:`~skmixdp._rows.row_map.RowMap`, on a device."""
    rows = torch.empty((len(X), row_map.width(X.shape[1])), dtype=dtype, device=device)
    with full_precision():
        for taken in row_slices(len(X), _MAPPED_ROWS):
            rows[taken] = row_map(X[taken].to(device), np.float64)
    return rows


def is_processor(device: torch.device) -> bool:
    """Whether rows on a device are in the memory of the host."""
    return device.type == "cpu"


def array_of(X: torch.Tensor) -> NDArray[Any]:
    """The NumPy array of a tensor: itself on the processor, a copy from elsewhere."""
    return np.asarray(X.cpu().numpy())


def _chunks_of(X: torch.Tensor) -> Iterator[torch.Tensor]:
    """The rows of a tensor, a few thousand at a time."""
    return (X[rows] for rows in row_slices(len(X), _MEASURED_ROWS))


def _warn_of_streaming(device: torch.device) -> None:
    """Warn that rows do not fit on a device."""
    warn(
        f"the rows do not fit on {device} with what else is there; they are kept in the host's memory and "
        "sent there block by block in every step, which is slower."
    )
