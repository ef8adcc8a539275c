"""Values of ``"auto"`` on this machine."""

import torch


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
