"""Graphs as JSON: what a picture of them needs, and nothing that keeps them alive."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from limelight.graph.printer import nested
from limelight_widgets.folds import graph_tree, loose_nodes
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_names import NO_NAMES, Names
from limelight_widgets.folds.source_excerpts import Excerpts, own_stack
from limelight_widgets.format import short_device, shortened

ATTRIBUTE_WIDTH = 160
NAME_WIDTH = 200
INLINE_WIDTH = 14  # characters up to which a constant is written on the nodes that read it
LOOKED_AT = 100_000  # elements of a literal up to which it is worth a look whether all are equal
_UNNAMED = re.compile(r"capture\d+|invariant\d+")  # inputs of functions that close over a tensor
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.dtype, np.generic)
_KIND_OF_EFFECT = {"read": "variable", "write": "variable", "random": "random", "io": "effect"}


class Describer:
    """Collects graphs, each once however often it is called, with the lines of code and the gradient rules they use.

    In a described graph values are numbered: its inputs first, then the outputs of its nodes in execution order. A
    node lists the numbers of its inputs. Empty parts are left out. A constant of one value that other nodes read is
    `inline`: it is written on those rather than drawn, since a shared 0.5 would tie the whole picture together.
    """

    def __init__(self) -> None:
        self._form: Callable[[Any], Any] = _as_traced
        self._excerpts = Excerpts()
        self._rules: dict[str, str] = {}
        self._graphs: list[State] = []
        self._index: dict[tuple[int, bool], int] = {}
        self._waiting: list[tuple[int, Any]] = []
        self._specs: dict[int, str] = {}
        self._stacks: dict[tuple[int, str], list[list[object]]] = {}
        self._alike: dict[Any, State] = {}  # of plain nodes, what those of one op, spec and line have in common
        self._begins: dict[int, tuple[int, int]] = {}  # by the identity of a described stack
        self._alive: list[Any] = []  # keeps ids unique while describing

    def graph(self, graph: Any, names: Names = NO_NAMES, *, optimised: bool = False) -> int:
        """Describes `graph` and all that it calls; returns its index. `names` are those that it has for the user.

        `optimised`: functions that it calls are described as they run, not as they were traced.
        """
        self._form = as_it_runs if optimised else _as_traced
        index = self._place(graph)
        while self._waiting:
            self._describe(*self._waiting.pop())
        if names.outputs and len(names.outputs) == len(graph.outputs):
            self._graphs[index]["output_names"] = [shortened(name, NAME_WIDTH) for name in names.outputs]
        captures = [given for given in self._graphs[index]["inputs"] if given.get("captured")]
        for k, name in names.captures.items():
            if _UNNAMED.fullmatch(captures[k]["name"]):
                captures[k]["name"] = name
        for described in self._graphs[index:]:  # what calls comes before what it calls
            _name_captures(described, self._graphs)
        return index

    def state(self) -> State:
        """Everything that was described."""
        return {"graphs": self._graphs, "sources": self._excerpts.state(), "rules": self._rules}

    def described(self, graph: Any, *, optimised: bool = False) -> State | None:
        """The description of a graph, None where there is none."""
        index = self._index.get((id(graph), optimised), self._index.get((id(graph), False)))
        return None if index is None else self._graphs[index]

    def _place(self, graph: Any) -> int:
        key = (id(graph), self._form is as_it_runs and _runs_otherwise(graph))
        known = self._index.get(key)
        if known is None:
            known = self._index[key] = len(self._graphs)
            self._alive.append(graph)
            self._graphs.append({})
            self._waiting.append((known, graph))
        return known

    def _describe(self, index: int, graph: Any) -> None:
        number = {id(value): k for k, value in enumerate(graph.inputs)}
        nodes = []
        for node in graph.nodes:
            described = self._node(node, number, graph.name)
            names = described["names"] = []
            nodes.append(described)
            for value in node.outputs:
                names.append(f"%{len(number)}")
                number[id(value)] = len(number)
        outputs = [number[id(value)] for value in graph.outputs]
        _write_constants(nodes, len(graph.inputs), outputs)
        fusions = _fusions(graph, nodes)
        described = {"name": shortened(graph.name, NAME_WIDTH), "inputs": _inputs(graph), "outputs": outputs}
        described |= {"nodes": nodes} | ({"fusions": fusions} if fusions else {})
        graph_tree.grow(graph, described, self._line, self._excerpts)
        loose_nodes.gather(described)
        self._graphs[index] = described

    def _node(self, node: Any, number: Mapping[int, int], function: str) -> State:
        """A node; of those without parameters a huge graph has few kinds, which are described once."""
        outputs = node.outputs
        if len(outputs) != 1 or node.params or node.device or not node.inputs:
            return self._described_node(node, number, function)
        key = (id(node.op), id(outputs[0].spec), id(node.stack), function)
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = self._described_node(node, number, function)
            self._alive.append(node)
        return alike | {"in": [number[id(value)] for value in node.inputs]}

    def _described_node(self, node: Any, number: Mapping[int, int], function: str) -> State:
        op, called = str(node.op), node.functions
        if rule := getattr(node.op, "rule", ""):
            self._rules[op] = rule
        described: State = {"op": op, "kind": _kind(node, op)}
        if node.inputs:
            described["in"] = [number[id(value)] for value in node.inputs]
        if node.outputs:
            described["out"] = [self._spec(value.spec) for value in node.outputs]
        if node.params:
            attributes = {k: attribute_text(value) for k, value in node.attrs.items() if not _is_among(value, called)}
            if attributes:
                described["attrs"] = attributes
        if node.device:
            described["device"] = short_device(str(node.device))
        if stack := self.stack(node.stack, function):
            described["stack"] = stack
        if called:
            if rounds := _rounds(node):
                described["loop"] = rounds
            described["calls"] = [[self._place(self._form(function)), function.name] for function in called]
        return described

    def _spec(self, spec: Any) -> str:
        """The text of a spec; huge graphs have few different ones."""
        text = self._specs.get(id(spec))
        if text is None:
            text = self._specs[id(spec)] = str(spec)
            self._alive.append(spec)
        return text

    def stack(self, lines: Sequence[Any], function: str) -> list[list[object]]:
        """Where a node of a function comes from, innermost first: [file, line, function]; shared by nodes of a line."""
        key = (id(lines), function)
        known = self._stacks.get(key)
        if known is None:
            # From the outside in, so that the function's own file is the first to be shown.
            outer = [[*self._excerpts.at(one), one.function] for one in reversed(own_stack(lines, function))]
            known = self._stacks[key] = outer[::-1]
            self._alive.append(lines)
        return known

    def _line(self, node: State) -> tuple[int, int]:
        stack = node.get("stack")
        if not stack:
            return -1, 0
        begin = self._begins.get(id(stack))
        if begin is None:  # stacks are shared, and kept
            index, line = stack[0][0], stack[0][1]
            begin = self._begins[id(stack)] = index, self._excerpts.statement(index, line)
        return begin


def _is_among(value: Any, called: Sequence[Any]) -> bool:
    return any(value is f or (type(value) is tuple and f in value) for f in called)


def _rounds(node: Any) -> int:
    """How many values a loop hands from one round to the next: the first inputs and outputs of its body."""
    attrs = node.attrs if node.functions else {}
    return int(attrs["n_vars"] if "cond" in attrs and "n_vars" in attrs else attrs.get("n_carry", 0))


def _as_traced(function: Any) -> Any:
    return function.graph


def as_it_runs(function: Any) -> Any:
    """The optimised graph of a function that a graph calls; that which was traced where there is no other."""
    optimised = getattr(function, "optimised", None)
    return function.graph if optimised is None else optimised.graph


def _runs_otherwise(graph: Any) -> bool:
    """Whether a function that a graph calls, or one that this calls, runs another graph than was traced."""
    return any(as_it_runs(function) is not function.graph for function in nested(graph))


def _fusions(graph: Any, nodes: Sequence[State]) -> list[State]:
    """The fusion groups of a graph; notes on each of their nodes its group's number, from 1."""
    groups = getattr(graph, "groups", ())
    place = {node: index for index, node in enumerate(graph.nodes)} if groups else {}
    fusions = [{"kind": group.kind, "nodes": [place[node] for node in group.nodes]} for group in groups]
    for number, fusion in enumerate(fusions, start=1):
        for index in fusion["nodes"]:
            nodes[index]["fused"] = number
    return fusions


def _write_constants(nodes: list[State], inputs: int, outputs: list[int]) -> None:
    """Marks constants as `inline`, and gives those that read them `operands` such as "(·, 2.0)"."""
    number, writable = inputs, {}
    for node in nodes:
        if node["kind"] == "constant":
            text = next(iter(node.get("attrs", {}).values()), "")
            if 0 < len(text) <= INLINE_WIDTH and not text.endswith("]") and number not in outputs:
                writable[number] = node, text
        number += len(node.get("out", ()))
    readers: dict[int, list[State]] = {}
    for node in nodes if writable else ():
        for value in node.get("in", ()):
            if value in writable:
                readers.setdefault(value, []).append(node)
    texts = {}
    for number, (node, text) in writable.items():
        if number in readers and all(_has_room(reader) for reader in readers[number]):
            node["inline"], texts[number] = True, text
    for reader in (reader for number in texts for reader in readers[number]):
        reader["operands"] = f"({', '.join(texts.get(value, '·') for value in reader['in'])})"


def _has_room(node: State) -> bool:
    return "calls" not in node and len(node["in"]) <= 3


def attribute_text(value: object) -> str:
    """A value as text, without running code of the user's: only plain values are shown by their repr."""
    value = getattr(value, "array", value)  # a literal of the graph
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, str | bytes):
        return shortened(repr(value[:ATTRIBUTE_WIDTH]), ATTRIBUTE_WIDTH)
    if isinstance(value, _PLAIN):
        return shortened(str(value), ATTRIBUTE_WIDTH)
    if isinstance(value, tuple | list):
        inner = ", ".join(attribute_text(item) for item in value[:16]) + (", …" if len(value) > 16 else "")
        inner = f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
        return shortened(inner, ATTRIBUTE_WIDTH)
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return shortened(name, ATTRIBUTE_WIDTH) if isinstance(name, str) else f"<{type(value).__name__}>"


def _array_text(array: np.ndarray) -> str:
    if array.size == 1:
        return _number_text(array.reshape(-1)[0])
    if array.size <= 8:
        return shortened(str(array.tolist()), ATTRIBUTE_WIDTH)
    if array.size <= LOOKED_AT and (array == array.flat[0]).all():
        return f"all {_number_text(array.flat[0])}"
    return f"{array.dtype}{list(array.shape)}"


def _inputs(graph: Any) -> list[State]:
    """Arguments, then captures, which are marked."""
    first_capture = len(graph.inputs) - graph.n_captures
    return [
        {"name": shortened(name, NAME_WIDTH), "spec": str(value.spec)}
        | ({"captured": True} if k >= first_capture else {})
        for k, (name, value) in enumerate(zip(graph.input_names, graph.inputs, strict=True))
    ]


def _name_captures(graph: State, graphs: Sequence[State]) -> None:
    """Gives captures of the functions that a graph calls the names that their values have in the graph."""
    names = dict(zip(graph["outputs"], graph.get("output_names", ()), strict=False))
    names |= {k: given["name"] for k, given in enumerate(graph["inputs"]) if not _UNNAMED.fullmatch(given["name"])}
    number = len(graph["inputs"])
    for node in graph["nodes"]:
        given = node.get("in", ())
        if node["op"] == "read_variable" and given[0] in names:
            names.setdefault(number, names[given[0]])
        for callee, _ in node.get("calls", ()):
            inputs = graphs[callee]["inputs"]
            for inner, value in zip(reversed(inputs), reversed(given), strict=False):  # captures come last
                if _UNNAMED.fullmatch(inner["name"]) and value in names:
                    inner["name"] = names[value]
        number += len(node.get("out", ()))


def _number_text(number: Any) -> str:
    """Six digits of a fraction; everything else as it is."""
    fraction = isinstance(number, np.floating) and np.isfinite(number) and number % 1
    return f"{float(number):.6g}" if fraction else str(number)


def _kind(node: Any, op: str) -> str:
    if hasattr(node, "error"):
        return "error"
    if node.functions:
        return "call"
    if op == "constant":
        return "constant"
    return _KIND_OF_EFFECT.get(getattr(node.op, "effect", None) or "", "op")
