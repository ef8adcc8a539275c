"""Torch modules as models, and private rows in tensors."""
