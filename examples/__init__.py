"""Programs that the documentation shows. A package, so that no other `examples` is imported instead."""
