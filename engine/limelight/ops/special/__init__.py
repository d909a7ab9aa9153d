"""Special functions: SciPy's on the CPU, imported at the first call."""
