"""Python's `if`, `while` and `for` on tensors, rewritten from the source into `cond`, `while_loop` and `scan`.

- `diastatic-malt` (TensorFlow's AutoGraph as a library of its own) takes the source apart: it finds which variables a
  block reads and assigns, and lowers `break`, `continue` and `return` to flags. It is a default dependency, as it is
  small (170 kB, pure Python, one dependency of its own), and imported when the first function is converted. Its loader,
  its rewriting of errors and its call tree are not used.
- What it emits are calls of operators, and those are ours (`operators`). A statement is staged when its condition is a
  symbolic tensor, at that moment; whatever Python knows while tracing stays Python. So a loop that Python knows goes on
  unrolling, and is staged from the iteration on whose condition is a tensor.
- Converted are functions, methods, lambdas, callable objects and partials of the user's, as they are called
  (`converted_calls`), functions handed to limelight's own, and `__init__`; not libraries, properties and operators, nor
  what runs in a function that is staged without `autograph`. Library code that calls what it was given earlier asks
  `core.autograph_hook` for it: converting the library's source would refuse what it does to its own objects.
- Converting a small function takes 10 ms, once for each code object (`transpiler`). A trace of converted code takes 1.2
  times that of the same program written with `cond`; cached calls pay nothing.
"""

from __future__ import annotations

from limelight.autograph.conversion import Converted as Converted
from limelight.autograph.notebook_cells import converted_cell as converted_cell
