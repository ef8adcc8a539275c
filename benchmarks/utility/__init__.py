"""Accuracy under a privacy budget: data sets, methods, tables and figures."""
