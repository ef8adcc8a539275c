"""Fitted estimators as files and as objects of other libraries."""

from typing import Any

from ..._utils.registry import Registry
from .saving import load, load_with_note, model_bytes, save

#: Functions that write a fitted estimator as a model of another library, by name.
EXPORTERS: Registry[Any] = Registry(
    {"onnx": "_export.onnx_model:to_onnx", "sklearn": "_export.sklearn_model:to_sklearn"}
)

__all__ = ["EXPORTERS", "load", "load_with_note", "model_bytes", "save"]
