"""Operands prepared for an interpreter: converted to tensors, their dtypes checked and brought to one.

Python numbers stay what they are down to the kernel, where NumPy treats them as weak; only a tracer makes constants of
them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import Any, Final

from limelight.core import dtypes
from limelight.core.dtypes import KINDS, DType
from limelight.core.eager.interpreter import SCALARS
from limelight.core.op import Op
from limelight.core.tensor import Tensor, as_tensor, as_tensors, constant
from limelight.errors import DTypeError
from limelight.user_code import operand_text

BESIDE_FLOATS: Final = frozenset([dtypes.float32, dtypes.float64])
_COMPARISONS: Final = frozenset(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
"""All that there are in the Array API, and there will be no others: hence names, not a field of each op."""
_OF_BOOLEANS: Final = {
    "add": "{0} | {1}",
    "maximum": "{0} | {1}",
    "multiply": "{0} & {1}",
    "minimum": "{0} & {1}",
    "subtract": "{0} ^ {1}",
    "negative": "~{0}",
    "sum": "ll.count_nonzero({0}) to count",
    "max": "ll.any({0})",
    "min": "ll.all({0})",
    "prod": "ll.all({0})",
}
"""What does with booleans what an op does with their numbers 0 and 1, or was meant to do."""


def prepare(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands ready for an interpreter: tensors, variables where they belong, Python scalars; dtypes checked and met.

    Raises DTypeError when uniform operands are of different kinds, or of a kind that the op does not accept.
    """
    if op.uniform and _are_ready(op, inputs):
        return inputs
    if op.variadic:
        handles = as_tensors(inputs)
        _check_kind(op, op.accepts_word, handles, range(len(handles)))
        return _with_one_dtype(op, handles, range(len(handles)), inputs)
    handles = [
        x if isinstance(x, Tensor) or type(x) in SCALARS or operand.accepts == "var" else as_tensor(x)
        for x, operand in zip(inputs, op.operands, strict=True)
    ]
    uniform = [i for i, operand in enumerate(op.operands) if operand.accepts is None]
    for i, operand in enumerate(op.operands):
        if operand.accepts is not None and operand.accepts != "var":
            _check_kind(op, operand.accepts, handles, [i])
    return _with_one_dtype(op, handles, uniform, inputs)


def _are_ready(op: Op, inputs: tuple[Any, ...]) -> bool:
    """Whether all operands are tensors of one accepted dtype, or Python floats beside a floating one."""
    shared, number = None, False
    for x in inputs:
        if isinstance(x, Tensor):
            dtype = x.dtype
            if dtype is not shared:
                if shared is not None:
                    return False
                shared = dtype
        elif type(x) is float:
            number = True
        else:
            return False
    return shared in op.accepts and (shared in BESIDE_FLOATS or not number)


def _with_one_dtype(op: Op, handles: list[Any], uniform: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gives the uniform operands, `given` as they are and as handles, one dtype, by explicit casts within a kind."""
    operand_dtypes = [handles[i].dtype for i in uniform if type(handles[i]) not in SCALARS]
    if not operand_dtypes:
        for i in uniform:
            handles[i] = as_tensor(handles[i])
        operand_dtypes = [handles[i].dtype for i in uniform]
        if not operand_dtypes:
            return tuple(handles)
    target = _common_dtype(op, handles, uniform, operand_dtypes)
    for i in uniform:
        x = handles[i]
        if type(x) in SCALARS:
            if not dtypes.fits(x, target):
                raise _mixing_error(op, handles, uniform, [*operand_dtypes, dtypes.default_for(x)])
            if type(x) is int and not dtypes.in_range(x, target):
                return _compared_as_infinity(op, handles, i, target)
            if target is dtypes.bfloat16:  # a Python float beside it makes NumPy compute in float32
                handles[i] = constant(x, target)
        elif x.dtype is not target and x.dtype != target:
            numbers = type(given[i]) in (list, tuple)  # rounded once: not first to the default dtype, then to this one
            handles[i] = constant(given[i], target) if numbers else x.astype(target)
    return tuple(handles)


def _common_dtype(op: Op, handles: list[Any], uniform: Any, operand_dtypes: list[DType]) -> DType:
    """The dtype in which the uniform operands meet; raises DTypeError where there is none that the op accepts."""
    target = dtypes.promote(*operand_dtypes)
    if target is None:
        raise _mixing_error(op, handles, uniform, operand_dtypes)
    if op.integers is not None and not dtypes.is_inexact(target):
        target = op.integers
    for i in uniform:
        target = dtypes.beside(handles[i], target)
    if target not in op.accepts:
        wrong = [i for i in uniform if type(handles[i]) not in SCALARS]
        beside_float = any(type(handles[i]) is float for i in uniform)
        raise DTypeError(_refusal(op, op.accepts_word, target, wrong, dtypes.float32 if beside_float else None))
    return target


def _compared_as_infinity(op: Op, handles: list[Any], index: int, target: DType) -> tuple[Any, ...]:
    """Operands of which one is an int beyond the range of the other's dtype, `target`.

    Such a number compares with all its values as infinity does. Other ops cannot use it: raises DTypeError.
    """
    number = handles[index]
    if op.name not in _COMPARISONS:
        raise DTypeError(f"{op}: {number} does not fit into {target.name}; write ll.astype(x, ll.int64) on the tensor")
    infinity = math.inf if number > 0 else -math.inf
    return tuple([infinity if i == index else x.astype(dtypes.float32) for i, x in enumerate(handles)])


def _check_kind(op: Op, accepts: str, handles: list[Any], places: Iterable[int]) -> None:
    for i in places:
        x = handles[i]
        if type(x) not in SCALARS and dtypes.kind(x.dtype) not in KINDS[accepts]:
            raise DTypeError(_refusal(op, accepts, x.dtype, [i]))


def _mixing_error(op: Op, handles: list[Any], uniform: Any, operand_dtypes: list[DType]) -> DTypeError:
    widest = max(
        operand_dtypes, key=lambda d: (["bool", "integer", "floating", "complex"].index(dtypes.kind(d)), d.itemsize)
    )
    target = dtypes.float32 if dtypes.kind(widest) == "floating" and widest.itemsize < 4 else widest
    error = DTypeError(_mixing_message(op, handles, uniform, target))
    error.operands = tuple([id(handles[i]) for i in uniform if type(handles[i]) not in SCALARS])
    error.wanted = target
    return error


def _mixing_message(op: Op, handles: list[Any], uniform: Any, target: DType) -> str:
    operands = " and ".join(repr(x) if type(x) in SCALARS else str(x.spec) for x in map(handles.__getitem__, uniform))
    said = f"{op}: {operands} do not mix: dtypes of different kinds are never converted silently; write"
    for i in uniform:  # of a truth value beside numbers, and of a number that the op does not take, that one is wrong
        x = handles[i]
        if type(x) in SCALARS and (type(x) is bool or target not in op.accepts):
            number = {"floating": "float", "complex": "complex"}.get(dtypes.kind(target), "int")
            return f"{said} {number if target in op.accepts else 'int'}({_operand_in_code(op, [i]) or repr(x)})"
    others = [i for i in uniform if type(handles[i]) not in SCALARS and handles[i].dtype != target]
    name = _operand_in_code(op, others)
    if name is not None:
        return f"{said} ll.astype({name}, ll.{target.name}), as `{name}` is the {handles[others[0]].spec}"
    which = f", the {handles[others[0]].spec}" if len(others) == 1 else ""
    return f"{said} ll.astype(x, ll.{target.name}) on the operand that should change{which}"


def _operand_in_code(op: Op, wrong: list[int]) -> str | None:
    """How the user wrote the one operand that is wrong, if it is one of an operator's."""
    return (operand_text.operand(op.name, wrong[0], 2) or None) if len(wrong) == 1 and wrong[0] <= 1 else None


def _refusal(op: Op, accepts: str, got: DType, wrong: list[int], beside: DType | None = None) -> str:
    """Why the operands `wrong`, of dtype `got`, are refused; `beside` is the dtype of a number beside them."""
    kinds = " or ".join(KINDS[accepts]) + (" (32-bit or wider)" if accepts == "wide" else "")
    target = {"floating": "float32", "complex": "complex64", "integer": "int32", "bool": "int32"}[KINDS[accepts][0]]
    target = "bool_" if accepts == "bool" else target if beside is None else beside.name
    x = ("" if op.variadic or len(wrong) > 1 else operand_text.operand(op.name, wrong[0], len(op.operands))) or "x"
    if got.kind == "c":  # a cast would drop a part in silence
        remedy = f"write ll.real({x}), ll.imag({x}) or ll.abs({x})"
        return f"{op} needs {kinds} operands, got {got.name}; {remedy}"
    number = operand_text.whole_number_given() if target == "float32" else None
    if number is not None:
        return f"{op} needs {kinds} operands, got the int {number}; write {number}.0"
    logical = _logical_twin(op, wrong, x) if got.kind == "b" else ""
    return f"{op} needs {kinds} operands, got {got.name}; write {logical}ll.astype({x}, ll.{target}) first"


def _logical_twin(op: Op, wrong: list[int], x: str) -> str:
    """What to write for an op of numbers that was given nothing but booleans, or an empty string."""
    form = _OF_BOOLEANS.get(op.name)
    if form is None or len(wrong) < len(op.operands):  # beside a number, a truth value counts as one
        return ""
    operands = (operand_text.operands(op.name) or ("x", "y")) if len(wrong) == 2 else (x,)
    return f"{form.format(*(operands if form.startswith('ll.') else map(_as_operand, operands)))}, or "


def _as_operand(code: str) -> str:
    """Code in brackets, where it is more than a name, a call or the like: `|` binds before `>`."""
    parts = ast.parse(code, mode="eval").body
    return code if isinstance(parts, ast.Name | ast.Call | ast.Attribute | ast.Subscript) else f"({code})"
