"""The arrays of the pretended library: what NumPy would compute, behind what CuPy allows."""

from __future__ import annotations

import functools

import numpy as np

from . import _hardware as hardware

KINDS = frozenset("?bhilqBHILQefdFD")
SCALARS = (bool, int, float, complex, np.generic)


def check_dtype(dtype):
    dtype = np.dtype(dtype)
    if dtype.char not in KINDS:
        raise ValueError(f"Unsupported dtype {dtype}")
    return dtype


def owner(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class ndarray:  # noqa: N801  # CuPy's name
    """An array on a device. What it holds is known at once, and to be seen by those for whom it is computed."""

    __slots__ = ("__weakref__", "_data", "_host", "base")
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        self._host = np.empty(shape, check_dtype(dtype), order)
        self.base = None
        self.data = hardware.pool.malloc(self._host.nbytes)

    @property
    def data(self):
        hardware.asked_for[self._data.ptr] = self  # who passes an address on has asked for it before
        return self._data

    @data.setter
    def data(self, memptr):
        self._data = memptr

    @property
    def _chunk(self):
        return self.data.mem.chunk

    # what it is

    dtype = property(lambda self: self._host.dtype)
    shape = property(lambda self: self._host.shape)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: self._host.flags)

    @property
    def device(self):
        from .cuda import Device

        return Device(self.data.device_id)

    @property
    def T(self):
        return on_device(np.transpose)(self)

    @property
    def real(self):
        return on_device(lambda x: x.real)(self)

    @real.setter
    def real(self, value):
        self.real[...] = value

    @property
    def imag(self):
        return on_device(lambda x: x.imag)(self)

    @imag.setter
    def imag(self, value):
        imag = wrap(self._host.imag, (self,))
        imag[...] = value

    # the host's view of it

    def get(self, stream=None, order="C", out=None, blocking=True):
        hardware.counts["to host"] += 1
        stream = stream or hardware.get_current_stream(self.data.device_id)
        token = hardware.launch([self._chunk], [], stream)
        if blocking:
            stream.synchronize()
            if out is None:
                return np.array(self._host, order=order)
            out[...] = self._host
            return out
        out = np.empty(self.shape, self.dtype) if out is None else out
        hardware.begin_copy(hardware.CopyToHost(token, out, self._host))
        return out

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if (arr.dtype, arr.shape) != (self.dtype, self.shape):
            raise TypeError("another dtype or shape")
        token = hardware.launch([], [self._chunk], stream)
        self._host[...] = arr
        hardware.counts["to device"] += 1
        if hardware.is_pinned(arr):
            hardware.begin_copy(hardware.CopyFromHost(token, arr))
        else:
            (stream or hardware.get_current_stream()).synchronize()

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        import cupyx.scipy.special

        import cupy

        name = ufunc.__name__
        function = getattr(cupy, name, None) or getattr(cupyx.scipy.special, name, None)
        if function is None:
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return (function if method == "__call__" else getattr(function, method))(*inputs, **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        import cupy

        try:
            home = functools.reduce(getattr, func.__module__.split(".")[1:], cupy)
            function = getattr(home, func.__name__)
        except AttributeError:
            return NotImplemented
        return NotImplemented if function is func else function(*args, **kwargs)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if dl_device is not None and tuple(dl_device) == (1, 0):
            return self.get().__dlpack__()
        if copy is True:
            raise BufferError("copy=True only supported for copy to CPU.")
        return Capsule(self)

    def __dlpack_device__(self):
        return (2, self.data.device_id)

    def item(self):
        return self.get().item()

    def tolist(self):
        return self.get().tolist()

    def tobytes(self, order="C"):
        return self.get().tobytes()

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __complex__(self):
        return complex(self.get())

    def __index__(self):
        return self.get().__index__()

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        return repr(self.get()) if self.size else f"array([], dtype={self.dtype})"

    # indexing

    def __getitem__(self, key):
        arrays, key = _indices(self, key)
        if not arrays and Ellipsis not in (parts := key if isinstance(key, tuple) else (key,)):
            key = (*parts, Ellipsis)  # a view, where NumPy would give a number
        return work(lambda x: x[key], self, extra=arrays)

    def __setitem__(self, key, value):
        if isinstance(value, np.ndarray) and value.shape:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        if not isinstance(value, (ndarray, np.ndarray, *SCALARS)):
            raise TypeError(f"Unsupported type {type(value)}")
        arrays, key = _indices(self, key)
        given = [value] if isinstance(value, ndarray) else []
        hardware.launch([x._chunk for x in (*arrays, *given)], [self._chunk])
        self._host[key] = value._host if given else value

    def fill(self, value):
        self[...] = value


def _indices(x, key):
    """The arrays of an index, and the index in NumPy's terms: what names no place is wrapped around, not refused."""
    parts = list(key) if isinstance(key, tuple) else [key]
    arrays = [part for part in parts if isinstance(part, ndarray)]
    found, axis = [], 0
    dots = sum(
        1 if not hasattr(part, "ndim") or part.dtype != bool else part.ndim for part in parts if part is not None
    )
    for part in parts:
        array = (
            part._host
            if isinstance(part, ndarray)
            else np.asarray(part)
            if isinstance(part, (list, np.ndarray))
            else None
        )
        if array is None:
            found.append(part)
            axis += x.ndim - dots + 1 if part is Ellipsis else part is not None
        elif array.dtype == bool:
            hardware.counts["waits"] += 1
            found.append(array)
            axis += array.ndim
        else:
            n = x.shape[axis]
            found.append(array % n if n and array.size else array)
            axis += 1
    return arrays, tuple(found) if isinstance(key, tuple) else found[0]


class Capsule:
    """What DLPack hands over: here the array itself."""

    def __init__(self, array):
        self.array = array


# Work on the device


def work(function, *args, extra=(), **kwargs):
    """What NumPy's `function` gives for arrays of the device: launched on the current stream, but for views."""
    found = list(extra)
    host_args = [_to_host(x, found) for x in args]
    host_kwargs = {name: _to_host(x, found) for name, x in kwargs.items()}
    with np.errstate(all="ignore"):
        result = function(*host_args, **host_kwargs)
    several = isinstance(result, (tuple, list))
    wrapped = [_of_result(r, found) for r in (result if several else [result])]
    made = [x for x in wrapped if isinstance(x, ndarray) and x.base is None and not any(x is y for y in found)]
    written = [x._chunk for x in (*made, *([kwargs["out"]] if kwargs.get("out") is not None else []))]
    if written:  # a view is no work
        hardware.launch([x._chunk for x in found if x._chunk not in written], written)
    return type(result)(wrapped) if type(result) in (tuple, list) else tuple(wrapped) if several else wrapped[0]


def _to_host(x, found):
    if isinstance(x, ndarray):
        found.append(x)
        return x._host
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    return type(x)([_to_host(y, found) for y in x]) if type(x) in (tuple, list) else x


def _of_result(result, found):
    if not isinstance(result, (np.ndarray, np.generic, bool, int, float, complex)):
        return result
    for x in found:
        if result is x._host:
            return x
    if isinstance(result, np.ndarray):
        root = owner(result)
        for x in found:
            if root is owner(x._host):
                return view(x, result)
    return wrap(np.asarray(result))


def view(x, host):
    new = object.__new__(ndarray)
    new._host, new.base = host, x if x.base is None else x.base
    new.data = hardware.MemoryPointer(new.base.data.mem, _address(host) - _address(new.base._host))
    return new


def _address(host):
    return host.__array_interface__["data"][0]


def wrap(host):
    """A new array on the current device with these values."""
    new = object.__new__(ndarray)
    check_dtype(host.dtype)
    new._host = np.array(host) if host.base is not None else host
    new.base, new.data = None, hardware.pool.malloc(host.nbytes)
    return new


def on_device(function, waits=False):
    """NumPy's `function` as one of the device; with `waits` the host has to see what comes out of it."""

    @functools.wraps(function, updated=())
    def run(*args, **kwargs):
        result = work(function, *args, **kwargs)
        if waits:
            hardware.get_current_stream().synchronize()
        return result

    return run


METHODS = hardware.words(
    "all any argmax argmin clip conj conjugate copy cumprod cumsum diagonal dot flatten max mean min prod ravel "
    "repeat reshape round squeeze std sum swapaxes trace transpose var view"
)
for _name in METHODS:
    setattr(ndarray, _name, on_device(getattr(np.ndarray, _name)))
BINARY = hardware.words("add and floordiv lshift matmul mod mul or pow rshift sub truediv xor")
for _name in ("neg", "pos", "abs", "invert", *BINARY, *[f"r{name}" for name in BINARY]):
    setattr(ndarray, f"__{_name}__", on_device(getattr(np.ndarray, f"__{_name}__")))


def _astype(self, dtype, order="K", casting=None, subok=None, copy=True):
    check_dtype(dtype)
    if not copy and self.dtype == dtype:
        return self
    return work(np.ndarray.astype, self, np.dtype(dtype))


ndarray.astype = _astype


def _compared(name):
    def run(self, other):
        return work(getattr(np.ndarray, name), self, other.item() if _is_number(other) else other)

    return run


def _is_number(x):
    return isinstance(x, np.ndarray) and not x.ndim


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ndarray, f"__{_name}__", _compared(f"__{_name}__"))


def _in_place(name):
    ufunc = getattr(np, name)

    def run(self, other):
        work(ufunc, self, other, out=self)
        return self

    return run


for _sign, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}.items():
    setattr(ndarray, f"__i{_sign}__", _in_place(_name))


def take(a, indices, axis=None, out=None, mode="wrap"):
    """As NumPy's, but what names no place is wrapped around."""
    indices = indices if isinstance(indices, ndarray) else wrap(np.asarray(indices))
    return work(lambda x, places: np.take(x, places, axis, mode="wrap"), a, indices)


def _sort(self, axis=-1, kind=None):
    if kind not in (None, "stable"):
        raise ValueError(f"unsupported sort kind: {kind}")
    hardware.launch([], [self._chunk])
    self._host.sort(axis=axis, kind="stable")


def _argsort(self, axis=-1, kind=None):
    if kind not in (None, "stable"):
        raise ValueError(f"unsupported sort kind: {kind}")
    return work(lambda x: np.argsort(x, axis=axis, kind="stable"), self)


def _nonzero(self):
    if not self.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use cp.atleast_1d(scalar).nonzero() instead.")
    return on_device(np.nonzero, waits=True)(self)


ndarray.take, ndarray.sort, ndarray.argsort, ndarray.nonzero = take, _sort, _argsort, _nonzero


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    """An array on the current device: of the host's memory by way of a pinned buffer, for which nobody waits."""
    if isinstance(obj, ndarray):
        elsewhere = obj.data.device_id != hardware.local.device
        if not elsewhere and not copy and dtype in (None, obj.dtype):
            return obj
        new = wrap(np.array(obj._host, dtype))
        hardware.launch([obj._chunk], [new._chunk], peer=elsewhere)
        return new
    if isinstance(obj, (list, tuple)) and any(isinstance(x, ndarray) for x in obj):
        return work(lambda *xs: np.stack(xs), *[array(x) for x in obj])
    host = np.array(obj, None if dtype is None else check_dtype(dtype), ndmin=ndmin)
    new = wrap(host)
    token = hardware.launch([], [new._chunk])
    if host.ndim:  # a number goes with the launch
        hardware.counts["to device"] += 1
        if hardware.is_pinned(obj):
            hardware.begin_copy(hardware.CopyFromHost(token, obj))
        else:
            hardware.counts["staging"] += 1
    if blocking:
        hardware.get_current_stream().synchronize()
    return new


def asarray(a, dtype=None, order=None, *, copy=None, blocking=False):
    return array(a, dtype, copy=bool(copy), blocking=blocking)


def asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def from_dlpack(array, *, device=None, copy=None):
    """The same memory; only what lies on a device is taken."""
    if array.__dlpack_device__()[0] != 2:
        raise BufferError("CPU arrays cannot be directly imported to CuPy")
    given = array.__dlpack__(stream=1).array
    return view(given, given._host)
