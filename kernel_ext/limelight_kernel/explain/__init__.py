"""What is said of a staged cell: why it was traced, what it does while tracing alone, why a gradient is None."""
