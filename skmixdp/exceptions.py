"""Warnings and errors of their own kind."""


class PrivacyLeakWarning(UserWarning):
    """Something was read from private rows that the guarantee does not cover."""


class NotPrivateWarning(UserWarning):
    """A seed takes the place of secret noise, so what is about to be released is not private.

    Where that is meant, as in tests and demonstrations, silence the category with
    ``warnings.simplefilter("ignore", NotPrivateWarning)``.
    """


class BudgetExceededError(RuntimeError):
    """A charge does not fit into what is left of a data set's budget; nothing was released."""
