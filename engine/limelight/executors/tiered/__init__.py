"""Tiered execution: a function runs on the plan at once, and compiled once that has been measured to be faster."""
