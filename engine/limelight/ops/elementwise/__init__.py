"""Ops of each element."""
