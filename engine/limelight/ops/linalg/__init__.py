"""Linear algebra: matrices are the last two axes. `limelight.linalg` has the public names."""
