"""Folds: from events to the small JSON state that a view draws.

A fold is a pure class without a screen. It holds names, specs and numbers, never tensors, and engine objects only
weakly, so an open view keeps no memory alive.
"""
