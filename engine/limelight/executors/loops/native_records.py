"""limelight-native, told the types that tables are written with."""

from __future__ import annotations

import functools
from typing import Any

from limelight.executors.loops import native_loops
from limelight.executors.loops.instructions import Guard, Instruction
from limelight.executors.loops.layout import Buffer, View


@functools.cache
def native() -> Any:
    """The module."""
    module = native_loops.native()
    module.use_records(View, Instruction, Guard, Buffer)
    return module
