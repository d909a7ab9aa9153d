"""Staging: signatures, the trace cache, graph functions and their gradients, control flow, ways out of a trace."""
