"""Groups for ops that stand by themselves in a lane of many: a loss written out, and its gradient."""

from __future__ import annotations

import numpy as np

from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import NOBODY, NodeColumns

LEAST = 4  # ops of a lane that are worth a box of their own
LANES = {"loss": "loss", "backward": "loss"}
"""What the group of each lane is called: what a gradient begins with belongs to the loss."""


def gather(graph: State, columns: NodeColumns) -> None:
    """Puts the loose ops of the loss, and those that its gradient begins with, into a group each, in a described graph.

    Nothing is changed where there is no backward lane, or where less would be drawn with the ops by themselves.
    """
    loose: dict[str, list[int]] = {}
    for index in columns.where(lambda kind: kind["lane"] in LANES):
        if columns.group[index] == NOBODY:
            loose.setdefault(columns.kind_of(index)["lane"], []).append(index)
    if "backward" not in loose:
        return
    folded = columns.noted("folded_into")
    for lane, members in loose.items():
        drawn = [index for index in members if index not in folded]
        if len(drawn) < LEAST:
            continue
        name = LANES[lane]
        group = {"id": f"{lane}:({name})", "parent": -1, "kind": "scope", "title": name, "label": name}
        ops = int(np.count_nonzero(columns.flags(drawn)[columns.boxes]))
        group |= {"path": f"({name})", "lane": lane, "size": len(members), "ops": ops, "bytes": 0, "saved": 0}
        columns.group[members] = len(graph["groups"])
        graph["groups"].append(group)
