"""Running graphs: `base` says what an executor is; `plan` runs one compiled Python function, `step` node by node."""

from limelight.executors import step as step
from limelight.executors.plan import plan as _plan  # noqa: F401  # it registers itself; `plan` is the folder's name here
