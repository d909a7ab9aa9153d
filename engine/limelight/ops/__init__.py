"""The ops: one family a module, one op a block. This package's own names are the public functions of all families."""

from types import ModuleType

from limelight.ops.create.conversion import *  # noqa: F403
from limelight.ops.create.creation import *  # noqa: F403
from limelight.ops.create.dtype_queries import *  # noqa: F403
from limelight.ops.elementwise.arithmetic import *  # noqa: F403
from limelight.ops.elementwise.casting import *  # noqa: F403
from limelight.ops.elementwise.comparison import *  # noqa: F403
from limelight.ops.elementwise.complex import *  # noqa: F403
from limelight.ops.elementwise.exponential import *  # noqa: F403
from limelight.ops.elementwise.extremes import *  # noqa: F403
from limelight.ops.elementwise.floats import *  # noqa: F403
from limelight.ops.elementwise.hyperbolic import *  # noqa: F403
from limelight.ops.elementwise.identity import *  # noqa: F403
from limelight.ops.elementwise.logarithms import *  # noqa: F403
from limelight.ops.elementwise.logic import *  # noqa: F403
from limelight.ops.elementwise.powers import *  # noqa: F403
from limelight.ops.elementwise.rounding import *  # noqa: F403
from limelight.ops.elementwise.signs import *  # noqa: F403
from limelight.ops.elementwise.trigonometry import *  # noqa: F403
from limelight.ops.elementwise.where import *  # noqa: F403
from limelight.ops.index.along_axis import *  # noqa: F403
from limelight.ops.index.at_property import *  # noqa: F403
from limelight.ops.index.index_update import *  # noqa: F403
from limelight.ops.index.indexing import *  # noqa: F403
from limelight.ops.index.one_hot import *  # noqa: F403
from limelight.ops.index.scatter import *  # noqa: F403
from limelight.ops.index.segment_products import *  # noqa: F403
from limelight.ops.index.segments import *  # noqa: F403
from limelight.ops.index.sort import *  # noqa: F403
from limelight.ops.index.take import *  # noqa: F403
from limelight.ops.index.top_k import *  # noqa: F403
from limelight.ops.index.unique import *  # noqa: F403
from limelight.ops.linalg.diagonals import *  # noqa: F403
from limelight.ops.linalg.einsum import *  # noqa: F403
from limelight.ops.linalg.matmul import *  # noqa: F403
from limelight.ops.linalg.triangles import *  # noqa: F403
from limelight.ops.linalg.vector_products import *  # noqa: F403
from limelight.ops.reduce.cumulative import *  # noqa: F403
from limelight.ops.reduce.histogram import *  # noqa: F403
from limelight.ops.reduce.logsumexp import *  # noqa: F403
from limelight.ops.reduce.quantiles import *  # noqa: F403
from limelight.ops.reduce.reductions import *  # noqa: F403
from limelight.ops.reduce.statistics import *  # noqa: F403
from limelight.ops.shape.broadcast import *  # noqa: F403
from limelight.ops.shape.concat import *  # noqa: F403
from limelight.ops.shape.flip import *  # noqa: F403
from limelight.ops.shape.pad import *  # noqa: F403
from limelight.ops.shape.repeat import *  # noqa: F403
from limelight.ops.shape.reshape import *  # noqa: F403
from limelight.ops.shape.transpose import *  # noqa: F403
from limelight.ops.special.bessel import *  # noqa: F403
from limelight.ops.special.entropies import *  # noqa: F403
from limelight.ops.special.error_function import *  # noqa: F403
from limelight.ops.special.gamma import *  # noqa: F403
from limelight.ops.special.incomplete_gamma_beta import *  # noqa: F403
from limelight.ops.special.sinc import *  # noqa: F403

# The kinds (`nn`, `linalg`, `random`) are folders here, and no names for the facade, where others have theirs.
__all__ = [
    name for name, value in list(globals().items()) if name[0] != "_" and not isinstance(value, ModuleType | type)
]
