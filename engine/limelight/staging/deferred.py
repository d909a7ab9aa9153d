"""Deferred captures: values that are looked up at each call rather than when a function is traced.

A `Deferred` is a tensor without data, which a trace captures as it does any other; `ConcreteFunction` asks it for the
value at each call. A call inside another trace captures the handle again, so that the outer function looks it up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.core.devices import CPU0
from limelight.core.dtypes import DType
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor, as_tensor, beside, new_uid
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.staging.trace_branch import tracing
from limelight.user_code import source_line


class Deferred(Tensor):
    """A tensor whose value is looked up whenever it is needed."""

    __slots__ = ("_fn", "_line", "_spec")
    _fn: Callable[[], Any]
    _line: source_line.Source | None
    _spec: TensorSpec

    @property
    def _data(self) -> Any:
        return self.look_up()._data

    @property
    def spec(self) -> TensorSpec:
        return self._spec

    @property
    def dtype(self) -> DType:
        return self._spec.dtype

    @property
    def shape(self) -> Shape:
        return self._spec.shape

    @property
    def ndim(self) -> int:
        return len(self._spec.shape)

    @property
    def nbytes(self) -> int:
        return 0  # it keeps no value

    def now(self) -> Tensor:
        """The value for this call; this handle itself while a trace is made, which is to look it up later."""
        return self if tracing() is not None else self.look_up()

    def look_up(self) -> Tensor:
        """The value, checked. Raises DTypeError or ShapeError for one that does not fit the spec."""
        value = self._fn()
        tensor = beside(value, self._spec.dtype)
        if self._spec.accepts(tensor.spec):
            return tensor
        kind = DTypeError if tensor.dtype != self._spec.dtype else ShapeError
        where = source_line.at(self._line)
        raise kind(f"deferred: the value looked up at this call is {tensor.spec}, the trace needs {self._spec}{where}")

    def __repr__(self) -> str:
        return f"<deferred {self._spec}{source_line.at(self._line)}>"


def deferred(fn: Callable[[], Any], spec: TensorSpec | None = None) -> Tensor:
    """A captured value that is looked up at each call of the staged function in which this line is traced.

    A tensor that a function closes over is captured when it is traced; rebinding its name later is not seen. Deferred,
    it is: `fn` runs at each call, before the graph does, and once for each `deferred`. Gradients flow to the tensor
    that was looked up. The graph keeps `fn` alive, and so what it closes over.

    Args:
        fn: a function without arguments that returns a tensor, array or number.
        spec: the `ll.TensorSpec` that each value must fit, with None for sizes that change; by default that of the
            value now.

    Returns:
        A symbolic tensor in a trace; outside a trace, the value now.

    Raises:
        DTypeError: a value has another dtype than `spec` (at the call).
        ShapeError: a value has another shape than `spec` (at the call).
        ArgumentError: `fn` cannot be called, or `spec` is no `ll.TensorSpec`.

    >>> import limelight as ll
    >>> scale = ll.constant(2.0)
    >>> @ll.function
    ... def f(x):
    ...     return x * ll.deferred(lambda: scale)
    >>> f(ll.constant(3.0)).item()
    6.0
    >>> scale = ll.constant(5.0)
    >>> f(ll.constant(3.0)).item(), f.trace_count
    (15.0, 1)
    """
    if not callable(fn):
        raise ArgumentError(f"deferred: fn must be a function, got {type(fn).__name__}; write `lambda: value`")
    if spec is not None and not isinstance(spec, TensorSpec):
        raise ArgumentError(f"deferred: spec must be an ll.TensorSpec, got {type(spec).__name__}")
    handle = object.__new__(Deferred)
    handle._fn = fn
    handle._line = source_line.user_line()
    handle._device = CPU0
    handle._uid = new_uid()
    if spec is None:
        value = as_tensor(fn())
        spec = value.spec
    handle._spec = spec.ranked("deferred")
    tracer = tracing()
    return handle.look_up() if tracer is None else tracer.captured_as(handle)
