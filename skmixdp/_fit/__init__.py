"""The fit of a linear head: the list of its releases, and the statistics that they ask for."""
