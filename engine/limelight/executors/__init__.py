"""Running graphs: `base` says what an executor is; `plan` runs code, `loops` tables, `xla` programs, `step` nodes."""

from limelight.executors import base, setting
from limelight.executors import step as step
from limelight.executors.loops import loops as _loops  # noqa: F401  # it registers itself
from limelight.executors.plan import plan as _plan  # noqa: F401  # it registers itself; `plan` is the folder's name here
from limelight.executors.xla import xla as _xla  # noqa: F401  # it registers itself where JAX is installed

base.chosen.default = setting.at_first()  # now that it is known which executors there are
