"""The inverse of `limelight.graph.printer.show`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from limelight.core import devices
from limelight.core.op import Op, get
from limelight.errors import GraphError, LimelightError
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.lexer import Scanner
from limelight.user_code.source_line import Source

Runner = Callable[[Graph], Callable[..., tuple[Any, ...]]]

_VALUE: Final = re.compile(r"%\d+")
_LABEL: Final = re.compile(r"!\d+")
_DEVICE: Final = re.compile(r"@[\w:/]+")
_WHERE: Final = re.compile(r"#(?: (?!in )(?P<file>.+?):(?P<line>\d+))?(?: +in (?P<scope>.*))?$")


class ParsedFunction:
    """A function that a parsed graph calls; `run` needs a runner, such as `limelight.executors.plan.plan.build`."""

    def __init__(self, name: str, runner: Runner | None) -> None:
        self.name = name
        self.graph: Graph
        self._runner = runner
        self._run: Callable[..., tuple[Any, ...]] | None = None

    def run(self, *payloads: Any) -> tuple[Any, ...]:
        if self._runner is None:
            raise GraphError(
                f"function {self.name} was read from text: give parse(text, runner=...) something to run it"
            )
        if self._run is None:
            self._run = self._runner(self.graph)
        return self._run(*payloads)


def parse(text: str, *, runner: Runner | None = None) -> Graph:
    """The graph that `text` shows: the first one, the others are functions that it calls.

    `runner` makes a called function's graph runnable. Raises GraphError that names the line for text that does not
    follow the grammar, that left out a literal, or that stands for a Python object.
    """
    blocks = _blocks(text)
    functions = {name: ParsedFunction(name, runner) for name, _ in blocks}
    if len(functions) < len(blocks):
        raise GraphError(f"two graphs have the same name; names: {', '.join(name for name, _ in blocks)}")
    for name, lines in blocks:
        functions[name].graph = _Reader(name, functions).read(lines)
    return functions[blocks[0][0]].graph


def _blocks(text: str) -> list[tuple[str, list[tuple[int, str]]]]:
    """The graphs in the text: name and numbered lines of each."""
    blocks: list[tuple[str, list[tuple[int, str]]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("graph "):
            blocks.append((Scanner(line.removeprefix("graph "), _nowhere).name(), []))
        elif line.strip():
            if not blocks:
                raise GraphError(f"line {number}: text of a graph begins with 'graph NAME', got {line.strip()!r}")
            blocks[-1][1].append((number, line))
    if not blocks:
        raise GraphError("no graph in this text: it begins with 'graph NAME'")
    return blocks


def _nowhere(name: str) -> Any:
    raise GraphError(f"no function @{name} here")


class _Reader:
    """Reads one graph."""

    def __init__(self, name: str, functions: dict[str, ParsedFunction]) -> None:
        self._name = name
        self._functions = functions
        self._values: dict[str, Value] = {}
        self._labels: dict[str, Node] = {}
        self._inputs: list[Value] = []
        self._names: list[str] = []
        self._captures = 0
        self._nodes: list[Node] = []
        self._outputs: list[Value] | None = None

    def read(self, lines: list[tuple[int, str]]) -> Graph:
        for number, line in lines:
            try:
                self._line(Scanner(line, self._function))
            except (LimelightError, ValueError, TypeError) as error:
                what = error.bare if isinstance(error, LimelightError) else error
                raise GraphError(f"line {number}: {what}\n  {line.strip()}") from error
        if self._outputs is None:
            raise GraphError(f"graph {self._name} has no 'return' line")
        return Graph(
            self._name,
            self._inputs,
            self._nodes,
            self._outputs,
            input_names=self._names,
            n_captures=self._captures,
        )

    def _line(self, scanner: Scanner) -> None:
        if self._outputs is not None:
            raise GraphError("nothing may follow 'return'")
        if scanner.take("input "):
            self._input(scanner)
        elif scanner.take("capture "):
            self._input(scanner)
            self._captures += 1
        elif scanner.take("return"):
            self._outputs = list(self._operands(scanner))
        else:
            self._node(scanner)

    def _input(self, scanner: Scanner) -> None:
        if self._nodes:
            raise GraphError("inputs stand before the nodes")
        [(name, spec)] = self._targets(scanner, 1)
        value = Value(spec)
        self._inputs.append(value)
        self._define(name, value)
        self._names.append(scanner.name())

    def _node(self, scanner: Scanner) -> None:
        label = scanner.match(_LABEL)
        targets = self._targets(scanner) if scanner.peek("%") else []
        if targets:
            scanner.expect("=")
        op = get(scanner.name())
        scanner.expect("(")
        inputs = tuple(scanner.listed(lambda: self._operand(scanner), ")"))
        params = self._params(scanner, op)
        device = scanner.match(_DEVICE)
        after = tuple(self._after(scanner))
        stack, scope = self._where(scanner)
        node = Node(
            op,
            inputs,
            params,
            [spec for _, spec in targets],
            device=devices.find(device[1:]) if device else None,
            stack=stack,
            scope=scope,
            after=after,
        )
        for (name, _), value in zip(targets, node.outputs, strict=True):
            self._define(name, value)
        if label is not None:
            self._labels[label] = node
        self._nodes.append(node)

    def _targets(self, scanner: Scanner, limit: int | None = None) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        while True:
            name = scanner.match(_VALUE)
            if name is None:
                raise GraphError(f"expected a value such as %3 at {scanner.rest()!r}")
            scanner.expect(":")
            found.append((name, scanner.spec()))
            if len(found) == limit or not scanner.take(","):
                return found

    def _define(self, name: str, value: Value) -> None:
        if name in self._values:
            raise GraphError(f"{name} is defined twice")
        self._values[name] = value

    def _operand(self, scanner: Scanner) -> Value:
        name = scanner.match(_VALUE)
        if name not in self._values:
            raise GraphError(f"{name or scanner.rest()!r} is used before it is defined")
        return self._values[name]

    def _operands(self, scanner: Scanner) -> Iterator[Value]:
        while not scanner.done():
            yield self._operand(scanner)
            if not scanner.take(","):
                break
        if not scanner.done():
            raise GraphError(f"unexpected {scanner.rest()!r}")

    def _params(self, scanner: Scanner, op: Op) -> tuple[Any, ...]:
        given: dict[str, Any] = {}
        if scanner.take("{"):
            while not scanner.take("}"):
                name = scanner.name()
                scanner.expect("=")
                given[name] = scanner.value()
                if not scanner.take(",") and not scanner.peek("}"):
                    raise GraphError(f"expected ',' or '}}' at {scanner.rest()!r}")
        if set(given) != set(op.attrs):
            raise GraphError(f"op {op.name} has the parameters {list(op.attrs)}, the text gives {list(given)}")
        return tuple(given[name] for name in op.attrs)

    def _after(self, scanner: Scanner) -> Iterator[Node]:
        if not scanner.take("after "):
            return
        while True:
            label = scanner.match(_LABEL)
            if label not in self._labels:
                raise GraphError(f"no earlier node has the label {label}")
            yield self._labels[label]
            if not scanner.take(","):
                return

    def _where(self, scanner: Scanner) -> tuple[tuple[Source, ...], str]:
        scanner.skip()
        if scanner.done():
            return (), ""
        found = _WHERE.match(scanner.rest())
        if found is None:
            raise GraphError(f"unexpected {scanner.rest()!r}")
        stack = (Source(found["file"], int(found["line"]), ""),) if found["file"] else ()
        return stack, found["scope"] or ""

    def _function(self, name: str) -> ParsedFunction:
        if name not in self._functions:
            raise GraphError(f"no graph called {json.dumps(name)} in this text")
        return self._functions[name]
