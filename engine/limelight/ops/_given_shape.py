"""Ops whose result has a shape that is given: as static sizes, or in a trace as a vector known only at run time.

Each is a pair of ops with one kernel and one set of rules: `name`, with the static parameter `shape`, and
`name_dynamic`, with an integer vector `shape` as an input and the static parameter `rank`. Callers do not see which of
the two they got. (`slice` and `dynamic_slice` in `index.indexing` are such a pair for positions.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from limelight.core import device_scopes, dispatch, dtypes, shapes
from limelight.core.devices import Device
from limelight.core.eager import entry_point
from limelight.core.op import defop, get
from limelight.core.shapes import Shape
from limelight.core.spec import TensorSpec, known
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import CallError, LimelightError, ShapeError
from limelight.user_code import unknown_sizes

_Fn = TypeVar("_Fn", bound=Callable[..., Any])


def defop_with_shape(
    name: str,
    *,
    inputs: str = "",
    attrs: str = "",
    infer: Callable[..., TensorSpec],
    kernel: Callable[..., Any],
    batching: str | None = None,
    dynamic_batching: str = "loop",
    **fields: Any,
) -> Callable[..., Tensor]:
    """Defines a pair of ops and returns `run(inputs, shape, *attrs)`, where `shape` is a tuple or a tensor.

    Args:
        name: the op's; that of its form with a shape known only at run time is `<name>_dynamic`.
        inputs: the names of its tensor inputs, without the shape.
        attrs: the names of its static parameters, without the shape.
        infer: the shape rule, `infer(*specs, *attrs, shape)`.
        kernel: `kernel(xp, *arrays, *attrs, shape)`.
        batching: the `batching` field of the op with a static shape.
        dynamic_batching: that of the other one.
        **fields: the others of `defop`. A gradient rule that names `shape` gets whichever form was given.

    Returns:
        What runs one op or the other.
    """
    static = entry_point(defop(
        name, inputs=inputs, attrs=f"{attrs} shape", infer=infer, kernel=kernel, batching=batching, **fields
    ))  # fmt: skip
    n_inputs = len(inputs.split())

    def infer_dynamic(*arguments: Any) -> TensorSpec:
        specs, parameters, rank = arguments[:n_inputs], arguments[n_inputs + 1 : -1], arguments[-1]
        sizes = arguments[n_inputs].content or (None,) * rank  # what the trace knows of the vector's elements
        sizes = tuple([None if n is None or n < 0 else n for n in sizes])
        return known(sizes, infer(*specs, *parameters, (None,) * rank).dtype)

    on_host = f"shape {fields.get('on_host', '')}"  # its kernel makes a tuple of it
    special = {library: _of_vector(n_inputs, other) for library, other in fields.get("special", {}).items()}
    dynamic = entry_point(defop(
        f"{name}_dynamic",
        inputs=f"{inputs} shape:integer",
        attrs=f"{attrs} rank",
        infer=infer_dynamic,
        kernel=_of_vector(n_inputs, kernel),
        batching=dynamic_batching,
        **fields | {"on_host": on_host, "special": special},
    ))  # fmt: skip
    single_operand = n_inputs == 1 and ":" not in inputs and fields.get("effect") is None

    def run(operands: tuple[Any, ...], shape: Any, *parameters: Any) -> Tensor:
        if isinstance(shape, Tensor):
            return dynamic((*operands, shape), *parameters, rank_of(shape))
        return static(operands[0] if single_operand else operands, *parameters, shape)

    return run


def _of_vector(n_inputs: int, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is given the shape as a vector behind its inputs, and a rank, of one that is given a tuple."""

    def kernel_dynamic(xp: Any, *arguments: Any) -> Any:
        arrays, shape, parameters = arguments[:n_inputs], arguments[n_inputs], arguments[n_inputs + 1 : -1]
        return kernel(xp, *arrays, *parameters, tuple([int(n) for n in shape]))

    return kernel_dynamic


def rank_of(shape: Tensor) -> int:
    """The number of sizes in a shape that is a tensor."""
    if shape.ndim != 1 or shape.shape[0] is None:
        raise ShapeError(
            f"a shape must be a vector of known length, got {shape.spec}; for the shape of x write x.shape, or "
            "ll.zeros_like(x) and its like"
        )
    return shape.shape[0]


def as_shape(like: Any) -> Shape | Tensor:
    """What a public function got as a shape: a tuple of sizes, or a tensor as it is."""
    if isinstance(like, Tensor):
        return like if like.ndim else as_tensor(like).reshape((1,))  # a scalar is a vector's length, as an int is
    try:
        sizes = shapes.as_shape(like)
    except ShapeError:
        vector = sizes_as_vector(like)
        if vector is None:
            raise
        return vector
    if None in sizes:
        given = "None" if like is None else shapes.show(sizes)
        x = unknown_sizes.here().tensor
        raise ShapeError(
            f"a shape needs all its sizes, got {given}; where {x}.shape has None, a size unknown while tracing, write "
            f"{x}.sizes(), or ll.shape_of({x})"
        )
    return sizes


def sizes_as_vector(sizes: Any) -> Tensor | None:
    """The vector of `sizes` among which are some of a trace, such as ll.shape_of(x)[0]; None for any others."""
    if type(sizes) not in (tuple, list) or all(type(n) is Tensor or not isinstance(n, Tensor) for n in sizes):
        return None
    if any(not isinstance(n, (int, Tensor)) for n in sizes):
        return None
    parts = tuple([as_tensor(n).astype("int64").reshape(()) for n in sizes])
    return cast(Tensor, dispatch.apply(get("stack"), parts, (0,)))


def run_on_device(device: str | Device, make: Callable[..., Tensor], *given: Any, **options: Any) -> Tensor:
    """`make(*given, **options)` on `device`."""
    with device_scopes.device(device):
        return make(*given, **options)


def hide_rest_parameter(function: _Fn) -> _Fn:
    """`function`, which takes `*rest` only to say what is wrong with it, without that in its signature.

    That costs 10 ns a call. A wrapper around every op would cost more, so elsewhere wrong keywords get a note on
    Python's own error (`user_code.hints`).
    """
    full = inspect.signature(function)
    shown = [x for x in full.parameters.values() if x.kind is not x.VAR_POSITIONAL]
    function.__signature__ = full.replace(parameters=shown)  # type: ignore[attr-defined]  # functions take attributes
    return function


def keyword_error(op: str, given: tuple[Any, ...], rest: tuple[Any, ...]) -> CallError:
    """What to raise where `rest` followed `given`: a dtype, which is a keyword, or the other sizes of a shape."""
    if len(given) == 1 and all(isinstance(n, int) for n in (*given, *rest)):
        return CallError(f"{op}: the sizes are one argument; write ll.{op}({(*given, *rest)})")
    before = "".join([f"{'x' if isinstance(x, Tensor) else repr(x)}, " for x in given])
    try:
        dtype = f"ll.{dtypes.dtype(rest[0]).name}"
    except (LimelightError, TypeError):
        dtype = "..."
    return CallError(f"{op}: dtype and device are given by name; write ll.{op}({before}dtype={dtype})")
