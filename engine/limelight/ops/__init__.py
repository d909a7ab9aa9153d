"""The ops, in folders by kind: one family a module, one op a block.

A module here is a family of ops with a subject; families never import one another. What they share lies in modules
whose names begin with an underscore, which hold no op: `_shape_rules` (shapes and dtypes of results), `_gradient_terms`
(pieces of gradient formulas), `_kernel_parts` (pieces of kernels), `_given_shape` (ops whose result has a shape that is
asked for), and some of one kind alone.

An op is one block: `defop` with its inputs, static parameters, shape rule, kernel and gradient, then the public
function with its docstring. A function in a family's `__all__` becomes a name of limelight: so an op added to a family
needs no other edit, and a family added needs one line below. The families of `nn`, `random` and `fourier`, and most of
`linalg`, are named by the package of that name instead (`limelight.nn`, ...).

What holds for all blocks (`limelight.core.op` has the fields):

- A gradient rule says by its parameter names what it needs: `g` (the gradient of the output, a tuple where there are
  several), any input's name, `out` (`out_0`, `out_1`: one of several), `<input>_shape`, `<input>_dtype`, any static
  parameter's name. A tape saves exactly that, and only for inputs that are watched. An op with inputs `"*xs"` has one
  rule for all, which returns a tuple. A rule may return None for "not connected"; an op without a gradient says why in
  `why_no_gradient`.
- Gradient rules are written with operators and methods of tensors alone. That is why families need not import one
  another; a method whose name begins with an underscore is there for rules of other families.
- `<input>_shape` is a tuple of ints where all sizes are known, and else a symbolic vector (the op `shape_of`);
  `sum_to`, `broadcast_to` and `reshape` take either. So one rule serves eager tensors, and traces with and without
  unknown sizes.
- Kernels see arrays of one dtype. Where operands differ within a kind (float32 and float64), an `astype` comes first:
  an op itself, and so differentiable and part of the graph. Operands of different kinds are an error, but for floating
  beside complex ones.
- Python numbers stay Python numbers down to the kernel, since NumPy lets them take on the other operand's dtype; only a
  trace makes constants of them. They must fit that kind: `int_tensor + 0.5` is a DTypeError.
- A kernel's result has exactly the shape and dtype that `infer` says, which the tests check for every op.
- Step functions (`floor`, `sign`, comparisons) are not connected rather than of gradient 0: a zero would hide a
  mistake. At a kink `relu` and `abs` are flat, and so are norms of zeros and `std` of equal elements; equal extremes
  share the gradient, and `clip` passes it on at its bounds. (`unconnected_gradients="zero"` makes zeros of what is not
  connected.)
"""

from types import ModuleType
from typing import TYPE_CHECKING

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
from limelight.ops.index.element_place import *  # noqa: F403
from limelight.ops.index.index_update import *  # noqa: F403
from limelight.ops.index.indexing import *  # noqa: F403
from limelight.ops.index.interpolation import *  # noqa: F403
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
from limelight.ops.linalg.norms import cdist as cdist
from limelight.ops.linalg.triangles import *  # noqa: F403
from limelight.ops.linalg.vector_products import *  # noqa: F403
from limelight.ops.nn.convolution import convolve as convolve
from limelight.ops.reduce.averages import *  # noqa: F403
from limelight.ops.reduce.cumulative import *  # noqa: F403
from limelight.ops.reduce.histogram import *  # noqa: F403
from limelight.ops.reduce.integrals import *  # noqa: F403
from limelight.ops.reduce.logsumexp import *  # noqa: F403
from limelight.ops.reduce.quantiles import *  # noqa: F403
from limelight.ops.reduce.reductions import *  # noqa: F403
from limelight.ops.reduce.statistics import *  # noqa: F403
from limelight.ops.shape.broadcast import *  # noqa: F403
from limelight.ops.shape.concat import *  # noqa: F403
from limelight.ops.shape.ensure_shape import *  # noqa: F403
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
if not TYPE_CHECKING:  # type checkers cannot follow it, and go by the imports above, which are all of these
    __all__ = [
        name for name, value in list(globals().items()) if name[0] != "_" and not isinstance(value, ModuleType | type)
    ]
