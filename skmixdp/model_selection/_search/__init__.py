"""A search over parameters with one budget."""
