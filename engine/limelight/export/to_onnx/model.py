"""A whole model of ONNX: the trace, its inputs and outputs by name, the check by onnxruntime, the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from limelight.core import dtypes
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ExportError
from limelight.export.destination import destination, write_whole
from limelight.export.to_onnx import check as checks
from limelight.export.to_onnx.builder import Builder, Var
from limelight.export.to_onnx.writer import GraphWriter
from limelight.export.traces_to_write import argument_specs, single_trace
from limelight.staging.concrete_function import ConcreteFunction

OPSET: Final = 26
"""The newest opset that the releases of onnxruntime for Python and for JavaScript both run."""
_CALLER: Final = "ll.export.onnx"


def write(target: Any, path: Any, signature: Any, check: bool) -> Path:
    """What `ll.export.onnx` does. Raises ExportError."""
    file = destination(path, _CALLER, "model.onnx")
    trace = single_trace(target, signature, _CALLER)
    model = model_of(trace)
    data = serialised(trace.name, model)
    if check:
        checks.check(trace, data, _examples(signature))
    write_whole(file, lambda writer: writer.write(data))
    return file


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
    read = _names_read(builder.nodes)  # what folding has left without a reader onnxruntime warns of
    kept = [one for one in builder.initialisers if one.name in read]
    made = helper.make_graph(builder.nodes, _word(trace.name), infos, outputs, kept)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(made, opset_imports=[opset], producer_name="limelight")
    model.ir_version = helper.find_min_ir_version_for([opset])
    return model


def _names_read(nodes: Iterable[Any]) -> set[str]:
    """The names that nodes read, those in the graphs of loops and branches among them."""
    read: set[str] = set()
    for node in nodes:
        read.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= _names_read(attribute.g.node) | {x.name for x in attribute.g.output}
    return read


def _inputs(trace: ConcreteFunction, builder: Builder) -> tuple[list[Var], list[Any]]:
    variables, infos = [], []
    for name, spec in argument_specs(trace):
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
        raise ExportError(f"{trace.name} cannot be exported to ONNX: it returns no tensor; have it return one")
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
