"""Metrics and thresholds from noisy histograms of private rows."""
