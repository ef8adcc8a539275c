"""Comparisons with other libraries and with the papers."""
