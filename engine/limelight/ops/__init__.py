"""The ops: one family a module, one op a block. This package's own names are the public functions of all families."""

from limelight.ops.along import *  # noqa: F403  # each family lists its public names in __all__
from limelight.ops.arithmetic import *  # noqa: F403
from limelight.ops.broadcasting import *  # noqa: F403
from limelight.ops.casting import *  # noqa: F403
from limelight.ops.comparison import *  # noqa: F403
from limelight.ops.converting import *  # noqa: F403
from limelight.ops.creation import *  # noqa: F403
from limelight.ops.diagonals import *  # noqa: F403
from limelight.ops.exponential import *  # noqa: F403
from limelight.ops.floats import *  # noqa: F403
from limelight.ops.gathering import *  # noqa: F403
from limelight.ops.hyperbolic import *  # noqa: F403
from limelight.ops.indexing import *  # noqa: F403
from limelight.ops.joining import *  # noqa: F403
from limelight.ops.limits import *  # noqa: F403
from limelight.ops.logarithms import *  # noqa: F403
from limelight.ops.logic import *  # noqa: F403
from limelight.ops.permuting import *  # noqa: F403
from limelight.ops.products import *  # noqa: F403
from limelight.ops.reductions import *  # noqa: F403
from limelight.ops.repeating import *  # noqa: F403
from limelight.ops.scans import *  # noqa: F403
from limelight.ops.sets import *  # noqa: F403
from limelight.ops.shaping import *  # noqa: F403
from limelight.ops.signs import *  # noqa: F403
from limelight.ops.sorting import *  # noqa: F403
from limelight.ops.special_bessel import *  # noqa: F403
from limelight.ops.special_gamma import *  # noqa: F403
from limelight.ops.special_incomplete import *  # noqa: F403
from limelight.ops.special_logs import *  # noqa: F403
from limelight.ops.special_normal import *  # noqa: F403
from limelight.ops.statistics import *  # noqa: F403
from limelight.ops.triangles import *  # noqa: F403
from limelight.ops.trigonometry import *  # noqa: F403
from limelight.ops.types import *  # noqa: F403
from limelight.ops.vectors import *  # noqa: F403
