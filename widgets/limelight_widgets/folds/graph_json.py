"""Graphs as JSON: what a picture of them needs, and nothing that keeps them alive."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from limelight.graph.printer import nested
from limelight_widgets.folds import graph_tree, loose_nodes
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.graph_names import NO_NAMES, Names
from limelight_widgets.folds.node_columns import NodeColumns, Nodes, spec_bytes
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
        self._outs: dict[tuple[str, ...], list[str]] = {}
        self._shared: dict[tuple[int, ...], list[list[object]]] = {}  # those that are equal, by their lines
        self._lines: dict[Any, list[object]] = {}
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
        columns, number = self._columns(graph)
        outputs = [number[id(value)] for value in graph.outputs]
        _write_constants(columns, outputs)
        fusions = _fusions(graph, columns)
        described = {"name": shortened(graph.name, NAME_WIDTH), "inputs": _inputs(graph), "outputs": outputs}
        described |= {"nodes": Nodes(columns)} | ({"fusions": fusions} if fusions else {})
        graph_tree.grow(graph, described, columns, self._line, self._excerpts)
        loose_nodes.gather(described, columns)
        self._graphs[index] = described

    def _columns(self, graph: Any) -> tuple[NodeColumns, dict[int, int]]:
        """The nodes of a graph, of which a huge one has few kinds; and the numbers of its values, by their ids."""
        values = chain(graph.inputs, chain.from_iterable([node.outputs for node in graph.nodes]))
        number = {one: k for k, one in enumerate(map(id, values))}
        stacks = {id(node.stack): node.stack for node in graph.nodes}
        line = {key: id(self.stack(stack, graph.name)) for key, stack in stacks.items()}
        specs = {id(node.outputs[0].spec): node.outputs[0].spec for node in graph.nodes if len(node.outputs) == 1}
        made = {key: self._spec(spec) for key, spec in specs.items()}
        keys = [
            (id(node.op), made[id(node.outputs[0].spec)], line[id(node.stack)])
            if len(node.outputs) == 1 and not node.params and not node.device
            else id(node)
            for node in graph.nodes
        ]
        first = dict(zip(reversed(keys), reversed(graph.nodes), strict=True))  # of each kind, in reverse order
        order = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        kinds = [self._kind(first[key], graph.name) for key in order]
        kind = list(map(order.__getitem__, keys))
        flat = list(map(number.__getitem__, map(id, chain.from_iterable([node.inputs for node in graph.nodes]))))
        ends = list(accumulate([len(node.inputs) for node in graph.nodes]))
        reads = [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        columns = NodeColumns(kinds, kind, len(graph.inputs), reads)
        columns.bytes = np.array([_bytes_of(first[key]) for key in order])[columns.kind]
        return columns, number

    def _kind(self, node: Any, function: str) -> State:
        """What a node has in common with those of its op, spec and line."""
        op, called = str(node.op), node.functions
        if rule := getattr(node.op, "rule", ""):
            self._rules[op] = rule
        described: State = {"op": op, "kind": _kind(node, op)}
        if node.outputs:
            described["out"] = self._out(node.outputs)
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

    def _out(self, values: Sequence[Any]) -> list[str]:
        """The texts of the specs of what a node makes; shared by nodes that make the same."""
        texts = [self._spec(value.spec) for value in values]
        return self._outs.setdefault(tuple(texts), texts)

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
            outer = [self._at(one) for one in reversed(own_stack(lines, function))]
            known = self._shared.setdefault(tuple(map(id, outer)), outer[::-1])
            self._stacks[key] = known
            self._alive.append(lines)
        return known

    def _at(self, line: Any) -> list[object]:
        known = self._lines.get(line)
        if known is None:
            known = self._lines[line] = [*self._excerpts.at(line), line.function]
        return known

    def _line(self, kind: State) -> tuple[int, int]:
        stack = kind.get("stack")
        if not stack:
            return -1, 0
        begin = self._begins.get(id(stack))
        if begin is None:  # stacks are shared, and kept
            index, line = stack[0][0], stack[0][1]
            begin = self._begins[id(stack)] = index, self._excerpts.statement(index, line)
        return begin


def _bytes_of(node: Any) -> float:
    """Of what a node makes."""
    return float(sum([spec_bytes(value.spec) for value in node.outputs]))


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


def _fusions(graph: Any, columns: NodeColumns) -> list[State]:
    """The fusion groups of a graph; notes on each of their nodes its group's number, from 1."""
    groups = getattr(graph, "groups", ())
    place = {node: index for index, node in enumerate(graph.nodes)} if groups else {}
    fusions = [{"kind": group.kind, "nodes": [place[node] for node in group.nodes]} for group in groups]
    for number, fusion in enumerate(fusions, start=1):
        columns.note("fused").update(dict.fromkeys(fusion["nodes"], number))
    return fusions


def _write_constants(columns: NodeColumns, outputs: list[int]) -> None:
    """Marks constants as `inline`, and gives those that read them `operands` such as "(·, 2.0)"."""
    results, texts = set(outputs), dict[int, str]()
    for index in columns.where(_is_short_constant):
        number = int(columns.firsts[index])
        readers = columns.readers[number]
        if number not in results and readers and all(_has_room(columns, reader) for reader in readers):
            columns.note("inline")[index] = True
            texts[number] = _constant_text(columns.kind_of(index))
    for reader in dict.fromkeys(reader for number in texts for reader in columns.readers[number]):
        columns.note("operands")[reader] = f"({', '.join(texts.get(value, '·') for value in columns.reads[reader])})"


def _constant_text(kind: State) -> str:
    return str(next(iter(kind.get("attrs", {}).values()), ""))


def _is_short_constant(kind: State) -> bool:
    text = _constant_text(kind) if kind["kind"] == "constant" else ""
    return 0 < len(text) <= INLINE_WIDTH and not text.endswith("]")


def _has_room(columns: NodeColumns, node: int) -> bool:
    return len(columns.reads[node]) <= 3 and "calls" not in columns.kind_of(node)


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
        return shortened(_nested_text(array), ATTRIBUTE_WIDTH)
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
    columns = NodeColumns.of(graph)
    for index in columns.where(lambda kind: kind["op"] == "read_variable" or "calls" in kind):
        kind, given = columns.kind_of(index), columns.reads[index]
        if kind["op"] == "read_variable" and given[0] in names:
            names.setdefault(int(columns.firsts[index]), names[given[0]])
        for callee, _ in kind.get("calls", ()):
            inputs = graphs[callee]["inputs"]
            for inner, value in zip(reversed(inputs), reversed(given), strict=False):  # captures come last
                if _UNNAMED.fullmatch(inner["name"]) and value in names:
                    inner["name"] = names[value]


def _nested_text(value: Any) -> str:
    """An array as a list of lists; its numbers as `_number_text` tells them: Python's have the digits of 64 bits."""
    if isinstance(value, np.ndarray):
        return f"[{', '.join([_nested_text(one) for one in value])}]"
    return _number_text(value) if isinstance(value, np.inexact) else attribute_text(value)


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
