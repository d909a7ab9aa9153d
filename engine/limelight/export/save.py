"""`ll.save`: traces into a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from limelight.core.spec import GENERATOR, TensorSpec
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource, Variable
from limelight.errors import ExportError
from limelight.export import function_file
from limelight.export.destination import destination
from limelight.export.loaded import FUNCTIONS, LoadedModule
from limelight.export.nest_json import Output, canonical_key, encode
from limelight.export.parameters import described
from limelight.export.portable_graph import to_text
from limelight.export.traces_to_write import refuse_shared, traces_by_name
from limelight.export.variable_paths import dotted, module_path, paths_of
from limelight.module import Module
from limelight.random import default_generator
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.key_parts import ObjectPart, TensorPart, ValuePart, VariablePart
from limelight.user_code.warn_at import warn_here


def save(target: Any, path: str | os.PathLike[str], signatures: Sequence[Any] | Mapping[str, Any] | Any = ()) -> Path:
    """Saves a staged function, or a module with its functions and variables, to run without the Python code.

    A file holds the traces that there are, and those of `signatures`, with the variables and tensors that they use.
    `ll.load` reads it, in a process that need not know the code. It is a safetensors file whose header has the graphs
    as text: reading one runs no code. It appears whole or not at all.

    Args:
        target: what to save. A function made by `ll.function`, a plain function (which is staged for it), a trace
            (`get_concrete_function`), or a module: then `call`, and each method that is staged, its own and those of
            the modules below it. Or a dictionary of functions by name.
        path: the file; one that exists is replaced.
        signatures: what to trace besides. A signature is a spec or, for several arguments, a tuple of what
            `get_concrete_function` takes; a list is of several signatures, a trace for each. For a module they are
            those of its `call`, and a shape such as (None, 64) stands for a spec of float32, as in `build`; for a
            dictionary those of each of its functions, or a dictionary of them by the same names. A function with an
            `input_signature` needs none, and is traced for that.

    Returns:
        The path.

    Raises:
        ExportError: something cannot travel: a `py_func`, an op or container of your own, an object as argument, a
            variable that does not belong to the module. It names function, op and line. Or there is no trace, or a
            signature for which a trace or a loaded function, which have no Python code, were not traced.

    Warns:
        UserWarning: a staged method of a module has neither a trace nor an `input_signature`, or is one of a module
            below that cannot travel, and is left out.

    >>> import tempfile
    >>> import limelight as ll
    >>> @ll.function
    ... def area(r):
    ...     return 3.0 * r * r
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ll.save(area, f"{folder}/area.ll", ll.TensorSpec((None,)))
    ...     loaded = ll.load(path)
    >>> loaded(ll.constant([1.0, 2.0])).tolist()
    [3.0, 12.0]
    """
    file = destination(path, "ll.save", "model.ll")
    functions = traces_by_name(target, signatures)  # first: a module makes its variables when it is traced
    saved = _Saved(target if isinstance(target, Module) else None, functions)
    content = {
        "made_by": _version(),
        "module": type(target).__name__ if isinstance(target, Module) else None,
        "containers": saved.containers,
        "by_name": isinstance(target, Mapping),
        "functions": saved.functions(functions),
        "variables": saved.variables,
    }
    function_file.write(file, content, saved.arrays)
    return file


def _version() -> str:
    from importlib import metadata  # noqa: PLC0415  # it loads a dozen modules that nothing else needs

    try:
        return metadata.version("limelight")
    except metadata.PackageNotFoundError:
        return "unknown"


class _Saved:
    """What a file holds: variables and arrays, each once, and what they are called."""

    def __init__(self, module: Module | None, functions: Mapping[str, Any]) -> None:
        self.arrays: dict[str, Any] = {}
        self.variables: list[dict[str, Any]] = []
        self._module = module
        if module is not None and FUNCTIONS in vars(module) and not isinstance(module, LoadedModule):
            raise ExportError(f"a module with an attribute {FUNCTIONS!r} cannot be saved: call it something else")
        owners = {module_path(name) for name in functions if module_path(name)}
        variables, self.containers = ({}, {}) if module is None else paths_of(module, owners)[:2]
        self._paths = {v._uid: path for path, v in variables.items()}
        self._numbers: dict[int, int] = {}
        self._tensors: dict[int, str] = {}
        for variable in variables.values():
            self._variable(variable)

    def functions(self, functions: Mapping[str, list[ConcreteFunction]]) -> dict[str, Any]:
        """All of them, by name. Raises ExportError for one of the target's own; others are left out with a warning."""
        described = {}
        for name, traces in functions.items():
            arrays, tensors = dict(self.arrays), dict(self._tensors)
            try:
                described[name] = self.function(traces)
            except ExportError as error:
                if self._module is None or not module_path(name):
                    raise
                self.arrays, self._tensors = arrays, tensors
                warn_here(f"ll.save leaves out `{dotted(name)}` of the {type(self._module).__name__}: {error.bare}")
        return described

    def function(self, traces: list[ConcreteFunction]) -> dict[str, Any]:
        """One function, with all its traces. Raises ExportError."""
        signature = traces[0].python_signature
        parameters = list(signature.inspected.parameters.values())
        return {
            "name": traces[0].name,
            "parameters": described(traces[0].name, parameters, self._array),
            "traces": [self._trace(trace) for trace in traces],
        }

    def _trace(self, trace: ConcreteFunction) -> dict[str, Any]:
        refuse_shared(trace)
        arguments = [_argument(trace.name, part, path) for part, path in zip(trace.key.parts, trace.paths, strict=True)]
        positional, keywords = trace.python_signature.unbind(arguments, canonical_key(trace.key).structure)
        text, blanks = to_text(trace.name, trace.function, self.arrays)
        names = trace.graph.input_names[len(trace.graph.arguments) :]
        return {
            "arguments": [encode(list(positional), "args"), encode(dict(keywords), "kwargs")],
            "text": text,
            "blanks": blanks,
            "captures": [self._capture(trace, x, name) for x, name in zip(trace.captures, names, strict=True)],
            "result": encode(trace.result_of([Output(i) for i in range(len(trace.graph.outputs))]), "result"),
            "device": None if trace.key.device is None else trace.key.device.short,
        }

    def _capture(self, trace: ConcreteFunction, x: Any, name: str) -> dict[str, Any]:
        if x is None:
            raise ExportError(f"{trace.name} cannot be saved: a variable that it uses, {name}, has been deleted")
        if isinstance(x, Resource) and x.spec == GENERATOR:
            return {"generator": None if x is default_generator() else self._array(f"generators/{name}", x._data.array)}
        if isinstance(x, Variable):
            return {"variable": self._owned(trace, x)}
        if isinstance(x, Tensor):
            if x._uid not in self._tensors:
                self._tensors[x._uid] = self._array(f"captures/{name}", _host(x))
            return {"array": self._tensors[x._uid]}
        raise ExportError(f"{trace.name} cannot be saved: it closes over a {type(x).__name__}, {name}")

    def _array(self, name: str, array: Any) -> str:
        unique, n = name.encode("utf-8", "replace").decode(), 0  # halves of a character pair have no place in a header
        name = unique
        while unique in self.arrays:
            n += 1
            unique = f"{name}.{n}"
        self.arrays[unique] = array
        return unique

    def _owned(self, trace: ConcreteFunction, variable: Variable) -> int:
        """The number of a variable that a trace uses. Raises ExportError for one that the saved module does not own."""
        if self._module is not None and variable._uid not in self._paths:
            node = next((n for n in trace.graph.nodes for v in n.inputs if _stands_for(trace, v, variable)), None)
            where = f", in {node.op.name} at {node.source[0]}:{node.source[1]}" if node and node.source else ""
            raise ExportError(
                f"{trace.name} uses the variable {variable.name!r}{where}, which is not part of the "
                f"{type(self._module).__name__} that is saved: make it an attribute of the module"
            )
        return self._variable(variable)

    def _variable(self, variable: Variable) -> int:
        number = self._numbers.get(variable._uid)
        if number is None:
            number = self._numbers[variable._uid] = len(self.variables)
            path = self._paths.get(variable._uid) or self._own_path(variable.name)
            array = self._array(f"variables/{path}", _host(variable.read_value()))
            self.variables.append({
                "path": path,
                "name": variable.name,
                "array": array,
                "shape": list(variable.shape),
                "trainable": variable.trainable,
            })  # fmt: skip
        return number

    def _own_path(self, name: str) -> str:
        """A path for a variable that belongs to no module: its name, made unique."""
        taken, unique, n = {v["path"] for v in self.variables}, name, 0
        while unique in taken:
            n += 1
            unique = f"{name}_{n}"
        return unique


def _stands_for(trace: ConcreteFunction, value: Any, variable: Variable) -> bool:
    return any(v is value and x is variable for v, x in zip(trace.graph.captures, trace.captures, strict=True))


def _host(x: Tensor) -> Any:
    return x.numpy()


def _argument(name: str, part: Any, path: str) -> Any:
    """What stands for one leaf of a trace's arguments: a spec, or the plain value that the trace is bound to."""
    match part:
        case TensorPart():
            return TensorSpec(part.shape, part.dtype)
        case ValuePart() if not part.is_words:
            return part.value
        case ValuePart() if part.kind in (float, complex):
            return part.kind(part.value)
        case ValuePart() if part.kind is slice:
            return _slice(part.value)
        case VariablePart():
            why = "a variable; read it before the call, or have the function close over it"
        case ObjectPart():
            why = f"{part.describe()}, a Python object; have the function close over it"
        case _:
            why = f"a {part.kind.__name__}; pass a plain number, string or tensor"
    raise ExportError(f"{name} cannot be saved: its argument `{path}` is {why}")


def _slice(words: str) -> slice:
    """The slice that its repr stands for."""
    inner = words.removeprefix("slice(").removesuffix(")").split(", ")
    return slice(*[None if word == "None" else int(word) for word in inner])
