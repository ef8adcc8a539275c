"""Checks that find leaks: steps that learn from private rows without a budget."""
