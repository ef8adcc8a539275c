"""Measurements and reproductions; run with ``python -m``."""
