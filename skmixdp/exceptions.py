"""Warnings of their own kind."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private rows that the guarantee does not cover."""
