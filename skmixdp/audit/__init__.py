"""Attacks on fitted estimators, and lower bounds on epsilon by experiment."""

from ._audit import audit_epsilon
from ._claims import per_instance_epsilon
from ._membership import MembershipResult, membership_attack
from ._result import AuditResult

__all__ = ["AuditResult", "MembershipResult", "audit_epsilon", "membership_attack", "per_instance_epsilon"]
