"""Ops that change shapes, and the order of axes and elements."""
