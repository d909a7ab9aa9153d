"""Tensors from shapes, Python values and other libraries' arrays; questions about dtypes."""
