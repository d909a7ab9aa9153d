"""Which tensors of a graph stand for Python's own numbers: those that a tensor decides, as a count of rounds.

A graph computes them as tensors; who runs it as Python's code (a staged cell) hands them back as the `int`, `float` or
`bool` that Python would have. Operators between such tensors, and with Python's numbers, give such tensors; a tensor
that takes part makes the result a tensor, as in Python.

What is a number after some runs and a tensor after others (`total = 0.0` before a loop that may run no time) has a
second tensor beside it, its `code`, which says what it is: in the bodies of cells alone (`tells`), since nobody else
asks.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.core.dispatch import apply
from limelight.core.dtypes import default_for, int32
from limelight.core.eager.operands import prepare
from limelight.core.op import get
from limelight.core.tensor import Tensor, constant, new_uid
from limelight.staging.symbolic import SymbolicTensor

Source: TypeAlias = "tuple[int, int]"
"""A tensor that a loop carries: the loop, and its place among those."""

_KINDS: Final[dict[Any, str]] = {bool: "b", int: "iu", float: "f"}
_CODES: Final[tuple[Any, ...]] = (None, *_KINDS)
"""What a code means: a tensor, or a number of that type."""

_SMALL: Final = 1 << 12  # added once in a round, half a million rounds stay within an int32
_LARGE: Final = 1 << 30
_BINARY: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_GROWING: Final = frozenset(["mul", "pow", "lshift"])
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY: Final = ("neg", "pos", "abs", "invert")


class _Tells(threading.local):
    """`codes`: whether somebody asks in the end what is a number and what a tensor."""

    codes = False


tells = _Tells()


class SymbolicNumber(SymbolicTensor):
    """A symbolic scalar in the place of a Python number.

    `kind` is its Python type, `sources` the variables of loops around that must turn out to be numbers, too, for it to
    be one, and `unsure` says that Python's number may be another: one of more digits than a float32, or of more than 32
    bits.
    """

    __slots__ = ("kind", "sources", "unsure")
    kind: Any
    sources: frozenset[Source]
    unsure: bool


class MixedNumber(SymbolicTensor):
    """A symbolic scalar that is a Python number in some runs, and in others a tensor or a number of another type.

    `code`, a symbolic int32, says which (`_CODES`); `sources` and `unsure` are as of a `SymbolicNumber`.
    """

    __slots__ = ("code", "sources", "unsure")
    code: Any
    sources: frozenset[Source]
    unsure: bool


def as_number(x: Any, kind: Any, sources: frozenset[Source] = frozenset(), unsure: bool = False) -> Any:
    """`x` as what stands for a number of the type `kind`; `x` itself if it is no symbolic scalar of such a dtype."""
    if type(x) not in (SymbolicTensor, SymbolicNumber) or x.dtype.kind not in _KINDS.get(kind, "") or x.shape != ():
        return x
    made = _another(SymbolicNumber, x)
    made.kind, made.sources, made.unsure = kind, sources, unsure
    return made


def as_mixed(x: Any, code: Any, *made_of: Any) -> Any:
    """`x`, which is made of these values, as what is a number where `code` says so; `x` itself if it is no scalar."""
    if type(code) is int:
        return x if _CODES[code] is None else as_number(x, _CODES[code], sources_of(*made_of), is_unsure(*made_of))
    if type(x) not in (SymbolicTensor, SymbolicNumber, MixedNumber) or x.dtype.kind not in "biuf" or x.shape != ():
        return x
    made = _another(MixedNumber, x)
    made.code, made.sources, made.unsure = code, sources_of(*made_of), is_unsure(*made_of)
    return made


def _another(kind: Any, x: SymbolicTensor) -> Any:
    x._uid = x._uid or new_uid()
    made = object.__new__(kind)
    for name in ("_tracer", "_value", "_uid", "_device"):
        setattr(made, name, getattr(x, name))
    return made


def code_of(x: Any) -> Any:
    """What says whether `x` is a number: an int where that is known while tracing, else a tensor."""
    return x.code if type(x) is MixedNumber else _CODES.index(kind_of(x))


def decoded(tensor: Any, code: Any) -> Any:
    """The number that `tensor` stands for in a run that had this `code`; the tensor itself where it is no number."""
    if isinstance(code, Tensor) and type(code) is not Tensor:  # the run is part of another trace, or of a batch
        return as_mixed(tensor, code)
    kind = _CODES[code.item()]
    return tensor if kind is None else kind(tensor.item())


def kind_of(x: Any) -> Any:
    """The type of the Python number that `x` is or stands for; None for anything else."""
    return x.kind if type(x) is SymbolicNumber else type(x) if type(x) in _KINDS else None


def examples(x: Any) -> list[Any]:
    """Of each type that a run may have for `x`, which stands for a number, one value."""
    kinds = list(_KINDS) if type(x) is MixedNumber else [kind_of(x)]
    return [*([x] if type(x) is MixedNumber else []), *[kind(1) for kind in kinds]]


def one_kind(*values: Any) -> Any:
    """The type of the Python numbers that all of these are; None where they differ, or are something else."""
    kinds = {kind_of(x) for x in values}
    return kinds.pop() if len(kinds) == 1 else None


def sources_of(*values: Any) -> frozenset[Source]:
    """The variables of loops on which it depends whether these are numbers."""
    none: frozenset[Source] = frozenset()
    return none.union(*[x.sources for x in values if type(x) in (SymbolicNumber, MixedNumber)])


def is_unsure(*values: Any) -> bool:
    """Whether Python's numbers may be others than those that the graph computes for these."""
    return any(map(_is_unsure, values))


def _is_unsure(x: Any) -> bool:
    if isinstance(x, SymbolicNumber | MixedNumber):
        return x.unsure
    if type(x) is float:
        return not math.isnan(x) and float(np.float32(x)) != x
    return type(x) is int and abs(x) > _LARGE


def like(x: Any, *values: Any) -> Any:
    """`x` as a number where all of the `values` that it is made of are numbers of one type."""
    kind = one_kind(*values)
    return x if kind is None else as_number(x, kind, sources_of(*values), is_unsure(*values))


def picked(x: Any, condition: Any, one: Any, other: Any) -> Any:
    """`x`, which is `one` where the condition holds and else the `other`, as a number where Python has one."""
    codes = code_of(one), code_of(other)
    if (type(codes[0]) is type(codes[1]) is int and codes[0] == codes[1]) or not tells.codes:
        return like(x, one, other)
    where = get("where")
    return as_mixed(
        x, apply(where, prepare(where, (condition, *[constant(code, int32) for code in codes]))), one, other
    )


def zero_like(x: Any) -> Any:
    """A Python number that can stand where `x` has not been assigned; None if `x` is no number of the usual dtype."""
    kind = kind_of(x)
    if kind is None or (type(x) is SymbolicNumber and x.dtype != default_for(kind())):
        return None
    return kind()


def in_loop(leaves: Sequence[Any], begin: Mapping[int, Any], codes: Mapping[int, int], loop: int) -> list[Any]:
    """The tensors of a loop as its body finds them: those that begin as numbers are such, if they stay so.

    Args:
        leaves: the tensors.
        begin: what each begins as, by its place among them.
        codes: the places of the codes of those that have one.
        loop: tells the loop from those around it.
    """
    kinds = [kind_of(begin.get(at)) for at in range(len(leaves))]
    return [
        as_mixed(x, leaves[codes[at]])
        if at in codes
        else x
        if kind is None
        else as_number(x, kind, frozenset([(loop, at)]))
        for at, (x, kind) in enumerate(zip(leaves, kinds, strict=True))
    ]


def mixed_in_loop(begin: Mapping[int, Any], after: Mapping[int, Any], loop: int, always: bool) -> set[int]:
    """The tensors of a loop that are numbers before the first iteration or after some, and not after others.

    Args:
        begin: what each begins as, by its place among the tensors.
        after: what each is after an iteration.
        loop: tells the loop from those around it.
        always: whether there is an iteration: then what begins as a number that nobody reads as one does not count.
    """
    used = {at for key, at in sources_of(*after.values()) if key == loop}
    mixed = set()
    for at, x in after.items():
        one, other = code_of(begin.get(at)), code_of(x)
        if type(one) is not int or type(other) is not int or (one != other and (at in used or not always)):
            mixed.add(at)
    return mixed


def after_loop(
    results: Sequence[Any], begin: Mapping[int, Any], after: Mapping[int, Any], codes: Mapping[int, int], loop: int
) -> list[Any]:
    """The results of a loop: numbers where they begin as such, and are of the same type `after` an iteration."""
    kinds = {at: one_kind(begin.get(at), after.get(at)) for at in range(len(results))}
    numbers = {at for at, kind in kinds.items() if kind is not None and at not in codes}
    made_of = {at: {key for key in sources_of(after[at]) if key[0] == loop} for at in numbers}
    while lost := {at for at in numbers if any(other not in numbers for _, other in made_of[at])}:
        numbers -= lost
    unsure = {at for at in numbers if is_unsure(begin[at], after[at])}
    while more := {at for at in numbers - unsure if any(other in unsure for _, other in made_of[at])}:
        unsure |= more
    around = frozenset(key for at in numbers for key in sources_of(begin[at], after[at]) if key[0] != loop)
    return [
        as_mixed(x, results[codes[at]], begin.get(at), after.get(at))
        if at in codes
        else as_number(x, kinds[at], around, at in unsure)
        if at in numbers
        else x
        for at, x in enumerate(results)
    ]


def _of(name: str, python: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    method = f"__{'r' if swapped else ''}{name}__"
    tensors: Callable[..., Any] = getattr(SymbolicTensor, method)

    def operate(self: SymbolicNumber | MixedNumber, *others: Any) -> Any:
        made = tensors(self, *others)
        operands = (*others, self) if swapped else (self, *others)
        if MixedNumber in map(type, operands):
            return as_mixed(made, _result_code(name, python, operands), *operands)
        kind = _result_kind(name, python, operands)
        if kind is None:
            return made
        return as_number(made, kind, sources_of(self, *others), _may_differ(name, kind, self, others))

    operate.__name__ = method
    return operate


def _result_kind(name: str, python: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """What Python says that the type of the result is; None where a tensor takes part, or the values decide."""
    if any(kind_of(x) is None for x in operands):
        return None
    if name == "pow" and type(operands[1]) is SymbolicNumber:
        return None
    try:
        return type(python(*[x.kind(1) if type(x) is SymbolicNumber else x for x in operands]))
    except (ArithmeticError, TypeError, ValueError):
        return None


def _result_code(name: str, python: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The code of the result of an operator, by those of its operands."""
    codes = [code_of(x) for x in operands]
    table = _result_codes(python, len(codes))
    by_value = name == "pow" and isinstance(operands[1], Tensor)  # 2 ** -1 is a float
    if by_value or any(type(code) is int and _CODES[code] is None for code in codes) or not any(table):
        return 0
    place = functools.reduce(lambda place, code: place * len(_CODES) + code, codes)
    return constant(table, int32)[place]


@functools.lru_cache
def _result_codes(python: Callable[..., Any], count: int) -> tuple[int, ...]:
    return tuple([_code_for(python, kinds) for kinds in itertools.product(_CODES, repeat=count)])


def _code_for(python: Callable[..., Any], kinds: tuple[Any, ...]) -> int:
    if None in kinds:
        return 0
    try:
        kind = type(python(*[kind(1) for kind in kinds]))
    except TypeError:
        return 0
    return _CODES.index(kind) if kind in _CODES else 0


def _may_differ(name: str, kind: Any, number: Any, others: tuple[Any, ...]) -> bool:
    if kind is float or is_unsure(number, *others):
        return True
    if kind is bool or name not in ("add", "sub", "mul", "pow", "lshift"):
        return False
    return name in _GROWING or any(type(x) is SymbolicNumber or abs(x) > _SMALL for x in others)


def _functions(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(operator, f"__{name}__")
    return function


for _name in (*_BINARY, *_COMPARISONS, *_UNARY):
    for _class in (SymbolicNumber, MixedNumber):
        setattr(_class, f"__{_name}__", _of(_name, _functions(_name)))
for _name in _BINARY:
    for _class in (SymbolicNumber, MixedNumber):
        setattr(_class, f"__r{_name}__", _of(_name, _functions(_name), swapped=True))
