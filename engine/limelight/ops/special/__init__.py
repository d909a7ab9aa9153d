"""Special functions, by way of SciPy."""
