"""Benchmarks that asv tracks over commits."""
