"""Batching rules, by kind of op."""
