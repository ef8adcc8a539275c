"""Sources of private rows and their interface, maps from features to rows, checks of tables and labels."""
