"""Speed and memory of skmixdp, as ratios to plain matrix products of the same shape."""
