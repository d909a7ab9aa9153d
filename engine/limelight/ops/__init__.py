"""The ops: one family a module, one op a block. This package's own names are the public functions of all families."""

from limelight.ops.arithmetic import *  # noqa: F403  # each family lists its public names in __all__
from limelight.ops.casting import *  # noqa: F403
from limelight.ops.comparison import *  # noqa: F403
from limelight.ops.creation import *  # noqa: F403
from limelight.ops.diagonals import *  # noqa: F403
from limelight.ops.exponential import *  # noqa: F403
from limelight.ops.gathering import *  # noqa: F403
from limelight.ops.indexing import *  # noqa: F403
from limelight.ops.joining import *  # noqa: F403
from limelight.ops.limits import *  # noqa: F403
from limelight.ops.logic import *  # noqa: F403
from limelight.ops.permuting import *  # noqa: F403
from limelight.ops.products import *  # noqa: F403
from limelight.ops.reductions import *  # noqa: F403
from limelight.ops.repeating import *  # noqa: F403
from limelight.ops.scans import *  # noqa: F403
from limelight.ops.shaping import *  # noqa: F403
from limelight.ops.signs import *  # noqa: F403
from limelight.ops.special_bessel import *  # noqa: F403
from limelight.ops.special_gamma import *  # noqa: F403
from limelight.ops.special_incomplete import *  # noqa: F403
from limelight.ops.special_logs import *  # noqa: F403
from limelight.ops.special_normal import *  # noqa: F403
from limelight.ops.statistics import *  # noqa: F403
from limelight.ops.trigonometry import *  # noqa: F403
