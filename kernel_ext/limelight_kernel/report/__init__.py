"""The annotated report of a run: a mark for each line, what became of each op, gradients, times; as text and HTML."""
