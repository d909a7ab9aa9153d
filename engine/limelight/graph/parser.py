"""The inverse of `limelight.graph.printer.show`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from limelight.core import devices
from limelight.core.op import Op, get
from limelight.errors import GraphError, LimelightError
from limelight.graph.ir import Graph, Node, Value
from limelight.graph.lexer import Lexer
from limelight.user_code.source_line import Source

Runner = Callable[[Graph], Callable[..., tuple[Any, ...]]]

_VALUE: Final = re.compile(r"%\d+")
_LABEL: Final = re.compile(r"!\d+")
_DEVICE: Final = re.compile(r"@[\w:/]+")
_POSITION: Final = re.compile(r"#(?: (?!in )(?P<file>.+?):(?P<line>\d+))?(?: +in (?P<scope>.*))?$")


class ParsedFunction:
    """A function that a parsed graph calls; `run` needs a runner, such as `build` of an executor."""

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
    blocks = _split_graphs(text)
    functions = {name: ParsedFunction(name, runner) for name, _ in blocks}
    if len(functions) < len(blocks):
        raise GraphError(f"two graphs have the same name; names: {', '.join(name for name, _ in blocks)}")
    for name, lines in blocks:
        functions[name].graph = _GraphParser(name, functions).read(lines)
    return functions[blocks[0][0]].graph


def _split_graphs(text: str) -> list[tuple[str, list[tuple[int, str]]]]:
    """The graphs in the text: name and numbered lines of each."""
    blocks: list[tuple[str, list[tuple[int, str]]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("graph "):
            with _at(number, line):
                blocks.append((Lexer(line.removeprefix("graph "), _no_function).name(), []))
        elif line.strip():
            if not blocks:
                raise GraphError(f"line {number}: text of a graph begins with 'graph NAME', got {line.strip()!r}")
            blocks[-1][1].append((number, line))
    if not blocks:
        raise GraphError("no graph in this text: it begins with 'graph NAME'")
    return blocks


@contextmanager
def _at(number: int, line: str) -> Iterator[None]:
    """Has errors in reading a line name it; those of Python come from numbers and strings that are none."""
    try:
        yield
    except (LimelightError, ValueError, TypeError, OverflowError) as error:
        what = error.bare if isinstance(error, LimelightError) else error
        raise GraphError(f"line {number}: {what}\n  {line.strip()}") from error


def _no_function(name: str) -> Any:
    raise GraphError(f"no function @{name} here")


class _GraphParser:
    """Reads one graph."""

    def __init__(self, name: str, functions: dict[str, ParsedFunction]) -> None:
        self._name = name
        self._functions = functions
        self._values: dict[str, Value] = {}
        self._labels: dict[str, Node] = {}
        self._inputs: list[Value] = []
        self._names: list[str] = []
        self._n_captures = 0
        self._nodes: list[Node] = []
        self._outputs: list[Value] | None = None

    def read(self, lines: list[tuple[int, str]]) -> Graph:
        for number, line in lines:
            with _at(number, line):
                self._line(Lexer(line, self._function))
        if self._outputs is None:
            raise GraphError(f"graph {self._name} has no 'return' line")
        return Graph(
            self._name,
            self._inputs,
            self._nodes,
            self._outputs,
            input_names=self._names,
            n_captures=self._n_captures,
        )

    def _line(self, lexer: Lexer) -> None:
        if self._outputs is not None:
            raise GraphError("nothing may follow 'return'")
        if lexer.take("input "):
            self._input(lexer)
        elif lexer.take("capture "):
            self._input(lexer)
            self._n_captures += 1
        elif lexer.take("return"):
            self._outputs = list(self._operands(lexer))
        else:
            self._node(lexer)

    def _input(self, lexer: Lexer) -> None:
        if self._nodes:
            raise GraphError("inputs stand before the nodes")
        [(name, spec)] = self._targets(lexer, 1)
        value = Value(spec)
        self._inputs.append(value)
        self._define(name, value)
        self._names.append(lexer.name())

    def _node(self, lexer: Lexer) -> None:
        label = lexer.match(_LABEL)
        targets = self._targets(lexer) if lexer.peek("%") else []
        if targets:
            lexer.expect("=")
        op = get(lexer.name())
        lexer.expect("(")
        inputs = tuple(lexer.listed(lambda: self._operand(lexer), ")"))
        params = self._params(lexer, op)
        device = lexer.match(_DEVICE)
        after = tuple(self._after(lexer))
        stack, scope = self._position(lexer)
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

    def _targets(self, lexer: Lexer, limit: int | None = None) -> list[tuple[str, Any]]:
        targets: list[tuple[str, Any]] = []
        while True:
            name = lexer.match(_VALUE)
            if name is None:
                raise GraphError(f"expected a value such as %3 at {lexer.rest()!r}")
            lexer.expect(":")
            targets.append((name, lexer.spec()))
            if len(targets) == limit or not lexer.take(","):
                return targets

    def _define(self, name: str, value: Value) -> None:
        if name in self._values:
            raise GraphError(f"{name} is defined twice")
        self._values[name] = value

    def _operand(self, lexer: Lexer) -> Value:
        name = lexer.match(_VALUE)
        if name not in self._values:
            raise GraphError(f"{name or lexer.rest()!r} is used before it is defined")
        return self._values[name]

    def _operands(self, lexer: Lexer) -> Iterator[Value]:
        while not lexer.done():
            yield self._operand(lexer)
            if not lexer.take(","):
                break
        if not lexer.done():
            raise GraphError(f"unexpected {lexer.rest()!r}")

    def _params(self, lexer: Lexer, op: Op) -> tuple[Any, ...]:
        values: dict[str, Any] = {}
        if lexer.take("{"):
            while not lexer.take("}"):
                name = lexer.name()
                lexer.expect("=")
                values[name] = lexer.value()
                if not lexer.take(",") and not lexer.peek("}"):
                    raise GraphError(f"expected ',' or '}}' at {lexer.rest()!r}")
        if set(values) != set(op.attrs):
            raise GraphError(f"op {op.name} has the parameters {list(op.attrs)}, the text gives {list(values)}")
        return tuple(values[name] for name in op.attrs)

    def _after(self, lexer: Lexer) -> Iterator[Node]:
        if not lexer.take("after "):
            return
        while True:
            label = lexer.match(_LABEL)
            if label not in self._labels:
                raise GraphError(f"no earlier node has the label {label}")
            yield self._labels[label]
            if not lexer.take(","):
                return

    def _position(self, lexer: Lexer) -> tuple[tuple[Source, ...], str]:
        lexer.skip()
        if lexer.done():
            return (), ""
        match = _POSITION.match(lexer.rest())
        if match is None:
            raise GraphError(f"unexpected {lexer.rest()!r}")
        stack = (Source(match["file"], int(match["line"]), ""),) if match["file"] else ()
        return stack, match["scope"] or ""

    def _function(self, name: str) -> ParsedFunction:
        if name not in self._functions:
            raise GraphError(f"no graph called {json.dumps(name)} in this text")
        return self._functions[name]
