"""Whether a second run of a function does what the first one did: a number for all that its results are computed from.

Each tensor that is made in a run has a hash of its op, the op's parameters, and the hashes of its inputs (hash-consing,
Ershov 1958): equal numbers say that the results come of the same ops on the same things. Arguments are known by their
places, variables and generators by what has been done to them, tensors that were there before by their uids, and what
the function makes of Python's or NumPy's numbers by value.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from limelight.core import device_copies
from limelight.core.op import Op
from limelight.core.tensor import Tensor, new_uid
from limelight.core.variable import Resource
from limelight.ops.create.literal import constant_op, literal_value
from limelight.staging.symbolic import SymbolicTensor

_BY_VALUE: Final = frozenset([int, bool, str, bytes, type(None)])


class RunFingerprint:
    """Follows one run.

    Args:
        arguments: the tensors and variables among the function's arguments.
        begin: tensors with smaller uids were there before the first run; now, by default.
    """

    def __init__(self, arguments: Sequence[Any], begin: int = 0) -> None:
        self._hashes: dict[int, int] = {}
        self._states: dict[int, int] = {}  # what has been done to variables and generators
        self.begin = begin or new_uid()
        for i, x in enumerate(arguments):
            if not isinstance(x, (Tensor, Resource)):  # an opaque value, in the gradient of a py_func
                continue
            x._uid = x._uid or new_uid()
            self._hashes[x._uid] = hash(("argument", i))

    def of_op(self, op: Op, inputs: Sequence[Any], attrs: Sequence[Any]) -> int:
        """The hash of what an op is about to do."""
        if op.effect == "read":
            return self._of_input(inputs[0])
        return hash((op.name, *map(self._of_input, inputs), *map(_of_parameter, attrs)))

    def note(self, op: Op, inputs: Sequence[Any], done: int, results: Any) -> None:
        """Told what the op has made; `done` is its hash."""
        if op.effect not in (None, "read") or op.higher_order:
            for x in inputs:
                if isinstance(x, Resource):
                    self._states[x._uid] = done
        for i, y in enumerate(results) if op.multiple else ((0, results),):
            y._uid = y._uid or new_uid()
            self._hashes[y._uid] = done + i

    def of_results(self, results: Sequence[Any]) -> int:
        """The number of the run."""
        return hash(tuple([self._of_input(y) for y in results]))

    def _of_input(self, x: Any) -> int:
        if isinstance(x, Resource):
            return hash((self._hashes.get(x._uid, x._uid), self._states.get(x._uid, 0)))
        uid = getattr(x, "_uid", None)
        if uid is None:
            return _of_parameter(x)
        if uid == 0:
            uid = x._uid = new_uid()
        known = self._hashes.get(uid)
        if known is None:
            known = self._hashes[uid] = uid if uid < self.begin else _of_new(x)
        return known


def _of_new(x: Any) -> int:
    """Of what no op has made: NumPy's or Python's numbers by value; other tensors that no tape has met by uid."""
    if type(x) is Tensor:
        return _of_array(device_copies.on_host(x._data, x._device, "fingerprint of a run"))
    if isinstance(x, SymbolicTensor):
        node = x._value.node
        if node is not None and node.op is constant_op:
            return _of_array(literal_value(node.params))
    return int(x._uid)


def _of_array(array: Any) -> int:
    array = np.ascontiguousarray(array)
    is_text = array.dtype.kind not in "biufcV"
    content = hash(str(array.tolist())) if is_text else zlib.crc32(array.view(np.uint8))
    return hash((array.shape, str(array.dtype), content))


def _of_parameter(value: Any) -> int:
    """Of a parameter or a Python number by value; of any other object by its type."""
    kind = type(value)
    if kind in _BY_VALUE:
        return hash((kind.__name__, value))
    if kind is float or kind is complex:
        return hash(repr(value))  # NaN is itself, and zeros have signs
    if kind is tuple:
        return hash(tuple(map(_of_parameter, value)))
    return hash(kind.__name__)


def followed(
    fingerprint: RunFingerprint | None, below: Any, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]
) -> Any:
    """What the interpreter `below` makes of an op, told to the fingerprint, if there is one.

    Args:
        fingerprint: of the run in progress.
        below: the interpreter that runs the op.
        op: the op.
        inputs: its inputs.
        attrs: its parameters.
    """
    if fingerprint is None:
        return below.process(op, inputs, attrs)
    done = fingerprint.of_op(op, inputs, attrs)
    results = below.process(op, inputs, attrs)
    fingerprint.note(op, inputs, done, results)
    return results
