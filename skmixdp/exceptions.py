"""Warnings and errors of the library."""

from .privacy import BudgetExceededError, NotPrivateWarning, PrivacyLeakWarning

__all__ = ["BudgetExceededError", "NotPrivateWarning", "PrivacyLeakWarning"]
