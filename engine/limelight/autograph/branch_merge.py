"""Two ways for a block to go, each traced once, become one `cond`; each variable gets the value of the way taken.

Variables that are the same on both sides (by identity, or as equal Python values) stay what they are. Python numbers
adapt to the tensor beside them, as operands do. The value of a `return` in one branch alone begins as zeros, behind a
flag.

In a graph a `cond` gives zero gradients for what only the other branch uses, so that an infinite slope before it makes
NaN (0 times infinity) where eager execution finds no path. JAX and TensorFlow do the same. Telling "no gradient" at run
time would take a flag beside every gradient, through every rule; zeros that win over infinity in each rule would hide
NaN that users look for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.autograph import user_lines
from limelight.autograph.context import changes_next, staged_block
from limelight.autograph.local_containers import Changed, Held, age, contents, fill, given_back, made_within, now
from limelight.autograph.python_numbers import (
    Blank,
    as_mixed,
    code_of,
    is_array,
    is_input_array,
    like,
    tells,
    zero_like,
)
from limelight.autograph.reachable_state import Outer
from limelight.autograph.undefined_variables import (
    AssignedIfRun,
    Doubtful,
    Undefined,
    is_flag,
    is_hidden,
    is_lost,
    shown,
)
from limelight.control_flow.cond import cond_op
from limelight.control_flow.py_func import py_func
from limelight.control_flow.tensor_array import TensorArray
from limelight.core import dispatch, dtypes, nest
from limelight.core.module_calls import calls_around
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ControlFlowError, DTypeError
from limelight.staging.structured_outputs import Outputs
from limelight.staging.trace_branch import Traced, close
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line

_NO_STRUCTURE: Final = Outputs(nest.LEAF, (), True)  # nobody asks for that of a block

_NAME: Final = re.compile(r"[^\W\d]\w*$")
_NUMBERS: Final = (bool, int, float, complex, np.ndarray, np.generic)


class Words(NamedTuple):
    """How messages speak of a choice, of its two ways, and of what is done where it says so."""

    whole: str
    true: str
    false: str
    block: str = ""

    def swapped(self) -> Words:
        return Words(self.whole, self.false, self.true)


class Ran(NamedTuple):
    """A block that has been traced: its trace, and what its variables were in the end."""

    tracer: Tracer
    values: tuple[Any, ...]
    reads: dict[int, Tensor]  # of objects that stand for tensors (variables), by identity
    changed: dict[int, Changed]  # the containers of older blocks that it changes, by identity

    def tensor(self, leaf: Any, dtype: Any = None) -> Tensor:
        """`leaf` as a tensor of this trace; a Python number takes on `dtype`."""
        if isinstance(leaf, Tensor):
            return leaf
        if isinstance(leaf, _NUMBERS):
            return self.tracer.constant(_array(leaf, dtype), None)
        return self.reads[id(leaf)]

    def returning(self, tensors: list[Tensor]) -> Traced:
        """The block as a function to be, with `tensors` for its results."""
        for x in tensors:
            self.tracer.value_of(x)  # captures those that come from outside
        return Traced(self.tracer, tensors, _NO_STRUCTURE)


def _array(number: Any, dtype: Any) -> Any:
    """A Python number or an array as an array of a tensor's dtypes."""
    wanted = dtype or getattr(number, "dtype", None) or dtypes.default_for(number)
    try:
        return np.array(number, wanted)
    except OverflowError as error:
        raise DTypeError(
            f"{number} does not fit into {wanted}, which the variable is on the other path; write "
            "ll.astype(x, ll.int64) on the tensor there"
        ) from error


def is_value(leaf: Any) -> bool:
    """Whether `leaf` is, or can become, a tensor."""
    return isinstance(leaf, (Tensor, *_NUMBERS)) or hasattr(leaf, "__as_tensor__")


def trace_block(name: str, what: str, outer: Outer, run: Callable[[], Sequence[Any]], optional: bool = True) -> Ran:
    """Runs a block in a trace of its own.

    Args:
        name: that of the graph.
        what: what messages call the statement.
        outer: what was there before.
        run: runs the block, and returns the values of the variables.
        optional: whether a run of the graph may pass it by; else it is a round of a loop.
    """
    with Tracer(name, calls=calls_around()) as tracer, staged_block(what, outer) as changes:
        tracer.optional, tracer.repeated = optional, not optional
        values = tuple(run())
        changed = changes.left()
        leaves = [leaf for x in (*values, *[x.value for x in changed.values()]) for leaf in _leaves(x)]
        reads = {id(x): as_tensor(x) for x in leaves if hasattr(x, "__as_tensor__") and not isinstance(x, Tensor)}
    return Ran(tracer, values, reads, changed)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, AssignedIfRun):
        return [*nest.leaves_of(value.value), value.assigned]
    return [] if isinstance(value, Undefined) else nest.leaves_of(value)


class _Pair(NamedTuple):
    """A leaf that becomes an output of the `cond`."""

    true: Tensor
    false: Tensor


def refuse_lost_aliases(before: Sequence[Any], true: Ran, false: Ran, names: Sequence[str]) -> None:
    """Raises ControlFlowError where a name of a container gets another one in a block, and a container is changed.

    The two values become one new container, which no other name of the old one knows.
    """
    changed = next(iter({**true.changed, **false.changed}.values()), None)
    for name, x, a, b in zip(names, before, true.values, false.values, strict=False):
        if changed is not None and age(x) is not None and not (a is x and b is x):
            raise ControlFlowError(
                f"{shown(name)} is another list or dictionary after one of the blocks, which also change "
                f"{shown(changed.name)}{changed.where}; a tensor decides which one runs, and a graph cannot tell then "
                f"whose change is seen by which name. Change a copy, such as list({changed.name}), or give the new one "
                "another name"
            )


def join(
    pred: Tensor, true: Ran, false: Ran, names: Sequence[str], words: Words, blocks: Sequence[Any] = ()
) -> list[Any]:
    """The values of the variables `names` after one of two blocks, as `pred` says; containers get their contents.

    Raises ControlFlowError where a variable has values that cannot be one.

    Args:
        pred: a boolean tensor.
        true: what the block for True left.
        false: what the block for False left.
        names: the variables.
        words: how messages speak of the blocks.
        blocks: the functions that converted code made of them: messages say where these assign.
    """
    changed = list({**true.changed, **false.changed}.values())
    outputs: list[_Pair] = []
    sides = [
        *[(name, a, b, "") for name, a, b in zip(names, true.values, false.values, strict=True)],
        *[(x.name, _content(true, x), _content(false, x), x.where) for x in changed],
    ]
    joined = [_Joining(true, false, name, words, outputs, blocks, where).variable(a, b) for name, a, b, where in sides]
    branches, captures = close([true.returning([x.true for x in outputs]), false.returning([x.false for x in outputs])])
    results = dispatch.apply(cond_op, (pred, *captures), tuple(branches))
    values = [
        a if a is b else _with_results(value, _filled(results))
        for value, (_, a, b, _) in zip(joined, sides, strict=True)
    ]
    for x, value in zip(changed, values[len(names) :], strict=True):
        changes_next(x.container, x.name, x.where)
        fill(x.container, value)
    return values[: len(names)]


def _content(ran: Ran, x: Changed) -> Any:
    """What the container `x` holds after the block `ran`, which may not have changed it."""
    own = ran.changed.get(id(x.container))
    return contents(x.container, now()) if own is None else own.value


def _left(ran: Ran, value: Any) -> Any:
    """`value` with what the block `ran` has left in containers, which hold again what they held before it."""
    if not ran.changed:
        return value
    own = ran.changed.get(id(value))
    if own is not None:
        value = given_back(own.value)
    if type(value) is dict:
        return {key: _left(ran, x) for key, x in value.items()}
    return type(value)([_left(ran, x) for x in value]) if type(value) in (list, tuple) else value


def _with_results(value: Any, filled: Callable[[Any], Any]) -> Any:
    if type(value) is _Sometimes:
        return assigned_if(value.name, value.why, nest.map_structure(filled, value.value), filled(value.assigned))
    return value if isinstance(value, Undefined) else made_within(nest.map_structure(filled, value))


def _value_and_flag(value: Any) -> tuple[Any, Any]:
    """A variable's value, and whether it has one: a Python bool, or a tensor."""
    if isinstance(value, AssignedIfRun):
        return value.value, value.assigned
    return (None, False) if isinstance(value, Undefined) else (value, True)


def _filled(results: Sequence[Any]) -> Callable[[Any], Any]:
    def filled(leaf: Any) -> Any:
        if type(leaf) is not _Mark:
            return leaf
        if leaf.code is None:
            return like(results[leaf.index], *leaf.made_of)
        return as_mixed(results[leaf.index], results[leaf.code], *leaf.made_of)

    return filled


class _Mark:
    """Stands for an output in a nest of values, with the two that it is made of.

    `code` is the output that says whether Python has a number there, if it has one on one side alone.
    """

    __slots__ = ("code", "index", "made_of")

    def __init__(self, index: int, made_of: tuple[Any, Any], code: int | None) -> None:
        self.index, self.made_of, self.code = index, made_of, code


class _Sometimes(Undefined):
    """A variable that only some runs assign: its value, and the flag that says whether it was, with marks in them."""

    __slots__ = ("assigned", "value", "why")

    def __init__(self, name: str, why: str, value: Any, assigned: Any) -> None:
        super().__init__(name)
        self.why, self.value, self.assigned = why, value, assigned


def assigned_if(name: str, why: str, value: Any, assigned: Any) -> Any:
    """`value` of a variable that has one if `assigned`, a Python bool or a tensor; reading it checks that."""
    if isinstance(assigned, bool):
        return value if assigned else Undefined(name)
    return AssignedIfRun(name, why, value, assigned, _check)


def _check(holds: Tensor, error: Exception) -> None:
    """Has the graph raise `error` unless `holds`."""

    def check(holds: Tensor) -> None:
        if not holds.item():
            raise error

    py_func(check, [holds], None)


def can_be_carried(value: Any) -> bool:
    """Whether there can be a blank for `value`: each iteration makes another tape, or another optimiser, of its own."""
    return all(is_value(leaf) or leaf is None or isinstance(leaf, str | bytes) for leaf in nest.flatten(value)[0])


class _Joining(NamedTuple):
    """One variable, whose values after the two blocks become one."""

    true: Ran
    false: Ran
    name: str
    words: Words
    outputs: list[_Pair]
    blocks: Sequence[Any]
    where: str  # of a container, where it is first changed

    def variable(self, a: Any, b: Any) -> Any:
        if a is b:
            return a
        if isinstance(a, Undefined) or isinstance(b, Undefined):
            return self._half(a, b)
        leaves, structure = nest.flatten(_left(self.true, a))
        others, other = nest.flatten(_left(self.false, b))
        if structure != other:
            raise self._differ(described(a), described(b), _one_structure(a, b))
        paths = nest.paths(structure, self.name)
        return nest.unflatten(structure, list(map(self._leaf, leaves, others, paths)))

    def _half(self, a: Any, b: Any) -> Any:
        """At most one block has given it a value in any case."""
        if is_hidden(self.name) and not (isinstance(a, Undefined) and isinstance(b, Undefined)):
            return self._hidden_half(a, b)  # a flag says whether it counts
        sure = not isinstance(a, Undefined) or not isinstance(b, Undefined)
        if not sure and not isinstance(a, AssignedIfRun) and not isinstance(b, AssignedIfRun):
            return next((x for x in (a, b) if isinstance(x, Doubtful)), a)
        lost = next((x for x in (a, b) if is_lost(x)), None)
        return lost or self._sometimes(a, b)

    def _hidden_half(self, a: Any, b: Any) -> Any:
        return (
            self.variable(self._blank(self.false, b), b)
            if isinstance(a, Undefined)
            else self.variable(a, self._blank(self.true, a))
        )

    def _blank(self, ran: Ran, value: Any) -> Any:
        """What stands for `value`, which `ran` has made, where nobody reads it."""
        return nest.map_structure(lambda x: blank_of(ran, x), value)

    def _sometimes(self, a: Any, b: Any) -> Any:
        """A variable with a flag; where no tensors can tell, one that is refused when it is read."""
        why = next((x.why for x in (a, b) if isinstance(x, AssignedIfRun)), None) or self._why(a)
        kept = len(self.outputs)
        (x, has_x), (y, has_y) = map(_value_and_flag, (a, b))
        known = [value for value, has in ((x, has_x), (y, has_y)) if has is not False]
        if not all(map(can_be_carried, known)):
            return Doubtful(self.name, why)
        try:
            x = self._blank(self.false, y) if has_x is False else x
            y = self._blank(self.true, x) if has_y is False else y
            return _Sometimes(self.name, why, self.variable(x, y), self._leaf(has_x, has_y, self.name))
        except ControlFlowError as error:  # it may be a name for several things, that nobody reads
            del self.outputs[kept:]
            return Doubtful(self.name, f"{why} ({error})")

    def _why(self, a: Any) -> str:
        assigned = self.words.false if isinstance(a, Undefined) else self.words.true
        where = user_lines.line_of_assignment(self.name, *self.blocks)
        return (
            f"a tensor decides {self.words.whole}, and it is assigned only {assigned}{where}. Assign it on both sides, "
            "or before, with the same dtype and shape"
        )

    def _leaf(self, a: Any, b: Any, path: str) -> Any:
        if a is b or _equal(a, b):
            return a
        if not is_value(a) or not is_value(b):
            raise self._differ(described(a), described(b), _remedy(a, b, path), path)
        if tells.codes and (is_array(a) or is_array(b)) and not isinstance(a, Blank) and not isinstance(b, Blank):
            self._refuse_arrays(a, b, path)
        x = self.true.tensor(a, _adapted(a, b))
        y = self.false.tensor(b, _adapted(b, a))
        if x.dtype != y.dtype:
            raise self._differ(str(x.spec), str(y.spec), self._cast(x.dtype, y.dtype, path), path)
        if x.ndim != y.ndim:
            raise self._differ(str(x.spec), str(y.spec), "write ll.reshape or ll.broadcast_to in one of them", path)
        self.outputs.append(_Pair(x, y))
        return _Mark(len(self.outputs) - 1, (a, b), None if x.ndim or not tells.codes else self._code(a, b))

    def _refuse_arrays(self, a: Any, b: Any, path: str) -> None:
        """Raises ControlFlowError where a cell would have an array of NumPy's in some runs only, or another one."""
        if is_array(a) != is_array(b):
            what, write = "an array of NumPy's on one path and a tensor on the other", "ll.constant(array) before"
        elif is_input_array(a) or is_input_array(b):
            what, write = "an input's array itself on one path, and another on the other", "array.copy() there"
        else:
            return
        raise ControlFlowError(
            f"{shown(path)} is {what}, and a tensor decides {self.words.whole}: what a graph returns is new, and of "
            f"one kind. Write {write}{self.where or source_line.here()}"
        )

    def _code(self, a: Any, b: Any) -> int | None:
        """The output that says which of two scalars are numbers; None where both are, of one type, or neither is."""
        one, other = code_of(a), code_of(b)
        if (type(one) is type(other) is int and one == other) or is_flag(self.name):
            return None
        self.outputs.append(_Pair(self.true.tensor(one, dtypes.int32), self.false.tensor(other, dtypes.int32)))
        return len(self.outputs) - 1

    def _cast(self, a: Any, b: Any, path: str) -> str:
        """What to write where the dtypes `a` and `b` should be one: a cast to the wider kind, on the other side."""
        target = dtypes.promote(a, b) or max(a, b, key=lambda dtype: ("biufcV".find(dtype.kind), dtype.itemsize))
        side = self.words.false if target == a else self.words.true if target == b else "on both sides"
        named = _NAME.match(path) and not is_hidden(path)
        cast = f"{path} = ll.astype({path}, ll.{target.name})" if named else f"ll.astype(..., ll.{target.name})"
        return f"write `{cast}` {'before it' if side == 'with it' else side}"

    def _differ(self, a: str, b: str, remedy: str, path: str = "") -> ControlFlowError:
        places = [user_lines.line_of_assignment(self.name, block) for block in self.blocks] or ["", ""]
        here = "" if any(places) else self.where or source_line.here()
        return ControlFlowError(
            f"{shown(path or self.name)} is {a} {self.words.true}{places[0]} and {b} {self.words.false}{places[1]}"
            f"{here}; a tensor decides {self.words.whole}, so both must agree in structure, dtype and rank: {remedy}"
        )


def _one_structure(a: Any, b: Any) -> str:
    """What to write where two values have other parts."""
    arrays = [x for x in (a, b) if isinstance(x, TensorArray)]
    shape = next((x.element_shape for x in arrays if x.is_shaped), None)
    if len(arrays) == 2 and shape is not None:  # one side has written the first element, and the other none
        known = tuple([size for size in shape if size is not None])
        size = f"element_shape={known if len(known) == len(shape) else '(...)'}"
        return (
            f"say what shape elements have when the array is made: ll.TensorArray(ll.{arrays[0].dtype.name}, n, {size})"
        )
    lists = [type(x.container if isinstance(x, Held) else x) is list for x in (a, b)]
    if all(lists):  # the sizes of a graph's values may depend on values only by ops that find them
        return "choose the elements by a mask, as xs[xs > 0], or write into a ll.TensorArray and count what is written"
    return "give it one structure on both"


def _remedy(a: Any, b: Any, path: str) -> str:
    """What to write where not both of two values can be tensors."""
    if a is None or b is None:
        like = as_tensor(b if a is None else a) if is_value(b if a is None else a) else None
        return "choose among tensors" + (
            "" if like is None else f", as ll.zeros({like.shape}, dtype=ll.{like.dtype.name}){flag_beside(path)}"
        )
    if callable(a) and callable(b):
        return "call it on both sides, and choose among the results"
    return "choose among tensors, or by a Python value"


def flag_beside(path: str) -> str:
    """What to write beside a tensor that stands for None."""
    if not path.isidentifier() or is_hidden(path):
        return " in place of None"
    flag = f"`has_{path} = False` before, `has_{path} = True` where it is assigned"
    return f" in place of None, with a flag beside it: {flag}"


def _equal(a: Any, b: Any) -> bool:
    """Whether both blocks leave the same plain Python value."""
    if isinstance(a, Held) and isinstance(b, Held):
        return a.container is b.container
    if type(a) is not type(b) or not isinstance(a, (bool, int, float, complex, str, bytes, type(None))):
        return False
    return a == b and (not isinstance(a, (float, complex)) or repr(a) == repr(b))  # 0.0 is not -0.0


def _adapted(number: Any, beside: Any) -> Any:
    """The dtype that a Python number takes on beside a tensor, where its kind allows it; None for its own."""
    dtype = getattr(beside, "dtype", None)
    if dtype is None and type(beside) in (int, float, complex):
        dtype = dtypes.default_for(beside)
    return dtype if dtype is not None and fits(number, dtype) else None


def blank_of(ran: Ran, leaf: Any) -> Any:
    """What stands for `leaf`, which `ran` has made, where nobody reads it: for a number one of its type, else zeros."""
    zero = zero_like(leaf)
    if zero is not None or not is_value(leaf):
        return leaf if zero is None else zero
    like = ran.tensor(leaf)
    zeros = np.zeros([size or 0 for size in like.shape], like.dtype)
    return zeros.view(Blank) if zeros.ndim else zeros  # sizes that are unknown while tracing are 0


def fits(number: Any, dtype: Any) -> bool:
    """Whether a plain Python number is of a kind that tensors of `dtype` take in."""
    kinds = {bool: "b", int: "iufcV", float: "fcV", complex: "c"}.get(type(number), "")
    return np.dtype(dtype).kind in kinds


def described(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(value.spec)
    if value is None or isinstance(value, bool | int | float | str | Held):
        return repr(value)
    structure = nest.flatten(value)[1]
    if structure is not nest.LEAF:
        return str(structure)
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}" + ("" if callable(value) else " object")
