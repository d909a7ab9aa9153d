"""The object graph of a checkpoint as JSON, and its strict reader. docs/checkpoints.md has the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from limelight.checkpoint import header_limits
from limelight.checkpoint.array_files import parse_json
from limelight.checkpoint.object_graph import BRANCHES, LEAVES
from limelight.checkpoint.object_paths import SLOTS, Edge, below, join
from limelight.checkpoint.values import array_keys
from limelight.errors import CheckpointError

FORMAT: Final = "limelight.checkpoint"
VERSION: Final = 3
_NEW: Final = '"~":"list"'  # all that version 1 lacks of version 2
_FILE_NAME: Final = re.compile(r"[^/\\:\x00-\x1f]+\.[0-9a-f]{8}-[0-9]{5}-of-[0-9]{5}\.safetensors")


@dataclass(slots=True)
class SavedNode:
    """An object as it was saved: its kind, the name of its class, and what its edges lead to, by number."""

    kind: str
    type: str = ""
    children: list[tuple[Edge, int]] = field(default_factory=list)
    slots: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    array: str = ""
    dtype: str = ""
    """Of an array that is stored as another dtype; else empty."""
    value: Any = None
    path: str = ""


@dataclass(slots=True)
class Manifest:
    """All that a checkpoint says besides its arrays."""

    nodes: list[SavedNode]
    id: str
    info: dict[str, Any] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    """The names of files with arrays, where these are not in the file itself, and the keys in each."""

    def dumps(self, *, padded: bool = False) -> str:
        """The JSON, of the first version that knows what is in it; of files that are padded that is the third."""
        data: dict[str, Any] = {"format": FORMAT, "version": VERSION, "id": self.id, "info": self.info}
        if self.files:
            data["files"] = self.files
        data["nodes"] = [_as_json(node) for node in self.nodes]
        text = json.dumps(data, separators=(",", ":"))
        version = VERSION if padded else 2 if _NEW in text else 1  # in a string it would be escaped
        return text.replace(f'"version":{VERSION},', f'"version":{version},', 1)  # for readers of before

    def array_keys(self) -> list[str]:
        """The keys of all arrays."""
        return [key for node in self.nodes for key in ([node.array] if node.array else array_keys(node.value))]


def _as_json(node: SavedNode) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": node.kind}
    for name in ("type", "children", "array", "dtype", "slots"):
        if getattr(node, name):
            data[name] = getattr(node, name)
    if node.kind in ("value", "state"):
        data["value"] = node.value
    return data


def parse(text: str, name: str, room: int) -> Manifest:
    """The manifest in a file.

    Args:
        text: the JSON.
        name: that of the file, for messages.
        room: bytes of memory that it may take: the size of the file, about.

    Raises:
        CheckpointError: it is of a newer version, or is not what this one writes.
    """

    def refuse(why: str) -> NoReturn:
        raise CheckpointError(f"{name} is no checkpoint of limelight's: {why}")

    data = checked_json(text, room, refuse)
    if not isinstance(data, dict) or data.get("format") != FORMAT or type(data.get("version")) is not int:
        refuse(f"its object graph is not of the format {FORMAT}")
    if data["version"] > VERSION:
        raise CheckpointError(
            f"{name} is of version {data['version']} of the format, and this limelight reads versions up to {VERSION}: "
            "read it with the limelight that wrote it, or a newer one"
        )
    return _Reader(data, refuse, room).manifest()


def checked_json(text: str, room: int, refuse: Callable[[str], NoReturn]) -> Any:
    """The objects that a JSON text in a file means, held to what the file can hold before anything is made of it.

    Args:
        text: the JSON.
        room: bytes of memory that it may take: the size of the file, about.
        refuse: is told what is wrong, and raises.
    """
    if not header_limits.fits(text, room):
        refuse("what it says besides its arrays would take far more memory than the file")
    return parse_json(text, refuse)


class _Reader:
    """Takes JSON for a manifest, and nothing on trust."""

    def __init__(self, data: dict[str, Any], refuse: Callable[[str], NoReturn], room: int) -> None:
        self._data = data
        self._refuse = refuse
        self._room = room
        self._count = 0

    def manifest(self) -> Manifest:
        given = self._typed(self._data.get("nodes"), list, "nodes")
        self._count = len(given)
        nodes = []
        for i, x in enumerate(given):
            nodes.append(self._node(x))
            given[i] = None  # so that all nodes are in memory once
        if not nodes or nodes[0].kind not in BRANCHES:
            self._refuse("it has no root")
        for node in nodes:
            self._check_slots(node, nodes)
        manifest = Manifest(
            nodes,
            self._typed(self._data.get("id"), str, "id"),
            self._typed(self._data.get("info", {}), dict, "info"),
            self._files(self._data.get("files", {})),
        )
        if not give_paths(manifest.nodes, self._room + header_limits.ALLOWANCE // 2):
            self._refuse("its paths would take far more memory than the file")
        if not all(node.path for node in nodes[1:]):
            self._refuse("it has nodes that nothing leads to")
        return manifest

    def _node(self, x: Any) -> SavedNode:
        data = self._typed(x, dict, "a node")
        node = SavedNode(self._typed(data.get("kind"), str, "kind"))
        if node.kind not in BRANCHES and node.kind not in LEAVES:
            self._refuse(f"it has a node of kind {node.kind[:40]!r}")
        node.type = self._typed(data.get("type", ""), str, "type")
        node.dtype = self._typed(data.get("dtype", ""), str, "dtype")
        node.array = self._typed(data.get("array", ""), str, "array")
        if bool(node.array) != (node.kind in ("variable", "generator", "array")):
            self._refuse(f"it has a {node.kind} {'with' if node.array else 'without'} an array")
        if node.dtype not in ("", "complex128"):
            self._refuse(f"it has an array stored as {node.dtype[:40]!r}")
        node.value = data.get("value")
        pairs = [self._pair(pair) for pair in self._typed(data.get("children", []), list, "children")]
        node.children = [(self._edge(edge), self._number(to)) for edge, to in pairs]
        if (node.children and node.kind not in BRANCHES) or len(dict(node.children)) < len(node.children):
            self._refuse("it has an edge twice, or edges below a value")
        slots = [self._pair(pair) for pair in self._typed(data.get("slots", []), list, "slots")]
        node.slots = [(self._number(to), self._slots(names)) for to, names in slots]
        return node

    def _slots(self, names: Any) -> dict[str, int]:
        return {name: self._number(to) for name, to in self._typed(names, dict, "slots").items()}

    def _check_slots(self, node: SavedNode, nodes: list[SavedNode]) -> None:
        used = [number for to, names in node.slots for number in (to, *names.values())]
        if any(nodes[number].kind != "variable" for number in used):
            self._refuse("it has slots of, or that are, no variables")

    def _files(self, given: Any) -> dict[str, list[str]]:
        files: dict[str, list[str]] = self._typed(given, dict, "files")
        for name, keys in files.items():
            if not _FILE_NAME.fullmatch(name) or name in (".", ".."):
                self._refuse(f"it names a file {name[:80]!r} that is none of a checkpoint's, in its own folder")
            if not all(type(key) is str for key in self._typed(keys, list, "files")):
                self._refuse("the keys of its files are not strings")
        return files

    def _pair(self, x: Any) -> list[Any]:
        pair: list[Any] = self._typed(x, list, "an edge")
        return pair if len(pair) == 2 else self._refuse("it has an edge that is not a name and a number")

    def _edge(self, x: Any) -> Edge:
        if type(x) is not str and type(x) is not int:
            self._refuse("it has an edge that is no name and no position")
        edge: Edge = x
        return edge

    def _number(self, x: Any) -> int:
        if type(x) is not int or not 0 <= x < self._count:
            self._refuse("an edge leads to a node that is not there")
        number: int = x
        return number

    def _typed(self, x: Any, kind: type, what: str) -> Any:
        return x if type(x) is kind else self._refuse(f"{what} should be a {kind.__name__}")


def give_paths(nodes: list[SavedNode], room: int) -> bool:
    """Says of each node how it is reached first from the root; False where paths would take more than `room` bytes."""
    seen = {0}
    pending = [0]
    for at in pending:
        for edge, to in nodes[at].children:
            if to not in seen:
                seen.add(to)
                nodes[to].path = join(nodes[at].path, edge)
                room -= len(nodes[to].path)
                pending.append(to)
            if room < 0:
                return False
    return all(_give_slot_paths(node, nodes, room) for node in nodes if node.slots)


def _give_slot_paths(node: SavedNode, nodes: list[SavedNode], room: int) -> bool:
    for to, names in node.slots:
        for name, slot in names.items():
            nodes[slot].path = nodes[slot].path or below(node.path, [SLOTS, nodes[to].path, name])
            room -= len(nodes[slot].path)
        if room < 0:
            return False
    return True
