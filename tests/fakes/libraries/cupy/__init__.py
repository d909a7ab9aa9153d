"""A pretended CuPy, for tests where no GPU is: NumPy's numbers behind CuPy's rules.

Written from what CuPy 13 to 15 document and do: arrays refuse to become NumPy's unseen, and NumPy's arrays are no
operands; reductions give arrays without an axis; indices that name no place wrap around; some functions and dtypes of
NumPy are missing (here they are missing, too, where any of these versions lacks them); cuSOLVER does not complain. Work
is launched on streams, memory comes from a pool (`_hardware`).
"""

from __future__ import annotations

import numpy as np

from . import _array, _hardware
from . import cuda as cuda
from . import fft as fft
from . import linalg as linalg
from ._array import array as array
from ._array import asarray as asarray
from ._array import asnumpy as asnumpy
from ._array import from_dlpack as from_dlpack
from ._array import ndarray as ndarray
from ._array import on_device, work, wrap
from ._array import take as take
from ._hardware import words

for _name in words(
    "bool_ complex64 complex128 dtype e finfo float16 float32 float64 iinfo inf int8 int16 int32 int64 intp issubdtype "
    "nan newaxis pi promote_types uint8 uint16 uint32 uint64"
):
    globals()[_name] = getattr(np, _name)

__version__ = "13.4.0+pretended"

FUNCTIONS = words(
    "all any append argmax argmin argwhere around array_equal atleast_1d atleast_2d atleast_3d average "
    "broadcast_arrays broadcast_to clip column_stack concatenate convolve corrcoef count_nonzero cov cross cumprod "
    "cumsum diag diagflat diagonal diff digitize dot dstack einsum empty_like expand_dims extract fix flatnonzero "
    "flip fliplr flipud full_like gradient histogram hstack imag inner interp isclose isin kron lexsort logspace "
    "mean median moveaxis nan_to_num nanmax nanmean nanmin nansum ones_like outer pad partition percentile "
    "prod ptp quantile ravel real repeat reshape roll rollaxis rot90 round searchsorted sort split squeeze stack "
    "std sum swapaxes tensordot tile trace transpose tri tril triu unique var vdot vstack where zeros_like"
)
WAITS = {"argwhere", "count_nonzero", "extract", "flatnonzero", "histogram", "unique"}
for _name in FUNCTIONS:
    globals()[_name] = on_device(getattr(np, _name), _name in WAITS)
CREATORS = words("arange empty eye full identity linspace ones zeros")


def _created(function):
    def run(*args, **kwargs):
        if "dtype" in kwargs:
            _array.check_dtype(kwargs["dtype"] or float)
        new = wrap(function(*args, **kwargs))
        _hardware.launch([], [new._chunk])
        return new

    return run


for _name in CREATORS:
    globals()[_name] = _created(getattr(np, _name))


UFUNCS = words(
    "abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or bitwise_xor cbrt "
    "ceil conj conjugate copysign cos cosh deg2rad divide equal exp exp2 expm1 fabs float_power floor floor_divide "
    "fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert isfinite isinf isnan lcm ldexp "
    "left_shift less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
    "logical_xor matmul maximum minimum mod modf multiply negative nextafter not_equal positive power rad2deg "
    "reciprocal remainder right_shift rint sign signbit sin sinh sqrt square subtract tan tanh true_divide trunc"
)
TO_FLOATS = {"ceil", "floor", "rint", "trunc"}
REDUCED = {"add", "multiply"}
ADDED = frozenset(map(np.dtype, words("int32 uint32 uint64 float16 float32 float64")))
COMPARED = frozenset(map(np.dtype, ["int32", "uint32", "uint64", "float32", "float64"]))


class ufunc:  # noqa: N801  # CuPy's name
    """An elementwise function: no `where=`, few reductions, and additions at places by atomic operations."""

    def __init__(self, of_numpy):
        self._of_numpy, self.__name__ = of_numpy, of_numpy.__name__
        self.nin, self.nout = of_numpy.nin, of_numpy.nout

    def __call__(self, *args, out=None, dtype=None, casting="same_kind"):
        given, rest = args[: self.nin], args[self.nin :]
        if self.__name__ in TO_FLOATS and given[0].dtype.kind in "bui":
            given = (given[0].astype(np.result_type(given[0].dtype, np.float16)),)
        for x in given:
            if not isinstance(x, (ndarray, *_array.SCALARS)):
                raise TypeError(f"Unsupported type {type(x)}")
        options = {} if dtype is None else {"dtype": dtype}
        out = rest[0] if rest else out
        if not [x for x in given if isinstance(x, ndarray)]:
            given = tuple([array(x) for x in given])
        return work(self._of_numpy, *given, **options) if out is None else self._into(out, given, options)

    def _into(self, out, given, options):
        result = self._of_numpy(*[getattr(x, "_host", x) for x in given], **options)
        _hardware.launch([x._chunk for x in given if isinstance(x, ndarray)], [out._chunk])
        np.copyto(out._host, result, casting="same_kind")
        return out

    def _of(self, how, *args, **kwargs):
        if self.__name__ not in REDUCED:
            raise NotImplementedError(f"`{self.__name__}.{how}` is not supported yet")
        return work(getattr(self._of_numpy, how), *args, **kwargs)

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        return self._of("reduce", array, axis, dtype, None, keepdims)

    def accumulate(self, array, axis=0, dtype=None, out=None):
        return self._of("accumulate", array, axis, dtype)

    def at(self, a, indices, b=None):
        allowed = ADDED if self.__name__ == "add" else COMPARED if self.__name__ in ("maximum", "minimum") else ()
        if a.dtype not in allowed:
            raise TypeError(f"cupy.{self.__name__}.at does not support {a.dtype}")
        arrays, key = _array._indices(a, indices)
        given = [b] if isinstance(b, ndarray) else []
        _hardware.launch([x._chunk for x in (*arrays, *given)], [a._chunk])
        self._of_numpy.at(a._host, key, b._host if given else b)


for _name in UFUNCS:
    globals()[_name] = ufunc(getattr(np, _name))


def max(a, axis=None, out=None, keepdims=False):  # no `initial`
    return on_device(np.max)(a, axis=axis, keepdims=keepdims)


def min(a, axis=None, out=None, keepdims=False):
    return on_device(np.min)(a, axis=axis, keepdims=keepdims)


def argsort(a, axis=-1, kind=None):
    return a.argsort(axis, kind)


def nonzero(a):
    return a.nonzero()


def copy(a, order="K"):
    return array(a)


def ascontiguousarray(a, dtype=None):
    return a if a.flags.c_contiguous else array(a)


def bincount(x, weights=None, minlength=None):
    return on_device(lambda x, w: np.bincount(x, w, minlength or 0), waits=True)(x, weights)


def take_along_axis(a, indices, axis):
    """As NumPy's, but what names no place is wrapped around."""

    def taken(x, places):
        n = x.size if axis is None else x.shape[axis]
        return np.take_along_axis(x, places % n if n else places, axis)

    return work(taken, a, indices)


def meshgrid(*xi, **kwargs):
    return on_device(np.meshgrid)(*xi, **kwargs)


def astype(x, dtype, copy=True, *, device=None):
    return x.astype(dtype, copy=copy)


def shape(a):
    return a.shape


def ndim(a):
    return a.ndim if hasattr(a, "ndim") else np.ndim(a)


def size(a, axis=None):
    return a.size if axis is None else a.shape[axis]


def result_type(*given):
    return np.result_type(*[getattr(x, "dtype", x) for x in given])


def can_cast(from_, to, casting="safe"):
    return np.can_cast(getattr(from_, "dtype", from_), to, casting)


broadcast_shapes, isscalar = np.broadcast_shapes, np.isscalar


def get_default_memory_pool():
    return _hardware.pool


def get_default_pinned_memory_pool():
    return _hardware.pinned_pool


def get_array_module(*args):
    return __import__("cupy") if [x for x in args if isinstance(x, ndarray)] else np
