"""What users pass: modules and rows of any shape, checked before private rows pass, and states for files."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._utils.frames import is_frame, numeric_frame
from ..._utils.validation import check_column_names, check_table, is_empty, listed, public_sources
from .forward import ModuleParameters

Array = NDArray[Any]

#: Rows that are looked at together.
_BLOCK = 1024

#: Types that NumPy lacks, and types for their bits.
_AS_BITS = {torch.bfloat16: torch.int16}

#: Packages of torch whose modules quantise activations, simulate that, or observe their range.
_QUANTISING = (
    "torch.ao.nn.quantized",
    "torch.ao.nn.qat",
    "torch.ao.nn.intrinsic",
    "torch.ao.nn.quantizable",
    "torch.ao.quantization",
    "torch.nn.quantized",
    "torch.nn.qat",
    "torch.nn.intrinsic",
)


def is_module(value: object) -> bool:
    """Whether a value is a torch module."""
    return isinstance(value, nn.Module)


def working_copy(module: nn.Module, device: object) -> nn.Module:
    """A copy of the user's module on a device, in evaluation mode; the original is never changed."""
    return _on_device(copy.deepcopy(module), device)


def trained_module(module: nn.Module, device: object, parameters: ModuleParameters) -> nn.Module:
    """A new copy of a module with the trained parameters, and nothing else of the trained copy."""
    trained = dict(parameters.module.named_parameters())
    taken = {
        id(parameter): nn.Parameter(trained[name].detach(), parameter.requires_grad)
        for name, parameter in module.named_parameters()
    }
    return _on_device(copy.deepcopy(module, taken), device)


def _on_device(module: nn.Module, device: Any) -> nn.Module:
    module.eval()
    return module if isinstance(device, str) and device == "auto" else module.to(device)


def trained_batch_norms(module: nn.Module) -> list[str]:
    """Names of batch normalisations that were in training mode."""
    kinds = nn.modules.batchnorm._BatchNorm
    return [name for name, part in module.named_modules() if isinstance(part, kinds) and part.training]


def refuse_quantised(module: nn.Module) -> None:
    """Refuse modules with quantised parts, since many of these take their scale from all rows of a pass."""
    for name, part in module.named_modules():
        kind = type(part)
        if kind.__module__.startswith(_QUANTISING):
            where = f"{name!r} ({kind.__module__}.{kind.__name__})"
        elif any(tensor.is_quantized for tensor in _own_tensors(part)):
            where = f"{name!r} ({kind.__name__} with a quantised tensor)"
        else:
            continue
        raise ValueError(
            f"module has a quantised part, {where}, and the scale of quantised numbers may come from all "
            "rows of a pass, so that one row moves the losses of others; pass the module in float32."
        )


def _own_tensors(part: nn.Module) -> list[torch.Tensor]:
    tensors = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
    return tensors + [value for value in vars(part).values() if isinstance(value, torch.Tensor)]


def select_parameters(module: nn.Module, trainable: object) -> ModuleParameters:
    """The parameters selected by ``trainable``, by default all that require gradients."""
    every = dict(module.named_parameters())
    if not every:
        raise ValueError("module has no parameters, so there is nothing to train; pass one with parameters.")
    names = _selected([name for name, value in every.items() if value.requires_grad], list(every), trainable)
    short = [name for name in names if every[name].dtype not in (torch.float32, torch.float64)]
    if short:
        raise ValueError(
            f"the parameter {short[0]!r} of module is of dtype {every[short[0]].dtype}, in which small "
            "steps are lost to rounding; convert it to float32, or leave it out by trainable."
        )
    if len({value.device for value in every.values()}) > 1:
        raise ValueError("the parameters of module are on several devices; move them to one.")
    return ModuleParameters(module, names)


def _selected(by_default: list[str], every: list[str], trainable: object) -> list[str]:
    if trainable is None:
        if not by_default:
            raise ValueError("no parameter of module requires gradients; name those to train in trainable.")
        return by_default
    if callable(trainable):
        names = [name for name in every if trainable(name)]
        if not names:
            raise ValueError(
                f"trainable={trainable!r} selects no parameter of module; it has {listed(every)}."
            )
        return names
    prefixes = [trainable] if isinstance(trainable, str) else trainable
    if not isinstance(prefixes, Iterable) or not all(isinstance(prefix, str) for prefix in prefixes):
        raise ValueError(
            f"trainable={trainable!r} must be None, a list of names of parameters or submodules, or a "
            "function of a name."
        )
    prefixes = list(prefixes)
    chosen = [name for name in every if any(_is_within(name, prefix) for prefix in prefixes)]
    idle = [prefix for prefix in prefixes if not any(_is_within(name, prefix) for name in every)]
    if idle or not chosen:
        unknown = repr(idle[0]) if idle else "nothing"
        raise ValueError(
            f"trainable names {unknown}, which no parameter of module begins with; it has {listed(every)}."
        )
    return chosen


def _is_within(name: str, prefix: str) -> bool:
    """Whether a dotted name is ``prefix``, or a part of it."""
    return name == prefix or name.startswith(prefix.rstrip(".") + ".")


def state_of(module: nn.Module) -> dict[str, tuple[str, NDArray[Any]]]:
    """Name of the type, and values, of each parameter and buffer of a module."""
    state = {}
    for name, tensor in module.state_dict().items():
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"module has state {name!r} of type {type(tensor).__name__}, and a saved model holds tensors "
                "alone; keep it with torch.save."
            )
        host = tensor.detach().cpu().contiguous()
        kind = str(host.dtype).removeprefix("torch.")
        state[name] = kind, np.array(host.view(_AS_BITS.get(host.dtype, host.dtype)).numpy())
    return state


def with_state(module: nn.Module, state: Mapping[str, tuple[str, NDArray[Any]]]) -> nn.Module:
    """A copy of a module with the parameters and buffers of :func:`state_of`, in evaluation mode."""
    own = module.state_dict()
    tensors = {}
    for name, (kind, array) in state.items():
        tensor = torch.from_numpy(np.array(array, order="C"))
        dtype = getattr(torch, kind)
        tensors[name] = tensor.view(dtype) if dtype in _AS_BITS else tensor
    described = {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}
    expected = {name: (tuple(t.shape), t.dtype) for name, t in own.items()}
    if described != expected:
        name = sorted(name for name in {*own, *state} if described.get(name) != expected.get(name))[0]
        raise ValueError(
            f"module is not of the architecture that was trained: they differ in {name!r}, which is "
            f"{expected.get(name, 'missing')} in module and {described.get(name, 'missing')} in the file; "
            "pass a module that is built as for the fit."
        )
    trained = copy.deepcopy(module)
    trained.load_state_dict(tensors)
    return trained.eval()


def check_rows(X: object, name: str, minimum: int) -> Array | Tensor:
    """A finite numeric array or tensor of any shape, with at least ``minimum`` rows."""
    rows = X.detach() if isinstance(X, Tensor) else _numbers(X, name)
    if rows.ndim < 2 or 0 in rows.shape[1:]:
        raise ValueError(f"{name} has shape {tuple(rows.shape)}, not (n_samples, ...); pass one entry a row.")
    if len(rows) < minimum:
        raise ValueError(
            f"{name} has {len(rows)} sample(s) while a minimum of {minimum} is required; pass more rows."
        )
    blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
    if not all(_is_finite(block) for block in blocks):
        raise ValueError(
            f"{name} contains NaN or infinity; drop those rows, or impute them with what public rows say."
        )
    return rows


def _numbers(X: object, name: str) -> Array:
    X = numeric_frame(X, name)
    try:
        # A frame has no declared type, see is_single.
        array = np.asarray(X, np.float64) if is_frame(X) else np.asanyarray(X)
    except Exception:  # rows differ in length
        array = np.empty((), dtype=object)
    if array.dtype.kind not in "biuf":
        if is_frame(X):
            check_table(X, name, minimum=0)  # its error names the columns
        raise ValueError(
            f"{name} must hold real or whole numbers, as many in each row; encode everything else."
        )
    return np.asarray(array, dtype=np.float64) if array.dtype.itemsize > 8 else array


def _is_finite(block: Array | Tensor) -> bool:
    return bool(torch.isfinite(block).all()) if isinstance(block, Tensor) else bool(np.isfinite(block).all())


def as_array(rows: Array | Tensor) -> Array:
    """Rows as a NumPy array."""
    if not isinstance(rows, Tensor):
        return rows
    rows = rows.float() if rows.dtype == torch.bfloat16 else rows
    return np.asarray(rows.cpu().numpy())


def as_labels(y: object) -> Any:
    """Labels as NumPy reads them; tensors are moved to main memory."""
    return as_array(y.detach()) if isinstance(y, Tensor) else y


def collect_public(
    X: object,
    y: object,
    names: object,
    private: Array | Tensor,
    check_target: Callable[[Any, str, int, str], Array],
) -> tuple[Array | Tensor, Array] | None:
    """Public rows and labels of one array each, or of tuples of several sources; None without rows."""
    if is_empty(X) and is_empty(y):
        return None
    sources, labels = public_sources(X, y)
    for source in sources:
        check_column_names(source, names)
    rows = [check_rows(source, "X_pub", 1) for source in sources]
    for part in rows:
        if part.shape[1:] != private.shape[1:]:
            raise ValueError(
                f"X_pub has rows of shape {tuple(part.shape[1:])} and X of {tuple(private.shape[1:])}; pass "
                "public rows through the same preparation as the private ones."
            )
    targets = [
        check_target(as_labels(label), "y_pub", len(part), "X_pub")
        for label, part in zip(labels, rows, strict=True)
    ]
    joined = rows[0] if len(rows) == 1 else np.concatenate([as_array(part) for part in rows])
    return joined, np.concatenate(targets)
