"""Entry points: what public functions call ops through.

An entry point takes the shortest path when nothing special is going on (`dispatch.active` is empty, operands are CPU:0
tensors of one accepted dtype): two class tests, two identities of dtypes, `active`, two identities of devices, the
kernel, one handle; for `a + b` on ten numbers that is 2.3 to 2.6 times NumPy's own call. It does the same when all that
is going on is an observer, a tape, which it then tells: 5 times NumPy's call, where going through `dispatch.apply`
takes 10. Anything else, an error too, goes the longer way, which may take its time: operands are prepared, and the
innermost interpreter of this thread runs the op.

A variable takes the same path as its value: its array where nobody watches, else the tensor that the tape has read of
it already, for one call more.

The closures below repeat a few lines, because a shared helper would cost as much as the kernels they call: a call of a
Python function more is 50 to 100 ns of the 700 that an addition takes. `tests/test_benchmarks.py` counts the Python
functions on each of these paths.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from limelight.core import dtypes
from limelight.core.devices import CPU0
from limelight.core.dispatch import active, apply, current, local, scopes
from limelight.core.dtypes import DType, accepted, float32
from limelight.core.eager.interpreter import explain
from limelight.core.eager.operands import BESIDE_FLOATS, prepare
from limelight.core.op import Op
from limelight.core.tensor import Tensor, as_tensor, wrap
from limelight.errors import LimelightError

_WEAK: Final = {  # beside which dtypes a Python scalar takes on theirs, in NumPy as well as here
    int: frozenset(d for d in dtypes.ALL if d not in (dtypes.bool_, dtypes.bfloat16)),  # NumPy 2.0 makes it float32
    float: frozenset(d for d in dtypes.ALL if dtypes.is_inexact(d) and d != dtypes.bfloat16),
}
_EXACT: Final = 2**24  # float32 holds all integers below
EntryPoint: TypeAlias = Callable[..., Tensor]
_blank: Final = functools.partial(object.__new__, Tensor)  # quicker than to look both up at each call

assert np.dtype("float32") is float32, "hot paths compare dtypes by identity"


_op_of: Final[dict[Any, Op]] = {}
"""The ops of binary entry points."""


def entry_point(op: Op, of_complex: Op | None = None) -> EntryPoint:
    """What a public function calls: `run(x, *attrs)`, `run(x, y)`, or in general `run((x, y, z), *attrs)`.

    `of_complex` takes over for complex operands of an op with one input, where NumPy's function would not do.
    """
    simple = _observable(op) and not op.variadic
    if simple and not op.operands:
        return _nullary(op)
    if op.variadic and op.direct:
        return _variadic(op)
    if simple and len(op.operands) == 1 and op.operands[0].accepts is None:
        return _unary_with_attrs(op) if op.attrs else _unary(op, of_complex)
    if simple and len(op.operands) == 2 and not op.attrs and all(o.accepts is None for o in op.operands):
        run = _binary(op)
        _op_of[run] = op
        return run
    return _general(op)


def entry_point_of_many(op: Op) -> Callable[..., tuple[Tensor, ...]]:
    """The same for an op with several outputs: `run((x, y, z), *attrs)`."""
    return _general(op)


def _observable(op: Op) -> bool:
    """Whether running the kernel is all there is to the op, so that an observer may be told afterwards."""
    return op.direct and op.effect is None and op.taped is None


def _usual(op: Op) -> DType | None:
    """The dtype that most operands have, if accepted: known by identity, where hashing one takes ten times as long."""
    return float32 if float32 in op.accepts else None


def _nullary(op: Op) -> Callable[..., Any]:
    kernel = op.kernel_on("numpy")

    def run(inputs: tuple[()], *attrs: Any) -> Any:
        if active and (scopes or local.observer is None):
            return apply(op, (), attrs)
        try:
            r = kernel(*attrs)
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, (), attrs, error)
        t = _blank()
        t._data = r
        t._device = CPU0
        t._uid = 0
        return t

    return run


def _unary(op: Op, of_complex: Op | None = None) -> Callable[[Any], Any]:
    kernel, accepts, usual, recipes = op.kernel_on("numpy"), op.accepts, _usual(op), op.recipes

    def run(x: Any) -> Any:
        observer = None
        if active:
            observer = local.observer
            if scopes or observer is None:
                return _unusual_input(op, of_complex, run, x)
        if type(x) is Tensor:
            a = x._data
        elif type(x) not in variables:
            return _unusual_input(op, of_complex, run, x)
        elif observer is None:
            a = x._data.array
        else:
            x = observer.observe_read(x)
            a = x._data
        d = a.dtype
        if x._device is not CPU0 or (d is not usual and d not in accepts):
            return _unusual_input(op, of_complex, run, x)
        try:
            r = kernel(a)
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, (as_tensor(x),), (), error)
        t = _blank()
        t._data = r
        t._device = CPU0
        t._uid = 0
        if observer is not None:
            observer.observe(recipes, x, (), x._uid, 0, t)
        return t

    return run


def _unusual_input(op: Op, of_complex: Op | None, run: Callable[[Any], Any], x: Any) -> Any:
    """The slow way of a unary entry, for other interpreters and for an operand that must be made ready."""
    if type(x) is Tensor and x._data.dtype in op.accepts:
        return apply(op, (x,))
    if type(x) in structured:
        return structured[type(x)](op, (), run, (x,))
    if of_complex is not None:
        x = read_operand(x) if type(x) in variables else as_tensor(x)
        op = of_complex if x.dtype.kind == "c" else op
    return apply(op, _prepared(op, (x,)))


def _unary_with_attrs(op: Op) -> Callable[..., Any]:
    kernel, accepts, usual, recipes = op.kernel_on("numpy"), op.accepts, _usual(op), op.recipes
    no_axis, at = op.axis_at is None, op.axis_at or 0

    def run(x: Any, *attrs: Any) -> Any:
        observer = None
        if active:
            observer = local.observer
            if scopes or observer is None:
                return _unusual_with_attrs(op, run, x, attrs)
        if type(x) is Tensor:
            a = x._data
        elif type(x) not in variables:
            return _unusual_with_attrs(op, run, x, attrs)
        elif observer is None:
            a = x._data.array
        else:
            x = observer.observe_read(x)
            a = x._data
        d = a.dtype
        scalar_axis = not (a.ndim or no_axis or attrs[at] is None)  # scalars have no axis
        if x._device is not CPU0 or (d is not usual and d not in accepts) or scalar_axis:
            return _unusual_with_attrs(op, run, x, attrs)
        try:
            r = kernel(a, *attrs)
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, (as_tensor(x),), attrs, error)
        t = _blank()
        t._data = r
        t._device = CPU0
        t._uid = 0
        if observer is not None:
            observer.observe(recipes, x, attrs, x._uid, 0, t)
        return t

    return run


def _unusual_with_attrs(op: Op, run: Callable[..., Any], x: Any, attrs: tuple[Any, ...]) -> Any:
    """`_unusual_input` for an op with parameters."""
    if type(x) is Tensor and x._data.dtype in op.accepts:
        return apply(op, (x,), attrs)
    if type(x) in structured:
        return structured[type(x)](op, attrs, lambda x: run(x, *attrs), (x,))
    return apply(op, _prepared(op, (x,)), attrs)


def _binary(op: Op, reflected: str = "") -> Callable[[Any, Any], Any]:  # noqa: C901  # its closure's branches
    """`run(x, y)`; as an operator it leaves an operand that it does not know to that one's method `reflected`."""
    kernel, accepts, usual, recipes = op.kernel_on("numpy"), op.accepts, _usual(op), op.recipes
    weak = {kind: accepts & beside for kind, beside in _WEAK.items()}

    def run(x: Any, y: Any) -> Any:  # noqa: C901, PLR0912  # a helper for operands would take a tenth of an addition
        observer = None
        if active:
            observer = local.observer
            if scopes or observer is None:
                return _unusual(op, reflected, run, x, y)
        if type(x) is Tensor:
            a = x._data
        elif type(x) not in variables:
            return _beside_scalar(op, kernel, weak, observer, x, y, reflected, run)
        elif observer is None:
            a = x._data.array
        else:
            x = observer.observe_read(x)
            a = x._data
        if type(y) is Tensor:
            b = y._data
        elif type(y) not in variables:
            return _beside_scalar(op, kernel, weak, observer, x, y, reflected, run)
        elif observer is None:
            b = y._data.array
        else:
            y = observer.observe_read(y)
            b = y._data
        d = a.dtype
        if d is not b.dtype or (d is not usual and d not in accepts) or x._device is not CPU0 or y._device is not CPU0:
            return _unusual(op, reflected, run, x, y)
        try:
            r = kernel(a, b)
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, (as_tensor(x), as_tensor(y)), (), error)
        t = _blank()
        t._data = r
        t._device = CPU0
        t._uid = 0
        if observer is not None:
            observer.observe(recipes, x, y, x._uid, y._uid, t)
        return t

    return run


def _unusual(op: Op, reflected: str, run: Callable[..., Any], x: Any, y: Any) -> Any:
    """The slow way of a binary entry: for other interpreters, and operands to be made ready or unknown to `op`."""
    if type(x) in variables and isinstance(y, (Tensor, *variables)):
        x = read_operand(x)
    if type(y) in variables and isinstance(x, Tensor):
        y = read_operand(y)
    if type(x) is Tensor and type(y) is Tensor:
        d = x._data.dtype
        if d is y._data.dtype and d in op.accepts:
            return apply(op, (x, y))
    elif type(x) in structured or type(y) in structured:
        return (structured.get(type(x)) or structured[type(y)])(op, (), run, (x, y))
    return NotImplemented if reflected and _answers_itself(y, reflected) else apply(op, _prepared(op, (x, y)))


def _answers_itself(y: Any, reflected: str) -> bool:
    """Whether `y` is no operand of ours, and has the method that Python asks when ours gives up."""
    if isinstance(y, (Tensor, *_CONVERTED)) or not hasattr(type(y), reflected):
        return False
    return not any([hasattr(y, name) for name in _OFFERS])  # noqa: C419  # few


_CONVERTED: Final = (bool, int, float, complex, str, bytes, list, tuple)
_OFFERS: Final = ("dtype", "__array__", "__array_interface__", "__as_tensor__", "__dlpack__")


def _beside_scalar(
    op: Op, kernel: Callable[[Any, Any], Any], weak: dict[type, frozenset[DType]], observer: Any, x: Any, y: Any,
    reflected: str, run: Callable[..., Any],
) -> Any:  # fmt: skip
    """The op on a CPU:0 tensor beside a Python scalar that takes on its dtype; the slow way for anything else."""
    ahead = type(x) is Tensor or type(x) in variables
    tensor, scalar = (x, y) if ahead else (y, x)
    if type(scalar) not in weak:
        return _unusual(op, reflected, run, x, y)
    if type(tensor) is not Tensor:
        if type(tensor) not in variables:
            return _unusual(op, reflected, run, x, y)
        tensor = _unwatched(tensor) if observer is None else observer.observe_read(tensor)
        x, y = (tensor, scalar) if ahead else (scalar, tensor)
    if tensor._device is not CPU0:
        return _unusual(op, reflected, run, x, y)
    a = tensor._data
    d = a.dtype
    if d not in weak[type(scalar)]:
        return _unusual(op, reflected, run, x, y)
    try:
        operand = _float32(scalar) if d is float32 else scalar
        r = kernel(a, operand) if ahead else kernel(operand, a)
    except (ArithmeticError, AttributeError, RuntimeWarning, TypeError, ValueError):
        return _unusual(op, reflected, run, x, y)  # which says what is wrong
    t = _blank()
    t._data = r
    t._device = CPU0
    t._uid = 0
    if observer is not None:
        uid = tensor._uid
        observer.observe(op.recipes, x, y, uid if ahead else 0, 0 if ahead else uid, t)
    return t


_known: Final[dict[float, Any]] = {}


def _float32(scalar: float) -> Any:
    """`scalar` as an array, which NumPy takes up twice as fast. Zeros stay scalars: there are two, which are equal."""
    array = _known.get(scalar)
    if array is None and scalar != 0:
        if len(_known) > 1000:
            _known.clear()
        array = _known[scalar] = np.array(scalar, float32)
    return scalar if array is None else array


def _variadic(op: Op) -> Callable[..., Any]:
    kernel, accepts, usual, observable = op.kernel_on("numpy"), op.accepts, _usual(op), _observable(op)

    def run(inputs: tuple[Any, ...], *attrs: Any) -> Any:
        shared: Any = None
        arrays = []
        for x in inputs:
            if type(x) is not Tensor or x._device is not CPU0:
                values = _values_of(inputs)
                return _unusual_inputs(op, run, inputs, attrs) if values is inputs else run(values, *attrs)
            a = x._data
            if a.dtype is not shared:
                if shared is not None:
                    return apply(op, _prepared(op, inputs), attrs)
                shared = a.dtype
            arrays.append(a)
        if shared is not usual and shared not in accepts:
            return apply(op, _prepared(op, inputs), attrs)
        observer = None
        if active:
            observer = local.observer if observable else None
            if scopes or observer is None:
                return apply(op, inputs, attrs)
        try:
            out = wrap(kernel(*arrays, *attrs))
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, inputs, attrs, error)
        if observer is not None:
            observer.observe_many(op, inputs, attrs, out)
        return out

    return run


def _general(op: Op) -> Callable[..., Any]:
    if not (op.direct or op.multiple) or any(o.accepts == "var" for o in op.operands):
        return lambda inputs, *attrs: apply(op, _prepared(op, inputs), attrs)
    kernel, multiple, observable = op.kernel_on("numpy"), op.multiple, _observable(op)
    needs: Any = [(op.accepts if o.accepts is None else accepted(o.accepts), o.accepts is None) for o in op.operands]
    if op.variadic:
        needs = itertools.repeat((op.accepts, True))

    def run(inputs: tuple[Any, ...], *attrs: Any) -> Any:
        arrays = _arrays(inputs, needs)
        if arrays is None and (values := _values_of(inputs)) is not inputs:
            inputs, arrays = values, _arrays(values, needs)
        if arrays is None:
            return _unusual_inputs(op, run, inputs, attrs)
        observer = None
        if active:
            observer = local.observer if observable else None
            if scopes or observer is None:
                return apply(op, inputs, attrs)
        try:
            result = kernel(*arrays, *attrs)
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, inputs, attrs, error)
        if multiple:
            return tuple([wrap(r) for r in result])
        out = wrap(result)
        if observer is not None:
            observer.observe_many(op, inputs, attrs, out)
        return out

    return run


variables: Final[set[type]] = set()
"""Classes of operands that are used as their value is (see `read_as_operand`)."""
structured: Final[dict[type, Callable[..., Any]]] = {}
"""Classes of operands that are no value but a structure of several, with what computes for them:
`compute(op, attrs, run, inputs)`, where `run(*inputs)` is the op on other inputs with the same parameters."""
_operators: Final[dict[str, Callable[..., Any]]] = {}


def read_operand(variable: Any) -> Tensor:
    """The value of a variable that is an operand: not for code of the user's, as it may be that of other operands."""
    if not active:
        return _unwatched(variable)
    observer = local.observer
    read = current().read_operand if scopes or observer is None else observer.observe_read
    value: Tensor = read(variable)
    return value


def _unwatched(variable: Any) -> Tensor:
    """The value where nobody watches: a variable keeps an array that is replaced, never written into."""
    return wrap(variable._data.array, variable._device)


def _values_of(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs with values for variables, where these may be all that keeps an op from the short way; else the same."""
    for x in inputs:
        if type(x) in variables:
            break
    else:
        return inputs
    read = _unwatched
    if active:
        observer = local.observer
        if scopes or observer is None:
            return inputs
        read = observer.observe_read
    return tuple([read(x) if type(x) in variables else x for x in inputs])


def _unusual_inputs(op: Op, run: Callable[..., Any], inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
    """The slow way of an entry for many operands, with all made ready."""
    for x in inputs:
        if type(x) in structured:
            return structured[type(x)](op, attrs, lambda *xs: run(xs, *attrs), inputs)
    return apply(op, _prepared(op, inputs), attrs)


def _prepared(op: Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands ready for the innermost interpreter, with the values of variables where it does not want these."""
    for x in inputs:
        if type(x) in variables:
            wants = [operand.accepts == "var" for operand in op.operands]  # none for any number of inputs
            wants += [False] * (len(inputs) - len(wants))
            inputs = tuple(
                [read_operand(x) if type(x) in variables and not v else x for x, v in zip(inputs, wants, strict=False)]
            )
            break
    return prepare(op, inputs)


def _arrays(inputs: tuple[Any, ...], needs: Any) -> list[Any] | None:
    """The arrays of operands that need no preparation, None when one does: `needs` are (dtypes, is it uniform?).

    A Python number beside tensors of floats needs none either: it takes on their dtype.
    """
    arrays = []
    shared, number = None, False
    for x, (accepts, uniform) in zip(inputs, needs, strict=False):
        if type(x) is not Tensor or x._device is not CPU0:
            if uniform and (type(x) is float or (type(x) is int and -_EXACT < x < _EXACT)):
                number = True
                arrays.append(x)
                continue
            return None
        a = x._data
        d = a.dtype
        if not uniform:
            if d not in accepts:
                return None
        elif d is not shared:
            if shared is not None or d not in accepts:
                return None
            shared = d
        arrays.append(a)
    return None if number and shared not in BESIDE_FLOATS else arrays


def operators(run: Callable[[Any, Any], Any], name: str) -> None:
    """Attaches a binary entry to tensors and variables as the operator `name` ("add" makes __add__ and __radd__)."""

    def reflected(self: Any, other: Any) -> Any:
        return run(other, self)

    op = _op_of.get(run)
    method = run if op is None else _binary(op, f"__r{name}__")
    _operators[f"__{name}__"], _operators[f"__r{name}__"] = method, reflected
    for operand in (Tensor, *variables, *structured):
        setattr(operand, f"__{name}__", method)
        setattr(operand, f"__r{name}__", reflected)


def read_as_operand(cls: type) -> None:
    """Makes the instances of `cls`, which have `read_value`, operands that stand for their value: variables.

    Those of a class in `structured` become operands for which that computes.
    """
    if cls not in structured:
        variables.add(cls)
    for name, method in _operators.items():
        setattr(cls, name, method)
