"""Fitted estimators as files."""

from .saving import load, load_with_note, model_bytes, save

__all__ = ["load", "load_with_note", "model_bytes", "save"]
