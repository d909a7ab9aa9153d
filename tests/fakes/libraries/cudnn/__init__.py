"""A pretended front end of cuDNN over the pretended CuPy: graphs of one convolution, by sums over all places.

Written from what version 1.20 does: tensors are described by sizes and strides with channels before space, filters see
channels of their group, plans run at addresses, on the stream of a handle, and what cuDNN has no kernel for is refused
when support is checked.
"""

from __future__ import annotations

import enum
import itertools
import sys

import numpy as np
from cupy import _hardware

__version__ = "1.20.0+pretended"
heur_mode = enum.Enum("heur_mode", "A B FALLBACK")
data_type = enum.Enum("data_type", "FLOAT HALF DOUBLE")
numerical_note = enum.Enum("numerical_note", "TENSOR_CORE DOWN_CONVERT_INPUTS NONDETERMINISTIC")
_names = itertools.count(1)
_streams = {}
counts = _hardware.counts


class cudnnGraphNotSupportedError(Exception):  # noqa: N801  # cuDNN's name
    """There is no kernel for a graph."""


def backend_version():
    return 91900


def create_handle():
    handle = next(_names)
    _streams[handle] = 0
    return handle


def set_stream(handle, stream):
    _streams[handle] = stream


class _Tensor:
    def __init__(self, dim=None, stride=None):
        self.dim, self.stride, self._uid = dim, stride, next(_names)

    def get_uid(self):
        return self._uid

    def set_output(self, is_output):
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self

    def set_data_type(self, dtype):
        return self

    def of(self, array):
        """The elements at the address of an array, as (batch, *space, channels)."""
        strides = [n * array.itemsize for n in self.stride]
        assert all(n > 0 for n in self.stride)
        flat = array._host.reshape(-1)
        assert flat.base is not None or array._host.ndim == 1, "in one piece"
        assert flat.size == np.prod(self.dim)
        view = np.lib.stride_tricks.as_strided(flat, self.dim, strides)
        return np.moveaxis(view, 1, -1)


class pygraph:  # noqa: N801  # cuDNN's name
    """A graph of one operation."""

    def __init__(self, io_data_type, intermediate_data_type, compute_data_type, handle):
        self._dtype, self._steps, self._avoided = io_data_type, [], []

    def tensor(self, name, dim, stride, data_type):
        assert len(dim) >= 4
        assert len(dim) == len(stride)
        return _Tensor(list(dim), list(stride))

    def _operation(self, kind, first, second, pre_padding, post_padding, stride, dilation):
        self._kind, self._operands, self._result = kind, (first, second), _Tensor()
        self._margins, self._stride, self._dilation = pre_padding, stride, dilation
        self._even = pre_padding == post_padding
        assert len(pre_padding) == len(stride) == len(dilation) == len(first.dim) - 2
        return self._result

    def conv_fprop(self, image, weight, **where):
        return self._operation("f", image, weight, **where)

    def conv_dgrad(self, loss, filter, **where):
        return self._operation("d", loss, filter, **where)

    def conv_wgrad(self, image, loss, **where):
        return self._operation("w", image, loss, **where)

    def validate(self):
        self._steps.append("validate")

    def build_operation_graph(self):
        self._steps.append("build_operation_graph")

    def create_execution_plans(self, modes):
        self._steps.append("create_execution_plans")

    def deselect_numeric_notes(self, notes):
        self._steps.append("deselect_numeric_notes")
        self._avoided += notes

    def check_support(self):
        self._steps.append("check_support")
        x, _, _ = self._roles()
        if not self._even or self._dtype is data_type.DOUBLE or max(x.dim[2:]) > 1000:  # say
            raise cudnnGraphNotSupportedError("no engine")

    def build_plans(self):
        wanted = "validate build_operation_graph create_execution_plans deselect_numeric_notes check_support"
        assert " ".join(self._steps) == wanted

    def get_workspace_size(self):
        return 128

    def _roles(self):
        (a, b), c = self._operands, self._result
        return {"f": (a, b, c), "d": (c, b, a), "w": (a, c, b)}[self._kind]

    def execute(self, places, workspace, handle):
        counts["cudnn"] += 1
        stream = sys.modules["cupy"].cuda.get_current_stream()
        assert _streams[handle] == stream.ptr
        assert not any(address % 16 for address in places.values()), "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER"
        arrays = {name: _hardware.asked_for[address] for name, address in places.items()}
        result = arrays.pop(self._result.get_uid())
        _hardware.launch([x._chunk for x in arrays.values()], [result._chunk])
        arrays[self._result.get_uid()] = result
        x, w, y = [tensor.of(arrays[tensor.get_uid()]) for tensor in self._roles()]
        self._compute(x.astype(float), w.astype(float), y.astype(float), self._result.of(result))

    def _compute(self, x, w, y, out):
        """Over all places of the window; the filters as (filters, *window, channels)."""
        margins = [(0, 0), *[(m, m) for m in self._margins], (0, 0)]
        padded, total = np.pad(x, margins), np.zeros(out.shape)
        into = np.zeros(padded.shape)
        groups = x.shape[-1] // w.shape[-1]
        for place in np.ndindex(*w.shape[1:-1]):
            where = (slice(None), *[
                slice(i * d, i * d + (n - 1) * s + 1, s)
                for i, d, s, n in zip(place, self._dilation, self._stride, y.shape[1:-1], strict=True)
            ])  # fmt: skip
            for g in range(groups):
                here, these = (np.split(np.arange(n), groups)[g] for n in (x.shape[-1], y.shape[-1]))
                taps = w[(these, *place)]
                if self._kind == "f":
                    total[..., these] += padded[where][..., here] @ taps.T
                elif self._kind == "d":
                    into[where][..., here] += y[..., these] @ taps
                else:
                    over = tuple(range(y.ndim - 1))
                    total[(these, *place)] += np.tensordot(y[..., these], padded[where][..., here], (over, over))
        inside = (slice(None), *[slice(m, m + n) for m, n in zip(self._margins, x.shape[1:-1], strict=True)])
        out[...] = into[inside] if self._kind == "d" else total
