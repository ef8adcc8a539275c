"""Fitted estimators as files."""
