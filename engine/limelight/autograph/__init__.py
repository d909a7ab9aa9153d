"""Python's `if`, `while` and `for` on tensors, rewritten from the source into `cond`, `while_loop` and `scan`.

`diastatic-malt` (TensorFlow's AutoGraph as a library of its own) takes the source apart; it is imported when the first
function is converted. What it emits are calls of operators, and those are ours (`operators`): whatever a tensor decides
is staged, whatever Python knows while tracing stays Python. See docs/design.md section 8.
"""

from __future__ import annotations

from limelight.autograph.conversion import Converted as Converted
from limelight.autograph.notebook_cells import converted_cell as converted_cell
