"""Rows in files and memory maps: readers of formats, and sources that map rows again in every pass."""
