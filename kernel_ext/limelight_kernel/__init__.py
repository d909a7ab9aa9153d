"""The notebook extension: `%load_ext limelight`, `%%stage`, and the magics that show what the engine does.

The rooms, each above those that it uses: `magics` (a magic is a file, registered in `registry`), `run` (a cell from its
magic to what it leaves in the notebook), `report` (the annotated cell as text and HTML), `staged` (the staged cell and
its body), `explain` (fixes, side effects, missing gradients), `inputs` (the names that a cell reads, and how values
travel), `cell` (text to code) and `line` (arguments, options, completion). `tracebacks` shows the user's frames alone.

How a cell is staged, and why so:

- `inputs.cell_names` finds the names that the cell reads before it assigns them; what helper functions of the notebook
  read in turn counts as read (`inputs.helper_reads`). These are the keyword arguments of one staged function for each
  cell (`staged.staged_cell`).
- The body is compiled as a module (`cell.compiled_cell`) and traced in the notebook's own namespace, with the inputs
  standing in it as symbolic tensors; then every name is put back (`staged.execution`). A function of locals would be
  simpler, but helpers would not see what the cell has assigned, and `global`, `del` and class bodies would mean
  something else.
- A graph returns tensors. All else that a cell assigns (functions, strings, numbers, tapes) is made once, while
  tracing, and is written back as it was then (`staged.cell_body`).
- Nothing is written back before all has gone well, so an error or an interrupt leaves the notebook as it was.
"""

from limelight_kernel.extension import load_ipython_extension as load_ipython_extension
from limelight_kernel.extension import session_of as session_of
from limelight_kernel.extension import unload_ipython_extension as unload_ipython_extension
from limelight_kernel.report.result import StageResult as StageResult
from limelight_kernel.staged.staged_cell import StagedCell as StagedCell
