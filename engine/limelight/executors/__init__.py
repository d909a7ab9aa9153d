"""Running graphs: `plan` as one compiled Python function, `step` node by node."""
