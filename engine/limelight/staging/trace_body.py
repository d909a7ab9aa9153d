"""Tracing the body of a staged function: its Python code runs once, on symbolic tensors, for a tracer to write."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from limelight.core.autograph_hook import unconverted
from limelight.core.name_scopes import outer_scope
from limelight.core.variable import Resource, lift, on_create
from limelight.executors import base as executors
from limelight.staging import argument_changes, explainer, sharing, structured_outputs
from limelight.staging.array_changes import in_place
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.graph_function import GraphFunction
from limelight.staging.key import Call, Key, key_by_identity
from limelight.staging.sharing import Sharing
from limelight.staging.signature import Signature
from limelight.staging.state_creation import Creation, DrawsInOrder
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line


class Callee(NamedTuple):
    """What is traced: the Python function, the code that runs in its place, its signature.

    `tells_apart` says of what it may ask whether it is one and the same, as far as that is known (`sharing`); None
    where that is no business of the trace's.
    """

    python_function: Callable[..., Any]
    traced: Callable[..., Any]
    signature: Signature
    tells_apart: int | None


def trace(
    callee: Callee, call: Call, creation: Creation, tracer: Tracer, closed_over: Collection[int]
) -> ConcreteFunction:
    """Runs the code once for a call; returns what belongs into the cache.

    Args:
        callee: the function.
        call: the call, whose key may have unknown sizes.
        creation: takes note of the variables that the code creates.
        tracer: writes the graph.
        closed_over: the uids of variables that the function is known to close over.
    """
    stack = source_line.user_stack()
    signature, key = callee.signature, call.key
    paths = signature.paths(key.structure, len(call.leaves))
    told = callee.tells_apart is not None
    shared = sharing.of_call(call, signature, callee.tells_apart == sharing.TENSORS) if told else Sharing()
    leaves = _stand_ins(call, key, paths, tracer, shared)
    args, kwargs = _arguments(signature, key, leaves, shared)
    snapshot = explainer.current().take_snapshot(callee.python_function, paths, key.parts)
    host_draws = explainer.current().host_draws(callee.python_function, paths, key.parts)
    lifter = DrawsInOrder(creation, tracer, call.leaves, lift.get())
    with (
        on_create.override(creation.note),
        lift.override(lifter),
        outer_scope.override(""),
        unconverted(tracer.name),
        tracer,
    ):
        result = callee.traced(*args, **kwargs)  # the user's code runs here, and the layers that it calls
        drawn = host_draws()
        tensors, outputs = structured_outputs.split(result, tracer.name)
        graph = tracer.finish(tensors)
    around = (args, kwargs)
    changes = argument_changes.changes_of(callee.python_function, signature, key.structure, leaves, around, result)
    closed_over_now = tracer.closed_over.union([x._uid for x in tracer.captures if isinstance(x, Resource)])
    key = key_by_identity(call, closed_over_now.union(closed_over)).key  # arguments may have turned out to be, too
    # What was one to the code, was read at one of its places: so the trace is for calls that are alike in this.
    depends = told and (changes.any or bool(shared.words))
    tells_apart = max(callee.tells_apart or 0, sharing.CONTAINERS if depends else sharing.NOTHING)
    if tells_apart:
        key = key._replace(shared=shared.words)
    where = str(stack[0]) if stack else "a library thread"
    outputs = outputs._replace(sharing=sharing.of(result)) if told else outputs
    function = GraphFunction(graph, compiles=isinstance(executors.chosen.get(), executors.Automatic))
    entry = ConcreteFunction(function, tracer.captures, outputs, key, paths, where)
    entry.traced_from(callee.python_function, signature, snapshot)
    entry.lost_changes, entry.closed_over = changes.lost, frozenset(closed_over_now)
    entry.same_leaves, entry.host_draws = shared.leaves, drawn
    entry.tells_apart, entry.array_changes = tells_apart, in_place(tracer) if told else ()
    return entry


def _stand_ins(call: Call, key: Key, paths: list[str], tracer: Tracer, shared: Sharing) -> list[Any]:
    """What the code sees in place of each leaf of the arguments."""
    seen: dict[int, Resource] = {}
    leaves = [
        tracer.add_argument(leaf, part, path, seen)
        for leaf, part, path in zip(call.leaves, key.parts, paths, strict=True)
    ]
    for again, first in shared.leaves.items():
        leaves[again] = leaves[first]
    return leaves


def _arguments(
    signature: Signature, key: Key, leaves: list[Any], shared: Sharing
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, in which what is one and the same to the caller is so to the code."""
    if key.structure is None or not shared.containers:
        return signature.unbind(leaves, key.structure)
    tree = sharing.rebuilt(key.structure, leaves, shared)
    return tree if signature.takes_keywords else (tree, {})
