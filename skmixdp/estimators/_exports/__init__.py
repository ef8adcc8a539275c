"""Fitted estimators as files and as objects of other libraries."""

from .onnx_model import to_onnx
from .saving import load, save

__all__ = ["load", "save", "to_onnx"]
