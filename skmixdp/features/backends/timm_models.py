"""Networks of timm as encoders."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data import create_transform, resolve_model_data_config
from timm.models import load_state_dict
from torch import Tensor, nn

from ..._utils.validation import COUNT, Kind, Number, check, suggestion
from .images import ImagePreparation
from .loading import check_row_wise, file_hash, loading, weights_hash

_POOLINGS = ("avg", "max")
_LAYER = Number("a whole number", whole=True)


def _as_list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, (list, tuple)) else [value]


def _are_layers(value: object) -> bool:
    numbers = [layer for layer in _as_list(value) if layer != "head"]
    return bool(numbers) and all(map(_LAYER.admits, numbers))


#: What parameters may be besides None: one of these, or a list.
_ALLOWED = {
    "layers": Kind("whole numbers, with 'head' among them if wanted", _are_layers),
    "pooling": Kind(
        f"one or several of {' and '.join(_POOLINGS)}",
        lambda value: bool(value) and all(name in _POOLINGS for name in _as_list(value)),
    ),
    "image_size": Kind(
        "a positive whole number or a list of two",
        lambda value: len(_as_list(value)) in (1, 2) and all(map(COUNT.admits, _as_list(value))),
    ),
}


def load(
    model_name: str,
    pretrained: bool | str | os.PathLike[str],
    layers: object,
    pooling: object,
    image_size: int | tuple[int, int] | None,
    model_args: Mapping[str, Any] | None,
    preprocessing: Mapping[str, Any] | None,
) -> "TimmEncoder":
    """The encoder that these parameters of ``TimmFeatures`` describe."""
    parameters = {"layers": layers, "pooling": pooling, "image_size": image_size}
    for name, value in parameters.items():
        check(name, value, _ALLOWED[name], None)
    chosen = {name: None if value is None else _as_list(value) for name, value in parameters.items()}
    size = None if image_size is None else tuple((2 * _as_list(image_size))[:2])
    module, origin = _create(model_name, pretrained, model_args or {})
    check_row_wise(module, model_name)
    resize: Any = getattr(module, "set_input_size", None)
    if size is not None and resize is not None:
        resize(img_size=size)  # positions of transformers are interpolated
    config = resolve_model_data_config(module)
    channels = int((model_args or {}).get("in_chans", config["input_size"][0]))
    config["input_size"] = (channels, *(size or config["input_size"][1:]))
    config |= dict(preprocessing or {})
    for name in ("mean", "std"):
        if len(config[name]) != channels:
            raise ValueError(
                f"preprocessing has no {name} for images of {channels} channels (now {config[name]!r}); give "
                f"preprocessing={{'mean': ..., 'std': ...}} with {channels} numbers each."
            )
    try:
        transform = create_transform(**config, is_training=False)
    except (TypeError, KeyError) as error:
        raise ValueError(
            f"preprocessing={preprocessing!r} does not fit timm's create_transform ({error}); use entries of "
            "its data configuration, such as mean, std, interpolation and crop_pct."
        ) from error
    preparation = ImagePreparation(transform, channels)
    return TimmEncoder(
        module, preparation, model_name, origin, config["input_size"], chosen["layers"], chosen["pooling"]
    )


class TimmEncoder:
    """Pooled outputs of a timm network without classifier, or of several of its layers."""

    def __init__(
        self,
        module: Any,
        preparation: ImagePreparation,
        model_name: str,
        origin: dict[str, Any],
        input_size: Sequence[int],
        layers: list[Any] | None,
        poolings: list[str] | None,
    ) -> None:
        self.module: Any = module.to(memory_format=torch.channels_last).eval()
        self.preparation = preparation
        self._layers = layers
        self._poolings = poolings
        with torch.inference_mode():
            self.n_outputs = int(self._trial_pass(torch.zeros((1, *input_size)), model_name).shape[1])
        self.description: dict[str, Any] = {
            "library": "timm",
            "model": model_name,
            "weights": {**origin, "sha256": weights_hash(module)},
            "preprocessing": repr(preparation),
            "layers": layers,
            "pooling": poolings,
        }

    def forward(self, batch: Tensor) -> Tensor:
        module, layers, poolings = self.module, self._layers, self._poolings
        if layers is None:
            return module(batch) if poolings is None else self._pooled(module.forward_features(batch))
        numbers = [layer for layer in layers if layer != "head"]
        options: dict[str, Any] = {"indices": numbers, "norm": True, "output_fmt": "NCHW"}
        if "head" not in layers:
            outputs = module.forward_intermediates(batch, intermediates_only=True, stop_early=True, **options)
            return torch.cat([self._pooled(output) for output in outputs], dim=1)
        final, outputs = module.forward_intermediates(batch, **options)
        head = module.forward_head(final, pre_logits=True)
        return torch.cat([*(self._pooled(output) for output in outputs), head], dim=1)

    def _pooled(self, output: Any) -> Tensor:
        """Positions pooled in each requested way, and concatenated: (n, features)."""
        if output.ndim == 4:
            last = getattr(self.module, "output_fmt", "NCHW") == "NHWC" and self._layers is None
            output = output.flatten(1, 2) if last else output.flatten(2).transpose(1, 2)
        else:
            output = output[:, getattr(self.module, "num_prefix_tokens", 0) :]
        poolings = self._poolings or ["avg"]
        parts = [output.mean(dim=1) if pooling == "avg" else output.amax(dim=1) for pooling in poolings]
        return torch.cat(parts, dim=1)

    def _trial_pass(self, batch: Tensor, model_name: str) -> Tensor:
        """A trial pass: the output of a batch, refused unless it consists of rows."""
        try:
            rows = self.forward(batch)
        except (AssertionError, TypeError, AttributeError) as error:
            raise ValueError(
                f"layers={self._layers!r} and pooling={self._poolings!r} are not available in model "
                f"{model_name!r} ({error}); choose others, or leave both at None."
            ) from error
        if rows.ndim != 2:
            raise ValueError(
                f"model {model_name!r} gives outputs of shape {tuple(rows.shape)} and not rows; set pooling."
            )
        return rows


def _create(
    model_name: str, pretrained: object, model_args: Mapping[str, Any]
) -> tuple[nn.Module, dict[str, Any]]:
    """The network without a classifier, and the origin of its weights."""
    if not isinstance(pretrained, (bool, str, os.PathLike)):
        raise TypeError(f"pretrained={pretrained!r} must be True, False or the path of a checkpoint.")
    path = None if isinstance(pretrained, bool) else Path(pretrained)
    if path is not None and not path.is_file():
        raise ValueError(f"pretrained={str(pretrained)!r} is not a file; give a checkpoint, or True.")
    architecture = model_name.partition(".")[0]
    if ":" not in model_name and not timm.is_model(architecture):
        similar = suggestion(architecture, timm.list_models(), n=3)
        raise ValueError(
            f"model_name={model_name!r} is not a model of timm; "
            f"{f'{similar}?' if similar else 'timm.list_models() has their names.'}"
        )
    arguments = {**model_args, "num_classes": 0}
    remedy = "check model_args and the name"
    if pretrained is True:
        remedy = "check the tag of the weights, or, where there is no network, pass pretrained=path"
    with loading(f"model_name={model_name!r} cannot be made", remedy):
        module = timm.create_model(model_name, pretrained=pretrained is True, **arguments)
    if path is None:
        config = getattr(module, "pretrained_cfg", {})
        origin = (
            "random weights"
            if pretrained is False
            else config.get("hf_hub_id") or config.get("url") or "timm"
        )
        return module, {"origin": origin, "tag": config.get("tag")} if pretrained else {"origin": origin}
    _load_checkpoint(module, path, model_name)
    return module, {"origin": str(path), "file_sha256": file_hash(path)}


def _load_checkpoint(module: nn.Module, path: Path, model_name: str) -> None:
    """Load a checkpoint into a network that has no classifier."""
    what = f"pretrained={str(path)!r} does not hold weights of {model_name!r}"
    with loading(what, "check the file, the model's name and model_args"):
        state = load_state_dict(str(path))
        named = getattr(module, "pretrained_cfg", {}).get("classifier", ())
        classifier = tuple(f"{name}." for name in ([named] if isinstance(named, str) else named))
        names = set(module.state_dict())
        module.load_state_dict(
            {key: value for key, value in state.items() if key in names or not key.startswith(classifier)}
        )
