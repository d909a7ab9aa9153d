"""The executor `plan`: a graph as one straight-line Python function."""
