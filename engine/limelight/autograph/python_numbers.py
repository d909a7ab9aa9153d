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
from typing import Any, Final, TypeAlias, cast

import numpy as np

from limelight.core.dispatch import apply
from limelight.core.dtypes import default_for, int32
from limelight.core.eager.operands import prepare
from limelight.core.op import get
from limelight.core.tensor import Tensor, array_stand_ins, constant, new_uid
from limelight.errors import ControlFlowError
from limelight.staging.symbolic import SymbolicTensor, set_class

Source: TypeAlias = "tuple[int, int]"
"""A tensor that a loop carries: the loop, and its place among those."""

_PYTHON: Final[dict[Any, Any]] = {bool: np.dtype(np.bool_), int: np.dtype(np.int32), float: np.dtype(np.float32)}
_KINDS: Final[dict[Any, str]] = {
    bool: "b",
    int: "iu",
    float: "f",
    np.bool_: "b",
    np.int32: "iu",
    np.int64: "iu",
    np.float32: "f",
    np.float64: "f",
}
_CODES: Final[tuple[Any, ...]] = (None, *_KINDS)
"""What a code means: a tensor, or a number of that type, Python's or NumPy's."""

_SMALL: Final = 1 << 12  # added once in a round, half a million rounds stay within an int32
_LARGE: Final = 1 << 30
_BINARY: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_GROWING: Final = frozenset(["mul", "pow", "lshift"])
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY: Final = ("neg", "pos", "abs", "invert")
_TO_INT: Final = frozenset(["floor", "ceil", "trunc"])
"""Give ints of tensors as well."""

_ROUNDING: Final = ("round", *sorted(_TO_INT))


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

    `code`, a symbolic int32, says which (`_CODES`), and `codes` which ones there can be; `sources` and `unsure` are as
    of a `SymbolicNumber`.
    """

    __slots__ = ("code", "codes", "sources", "unsure")
    code: Any
    codes: frozenset[int]
    sources: frozenset[Source]
    unsure: bool


def as_number(x: Any, kind: Any, sources: frozenset[Source] = frozenset(), unsure: bool = False) -> Any:
    """`x` as what stands for a number of the type `kind`; `x` itself if it is no symbolic scalar of such a dtype."""
    scalar = type(x) in (SymbolicTensor, SymbolicNumber, MixedNumber) and x.shape == ()
    if not scalar or x.dtype.kind not in _KINDS.get(kind, ""):
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
    made.codes = frozenset().union(*map(_codes_of, made_of)) or frozenset(range(len(_CODES)))
    return made


def _codes_of(x: Any) -> frozenset[int]:
    """What the code of `x` can be in some run."""
    return x.codes if type(x) is MixedNumber else frozenset() if isinstance(x, Blank) else frozenset([code_of(x)])


def dtypes_of(x: Any) -> set[Any]:
    """The dtypes of the tensors that a function makes of `x`, which is a number in some runs: one, or one for each."""
    kinds = [_CODES[code] for code in x.codes]
    return {
        np.dtype(x.dtype) if kind is None else np.dtype(default_for(kind()) if kind in _PYTHON else kind)
        for kind in kinds
    }


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
    """The type of the number that `x` is or stands for, Python's or NumPy's; None for anything else."""
    if _is_stand_in(x):
        kind = getattr(x, "number_type", None)
        return kind if kind in _KINDS else None
    return x.kind if type(x) is SymbolicNumber else type(x) if type(x) in _KINDS else None


class Blank(np.ndarray[Any, Any]):
    """Zeros for a variable that has no value yet, which nobody reads: neither an array of the user's nor a tensor."""


def is_array(x: Any) -> bool:
    """Whether `x` is, or stands for, an array of NumPy's with axes."""
    return (isinstance(x, np.ndarray) or _is_stand_in(x)) and not isinstance(x, Blank) and bool(x.ndim)


def as_array(x: Any, *made_of: Any) -> Any:
    """`x`, made of these values, as what stands for an array where all of them are arrays of NumPy's."""
    known = [one for one in made_of if not isinstance(one, Blank)]
    if tells.codes and array_stand_ins and type(x) is SymbolicTensor and known and all(map(is_array, known)):
        set_class(x, array_stand_ins[0])
    return x


def as_row(x: Any, rows: Any) -> Any:
    """`x`, a row of these, as what stands for a row of an array where they stand for one: `part_of` says so."""
    if is_array(rows):
        as_array(x, rows).part_of = rows
    return x


def is_input_array(x: Any) -> bool:
    """Whether `x` stands for an array among the inputs, rather than for one that the graph computes."""
    return _is_stand_in(x) and x._value.node is None and x._tracer._level.is_outermost


def without_number(x: Any) -> Any:
    """`x` as the tensor that a function of limelight's makes of it; whatever stands for no number as it is."""
    return _another(SymbolicTensor, x) if type(x) in (SymbolicNumber, MixedNumber) else x


def examples(x: Any) -> list[Any]:
    """Of each type that a run may have for `x`, which stands for a number, one value."""
    kinds = [kind for kind in _KINDS if _can_hold(x.dtype, kind)] if type(x) is MixedNumber else [kind_of(x)]
    return [*([without_number(x)] if type(x) is MixedNumber else []), *[kind(1) for kind in kinds]]


def _can_hold(dtype: Any, kind: Any) -> bool:
    return bool(kind in _PYTHON or np.dtype(kind) == dtype)


def by_kind(x: Any, asked: Callable[[Any], bool]) -> Any:
    """What `asked` answers of `x`, which stands for a number: as a Python bool that a run decides, where it does."""
    found = {asked(example) for example in examples(x)}
    if len(found) == 1:
        return found.pop()
    kinds = [without_number(x), *[kind(1) for kind in _KINDS]]
    return as_number(constant([asked(one) for one in kinds])[x.code], bool, sources_of(x))


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
    """`x` as a number, or an array, where all of the `values` that it is made of are numbers of one type, or arrays."""
    kind = one_kind(*values)
    return as_array(x, *values) if kind is None else as_number(x, kind, sources_of(*values), is_unsure(*values))


def picked(x: Any, condition: Any, one: Any, other: Any) -> Any:
    """`x`, which is `one` where the condition holds and else the `other`, as a number where Python has one."""
    codes = code_of(one), code_of(other)
    if (type(codes[0]) is type(codes[1]) is int and codes[0] == codes[1]) or not tells.codes:
        return like(x, one, other)
    if any(type(a) is SymbolicTensor and a.dtype != x.dtype for a in (one, other)):
        raise refusal(f"is compared with a tensor of another dtype than {x.dtype}", "a tensor of one dtype")
    where = get("where")
    return as_mixed(
        x, apply(where, prepare(where, (condition, *[constant(code, int32) for code in codes]))), one, other
    )


def zero_like(x: Any) -> Any:
    """A Python number that can stand where `x` has not been assigned; None if `x` is no number of the usual dtype."""
    kind = kind_of(x)
    if kind is None:
        return None
    if isinstance(x, SymbolicTensor) and x.dtype != (default_for(kind()) if kind in _PYTHON else np.dtype(kind)):
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
        _mixed_in_round(x, leaves[codes[at]], begin.get(at))
        if at in codes
        else as_array(x, begin.get(at))
        if kind is None
        else as_number(x, kind, frozenset([(loop, at)]))
        for at, (x, kind) in enumerate(zip(leaves, kinds, strict=True))
    ]


def _mixed_in_round(x: Any, code: Any, begin: Any) -> Any:
    """What a body finds in place of `begin`: that, or whatever a round has made, which has the dtype of `x`."""
    made = as_mixed(x, code)
    if type(made) is MixedNumber:
        made.codes = _codes_of(begin) | {0}
    return made


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
    kinds = {at: _kind_after(begin.get(at), after.get(at)) for at in range(len(results))}
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
        else as_array(x, begin.get(at), after.get(at))
        for at, x in enumerate(results)
    ]


def _kind_after(begin: Any, after: Any) -> Any:
    """The type that a number has after a loop; one of NumPy's after a round that has made it of Python's."""
    return kind_of(after) if _is_stand_in(after) and kind_of(begin) is not None else one_kind(begin, after)


def _of(name: str, python: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    method = f"__{'r' if swapped else ''}{name}__"
    tensors: Callable[..., Any] = getattr(SymbolicTensor, method, None) or _whole(name)

    def operate(self: SymbolicNumber | MixedNumber, *others: Any) -> Any:
        operands = (*others, self) if swapped else (self, *others)
        if not tells.codes:  # results of functions are tensors: it is enough to know what stays a number
            made, by_value = tensors(self, *others), name == "pow" and isinstance(operands[1], Tensor)
            kind = None if by_value or name in _ROUNDING else _result_kind(python, operands)
            return made if kind is None else as_number(made, kind, sources_of(self, *others))
        if others:
            if _is_stand_in(others[0]):
                return NotImplemented  # its own method does what NumPy does
            _refuse_others(name, operands)
            _refuse_complex_power(name, operands)
        alike = _in_one_dtype(name, python, operands)
        made = tensors(*(reversed(alike) if swapped else alike))
        if made is NotImplemented:
            return made
        if MixedNumber in map(type, operands) and name not in _TO_INT:
            _refuse_two_dtypes(name, made, operands)
            result = as_mixed(made, _result_code(name, python, operands), *operands)
            if type(result) is MixedNumber:
                result.codes = _possible_codes(name, python, operands)
            return result
        kind = int if name in _TO_INT else _result_kind(python, operands)
        if kind is None:
            return made
        if kind is int and made.dtype.kind == "f":  # what was rounded
            made = made.astype(int32)
        return as_number(made, kind, sources_of(self, *others), _may_differ(name, kind, made, operands))

    operate.__name__ = method
    return operate


def _is_stand_in(x: Any) -> bool:
    """Whether `x` is a tensor that stands for something else, as an array of NumPy's in a cell, and knows how."""
    return isinstance(x, SymbolicTensor) and type(x) not in (SymbolicTensor, SymbolicNumber, MixedNumber)


def _refuse_others(name: str, operands: tuple[Any, ...]) -> None:
    """Raises ControlFlowError where Python would give neither a number nor a tensor."""
    for x in operands:
        if isinstance(x, np.ndarray):
            raise refusal("meets an array of NumPy's", "ll.constant(array)")
        if isinstance(x, complex):
            raise refusal("meets a complex number", "ll.constant(x)")
        if isinstance(x, list | tuple | str | bytes) and name == "mul":
            raise refusal(
                f"repeats a {type(x).__name__}, whose length a graph cannot leave open",
                "a number that no tensor decides",
            )


def _refuse_complex_power(name: str, operands: tuple[Any, ...]) -> None:
    """Raises ControlFlowError for a negative number to the power of a float: complex in Python, NaN for tensors."""
    if name == "pow" and not isinstance(operands[0], Tensor) and kind_of(operands[0]) and operands[0] < 0:
        floating = type(operands[1]) is MixedNumber and operands[1].dtype.kind == "f"
        if floating or kind_of(operands[1]) in (float, np.float32, np.float64):
            raise refusal(
                f"is the exponent of {operands[0]}, a power that Python makes complex",
                "ll.constant(x) for the exponent",
            )


def refusal(what: str, instead: str) -> ControlFlowError:
    """The error where a number that a tensor decides does what a graph cannot do for numbers."""
    return ControlFlowError(
        f"a Python number that a tensor decides {what}: the result would be neither a number nor a tensor, and a graph "
        f"has nothing else. Write {instead} in its place, or do it in a cell below, without %%stage"
    )


def _in_one_dtype(name: str, python: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands, with numbers in the dtype in which Python, or the tensor beside them, would take them."""
    tensors = [x for x in operands if isinstance(x, Tensor) and type(x) is not SymbolicNumber]
    if tensors:
        return tuple([_weakly(x, tensors[0].dtype) for x in operands])
    rule = operator.add if name in _COMPARISONS else python
    kind = _result_kind(rule, operands)
    if name in _ROUNDING or kind is None:
        return operands
    if kind is int and any(kind_of(x) is float for x in operands):
        return operands
    wanted = _PYTHON.get(kind) or np.dtype(kind)
    return tuple([_cast(x, kind, wanted) for x in operands])


def _weakly(x: Any, dtype: Any) -> Any:
    """A number that meets a tensor takes on its dtype, as Python's own do; not a float that meets integers."""
    if type(x) is not SymbolicNumber or x.kind not in _PYTHON or x.dtype == dtype or x.kind is bool:
        return x
    return x.astype(dtype) if dtype.kind in ("fcV" if x.kind is float else "fcViu") else x


def _cast(x: Any, kind: Any, wanted: Any) -> Any:
    if isinstance(x, np.generic):
        return x.astype(wanted)
    if not isinstance(x, SymbolicNumber):
        return kind(x) if type(x) is bool and kind in _PYTHON else x
    return x if x.dtype.kind == wanted.kind and kind in _PYTHON else x.astype(wanted)


def _refuse_two_dtypes(name: str, made: Any, operands: tuple[Any, ...]) -> None:
    """Raises ControlFlowError where the result has one dtype in runs with a number, and another with a tensor."""
    other = next((x.dtype for x in operands if type(x) is SymbolicTensor), None)
    if other is not None and name not in _COMPARISONS and made.dtype != other:
        mixed = next(x.dtype for x in operands if type(x) is MixedNumber)
        if mixed != other:
            raise refusal(f"is a {mixed} tensor in other runs, and meets a {other} one", "a tensor of one dtype")


def _result_kind(python: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """What Python says that the type of the result is; None where a tensor takes part, or the values decide."""
    if any(kind_of(x) is None for x in operands):
        return None
    try:
        kind = type(python(*[x.kind(1) if type(x) is SymbolicNumber else x for x in operands]))
    except (ArithmeticError, TypeError, ValueError):
        return None
    return kind if kind in _KINDS else None


def _result_code(name: str, python: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The code of the result of an operator, by those of its operands."""
    digits = operands[1:] if name == "round" else ()
    codes = [code_of(x) for x in operands[: len(operands) - len(digits)]]
    table = _result_codes(python, len(codes), *digits)
    if any(type(code) is int and _CODES[code] is None for code in codes) or not any(table):
        return 0
    place = functools.reduce(lambda place, code: place * len(_CODES) + code, codes)
    code = constant(table, int32)[place]
    return _of_power(code, operands[1]) if name == "pow" else code


def _possible_codes(name: str, python: Callable[..., Any], operands: tuple[Any, ...]) -> frozenset[int]:
    """What the code of the result of an operator can be."""
    digits = operands[1:] if name == "round" else ()
    places = itertools.product(*map(_codes_of, operands[: len(operands) - len(digits)]))
    codes = {_code_for(python, tuple([_CODES[code] for code in place]), digits) for place in places}
    return frozenset(codes | {_CODES.index(float)} if name == "pow" and _CODES.index(int) in codes else codes)


def _of_power(code: Any, exponent: Any) -> Any:
    """The code of a power: of ints with a negative exponent it is a float. In int32 such powers raise by themselves."""
    whole, floating = _CODES.index(int), _CODES.index(float)
    if not isinstance(exponent, Tensor):
        return code + (code == whole).astype(int32) * (floating - whole) if exponent < 0 else code
    negative = apply(get("logical_and"), (SymbolicTensor.__lt__(exponent, 0), code == whole))
    return code + negative.astype(int32) * (floating - whole)


@functools.lru_cache
def _result_codes(python: Callable[..., Any], count: int, *more: Any) -> tuple[int, ...]:
    return tuple([_code_for(python, kinds, more) for kinds in itertools.product(_CODES, repeat=count)])


def _code_for(python: Callable[..., Any], kinds: tuple[Any, ...], more: tuple[Any, ...]) -> int:
    if None in kinds:
        return 0
    try:
        kind = type(python(*[kind(1) for kind in kinds], *more))
    except (ArithmeticError, TypeError, ValueError):
        return 0
    return _CODES.index(kind) if kind in _CODES else 0


def _may_differ(name: str, kind: Any, made: Any, operands: tuple[Any, ...]) -> bool:
    if kind not in _PYTHON:
        return bool(made.dtype != np.dtype(kind)) or is_unsure(*operands)
    if kind is float or is_unsure(*operands):
        return True
    if kind is bool or name not in ("add", "sub", "mul", "pow", "lshift"):
        return name in _ROUNDING and any(kind_of(x) is not int for x in operands[:1])
    numbers = [type(x) is SymbolicNumber for x in operands]
    return name in _GROWING or all(numbers) or any(not isinstance(x, Tensor) and abs(x) > _SMALL for x in operands)


def _whole(name: str) -> Callable[..., Any]:
    """What `math.floor` and its like call, of tensors."""
    return lambda x: apply(get(name), (x,)) if x.dtype.kind == "f" else x.astype(int32)


def _functions(name: str) -> Callable[..., Any]:
    if name in _ROUNDING:
        return round if name == "round" else cast("Callable[..., Any]", getattr(math, name))
    function: Callable[..., Any] = getattr(operator, f"__{name}__")
    return function


_UFUNCS: Final = {
    ufunc: name
    for name, ufunc in zip(
        (*_BINARY, *_COMPARISONS),
        (
            *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "bitwise_and"),
            *("bitwise_or", "bitwise_xor", "left_shift", "right_shift", "equal", "not_equal"),
            *("less", "less_equal", "greater", "greater_equal"),
        ),
        strict=True,
    )
}
"""NumPy's names of Python's operators."""

_REFLECTED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _array_ufunc(self: SymbolicTensor, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
    """What NumPy asks for `np.float32(2) * n`, where its operators stand on the left, and for its functions."""
    name = _UFUNCS.get(ufunc.__name__)
    if not tells.codes or how != "__call__" or options:
        return SymbolicTensor.__array_ufunc__(self, ufunc, how, *inputs, **options)  # type: ignore[attr-defined]
    if name is None or len(inputs) != 2 or not isinstance(inputs[0], np.generic | np.ndarray):
        raise refusal(f"is given to np.{ufunc.__name__}", f"ll.{ufunc.__name__}(...), which gives a tensor,")
    return getattr(self, f"__{_REFLECTED.get(name) or 'r' + name}__")(
        np.asarray(inputs[0])[()]
    )  # a scalar comes as an array


for _class in (SymbolicNumber, MixedNumber):
    _class.__array_ufunc__ = _array_ufunc  # type: ignore[union-attr]
    for _name in (*_BINARY, *_COMPARISONS, *_UNARY, *_ROUNDING):
        setattr(_class, f"__{_name}__", _of(_name, _functions(_name)))
    for _name in _BINARY:
        setattr(_class, f"__r{_name}__", _of(_name, _functions(_name), swapped=True))
