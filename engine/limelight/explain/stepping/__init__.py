"""A call step by step: what Python does while it is traced, what the passes change, what runs, and what comes back."""
