"""Algorithms of papers, with their queries, and the classifier of zeroth order."""
