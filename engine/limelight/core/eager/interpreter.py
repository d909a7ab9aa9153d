"""The interpreter at the bottom of every stack: it runs kernels, on the devices they belong to."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np

from limelight import events
from limelight.core import device_copies, device_counts, device_scopes, dispatch, live_buffers
from limelight.core.device_counts import kept as tallies
from limelight.core.devices import CPU0, Device
from limelight.core.dispatch import scopes, tapes_told
from limelight.core.op import Op
from limelight.core.placement import FIRST, Choice, choose
from limelight.core.spec import known
from limelight.core.tensor import Opaque, Tensor, as_tensor, put, wrap
from limelight.errors import LimelightError, failed, is_user_error
from limelight.user_code import operand_text, source_line

# NumPy reports overflow and division by zero as warnings; tensors follow IEEE silently. Its error state is a context
# variable, and entering that for each op costs more than the op: hence one filter, for warnings that arise in
# limelight's modules. The user's own NumPy keeps its settings.
warnings.filterwarnings("ignore", message=".*encountered in", category=RuntimeWarning, module=r"limelight(\.|$)")

SCALARS: Final = (bool, int, float, complex)
CALLS: Final = frozenset({"call", "call_forward"})
"""Ops that run one function once."""
OF_NODES: Final = "its functions' nodes are placed one by one"


class Eager(dispatch.Interpreter):
    """Runs each op at once, on the device that the scope asks for, else where its operands are."""

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        if op.axis_at is not None and inputs and attrs[op.axis_at] is not None and not _shape(inputs[0]):
            op.infer(*map(_spec, inputs), *attrs)  # kernels would take axes 0 and -1 of a scalar, as NumPy does
        if op.direct and len(scopes) == len(tallies) + len(tapes_told):  # nobody listens to ops; some may count them
            start = time.perf_counter() if tallies else 0.0
            data = _run_on_cpu0(op, inputs, attrs)
            if data is not None:
                return live_buffers.counted(wrap(data), data, time.perf_counter() - start) if tallies else wrap(data)
        if op.higher_order:
            return _run_function(op, inputs, attrs)
        device, reason = chosen(op, inputs, attrs)
        payloads, copies = _payloads(op, inputs, device)
        start = time.perf_counter()
        try:
            result = op.kernel_on(device.backend)(*payloads, *attrs)
        except LimelightError:
            raise
        except Exception as error:
            if is_user_error(error):
                raise
            explain(op, inputs, attrs, error)
        outputs: Any = tuple([_wrapped(r, device) for r in result]) if op.multiple else wrap(result, device)
        if tallies or events.wanted(events.OpRan) or events.wanted(events.Allocated):
            _report(op, inputs, outputs if op.multiple else (outputs,), device, time.perf_counter() - start)
        if events.wanted(events.Placed):
            _tell_placement(op, Choice(device, reason), len(copies), sum([int(x.nbytes) for x in copies.values()]))
        return outputs

    def constant(self, array: Any, device: Device | None) -> Tensor:
        tensor = put(array, device or CPU0)
        if tallies or events.wanted(events.Allocated):
            account(tensor)
        return tensor


dispatch.set_base(Eager())


def _run_function(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    """Runs an op whose parameters are staged functions: their graphs place their own ops and outputs."""
    start = time.perf_counter()
    payloads = [x if type(x) in SCALARS else x._data for x in inputs]
    homes = [getattr(x, "_device", CPU0) for x in inputs]
    attrs = tuple([tuple([_placed(homes, f) for f in p]) if type(p) is tuple else _placed(homes, p) for p in attrs])
    results = op.kernel_on("numpy")(*payloads, *attrs)
    first = attrs[0][0] if type(attrs[0]) is tuple else attrs[0]  # a switch has its branches in a tuple
    places = list(first.run.output_devices)
    places += [CPU0] * (len(results) - len(places))
    outputs = tuple([_wrapped(r, d) for r, d in zip(results, places, strict=True)])
    device, seconds = places[0] if places else CPU0, time.perf_counter() - start
    if tallies or events.wanted(events.OpRan) or events.wanted(events.Allocated):
        _report(op, inputs, outputs, device, seconds, _most(op, attrs))
    if events.wanted(events.Placed):
        _tell_placement(op, Choice(device, OF_NODES), 0, 0)
    return outputs


def _most(op: Op, attrs: tuple[Any, ...]) -> Sequence[Any]:
    """Bytes that the hungriest of an op's functions needs at most, and whether that is exact: from sizes alone.

    A loop runs its body many times, and stacks what it hands out: not exact. (A loop's residuals are counted nowhere.)
    """
    functions = [f for p in attrs for f in (p if type(p) is tuple else (p,)) if hasattr(f, "run")]
    peaks = [f.run.memory() for f in functions]
    most = max([peak.nbytes for peak in peaks], default=0)
    return most, op.name in CALLS and all(peak.exact for peak in peaks)


def _placed(homes: list[Device], param: Any) -> Any:
    """A staged function, built for the devices of the inputs that it takes; any other parameter as it is."""
    return param.placed_on(homes[len(homes) - len(param.graph.inputs) :]) if hasattr(param, "graph") else param


def _wrapped(result: Any, device: Device) -> Any:
    return wrap(result, device) if hasattr(result, "dtype") else Opaque(result, device)


def _run_on_cpu0(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
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
    except Exception as error:  # noqa: BLE001  # `explain` raises
        explain(op, inputs, attrs, error)


def place(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...] = ()) -> Device:
    """Where `op` runs; raises DeviceError where it cannot (see `core.placement`)."""
    return chosen(op, inputs, attrs).device


def chosen(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...] = ()) -> Choice:
    """Where `op` runs, and why there; raises DeviceError where it cannot (see `core.placement`)."""
    first = inputs[0] if inputs else None
    if not scopes and type(first) is Tensor and first._device.backend == "numpy":
        home = first._device  # what nearly all ops that come here are: all operands in one place, and nobody asks
        alike = all([type(x) in SCALARS or (type(x) is Tensor and x._device is home) for x in inputs])  # noqa: C419
        if alike and not (op.placement or op.of_shapes or op.on_host or op.special):
            return Choice(home, FIRST)
    variables, tensors = [], []
    for i, x in enumerate(inputs):
        if isinstance(x, Tensor):
            if i not in op.on_host:
                tensors.append(x)
        elif type(x) not in SCALARS and hasattr(x, "_device") and not _anywhere(x):
            variables.append((getattr(x, "name", ""), x._device))
    homes, dtypes = [x._device for x in tensors], tuple([x.dtype for x in tensors])
    return choose(op, attrs, variables, device_scopes.requested_device(), homes, dtypes)


def move(tensor: Any, device: Device, cause: str, name: str = "") -> Any:
    """The payload of `tensor` on `device`, copied if it is elsewhere. Its `name` is what the user calls it."""
    data, home = tensor._data, tensor._device
    if home is device:
        return data
    return device_copies.copied(data, home, device, cause, source_line.user_line(), name)


def explain(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], error: Exception) -> NoReturn:
    """Raises the error for a kernel that failed: the op's own shape rule says it best, if it objects too.

    Then the array library's words would add nothing, and are not shown as the cause.
    """
    try:
        op.infer(*[_spec(x) for x in inputs], *attrs)
    except LimelightError as better:
        raise better from None
    specs = ", ".join(str(_spec(x)) for x in inputs)
    raise failed(f"{op}({specs})", error) from error


def _anywhere(x: Any) -> bool:
    """Whether it is a generator, whose draws go where they are needed."""
    return getattr(x.spec, "anywhere", False)


def _payloads(op: Op, inputs: tuple[Any, ...], device: Device) -> tuple[list[Any], dict[int, Any]]:
    """What the kernel works on: numbers, and arrays on `device`; and the copies made for it, by the id of the operand.

    Each tensor is copied once. What the kernel reads on the host is brought there, where it is not.
    """
    copies: dict[int, Any] = {}
    payloads = []
    for i, x in enumerate(inputs):
        if type(x) in SCALARS:
            payloads.append(x)
        elif i in op.on_host and x._device.backend != "numpy":  # also where the op runs on that device
            payloads.append(device_copies.on_host(x._data, x._device, f"{device_copies.HOST_ARGUMENT} of {op}"))
        elif x._device is device or op.of_shapes or i in op.on_host or _anywhere(x):
            payloads.append(x._data)
        else:
            if id(x) not in copies:
                cause = f"operand of {op}" if op.placement is None else device_copies.ASKED
                copy = copies[id(x)] = move(x, device, cause, _name_of(op, inputs, i))
                if (tallies or events.wanted(events.Allocated)) and not isinstance(copy, np.generic):
                    live_buffers.born(copy, copy, device, source_line.user_line())  # as long as the op runs
            payloads.append(copies[id(x)])
    return payloads, copies


def _name_of(op: Op, inputs: tuple[Any, ...], place: int) -> str:
    """What the user calls an operand: the name of a variable, or what stands there in the line."""
    own = getattr(inputs[place], "name", None)
    return own if isinstance(own, str) else operand_text.operand(op.name, place, len(inputs))


def _spec(x: Any) -> Any:
    return as_tensor(x).spec if type(x) in SCALARS else x.spec


def _shape(x: Any) -> tuple[int, ...]:
    return () if type(x) in SCALARS else x.shape


def _report(
    op: Op,
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    device: Device,
    seconds: float,
    most: Sequence[Any] = (0, True),
) -> None:
    outputs = tuple([x for x in outputs if isinstance(x, Tensor)])
    if tallies:
        device_counts.ran(device.short, seconds, most[0], most[1], op.name in CALLS)
    if events.wanted(events.OpRan):
        _tell(op, inputs, outputs, device, seconds, most)
    for x in outputs:
        account(x)


def _tell(
    op: Op,
    inputs: tuple[Any, ...],
    outputs: tuple[Tensor, ...],
    device: Device,
    seconds: float,
    most: Sequence[Any],
) -> None:
    specs = tuple([_text(x) for x in outputs])
    nbytes = sum([x.nbytes for x in outputs])
    input_texts = tuple([repr(x) if type(x) in SCALARS else _text(x) for x in inputs])
    line = source_line.user_line()
    events.emit(events.OpRan(op.name, device.short, input_texts, specs, nbytes, seconds, line, *most))


def counted_call(outputs: Sequence[Any], devices: Sequence[Device], seconds: float, peak: Any) -> None:
    """Counts a staged call that took its shortcut, as `_report` counts one that is dispatched as an op.

    Args:
        outputs: the tensors that it gave.
        devices: where these are.
        seconds: how long its plan ran.
        peak: the plan's memory (`executors.base.Peak`).
    """
    if devices.count(CPU0) == len(devices):
        live_buffers.counted_results(outputs, seconds, peak.nbytes, peak.exact)
        return
    device_counts.ran(devices[0].short, seconds, peak.nbytes, peak.exact, True)
    for tensor, device in zip(outputs, devices, strict=True):
        live_buffers.born(tensor, tensor._data, device, told=False)


def _tell_placement(op: Op, choice: Choice, copies: int, nbytes: int) -> None:
    requested = device_scopes.requested_device()
    asked = None if requested is None else requested.short
    line = source_line.user_line()
    device, reason = choice.device.short, choice.reason
    events.emit(events.Placed(op.name, device, asked, reason, copies, nbytes, line, op.stays_on_host))


def _text(x: Any) -> str:
    return _spec_text(x._data.dtype, x._data.shape) if type(x) is Tensor else str(x.spec)


@functools.lru_cache(maxsize=4096)
def _spec_text(dtype: Any, shape: tuple[int, ...]) -> str:
    """A tensor's spec in words: few differ, and each is said thousands of times."""
    return str(known(shape, dtype))


def account(tensor: Tensor) -> None:
    """Reports the birth of a tensor's buffer and, when its last reference goes, its death."""
    wanted = events.wanted(events.Allocated)
    if wanted or tallies:
        line = source_line.user_line() if wanted else None
        live_buffers.born(tensor, tensor._data, tensor._device, line)
