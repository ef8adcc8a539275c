"""Warnings and errors of their own kind."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private rows that the guarantee does not cover."""


class BudgetExceededError(RuntimeError):
    """A charge does not fit into what is left of a data set's budget; nothing was released."""
