"""Preprocessing that costs no privacy: fitted on public rows alone."""

from ._public_only import PublicOnly

__all__ = ["PublicOnly"]
