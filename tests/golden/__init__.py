"""Fits that must not change when code moves: seeded, on made-up rows, with their coefficients on file."""
