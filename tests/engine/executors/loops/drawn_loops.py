"""Random programs of control flow, as Python text: branches, loops, calls and gradients in one another, with state.

A program is a function of tensors. What it is drawn from: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`,
`map_fn`, functions, gradients, tangents and `vectorize`, nested; assignments to variables, draws, views, gathers;
NaN and infinity come about. Sizes "N" and "M" may differ from call to call.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

Sizes: TypeAlias = tuple[int | str, ...]

MOST_AXES = 3
VARIABLES = {"v0": ((3, 2), "f4"), "v1": ((2,), "f4"), "v2": ((), "f8"), "v3": ((2, 3), "f4")}
"""Shapes and dtypes; v3 lies in Fortran order."""
INPUTS = {
    "x0": (("N", "M"), "f4"),
    "x1": ((3, 2), "f4"),
    "x2": (("N",), "f8"),
    "x3": ((2, 3), "f4"),
    "x4": ((2, "N", 2), "f4"),
    "n": ((), "i4"),
    "k": ((2,), "i4"),
}
DTYPES = {"f4": "ll.float32", "f8": "ll.float64", "i4": "ll.int32", "?": "ll.bool"}
UNARY = (
    "ll.tanh({})",
    "ll.sin({})",
    "-{}",
    "{} * 0.5",
    "{} + 1.0",
    "ll.sigmoid({})",
    "ll.nn.relu({})",
    "ll.exp(ll.tanh({}))",
)
UNARY += (
    "ll.abs({})",
    "{} * {}",
    "ll.sqrt({})",
    "1.0 / {}",
    "ll.square({})",
    "ll.stop_gradient({})",
    "ll.zeros_like({})",
)
BINARY = (
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "ll.maximum({}, {})",
    "ll.minimum({}, {})",
    "{} / (1.0 + {})",
    "ll.hypot({}, {})",
)
OF_INTEGERS = ("{} + 1", "-{}", "{} * 2 % 5", "ll.abs({})")
TWO_INTEGERS = ("{} + {}", "{} - {}", "ll.maximum({}, {})", "ll.minimum({}, {})")
COMPARISONS = ("{} > {}", "{} <= {}")
REDUCTIONS = ("ll.sum", "ll.mean", "ll.max", "ll.min", "ll.prod")


class Value(NamedTuple):
    """A name, and what it is bound to."""

    name: str
    shape: Sizes
    dtype: str

    @property
    def type(self) -> tuple[Sizes, str]:
        return self.shape, self.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype in ("f4", "f8")


Scope: TypeAlias = list[Value]


def joined(x: Sizes, y: Sizes) -> Sizes | None:
    """The shape that both are broadcast to; None where that is not known to be possible."""
    pairs = list(zip_longest(reversed(x), reversed(y), fillvalue=1))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        return None
    return tuple([b if a == 1 else a for a, b in pairs])[::-1]


class Writer:
    """Writes one program.

    Args:
        seed: what it is drawn from.
        state: whether it may assign and draw.
    """

    def __init__(self, seed: int, state: bool = True) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self._indent = 1
        self._names = 0
        self._state = state
        self.used: set[str] = set()

    def program(self) -> str:
        """The text of `program`, which returns a list."""
        self.line(f"def program({', '.join(INPUTS)}):", -1)
        scope = [Value(name, *kind) for name, kind in INPUTS.items()]
        size = self.random.randint(3, 7)
        self.block(scope, size, depth=3)
        results = scope[len(INPUTS) :][-8:]
        self.line(f"return [{', '.join(x.name for x in results)}]")
        return "\n".join(self.lines) + "\n"

    # Text

    def line(self, text: str, indent: int = 0) -> None:
        self.lines.append("    " * (self._indent + indent) + text)

    def new(self, prefix: str = "a") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def one(self, things: Sequence[Any]) -> Any:
        return self.random.choice(things)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def function(self, parameters: Sequence[str], body: Callable[[], str], decorator: str = "") -> str:
        """Writes a function whose result is what `body` returns, which writes its lines; returns its name."""
        name = self.new("f")
        if decorator:
            self.line(f"@{decorator}")
        self.line(f"def {name}({', '.join(parameters)}):")
        self._indent += 1
        self.line(f"return {body()}")
        self._indent -= 1
        return name

    def bind(self, scope: Scope, text: str, shape: Sizes, dtype: str) -> Value:
        value = Value(self.new(), shape, dtype)
        self.line(f"{value.name} = {text}")
        scope.append(value)
        return value

    # Choosing

    def pick(self, scope: Scope, wanted: Callable[[Value], bool] = lambda x: True) -> Value | None:
        """A value, those that were made last more often."""
        fitting = [x for x in scope if wanted(x)]
        if not fitting:
            return None
        return self.one(fitting[-5:]) if self.chance(0.6) else self.one(fitting)

    def floating(self, scope: Scope) -> Value:
        found = self.pick(scope, lambda x: x.is_float)
        assert found is not None
        return found

    def like(self, scope: Scope, kind: tuple[Sizes, str]) -> str:
        """A value of a type, as text; bounded, since it may be carried through many steps."""
        fitting = [x for x in scope if x.type == kind]
        x = self.one(fitting[-3:])
        return f"ll.tanh({x.name})" if x.is_float and self.chance(0.5) else x.name

    def truth(self, scope: Scope) -> str:
        """A boolean scalar."""
        x = self.pick(scope)
        assert x is not None
        if x.dtype == "?":
            return f"ll.any({x.name})"
        if x.dtype == "i4":
            return f"ll.sum({x.name}) % 2 {self.one(['==', '!='])} 0"
        return f"ll.{self.one(['sum', 'max', 'mean'])}({x.name}) {self.one(['>', '<'])} {self.one([0.0, 0.3, -0.5])}"

    def index(self, scope: Scope, n: int) -> str:
        """An integer scalar of 0 to n - 1."""
        x = self.pick(scope, lambda x: x.dtype == "i4")
        assert x is not None
        number = x.name if x.shape == () else f"ll.max({x.name})"
        return f"ll.clip({number}, 0, {n - 1})"

    # Statements

    def block(self, scope: Scope, size: int, depth: int) -> None:
        """Writes statements, whose values are added to `scope`."""
        for _ in range(size):
            kinds = [self.simple] * 4 + [self.shaped] * 3 + [self.of_integers]
            if self._state:
                kinds += [self.stateful] * 2
            if depth:
                kinds += [
                    self.cond,
                    self.switch,
                    self.while_loop,
                    self.scan,
                    self.scan,
                    self.call,
                    self.nested_gradient,
                ]
                kinds += [self.fori_loop, self.map_fn, self.vectorized]
            kind = self.one(kinds)
            self.used.add(kind.__name__)
            kind(scope, depth - 1)

    def body(self, scope: Scope, depth: int, most: int = 3) -> Scope:
        """Writes statements in a scope of their own, which it returns."""
        inside = list(scope)
        self.block(inside, self.random.randint(1, most), depth)
        return inside

    def simple(self, scope: Scope, depth: int) -> None:
        x = self.floating(scope)
        y = self.pick(scope, lambda y: y.dtype == x.dtype and joined(x.shape, y.shape) is not None)
        assert y is not None
        shape = joined(x.shape, y.shape)
        assert shape is not None
        way = self.random.randrange(6)
        if way < 2:
            self.bind(scope, self.one(UNARY).replace("{}", x.name), *x.type)
        elif way < 4:
            self.bind(scope, self.one(BINARY).format(x.name, y.name), shape, x.dtype)
        elif way == 4:
            condition = self.bind(scope, self.one(COMPARISONS).format(x.name, y.name), shape, "?")
            self.bind(scope, f"ll.where({condition.name}, {x.name}, {y.name})", shape, x.dtype)
        else:
            dtype = "f8" if x.dtype == "f4" else "f4"
            self.bind(scope, f"ll.astype({x.name}, {DTYPES[dtype]})", x.shape, dtype)

    def of_integers(self, scope: Scope, depth: int) -> None:
        x = self.pick(scope, lambda x: x.dtype == "i4")
        assert x is not None
        y = self.pick(scope, lambda y: y.dtype == "i4" and joined(x.shape, y.shape) is not None)
        assert y is not None
        if self.chance(0.3):
            source = self.floating(scope)
            self.bind(scope, f"ll.astype({source.name} > 0.0, ll.int32)", source.shape, "i4")
        elif self.chance(0.3):
            self.bind(scope, f"ll.astype({x.name}, ll.float32)", x.shape, "f4")
        elif self.chance(0.5):
            self.bind(scope, self.one(OF_INTEGERS).format(x.name), *x.type)
        else:
            self.bind(scope, self.one(TWO_INTEGERS).format(x.name, y.name), joined(x.shape, y.shape) or (), "i4")

    def shaped(self, scope: Scope, depth: int) -> None:
        ways = [
            self.transposed,
            self.reduced,
            self.product,
            self.indexed,
            self.combined,
            self.along_axis,
            self.gathered,
        ]
        self.one(ways)(scope, self.floating(scope))

    def transposed(self, scope: Scope, x: Value) -> None:
        axes = list(range(len(x.shape)))
        self.random.shuffle(axes)
        if self.chance(0.3) and len(axes) < MOST_AXES:
            self.bind(scope, f"ll.expand_dims({x.name}, 0)", (1, *x.shape), x.dtype)
        else:
            self.bind(scope, f"ll.permute_dims({x.name}, {tuple(axes)})", tuple([x.shape[i] for i in axes]), x.dtype)

    def reduced(self, scope: Scope, x: Value) -> None:
        axis = self.one([None, *range(len(x.shape))])
        keep = self.chance(0.3)
        shape = tuple([1 if axis in (None, i) else n for i, n in enumerate(x.shape) if keep or axis not in (None, i)])
        of = f"ll.tanh({x.name})" if self.chance(0.5) else x.name
        self.bind(scope, f"{self.one(REDUCTIONS)}({of}, axis={axis}, keepdims={keep})", shape, x.dtype)

    def product(self, scope: Scope, x: Value) -> None:
        fitting = [y for y in scope if y.dtype == x.dtype and len(y.shape) == 2 and len(x.shape) == 2]
        fitting = [y for y in fitting if y.shape[0] == x.shape[1]]
        if fitting:
            y = self.one(fitting)
            self.bind(scope, f"{x.name} @ {y.name}", (x.shape[0], y.shape[1]), x.dtype)
        elif len(x.shape) == 2:
            self.bind(scope, f"{x.name} @ ll.transpose({x.name})", (x.shape[0], x.shape[0]), x.dtype)
        else:
            self.along_axis(scope, x)

    def indexed(self, scope: Scope, x: Value) -> None:
        if not x.shape:
            return self.transposed(scope, x)
        first, *rest = x.shape
        ways: list[tuple[str, Sizes]] = [("[::-1]", x.shape), ("[0]", tuple(rest)), ("[-1]", tuple(rest))]
        ways += [("[..., None]", (*x.shape, 1))] * (len(x.shape) < MOST_AXES) + [("[..., 0]", x.shape[:-1])]
        ways += [("[..., ::-1]", x.shape)]
        if isinstance(first, int) and first > 1:
            ways += [("[1:]", (first - 1, *rest)), ("[::2]", ((first + 1) // 2, *rest)), ("[:-1]", (first - 1, *rest))]
        index, shape = self.one(ways)
        self.bind(scope, f"{x.name}{index}", shape, x.dtype)
        return None

    def combined(self, scope: Scope, x: Value) -> None:
        y = self.pick(scope, lambda y: y.type == x.type)
        assert y is not None
        if len(x.shape) < MOST_AXES and self.chance(0.5):
            axis = self.random.randint(0, len(x.shape))
            shape = (*x.shape[:axis], 2, *x.shape[axis:])
            self.bind(scope, f"ll.stack([{x.name}, {y.name}], axis={axis})", shape, x.dtype)
        elif x.shape and isinstance(x.shape[-1], int) and x.shape[-1] <= 4:
            shape = (*x.shape[:-1], 2 * x.shape[-1])
            self.bind(scope, f"ll.concat([{x.name}, {y.name}], axis=-1)", shape, x.dtype)
        elif x.shape and isinstance(x.shape[0], int) and all(isinstance(n, int) for n in x.shape):
            self.bind(scope, f"ll.reshape({x.name}, {x.shape[::-1]})", x.shape[::-1], x.dtype)

    def along_axis(self, scope: Scope, x: Value) -> None:
        if x.shape:
            axis = self.random.randrange(len(x.shape))
            op = self.one(["ll.nn.softmax", "ll.cumsum", "ll.sort", "ll.nn.log_softmax"])
            self.bind(scope, f"{op}({x.name}, axis={axis})", *x.type)

    def gathered(self, scope: Scope, x: Value) -> None:
        if not x.shape or x.shape[0] == 1:
            return
        picks = [y for y in scope if y.dtype == "i4" and len(y.shape) == 1]
        if self.chance(0.3) or len(x.shape) + 1 > MOST_AXES:
            self.bind(scope, f"{x.name}[{self.index(scope, 2)}]", x.shape[1:], x.dtype)
        elif picks:
            y = self.one(picks)
            places = f"ll.clip({y.name}, {self.one(['0', '-2'])}, 1)"
            self.bind(scope, f"ll.take({x.name}, {places}, axis=0)", (*y.shape, *x.shape[1:]), x.dtype)
        if self.chance(0.3):
            self.bind(scope, f"ll.astype(ll.argmax({x.name}, axis=0), ll.int32)", x.shape[1:], "i4")

    # State

    def stateful(self, scope: Scope, depth: int) -> None:
        self.one([self.read, self.assign, self.assign, self.part, self.draw, self.draw])(scope)

    def read(self, scope: Scope) -> None:
        name = self.one(list(VARIABLES))
        self.bind(scope, f"{name}.read_value() * 1.5" if self.chance(0.5) else f"ll.tanh({name})", *VARIABLES[name])

    def assign(self, scope: Scope) -> None:
        name = self.one(list(VARIABLES))
        shape, dtype = VARIABLES[name]
        fitting = [x for x in scope if x.type == (shape, dtype)]
        value = f"ll.tanh({self.one(fitting[-3:]).name})" if fitting else f"{name} * 0.5"
        self.line(f"{name}.{self.one(['assign', 'assign_add', 'assign_sub'])}({value})")

    def part(self, scope: Scope) -> None:
        name = self.one(["v0", "v3"])
        n, m = VARIABLES[name][0]
        rows = [x for x in scope if x.type == ((m,), "f4")]
        row = f"ll.tanh({self.one(rows[-3:]).name})" if rows else f"{name}[0] * 0.5"
        way = self.random.randrange(3)
        if way == 0:
            place, how = self.one(["0", "1:", "-1", "::2"]), self.one(["assign", "assign_add", "assign_sub"])
            self.line(f"{name}.at[{place}].{how}({row})")
        elif way == 1:
            self.line(f"{name}.scatter_add(ll.clip(k, 0, {n - 1}), ll.stack([{row}, {row}]))")
        else:
            self.line(f"{name}.scatter_update(ll.constant([{self.random.randrange(n)}]), ({row})[None])")

    def draw(self, scope: Scope) -> None:
        g = self.one(["g0", "g1", "ll.random"])
        shape = self.one([(3, 2), (2,), (), (2, 3)])
        x = self.pick(scope, lambda x: x.dtype == "f4" and all(isinstance(n, int) for n in x.shape))
        ways = [f"{g}.normal({shape})", f"{g}.uniform({shape}, -1.0, 1.0)", f"{g}.exponential({shape})"]
        ways += [f"{g}.normal({shape}, 0.5, 2.0)", f"ll.astype({g}.integers(0, 4, {shape}), ll.float32)"]
        if x is not None and self.chance(0.4):
            of = [f"{x.name} * {g}.dropout_mask({x.name}, 0.4)"]
            of += [f"ll.astype({g}.bernoulli(ll.sigmoid({x.name})), ll.float32)"] * bool(x.shape)
            self.bind(scope, self.one(of), *x.type)
        else:
            self.bind(scope, self.one(ways), shape, "f4")

    # Control flow

    def kinds(
        self, scope: Scope, most: int, wanted: Callable[[Value], bool] = lambda x: True
    ) -> list[tuple[Sizes, str]]:
        """The types of some values."""
        fitting = [x.type for x in scope if wanted(x)]
        return [self.one(fitting[-6:]) for _ in range(self.random.randint(1, most))]

    def results(self, scope: Scope, kinds: Sequence[tuple[Sizes, str]]) -> str:
        return f"({', '.join(self.like(scope, kind) for kind in kinds)},)"

    def unpack(self, scope: Scope, text: str, kinds: Sequence[tuple[Sizes, str]]) -> None:
        values = [Value(self.new(), *kind) for kind in kinds]
        self.line(f"({', '.join(x.name for x in values)},) = {text}")
        scope += values

    def branch(self, scope: Scope, depth: int, kinds: Sequence[tuple[Sizes, str]]) -> str:
        return self.function([], lambda: self.results(self.body(scope, depth), kinds))

    def cond(self, scope: Scope, depth: int) -> None:
        kinds = self.kinds(scope, 2)
        condition = self.truth(scope)
        one, other = (self.branch(scope, depth, kinds) for _ in range(2))
        self.unpack(scope, f"ll.cond({condition}, {one}, {other})", kinds)

    def switch(self, scope: Scope, depth: int) -> None:
        kinds = self.kinds(scope, 2)
        n = self.one([2, 3])
        number = self.index(scope, n)
        branches = [self.branch(scope, depth, kinds) for _ in range(n)]
        self.unpack(scope, f"ll.switch({number}, [{', '.join(branches)}])", kinds)

    def while_loop(self, scope: Scope, depth: int) -> None:
        kinds = self.kinds(scope, 2)
        first = self.results(scope, kinds)
        carried = [Value(self.new("c"), *kind) for kind in kinds]
        i = Value(self.new("i"), (), "i4")
        parameters = [i.name, *[x.name for x in carried]]
        limit = self.one(["n", "3", "5", "20", "n * 4"])
        conditions = [f"{i.name} < {limit}", f"{i.name} <= {limit}"]
        conditions += [f"({i.name} < {limit}) & (ll.sum({carried[0].name}) < 2.0)"] * carried[0].is_float
        check = self.function(parameters, lambda: self.one(conditions))
        inner = [*scope, i, *carried]
        step = self.function(parameters, lambda: f"({i.name} + 1, *{self.results(self.body(inner, depth), kinds)})")
        more = self.one(["", "", ", maximum_iterations=4", ", maximum_iterations=ll.maximum(n, 0)"])
        kinds = [((), "i4"), *kinds]
        self.unpack(scope, f"ll.while_loop({check}, {step}, (ll.constant(0), *{first}){more})", kinds)

    def fori_loop(self, scope: Scope, depth: int) -> None:
        (kind,) = self.kinds(scope, 1)
        first = self.like(scope, kind)
        carried = Value(self.new("c"), *kind)
        i = Value(self.new("i"), (), "i4")
        inner = [*scope, i, carried]
        step = self.function([i.name, carried.name], lambda: self.like(self.body(inner, depth), kind))
        self.bind(scope, f"ll.fori_loop({self.one(['0', 'n'])}, {self.one(['3', '6', 'n'])}, {step}, {first})", *kind)

    def scan(self, scope: Scope, depth: int) -> None:
        kinds, stacked = self.kinds(scope, 2), self.kinds(scope, 2, lambda x: len(x.shape) < MOST_AXES)
        carried = [Value(self.new("c"), *kind) for kind in kinds]
        rows = self.pick(scope, lambda x: bool(x.shape))
        assert rows is not None
        size, given = rows.shape[0], rows.name
        row = [Value(self.new("row"), rows.shape[1:], rows.dtype)]
        others = [x for x in scope if x.shape and x.shape[0] == size]
        if self.chance(0.3):
            other = self.one(others)
            given = f"({rows.name}, {other.name})"
            row.append(Value(self.new("row"), other.shape[1:], other.dtype))
        length = ""
        if self.chance(0.2):
            size, row = self.one([2, 7, 20]), []
            given, length = "None", f", length={size}"

        def step() -> str:
            self.line(f"({', '.join(x.name for x in carried)},) = carry")
            if row:
                self.line(f"{', '.join(x.name for x in row)} = rows")
            inside = self.body([*scope, *carried, *row], depth)
            return f"({self.results(inside, kinds)}, {self.results(inside, stacked)})"

        name = self.function(["carry", "rows"], step)
        first = self.results(scope, kinds)
        reverse = self.one(["", ", reverse=True"])
        made = [((size, *shape), dtype) for shape, dtype in stacked]
        values = [[Value(self.new(), *kind) for kind in some] for some in (kinds, made)]
        left = ", ".join(f"({', '.join(x.name for x in some)},)" for some in values)
        self.line(f"{left} = ll.scan({name}, {first}, {given}{length}{reverse})")
        scope += [x for some in values for x in some]

    def map_fn(self, scope: Scope, depth: int) -> None:
        self.over_rows(scope, depth, "ll.map_fn({}, {})", self._state)

    def vectorized(self, scope: Scope, depth: int) -> None:
        self.over_rows(scope, depth, "ll.vectorize({})({})", False)

    def over_rows(self, scope: Scope, depth: int, text: str, state: bool) -> None:
        rows = self.pick(scope, lambda x: bool(x.shape) and x.is_float)
        assert rows is not None
        row = Value(self.new("row"), rows.shape[1:], rows.dtype)
        (kind,) = self.kinds([*scope, row], 1, lambda x: len(x.shape) < MOST_AXES)
        before, self._state = self._state, state
        inner = [*scope, row]
        step = self.function([row.name], lambda: f"{self.like(self.body(inner, depth), kind)}")
        self._state = before
        self.bind(scope, text.format(step, rows.name), (rows.shape[0], *kind[0]), kind[1])

    def call(self, scope: Scope, depth: int) -> None:
        given = [x for x in (self.pick(scope), self.pick(scope)) if x is not None]
        parameters = [Value(self.new("p"), *x.type) for x in given]
        kinds = self.kinds([*scope, *parameters], 2)
        visible = (
            [*scope, *parameters] if self.chance(0.5) else list(parameters) + [x for x in scope if x.dtype == "i4"]
        )
        visible += [x for x in scope if x.is_float][:2]
        kinds = [kind for kind in kinds if any(x.type == kind for x in visible)] or [given[0].type]
        decorator = self.one(["ll.function", "ll.function", "ll.recompute_grad"])
        if decorator == "ll.recompute_grad" and self._state:
            decorator = "ll.function"
        names = [x.name for x in parameters]
        name = self.function(names, lambda: self.results(self.body(visible, depth), kinds), decorator)
        for _ in range(self.one([1, 1, 2])):
            self.unpack(scope, f"{name}({', '.join(x.name for x in given)})", kinds)

    def nested_gradient(self, scope: Scope, depth: int) -> None:
        x = self.floating(scope)
        point = Value(self.new("p"), *x.type)

        def loss() -> str:
            inside = self.body([*scope, point], depth)
            y = self.one([y for y in inside if y.is_float][-3:])
            return f"ll.sum(ll.sin({y.name})) + ll.astype(ll.sum({point.name} * {point.name}), {DTYPES[y.dtype]})"

        name = self.function([point.name], loss)
        if self.chance(0.3):
            tangent = f"ll.jvp({name}, ({x.name},), (ll.ones_like({x.name}),))[1]"
            self.bind(scope, f"ll.astype({tangent}, ll.float32)", (), "f4")
        else:
            self.bind(scope, f"ll.grad({name})({x.name})", *x.type)
