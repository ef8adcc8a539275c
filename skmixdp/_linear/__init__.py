"""Linear heads: losses, per-row gradients and their bounds, products and sums with stated rounding."""
