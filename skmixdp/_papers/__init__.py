"""Algorithms of papers, with their queries."""
