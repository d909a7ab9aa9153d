"""`cond`, `switch`, `while_loop`, `scan`, `py_func`, `custom_gradient`, `recompute_grad`: ops over graph functions."""
