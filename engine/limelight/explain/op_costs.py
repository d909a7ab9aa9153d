"""What each op of a call takes and gives: seconds, bytes, numbers that are not finite, norms."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import dispatch
from limelight.core.backends import to_host
from limelight.explain.gradient_graph import chosen_inputs, with_gradient
from limelight.explain.sandboxed_run import begin, inputs_of
from limelight.explain.subject import staged_for
from limelight.explain.without_effects import restored
from limelight.graph.effects import effects_of_graph
from limelight.graph.ir import FunctionLike, Graph, Node
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.function import Function

_GRADIENT: Final = "gradient/"
RUNS: Final = 3
"""Runs of which the least time of each op counts: the first one finds nothing in the processor's caches."""


class Cost(NamedTuple):
    """What one op took and gave: `seconds` with all that it called, `nbytes` of all its results.

    `norm` is the root of the sum of squares of its floating results, None where it has none.

    >>> import limelight as ll
    >>> measured = ll.explain.costs(lambda x: ll.log(x), ll.constant([0.0, 1.0]))
    >>> [cost.infinities for cost in measured.of.values()]
    [1]
    """

    seconds: float
    nans: int
    infinities: int
    norm: float | None
    nbytes: int


@dataclass(frozen=True, eq=False)
class Costs:
    """The costs of a call of `function`, op by op, of the `graph` as it runs; `entry` is the trace that ran.

    With a gradient, `graph` is that trace and the gradient behind it.

    Each op ran by itself: not fused, and not beside others.

    >>> import limelight as ll
    >>> measured = ll.explain.costs(lambda x: ll.exp(x) @ x, ll.ones((2, 2)))
    >>> [node.op.name for node in measured.of]
    ['exp', 'matmul']
    >>> str(measured).endswith("; all results are finite.")
    True
    """

    function: Function
    entry: ConcreteFunction
    graph: Graph
    of: Mapping[Node, Cost]

    @property
    def has_gradient(self) -> bool:
        """Whether ops of a gradient are among them: of one that was asked for, or of a tape in the function."""
        return any(_GRADIENT in node.scope for node in self.graph.nodes)

    @property
    def seconds(self) -> float:
        """The sum over all ops."""
        return sum([cost.seconds for cost in self.of.values()])

    def __str__(self) -> str:
        heaviest = sorted(self.of.items(), key=lambda item: -item[1].seconds)[:5]
        said = [f"{node.op.name} {cost.seconds * 1e6:,.0f} µs" for node, cost in heaviest]
        bad = sum([bool(cost.nans or cost.infinities) for cost in self.of.values()])
        finite = f"{bad} of them gave NaN or infinity" if bad else "all results are finite"
        return f"`{self.function.name}` ran {len(self.of)} ops, each by itself: {', '.join(said)}; {finite}."

    __repr__ = __str__


def costs(F: Callable[..., Any], *args: Any, gradient_of: Any = None, **kwargs: Any) -> Costs:
    """Runs the graph of `F(*args, **kwargs)` op by op, and measures each.

    The graph is that of the cache; a call that would trace is traced first. It runs three times beside the program, on
    copies of what it may change; the least time of each op counts. Fused ops are measured one by one.

    Args:
        F: a staged function; any other function or module is staged for this question alone.
        *args: its arguments.
        gradient_of: go back, too, from the sum of all results: True (all arguments and trainable variables), or
            parameter names, tensors or variables. The ops are then those of the graph as traced, else as optimised.
        **kwargs: its arguments by name.

    Returns:
        The costs of its ops.

    Raises:
        ArgumentError: `F` cannot be called, or is a class, or `gradient_of` is unknown.

    >>> import limelight as ll
    >>> @ll.function
    ... def norms(x):
    ...     return ll.log(x)
    >>> measured = ll.explain.costs(norms, ll.constant([0.0, -1.0, 1.0]))
    >>> [(node.op.name, cost.nans, cost.infinities) for node, cost in measured.of.items()]
    [('log', 1, 1)]
    """
    function = staged_for("costs", F)
    call = function._call(args, kwargs)
    entry = function._find(call.lookup) or function._trace_once(call, run=False)
    graph, inputs = entry.function.optimised.graph, inputs_of(entry, call)
    if gradient_of is not None and gradient_of is not False:
        wanted = chosen_inputs("explain.costs", gradient_of, entry.graph, inputs)
        graph = with_gradient(entry.graph, wanted, function.summed_outputs(entry))
    watches = [_Watch(graph, look=n == 0) for n in range(RUNS)]
    for watch in watches:
        with dispatch.fresh_stack(), restored() if "io" in effects_of_graph(graph).chains else nullcontext():
            run = begin(graph, inputs, watch)
            watch.start()
            for _ in run:
                pass
    seconds = {node: min([watch.seconds[node] for watch in watches]) for node in watches[0].seconds}
    looked = watches[0].looked
    return Costs(function, entry, graph, {node: Cost(seconds[node], *looked[node]) for node in seconds})


class _Watch:
    """Takes the time of each op of the graph itself; what it calls counts as its own."""

    def __init__(self, graph: Graph, look: bool) -> None:
        self._nodes = frozenset(graph.nodes)
        self.seconds: dict[Node, float] = {}
        self.looked: dict[Node, tuple[int, int, float | None, int]] = {}
        self._look = look
        self._depth = 0
        self._inner = 0.0
        self._last = 0.0

    def start(self) -> None:
        """The run is set up, which takes the longer the larger the graph is and is no op's time."""
        self._last = time.perf_counter()

    def enter(self, node: Node, function: FunctionLike) -> None:
        self._depth += 1

    def leave(self) -> None:
        self._depth -= 1

    def ran(self, node: Node, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
        took = time.perf_counter() - self._last
        if self._depth or node not in self._nodes:  # a copy between devices counts for the op that needs it
            self._inner += took
        else:
            self.seconds[node] = took + self._inner
            self._inner = 0.0
            if self._look:
                self.looked[node] = _looked_at(outputs)
        self._last = time.perf_counter()


def _looked_at(outputs: Sequence[Any]) -> tuple[int, int, float | None, int]:
    nans = infinities = 0
    nbytes = sum([payload_bytes(output) for output in outputs])
    squares: float | None = None
    for output in outputs:
        array = to_host(output)
        kind = getattr(getattr(array, "dtype", None), "kind", "")
        if kind not in "fcV" or not kind or not hasattr(array, "shape"):
            continue
        wide = np.abs(np.asarray(array)).astype(np.float64)
        nans += int(np.isnan(wide).sum())
        infinities += int(np.isinf(wide).sum())
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (squares or 0.0) + float(np.square(wide).sum())
    return nans, infinities, None if squares is None else squares**0.5, nbytes


def payload_bytes(payload: Any) -> int:
    """The bytes of a value as it ran; of rows that a loop keeps, all of them."""
    if isinstance(payload, (list, tuple)):
        return sum(map(payload_bytes, payload))
    return int(getattr(payload, "nbytes", 0))
