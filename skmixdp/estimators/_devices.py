"""Where the products with private rows are computed: the parameter ``device``."""

from typing import Any

from .._rows import Table
from ..privacy import Noise, noise_name


def check_device(device: Any) -> str | None:
    """The name of a device; None for ``"auto"``. Only what is neither that nor ``"cpu"`` needs torch.

    Raises
    ------
    ValueError
        If there is no such device.
    ImportError
        If torch is needed and not installed.
    """
    if isinstance(device, str) and device in ("auto", "cpu"):
        return None if device == "auto" else device
    try:
        from .._rows.device_table import device_name
    except ModuleNotFoundError as error:
        raise ImportError(
            f"device={device!r} needs the torch package; install skmixdp[features], or pass device='auto'."
        ) from error
    return device_name(device)


def check_movable(table: Table, device: str | None, *, noise: Noise) -> None:
    """Refuse what the device that was asked for cannot hold or do.

    Raises
    ------
    ValueError
        For rows that are not dense and in memory, and for what only the processor does.
    """
    if device is None or device == "cpu":
        return
    if not hasattr(table, "on_device"):
        raise ValueError(
            f"device={device!r} takes dense rows in memory, and X is a {type(table).__name__}; pass "
            "device='auto'."
        )
    if noise_name(noise) == "discrete":
        raise ValueError(
            f"noise='discrete' has its exact sums on the processor, not on device={device!r}; pass "
            "device='cpu', or noise='float'."
        )


def placed(table: Table, device: str | None) -> Table:
    """The table whose private rows are held on a device; None is where they are."""
    move = getattr(table, "on_device", None)
    return table if device is None or move is None else move(device)


def where_computed(table: Table, device: str | None, *, exact: bool) -> str:
    """For the report: where the products with private rows are computed."""
    if exact:
        return "cpu"
    return str(getattr(table, "device", "cpu")) if device is None else device
