"""Warnings and errors of the library."""

from .privacy.ledger._account import BudgetExceededError
from .privacy.noise import NotPrivateWarning
from .privacy.report import PrivacyLeakWarning

__all__ = ["BudgetExceededError", "NotPrivateWarning", "PrivacyLeakWarning"]
