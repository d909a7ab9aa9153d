"""`ll.load`: functions and modules out of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from limelight.checkpoint.object_paths import split
from limelight.core import device_scopes, devices
from limelight.core.tensor import constant
from limelight.core.variable import Variable
from limelight.errors import ExportError, LimelightError
from limelight.export import function_file
from limelight.export.loaded import LoadedFunction, LoadedModule, as_old_tree, hold_functions
from limelight.export.nest_json import Output, decode
from limelight.export.parameters import signature
from limelight.export.portable_graph import from_text
from limelight.export.variable_paths import as_tree, module_path
from limelight.ops.random._draws import is_state
from limelight.random import Generator, default_generator
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.signature import Signature
from limelight.staging.structured_outputs import outputs_like


def load(path: str | os.PathLike[str]) -> Any:
    """The function, module or dictionary of functions that `ll.save` has written to a file.

    What is loaded runs as it did, is differentiable, may be called in other staged functions and trained further; each
    load makes variables of its own. Reading a file runs no code, also of one from a stranger.

    Args:
        path: the file.

    Returns:
        A `LoadedFunction`; a `LoadedModule` with the variables as attributes; or a dictionary of loaded functions.

    Raises:
        ExportError: there is no such file, or it holds no functions, is damaged, or was written in a newer format.

    >>> import tempfile
    >>> import limelight as ll
    >>> net = ll.nn.Dense(2)
    >>> y = net(ll.ones((1, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ll.load(ll.save(net, f"{folder}/net.ll", ll.TensorSpec((None, 3))))
    >>> bool((again(ll.ones((1, 3))) == y).all()), again.kernel.shape
    (True, (3, 2))
    """
    try:
        file = Path(path)
    except TypeError:
        raise ExportError(f"ll.load takes a path, got {type(path).__name__}") from None
    content, arrays = function_file.read(file)
    try:
        return _Content(content, arrays).target()
    except LimelightError:
        raise
    except Exception as error:  # of whatever a file says in the place of something else
        raise ExportError(f"{file} is damaged: {type(error).__name__} {error}") from error


class _Content:
    """The content of a file, as what it stands for."""

    def __init__(self, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        self._content = content
        self._arrays = arrays
        self._variables = [self._variable(described) for described in content["variables"]]
        self._generators: dict[str, Generator] = {}
        self._tensors: dict[str, Any] = {}

    def target(self) -> Any:
        functions = {name: self._function(described) for name, described in self._content["functions"].items()}
        if self._content["module"] is not None:
            return self._module(functions)
        return functions["call"] if list(functions) == ["call"] and not self._content.get("by_name") else functions

    def _module(self, functions: Mapping[str, LoadedFunction]) -> LoadedModule:
        paths = [described["path"] for described in self._content["variables"]]
        variables = dict(zip(paths, self._variables, strict=True))
        if "containers" in self._content:
            if len(variables) < len(paths):
                raise ExportError("the file is damaged: two variables have one path")
            owners = list(dict.fromkeys(module_path(name) for name in functions if module_path(name)))
            module: LoadedModule = as_tree(variables, self._content["containers"], LoadedModule, owners)
        else:
            module, owners = as_old_tree(variables), []
        own = {name: f for name, f in functions.items() if not (owners and module_path(name))}
        _give_functions(module, own)
        for path in owners:
            below = {name.rpartition("/")[2]: f for name, f in functions.items() if module_path(name) == path}
            _give_functions(_at(module, path), below)
        return module

    def _variable(self, described: Mapping[str, Any]) -> Variable:
        with device_scopes.cleared():
            return Variable(
                self._arrays[described["array"]],
                name=str(described["name"]),
                trainable=bool(described["trainable"]),
                shape=tuple(described["shape"]),
            )

    def _function(self, described: Mapping[str, Any]) -> LoadedFunction:
        name = str(described["name"])
        of_python = Signature(_stub(name, described["parameters"], self._arrays), name)
        return LoadedFunction(name, of_python, [self._trace(name, of_python, trace) for trace in described["traces"]])

    def _trace(self, name: str, signature: Signature, described: Mapping[str, Any]) -> ConcreteFunction:
        function = from_text(described["text"], described["blanks"], self._arrays)
        args, kwargs = [decode(nest) for nest in described["arguments"]]
        call = signature.call(tuple(args), kwargs, abstract=True)
        device = None if described["device"] is None else devices.find(described["device"])
        key = call.key._replace(device=device)
        captures = [self._capture(capture) for capture in described["captures"]]
        _check(function.graph, key, captures)
        outputs = outputs_like(decode(described["result"]), Output, len(function.graph.outputs))
        paths = signature.paths(key.structure, len(call.leaves))
        trace = ConcreteFunction(function, captures, outputs, key, paths, "a file")
        trace.python_signature, trace.origin = signature, "read from a file"
        trace.keep(captures)
        return trace

    def _capture(self, described: Mapping[str, Any]) -> Any:
        if "variable" in described:
            return self._variables[described["variable"]]
        if "array" in described:
            name = described["array"]
            if name not in self._tensors:
                self._tensors[name] = constant(self._arrays[name])
            return self._tensors[name]
        name = described["generator"]
        if name is None:
            return default_generator()
        if name not in self._generators:
            generator = self._generators[name] = Generator(0)
            if not is_state(self._arrays[name]):
                raise ExportError("the file is damaged: it has a generator whose state is none")
            generator._data.set(self._arrays[name])
        return self._generators[name]


def _at(module: Any, path: str) -> LoadedModule:
    edge: Any  # of a list a position, by the reader's own check an index error
    for edge in split(path):
        module = module[edge] if isinstance(module, (list, dict)) else vars(module)[edge]
    if not isinstance(module, LoadedModule):
        raise ExportError(f"the file is damaged: it has functions of {path}, which is no module")
    return module


def _give_functions(module: LoadedModule, functions: Mapping[str, LoadedFunction]) -> None:
    hold_functions(module, functions)
    for method, loaded in functions.items():
        object.__setattr__(module, method, loaded)


def _check(graph: Any, key: Any, captures: Sequence[Any]) -> None:
    """Refuses a graph that takes other inputs than the file says."""
    inputs = [part for part in key.parts if part.is_input]
    if len(inputs) != len(graph.arguments) or len(captures) != graph.n_captures:
        raise ExportError("the file is damaged: a graph takes other inputs than its signature says")


def _stub(name: str, parameters: Sequence[Mapping[str, Any]], arrays: Mapping[str, Any]) -> Any:
    """A function with these parameters, for a `Signature`; it is never run."""

    def stub(*args: Any, **kwargs: Any) -> Any:
        raise ExportError(f"{name} was loaded from a file: there is no Python code to run")

    stub.__signature__ = signature(parameters, arrays)  # type: ignore[attr-defined]  # which `inspect` reads
    stub.__name__ = stub.__qualname__ = name
    return stub
