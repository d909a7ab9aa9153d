"""Random programs, and how limelight and NumPy run them. How they are drawn stands in drawn.py.

A program is data: blocks of instructions over a growing list of values, with branches, loops, calls and tapes that hold
blocks of their own, which see all values around them. So one and the same program can run eagerly, staged, and as
NumPy. Effects are writes to variables, draws from a generator, and a log that a py_func writes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import limelight as ll

HALVES = ("float16", "bfloat16")
FLOATS = ("float32", "float64", *HALVES)


class Spec(NamedTuple):
    shape: tuple[int, ...]
    dtype: str

    @property
    def floating(self) -> bool:
        return self.dtype in FLOATS

    @property
    def kind(self) -> str:
        """Of its dtype, as NumPy has it; "f" for all floats."""
        return "f" if self.floating else np.dtype(self.dtype).kind

    def row(self) -> Spec:
        return Spec(self.shape[1:], self.dtype)


@dataclass(frozen=True)
class Instruction:
    """One step. `op` says what; `operands` are indices of values, `params` static parameters, `blocks` its parts."""

    op: str
    operands: tuple[int, ...] = ()
    params: tuple[Any, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Block:
    """Instructions, each of which adds one value, and the index of the value that it is for; a scan shows another."""

    body: tuple[Instruction, ...]
    result: int
    shown: int = -1


@dataclass
class Program:
    inputs: list[np.ndarray]
    variables: list[np.ndarray]
    body: tuple[Instruction, ...]
    outputs: tuple[int, ...]
    specs: list[Spec] = field(repr=False)

    def differentiable(self) -> bool:
        """Whether gradients make sense: some input and some output are floating."""
        return any(self.specs[i].floating for i in self.outputs) and any(x.dtype.name in FLOATS for x in self.inputs)

    def holds(self, *ops: str) -> bool:
        """Whether one of `ops` is anywhere in it."""
        return not ops_in(self.body).isdisjoint(ops)

    def dtypes(self) -> set[str]:
        """Of its values and variables, but for those inside of blocks."""
        return {spec.dtype for spec in self.specs} | {x.dtype.name for x in self.variables}


def ops_in(body: Sequence[Instruction]) -> set[str]:
    """The ops of instructions and of their blocks."""
    return {i.op for i in body}.union(*[ops_in(block.body) for i in body for block in i.blocks])


# What the ops mean, once for limelight and once for NumPy: every function takes the library's values and parameters


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """NumPy's sum in the operand's dtype, as limelight has it, but for the smallest integers."""
    dtype = "int32" if x.dtype == "int8" else x.dtype
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims)).astype(dtype)


def _wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function by way of float32 for dtypes that it does not know or adds up one by one."""

    def run(x: Any, *rest: Any) -> Any:
        if x.dtype.name not in HALVES:
            return f(x, *rest)
        return f(*[y.astype("float32") if isinstance(y, np.ndarray) else y for y in (x, *rest)]).astype(x.dtype)

    return run


def _total(x: Any) -> Any:
    x = ll.real(x) if x.dtype.kind == "c" else x
    return ll.sum(ll.astype(x, "float32") if x.dtype == "bool" else x)


def _numpy_total(x: Any) -> Any:
    return np.sum(x.real if x.dtype.kind == "c" else x, dtype=x.real.dtype if x.dtype != "bool" else "float32")


def _plus_total(y: Any, x: Any) -> Any:
    if y.dtype != x.dtype or y.dtype == "bool":
        raise TypeError("limelight mixes no dtypes")
    return y + _wide(_sum)(x)


def _repeated(step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Five steps with one parameter, whose gradient is a sum of as many terms."""

    def run(x: Any, w: Any) -> Any:
        for _ in range(5):
            x = step(x, w)
        return x

    return run


MEANING: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "tanh": (ll.tanh, np.tanh),
    "sin": (ll.sin, np.sin),
    "negative": (lambda x: -x, np.negative),
    "absolute": (abs, np.abs),
    "square": (ll.square, np.square),
    "root": (lambda x: ll.sqrt(abs(x) + 1), lambda x: np.sqrt(np.abs(x) + x.dtype.type(1))),
    "add": (lambda x, y: x + y, np.add),
    "subtract": (lambda x, y: x - y, np.subtract),
    "multiply": (lambda x, y: x * y, np.multiply),
    "maximum": (ll.maximum, np.maximum),
    "minimum": (ll.minimum, np.minimum),
    "scaled": (lambda x, c: x * c, lambda x, c: x * x.dtype.type(c)),
    "shifted": (lambda x, c: c - x, lambda x, c: x.dtype.type(c) - x),
    "where": (lambda x, y: ll.where(x > y, x, y * 2), lambda x, y: np.where(x > y, x, y * x.dtype.type(2))),
    "sum": (lambda x, a, k: ll.sum(x, axis=a, keepdims=k), _wide(_sum)),
    "max": (lambda x, a, k: ll.max(x, axis=a, keepdims=k), lambda x, a, k: np.max(x, axis=a, keepdims=k)),
    "matmul": (lambda x, y: x @ y, _wide(np.matmul)),
    "total": (_total, _wide(_numpy_total)),
    "plus_total": (lambda y, x: y + ll.sum(x), _plus_total),
    "greater": (lambda x, y: x > y, np.greater),
    "choose": (ll.where, np.where),
    "and": (ll.logical_and, np.logical_and),
    "or": (ll.logical_or, np.logical_or),
    "not": (ll.logical_not, np.logical_not),
    "real": (ll.real, np.real),
    "conj": (ll.conj, np.conj),
    "transpose": (ll.transpose, np.transpose),
    "reshape": (ll.reshape, np.reshape),
    "expand": (ll.expand_dims, np.expand_dims),
    "slice": (lambda x, key: x[key], lambda x, key: x[key]),
    "concat": (lambda x, a: ll.concat([x, ll.flip(x)], axis=a), lambda x, a: np.concatenate([x, np.flip(x)], a)),
    "cast": (ll.astype, lambda x, d: x.astype(d)),
    "stop": (ll.stop_gradient, lambda x: x),
    "power": (lambda x, n: ll.pow(x, float(n)), lambda x, n: np.power(x, x.dtype.type(n))),
    "quarter": (lambda x: x / 4, lambda x: x / x.dtype.type(4)),
    "same": (lambda x: (x * 1 - 0) / 1, lambda x: x.copy()),
    "unrolled": (_repeated(lambda x, w: ll.tanh(x * w + w)), _repeated(lambda x, w: np.tanh(x * w + w))),
    "network": (_repeated(lambda x, w: ll.tanh(x @ w)), _repeated(lambda x, w: np.tanh(_wide(np.matmul)(x, w)))),
}
UNARY_FLOAT = ("tanh", "sin", "root", "stop", "quarter", "same")
BINARY_FLOAT = ("unrolled", "network")
UNARY = ("negative", "absolute", "square")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "where")
BY_KIND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "b": (("not",), ("and", "or")),
    "c": (("negative", "square", "conj", "real"), ("add", "subtract", "multiply", "matmul")),
}
"""Ops of one and of two operands for the dtypes that have others than numbers in general."""


class Runner:
    """Runs programs. `staged` makes calls staged functions; NumPy has neither tapes nor functions."""

    def __init__(self, variables: Sequence[Any], column: int, staged: bool = False) -> None:
        self.variables = list(variables)
        self.column = column  # of MEANING
        self.staged = staged
        self.log: list[Any] = []

    def total(self, x: Any) -> Any:
        return MEANING["total"][self.column](x)

    def body(self, body: Sequence[Instruction], values: Sequence[Any]) -> list[Any]:
        """All values after running `body`."""
        values = list(values)
        for instruction in body:
            values.append(self.step(instruction, values))
        return values

    def block(self, block: Block, values: Sequence[Any]) -> Any:
        return self.body(block.body, values)[block.result]

    def step(self, instruction: Instruction, values: list[Any]) -> Any:
        special = getattr(self, f"run_{instruction.op}", None)
        if special is not None:
            return special(instruction, values)
        operands = [values[i] for i in instruction.operands]
        return self.meaning(instruction.op)(*operands, *instruction.params)

    def meaning(self, op: str) -> Callable[..., Any]:
        return MEANING[op][self.column]


class Numpy(Runner):
    stack = staticmethod(np.stack)

    def __init__(self, variables: Sequence[np.ndarray]) -> None:
        super().__init__(variables, 1)

    def run_read(self, instruction: Instruction, values: list[Any]) -> Any:
        return self.variables[instruction.params[0]]

    def run_assign(self, instruction: Instruction, values: list[Any]) -> Any:
        v, how = instruction.params
        x, old = values[instruction.operands[0]], self.variables[v]
        self.variables[v] = {"assign": lambda: x, "assign_add": lambda: old + x, "assign_sub": lambda: old - x}[how]()
        return self.variables[v]

    def run_cond(self, instruction: Instruction, values: list[Any]) -> Any:
        chosen = self.total(values[instruction.operands[0]]) > instruction.params[0]
        return self.block(instruction.blocks[0 if chosen else 1], values)

    def run_switch(self, instruction: Instruction, values: list[Any]) -> Any:
        total, n = self.total(values[instruction.operands[0]]), len(instruction.blocks)
        return self.block(instruction.blocks[sum(bool(total > k - 1) for k in range(n - 1))], values)

    def run_scan(self, instruction: Instruction, values: list[Any]) -> Any:
        carry, xs = (values[i] for i in instruction.operands)
        which, reverse = instruction.params
        (block,) = instruction.blocks
        rows: list[Any] = []
        for x in xs[::-1] if reverse else xs:
            inside = self.body(block.body, [*values, carry, x])
            carry = inside[block.result]
            rows.append(inside[block.shown])
        stacked = self.stack(rows[::-1] if reverse else rows) if rows else self._none(block, [*values, carry, xs])
        return scanned(self, which, carry, stacked)

    def run_map(self, instruction: Instruction, values: list[Any]) -> Any:
        xs, block = values[instruction.operands[0]], instruction.blocks[0]
        rows = [self.block(block, [*values, x]) for x in xs]
        return self.stack(rows) if rows else self._none(block, [*values, xs])

    def _none(self, block: Block, values: list[Any]) -> Any:
        """What no rows look like: the last value stands for the rows, and the block is run for its shape alone."""
        *others, xs = values
        trial = type(self)(self.variables)
        row = trial.body(block.body, [*others, np.zeros(xs.shape[1:], xs.dtype)])[block.shown]
        return np.zeros((0, *row.shape), row.dtype)

    def run_say(self, instruction: Instruction, values: list[Any]) -> Any:
        x = values[instruction.operands[0]]
        self.log += [instruction.params[0], x]
        return x

    def run_random(self, instruction: Instruction, values: list[Any]) -> Any:
        """NumPy has another stream: only the shape is right."""
        return np.zeros(*instruction.params)

    def run_while(self, instruction: Instruction, values: list[Any]) -> Any:
        value = values[instruction.operands[0]]
        for _ in range(instruction.params[0]):
            value = self.block(instruction.blocks[0], [*values, value])
        return value

    def run_call(self, instruction: Instruction, values: list[Any]) -> Any:
        return self.block(instruction.blocks[0], [*values, *[values[i] for i in instruction.operands]])


class Limelight(Runner):
    """Limelight.

    What goes into a loop or a call, and what comes out of these and of a branch, is made a tensor of its own: eagerly
    it may be one that has another name outside, in a graph it never is, and a tape tells the two apart.
    """

    def __init__(self, variables: Sequence[Any], staged: bool) -> None:
        super().__init__(variables, 0, staged)
        self.generator = ll.random.Generator(7)

    def run_read(self, instruction: Instruction, values: list[Any]) -> Any:
        return self.variables[instruction.params[0]].read_value()

    def run_assign(self, instruction: Instruction, values: list[Any]) -> Any:
        v, how = instruction.params
        return getattr(self.variables[v], how)(values[instruction.operands[0]])

    def run_cond(self, instruction: Instruction, values: list[Any]) -> Any:
        true, false = (functools.partial(self.block, block, values) for block in instruction.blocks)
        return ll.identity(ll.cond(self.total(values[instruction.operands[0]]) > instruction.params[0], true, false))

    def run_switch(self, instruction: Instruction, values: list[Any]) -> Any:
        total, n = self.total(values[instruction.operands[0]]), len(instruction.blocks)
        index = sum((ll.astype(total > k - 1, "int32") for k in range(n - 1)), ll.constant(0))
        return ll.identity(ll.switch(index, [functools.partial(self.block, b, values) for b in instruction.blocks]))

    def run_scan(self, instruction: Instruction, values: list[Any]) -> Any:
        which, reverse = instruction.params
        (block,) = instruction.blocks

        def step(carry: Any, x: Any) -> tuple[Any, Any]:
            inside = self.body(block.body, [*values, ll.identity(carry), ll.identity(x)])
            return inside[block.result], inside[block.shown]

        last, rows = ll.scan(step, *[ll.identity(values[i]) for i in instruction.operands], reverse=reverse)
        return ll.identity(scanned(self, which, last, rows))

    def run_map(self, instruction: Instruction, values: list[Any]) -> Any:
        step = lambda x: self.block(instruction.blocks[0], [*values, ll.identity(x)])  # noqa: E731
        return ll.identity(ll.map_fn(step, ll.identity(values[instruction.operands[0]])))

    def run_say(self, instruction: Instruction, values: list[Any]) -> Any:
        x = values[instruction.operands[0]]

        def say(seen: Any) -> Any:
            self.log.extend([instruction.params[0], np.array(seen)])
            return seen

        return ll.identity(ll.py_func(say, [x], [ll.TensorSpec(x.shape, x.dtype)])[0])

    def run_random(self, instruction: Instruction, values: list[Any]) -> Any:
        shape, dtype = instruction.params
        return self.generator.normal(shape, dtype=dtype)

    def run_while(self, instruction: Instruction, values: list[Any]) -> Any:
        n = instruction.params[0]
        start = ll.identity(values[instruction.operands[0]])
        step = lambda i, x: (i + 1, self.block(instruction.blocks[0], [*values, x]))  # noqa: E731
        return ll.identity(ll.while_loop(lambda i, _: i < n, step, (0, start))[1])

    def run_call(self, instruction: Instruction, values: list[Any]) -> Any:
        call = lambda *xs: self.block(instruction.blocks[0], [*values, *xs])  # noqa: E731
        given = [ll.identity(values[i]) for i in instruction.operands]
        return ll.identity((ll.function(call) if self.staged else call)(*given))

    def run_tape(self, instruction: Instruction, values: list[Any]) -> Any:
        """The gradient of a block's value with respect to a value around it, or to a variable."""
        (which, variable) = instruction.params
        source = self.variables[variable] if variable is not None else values[which]
        with ll.GradientTape() as tape:
            tape.watch(source)
            target = self.block(instruction.blocks[0], values)
        return tape.gradient(target, source, unconnected_gradients="zero")


def scanned(runner: Runner, which: str, carry: Any, rows: Any) -> Any:
    """What a scan adds to the values: its last carry, its rows, or something that both have a part in."""
    return {
        "carry": lambda: carry,
        "rows": lambda: rows,
        "both": lambda: runner.meaning("plus_total")(rows, carry),
    }[which]()
