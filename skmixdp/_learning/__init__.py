"""What a fit learns apart from its steps: maps of rows, class shares, comparisons of heads and shrinkage."""
