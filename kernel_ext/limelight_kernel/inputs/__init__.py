"""The inputs of a staged cell: the names that it reads, what helpers read for it, and how each value travels."""
