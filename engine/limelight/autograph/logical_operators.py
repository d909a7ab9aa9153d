"""`and`, `or`, `not`, chained comparisons, `all`, `any` and `in`, where tensors take part.

`and` and `or` evaluate both sides where the right one cannot fail (elementwise ops), and are a `cond` otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from limelight.autograph.branch_merge import Ran, Words, join, trace_block
from limelight.autograph.python_numbers import MixedNumber, as_number, picked
from limelight.autograph.reachable_state import reachable
from limelight.batching import Batched
from limelight.core import dtypes
from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.tensor import Tensor, as_tensor
from limelight.core.variable import Variable
from limelight.errors import ControlFlowError
from limelight.staging.symbolic import SymbolicTensor
from limelight.staging.trace_branch import close, tracing
from limelight.staging.tracer import replay
from limelight.user_code.tracebacks import in_place_of_python


def decides(x: Any) -> bool:
    """Whether `x`, as a condition, is known only when the graph runs."""
    if isinstance(x, SymbolicTensor | Batched):
        return True
    return isinstance(x, Variable) and tracing() is not None


def truth(x: Any, what: str = "a condition") -> Tensor:
    """A condition as a boolean scalar, by Python's rule: a number is true unless it is zero."""
    condition = as_tensor(x)
    if condition.spec.size not in (1, None):
        raise ControlFlowError(
            f"{what} must be one value, got {condition.spec}; write ll.all(x) or ll.any(x) for a test of all elements, "
            "x & y, x | y and ~x for one of each"
        )
    if condition.dtype != dtypes.bool_:
        condition = condition != 0
    return condition if condition.ndim == 0 else condition.reshape(())


@in_place_of_python
def not_(x: Any) -> Any:
    """`not x`."""
    return as_number(apply(get("logical_not"), (truth(x, "the operand of `not`"),)), bool) if decides(x) else not x


@in_place_of_python
def and_(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """`first and second`; where a tensor decides, `second` runs only if `first` is true."""
    x = first()
    if not decides(x):
        return x and second()
    return _joined("and", x, second)


@in_place_of_python
def or_(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """`first or second`; where a tensor decides, `second` runs only if `first` is false."""
    x = first()
    if not decides(x):
        return x or second()
    return _joined("or", x, second)


def _joined(word: str, x: Any, second: Callable[[], Any]) -> Any:
    left = as_tensor(x)
    chosen = truth(left, f"the left side of `{word}`")
    outer = reachable(second)
    other = trace_block(f"{word}_right", f"`{word}`", outer, lambda: (second(),))
    if chosen is left and _is_harmless(other):
        (function,), captures = close([other.returning([other.tensor(other.values[0])])])
        both = apply(get(f"logical_{word}"), (chosen, replay(function.graph, captures)[0]))
        right = other.values[0]
        return picked(both, chosen, *((right, x) if word == "and" else (x, right)))
    same = trace_block(f"{word}_left", f"`{word}`", outer, lambda: (chosen if chosen is left else left,))
    sides = (other, same) if word == "and" else (same, other)
    right_first = Words(f"`{word}`", f"on the right of `{word}`", f"on the left of `{word}`")
    return join(chosen, *sides, ["the result"], right_first if word == "and" else right_first.swapped())[0]


def _is_harmless(ran: Ran) -> bool:
    """Whether nobody could tell if this was worked out, wanted or not: it cannot fail, and does nothing.

    Then both sides are simply evaluated, which is an op in place of a branch.
    """
    value = ran.values[0]
    boolean = isinstance(value, bool) or (isinstance(value, Tensor) and value.dtype == dtypes.bool_ and not value.ndim)
    return (
        boolean
        and not ran.changed
        and type(value) is not MixedNumber  # what says whether it is a number is in the block
        and all(node.op.elementwise or node.op.name in _HARMLESS for node in ran.tracer.nodes)
    )


@in_place_of_python
def all_(items: Any) -> Any:
    """`all(items)`, of which Python sees to what it knows: it stops at the first item that is false."""
    undecided: Any = True
    for x in items:
        if decides(x):
            undecided = and_(_given(undecided), _given(x))
        elif not x:
            return False
    return _as_bool(undecided)


@in_place_of_python
def any_(items: Any) -> Any:
    """`any(items)`; the same the other way round."""
    undecided: Any = False
    for x in items:
        if decides(x):
            undecided = or_(_given(undecided), _given(x))
        elif x:
            return True
    return _as_bool(undecided)


def _as_bool(x: Any) -> Any:
    """As `all` and `any` return it: never the last item itself, as `and` and `or` do."""
    return as_number(truth(x), bool) if decides(x) else x


def _given(x: Any) -> Callable[[], Any]:
    return lambda: x


@in_place_of_python
def contains(x: Any, items: Any) -> Any:
    """`x in items`."""
    if isinstance(items, Tensor | Variable) and len(items.shape) == 1 and (decides(x) or decides(items)):
        equal: Any = as_tensor(items) == x
        return as_number(apply(get("any"), (equal,), ((0,), False)), bool)
    if isinstance(items, list | tuple | set | frozenset) and (decides(x) or any(map(decides, items))):
        return any_(x is item or x == item for item in items)
    return x in items


def kept(x: Any) -> Any:
    """The condition of a comprehension."""
    if decides(x):
        raise ControlFlowError(
            "the `if` of a comprehension is decided by a tensor, so how many results it has is unknown while tracing. "
            "Pick rows by a mask, xs[xs > 0]; for a sum choose what each adds, sum(x if x > 0 else 0 * x for x in xs)"
        )
    return x


_HARMLESS: Final = frozenset(["constant", "read_variable", "identity", "stop_gradient", "shape_of", "astype"])

_SIGNS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": contains,
    "NotIn": lambda a, b: not_(contains(a, b)),
}


@in_place_of_python
def compare(left: Any, signs: Sequence[str], operands: Sequence[Callable[[], Any]]) -> Any:
    """`a < b() <= c()`: each operand is worked out once, and only if those before it held."""
    right = operands[0]()
    first = _SIGNS[signs[0]](left, right)
    if len(signs) == 1:
        return first
    return and_(lambda: first, lambda: compare(right, signs[1:], operands[1:]))
