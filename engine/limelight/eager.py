"""Eager execution: the interpreter at the bottom of every stack, and the entry points that ops are called through.

An entry point takes the shortest path when nothing special is going on (`dispatch.active` is empty, operands are
CPU:0 tensors of one accepted dtype) and otherwise prepares its operands and goes through `dispatch.apply`. The closures
below repeat a few lines, because a shared helper would cost as much as the kernels they call.
"""

from __future__ import annotations

import itertools
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight import backends, devices, dispatch, dtypes, events, source
from limelight.devices import CPU0, Device
from limelight.dispatch import active, apply, local, scopes
from limelight.dtypes import DType
from limelight.errors import DeviceError, DTypeError, LimelightError, RunError, is_user_error
from limelight.registry import KINDS, Op, accepted
from limelight.tensor import Opaque, Tensor, as_tensor, constant, put, wrap

# NumPy reports overflow and division by zero as warnings; tensors follow IEEE silently. See docs/design.md section 3.
warnings.filterwarnings("ignore", message=".*encountered in", category=RuntimeWarning, module=r"limelight(\.|$)")

_SCALARS: Final = (bool, int, float, complex)
_WEAK: Final = {  # beside which dtypes a Python scalar takes on theirs, in NumPy as well as here
    int: frozenset(d for d in dtypes.ALL if d != dtypes.bool_),
    float: frozenset(d for d in dtypes.ALL if dtypes.is_inexact(d) and d != dtypes.bfloat16),
}
_new = object.__new__


class Eager(dispatch.Interpreter):
    """Runs each op at once, on the device that the scope asks for, else where its operands are."""

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if op.direct and not scopes:
            data = _shortest(op, inputs, attrs)
            if data is not None:
                return wrap(data)
        if op.higher_order:
            return _call(op, inputs, attrs)
        device = place(op, inputs, attrs)
        payloads = [_payload(op, x, device) for x in inputs]
        start = time.perf_counter()
        try:
            result = op.kernel_on(device.backend)(*payloads, *attrs)
        except LimelightError:
            raise
        except Exception as error:
            if is_user_error(error):
                raise
            raise explain(op, inputs, attrs, error) from error
        outputs = tuple([_handle(r, device) for r in result]) if op.multiple else wrap(result, device)
        if events.wanted(events.OpRan) or events.wanted(events.Allocated):
            _report(op, inputs, outputs if op.multiple else (outputs,), device, time.perf_counter() - start)
        return outputs


    def constant(self, array: Any, device: Device | None) -> Tensor:
        return put(array, device or CPU0)


dispatch.set_base(Eager())


def _call(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    """Runs an op whose parameters are staged functions: their graphs place their own ops and outputs."""
    start = time.perf_counter()
    payloads = [x if type(x) in _SCALARS else x._data for x in inputs]
    results = op.kernel_on("numpy")(*payloads, *attrs)
    places = attrs[0].output_devices([x._device for x in inputs[-len(attrs[0].graph.inputs) :]])
    places += [CPU0] * (len(results) - len(places))
    outputs = tuple([_handle(r, d) for r, d in zip(results, places, strict=True)])
    if events.wanted(events.OpRan) or events.wanted(events.Allocated):
        _report(op, inputs, outputs, places[0] if places else CPU0, time.perf_counter() - start)
    return outputs


def _handle(result: Any, device: Device) -> Any:
    return wrap(result, device) if hasattr(result, "dtype") else Opaque(result, device)


def _shortest(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    """The kernel's result when all operands are CPU:0 tensors, else None."""
    try:
        if len(inputs) == 2:
            x, y = inputs
            if type(x) is Tensor and type(y) is Tensor and x._device is CPU0 and y._device is CPU0:
                if attrs:
                    return op.numpy_kernel(x._data, y._data, *attrs)
                return op.numpy_kernel(x._data, y._data)
            return None
        payloads = [x._data for x in inputs if type(x) is Tensor and x._device is CPU0]
        return op.numpy_kernel(*payloads, *attrs) if len(payloads) == len(inputs) else None
    except LimelightError:
        raise
    except Exception as error:
        raise explain(op, inputs, attrs, error) from error


def place(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...] = ()) -> Device:
    """Where `op` runs: where its parameters say, or with its variable, or where asked, or with its first tensor operand.

    Raises DeviceError when variables on different devices meet in one op.
    """
    if op.placement is not None:
        return op.placement(*attrs)
    homes = {x._device for x in inputs if not isinstance(x, (Tensor, *_SCALARS)) and hasattr(x, "_device")}
    if len(homes) > 1:
        raise DeviceError(f"{op}: its variables live on different devices: {', '.join(sorted(d.short for d in homes))}")
    if homes:
        return homes.pop()
    requested = dispatch.requested_device()
    if requested is not None:
        return requested
    return next((x._device for x in inputs if isinstance(x, Tensor)), CPU0)


def move(tensor: Any, device: Device, cause: str) -> Any:
    """The payload of `tensor` on `device`, copied if it is elsewhere."""
    data, home = tensor._data, tensor._device
    if home is device:
        return data
    here, there = backends.load(home.backend), backends.load(device.backend)
    copied = here.copy(data) if here is there else there.from_numpy(here.to_numpy(data))
    if device is not CPU0:
        devices.mark_in_use()
    if events.wanted(events.Copied):
        events.emit(events.Copied(home.short, device.short, int(data.nbytes), cause, source.user_line()))
    return copied


def explain(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], error: Exception) -> Exception:
    """The error to raise when a kernel failed: the op's own shape rule says it best, if it objects too."""
    try:
        op.infer(*[_spec(x) for x in inputs], *attrs)
    except LimelightError as better:
        return type(better)(f"{better}{source.at(source.user_line())}")
    specs = ", ".join(str(_spec(x)) for x in inputs)
    return RunError(f"{op}({specs}) failed: {type(error).__name__}: {error}{source.at(source.user_line())}")


def prepare(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands ready for an interpreter: tensors, variables where they belong, Python scalars; dtypes checked and met.

    Raises DTypeError when uniform operands are of different kinds, or of a kind that the op does not accept.
    """
    if op.variadic:
        handles = [as_tensor(x) for x in inputs]
        _check_kind(op, op.accepts_word, handles)
        return _meet(op, handles, range(len(handles)))
    handles = [
        x if isinstance(x, Tensor) or type(x) in _SCALARS or operand.accepts == "var" else as_tensor(x)
        for x, operand in zip(inputs, op.operands, strict=True)
    ]
    uniform = [i for i, operand in enumerate(op.operands) if operand.accepts is None]
    for x, operand in zip(handles, op.operands, strict=True):
        if operand.accepts is not None and operand.accepts != "var":
            _check_kind(op, operand.accepts, [x])
    return _meet(op, handles, uniform)


def _meet(op: Op, handles: list[Any], uniform: Any) -> tuple[Any, ...]:
    """Gives the uniform operands one dtype, by explicit casts within a kind."""
    found = [handles[i].dtype for i in uniform if type(handles[i]) not in _SCALARS]
    if not found:
        for i in uniform:
            handles[i] = as_tensor(handles[i])
        found = [handles[i].dtype for i in uniform]
        if not found:
            return tuple(handles)
    target = dtypes.promote(*found)
    if target is None:
        raise DTypeError(_mixed(op, handles, found))
    if target not in op.accepts:
        raise DTypeError(_refused(op, op.accepts_word, target))
    for i in uniform:
        x = handles[i]
        if type(x) in _SCALARS:
            if not dtypes.fits(x, target):
                raise DTypeError(_mixed(op, handles, [*found, dtypes.default_for(x)]))
            if target is dtypes.bfloat16:  # a Python float beside it makes NumPy compute in float32
                handles[i] = constant(x, target)
        elif x.dtype is not target and x.dtype != target:
            handles[i] = x.astype(target)
    return tuple(handles)


def _check_kind(op: Op, accepts: str, handles: list[Any]) -> None:
    for x in handles:
        if type(x) not in _SCALARS and dtypes.kind(x.dtype) not in KINDS[accepts]:
            raise DTypeError(_refused(op, accepts, x.dtype))


def _mixed(op: Op, handles: list[Any], found: list[DType]) -> str:
    operands = " and ".join(repr(x) if type(x) in _SCALARS else str(x.spec) for x in handles)
    widest = max(found, key=lambda d: (["bool", "integer", "floating", "complex"].index(dtypes.kind(d)), d.itemsize))
    target = dtypes.float32 if dtypes.kind(widest) == "floating" and widest.itemsize < 4 else widest
    return (
        f"{op}: {operands} do not mix: dtypes of different kinds are never converted silently; "
        f"write ll.astype(x, ll.{target.name}) on the operand that should change{source.at(source.user_line())}"
    )


def _refused(op: Op, accepts: str, got: DType) -> str:
    kinds = " or ".join(KINDS[accepts])
    target = {"floating": "float32", "complex": "complex64", "integer": "int32", "bool": "int32"}[KINDS[accepts][0]]
    target = "bool_" if accepts == "bool" else target
    return (
        f"{op} needs {kinds} operands, got {got.name}; write ll.astype(x, ll.{target}) first"
        f"{source.at(source.user_line())}"
    )


def _payload(op: Op, x: Any, device: Device) -> Any:
    if type(x) in _SCALARS:
        return x
    return x._data if x._device is device else move(x, device, f"operand of {op}" if op.placement is None else ".to()")


def _spec(x: Any) -> Any:
    return as_tensor(x).spec if type(x) in _SCALARS else x.spec


def _report(op: Op, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...], device: Device, seconds: float) -> None:
    outputs = tuple([x for x in outputs if isinstance(x, Tensor)])
    specs = tuple(str(x.spec) for x in outputs)
    nbytes = sum(x.nbytes for x in outputs)
    given = tuple(repr(x) if type(x) in _SCALARS else str(x.spec) for x in inputs)
    events.emit(events.OpRan(op.name, device.short, given, specs, nbytes, seconds, source.user_line()))
    if events.wanted(events.Allocated):
        for x in outputs:
            account(x)


def account(tensor: Tensor) -> None:
    """Reports the birth of a tensor and, when its last reference goes, its death."""
    nbytes, device, name = tensor.nbytes, tensor._device.short, id(tensor)
    events.emit(events.Allocated(device, nbytes, name))
    weakref.finalize(tensor, _freed, device, nbytes, name).atexit = False


def _freed(device: str, nbytes: int, name: int) -> None:
    if events.wanted(events.Freed):
        events.emit(events.Freed(device, nbytes, name))


# Entry points


def entry(op: Op) -> Callable[..., Any]:
    """What a public function calls: `run(x, *attrs)`, `run(x, y)`, or in general `run((x, y, z), *attrs)`."""
    simple = op.direct and not op.variadic and op.effect is None and op.taped is None
    if simple and len(op.operands) == 1 and op.operands[0].accepts is None:
        return _unary_with_attrs(op) if op.attrs else _unary(op)
    if simple and len(op.operands) == 2 and not op.attrs and all(o.accepts is None for o in op.operands):
        return _binary(op)
    return _general(op)


def _general(op: Op) -> Callable[..., Any]:
    if not op.direct and not op.multiple or any(o.accepts == "var" for o in op.operands):
        return lambda inputs, *attrs: apply(op, prepare(op, inputs), attrs)
    kernel, multiple = op.kernel_on("numpy"), op.multiple
    needs: Any = [(op.accepts if o.accepts is None else accepted(o.accepts), o.accepts is None) for o in op.operands]
    if op.variadic:
        needs = itertools.repeat((op.accepts, True))

    def run(inputs: tuple[Any, ...], *attrs: Any) -> Any:
        arrays = _arrays(inputs, needs)
        if arrays is None:
            return apply(op, prepare(op, inputs), attrs)
        if active:
            return apply(op, inputs, attrs)
        try:
            result = kernel(*arrays, *attrs)
        except LimelightError:
            raise
        except Exception as error:
            raise explain(op, inputs, attrs, error) from error
        return tuple([wrap(r) for r in result]) if multiple else wrap(result)

    return run


def _arrays(inputs: tuple[Any, ...], needs: Any) -> list[Any] | None:
    """The arrays of operands that need no preparation, None when one does: `needs` are (dtypes, is it uniform?)."""
    arrays = []
    shared = None
    for x, (dtypes_, uniform) in zip(inputs, needs, strict=False):
        if type(x) is not Tensor or x._device is not CPU0:
            return None
        a = x._data
        d = a.dtype
        if d not in dtypes_ or (uniform and shared is not None and d is not shared):
            return None
        if uniform:
            shared = d
        arrays.append(a)
    return arrays


def _unary(op: Op) -> Callable[[Any], Tensor]:
    kernel, accepts = op.kernel_on("numpy"), op.accepts

    def run(x: Any) -> Tensor:
        if type(x) is Tensor and x._device is CPU0 and (not active or (local.observe and not scopes)):
            a = x._data
            if a.dtype in accepts:
                try:
                    r = kernel(a)
                except Exception as error:
                    raise explain(op, (x,), (), error) from error
                t = _new(Tensor)
                t._data = r
                t._device = CPU0
                t._uid = 0
                if active and local.observe:
                    local.observe(op, (x,), (), t)
                return t
        result: Tensor = apply(op, prepare(op, (x,)))
        return result

    return run


def _unary_with_attrs(op: Op) -> Callable[..., Tensor]:
    kernel, accepts = op.kernel_on("numpy"), op.accepts

    def run(x: Any, *attrs: Any) -> Tensor:
        if type(x) is Tensor and x._device is CPU0 and (not active or (local.observe and not scopes)):
            a = x._data
            if a.dtype in accepts:
                try:
                    r = kernel(a, *attrs)
                except LimelightError:
                    raise
                except Exception as error:
                    raise explain(op, (x,), attrs, error) from error
                t = _new(Tensor)
                t._data = r
                t._device = CPU0
                t._uid = 0
                if active and local.observe:
                    local.observe(op, (x,), attrs, t)
                return t
        result: Tensor = apply(op, prepare(op, (x,)), attrs)
        return result

    return run


def _binary(op: Op) -> Callable[[Any, Any], Tensor]:
    kernel, accepts = op.kernel_on("numpy"), op.accepts
    weak = {kind: accepts & beside for kind, beside in _WEAK.items()}

    def run(x: Any, y: Any) -> Tensor:
        if type(x) is Tensor and type(y) is Tensor:
            a = x._data
            b = y._data
            d = a.dtype
            if d is b.dtype and d in accepts:
                observe = None
                if active:
                    observe = local.observe
                    if scopes or observe is None:
                        taken: Tensor = apply(op, (x, y))
                        return taken
                if x._device is not CPU0 or y._device is not CPU0:
                    taken = apply(op, (x, y))
                    return taken
                try:
                    r = kernel(a, b)
                except Exception as error:
                    raise explain(op, (x, y), (), error) from error
                t = _new(Tensor)
                t._data = r
                t._device = CPU0
                t._uid = 0
                if observe is not None:
                    observe(op, (x, y), (), t)
                return t
        elif not active:
            r = _beside_scalar(kernel, weak, x, y)
            if r is not None:
                return wrap(r)
        result: Tensor = apply(op, prepare(op, (x, y)))
        return result

    return run


def _beside_scalar(kernel: Callable[[Any, Any], Any], weak: dict[type, frozenset[DType]], x: Any, y: Any) -> Any:
    """The kernel's result for a CPU:0 tensor beside a Python scalar that takes on its dtype, None for anything else."""
    tensor, scalar = (x, y) if type(x) is Tensor else (y, x)
    if type(scalar) not in weak or type(tensor) is not Tensor or tensor._device is not CPU0:
        return None
    a = tensor._data
    if a.dtype not in weak[type(scalar)]:
        return None
    try:
        return kernel(a, scalar) if tensor is x else kernel(scalar, a)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None  # the long way round says what is wrong


def operators(run: Callable[[Any, Any], Any], name: str) -> None:
    """Attaches a binary entry to Tensor as the operator `name` ("add" makes __add__ and __radd__)."""

    def reflected(self: Any, other: Any) -> Any:
        return run(other, self)

    setattr(Tensor, f"__{name}__", run)
    setattr(Tensor, f"__r{name}__", reflected)


assert np.dtype("float32") is dtypes.float32, "hot paths compare dtypes by identity"
