"""What every folder may import: checks of parameters and rows, files written whole, and progress bars."""
