"""How random programs (programs.py) are drawn. Shapes and dtypes are found by running NumPy on zeros."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by name then
import numpy as np
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from programs import (  # beside this file
    BINARY,
    BINARY_FLOAT,
    BY_KIND,
    FLOATS,
    UNARY,
    UNARY_FLOAT,
    Block,
    Instruction,
    Numpy,
    Program,
    Spec,
)

DTYPES = (
    *["float32"] * 6,
    *["float64"] * 4,
    *["int32"] * 3,
    "int8",
    "int64",
    "bool",
    "float16",
    "bfloat16",
    "complex64",
)
"""As often as they are drawn."""
REAL = ("float32", "float64", "int32")
CASTS = {
    "float32": (*FLOATS, *REAL, "bool", "complex64"),
    "complex64": ("complex64",),
    "int8": (*REAL, "int64", "bool"),
}
"""What each dtype is cast to; others to REAL. Floats not to int8, which they would overflow."""
LARGEST = 200
"""Elements of a value."""


class Drawer:
    def __init__(self, draw: Any, variables: list[Spec], effects: bool) -> None:
        self.draw = draw
        self.variables = variables
        self.effects = effects
        self.tapes = 0  # around: a py_func is run once more for second gradients, so nothing is said under a tape

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

    def block(
        self, specs: Sequence[Spec], wanted: Callable[[Spec], bool], depth: int, shows: bool = False
    ) -> Block | None:
        inside = list(specs)
        body = self.body(inside, self.draw(st.integers(1, 4)), depth - 1)
        found = [i for i, spec in enumerate(inside) if wanted(spec)]
        shown = self.one(range(len(inside))[-6:]) if shows else -1
        return Block(body, self.one(found[-6:]), shown) if found else None

    def instruction(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        kinds = ["simple"] * 12 + ["read"] * bool(self.variables)
        if self.effects:
            kinds += ["say"] * (not self.tapes) + ["random"] + ["assign"] * bool(self.variables)
        if depth:
            kinds += ["cond", "cond", "while_", "call", "call", "switch", "scan", "scan", "map_"] + ["tape"] * 3
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
        return Instruction("reshape", (i,), (specs[i].shape,)), specs[i]

    def unary(self, specs: list[Spec], i: int) -> Instruction:
        more = (*UNARY_FLOAT, "power") if specs[i].floating else ()
        ops, _ = BY_KIND.get(specs[i].kind, ((*UNARY, *more, "scaled", "shifted"), ()))
        op = self.one(ops)
        return Instruction(op, (i,), (self.one([2, -1, 3]),) if op in ("scaled", "shifted", "power") else ())

    def binary(self, specs: list[Spec], i: int) -> Instruction:
        alike = [j for j, spec in enumerate(specs) if spec.dtype == specs[i].dtype]
        more = BINARY_FLOAT if specs[i].floating else ()
        _, ops = BY_KIND.get(specs[i].kind, ((), (*BINARY, "matmul", "greater", *more)))
        masks = [j for j, spec in enumerate(specs) if spec.kind == "b"]
        op = self.one([*ops, "choose"] if masks else ops)
        mask = [self.one(masks)] if op == "choose" else []
        return Instruction(op, (*mask, i, self.one(alike)))

    def shaped(self, specs: list[Spec], i: int) -> Instruction:
        shape, rank = specs[i].shape, len(specs[i].shape)
        axis = self.one([None, *range(-rank, rank)])
        made: list[tuple[str, tuple[Any, ...]]] = [
            ("sum", (axis, self.draw(st.booleans()))),
            ("transpose", (tuple(self.draw(st.permutations(range(rank)))),)),
            ("reshape", (self.one([(-1,), shape[::-1], (1, *shape)]),)),
            ("expand", (0,)),
            ("cast", (self.one(CASTS.get(specs[i].dtype, REAL)),)),
        ]
        if specs[i].kind == "b":
            del made[0]
        if rank and 0 not in shape:
            made += [("max", (axis, False))] * (specs[i].kind not in "bc") + [("concat", (0,))]
            made += [("slice", (self.one([0, slice(1, None), slice(None, None, -1), (..., None, -1)]),))]
        op, params = self.one(made)
        return Instruction(op, (i,), params)

    def read(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        v = self.one(range(len(self.variables)))
        return Instruction("read", (), (v,)), self.variables[v]

    def assign(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        v = self.one(range(len(self.variables)))
        fits = [i for i, spec in enumerate(specs) if spec == self.variables[v]]
        how = self.one(["assign"] if self.variables[v].kind == "b" else ["assign", "assign_add", "assign_sub"])
        return (Instruction("assign", (self.one(fits),), (v, how)), self.variables[v]) if fits else None

    def say(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        i = self.one(range(len(specs)))
        return Instruction("say", (i,), (self.draw(st.integers(0, 99)),)), specs[i]

    def random(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec]:
        spec = Spec(self.one([(), (2,), (3, 1)]), self.one(["float32", "float64"]))
        return Instruction("random", (), tuple(spec)), spec

    def cond(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        like = specs[self.one(range(len(specs)))]
        blocks = [self.block(specs, lambda spec: spec == like, depth) for _ in range(2)]
        deciding = self.one([i for i, spec in enumerate(specs)])
        threshold = self.one([-1, 0, 1])
        return Instruction("cond", (deciding,), (threshold,), tuple(b for b in blocks if b)), like

    def switch(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        like = specs[self.one(range(len(specs)))]
        blocks = [self.block(specs, lambda spec: spec == like, depth) for _ in range(self.one([2, 3]))]
        return Instruction("switch", (self.one(range(len(specs))),), (), tuple(b for b in blocks if b)), like

    def scan(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        i, rows = self.one(range(len(specs))), self.rows(specs)
        if rows is None:
            return None
        inside = [*specs, specs[i], specs[rows].row()]
        block = self.block(inside, lambda spec: spec == specs[i], depth, shows=True)
        if block is None:
            return None
        made = [(which, self.draw(st.booleans())) for which in ("both", "carry", "rows")]
        return self.fitting([Instruction("scan", (i, rows), params, (block,)) for params in made], specs)

    def map_(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        rows = self.rows(specs)
        block = None if rows is None else self.block([*specs, specs[rows].row()], lambda spec: True, depth, shows=True)
        if rows is None or block is None:
            return None
        block = Block(block.body, block.shown, block.shown)
        return self.fitting([Instruction("map", (rows,), (), (block,))], specs)

    def rows(self, specs: list[Spec]) -> int | None:
        """A value to go through row by row."""
        found = [i for i, spec in enumerate(specs) if spec.shape and spec.shape[0] <= 4]
        return self.one(found) if found else None

    def fitting(self, made: list[Instruction], specs: list[Spec]) -> tuple[Instruction, Spec] | None:
        """One of those instructions that give something, and nothing too large."""
        found = [(one, after(one, specs, self.variables)) for one in made]
        fits = [(one, spec) for one, spec in found if spec is not None and np.prod(spec.shape) <= LARGEST]
        return self.one(fits) if fits else None

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
        return self.fitting([Instruction("call", given, (), (block,))], specs)

    def tape(self, specs: list[Spec], depth: int) -> tuple[Instruction, Spec] | None:
        floats = [i for i, spec in enumerate(specs) if spec.floating]
        states = [v for v, spec in enumerate(self.variables) if spec.floating]
        self.tapes += 1
        block = self.block(specs, lambda spec: spec.floating, depth)
        self.tapes -= 1
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
    except (ValueError, IndexError, TypeError):
        return None
    value = np.asarray(value)
    return Spec(value.shape, value.dtype.name)


@st.composite
def programs(draw: Any, effects: bool = True) -> Program:
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    shapes = st.lists(st.sampled_from([1, 2, 3, 0]), max_size=2).map(tuple)

    def array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        numbers = np.asarray(random.normal(size=shape))
        return (numbers * (1 if dtype in FLOATS or dtype == "complex64" else 3)).astype(dtype)

    inputs = [array(draw(st.sampled_from(DTYPES)), draw(shapes)) for _ in range(draw(st.integers(1, 3)))]
    inputs.append(array("float32", draw(shapes)))
    like = [draw(st.sampled_from(inputs)) for _ in range(draw(st.integers(0, 2)))]
    variables = [array(x.dtype.name, x.shape) for x in like]
    specs = [Spec(x.shape, x.dtype.name) for x in inputs]
    drawer = Drawer(draw, [Spec(x.shape, x.dtype.name) for x in variables], effects)
    body = drawer.body(specs, draw(st.integers(2, 8)), depth=2)
    outputs = (len(specs) - 1, *draw(st.lists(st.sampled_from(range(len(specs))), max_size=2)))
    return Program(inputs, variables, body, outputs, specs)
