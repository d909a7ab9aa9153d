"""Indexing, look-ups, updates at an index, segments, sorting and sets."""
