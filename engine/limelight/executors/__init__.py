"""Running graphs: `base` says what an executor is; `plan` runs one compiled Python function, `step` node by node."""

from limelight.executors import step as step  # each registers its executor
from limelight.executors.plan import plan as plan
