"""`ll.save`: traces into a file."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from limelight.checkpoint.edge_names import join
from limelight.core import nest
from limelight.core.spec import GENERATOR, TensorSpec
from limelight.core.tensor import Tensor
from limelight.core.variable import Resource, Variable
from limelight.errors import ExportError
from limelight.export import function_file
from limelight.export.loaded import FUNCTIONS, LoadedFunction, LoadedModule, functions_of
from limelight.export.nests import Output, canonical_key, encode
from limelight.export.parameters import described
from limelight.export.portable_graph import to_text
from limelight.export.variable_paths import dotted, module_path, paths_of
from limelight.module import Module
from limelight.random import default_generator
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function, function
from limelight.staging.key_parts import ObjectPart, TensorPart, ValuePart, VariablePart
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

_MOST_NAMED: Final = 8
CALL: Final = "call"
"""The name of the function that calling a saved module, or a saved function, runs."""


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
        signatures: what to trace besides: a list of signatures, each a spec or a tuple of arguments as
            `get_concrete_function` takes them. For a module they are those of its `call`; for a dictionary those of
            each of its functions, or a dictionary of them by the same names. A function with an `input_signature` needs
            none, and is traced for that.

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
    try:
        file = Path(path)
    except TypeError:
        raise ExportError(f"ll.save takes a path as its second argument, got {type(path).__name__}") from None
    if not os.path.isdir(file.parent):
        raise ExportError(f"there is no folder {file.parent}; make it first: Path({str(file.parent)!r}).mkdir()")
    if os.path.isdir(file):  # which raises nothing, of a name that is too long either
        raise ExportError(f"{file} is a folder; give the name of a file in it, {str(file / 'model.ll')!r} for example")
    functions = _functions_of(target, signatures)  # first: a module makes its variables when it is traced
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


# What is saved


def _functions_of(target: Any, signatures: Any) -> dict[str, list[ConcreteFunction]]:
    """The traces of each function, by name."""
    if isinstance(target, Mapping):
        return _functions_by_name(target, signatures)
    wanted = _listed(signatures)
    if isinstance(target, LoadedModule):
        if wanted and CALL not in functions_of(target):
            raise ExportError(
                f"{type(target).__name__} was loaded without a trace of its call; save it without signatures"
            )
        own = {name: _traces_of(f, wanted if name == CALL else [], name) for name, f in functions_of(target).items()}
        return own | _functions_below(target)
    if isinstance(target, Module):
        return _functions_of_module(target, wanted)
    return {CALL: _traces_of(target, wanted, "")}


def _listed(signatures: Any) -> list[Any]:
    return list(signatures) if isinstance(signatures, list) else [signatures] if signatures != () else []


def _functions_by_name(target: Mapping[Any, Any], signatures: Any) -> dict[str, list[ConcreteFunction]]:
    if not target or not all(isinstance(name, str) and name.isidentifier() for name in target):
        raise ExportError("ll.save takes a dictionary of functions whose names are Python names")
    by_name = signatures if isinstance(signatures, Mapping) else dict.fromkeys(target, signatures)
    unknown = [repr(name) for name in by_name if name not in target]
    if unknown:
        raise ExportError(
            f"ll.save: signatures for {', '.join(unknown)}, which the dictionary does not have: it has "
            f"{', '.join(map(repr, target))}; one argument that is a dictionary is written in a tuple, [({{...}},)]"
        )
    return {name: _traces_of(f, _listed(by_name.get(name, ())), name) for name, f in target.items()}


def _functions_of_module(module: Module, wanted: list[Any]) -> dict[str, list[ConcreteFunction]]:
    methods = _staged_methods(module)
    if wanted:
        methods[CALL] = methods.get(CALL) or _called(module)
    names = sorted(methods, key=lambda name: name != CALL)  # `call` first: others may read the variables that it makes
    given = {CALL: wanted}
    functions = {name: _traces_of(methods[name], given.get(name, []), name, required=False) for name in names}
    functions |= _functions_below(module)  # after `call`, which may have made some of them
    left_out = [name for name, traces in functions.items() if not traces]
    functions = {name: traces for name, traces in functions.items() if traces}
    if not functions:
        raise ExportError(
            f"{type(module).__name__} has no trace to save: give ll.save the signature of its call, "
            "ll.save(net, path, ll.TensorSpec((None, 3))) for example, with None for sizes that change"
        )
    if left_out:
        shown = ", ".join([f"`{dotted(name)}`" for name in left_out[:_MOST_NAMED]])
        shown += f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        them = "it" if len(left_out) == 1 else "each"
        _warn(
            f"ll.save leaves out {shown} of the {type(module).__name__}, staged but never called: call {them} once "
            "before, or write @ll.function(input_signature=[...])"
        )
    return functions


def _functions_below(module: Module) -> dict[str, list[ConcreteFunction]]:
    """The traces of the staged methods of the modules below one, by path and name: "encoder/encode"."""
    return {
        join(path, name): _traces_of(method, [], f"{path}/{name}", required=False)
        for path, one in paths_of(module).modules.items()
        for name, method in _staged_methods(one).items()
    }


def _staged_methods(module: Module) -> dict[str, Any]:
    if isinstance(module, LoadedModule):
        return dict(functions_of(module))
    methods = {name: getattr(module, name) for name in dir(type(module)) if _is_staged_method(type(module), name)}
    return methods | {name: value for name, value in vars(module).items() if isinstance(value, Function)}


def _warn(message: str) -> None:
    stack = source_line.user_stack(limit=1)
    if stack:
        warn_at(stack[0], message, UserWarning)
    else:
        warnings.warn(message, stacklevel=4)


def _is_staged_method(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name, None), Function)


def _called(module: Module) -> Function:
    """The module's call, staged, with the parameters of its `call`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    call.__signature__ = inspect.signature(module.call)  # type: ignore[attr-defined]  # which `inspect` reads
    call.__name__ = call.__qualname__ = type(module).__name__
    return function(call)


def _traces_of(target: Any, wanted: list[Any], name: str, required: bool = True) -> list[ConcreteFunction]:
    """The traces of a function, and those for the signatures that are wanted; at least one where that is required."""
    if isinstance(target, LoadedFunction):
        for signature in wanted:
            _check_covered(target, signature)
        return list(target.traces)
    if isinstance(target, ConcreteFunction):
        alone = LoadedFunction(target.name, target.python_signature, [target])
        return _traces_of(alone, wanted, name)
    if not callable(target):
        hint = ""
        if isinstance(target, (str, os.PathLike)):
            hint = "; the path comes second"
        elif isinstance(target, (Tensor, Variable)) or hasattr(target, "__array__"):
            hint = "; an array is saved by np.save(path, x.numpy())"
        raise ExportError(
            f"ll.save takes a function, a module or a dictionary of functions, got {type(target).__name__}{hint}"
        )
    staged = target if isinstance(target, Function) else function(target)
    for signature in wanted:
        staged.get_concrete_function(*_arguments(signature))
    traces: list[ConcreteFunction] = [trace for trace in staged.trace_cache if not trace.stale]
    if not traces and staged._declared is not None and all(x.has_rank for x in nest.leaves_of(staged._declared)):
        traces = [staged.get_concrete_function()]
    if not traces and required:
        raise ExportError(
            f"{name or staged.name} has no trace to save: call it once, or give ll.save its signature, "
            "ll.save(f, path, ll.TensorSpec((None, 3))) for example, with None for sizes that change"
        )
    return traces


def _arguments(signature: Any) -> tuple[Any, ...]:
    return signature if isinstance(signature, tuple) else (signature,)


def _check_covered(loaded: LoadedFunction, signature: Any) -> None:
    """Raises ExportError for a signature that none of the traces serves: there is no Python code to trace."""
    call = loaded.bound(_arguments(signature), {}, abstract=True)
    if not loaded.serves(call):
        raise ExportError(
            f"ll.save: {loaded.name}, a trace or loaded from a file, cannot be traced for another signature, and has "
            f"{loaded.lacks(call)}\nSave it without signatures, or the staged function that it was made of"
        )


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
                _warn(f"ll.save leaves out `{dotted(name)}` of the {type(self._module).__name__}: {error.bare}")
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
