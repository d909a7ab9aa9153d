"""The traces of what is to be written to a file: a function, a trace, a module, or a dictionary of functions."""

from __future__ import annotations

import inspect
import os
import reprlib
from collections.abc import Mapping
from typing import Any, Final

from limelight.checkpoint.object_paths import join
from limelight.core import nest
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ExportError
from limelight.export.loaded import LoadedFunction, LoadedModule, functions_of
from limelight.export.variable_paths import dotted, paths_of
from limelight.module import Module
from limelight.module_build import spec_of
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.decorator import function
from limelight.staging.function import Function
from limelight.user_code.warn_at import warn_here

_SAVE: Final = "ll.save"
_MOST_NAMED: Final = 8
CALL: Final = "call"
"""The name of the function that calling a saved module, or a saved function, runs."""


def single_trace(target: Any, signature: Any, caller: str) -> ConcreteFunction:
    """The one trace that a file of another format holds.

    Args:
        target: a staged or plain function, a trace, a module, whose call is meant, or what `ll.load` has read.
        signature: a spec, or a tuple of arguments as `get_concrete_function` takes them, in which shapes stand for
            tensors of float32 where the target is a module; () for the trace there is.
        caller: the exporter, for messages.

    Raises:
        ExportError: the target is none of these, or has several traces, or none.
    """
    if _is_given(signature) and not isinstance(target, (ConcreteFunction, LoadedModule)):
        return _traced(target, signature, caller)
    found = _functions_of(target, [signature] if _is_given(signature) else [], caller)
    found = {name: traces for name, traces in found.items() if traces}
    if CALL not in found:
        names = ", ".join(f"net.{name}" for name in found)
        raise ExportError(f"{caller} takes one function; give it one of these: {names}")
    traces = found[CALL]
    if len(traces) != 1:
        listed = "".join(f"\n    {trace.signature}" for trace in traces)
        raise ExportError(
            f"{caller} writes one trace, and {traces[0].name} has {len(traces)}: give the signature, "
            f"{caller}(f, path, ll.TensorSpec((None, 3))) for example. There are{listed}"
        )
    return traces[0]


def argument_specs(trace: ConcreteFunction) -> list[tuple[str, TensorSpec]]:
    """The names and types of the tensors that a trace is called with. Raises ExportError for any other argument."""
    refuse_shared(trace)
    specs = []
    for name, value in zip(trace.graph.input_names, trace.graph.arguments, strict=False):
        if not isinstance(value.spec, TensorSpec) or value.spec.rank is None:
            raise ExportError(
                f"{trace.name} cannot be exported: its argument `{name}` is a variable or an object; have the function "
                "close over it"
            )
        specs.append((name, value.spec))
    return specs


def refuse_shared(trace: ConcreteFunction) -> None:
    """Raises ExportError for a trace that is for arguments that are one and the same, which no file can say."""
    if trace.key.shared:
        raise ExportError(
            f"{trace.name} cannot be exported: it has a trace for calls in which {trace.key.shared}, and reads one of "
            "them. Call `clear_cache()` of the function, and it with arguments of their own"
        )


def _is_given(signature: Any) -> bool:
    """Whether it is a signature and not left out; a tensor would compare with () element by element."""
    return not (type(signature) is tuple and not signature)


def _traced(target: Any, signature: Any, caller: str) -> ConcreteFunction:
    if isinstance(target, Module):
        signature = _of_shapes(signature)
        method = getattr(target, CALL)
        target = method if isinstance(method, Function) else staged_call(target)
    elif not isinstance(target, Function):
        if not callable(target):
            raise ExportError(_no_function(target, caller))
        target = function(target)
    return _trace_for(target, signature, caller)


def _trace_for(staged: Function, signature: Any, caller: str) -> ConcreteFunction:
    """The trace for a signature. Raises ExportError for one that is not the arguments of a call."""
    arguments = _arguments(signature)
    parameters = inspect.signature(staged)
    try:
        parameters.bind(*arguments)
    except TypeError as error:
        needed = [f"{name}_spec" for name, p in parameters.parameters.items() if p.default is p.empty]
        form = ", ".join(needed) + "," * (len(needed) == 1)
        several = "; a list is of several signatures" if caller == _SAVE else ""
        raise ExportError(
            f"{caller}: the signature {reprlib.repr(signature)} does not fit {staged.name}{parameters}: {error}. "
            f"A signature is the arguments of one call, a tuple: write ({form}){several}"
        ) from None
    return staged.get_concrete_function(*arguments)


def traces_by_name(target: Any, signatures: Any) -> dict[str, list[ConcreteFunction]]:
    """The traces of each function of what is given to `ll.save`.

    Args:
        target: a staged or plain function, a trace, a module, what `ll.load` has read, or a dictionary of functions.
        signatures: what to trace besides: a signature, or a list of them; for a dictionary one of these by name.

    Returns:
        A list for each function, by name; that of a function alone, and of a module's call, is `CALL`.

    Raises:
        ExportError: the target is none of these, has no trace, or cannot be traced for a signature.

    Warns:
        UserWarning: a staged method of a module has neither a trace nor an `input_signature`, and is left out.
    """
    if isinstance(target, Mapping):
        return _functions_by_name(target, signatures)
    found = _functions_of(target, _listed(signatures), _SAVE)
    left_out = [name for name, traces in found.items() if not traces]
    if left_out:
        _warn_of_left_out(type(target).__name__, left_out)
    return {name: traces for name, traces in found.items() if traces}


def _functions_of(target: Any, wanted: list[Any], caller: str) -> dict[str, list[ConcreteFunction]]:
    """The same for all but dictionaries, with an empty list for a staged method that has no trace."""
    if isinstance(target, LoadedModule):
        functions = functions_of(target)
        if wanted and CALL not in functions:
            raise ExportError(
                f"{type(target).__name__} was loaded without a trace of its call; save it without signatures"
            )
        own = {name: _traces_of(f, wanted if name == CALL else [], name, caller) for name, f in functions.items()}
        return own | _functions_below(target, caller)
    if isinstance(target, Module):
        return _functions_of_module(target, [_of_shapes(signature) for signature in wanted], caller)
    return {CALL: _traces_of(target, wanted, "", caller)}


def _listed(signatures: Any) -> list[Any]:
    return signatures if isinstance(signatures, list) else [signatures] if _is_given(signatures) else []


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
    return {name: _traces_of(f, _listed(by_name.get(name, ())), name, _SAVE) for name, f in target.items()}


def _functions_of_module(module: Module, wanted: list[Any], caller: str) -> dict[str, list[ConcreteFunction]]:
    methods = _staged_methods(module)
    if wanted:
        methods[CALL] = methods.get(CALL) or staged_call(module)
    names = sorted(methods, key=lambda name: name != CALL)  # `call` first: others may read the variables that it makes
    given = {CALL: wanted}
    functions = {name: _traces_of(methods[name], given.get(name, []), name, caller, required=False) for name in names}
    functions |= _functions_below(module, caller)  # after `call`, which may have made some of them
    if not any(functions.values()):
        raise ExportError(
            f"{type(module).__name__} has no trace to save: give {caller} the signature of its call, "
            f"{caller}(net, path, ll.TensorSpec((None, 3))) for example, with None for sizes that change"
        )
    return functions


def _functions_below(module: Module, caller: str) -> dict[str, list[ConcreteFunction]]:
    """The traces of the staged methods of the modules below one, by path and name: "encoder/encode"."""
    return {
        join(path, name): _traces_of(method, [], f"{path}/{name}", caller, required=False)
        for path, one in paths_of(module).modules.items()
        for name, method in _staged_methods(one).items()
    }


def _staged_methods(module: Module) -> dict[str, Any]:
    if isinstance(module, LoadedModule):
        return dict(functions_of(module))
    methods = {name: getattr(module, name) for name in dir(type(module)) if _is_staged_method(type(module), name)}
    return methods | {name: value for name, value in vars(module).items() if isinstance(value, Function)}


def _warn_of_left_out(module: str, methods: list[str]) -> None:
    names = ", ".join([f"`{dotted(name)}`" for name in methods[:_MOST_NAMED]])
    names += f" and {len(methods) - _MOST_NAMED} more" if len(methods) > _MOST_NAMED else ""
    them = "it" if len(methods) == 1 else "each"
    warn_here(
        f"ll.save leaves out {names} of the {module}, staged but never called: call {them} once before, or write "
        "@ll.function(input_signature=[...])"
    )


def _is_staged_method(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name, None), Function)


def staged_call(module: Module) -> Function:
    """The module's call, staged, with the parameters of its `call`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    call.__signature__ = inspect.signature(module.call)  # type: ignore[attr-defined]  # which `inspect` reads
    call.__name__ = call.__qualname__ = type(module).__name__
    return function(call)


def _traces_of(
    target: Any, wanted: list[Any], name: str, caller: str, *, required: bool = True
) -> list[ConcreteFunction]:
    """The traces of a function, and those for the signatures that are wanted; at least one where that is required."""
    if isinstance(target, LoadedFunction):
        for signature in wanted:
            _check_covered(target, signature, caller)
        return list(target.traces)
    if isinstance(target, ConcreteFunction):
        alone = LoadedFunction(target.name, target.python_signature, [target])
        return _traces_of(alone, wanted, name, caller)
    if not callable(target):
        raise ExportError(_no_function(target, caller))
    staged = target if isinstance(target, Function) else function(target)
    for signature in wanted:
        _trace_for(staged, signature, caller)
    traces: list[ConcreteFunction] = [trace for trace in staged.trace_cache if not trace.stale]
    if not traces and staged._declared is not None and all(x.has_rank for x in nest.leaves_of(staged._declared)):
        traces = [staged.get_concrete_function()]
    if not traces and required and not inspect.signature(staged).parameters:
        traces = [staged.get_concrete_function()]
    if not traces and required:
        raise ExportError(
            f"{name or staged.name} has no trace to save: call it once, or give {caller} its signature, "
            f"{caller}(f, path, ll.TensorSpec((None, 3))) for example, with None for sizes that change"
        )
    return traces


def _no_function(target: Any, caller: str) -> str:
    hint = ""
    if isinstance(target, (str, os.PathLike)):
        hint = "; the path comes second"
    elif isinstance(target, (Tensor, Variable)) or hasattr(target, "__array__"):
        hint = "; an array is saved by np.save(path, x.numpy())"
    taken = "a function, a module or a dictionary of functions" if caller == _SAVE else "a function or a module"
    return f"{caller} takes {taken}, got {type(target).__name__}{hint}"


def _arguments(signature: Any) -> tuple[Any, ...]:
    return signature if isinstance(signature, tuple) else (signature,)


def _of_shapes(signature: Any) -> Any:
    """The signature of a module's call with specs for shapes, as `Module.build` takes them."""
    if _is_shape(signature) or not isinstance(signature, tuple):
        return spec_of(signature) if _is_shape(signature) else signature
    if any(hasattr(x, "dtype") for x in nest.leaves_of(signature)):  # beside specs, sizes are sizes
        return signature
    return tuple([spec_of(x) if _is_shape(x) else x for x in signature])


def _is_shape(x: Any) -> bool:
    return isinstance(x, tuple) and bool(x) and all(n is None or type(n) is int for n in x)


def _check_covered(loaded: LoadedFunction, signature: Any, caller: str) -> None:
    """Raises ExportError for a signature that none of the traces serves: there is no Python code to trace."""
    call = loaded.bound(_arguments(signature), {}, abstract=True)
    if not loaded.serves(call):
        raise ExportError(
            f"{caller}: {loaded.name}, a trace or loaded from a file, cannot be traced for another signature, and has "
            f"{loaded.lacks(call)}\nSave it without signatures, or the staged function that it was made of"
        )
