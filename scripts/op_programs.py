"""A program for each op that has no case of its own: of control flow, of state, of what Python does.

Each is a function of a float32 vector of four elements, whose trace has a node of the op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import limelight as ll

_V: Final = ll.Variable([1.0, 2.0, 3.0, 4.0])
_TABLE: Final = ll.lookup.HashTable("int32", default_value=0.0)
_ROWS: Final = iter(ll.data.from_arrays(ll.ones((2, 4))).repeat())


@ll.custom_gradient
def _squared(x: Any) -> Any:
    return x * x, lambda g: g * x * 2.0


def _staged(x: Any) -> Any:
    return ll.function(lambda y: ll.tanh(y) * y)(x)


def _assigned(change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        _V.assign([1.0, 2.0, 3.0, 4.0])
        change(_V, x)
        return _V.read_value()

    return run


def _checked(x: Any) -> Any:
    ll.debug.check(ll.all(x > 0.0), "not positive")
    return x * 2.0


def _printed(x: Any) -> Any:
    ll.debug.print("x {}", x)
    return x * 2.0


def _scattered(method: str) -> Callable[[Any], Any]:
    return _assigned(lambda v, x: getattr(v, method)(ll.constant([0, 2]), x[:2]))


def _with_table(use: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`use` of a table with two keys, whose result is added to the vector."""

    def run(x: Any) -> Any:
        _TABLE.insert(ll.constant([1, 2]), ll.constant([1.0, 2.0]))
        return x + ll.sum(ll.astype(use(ll.constant([1, 2])), "float32"))

    return run


def _taken_from_table(keys: Any) -> Any:
    _TABLE.remove(keys)
    return keys


def _gradient(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient, whose trace has the variant of the op that keeps what the gradient needs."""
    return ll.grad(lambda x: sum(ll.sum(part) for part in ll.tree.leaves(program(x))))


_CONTROL_FLOW: Final[dict[str, Callable[[Any], Any]]] = {
    "call": _staged,
    "cond": lambda x: ll.cond(ll.sum(x) > 1.0, lambda: x * x, lambda: x - 1.0),
    "switch": lambda x: ll.switch(ll.argmax(x) % 2, [lambda: x * x, lambda: x * x * x]),
    "while_loop": lambda x: ll.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1],
    "scan": lambda x: ll.scan(lambda c, y: (c + y, c * y), ll.constant(0.5), x),
    "custom_call": _squared,
    "py_func": lambda x: ll.py_func(lambda a: a * a, [x], ll.TensorSpec((4,))),
}
PROGRAMS: Final[dict[str, Callable[[Any], Any]]] = {
    **_CONTROL_FLOW,
    **{f"{name}_forward": _gradient(_CONTROL_FLOW[name]) for name in ("call", "cond", "switch", "scan", "py_func")},
    "while_forward": _gradient(_CONTROL_FLOW["while_loop"]),
    "custom_forward": _gradient(_squared),
    "py_func_backward": _gradient(_CONTROL_FLOW["py_func"]),
    "constant": lambda x: x + ll.constant([1.0, 2.0, 3.0, 4.0]) * 1.0 + 2.0,
    "read_variable": lambda x: _V * x,
    "assign": _assigned(ll.Variable.assign),
    "assign_add": _assigned(ll.Variable.assign_add),
    "assign_sub": _assigned(ll.Variable.assign_sub),
    "assign_slice": _assigned(lambda v, x: v.at[1:3].assign(x[:2])),
    "assign_slice_add": _assigned(lambda v, x: v.at[1:3].assign_add(x[:2])),
    "assign_slice_sub": _assigned(lambda v, x: v.at[1:3].assign_sub(x[:2])),
    "assign_scatter": _scattered("scatter_update"),
    **{f"assign_scatter_{how}": _scattered(f"scatter_{how}") for how in ("add", "sub", "mul", "max", "min")},
    "split_generator": lambda x: x * ll.random.split(2)[1].normal((4,)),
    "debug_check": _checked,
    "debug_print": _printed,
    "random_gamma": ll.random.gamma,
    "to_device": lambda x: x.to("CPU:0") * 2.0,
    "split_ends": lambda x: ll.split(x, ll.argmax(x, keepdims=True) * ll.constant([0, 0]) + 2),
    "table_contains": _with_table(_TABLE.contains),
    "table_insert": _with_table(lambda keys: keys),
    "table_lookup": _with_table(_TABLE.lookup),
    "table_remove": _with_table(_taken_from_table),
    "table_size": _with_table(lambda keys: _TABLE.size()),
    "table_export": _with_table(lambda keys: _TABLE.export()[1]),
    "next_element": lambda x: x + next(_ROWS),
}
