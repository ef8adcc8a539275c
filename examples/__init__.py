"""What the documentation shows, as programs; a package, so that no other of this name is taken for it."""
