"""Warnings and errors of their own kind."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private rows that the guarantee does not cover."""


class BudgetExceededError(ValueError):
    """A charge would exceed the budget; nothing was released."""
