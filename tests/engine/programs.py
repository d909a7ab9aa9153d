"""Random programs: how they are drawn, and how limelight and NumPy run them.

A program is data: blocks of instructions over a growing list of values, with branches, loops, calls and tapes that hold
blocks of their own, which see all values around them. So one and the same program can run eagerly, staged, and as
NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import limelight as ll

FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "int32")


class Spec(NamedTuple):
    shape: tuple[int, ...]
    dtype: str

    @property
    def floating(self) -> bool:
        return self.dtype in FLOATS


@dataclass(frozen=True)
class Instruction:
    """One step. `op` says what; `operands` are indices of values, `params` static parameters, `blocks` its parts."""

    op: str
    operands: tuple[int, ...] = ()
    params: tuple[Any, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Block:
    """Instructions, each of which adds one value, and the index of the value that the block is for."""

    body: tuple[Instruction, ...]
    result: int


@dataclass
class Program:
    inputs: list[np.ndarray]
    variables: list[np.ndarray]
    body: tuple[Instruction, ...]
    outputs: tuple[int, ...]
    specs: list[Spec] = field(repr=False)

    def differentiable(self) -> bool:
        """Whether gradients make sense: some input and some output are floating."""
        return any(self.specs[i].floating for i in self.outputs) and any(x.dtype.kind == "f" for x in self.inputs)

    def holds(self, op: str) -> bool:
        """Whether `op` is anywhere in it."""

        def within(body: Sequence[Instruction]) -> bool:
            return any(i.op == op or any(within(block.body) for block in i.blocks) for i in body)

        return within(self.body)


# What the ops mean, once for limelight and once for NumPy: every function takes the library's values and parameters


def _same(f: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, with the result in the operand's dtype: limelight never widens."""
    return lambda x, *rest: np.asarray(f(x, *rest)).astype(x.dtype)


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
    "sum": (lambda x, a, k: ll.sum(x, axis=a, keepdims=k), _same(lambda x, a, k: np.sum(x, axis=a, keepdims=k))),
    "max": (lambda x, a, k: ll.max(x, axis=a, keepdims=k), _same(lambda x, a, k: np.max(x, axis=a, keepdims=k))),
    "matmul": (lambda x, y: x @ y, np.matmul),
    "transpose": (ll.transpose, np.transpose),
    "reshape": (ll.reshape, np.reshape),
    "expand": (ll.expand_dims, np.expand_dims),
    "slice": (lambda x, key: x[key], lambda x, key: x[key]),
    "concat": (lambda x, a: ll.concat([x, x * 2], axis=a), lambda x, a: np.concatenate([x, x * x.dtype.type(2)], a)),
    "cast": (ll.astype, lambda x, d: x.astype(d)),
    "stop": (ll.stop_gradient, lambda x: x),
    "power": (lambda x, n: ll.pow(x, float(n)), lambda x, n: np.power(x, x.dtype.type(n))),
    "quarter": (lambda x: x / 4, lambda x: x / x.dtype.type(4)),
    "same": (lambda x: (x * 1 - 0) / 1, lambda x: x.copy()),
    "unrolled": (_repeated(lambda x, w: ll.tanh(x * w + w)), _repeated(lambda x, w: np.tanh(x * w + w))),
    "network": (_repeated(lambda x, w: ll.tanh(x @ w)), _repeated(lambda x, w: np.tanh(np.matmul(x, w)))),
}
UNARY_FLOAT = ("tanh", "sin", "root", "stop", "quarter", "same")
BINARY_FLOAT = ("unrolled", "network")
UNARY = ("negative", "absolute", "square")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "where")


class Runner:
    """Runs programs. `staged` makes calls staged functions; NumPy has neither tapes nor functions."""

    def __init__(self, variables: Sequence[Any], column: int, staged: bool = False) -> None:
        self.variables = list(variables)
        self.column = column  # of MEANING
        self.staged = staged

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
        return MEANING[instruction.op][self.column](*operands, *instruction.params)


class Numpy(Runner):
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
        chosen = np.sum(values[instruction.operands[0]]) > instruction.params[0]
        return self.block(instruction.blocks[0 if chosen else 1], values)

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

    def run_read(self, instruction: Instruction, values: list[Any]) -> Any:
        return self.variables[instruction.params[0]].read_value()

    def run_assign(self, instruction: Instruction, values: list[Any]) -> Any:
        v, how = instruction.params
        return getattr(self.variables[v], how)(values[instruction.operands[0]])

    def run_cond(self, instruction: Instruction, values: list[Any]) -> Any:
        true, false = (functools.partial(self.block, block, values) for block in instruction.blocks)
        return ll.identity(ll.cond(ll.sum(values[instruction.operands[0]]) > instruction.params[0], true, false))

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


# How programs are drawn. Shapes and dtypes are found by running NumPy on zeros


class Drawer:
    def __init__(self, draw: Any, variables: list[Spec], tapes: bool) -> None:
        self.draw = draw
        self.variables = variables
        self.tapes = tapes

    def one(self, things: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(things))

    def body(self, specs: list[Spec], size: int, depth: int) -> tuple[Instruction, ...]:
        """Instructions for values of `specs`, which grow along."""
        body = []
        for _ in range(size):
            instruction, spec = self.instruction(specs, depth)
            body.append(instruction)
            specs.append(spec)
        return tuple(body)

    def block(self, specs: Sequence[Spec], wanted: Callable[[Spec], bool], depth: int) -> Block | None:
        inside = list(specs)
        body = self.body(inside, self.draw(st.integers(1, 4)), depth - 1)
        found = [i for i, spec in enumerate(inside) if wanted(spec)]
        return Block(body, self.one(found[-6:])) if found else None

    def instruction(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        kinds = ["simple"] * 8 + ["read", "assign"] * bool(self.variables)
        if depth:
            kinds += ["cond", "while_", "call", "cond", "while_"] + ["tape"] * 3 * self.tapes
        for _ in range(4):
            made: tuple[Instruction, Spec] | None = getattr(self, self.one(kinds))(specs, depth)
            if made is not None:
                return made
        return self.simple(specs, depth)

    def simple(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        for _ in range(4):
            i = self.one(range(len(specs)))
            instruction = self.one([self.unary, self.binary, self.binary, self.shaped])(specs, i)
            spec = after(instruction, specs)
            if spec is not None and np.prod(spec.shape) <= 64:
                return instruction, spec
        return Instruction("negative", (i,)), specs[i]

    def unary(self, specs: list[Spec], i: int) -> Instruction:
        more = (*UNARY_FLOAT, "power") if specs[i].floating else ()
        op = self.one([*UNARY, *more, "scaled", "shifted"])
        return Instruction(op, (i,), (self.one([2, -1, 3]),) if op in ("scaled", "shifted", "power") else ())

    def binary(self, specs: list[Spec], i: int) -> Instruction:
        alike = [j for j, spec in enumerate(specs) if spec.dtype == specs[i].dtype]
        more = BINARY_FLOAT if specs[i].floating else ()
        return Instruction(self.one([*BINARY, "matmul", *more]), (i, self.one(alike)))

    def shaped(self, specs: list[Spec], i: int) -> Instruction:
        shape, rank = specs[i].shape, len(specs[i].shape)
        axis = self.one([None, *range(-rank, rank)])
        made: list[tuple[str, tuple[Any, ...]]] = [
            ("sum", (axis, self.draw(st.booleans()))),
            ("transpose", (tuple(self.draw(st.permutations(range(rank)))),)),
            ("reshape", (self.one([(-1,), shape[::-1], (1, *shape)]),)),
            ("expand", (0,)),
            ("cast", (self.one(DTYPES),)),
        ]
        if rank and 0 not in shape:
            made += [("max", (axis, False)), ("concat", (0,))]
            made += [("slice", (self.one([0, slice(1, None), slice(None, None, -1), (..., None, -1)]),))]
        return Instruction(made[0][0] if len(made) == 1 else (chosen := self.one(made))[0], (i,), chosen[1])

    def read(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        v = self.one(range(len(self.variables)))
        return Instruction("read", (), (v,)), self.variables[v]

    def assign(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        v = self.one(range(len(self.variables)))
        fits = [i for i, spec in enumerate(specs) if spec == self.variables[v]]
        how = self.one(["assign", "assign_add", "assign_sub"])
        return (Instruction("assign", (self.one(fits),), (v, how)), self.variables[v]) if fits else None

    def cond(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        like = specs[self.one(range(len(specs)))]
        blocks = [self.block(specs, lambda spec: spec == like, depth) for _ in range(2)]
        deciding = self.one([i for i, spec in enumerate(specs)])
        threshold = self.one([-1, 0, 1])
        return Instruction("cond", (deciding,), (threshold,), tuple(b for b in blocks if b)), like

    def while_(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        i = self.one(range(len(specs)))
        block = self.block([*specs, specs[i]], lambda spec: spec == specs[i], depth)
        n = self.draw(st.integers(0, 3))
        return (Instruction("while", (i,), (n,), (block,)), specs[i]) if block else None

    def call(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        given = tuple(self.draw(st.lists(st.sampled_from(range(len(specs))), max_size=2)))
        inside = [*specs, *[specs[i] for i in given]]
        block = self.block(inside, lambda spec: True, depth)
        if block is None:
            return None
        instruction = Instruction("call", given, (), (block,))
        spec = after(instruction, specs, self.variables)
        return None if spec is None else (instruction, spec)

    def tape(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        floats = [i for i, spec in enumerate(specs) if spec.floating]
        states = [v for v, spec in enumerate(self.variables) if spec.floating]
        block = self.block(specs, lambda spec: spec.floating, depth)
        if block is None or not floats:
            return None
        if states and self.draw(st.booleans()):
            v = self.one(states)
            return Instruction("tape", (), (None, v), (block,)), self.variables[v]
        i = self.one(floats)
        return Instruction("tape", (), (i, None), (block,)), specs[i]


class _Shapes(Numpy):
    """NumPy, with gradients that have the right shape and nothing else."""

    def run_tape(self, instruction: Instruction, values: list[Any]) -> Any:
        which, variable = instruction.params
        return self.variables[variable] if variable is not None else values[which]


def after(instruction: Instruction, specs: Sequence[Spec], variables: Sequence[Spec] = ()) -> Spec | None:
    """The spec of what an instruction adds, None if it does not fit its operands."""
    try:
        with np.errstate(all="ignore"):
            zeros = [np.zeros(spec.shape, spec.dtype) for spec in variables]
            value = _Shapes(zeros).step(instruction, [np.zeros(spec.shape, spec.dtype) for spec in specs])
    except (ValueError, IndexError):
        return None
    value = np.asarray(value)
    return Spec(value.shape, value.dtype.name)


@st.composite
def programs(draw: Any, tapes: bool = True) -> Program:
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    shapes = st.lists(st.sampled_from([1, 2, 3, 0]), max_size=2).map(tuple)

    def array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(random.normal(size=shape) * (3 if dtype == "int32" else 1)).astype(dtype)

    inputs = [array(draw(st.sampled_from(DTYPES)), draw(shapes)) for _ in range(draw(st.integers(1, 3)))]
    inputs.append(array("float32", draw(shapes)))
    like = [draw(st.sampled_from(inputs)) for _ in range(draw(st.integers(0, 2)))]
    variables = [array(x.dtype.name, x.shape) for x in like]
    specs = [Spec(x.shape, x.dtype.name) for x in inputs]
    drawer = Drawer(draw, [Spec(x.shape, x.dtype.name) for x in variables], tapes)
    body = drawer.body(specs, draw(st.integers(2, 8)), depth=2)
    outputs = (len(specs) - 1, *draw(st.lists(st.sampled_from(range(len(specs))), max_size=2)))
    return Program(inputs, variables, body, outputs, specs)
