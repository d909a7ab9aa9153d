"""Does tracing the same call twice give the same graph?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.errors import CallError, LimelightError
from limelight.explain.story import Contrast, Place, Story
from limelight.explain.subject import staged_for
from limelight.explain.tracing import snapshot
from limelight.explain.tracing.side_effects import SideEffects, side_effects
from limelight.graph.ir import Graph, Literal, Node, is_function
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function
from limelight.staging.key import Call
from limelight.staging.state_creation import Creation
from limelight.user_code.source_line import Source

_MOST: Final = 20
_UNSTEADY: Final = ("time", "host randomness")
"""What may well give the same numbers twice, as a clock does within the precision of float32."""

_SAID: Final[Mapping[str, str]] = {
    "constant": "a number that Python code put into the graph is another in each trace",
    "op": "another op stands at this place of the graph in each trace",
    "parameter": "a parameter of an op is another in each trace",
    "operand": "an op takes other values in each trace",
    "length": "the graph has another number of ops in each trace",
    "state": "tracing changes what the next trace finds",
}


class Impurity(NamedTuple):
    """Something that differed between two traces of one call.

    `kind`: "constant" (a number that Python code put into the graph), "op", "parameter", "operand", "length" (one graph
    has more ops), or "state" (a global, closure value or attribute that tracing itself changed).

    >>> import limelight as ll
    >>> import itertools
    >>> numbers = itertools.count()
    >>> found = ll.explain.purity(lambda x: x + float(next(numbers)), ll.constant(1.0))
    >>> found.records[0].kind, found.records[0].second
    ('constant', '2.0')
    """

    kind: str
    first: str
    second: str
    line: Source | None

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        contrast = Contrast("first and second trace", self.first, self.second)
        return Story(
            "impurity", _SAID[self.kind], (self.kind,), contrasts=(contrast,), places=Place.of("line", self.line)
        )


@dataclass(frozen=True)
class Purity:
    """Whether two traces of one call were alike; `records` are where they were not, `effects` what may be behind it.

    >>> import limelight as ll
    >>> bool(ll.explain.purity(lambda x: x + x, ll.constant(1.0)))
    True
    """

    function: str
    records: tuple[Impurity, ...]
    effects: SideEffects

    def __bool__(self) -> bool:
        return not self.records

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each difference, then those of what may be behind it; none where both traces were alike."""
        return (*[record.to_story() for record in self.records], *self.effects.stories) if self.records else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the differences mean."""
        said = f"`{self.function}` did not trace twice alike, so what it computes depends on when it was traced."
        return (said,) if self.records else ()

    def __str__(self) -> str:
        if not self.records:
            unsteady = any(effect.kind in _UNSTEADY for effect in self.effects.records)
            return f"`{self.function}` traced twice alike." + (f"\n{self.effects}" if unsteady else "")
        lines = [f"  {record}" for record in self.records]
        said = [
            f"`{self.function}` did not trace twice alike, so what it computes depends on when it was traced:",
            *lines,
        ]
        return "\n".join([*said, str(self.effects)] if self.effects.records else said)

    __repr__ = __str__


def purity(F: Callable[..., Any], *args: Any, **kwargs: Any) -> Purity:
    """Traces the call `F(*args, **kwargs)` twice, on the side, and tells how the graphs differ.

    Finds random numbers of the host, times, counters and other state of Python's that end up in a graph. What stays the
    same within a process, such as the order of a set of strings, is not seen. Python code in `F` runs twice, with all
    that it does besides; the cache and the trace count stay as they are, except that a function which has not been
    traced at all is traced first. A function or module that is not staged is staged for this question alone. Raises
    ArgumentError for what cannot be called and for classes, CallError for arguments that it does not take.

    >>> import limelight as ll
    >>> import itertools
    >>> numbers = itertools.count()
    >>> @ll.function
    ... def f(x):
    ...     return x + float(next(numbers))
    >>> [(found.kind, found.first, found.second) for found in ll.explain.purity(f, ll.constant(1.0)).records]
    [('constant', '1.0', '2.0')]
    """
    F = staged_for("purity", F)
    call = _called(F, args, kwargs)
    if not len(F.trace_cache):
        F._trace_once(call, run=False)
    first, second = _twice(F, call)
    impurities = [*_differences(first.graph, second.graph), *_state(first, second)]
    return Purity(F.name, tuple(impurities[:_MOST]), side_effects(F))


def _called(F: Function, args: Any, kwargs: Any) -> Call:
    try:
        return F._call(args, kwargs)
    except TypeError as error:
        if isinstance(error, LimelightError):
            raise
        needed = ", ".join([F.name, *[name for name, p in F._signature.inspected.parameters.items() if _is_needed(p)]])
        raise CallError(
            f"explain.purity makes the call that it is asked about, so it needs the arguments of one: write "
            f"ll.explain.purity({needed}). {error}"
        ) from None


def _is_needed(parameter: inspect.Parameter) -> bool:
    simple = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return simple and parameter.default is parameter.empty


def _twice(F: Function, call: Call) -> tuple[ConcreteFunction, ConcreteFunction]:
    count = F._runs
    try:
        first, second = [F._trace_body(call, Creation(F.name, allowed=False, of_objects=False)) for _ in range(2)]
    finally:
        F._runs = count
    return first, second


def _state(first: ConcreteFunction, second: ConcreteFunction) -> Iterator[Impurity]:
    """What the first trace changed of what the second one found."""
    before: snapshot.Snapshot = first.baked
    for key, value in before.items():
        after = second.baked.get(key)
        if after is not None and after.token != value.token:
            yield Impurity("state", f"`{value.name}` was {value.text}", after.text, value.line)


def _differences(a: Graph, b: Graph) -> Iterator[Impurity]:
    for one, other in zip(a.nodes, b.nodes, strict=False):
        impurities = list(_between(a, one, b, other))
        yield from impurities
        if any(x.kind == "op" for x in impurities):  # the rest is out of step
            return
    if len(a.nodes) != len(b.nodes):
        longer = max(a.nodes, b.nodes, key=len)[min(len(a.nodes), len(b.nodes))]
        yield Impurity("length", f"{len(a.nodes)} ops", f"{len(b.nodes)} ops", _line(longer))
    elif list(map(a.name_of, a.outputs)) != list(map(b.name_of, b.outputs)):
        yield Impurity("operand", f"{a.name} returns {_names(a, a.outputs)}", _names(b, b.outputs), None)


def _between(a: Graph, one: Node, b: Graph, other: Node) -> Iterator[Impurity]:
    if one.op is not other.op:
        yield Impurity("op", str(one.op), str(other.op), _line(one))
        return
    for x, y in zip(one.params, other.params, strict=True):
        if isinstance(x, Literal) and isinstance(y, Literal):
            if not _alike(x.array, y.array):
                yield Impurity("constant", _text(x.array), _text(y.array), _line(one))
        elif is_function(x) and is_function(y):
            yield from _differences(x.graph, y.graph)
        elif type(x) in (bool, int, float, str, tuple) and repr(x) != repr(y) and not one.functions:
            yield Impurity("parameter", f"{one.op} with {x!r}", repr(y), _line(one))
    if list(map(a.name_of, one.inputs)) != list(map(b.name_of, other.inputs)):
        yield Impurity("operand", f"{one.op} of {_names(a, one.inputs)}", _names(b, other.inputs), _line(one))


def _alike(x: Any, y: Any) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and np.asarray(x).tobytes() == np.asarray(y).tobytes()


def _names(graph: Graph, values: Any) -> str:
    return ", ".join(map(graph.name_of, values))


def _text(array: Any) -> str:
    return " ".join(np.array2string(np.asarray(array), threshold=6, edgeitems=2).split()) if array.ndim else str(array)


def _line(node: Node) -> Source | None:
    return node.stack[0] if node.stack else None
