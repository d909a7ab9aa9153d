"""A whole model of ONNX: the trace, its inputs and outputs by name, the check by onnxruntime, the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from limelight.checkpoint.file_system import Writer, sweep
from limelight.core import dtypes
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ExportError
from limelight.export.loaded import LoadedModule
from limelight.export.save import CALL, _called, _functions_of
from limelight.export.to_onnx import check as checks
from limelight.export.to_onnx.builder import Builder, Var
from limelight.export.to_onnx.writer import GraphWriter
from limelight.module import Module
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function, function

OPSET: Final = 26
"""The newest opset that the releases of onnxruntime for Python and for JavaScript both run."""
_NOTHING_ELSE: Final = re.compile(r"(?!)")


def write(target: Any, path: Any, signature: Any, check: bool) -> Path:
    """What `ll.export.onnx` does. Raises ExportError."""
    file = _file(path)
    trace = trace_of(target, signature)
    model = model_of(trace)
    data = serialised(trace.name, model)
    if check:
        checks.check(trace, data, _examples(signature))
    _commit(file, data)
    return file


def _file(path: Any) -> Path:
    try:
        file = Path(path)
    except TypeError:
        raise ExportError(f"ll.export.onnx takes a path as its second argument, got {type(path).__name__}") from None
    if not file.parent.is_dir():
        raise ExportError(f"there is no folder {file.parent}; make it first: Path({str(file.parent)!r}).mkdir()")
    if file.is_dir():
        raise ExportError(
            f"{file} is a folder; give the name of a file in it, {str(file / 'model.onnx')!r} for example"
        )
    return file


def trace_of(target: Any, signature: Any) -> ConcreteFunction:
    """The one trace to export. Raises ExportError where there are several, or none."""
    wanted = [] if type(signature) is tuple and not signature else [signature]  # a tensor compares element by element
    if wanted and not isinstance(target, (ConcreteFunction, LoadedModule)):
        return _traced(target, signature)
    found = _functions_of(target, wanted)
    if CALL not in found:
        names = ", ".join(f"net.{name}" for name in found)
        raise ExportError(f"ll.export.onnx takes one function; give it one of these: {names}")
    traces = found[CALL]
    if len(traces) != 1:
        listed = "".join(f"\n    {trace.signature}" for trace in traces)
        raise ExportError(
            f"a file of ONNX holds one trace, and {traces[0].name} has {len(traces)}: give the signature, "
            f"ll.export.onnx(f, path, ll.TensorSpec((None, 3))) for example. There are{listed}"
        )
    return traces[0]


def _traced(target: Any, signature: Any) -> ConcreteFunction:

    if isinstance(target, Module):
        method = getattr(target, CALL)
        target = method if isinstance(method, Function) else _called(target)
    elif not isinstance(target, Function):
        if not callable(target):
            raise ExportError(f"ll.export.onnx takes a function or a module, got {type(target).__name__}")
        target = function(target)
    trace: ConcreteFunction = target.get_concrete_function(
        *(signature if isinstance(signature, tuple) else (signature,))
    )
    return trace


def model_of(trace: ConcreteFunction) -> Any:
    """The trace as a model of ONNX."""
    builder = Builder()
    graph = trace.graph
    inputs, infos = _inputs(trace, builder)
    names = _result_names(trace, builder)  # before anything else can take them
    captures = [
        _capture(trace, builder, x, name)
        for x, name in zip(trace.captures, graph.input_names[len(graph.arguments) :], strict=True)
    ]
    results = GraphWriter(trace.name, builder).inline(graph, [*inputs, *captures])
    outputs = _outputs(trace, builder, results, names)
    made = helper.make_graph(builder.nodes, _word(trace.name), infos, outputs, builder.initialisers)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(made, opset_imports=[opset], producer_name="limelight")
    model.ir_version = helper.find_min_ir_version_for([opset])
    return model


def _inputs(trace: ConcreteFunction, builder: Builder) -> tuple[list[Var], list[Any]]:
    variables, infos = [], []
    for name, value in zip(trace.graph.input_names, trace.graph.arguments, strict=False):
        spec = value.spec
        if not isinstance(spec, TensorSpec) or spec.rank is None:
            raise ExportError(
                f"{trace.name} cannot be exported: its argument `{name}` is a variable or an object; have the function "
                "close over it"
            )
        _refuse_complex(trace, spec, f"its argument `{name}`")
        x = Var(builder, builder.fresh(_word(name)), spec.dtype, spec.shape)
        variables.append(x)
        symbols = [None if n is not None else f"{x.name}_size_{i}" for i, n in enumerate(spec.shape)]
        infos.append(builder.info(x, symbols=symbols))
    return variables, infos


def _refuse_complex(trace: ConcreteFunction, spec: Any, what: str) -> None:
    if dtypes.kind(spec.dtype) == "complex":
        raise ExportError(
            f"{trace.name} cannot be exported to ONNX: {what} is complex, and onnxruntime has no kernels for complex "
            "numbers; pass and return the real and the imaginary part, ll.real(z) and ll.imag(z)"
        )


def _capture(trace: ConcreteFunction, builder: Builder, x: Any, name: str) -> Any:
    if x is None:
        raise ExportError(f"{trace.name} cannot be exported: a variable that it uses, {name}, has been deleted")
    if isinstance(x, Variable):
        x = x.read_value()
    if not isinstance(x, Tensor):
        return x  # a generator or a table, whose ops are refused at their lines
    _refuse_complex(trace, x, f"`{name}`, which it uses,")
    return builder.constant(x.numpy(), name=_word(name))


def _result_names(trace: ConcreteFunction, builder: Builder) -> list[str]:
    """Names for the results, by path. Raises ExportError where there are none."""
    paths = trace._outputs.paths("output")
    if not paths:
        raise ExportError(f"{trace.name} cannot be exported to ONNX: it returns no tensor; return what is to be computed")
    return [builder.fresh(_result_name(path)) for path in paths]


def _outputs(trace: ConcreteFunction, builder: Builder, results: Sequence[Any], names: Sequence[str]) -> list[Any]:
    infos = []
    paths = trace._outputs.paths("output")
    for path, name, value, spec in zip(paths, names, results, trace.graph.outputs, strict=True):
        _refuse_complex(trace, spec.spec, f"its result `{path}`")
        builder.nodes.append(helper.make_node("Identity", [value.name], [name]))
        infos.append(builder.info(Var(builder, name, value.dtype, value.shape)))
    return infos


def _result_name(path: str) -> str:
    """A name of ONNX for a path: `output["loss"]` is loss, `output[0]` is output_0."""
    inner = re.fullmatch(r"output\[[\"'](\w+)[\"']\]", path) or re.fullmatch(r"output\.(\w+)", path)
    return inner[1] if inner else _word(path)


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "x"


def serialised(name: str, model: Any) -> bytes:
    """The bytes of the file, which the checker of ONNX has read."""
    try:
        data: bytes = model.SerializeToString()
    except ValueError as error:  # protocol buffers end at 2 GiB
        raise ExportError(f"{name} cannot be exported: a file of ONNX holds less than 2 GiB ({error})") from None
    onnx.checker.check_model(model)
    return data


def _examples(signature: Any) -> list[Any]:
    given = signature if isinstance(signature, tuple) else (signature,)
    return [x for x in given if isinstance(x, (Tensor, np.ndarray))]


def _commit(file: Path, data: bytes) -> None:
    writer = None
    try:
        writer = Writer(file)
        writer.write(data)
        writer.commit()
    except OSError as error:
        raise ExportError(f"{file} cannot be written: {error}") from error
    finally:
        if writer is not None:
            writer.discard()
    sweep(file, _NOTHING_ELSE, ())
