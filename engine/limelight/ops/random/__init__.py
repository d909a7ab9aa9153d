"""Draws from distributions. `limelight.random` has the public names."""
