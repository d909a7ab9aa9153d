"""Programs in which each rule and each pass finds something, and programs that only look so.

A maker draws what varies (constants, inner ops, which operand comes first) and returns a function of two tensors, which
may have any dtype, broadcast shapes, and sizes that the trace does not know. Not every draw fits its rule, and some fit
no dtype of an operand: what raises eagerly is no program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import limelight as ll
from limelight.core import dispatch
from limelight.core.op import get
from limelight.optimise import algebra, inexact_algebra, view_algebra

Function = Callable[[Any, Any], Any]
CASTS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 0.3, -4.0, 3.0, 1e30, 1e-30, 2.0**70, float("inf"), float("nan"), 1e31, 1e-8)


class Choice:
    """What makers draw."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def one(self, *things: Any) -> Any:
        return self.draw(st.sampled_from(things))

    def number(self, *wanted: float) -> Callable[[Any], Any]:
        """A literal for a tensor: a Python number, or a tensor of its dtype with axes of size 1."""
        number, shape = self.one(*wanted, *NUMBERS), self.one(None, None, (), (1,), (1, 1))

        def literal(x: Any) -> Any:
            fits = number if x.dtype.kind not in "iub" or (np.isfinite(number) and abs(number) < 100) else 1
            if shape is None:
                return int(fits) if x.dtype.kind in "iu" else fits
            return ll.constant(np.full(shape, fits).astype(x.dtype))

        return literal

    def unary(self, *names: str) -> Callable[[Any], Any]:
        name = self.one(*names)
        return getattr(ll, name, None) or getattr(ll.nn, name)

    def turned(self, f: Function) -> Function:
        """`f`, or `f` with its operands exchanged."""
        return self.one(f, lambda x, y: f(y, x))

    def arithmetic(self) -> Function:
        return self.one(ll.add, ll.subtract, ll.multiply, ll.divide)


NOTHING = ("identity", "exp", "abs", "square", "cosh", "sigmoid", "negative", "stop_gradient")


def with_literal(op: Function, *wanted: float) -> Callable[[Choice], Function]:
    """An op of the result of another one and a literal."""

    def make(o: Choice) -> Function:
        inner, number, either = o.unary(*NOTHING), o.number(*wanted), o.turned(op)
        return lambda x, y: either(inner(x), number(x))

    return make


def with_negative(op: Function) -> Callable[[Choice], Function]:
    def make(o: Choice) -> Function:
        either, inner = o.turned(op), o.one(lambda y: y, ll.negative)
        return lambda x, y: either(inner(y), -x)

    return make


def negated_product(o: Choice) -> Function:
    number, either = o.number(), o.turned(ll.multiply)
    return lambda x, y: -either(x, number(x))


def negative_times_literal(o: Choice) -> Function:
    number, either = o.number(), o.turned(ll.multiply)
    return o.one(lambda x, y: either(-x, number(x)), lambda x, y: either(-x, -y))


def of_itself(*names: str) -> Callable[[Choice], Function]:
    def make(o: Choice) -> Function:
        f = o.unary(*names)
        return lambda x, y: f(f(x))

    return make


def of_negative(o: Choice) -> Function:
    f = o.unary("abs", "square")
    return lambda x, y: f(-x) + y


def alias(o: Choice) -> Function:
    f, g = o.unary("identity", "stop_gradient", "positive"), o.arithmetic()
    return lambda x, y: g(f(x), y)


def casts(o: Choice) -> Function:
    between, end = o.one(*CASTS), o.one(None, *CASTS)
    return lambda x, y: ll.astype(ll.astype(x, between), end or x.dtype)


def choices(o: Choice) -> Function:
    f = o.one(
        lambda x, y: ll.where(ll.isfinite(y), x, x),
        lambda x, y: ll.where(x > y, x, x),
        lambda x, y: ll.where(x == 1, x, x),
    )
    return o.turned(f)


def views(o: Choice) -> Callable[[Any], Any]:
    return o.one(
        lambda x: ll.reshape(x, (-1,)),
        lambda x: ll.reshape(x, (1, -1)),
        lambda x: ll.expand_dims(x, 0),
        lambda x: ll.expand_dims(x, -1),
        lambda x: ll.squeeze(ll.expand_dims(x, 0), 0),
        ll.transpose,
        ll.matrix_transpose,
        lambda x: ll.transpose(x, (*range(1, x.ndim), 0)) if x.ndim else x,
    )


def view_chain(o: Choice) -> Function:
    first, second, third = views(o), views(o), o.one(views(o), lambda x: x)
    return lambda x, y: third(second(first(x)))


def view_of_unary(o: Choice) -> Function:
    view, second = views(o), o.one(views(o), lambda x: x)
    f = o.one(
        *[getattr(ll, name) for name in ("negative", "abs", "exp", "log", "sqrt", "square", "tanh", "sin", "cos")],
        *[ll.nn.sigmoid, ll.nn.relu, lambda x: ll.astype(x, "float64"), lambda x: ll.astype(x, "int32")],
    )
    return lambda x, y: second(f(view(x)))


def view_of_binary(o: Choice) -> Function:
    view, second = views(o), o.one(views(o), lambda x: x)
    f = o.one(ll.add, ll.subtract, ll.multiply, ll.divide, ll.maximum, ll.minimum)
    other = o.one(lambda x, y: x * y, lambda x, y: y, lambda x, y: x + x)
    return lambda x, y: second(f(view(x), view(other(x, y))))


def broadcasts(o: Choice) -> Function:
    lead, again = o.one(1, 2, 3), o.one((), (1,), (2,))

    def f(x: Any, y: Any) -> Any:
        if None not in x.shape:
            return ll.broadcast_to(ll.broadcast_to(x, (lead, *x.shape)), (*again, lead, *x.shape))
        once = ll.broadcast_to(x, ll.concat([ll.constant([lead], "int64"), ll.shape_of(x)]))
        return ll.broadcast_to(once, ll.concat([ll.constant([*again, lead], "int64"), ll.shape_of(x)]))

    return f


def sums_to(o: Choice) -> Function:
    lead = o.one((), (), (1,), (2,), (3,), (9,), (2, 2))

    def f(x: Any, y: Any) -> Any:
        if None in x.shape:
            return ll.sum_to(x + y, ll.shape_of(x + y))
        wide = ll.broadcast_to(x, (*lead, *x.shape))
        return dispatch.apply(get("sum_to"), (wide,), (x.shape,))  # the method would see that the shape is right

    return f


def two_literals(op: Function) -> Callable[[Choice], Function]:
    def make(o: Choice) -> Function:
        c, d, either = o.number(), o.number(), o.turned(op)
        return lambda x, y: either(either(x, c(x)), d(x))

    return make


def powers(o: Choice) -> Function:
    number = o.one(-1.0, 1.0, 2.0, 3.0, 4.0, 0.5)
    return lambda x, y: x**number


RULES: dict[Any, Callable[[Choice], Function]] = {
    algebra._add_zero: with_literal(ll.add, 0.0, -0.0, 0.0, -0.0),
    algebra._add_negation: with_negative(ll.add),
    algebra._subtract_zero: with_literal(ll.subtract, 0.0, -0.0, 0.0, -0.0),
    algebra._subtract_negation: with_negative(ll.subtract),
    algebra._multiply_by_one: with_literal(ll.multiply, 1.0, -1.0, 1.0, -1.0),
    algebra._multiply_negations: negative_times_literal,
    algebra._divide_by_one: with_literal(ll.divide, 1.0, 1.0),
    algebra._divide_by_power_of_two: with_literal(ll.divide, 2.0, 0.5, -4.0, 2.0**60, 2.0**-60),
    algebra._double_negation: of_itself("negative"),
    algebra._negate_product: negated_product,
    algebra._idempotent: of_itself("abs", "ceil", "floor", "relu", "trunc"),
    algebra._even_function: of_negative,
    algebra._alias: alias,
    algebra._cast: casts,
    algebra._choose_between_equals: choices,
    view_algebra._join_reshapes: view_chain,
    view_algebra._join_transposes: view_chain,
    view_algebra._join_broadcasts: broadcasts,
    view_algebra._sum_to_own_shape: sums_to,
    view_algebra._move_behind_unary: view_of_unary,
    view_algebra._move_behind_binary: view_of_binary,
    inexact_algebra._join_constants: lambda o: o.one(two_literals(ll.add), two_literals(ll.multiply))(o),
    inexact_algebra._power: powers,
    inexact_algebra._sum_of_broadcast: sums_to,
}
"""A maker for each rule of simplification."""


def unused(o: Choice) -> Function:
    f = o.arithmetic()

    def g(x: Any, y: Any) -> Any:
        f(x, y)
        return x

    return g


def foldable(o: Choice) -> Function:
    f, g, c, d = o.arithmetic(), o.arithmetic(), o.number(), o.number()
    return lambda x, y: f(x, g(ll.constant(np.full((2, 1), 1.5).astype(x.dtype)), d(x)) * c(x))


def shared(o: Choice) -> Function:
    f, g, h, c = o.arithmetic(), o.arithmetic(), o.arithmetic(), o.number()
    return lambda x, y: h(f(g(x, y), c(x)), f(g(x, y), c(x)))


def invariant(o: Choice) -> Function:
    f, n, c = o.arithmetic(), o.one(0, 1, 3), o.number()

    def g(x: Any, y: Any) -> Any:
        inner = lambda i, z: (i + 1, f(z, ll.square(x) * c(x)) + ll.abs(y).sum() * 0)  # noqa: E731
        return ll.while_loop(lambda i, z: i < n, inner, (0, x))[1]

    return g


def terms(o: Choice) -> tuple[Callable[[Any, Any], list[Any]], list[int]]:
    """Terms of one form, and their signs."""
    n, smaller = o.one(4, 5, 6), o.one(1.0, -0.5, 0.25)
    signs = [o.one(1, 1, 1, -1) for _ in range(n)]
    scales = [smaller * (i + 2) for i in range(n)]
    form = o.one(
        lambda x, y, c: (x * c) * y,
        lambda x, y, c: y * ll.tanh(x * c),
        lambda x, y, c: ll.sum(x * c * y, axis=0, keepdims=True),
        lambda x, y, c: ll.matrix_transpose(x * c) @ (y * c),
    )
    return lambda x, y: [form(x, y, ll.constant(np.asarray(c, x.dtype))) for c in scales], signs


def long_sum(o: Choice) -> Function:
    made, signs = terms(o)

    def f(x: Any, y: Any) -> Any:
        total, *others = made(x, y)
        for sign, term in zip(signs[1:], others, strict=True):
            total = total + term if sign > 0 else total - term
        return total

    return f


def spread_out(o: Choice) -> Function:
    ops = [o.one(ll.add, ll.subtract, ll.multiply, ll.maximum) for _ in range(5)]

    def f(x: Any, y: Any) -> Any:
        z = x
        for op in ops:
            z = op(z, y)
        return z

    return f


PASSES: dict[str, Callable[[Choice], Function]] = {
    "prune": unused,
    "fold": foldable,
    "simplify": lambda o: o.one(*RULES.values())(o),
    "share": shared,
    "hoist": invariant,
    "stack": long_sum,
    "spread": spread_out,
    "fuse": spread_out,
}
"""A maker for each pass."""


class Operands:
    """Two arrays that broadcast, of one dtype, with numbers at which arithmetic is special."""

    def __init__(self, draw: Any, dtypes: Sequence[str], alike: bool = False) -> None:
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 2**16)))
        dtype = np.dtype(draw(st.sampled_from(dtypes)))
        shape = draw(st.lists(st.sampled_from([1, 2, 3, 5, 0]), max_size=3))
        shapes = [tuple(shape), tuple(shape) if alike else self.narrowed(shape)]
        self.tame = draw(st.sampled_from([True, False, False]))
        self.arrays = [self.array(s, dtype) for s in (shapes if draw(st.booleans()) else shapes[::-1])]
        hides = draw(st.sampled_from([0.0, 1.0, 0.5]))
        sizes = [[None if self.random.random() < hides else n for n in x.shape] for x in self.arrays]
        self.specs = [ll.TensorSpec(s, dtype) for s in sizes]

    def narrowed(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to another one."""
        kept = shape[self.draw(st.integers(0, len(shape))) :]
        return tuple([1 if self.draw(st.booleans()) else n for n in kept])

    def array(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if dtype.kind == "c":
            parts = [self.array(shape, np.dtype("float32" if dtype.itemsize == 8 else "float64")) for _ in range(2)]
            whole = np.empty(shape, dtype)
            whole.real, whole.imag = parts
            return whole
        if dtype.kind == "b":
            return self.random.random(shape) < 0.5
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            beyond = [2**k + 1 for k in (8, 11, 24, 31, 53) if 2**k < info.max]  # what the floats do not hold
            special = np.array([info.min, info.max, 0, 1, 2, info.max // 2 + 1, *beyond, *beyond], dtype)
            usual = self.random.integers(0 if dtype.kind == "u" else -9, 9, shape).astype(dtype)
        else:
            special = special_floats(dtype)
            usual = np.asarray(self.random.normal(size=shape)).astype(dtype)
        chosen = self.random.random(shape) < (0.0 if self.tame else 0.5)
        return np.where(chosen, self.random.choice(special, shape), usual)


def special_floats(dtype: np.dtype) -> np.ndarray:
    """NaN, infinities, zeros, subnormal numbers and both ends of the range, with their neighbours."""
    import ml_dtypes

    info: Any = ml_dtypes.finfo(dtype)
    ends = [float(info.max), float(info.max) / 2, float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
    roots = [float(info.max) ** (1 / 2), float(info.max) ** (1 / 3), float(info.max) ** (1 / 4)]
    numbers = [float("nan"), float("inf"), 0.0, 1.0, 1.5, *ends, *roots, 1 / float(info.max)]
    both = np.array([sign * n for n in numbers for sign in (1, -1)], np.float64).astype(dtype)
    with np.errstate(all="ignore"):
        beside = [np.nextafter(both, np.array(end, dtype)) for end in (np.inf, -np.inf)] if dtype.kind == "f" else []
    return np.concatenate([both, *beside])
