"""What a fit releases apart from its steps: maps of rows, class shares, comparisons of heads, shrinkage."""
