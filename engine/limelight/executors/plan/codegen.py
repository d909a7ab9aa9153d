"""Writes a graph as straight-line Python.

One node is one line, so that the line at which a run fails leads to its node. A value lives in a local variable from
the node that makes it to its last use; the variable is then used again, or deleted. Large graphs are written as several
functions of about a thousand nodes, so that compiling stays linear in their size and frames stay small; values that
cross from one part to a later one are parked in a list.

    def run(v0, v1):
     try:
      v2 = add(v0, c0)
      v2 = multiply(v2, v1, v2)      # the last argument: the buffer of the dead v2 takes the result
      return (v2,)
     except Exception as error:
      blame(error)
      raise
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from limelight.core.devices import CPU0
from limelight.executors.plan.buffer_reuse import Buffers
from limelight.executors.plan.kernel_calls import KernelCall, KernelCalls
from limelight.executors.plan.shared_ufuncs import on_all_cores
from limelight.executors.plan.specialised_kernels import specialised
from limelight.graph.ir import Graph, Node, Value
from limelight.ops.create.literal import constant_op

PART: Final = 1000
"""Nodes in one generated function."""
_FIRST_LINE: Final = 3  # of the nodes: the lines before it are `def` and `try`
_INLINE: Final = {type(None), bool, int}
_LONGEST_INLINE: Final = 8
_NOT_IN_NAMES: Final = re.compile(r"\W")
_RESERVED: Final = re.compile(r"([vcp]|part)\d+\Z|(run|blame|parked)\Z|\d")


class Part(NamedTuple):
    """One generated function: its text, what its free names mean, and the node behind each line with its operands."""

    name: str
    lines: list[str]
    namespace: dict[str, Any]
    nodes: list[tuple[Node, list[str]]]

    def code(self) -> Iterator[tuple[Node, str]]:
        """Each node with the line that runs it."""
        for (node, _), line in zip(self.nodes, self.lines[_FIRST_LINE - 1 :], strict=False):  # what follows is the end
            yield node, line.strip().replace(";del ", "; del ")

    def node_at(self, line: int) -> tuple[Node, list[str]] | None:
        """The node that line number `line` runs, with the names of its operands there."""
        return self.nodes[line - _FIRST_LINE] if 0 <= line - _FIRST_LINE < len(self.nodes) else None


def emit(graph: Graph) -> list[Part]:
    """The functions of a plan for `graph`; the first is the one to call, the others are called by it."""
    return _PlanWriter(graph, PART).emit()


class _PlanWriter:
    """What the functions of a plan have in common, and how they are put together.

    `last` is the node of the last use of each value; `parked` the places of values that cross from one part to another.
    """

    def __init__(self, graph: Graph, size: int) -> None:
        self.graph = graph
        self.nodes = [node for node in graph.nodes if node.op is not constant_op]
        self.buffers = Buffers()
        self.kernel_calls = KernelCalls(specialised)
        self.constants = {node.outputs[0]: _payload(node) for node in graph.nodes if node.op is constant_op}
        self.last: dict[Value, int] = {}
        for i, node in enumerate(self.nodes):
            self.last.update(dict.fromkeys(node.inputs, i))
        self.last.update(dict.fromkeys(graph.outputs, len(self.nodes)))
        self.size = size
        self.parked: dict[Value, int] = {}

    def emit(self) -> list[Part]:
        if len(self.nodes) <= self.size:
            return [self._only_part()]
        self.parked.update({value: i for i, value in enumerate(self.graph.inputs)})
        parts = []
        for n, start in enumerate(range(0, len(self.nodes), self.size)):
            stop = min(start + self.size, len(self.nodes))
            writer = FunctionWriter(self, f"part{n}", start, stop)
            writer.head("parked")
            writer.write()
            parts.append(writer.finish())
        return [self._caller(parts), *parts]

    def _only_part(self) -> Part:
        writer = FunctionWriter(self, "run", 0, len(self.nodes))
        names = writer.parameters(self.graph.inputs)
        writer.head(", ".join(names), guarded=True)
        writer.write()
        return writer.finish([writer.variable(value) for value in self.graph.outputs])

    def _caller(self, parts: list[Part]) -> Part:
        writer = FunctionWriter(self, "run", 0, 0)
        names = writer.parameters(self.graph.inputs)
        writer.head(", ".join(names), guarded=True)
        writer.line(f"parked = [{', '.join(names)}] + [None] * {len(self.parked) - len(names)}")
        for part in parts:
            writer.line(f"{part.name}(parked)")
        outputs = [f"parked[{self.parked[v]}]" if v in self.parked else writer.variable(v) for v in self.graph.outputs]
        return writer.finish(outputs)


class FunctionWriter:
    """Writes one function.

    Args:
        plan: the plan that it belongs to.
        name: its name in the code.
        start: the place of its first node among those of the plan.
        stop: that behind its last node.
    """

    def __init__(self, plan: _PlanWriter, name: str, start: int, stop: int) -> None:
        self._plan = plan
        self._name = name
        self._start = start
        self._stop = stop
        self._lines: list[str] = []
        self._nodes_by_line: list[tuple[Node, list[str]]] = []
        self._indent = " "
        self._variables: dict[Value, str] = {}
        self._free_variables: list[str] = []
        self._n_variables = 0
        self._reusable: set[str] = set()  # variables that may be used again: not parameters, not constants
        self._namespace: dict[str, Any] = {}
        self._bound: dict[tuple[int, bool], str] = {}
        self._last = plan.last if stop - start == len(plan.nodes) else self._last_here()

    def _last_here(self) -> dict[Value, int]:
        """The last use of each value in this part."""
        last: dict[Value, int] = {}
        for i in range(self._start, self._stop):
            last.update(dict.fromkeys(self._plan.nodes[i].inputs, i))
        return last

    # The frame of the function

    def parameters(self, inputs: Sequence[Value]) -> list[str]:
        names = [self._new_variable() for _ in inputs]
        self._variables.update(zip(inputs, names, strict=True))
        return names

    def head(self, parameters: str, guarded: bool = False) -> None:
        self._lines.append(f"def {self._name}({parameters}):")
        if guarded:
            self._indent = "  "
        self._lines.append(" try:" if guarded else " # part of a larger plan")

    def line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    def finish(self, outputs: Iterable[str] | None = None) -> Part:
        if outputs is not None:
            results = list(outputs)
            self.line(f"return ({', '.join(results)}{',' if len(results) == 1 else ''})")
            self._lines += [" except Exception as error:", "  blame(error)", "  raise"]
        return Part(self._name, self._lines, self._namespace, self._nodes_by_line)

    # Nodes

    def write(self) -> None:
        for i in range(self._start, self._stop):
            self._node(i, self._plan.nodes[i])
        if self._start == self._stop:
            self.line("pass")

    def _node(self, i: int, node: Node) -> None:
        call = on_all_cores(self._plan.kernel_calls.of(node, (node.device or CPU0).backend), node)
        loads = "".join(self._loads(i, node)) if self._plan.parked else ""
        operands = [self.variable(value, call.scalar) for value in node.inputs]
        dead = self._dead(i, node)
        buffer = self._plan.buffers.take(node, call, [v for v in dead if self._plan.last[v] == i]) if dead else None
        out = None
        if buffer is not None:  # its variable takes the result
            dead.append(dead.pop(dead.index(buffer)))
            out = self._variables[buffer]
            if not self._plan.buffers.decides_order(buffer, node):
                out += f" if {out}.flags.c_contiguous else None"
        self._plan.buffers.note(node, call)
        expression = self._expression(node, call, operands, out)
        spare = [self._variables.pop(value) for value in dead]
        targets, parking, unused = self._targets(i, node, spare)
        after = f";del {', '.join([*spare, *unused])}" if spare or unused else ""
        self._free_variables += spare + unused
        self._lines.append(f"{self._indent}{loads}{targets}{expression}{parking}{after}")
        self._nodes_by_line.append((node, operands))

    def _dead(self, i: int, node: Node) -> list[Value]:
        """The operands that this part needs no longer, and whose variables may therefore be used again."""
        last, variables, reusable = self._last, self._variables, self._reusable
        return [v for v in dict.fromkeys(node.inputs) if last[v] == i and variables.get(v) in reusable]

    def _targets(self, i: int, node: Node, spare: list[str]) -> tuple[str, str, list[str]]:
        """The left side of the line; what to park; the variables that nobody will read."""
        names: list[str] = []
        unused: list[str] = []
        parking = ""
        last = self._plan.last
        if not any(value in last for value in node.outputs):
            return "", "", []
        for value in node.outputs:
            name = spare.pop() if spare else self._new_variable()
            self._reusable.add(name)
            names.append(name)
            if last.get(value, -1) >= self._stop and self._is_part():
                parking += f";parked[{self._park(value)}] = {name}"
            if value in self._last:
                self._variables[value] = name
            else:
                unused.append(name)
        comma = "," if node.op.multiple and len(names) == 1 else ""
        return f"{', '.join(names)}{comma} = ", parking, unused

    def _is_part(self) -> bool:
        return self._last is not self._plan.last

    def _park(self, value: Value) -> int:
        return self._plan.parked.setdefault(value, len(self._plan.parked))

    def _loads(self, i: int, node: Node) -> Iterator[str]:
        """Fetches operands that an earlier part made; the last part to use one empties its place."""
        parked = self._plan.parked
        for value in dict.fromkeys(node.inputs):
            if value in self._variables or value not in parked:
                continue
            name = self._variables[value] = self._new_variable()
            self._reusable.add(name)
            yield f"{name} = parked[{parked[value]}];"
            if self._plan.last[value] < self._stop:
                yield f"parked[{parked[value]}] = None;"

    def _expression(self, node: Node, call: KernelCall, operands: list[str], out: str | None) -> str:
        params = node.params if call.params is None else call.params
        written = [_inline(param) or self._bind(param, "p") for param in params] if params else []
        if call.kernel is None:
            return f"{operands[0]}{call.infix}{', '.join([*operands[1:], *written])}{call.suffix}"
        if call.packed:
            operands = [f"({', '.join(operands)},)"]
        arguments = [*[self._bind(x, "xp") for x in call.first], *operands] if call.first else operands.copy()
        arguments += [self._bind(x, "c") for x in call.extra]
        if out is not None:
            arguments.append(f"{call.out}{out}")
        return f"{self._bind(call.kernel, node.op.name)}({', '.join(arguments + written)})"

    # Names

    def variable(self, value: Value, scalar: bool = False) -> str:
        """The name of a value in this function; constants get theirs when they are first used."""
        variable = self._variables.get(value)
        if variable is not None:
            return variable
        return self._bind(self._plan.constants[value], "c", scalar)

    def _new_variable(self) -> str:
        if self._free_variables:
            return self._free_variables.pop()
        self._n_variables += 1
        return f"v{self._n_variables - 1}"

    def _bind(self, thing: Any, hint: str, scalar: bool = False) -> str:
        """A free name of the function for `thing`; with `scalar`, for its only element if it is a 0-d array."""
        key = (id(thing), scalar)
        name = self._bound.get(key)
        if name is None:
            name = self._bound[key] = self._new_name(hint)
            self._namespace[name] = thing[()] if scalar and getattr(thing, "shape", None) == () else thing
        return name

    def _new_name(self, hint: str) -> str:
        name = _NOT_IN_NAMES.sub("_", hint)
        if _RESERVED.match(name) or keyword.iskeyword(name):
            name = f"op_{name}"
        while name in self._namespace or len(hint) == 1:
            name, hint = f"{hint}{len(self._namespace)}", f"{hint}_"
        return name


def _inline(param: Any) -> str:
    """A parameter as a constant of the code, where it is simple enough; else nothing."""
    kind = type(param)
    if kind in _INLINE:
        return repr(param)
    if kind is tuple and len(param) <= _LONGEST_INLINE and all(type(item) in _INLINE for item in param):
        return repr(param)
    return ""


def _payload(constant: Node) -> Any:
    return constant.op.kernel_on((constant.device or CPU0).backend)(*constant.params)
