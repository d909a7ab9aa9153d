"""State that outlives the process: checkpoints, their format, and how they are matched with objects.

`object_graph` finds what has state, `snapshot` and `checkpoint_file` write it, `match_plan` and `restoration` give it
back. docs/checkpoints.md has the format, and what others do.
"""

from __future__ import annotations

from limelight.checkpoint.checkpoint import Checkpoint
from limelight.checkpoint.comparison import compare
from limelight.checkpoint.manager import CheckpointManager
from limelight.checkpoint.match_tree import MatchRecord, MatchTree
from limelight.checkpoint.preview import contents, has_state, preview, root_names, saved_as
from limelight.checkpoint.state import State
from limelight.checkpoint.status import RestoreStatus

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "MatchRecord",
    "MatchTree",
    "RestoreStatus",
    "State",
    "compare",
    "contents",
    "has_state",
    "preview",
    "root_names",
    "saved_as",
]
