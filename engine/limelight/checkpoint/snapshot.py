"""An object graph as it is now, ready to be written: its manifest, and its arrays.

A variable's array is never written into, so holding it is a snapshot without a copy; NumPy arrays, which are changed in
place, are copied where the writing is left to a thread. What leads to no state is left out.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from limelight.checkpoint.array_files import Array, Unwritten
from limelight.checkpoint.checkpoint_file import COMPLEX
from limelight.checkpoint.list_order import Orders, orders_of
from limelight.checkpoint.manifest import Manifest, SavedNode
from limelight.checkpoint.object_graph import (
    HOLDERS,
    LEAVES,
    OBJECT,
    PLAIN,
    RECORD,
    Attributes,
    Node,
    ObjectGraph,
    UnkeepableKey,
    Value,
    children_of,
    has_slots,
)
from limelight.checkpoint.object_paths import WITHIN, below, join
from limelight.checkpoint.state_protocols import get_state
from limelight.checkpoint.unsaved_variables import warn_of_unsaved
from limelight.checkpoint.values import encode
from limelight.core import device_copies, dtypes
from limelight.core.tensor import Tensor
from limelight.errors import CheckpointError


@dataclass
class Snapshot:
    """What is to be written."""

    manifest: Manifest
    arrays: dict[str, Unwritten]
    orders: Orders


def take(root: Any, *, copied: bool = False, **info: Any) -> Snapshot:
    """The state of all that is below `root` now.

    Args:
        root: a `State`, usually a checkpoint.
        copied: whether arrays that may be changed in place are copied.
        **info: what else the file says of itself, plain values of JSON.

    Raises:
        CheckpointError: there is state that a file cannot keep.

    Warns:
        CheckpointWarning: there are variables that are not saved, in objects that are no modules.
    """
    graph = ObjectGraph(root)
    _check_slots(graph)
    _check_mixed(graph)
    warn_of_unsaved(graph)
    kept = _with_state(graph)
    numbers = {node.number: i for i, node in enumerate(kept)}
    arrays: dict[str, Unwritten] = {}
    nodes = [_saved(node, numbers, arrays, copied) for node in kept]
    return Snapshot(Manifest(nodes, os.urandom(16).hex(), dict(info)), arrays, orders_of(graph, kept))


def _with_state(graph: ObjectGraph) -> list[Node]:
    """The nodes that are values, or lead to some, and the root."""
    above: dict[int, list[int]] = {}
    for node in graph.nodes:
        for _, child in node.children:
            above.setdefault(child, []).append(node.number)
    pending = [node.number for node in graph.nodes if node.kind in LEAVES]
    useful = {0, *pending}
    while pending:
        for number in above.get(pending.pop(), ()):
            if number not in useful:
                useful.add(number)
                pending.append(number)
    return [node for node in graph.nodes if node.number in useful]


def _check_slots(graph: ObjectGraph) -> None:
    for node in graph.nodes:
        if has_slots(node.object) and not node.slots and node.object.variables_with_slots():
            name = type(node.object).__name__
            raise CheckpointError(
                f"{name} at {node.path!r} keeps slots for variables, none of which is below the checkpoint, and slots "
                f"are saved with their variables: write ll.Checkpoint(model=model, optimizer={name.lower()})"
            )


def _check_mixed(graph: ObjectGraph) -> None:
    """Refuses plain values beside variables: the list of both has nodes, and a plain value in it would be dropped."""
    states = [node for node in graph.nodes if isinstance(node.object, Attributes)]
    seen = {node.number for node in states}
    for node in states:  # which grows by the containers below
        for _, child in node.children:
            if graph.nodes[child].kind in HOLDERS and child not in seen:
                seen.add(child)
                states.append(graph.nodes[child])
        if node.kind in HOLDERS:
            _check_elements(node)


def _check_elements(node: Node) -> None:
    x = node.object
    items = x.items() if isinstance(x, dict) else children_of(x)
    for key, x in items:
        edge = key if isinstance(key, (int, str)) else str(key)
        if x is not None and (type(x) in PLAIN or isinstance(x, (set, frozenset, bytearray, np.generic, Tensor))):
            holder, instead = node.kind, "give it an attribute of its own, or a list without them"
            if node.kind == RECORD:
                holder = "dataclass"
                instead = (
                    "let the dataclass be an attribute of a ll.Module, where numbers are settings, or be a ll.State"
                )
            raise CheckpointError(
                f"{join(node.path, edge)!r} is a plain {type(x).__name__} in a {holder} among variables or modules, "
                f"and would not be saved: {instead}"
            )


def _saved(node: Node, numbers: dict[int, int], arrays: dict[str, Unwritten], copied: bool) -> SavedNode:
    kind = OBJECT if node.kind == RECORD else node.kind
    saved = SavedNode(kind, "" if node.kind == "value" else type(node.object).__name__, path=node.path)
    if node.kind not in LEAVES:
        saved.children = [(_edge(edge, node), numbers[to]) for edge, to in node.children if to in numbers]
        saved.slots = [(numbers[to], {k: numbers[n] for k, n in names.items()}) for to, names in node.slots]
    elif node.kind in ("value", "state"):
        saved.value = _value_of(node, arrays)
    else:
        saved.array = node.path
        arrays[node.path] = array = _array_of(node, copied)
        saved.dtype = "complex128" if array.dtype == dtypes.complex128 else ""
        _check_name(node.path)
    return saved


def _edge(edge: Any, node: Node) -> Any:
    if isinstance(edge, UnkeepableKey):
        raise CheckpointError(
            f"the dictionary at {node.path!r} has the key {edge}, and a variable or the like below it: keys that a "
            "file can keep are strings and whole numbers; write str(key)"
        )
    return edge


def _array_of(node: Node, copied: bool) -> Unwritten:
    x = node.object
    if node.kind == "array":
        array = np.array(x) if copied else x
        return Unwritten(array.dtype.newbyteorder("="), array.shape, lambda: array)
    payload = x._data.array
    if node.kind == "generator":
        return Unwritten(payload.dtype, payload.shape, lambda: payload)
    read = functools.partial(device_copies.on_host, payload, x._device, device_copies.SAVED, x.name)
    return Unwritten(x.dtype, tuple(payload.shape), read)


def _value_of(node: Node, arrays: dict[str, Unwritten]) -> Any:
    x = node.object
    value = x.value if isinstance(x, Value) else get_state(x)

    def keep(array: Array) -> str:
        kept = np.array(array, array.dtype.newbyteorder("="))
        key = below(node.path, [f"{WITHIN}{len(arrays)}"])
        if kept.dtype == dtypes.complex128:
            key += COMPLEX
        arrays[key] = Unwritten(kept.dtype, kept.shape, lambda: kept)
        return key

    what = f"{node.path!r}" if isinstance(x, Value) else f"the state of {node.path!r}, a {type(x).__name__},"
    _check_name(node.path)
    return encode(value, keep, what)


def _check_name(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise CheckpointError(f"the name {path!r} has half a character in it, which no file can keep") from None
