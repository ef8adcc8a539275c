"""What a fit learns outside of its steps: maps of rows, class shares, comparisons of heads, shrinkage."""
