"""The graph: what a trace is written into, passes rewrite, and executors run.

    graph  ::= name, inputs (arguments, then captures), nodes in execution order, outputs
    node   ::= op, input values, params, output values, device, stack, scope, after
    value  ::= spec, producer (a node, or None for a graph input), index among its outputs

A graph is data: it holds no tensors but literals, and no references to variables. These are inputs like any other, with
a `VariableSpec`, so one graph serves any variable of that type; an `ObjectSpec` is that of a Python value which is only
handed on (the tape of a py_func, the residuals of a loop). Literals are nodes of the op `constant`.

Some parameters are functions themselves (those of call, cond, while_loop; a switch has a tuple of them). A function
takes the last inputs of its node, as many as its graph has, and kernels just call its `run`, so executors have no
special cases for control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeGuard
from weakref import ref

import numpy as np

from limelight.core.devices import Device
from limelight.core.op import Op
from limelight.core.spec import Spec
from limelight.errors import GraphError
from limelight.user_code.source_line import Source


class FunctionLike(Protocol):
    """A parameter that is itself a staged function: call, cond and while_loop have such.

    `run` maps payloads to a tuple of payloads. It may be made when it is first asked for, so looking at a graph must
    not ask: `is_function` tells such parameters from others.
    """

    name: str
    graph: Graph

    @property
    def run(self) -> Callable[..., tuple[Any, ...]]: ...


def is_function(param: object) -> TypeGuard[FunctionLike]:
    """Whether a static parameter is a staged function; does not make it ready to run, and runs no code of its class."""
    # By hand, since passes ask it of all parameters: `inspect.getattr_static` takes 5 µs.
    own = object.__getattribute__(param, "__dict__") if type(param).__dictoffset__ else {}
    homes = (own, *map(vars, type(param).__mro__))
    return all(next((home[name] for home in homes if name in home), None) is not None for name in ("graph", "run"))


def functions_in(params: Iterable[object]) -> tuple[FunctionLike, ...]:
    """The staged functions among static parameters; a switch has all its branches in one of them, a tuple."""
    functions: list[FunctionLike] = []
    for param in params:
        if type(param) is tuple:
            functions += [part for part in param if is_function(part)]
        elif is_function(param):
            functions.append(param)
    return tuple(functions)


def with_functions(change: Callable[[Any], Any], params: Sequence[Any]) -> tuple[Any, ...]:
    """Static parameters with `change(function)` for each staged function among them."""

    def changed(param: Any) -> Any:
        if type(param) is tuple and any(map(is_function, param)):
            return tuple([change(part) for part in param])
        return change(param) if is_function(param) else param

    return tuple([changed(param) for param in params])


class Value:
    """One edge of the graph: an output of a node, or an input of the graph when `node` is None.

    It knows its node weakly: strong references run from later nodes to earlier values only, so a graph holds no
    cycles and goes, with its literals, when its last reference does. Whoever keeps a value keeps its graph too.
    """

    __slots__ = ("__weakref__", "_node", "index", "spec")

    def __init__(self, spec: Spec, node: Node | None = None, index: int = 0) -> None:
        self.spec = spec
        self._node = None if node is None else ref(node)
        self.index = index

    @property
    def node(self) -> Node | None:
        """The node that makes this value; None for an input of the graph."""
        return None if self._node is None else self._node()

    def __repr__(self) -> str:
        return f"<value {self.spec} of {self.node.op if self.node else 'the inputs'}>"


class Node:
    """One op in a graph.

    Args:
        op: the op.
        inputs: its operands.
        params: the op's static parameters in order; `attrs` shows them by name.
        specs: the specs of its outputs, which it makes.
        device: where it was asked to run; None for "where its inputs are".
        stack: the user's code that made it, innermost first.
        scope: a path of name scopes such as "dense/".
        after: the nodes that must have run before it although no value says so (see `effects.EffectOrder`).
    """

    __slots__ = ("__weakref__", "after", "device", "inputs", "op", "outputs", "params", "scope", "stack")

    def __init__(
        self,
        op: Op,
        inputs: tuple[Value, ...],
        params: tuple[Any, ...],
        specs: Sequence[Spec],
        *,
        device: Device | None = None,
        stack: tuple[Source, ...] = (),
        scope: str = "",
        after: tuple[Node, ...] = (),
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.params = params
        if len(specs) == 1:  # nearly always; tracing makes many nodes
            self.outputs: tuple[Value, ...] = (Value(specs[0], self),)
        else:
            self.outputs = _outputs(self, specs)
        self.device = device
        self.stack = stack
        self.scope = scope
        self.after = after

    @property
    def attrs(self) -> dict[str, Any]:
        """The static parameters by name."""
        return dict(zip(self.op.attrs, self.params, strict=True))

    @property
    def source(self) -> tuple[str, int] | None:
        """The user's line that made this node: (file or cell, line)."""
        return (self.stack[0].label, self.stack[0].line) if self.stack else None

    @property
    def functions(self) -> tuple[FunctionLike, ...]:
        """The staged functions among the parameters. Each takes the last inputs of the node, as many as it has.

        A scan's body takes one row of those inputs that are scanned (`Op.passes`).
        """
        return functions_in(self.params) if self.op.higher_order else ()

    def __repr__(self) -> str:
        return f"<node {self.op}>"


def _outputs(node: Node, specs: Sequence[Spec]) -> tuple[Value, ...]:
    """The values that a node makes; the forward half of a long function returns thousands of residuals."""
    made, by = [], ref(node)
    for i, spec in enumerate(specs):
        value: Value = _blank(Value)
        value.spec = spec
        value._node = by
        value.index = i
        made.append(value)
    return tuple(made)


def node_with_one_output(
    op: Op, inputs: tuple[Value, ...], params: tuple[Any, ...], spec: Spec, stack: tuple[Source, ...], scope: str
) -> Node:
    """A `Node` with one output, no device and no effects, in half of the time: a trace makes little else."""
    node: Node = _blank(Node)
    output: Value = _blank(Value)
    output.spec = spec
    output._node = ref(node)
    output.index = 0
    node.op = op
    node.inputs = inputs
    node.params = params
    node.outputs = (output,)
    node.device = None
    node.stack = stack
    node.scope = scope
    node.after = ()
    return node


_blank: Final[Any] = object.__new__


class Group(NamedTuple):
    """Nodes that are evaluated together, operands before users; only the last one's result is used by others."""

    kind: str
    nodes: tuple[Node, ...]


class Graph:
    """A dataflow graph with named inputs. Passes never change a graph: they build another.

    Args:
        name: its name.
        inputs: the arguments, followed by the captured values.
        nodes: in an order in which they may run.
        outputs: what it returns.
        input_names: the names of all inputs; "arg0", "arg1", ... if there are none.
        n_captures: how many of the inputs are captured values.
        groups: nodes that belong together, for executors and views; they change nothing that is computed.
    """

    __slots__ = (
        "__weakref__",
        "_numbers",
        "groups",
        "input_names",
        "inputs",
        "n_captures",
        "name",
        "nodes",
        "outputs",
        "summary",
    )

    def __init__(
        self,
        name: str,
        inputs: Sequence[Value],
        nodes: Sequence[Node],
        outputs: Sequence[Value],
        *,
        input_names: Sequence[str] = (),
        n_captures: int = 0,
        groups: Sequence[Group] = (),
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.nodes = tuple(nodes)
        self.outputs = tuple(outputs)
        self.input_names = tuple(input_names) or tuple(f"arg{i}" for i in range(len(self.inputs)))
        self.n_captures = n_captures
        self.groups = tuple(groups)
        self._numbers: dict[Value, int] | None = None
        self.summary: Any = None  # what limelight.graph.effects found out about this graph

    @property
    def arguments(self) -> tuple[Value, ...]:
        return self.inputs[: len(self.inputs) - self.n_captures]

    @property
    def captures(self) -> tuple[Value, ...]:
        return self.inputs[len(self.inputs) - self.n_captures :]

    def name_of(self, value: Value) -> str:
        """The name of `value` in the graph's text, "%5": inputs are numbered first, then outputs of nodes in order.

        Raises GraphError for a value of another graph.
        """
        if self._numbers is None:
            outputs = (value for node in self.nodes for value in node.outputs)
            self._numbers = {value: i for i, value in enumerate(chain(self.inputs, outputs))}
        try:
            return f"%{self._numbers[value]}"
        except KeyError:
            raise GraphError(f"{value!r} is not a value of graph {self.name}") from None

    def functions(self) -> Iterator[FunctionLike]:
        """The functions that nodes of this graph call, each once, not those that these call in turn."""
        seen: set[int] = set()
        for node in [node for node in self.nodes if node.op.higher_order]:
            for function in node.functions:
                if id(function) not in seen:
                    seen.add(id(function))
                    yield function

    if TYPE_CHECKING:  # the printers know the graph, not the other way round: they attach themselves

        def text(self, *, literals: str = "short") -> str:
            """The graph as text that `limelight.graph.parser` reads back (see `limelight.graph.printer.show`)."""

        def to_dot(self) -> str:
            """The graph in Graphviz's DOT language."""

        def __str__(self) -> str: ...

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes, {len(self.outputs)} outputs>"


class Literal:
    """An array inside a graph: hashable by identity, read-only."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array) if isinstance(array, np.generic) else array
        if hasattr(self.array, "flags"):
            self.array.flags.writeable = False

    def __repr__(self) -> str:
        return f"Literal({self.array!r})"
