"""Warnings and errors of the library."""


class PrivacyLeakWarning(UserWarning):
    """A fit reads something from private rows that the guarantee does not cover."""


class NotPrivateWarning(UserWarning):
    """A seed replaces secret noise, so the result is not private.

    If this is intended, as in tests and demonstrations, silence the warning with
    ``warnings.simplefilter("ignore", NotPrivateWarning)``.
    """


class BudgetExceededError(RuntimeError):
    """A charge exceeds the remaining budget of a data set; nothing was released."""
