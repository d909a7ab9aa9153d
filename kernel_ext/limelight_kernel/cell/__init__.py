"""A cell's text: parsed, compiled, its lines known to tracebacks; its statements, and the cell as a function."""
