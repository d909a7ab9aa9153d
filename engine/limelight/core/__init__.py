"""Read first: dtypes, specs, devices, tensors, variables, ops, and how ops are dispatched."""
