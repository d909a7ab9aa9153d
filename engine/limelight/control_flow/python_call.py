"""Calls of Python inside a graph: the ops behind `py_func`.

The variant that a tape records runs the Python function under a persistent tape and returns that tape as an opaque
value, which dies with its last reference; the backward pass asks it. For second order the function runs once more. What
the function computes with NumPy has no gradient. Eagerly that is None; the gradients of a graph are fixed before it
runs, so its node gives zeros, and warns with the line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from limelight.autodiff import INEXACT, ForwardAccumulator, GradientTape, filled
from limelight.autodiff.gradient_cuts import departure_of
from limelight.control_flow.replay import FirstRun, FirstRunRecorder, set_back
from limelight.core import dispatch
from limelight.core.devices import CPU0, Device
from limelight.core.eager import move
from limelight.core.op import Op, TapedVariant, defop
from limelight.core.spec import ObjectSpec, Spec, TensorSpec
from limelight.core.tensor import Tensor, as_tensor, beside, wrap
from limelight.core.variable import Resource
from limelight.errors import DTypeError, LimelightError, ShapeError, SignatureError, mark_user_error
from limelight.staging.body_tangents import present_tangents, split_tangents, tangent_flags
from limelight.user_code import source_line
from limelight.user_code.implicit_conversion import numbers_are_meant_in


class PythonCall:
    """A Python function as the parameter of a node, with the specs of its results."""

    __limelight_leaf__ = True
    of_user = True
    """Whether what the function raises reaches the caller as it is; an error of the library's own names the node."""

    def __init__(
        self, function: Callable[..., Any], specs: tuple[TensorSpec, ...], single: bool, device: Device = CPU0
    ) -> None:
        self.function = function
        self.specs = specs
        self.single = single
        self.device = device  # where a graph runs it: its operands are there, and its results are brought there
        self.name = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *tensors: Any) -> tuple[Tensor, ...]:
        """Runs the function eagerly; its exceptions reach the caller as they are.

        As an op of a graph it runs outside every tape and trace of the caller's (see `_run`); called eagerly, under the
        caller's tapes, which record its ops like any others.
        """
        try:
            result = self.function(*tensors)
        except Exception as error:
            if self.of_user:
                mark_user_error(error)
            raise
        return tuple(map(self._checked, self._listed(result), self.specs, range(len(self.specs))))

    def placed_on(self, device: Device) -> PythonCall:
        """The same for a node that runs on `device`."""
        return type(self)(self.function, self.specs, self.single, device)

    def tensors(self, payloads: Sequence[Any]) -> list[Any]:
        """The operands of the node as tensors."""
        return [wrap(x, self.device) if hasattr(x, "dtype") else x for x in payloads]

    def payloads(self, results: Sequence[Tensor]) -> list[Any]:
        """Results as the node's payloads."""
        return [move(x, self.device, "result of py_func") for x in results]

    def _listed(self, result: Any) -> list[Any]:
        if not self.specs:
            return []
        results = [result] if self.single else list(result) if isinstance(result, (tuple, list)) else [result]
        if len(results) != len(self.specs):
            raise SignatureError(
                f"py_func: {self.name} returned {len(results)} values, output_specs promise {len(self.specs)}; write a "
                "spec for each in a list, or None where nothing is to be returned"
            )
        return results

    def _checked(self, value: Any, spec: TensorSpec, place: int) -> Tensor:
        returned = f"{self.name} returned" if self.single else f"{self.name} returned, as result [{place}],"
        if isinstance(value, Resource):
            raise SignatureError(f"py_func: {returned} a variable; return v.read_value()")
        if value is None:
            raise SignatureError(f"py_func: {returned} None, output_specs promise {spec}")
        try:  # a Python number has no dtype of its own
            tensor = beside(value, spec.dtype)
        except LimelightError as error:
            kind = type(value).__name__
            raise type(error)(f"py_func: {returned} a {kind}, output_specs promise {spec}: {error}") from None
        if tensor.dtype != spec.dtype:
            raise DTypeError(
                f"py_func: {returned} {tensor.dtype.name}, output_specs promise {spec.dtype.name}; return "
                f"ll.astype(..., ll.{spec.dtype.name}), or promise what it is"
            )
        if not spec.accepts(tensor.spec):
            raise ShapeError(
                f"py_func: {returned} {tensor.spec}, output_specs promise {spec}; sizes that change are None "
                "in a ll.TensorSpec"
            )
        return tensor

    def __repr__(self) -> str:
        return f"python {self.name}"


class LibraryCall(PythonCall):
    """A call of a function of the library's own."""

    of_user = False


def in_graph(call: PythonCall, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a node that calls Python, one for each of its specs."""
    results: tuple[Any, ...] = dispatch.apply(py_func_op, tuple(inputs), (call,))
    return results


_warned: dict[Any, Any] = {}  # which warnings were shown, for the `warnings` module


class Recording(NamedTuple):
    """What a run of a py_func under a tape keeps for its gradient."""

    tape: GradientTape
    inputs: tuple[Any, ...]
    outputs: tuple[Tensor, ...]
    call: PythonCall
    first: FirstRun  # for running the function once more


def _run(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *payloads, call = arguments
    taped = any(isinstance(interpreter, GradientTape) for interpreter in dispatch.stack())
    with dispatch.fresh_stack():
        if not taped:
            return tuple(call.payloads(call(*call.tensors(payloads))))
        with GradientTape(persistent=True) as tape:  # no input is watched: only variables can be
            outputs = call(*call.tensors(payloads))
        if tape.watched_variables():
            floats = [x for x in outputs if x.dtype in INEXACT]
            _warn_of_lost(call, tape.watched_variables(), tape.gradient(floats, list(tape.watched_variables())))
        return tuple(call.payloads(outputs))


def _run_forward(xp: Any, *arguments: Any) -> tuple[Any, ...]:
    *payloads, call = arguments
    with dispatch.fresh_stack():
        inputs = call.tensors(payloads)
        with GradientTape(persistent=True) as tape:
            tape.watch([x for x in inputs if isinstance(x, Tensor) and x.dtype in INEXACT])
            run = FirstRunRecorder(call.name, call.function, inputs)
            with run.recorder:
                outputs = call(*inputs)
        run.finish(outputs)
        recording = Recording(tape, tuple(inputs), outputs, call, run.first_run())
        return (*call.payloads(outputs), recording)


def _run_backward(xp: Any, recording: Recording, *arguments: Any) -> tuple[Any, ...]:
    *payloads, targets, seeded, call = arguments
    seeds = payloads[len(recording.inputs) :]
    with dispatch.fresh_stack():
        outputs = [recording.outputs[i] for i in seeded]
        wanted = [recording.inputs[i] for i in targets]
        variables = recording.tape.watched_variables()
        gradients = recording.tape.gradient(outputs, [*wanted, *variables], call.tensors(seeds))
        _warn_of_lost(call, variables, gradients[len(wanted) :])
        unreached = [x for x, g in zip(wanted, gradients, strict=False) if g is None]
        if line := next(filter(None, [lost_at(recording, x) for x in unreached]), None):
            warn_of_departed(call, line, "gradient")
        results = [filled(0, x) if g is None else as_tensor(g) for x, g in zip(wanted, gradients, strict=False)]
        return tuple(call.payloads(results))


def _warn_of_lost(call: PythonCall, variables: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Warns of variables whose gradients end here: in a graph only the inputs of a py_func have gradients."""
    lost = [v.name for v, g in zip(variables, gradients, strict=True) if g is not None]
    if not lost:
        return
    message = (
        f"py_func: {call.name} uses the variable {', '.join(map(repr, lost))}, whose gradient is lost: in a graph only "
        "the inputs of a py_func have gradients. Pass v.read_value() in inputs and use that in the function"
    )
    _warn(message, source_line.user_line())


def lost_at(recording: Recording, x: Any) -> source_line.Source | None:
    """The line in the function at which a value that depends on its input `x` left for Python or NumPy, if one did."""
    return departure_of(x._uid, recording.tape._entries, recording.tape._cuts)


def warn_of_departed(call: PythonCall, line: source_line.Source, what: str) -> None:
    """Warns of values that left for NumPy; `what` is "gradient" or "tangent". Eagerly it is None, in a graph zeros."""
    message = (
        f"py_func: a value in {call.name} left for Python or NumPy, where nothing is recorded: its {what} is zeros. "
        "Compute with ll functions and operators instead of x.numpy(), x.item(), float(x) and NumPy's functions, or "
        "give the gradient yourself with ll.custom_gradient; where zeros are meant, pass ll.stop_gradient(x) in inputs"
    )
    _warn(message, line)


def _warn(message: str, line: source_line.Source | None) -> None:
    """Warns once for a message and a line, as Python does, unless the user's filters say otherwise."""
    line = line or source_line.Source("<unknown>", 1, "")
    try:
        warnings.warn_explicit(message, RuntimeWarning, line.file, line.line, registry=_warned)
    except RuntimeWarning as error:  # the user has made warnings errors
        mark_user_error(error)
        raise


def _rerun_gradient(
    targets: tuple[int, ...], seeded: tuple[int, ...], call: PythonCall
) -> Callable[..., tuple[Any, ...]]:
    """The gradient as a function of inputs and output gradients, for second order: it runs the function once more."""

    def gradient(recording: Any, *tensors: Any) -> tuple[Any, ...]:
        inputs, seeds = tensors[: len(recording.inputs)], tensors[len(recording.inputs) :]
        with set_back(recording.first), GradientTape() as tape:
            tape.watch([inputs[i] for i in targets])
            outputs = recording.first.again(lambda: call(*inputs), inputs)
        gradients = tape.gradient(
            [outputs[i] for i in seeded], [inputs[i] for i in targets], list(seeds), unconnected_gradients="zero"
        )
        return tuple(gradients)

    gradient.__name__ = call.name
    return gradient


def _taped(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant:
    n = len(attrs[0].specs)
    return TapedVariant(py_func_forward, attrs, lambda outputs: outputs[:n])


def _pull(g: tuple[Any, ...], saved: tuple[Any, ...], needed: tuple[bool, ...]) -> tuple[Any, ...]:
    call, recording, inputs = saved
    seeded = tuple(i for i, s in enumerate(g[:-1]) if s is not None)
    targets = tuple(i for i, (x, n) in enumerate(zip(inputs, needed, strict=True)) if n and x.dtype in INEXACT)
    results: list[Any] = [None] * len(needed)
    operands = (recording, *inputs, *[g[i] for i in seeded])
    for i, value in zip(targets, dispatch.apply(py_func_backward, operands, (targets, seeded, call)), strict=True):
        results[i] = value
    return tuple(results)


def _infer_backward(recording: Spec, *arguments: Any) -> tuple[Spec, ...]:
    *specs, targets, _, _ = arguments
    return tuple(specs[i] for i in targets)


def _gradient_call(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> PythonCall:
    """What a `py_func_backward` node computes from a recording, as a py_func itself, which runs the function again."""
    targets, seeded, call = attrs
    return PythonCall(_rerun_gradient(targets, seeded, call), tuple(inputs[1 + i].spec for i in targets), single=False)


def _taped_backward(inputs: tuple[Any, ...], attrs: tuple[Any, ...], mask: int = -1) -> TapedVariant:
    gradient = _gradient_call(inputs, attrs)
    return TapedVariant(py_func_forward, (gradient,), lambda outputs: outputs[: len(gradient.specs)])


def _jvp_py_func(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """A py_func that runs the function under an accumulator and returns the tangents as further results."""
    (function,) = attrs
    flags, specs = tangent_flags(tangents), function.specs
    moving = tuple(i for i, spec in enumerate(specs) if spec.dtype in INEXACT)

    def with_tangents(*operands: Any) -> tuple[Any, ...]:
        primals = operands[: len(flags)]
        varied = [x for x, m in zip(primals, flags, strict=True) if m]
        with ForwardAccumulator(varied, list(operands[len(flags) :])) as forward:
            outputs = function(*primals)
        if forward.departure is not None and None in [forward.jvp(outputs[i]) for i in moving]:
            warn_of_departed(function, forward.departure, "tangent")
        return (*outputs, *[forward.jvp(outputs[i], "zero") for i in moving])

    with_tangents.__name__ = function.name
    wider = PythonCall(with_tangents, (*specs, *[specs[i] for i in moving]), single=False)
    return split_tangents(
        dispatch.apply(py_func_op, (*inputs, *present_tangents(tangents)), (wider,)), len(specs), moving
    )


def _jvp_py_func_forward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    """The recording for the backward pass comes from one run of the function, the tangents from another.

    So the function runs once more where a tape inside the accumulator has recorded it.
    """
    outputs = dispatch.apply(py_func_forward, inputs, attrs)
    _, moved = _jvp_py_func(inputs, tangents, attrs)
    return outputs, [*moved, None]


def _jvp_py_func_backward(inputs: tuple[Any, ...], tangents: Sequence[Any], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
    return _jvp_py_func(inputs, tangents, (_gradient_call(inputs, attrs),))


py_func_op: Op = defop(
    "py_func",
    inputs="*xs:any",
    attrs="function",
    infer=lambda *arguments: arguments[-1].specs,
    kernel=_run,
    multiple=True,
    effect="io",
    taped=_taped,
    jvp=_jvp_py_func,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records py_func_forward
    maths={"xs": "x̄ = gradient of the tape under which the function ran"},
    batching="loop",
)

py_func_forward: Op = defop(
    "py_func_forward",
    inputs="*xs:any",
    attrs="function",
    infer=lambda *arguments: (*arguments[-1].specs, ObjectSpec("Recording")),
    kernel=_run_forward,
    multiple=True,
    effect="io",
    save=lambda inputs, out, attrs: (attrs[0], out[-1], tuple(inputs)),
    jvp=_jvp_py_func_forward,
    vjp={"xs": _pull},
    maths={"xs": "x̄ = gradient of the tape under which the function ran"},
    batching="loop",
)

py_func_backward: Op = defop(
    "py_func_backward",
    inputs="*xs:any",
    attrs="targets seeded function",
    infer=_infer_backward,
    kernel=_run_backward,
    multiple=True,
    taped=_taped_backward,
    jvp=_jvp_py_func_backward,
    vjp={"xs": lambda g, saved, needed: None},  # never pulled: the tape records py_func_forward
    maths={"xs": "second order: the function runs once more"},
    batching="loop",
)


numbers_are_meant_in(PythonCall.__call__)  # those of a py_func are for NumPy, as a rule
