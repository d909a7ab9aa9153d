"""What `ll.load` returns: functions and modules that run traces, without the Python code that they were made by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from limelight.core.variable import Variable
from limelight.errors import ExportError, SignatureError
from limelight.module import Module
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.signature import Signature
from limelight.user_code import tracebacks


class LoadedFunction:
    """A function from a file: its traces, chosen by the arguments as a staged function's are.

    It is called as the Python function was, in eager code, under tapes and in other staged functions. A call that no
    trace serves is refused with a list of those there are: there is no Python code to trace.
    """

    __limelight_leaf__ = True

    def __init__(self, name: str, signature: Signature, traces: Iterable[ConcreteFunction]) -> None:
        self.name = self.__name__ = name
        self.traces = tuple(traces)
        self._signature = signature

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            call = self._signature.call(args, kwargs)
            key = call.key
            for trace in self.traces:
                if trace.key.covers(key._replace(device=trace.key.device)):
                    return trace.call_leaves(call.leaves)
            given = key.describe(self._signature.paths(key.structure, len(call.leaves)))
            known = "\n".join([f"  {self.name}{signature}" for signature in self.signatures])
            raise SignatureError(
                f"{self.name} was loaded from a file, and has no trace for ({given}); those it has:\n{known}"
            )
        except Exception as error:
            tracebacks.trim(error)
            raise

    def __repr__(self) -> str:
        return "\n".join([f"<loaded function {self.name}>", *[f"  {self.name}{s}" for s in self.signatures]])


class LoadedModule(Module):
    """A module from a file: its variables by path, as attributes of modules, lists and dictionaries; its functions.

    Calling it runs the saved `call`; other staged methods have their names.
    """

    functions: Mapping[str, LoadedFunction]

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "functions", {})

    def call(self, *args: Any, **kwargs: Any) -> Any:
        function = self.functions.get("call")
        if function is None:
            names = ", ".join(self.functions) or "none"
            raise ExportError(f"this module was saved without a trace of its call; its functions: {names}")
        return function(*args, **kwargs)


def as_tree(variables: Mapping[str, Variable]) -> LoadedModule:
    """A module with `variables` as attributes along their paths: "layers/0/kernel" is module.layers[0].kernel."""
    root = LoadedModule()
    nested: dict[str, Any] = {}
    for path, variable in variables.items():
        *above, last = path.split("/")
        place = nested
        for step in above:
            place = place.setdefault(step, {})
        place[last] = variable
    for step, child in nested.items():
        setattr(root, step, _grown(child))
    return root


def _grown(child: Any) -> Any:
    if not isinstance(child, dict):
        return child
    if list(child) == [str(i) for i in range(len(child))]:
        return [_grown(x) for x in child.values()]
    if all(step.isdigit() for step in child):  # of a list in which others have no variables: the places stay
        return {int(step): _grown(x) for step, x in child.items()}
    module = LoadedModule()
    for step, below in child.items():
        setattr(module, step, _grown(below))
    return module
