"""What fixes are made from: the call that has no trace, the traces that there are, and how they were written."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Sequence
from itertools import islice
from types import FunctionType
from typing import Any, Final, NamedTuple

from limelight.core import dtypes, nest
from limelight.core.dtypes import DType
from limelight.explain.fix import Fix
from limelight.explain.may_be_tensor import obstacle
from limelight.explain.retracing.key_diff import Change, quoted
from limelight.staging.key import Key
from limelight.staging.key_parts import Part, TensorPart, ValuePart, VariablePart
from limelight.staging.signature import Signature
from limelight.user_code.call_expression import CallSite
from limelight.user_code.source_line import Source
from limelight.user_code.value_use import Obstacle

MOST: Final = 12
"""A signature of more specs, or a call with more mended arguments, is nothing that anybody would paste."""
_NODES: Final = 1000
"""Of how many nodes of a graph the dtypes are looked at."""


class FixContext(NamedTuple):
    """What fixes are made from: the function, its traces, the call without a trace, and how that was written.

    Args:
        signature: of the function.
        options: those of `ll.function`.
        traces: all that the function has, the newest last.
        key: of the call.
        paths: of the leaves of the call; empty where the closest trace is of another structure.
        site: the call as the user wrote it; None where that cannot be had.
        elsewhere: where the closest trace was made, unless that is the very line that makes this call.
        function: the Python function.
        obstacles: by path, what keeps a number from being a tensor, as far as it has been looked up.
        is_nested: whether the call is made by another function's trace.
        name: of the function.
        closest: the trace that comes closest.
    """

    signature: Signature
    options: dict[str, Any]
    traces: Sequence[Any]
    key: Key
    paths: Sequence[str]
    site: CallSite | None
    elsewhere: str
    function: Any
    obstacles: dict[str, Obstacle | None]
    is_nested: bool = False
    name: str = ""
    closest: Any = None

    @property
    def earlier(self) -> Source | None:
        """The line of the call that made the closest trace, if known."""
        line: Source | None = getattr(getattr(self.closest, "miss", None), "line", None)
        return line

    def is_default(self, change: Change) -> bool:
        """Whether the closest trace was made for the parameter's default."""
        parameter = self.signature.inspected.parameters.get(change.path)
        default = inspect.Parameter.empty if parameter is None else parameter.default
        before = change.before
        return isinstance(before, ValuePart) and type(default) is before.kind and default == before.value

    def obstacle(self, path: str) -> Obstacle | None:
        """What keeps a number from being a tensor, looked up once."""
        if path not in self.obstacles:
            keywords, known = self.signature.keywords_name, self.signature.inspected.parameters
            inside = not hasattr(self.function, "__limelight_written__")  # where keywords are items of a dictionary
            hidden = keywords and inside and parameter_of(path, self.signature) not in known
            written = f"{keywords}{nest.step(dict, path)}" if hidden and path.isidentifier() else path
            self.obstacles[path] = obstacle(self.function, written, bool(self.options["autograph"]))
        return self.obstacles[path]

    def met_dtype(self, others: tuple[str, ...] = ("floating", "complex")) -> DType | None:
        """`met_dtype` of this call, unless the function has tensors of another dtype of those kinds."""
        dtype = met_dtype(self.key.parts)
        if dtype is None or not self.traces:
            return dtype
        graph = self.traces[-1].graph
        values = [*graph.inputs, *[value for node in islice(graph.nodes, _NODES) for value in node.outputs]]
        met = {getattr(value.spec, "dtype", None) for value in values} - {None, dtype}
        return None if any(dtypes.kind(other) in others for other in met if other) else dtype


def met_dtype(parts: Sequence[Part]) -> DType | None:
    """The dtype for a Python float that becomes a tensor: that of the floating tensors beside it, if they share one.

    Beside integers only, None: a floating tensor would not mix with them. A whole number has no such dtype at all: it
    may be an axis, a size or a count, which no tensor can be.
    """
    met = {part.dtype for part in parts if isinstance(part, (TensorPart, VariablePart))}
    floating = {dtype for dtype in met if dtypes.is_floating(dtype)}
    if not met:
        return dtypes.float32
    return floating.pop() if len(floating) == 1 else None


def parameter_of(path: str, signature: Signature) -> str:
    """The parameter that a path begins with: "batch", "args[1]"."""
    ends = [i for i, c in enumerate(path) if c in ".["]
    if not ends:
        return path
    return path[: path.index("]") + 1] if path[: ends[0]] == signature.rest_name else path[: ends[0]]


class Code(str):
    """Text that is code."""

    __slots__ = ()
    __repr__ = str.__str__


def restaged(
    function: Any, options: dict[str, Any], place: str = "", paths: tuple[str, ...] = (), cell: str = ""
) -> Fix:
    """The fix that stages a function with other options; what is no decorator is a part of a statement."""
    code = decorator(function, options)
    return Fix(code, place, paths, cell, is_inside=not code.startswith("@"))


def decorator(function: Any, options: dict[str, Any]) -> str:
    """`ll.function` with those of `options` that are not left at their defaults, as a decorator or as it was called."""
    shown = [
        (option, quoted(value) if type(value) is str else repr(value)) for option, value in options.items() if value
    ]
    target = _target(function)
    return f"{'' if target else '@'}ll.function({', '.join([*target, *[f'{name}={value}' for name, value in shown]])})"


def _target(function: Any) -> list[str]:
    """What a call of `ll.function` is given; nothing where it is a decorator."""
    written = getattr(function, "__wrapped__", function) if hasattr(function, "__limelight_instance__") else function
    if not isinstance(written, FunctionType) or written.__name__ == "<lambda>":
        return ["fn"]
    first = linecache.getline(written.__code__.co_filename, written.__code__.co_firstlineno).strip()
    return [written.__name__] if first.startswith(("def ", "async def ")) else []
