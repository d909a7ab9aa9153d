"""Recordings that play in a page without a kernel: an inline script, and a table where scripts do not run."""
