"""Fitted estimators as files and as objects of other libraries."""

from .onnx_model import to_onnx
from .saving import load, load_with_note, model_bytes, save

__all__ = ["load", "load_with_note", "model_bytes", "save", "to_onnx"]
