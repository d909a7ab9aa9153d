"""`ll.export.stablehlo`: a trace, through `jax.export`, into a file."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from limelight.core.op import Op
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, ExportError
from limelight.executors.xla.graph_lowering import GraphLowering, NoFormError, VariableCell, why_no_form
from limelight.executors.xla.program import wide
from limelight.executors.xla.structured_control import CONTROL
from limelight.executors.xla.symbolic_sizes import value_of
from limelight.export.destination import destination, write_whole
from limelight.export.traces_to_write import argument_specs, single_trace
from limelight.module import Module
from limelight.staging.concrete_function import ConcreteFunction

_CALLER: Final = "ll.export.stablehlo"


def stablehlo(
    target: Any,
    path: str | os.PathLike[str],
    signature: Any = (),
    *,
    variables: Literal["constants", "inputs"] = "constants",
    platforms: Sequence[str] = ("cpu",),
) -> Path:
    """Writes a function as a StableHLO program, which JAX and other users of XLA run without limelight.

    The file is what `jax.export` serialises: `jax.export.deserialize(bytearray(path.read_bytes())).call(x)` runs it,
    with the tensor arguments by position. Where dtypes of 64 bits are in it, JAX needs `jax_enable_x64`. Sizes of None
    in the signature are symbolic dimensions: each its own if the program allows it, else one for each axis. An index
    of `ll.switch` that is out of range is not an error there but the nearest branch, as everywhere in XLA.

    Args:
        target: a staged or plain function, a trace (`get_concrete_function`), or a module, whose call is meant.
        path: the file; one that exists is replaced, and only by a whole one.
        signature: a spec, or a tuple of arguments as `get_concrete_function` takes them; it may be left out for a
            function with one trace.
        variables: "constants" for values of now in the program; "inputs" for a dictionary of arrays as its first
            argument, by the paths of a module's variables or by their names.
        platforms: of JAX, on which the program shall run: "cpu", "cuda", "rocm", "tpu".

    Returns:
        The path.

    Raises:
        ExportError: something cannot travel: a draw, an assignment, a `py_func`, a shape that depends on values. It
            names function, op and line, and nothing is written. Or JAX is not installed.
        ArgumentError: `variables` is neither of the two.

    >>> import limelight as ll
    >>> import tempfile
    >>> from jax import export
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ll.export.stablehlo(lambda x: x * x, f"{folder}/square.stablehlo", ll.TensorSpec((2,)))
    ...     program = export.deserialize(bytearray(path.read_bytes()))
    >>> program.call(ll.constant([1.0, 3.0]).numpy()).tolist()
    [1.0, 9.0]
    """
    if variables not in ("constants", "inputs"):
        raise ArgumentError(f"variables must be 'constants' or 'inputs', got {variables!r}")
    file = destination(path, _CALLER, "model.stablehlo")
    content = _serialised(target, signature, variables == "inputs", platforms)
    write_whole(file, lambda writer: writer.write(content))
    return file


def _serialised(target: Any, signature: Any, as_inputs: bool, platforms: Sequence[str]) -> bytes:
    try:
        jax: Any = importlib.import_module("jax")
        importlib.import_module("jax.export")
        importlib.import_module("flatbuffers")  # which `jax.export` writes with, and JAX does not bring along
    except ImportError:
        raise ExportError("ll.export.stablehlo needs JAX and flatbuffers: pip install 'limelight[xla]'") from None
    trace = single_trace(target, signature, _CALLER)
    program = _Program(trace, _paths(target), as_inputs)
    specs = [spec for _, spec in argument_specs(trace)]
    with wide():
        exported = _exported(jax, program, specs, platforms)
        try:
            return bytes(exported.serialize())
        except (ValueError, TypeError, NotImplementedError) as error:
            raise ExportError(
                f"{trace.name} returns a container that jax.export cannot write: return tuples, lists or dictionaries "
                f"({error})"
            ) from error


def _exported(jax: Any, program: _Program, specs: Sequence[Any], platforms: Sequence[str]) -> Any:
    names: list[Callable[[int, int], str]] = [lambda i, axis: f"n{i}_{axis}", lambda i, axis: f"n{axis}"]
    unknown = any(None in spec.shape for spec in specs)
    failed: ExportError | None = None
    for name in names if unknown else names[:1]:
        arguments = _arguments(jax, specs, name)
        try:
            return jax.export.export(jax.jit(program), platforms=list(platforms))(*program.first(jax), *arguments)
        except ExportError as error:
            failed = failed or error
        except Exception as error:  # of lowering: what has no form for a platform
            words = str(error).split("\n")[0][:300]
            raise ExportError(
                f"{program.name} cannot be exported to StableHLO for {list(platforms)}: {words}"
            ) from error
    assert failed is not None
    advice = ". Sizes of None are symbolic there; give a number where it must be known" if unknown else ""
    raise ExportError(f"{failed.bare}{advice}") from failed


def _arguments(jax: Any, specs: Sequence[Any], name: Callable[[int, int], str]) -> list[Any]:
    scope = jax.export.SymbolicScope()
    arguments = []
    for i, spec in enumerate(specs):
        sizes = ", ".join([name(i, axis) if n is None else str(n) for axis, n in enumerate(spec.shape)])
        shape = jax.export.symbolic_shape(sizes, scope=scope) if sizes else ()
        arguments.append(jax.ShapeDtypeStruct(shape, spec.dtype))
    return arguments


class _Program:
    """What JAX traces: the graph of one trace, with the values that it captures."""

    def __init__(self, trace: ConcreteFunction, paths: dict[int, str], as_inputs: bool) -> None:
        self.name = self.__name__ = trace.name
        self._trace = trace
        self._as_inputs = as_inputs
        self._names: list[str | None] = []
        self._captures: list[Any] = []
        for x, name in zip(trace.captures, trace.graph.input_names[len(trace.graph.arguments) :], strict=True):
            self._add(x, name, paths)

    def _add(self, x: Any, name: str, paths: dict[int, str]) -> None:
        if x is None:
            raise ExportError(f"{self.name} cannot be exported: a variable that it uses, {name}, has been deleted")
        path = None
        if isinstance(x, Variable):
            path = paths.get(x._uid, x.name)
            while path in self._names:
                path += "_1"
        self._names.append(path)
        value = x.read_value() if isinstance(x, Variable) else x
        self._captures.append(value.numpy() if isinstance(value, Tensor) else value)

    def first(self, jax: Any) -> tuple[Any, ...]:
        """The types of the variables, where these are an argument."""
        pairs = zip(self._names, self._captures, strict=True)
        types = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in pairs if name is not None}
        return (types,) if self._as_inputs else ()

    def __call__(self, *arguments: Any) -> Any:
        values, tensors = (arguments[0], arguments[1:]) if self._as_inputs else ({}, arguments)
        captures = [
            x if name is None else VariableCell(values.get(name, x))
            for name, x in zip(self._names, self._captures, strict=True)
        ]
        try:
            results = GraphLowering(CONTROL, why_refused).run(self._trace.graph, (*tensors, *captures))
        except NoFormError as error:
            raise ExportError(f"{self.name} cannot be exported to StableHLO: {error}") from error.__cause__
        return _plain(self._trace.result_of(tuple(map(value_of, results))))


def why_refused(op: Op) -> str:
    """Why an op cannot be in a file, whatever its operands; empty if it can."""
    if op.effect == "random":
        return "draws from a generator on the host: draw outside of the function, and pass the numbers as an argument"
    if op.effect == "write":
        return "assigns a variable, and an exported function has none: return the new value instead"
    why = why_no_form(op)
    if why and not op.foreign:
        many_steps = op.name in ("while_forward", "custom_gradient")
        why += (
            ", or export the function without its gradient" if many_steps else ": leave it out of the exported function"
        )
    return why


def _plain(result: Any) -> Any:
    """A result without classes of containers that JAX does not know: named tuples are tuples."""
    if isinstance(result, tuple):
        return tuple([_plain(x) for x in result])
    if isinstance(result, list):
        return [_plain(x) for x in result]
    return {key: _plain(x) for key, x in result.items()} if isinstance(result, dict) else result


def _paths(target: Any) -> dict[int, str]:
    return {v._uid: path for path, v in target.named_variables()} if isinstance(target, Module) else {}
