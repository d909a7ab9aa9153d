"""The staged cell: a staged function over the notebook's names, how its body runs, and where a session keeps it."""
