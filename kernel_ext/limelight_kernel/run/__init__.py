"""Running a cell from its magic: trace, run, write back, and count the traces that were made."""
