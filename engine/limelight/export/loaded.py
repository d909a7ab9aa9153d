"""What `ll.load` returns: functions and modules that run traces, without the Python code that they were made by."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from limelight.core.variable import Resource, Variable
from limelight.errors import ArgumentError, ExportError, SignatureError
from limelight.export import argument_casts
from limelight.export.held_containers import HeldDict, HeldList
from limelight.export.nest_json import canonical_key
from limelight.module import Module
from limelight.random import default_generator
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import ids
from limelight.staging.key import Call
from limelight.staging.signature import Signature
from limelight.staging.trace_cache import TraceCache
from limelight.user_code import tracebacks


class LoadedFunction:
    """A function from a file: its traces, chosen by the arguments as a staged function's are.

    It is called as the Python function was, in eager code, under tapes and in other staged functions. A call that no
    trace serves is refused with a list of those there are: there is no Python code to trace.

    >>> import limelight as ll
    >>> import tempfile
    >>> area = ll.function(lambda r: 3.0 * r * r, name="area")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = ll.load(ll.save(area, f"{folder}/area.ll", ll.TensorSpec((None,))))
    >>> loaded.name, loaded(ll.constant([1.0, 2.0])).tolist()
    ('area', [3.0, 12.0])
    """

    __limelight_leaf__ = True

    def __init__(self, name: str, signature: Signature, traces: Iterable[ConcreteFunction]) -> None:
        self.name = self.__name__ = name
        self.traces = tuple(traces)
        self._keys = [canonical_key(trace.key) for trace in self.traces]
        self.id = next(ids)
        self._signature = signature
        self.__signature__ = signature.inspected  # which `inspect` reads

    instances: Final[tuple[Any, ...]] = ()  # as of a staged function that is no method
    trace_count: Final = 0

    @functools.cached_property
    def trace_cache(self) -> TraceCache:
        """The traces as a staged function has them: its views show these, and count the calls."""
        cache = TraceCache()
        for trace in self.traces:
            cache.add(trace.key, trace)
        return cache

    @property
    def signatures(self) -> list[str]:
        """The abstract arguments of each trace, with its results: "(x: f32[?,64]) -> f32[?,10]"."""
        return [f"({trace.signature}) -> {trace.returns}" for trace in self.traces]

    @property
    def variables(self) -> list[Variable]:
        """The variables that the traces use, each once."""
        found = [x for trace in self.traces for x in trace.captures if isinstance(x, Variable)]
        return list({x._uid: x for x in found}.values())

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those that tapes watch and optimisers change."""
        return [variable for variable in self.variables if variable.trainable]

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, abstract: bool = False) -> Call:
        """The call with these arguments; in an `abstract` one, specs may stand for tensors."""
        return self._signature.call(args, kwargs, abstract)

    def serves(self, call: Call) -> bool:
        """Whether there is a trace for a call."""
        return self._find(call) is not None

    def lacks(self, call: Call, hint: str = "") -> str:
        """That there is no trace for a call, in words, with those there are."""
        key = call.key
        given = key.describe(self._signature.paths(key.structure, len(call.leaves)))
        known = "\n".join([f"  {self.name}{signature}" for signature in self.signatures])
        return f"no trace for ({given}){hint}; those it has:\n{known}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            call = self.bound(args, kwargs)
            trace = self._find(call)
            if trace is None:
                call, trace = self._cast(call, args, kwargs)
            trace.counter[0] += 1
            return trace.call_leaves(call.leaves)
        except Exception as error:
            tracebacks.trim(error)
            raise

    def _find(self, call: Call) -> ConcreteFunction | None:
        key = canonical_key(call.key)
        for trace, known in zip(self.traces, self._keys, strict=True):
            if known.covers(key._replace(device=known.device)):
                return trace
        return None

    def _cast(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Call, ConcreteFunction]:
        """The call, and its trace, with numbers, lists and variables as tensors. Raises SignatureError."""
        bound = self._signature.bind(args, kwargs)
        for to_dtype in (False, True):  # first as what they are by themselves: a 27 is an integer
            for trace in self.traces:
                again = argument_casts.cast(self._signature, trace.key, bound, to_dtype=to_dtype)
                found = None if again is None else self._find(again)
                if again is not None and found is not None:
                    return again, found
        hint = argument_casts.hint(self._signature, [trace.key for trace in self.traces], bound)
        raise SignatureError(f"{self.name} was loaded from a file, and has {self.lacks(call, hint)}")

    def __copy__(self) -> LoadedFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedFunction:
        """A function of copies of its variables: those that a module holds, where that is copied with it."""
        copies = [trace.with_captures([_copied(x, memo) for x in trace.captures]) for trace in self.traces]
        memo[id(self)] = clone = type(self)(self.name, self._signature, copies)
        return clone

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{self.name} was loaded from a file, and is not pickled: write ll.save(loaded, path), of the module or "
            "function that was loaded, and ll.load(path) where it is to run"
        )

    def __repr__(self) -> str:
        return "\n".join([f"<loaded function {self.name}>", *[f"  {self.name}{s}" for s in self.signatures]])


def _copied(captured: Any, memo: dict[int, Any]) -> Any:
    """A capture for a copy of its function: tensors never change, and the default generator is the process's."""
    if isinstance(captured, Resource) and captured is not default_generator():
        return copy.deepcopy(captured, memo)
    return captured


FUNCTIONS: Final = "<functions>"  # no attribute of a model's is called so


class _Functions:
    """The functions of a loaded module by name; one that had an attribute `functions` of its own has that instead."""

    def __get__(self, module: LoadedModule | None, owner: type) -> Any:
        return self if module is None else functions_of(module)


def functions_of(module: LoadedModule) -> Mapping[str, LoadedFunction]:
    """The functions of a loaded module by name."""
    found: Mapping[str, LoadedFunction] = vars(module)[FUNCTIONS]
    return found


def hold_functions(module: LoadedModule, functions: Mapping[str, LoadedFunction]) -> None:
    """Has a module hold the functions that were saved with it."""
    vars(module)[FUNCTIONS] = functions


class LoadedModule(Module):
    """A module from a file: its variables by path, as attributes of modules, lists and dictionaries; its functions.

    Calling it runs the saved `call`; other staged methods have their names. The traces use these very variables, so
    another one in the place of one is refused: assign to it instead. A copy by `copy.deepcopy` has its own.

    >>> import limelight as ll
    >>> import tempfile
    >>> net = ll.nn.Dense(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = ll.load(ll.save(net, f"{folder}/net.ll", ll.TensorSpec((None, 3))))
    >>> loaded.kernel.shape, loaded(ll.ones((1, 3))).shape
    ((3, 2), (1, 2))
    """

    functions = _Functions()

    def __init__(self) -> None:
        super().__init__()
        hold_functions(self, {})

    def __setattr__(self, name: str, value: Any) -> None:
        if value is not vars(self).get(name):
            self._refuse_to_replace(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_to_replace(name)
        super().__delattr__(name)

    def _refuse_to_replace(self, name: str) -> None:
        """Raises ArgumentError for an attribute that has variables: traces would go on with those."""
        held = vars(self).get(name)
        if isinstance(held, Variable):
            raise ArgumentError(
                f"{name!r} of a loaded module cannot be replaced: its traces use this very variable, and would go on "
                f"with it; write .{name}.assign(value)"
            )
        if isinstance(held, (LoadedModule, LoadedFunction, HeldList, HeldDict)) or name == "functions":
            raise ArgumentError(
                f"{name!r} of a loaded module cannot be replaced: its traces would go on with what was loaded; assign "
                "to its variables, or write a module that calls the loaded one"
            )

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Of a module that was saved without its call; else the instance has the loaded function by this name."""
        names = ", ".join(functions_of(self)) or "none"
        raise ExportError(f"this module was saved without a trace of its call; its functions: {names}")


def call_of(value: Any) -> Any:
    """`value`, or of a loaded module the function that its call runs: what a view of a staged function shows of it.

    >>> import limelight as ll
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = ll.load(ll.save(ll.nn.Dense(2), f"{folder}/net.ll", ll.TensorSpec((None, 3))))
    >>> len(ll.export.call_of(loaded).traces)
    1
    """
    return functions_of(value).get("call", value) if isinstance(value, LoadedModule) else value


def as_old_tree(variables: Mapping[str, Variable]) -> LoadedModule:
    """The same of a file that does not say what its containers are: what looks like a list is one.

    Paths are joined by slashes there: "layers/0/kernel" is module.layers[0].kernel.
    """
    root = LoadedModule()
    nested: dict[str, Any] = {}
    for path, variable in variables.items():
        *above, last = path.split("/")
        place = nested
        for step in above:
            place = place.setdefault(step, {})
        place[last] = variable
    for step, child in nested.items():
        vars(root)[step] = _grown(child)
    return root


def _grown(child: Any) -> Any:
    if not isinstance(child, dict):
        return child
    if list(child) == [str(i) for i in range(len(child))]:
        return HeldList([_grown(x) for x in child.values()])
    if all(step.isdigit() for step in child):  # of a list in which others have no variables: the places stay
        return HeldDict({int(step): _grown(x) for step, x in child.items()})
    module = LoadedModule()
    for step, below in child.items():
        vars(module)[step] = _grown(below)
    return module
