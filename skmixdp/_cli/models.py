"""The networks of ``extract``, by the first word of ``--model``."""

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .._utils.validation import listed, shown
from ..features import OpenClipFeatures, ScatteringFeatures, TimmFeatures
from .arguments import passed
from .messages import InputError

#: The transformer of each family, and an example of ``--model``. Without a name there are no weights.
FAMILIES: Mapping[str, tuple[Callable[..., Any], str]] = {
    "timm": (TimmFeatures, "timm:resnet50"),
    "open-clip": (OpenClipFeatures, "open-clip:ViT-B-32"),
    "scattering": (ScatteringFeatures, "scattering"),
}


#: Parameters of all transformers that extraction and prediction have.
READING_FLAGS = {"device": "--device", "on_error": "--on-error"}


def make_transformer(args: argparse.Namespace, model: str, weights: str | None, options: str | None) -> Any:
    """The transformer of a ``--model``, its ``--weights``, ``--options`` and other flags."""
    prefix, _, name = model.partition(":")
    examples = ", ".join(example for _, example in FAMILIES.values())
    if prefix not in FAMILIES:
        raise InputError(f"--model {model} starts with none of the known families; use one like {examples}.")
    transformer, example = FAMILIES[prefix]
    if (":" in example) != bool(name):
        raise InputError(f"--model {model} is written like {example}; fix the name.")
    if weights is not None and not name:
        raise InputError(f"--weights {weights} was given and {prefix} has none; leave it out.")
    parameters = passed(args, transformer) | {"verbose": int(sys.stderr.isatty() and not args.quiet)}
    parameters |= {"model_name": name} if name else {}
    if weights is not None:
        parameters["pretrained"] = weights
    for key, value in _read_options(options).items():
        allowed = [key for key in inspect.signature(transformer).parameters if key not in parameters]
        if key not in allowed:
            raise InputError(
                f"--options names {key!r}, which is not among the other parameters of {prefix}, "
                f"{listed(allowed, 20)}; use one of these."
            )
        parameters[key] = value
    return transformer(**parameters)


def extract_images(transformer: Any, images: Any, where: str, command: str) -> Any:
    """The extraction of images; the names of skipped ones go to stderr."""
    extraction = transformer.extract(images)
    if len(extraction.features) == 0:
        raise InputError(f"{where}: none of the {len(extraction.skipped)} images could be read.")
    for item in extraction.skipped:
        sys.stderr.write(f"skmixdp {command}: skipped {item.name}, which {item.reason}\n")
    return extraction


def absolute_weights_path(weights: str | None) -> str | None:
    """The absolute path of weights in a file; names of published weights stay as they are."""
    return str(Path(weights).resolve()) if weights is not None and Path(weights).is_file() else weights


def _read_options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        options = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'--options {shown(text)} is not JSON ({error}); write it like {{"a": 1}}.'
        ) from error
    if not isinstance(options, dict):
        raise InputError(f'--options {shown(text)} must be a JSON object; write it like {{"a": 1}}.')
    return options
