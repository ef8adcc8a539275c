"""Attacks on fitted estimators, and lower bounds on epsilon by experiment."""

from ._audit import audit_epsilon
from ._membership import MembershipResult, membership_attack
from ._result import AuditResult
from ._row_epsilons import per_instance_epsilon

__all__ = ["AuditResult", "MembershipResult", "audit_epsilon", "membership_attack", "per_instance_epsilon"]
