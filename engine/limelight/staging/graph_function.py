"""Graph functions: a graph with the means to run it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from limelight.core.devices import CPU0, Device
from limelight.core.recursion_limit import with_recursion_room
from limelight.core.spec import Spec
from limelight.executors import base as executors
from limelight.executors.base import Runnable
from limelight.executors.device_inference import with_output_devices_of
from limelight.executors.tiered.tiered_run import tiered
from limelight.graph.effects import Effects, effects_of_graph
from limelight.graph.ir import Graph
from limelight.optimise.run_passes import Optimised, optimise

_ids = itertools.count(1)


def _anywhere(spec: Spec) -> bool:
    return bool(getattr(spec, "anywhere", False))


class Placed(NamedTuple):
    """A graph function whose inputs are not all on CPU:0."""

    graph: Graph
    run: Runnable


class GraphFunction:
    """A graph that can be run on payloads (arrays, storages, opaque values).

    It is optimised and built when it is first run, so a function that is only differentiated, printed or called
    from another graph costs nothing more. `executor` is the name of what is to run it: by default of what has been
    chosen for traces of now; what transformations make of a function is for the same one. One that `compiles` is
    compiled in the background once it has run for long enough (`executors.tiered`).
    """

    __limelight_leaf__ = True

    def __init__(self, graph: Graph, executor: str | None = None, compiles: bool = False) -> None:
        self.graph = graph
        self.name = graph.name
        self.id = next(_ids)
        self.executor = executor or executors.chosen.get()
        self.compiles = compiles
        # what transformations made of it, shared by all callers: forward/backward pairs by watched inputs, batched
        # versions and versions with tangents by their kind and pattern
        self.pairs: dict[Any, Any] = {}
        self.blanks: frozenset[int] = frozenset()  # outputs that are blanks for residuals of another branch
        self._placed: dict[tuple[Device, ...], Placed] = {}

    def with_graph(self, graph: Graph) -> GraphFunction:
        """A function of another graph, for passes that change what a node calls."""
        function = GraphFunction(graph, self.executor)
        function.blanks = self.blanks
        return function

    @property
    def tier(self) -> str:
        """The name of the executor that does run it: where that has no form for the graph, another one than asked."""
        return str(getattr(self._running, "tier", self.executor))

    @property
    def tier_reason(self) -> str:
        """Why another executor runs it than the one that was asked for; empty where that one does, or has not yet."""
        return str(getattr(self._running, "refusal", ""))

    @property
    def tier_progress(self) -> str:
        """How far it is on the way to be compiled, or why it is not; empty where nothing has been decided."""
        return str(getattr(self.__dict__.get("_built"), "progress", ""))

    @property
    def _running(self) -> Runnable | None:
        """What has been made to run it, on CPU:0 or else elsewhere; None before the first run."""
        built: Runnable | None = self.__dict__.get("_built")
        return built or next((placed.run for placed in self._placed.values()), None)

    @cached_property
    def _built(self) -> Runnable:
        graph = with_output_devices_of(self.graph, self.optimised.graph, ())
        run = executors.get(self.executor).build(graph)
        return tiered(graph, run, self.executor, _settling(weakref.ref(self))) if self.compiles else run

    @cached_property
    def run(self) -> Runnable:
        """What runs it for inputs on CPU:0, called with payloads; `run.output_devices` says where its results are."""
        return self._with_room(self._built)

    def _with_room(self, run: Runnable) -> Runnable:
        with_room = with_recursion_room(run, self.effects.depth)
        if with_room is not run:
            for name in ("output_devices", "source", "memory"):  # what a runnable has besides being called
                setattr(with_room, name, getattr(run, name))
        return with_room

    def placed_on(self, inputs: Sequence[Device]) -> GraphFunction | Placed:
        """The function for inputs on these devices: each op runs where asked, else where its first operand is."""
        devices = tuple(inputs)
        if all(device is CPU0 for device in devices):
            return self
        placed = self._placed.get(devices)
        if placed is None:
            own = [d for d, value in zip(devices, self.graph.inputs, strict=True) if not _anywhere(value.spec)]
            executor = executors.on_devices(self.executor, own)
            graph = with_output_devices_of(self.graph, self.optimised.graph, devices)
            run = executors.get(executor).build(graph, devices)
            placed = self._placed[devices] = Placed(self.graph, run)
        return placed

    @cached_property
    def optimised(self) -> Optimised:
        """The graph after all passes, with a record of what each did."""
        return optimise(self.graph)

    @cached_property
    def effects(self) -> Effects:
        return effects_of_graph(self.graph)

    def settle(self, run: Runnable) -> None:
        """Runs by this from now on: whoever has run it so far stands aside."""
        self.__dict__["run"] = self._with_room(run)

    def __repr__(self) -> str:
        return f"<graph function {self.name}: {len(self.graph.nodes)} nodes>"


def _settling(function: weakref.ref[GraphFunction]) -> Callable[[Runnable], None]:
    def settle(run: Runnable) -> None:
        alive = function()
        if alive is not None:
            alive.settle(run)

    return settle
