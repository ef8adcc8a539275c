"""Accounting: events, their epsilon, their composition, and calibration of the noise."""
