"""Bad input: what the message says, and that nothing is left behind."""

from __future__ import annotations

import _thread
import contextlib
import gc
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import limelight as ll
from limelight import dispatch
from limelight.eager import entry
from limelight.errors import (
    ArgumentError,
    ControlFlowError,
    DeadVariableError,
    DeviceError,
    DTypeError,
    LeakedTensorError,
    LimelightError,
    RunError,
    ShapeError,
    SignatureError,
    StateCreationError,
    SymbolicValueError,
    TapeError,
)
from limelight.registry import Op

Clean = Any  # the fixture of conftest.py

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

m23, m45 = ll.ones((2, 3)), ll.ones((4, 5))
v3, i2 = ll.ones((3,)), ll.constant([1, 2])
one = ll.constant(1.0)
scalar = ll.TensorSpec((), "float32")


def line_of(f: Callable[..., Any], offset: int = 0) -> str:
    """How errors name a line of a function of this file: by default its first."""
    return f"test_bad_input.py line {f.__code__.co_firstlineno + offset}"


# --- Mistakes in single ops: the same error, in the same words, eager and staged


class Mistake(NamedTuple):
    """A function that makes a mistake, the tensors to call it with, and what it should raise."""

    make: Callable[..., Any]
    given: tuple[Any, ...]
    error: type[LimelightError]
    message: str


SHAPES = [
    Mistake(
        lambda a, b: a + b, (m23, m45), ShapeError, r"add: shapes \(2, 3\) and \(4, 5\) .* axis -2 has sizes 2 and 4"
    ),
    Mistake(lambda a, b: a @ b, (m23, m45), ShapeError, r"matmul: f32\[2,3\] @ f32\[4,5\]: .* size 3.* has 4"),
    Mistake(lambda a, b: ll.concat([a, b], axis=0), (m23, m45), ShapeError, r"concat: f32\[2,3\] and f32\[4,5\]"),
    Mistake(lambda a, b: ll.stack([a, b]), (m23, m45), ShapeError, r"stack: f32\[2,3\] and f32\[4,5\]"),
    Mistake(lambda a, b: ll.where(a > 0, a, b), (m23, m45), ShapeError, r"where: shapes \(2, 3\).*\(4, 5\)"),
    Mistake(lambda a: a.reshape((7,)), (m23,), ShapeError, r"reshape: f32\[2,3\] has 6 elements .*\(7,\)"),
    Mistake(lambda a: ll.broadcast_to(a, (2, 4)), (m23,), ShapeError, r"broadcast_to: shapes \(2, 3\) and \(2, 4\)"),
    Mistake(lambda a: ll.split(a, 4, axis=1), (m23,), ShapeError, r"split: axis 1 of f32\[2,3\] .* 4 equal parts"),
    Mistake(lambda a: ll.squeeze(a, 0), (m23,), ShapeError, r"squeeze: axis 0 of f32\[2,3\] has size 2"),
    Mistake(lambda a, b: ll.tensordot(a, b, axes=1), (m23, m45), ShapeError, r"tensordot: .*f32\[2,3\].*f32\[4,5\]"),
    Mistake(lambda a: ll.max(a[:0]), (v3,), ShapeError, r"max: f32\[0\] has no elements"),
    Mistake(lambda a: ll.zeros((-1,)) + a, (one,), ShapeError, r"sizes must not be negative, got \(-1,\)"),
    Mistake(lambda a: ll.add(a, [[1], [1, 2]]), (one,), ShapeError, "must be rectangular"),
    Mistake(lambda a: ll.sum(a, axis=5), (m23,), ArgumentError, "sum: axis 5 is out of range for a tensor of rank 2"),
    Mistake(lambda a: ll.expand_dims(a, 9), (m23,), ArgumentError, "expand_dims: axis 9 is out of range"),
    Mistake(lambda a: ll.transpose(a, (0, 0)), (m23,), ArgumentError, r"transpose: axes \(0, 0\).* f32\[2,3\]"),
    Mistake(lambda a: a[5], (m23,), ArgumentError, r"index 5 is out of bounds for axis 0 of shape \(2, 3\)"),
    Mistake(lambda a: a[0, 0, 0], (m23,), ArgumentError, r"too many indices for a tensor of shape \(2, 3\)"),
    Mistake(lambda a: ll.repeat(a, -1), (m23,), ArgumentError, "repeat: repeats must not be negative, got -1"),
]

DTYPES = [
    Mistake(
        lambda a, i: a + i,
        (v3[:2], i2),
        DTypeError,
        r"add: f32\[2\] and i32\[2\] do not mix.*ll\.astype\(x, ll\.float32",
    ),
    Mistake(lambda i: i * 0.5, (i2,), DTypeError, r"multiply: i32\[2\] and 0\.5 do not mix"),
    Mistake(lambda i: (i > 0) + i, (i2,), DTypeError, r"add: bool\[2\] and i32\[2\] do not mix.*ll\.int32"),
    Mistake(
        lambda i: ll.sqrt(i + 1),
        (i2,),
        DTypeError,
        r"sqrt needs floating .* got int32; write ll\.astype\(x, ll\.float32",
    ),
    Mistake(lambda i: ll.logical_and(i, i), (i2,), DTypeError, r"logical_and needs bool .* got int32"),
    Mistake(lambda a: ll.take(a, a, axis=0), (v3,), DTypeError, "take needs integer operands, got float32"),
    Mistake(lambda i: i + 2**40, (i2,), DTypeError, "add: 1099511627776 does not fit into int32"),
    Mistake(lambda a: a + "text", (one,), DTypeError, "cannot make a tensor of <U4 values"),
    Mistake(lambda a: a + None, (one,), DTypeError, "cannot make a tensor of object values"),
    Mistake(lambda a: a + object(), (one,), DTypeError, "cannot make a tensor of object values"),
    Mistake(lambda a: a + 2**70, (ll.constant(1, dtype="int64"),), DTypeError, "does not fit into int64"),
    Mistake(
        lambda a: a.astype("float31"), (one,), DTypeError, "'float31' is not a dtype of limelight; write one of bool"
    ),
    Mistake(lambda a: ll.astype(ll.astype(a, "complex64"), "float32"), (one,), DTypeError, r"write ll\.real\(x\)"),
    Mistake(lambda a: ll.constant([a, a]), (one,), DTypeError, r"write ll\.stack"),
    Mistake(lambda a: {a: 1}, (one,), DTypeError, r"not hashable; use t\.ref\(\)"),
    Mistake(lambda a: a.to("gpu:7"), (one,), DeviceError, "'gpu:7' does not exist here; devices here: CPU:0"),
    Mistake(lambda a: a.to("cpu::0"), (one,), DeviceError, "'cpu::0' is not a device name"),
]


@pytest.mark.parametrize("mistake", SHAPES + DTYPES, ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_mistakes_read_the_same_eager_and_staged(mistake: Mistake, clean: Clean) -> None:
    staged = ll.function(mistake.make)
    outer = ll.function(lambda *given: (staged(*given),))
    messages = []
    for run in (mistake.make, staged, outer):
        with clean(staged, outer), pytest.raises(mistake.error, match=mistake.message) as caught:
            run(*mistake.given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == messages[2]
    assert line_of(mistake.make) in messages[0]


@pytest.mark.parametrize("mistake", SHAPES[:3] + SHAPES[5:7], ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_mismatches_of_unknown_sizes_are_found_at_run_time_in_the_same_words(mistake: Mistake, clean: Clean) -> None:
    specs = [ll.TensorSpec((None,) * t.ndim, t.dtype) for t in mistake.given]
    staged = ll.function(mistake.make, input_signature=specs)
    staged.get_concrete_function()
    with pytest.raises(mistake.error) as eager:
        mistake.make(*mistake.given)
    for _ in range(2):
        with clean(staged), pytest.raises(mistake.error, match=mistake.message) as caught:
            staged(*mistake.given)
    message = str(caught.value)
    assert message.startswith(eager.value.bare)
    assert "of <lambda>" in message
    assert line_of(mistake.make) in message


@pytest.mark.parametrize("under", ["tape", "device", "cond", "while_loop", "py_func", "init_scope"])
def test_mistakes_deep_inside_leave_nothing_behind(under: str, clean: Clean) -> None:
    def fails() -> Any:
        return m23 + m45

    def deep(a: Any) -> Any:
        if under == "tape":
            with ll.GradientTape() as tape:
                tape.watch(a)
                fails()
        elif under == "device":
            with ll.device("cpu:0"), ll.device(None):
                fails()
        elif under == "cond":
            ll.cond(a > 0, lambda: ll.cond(a > 0, fails, fails), fails)
        elif under == "while_loop":
            ll.while_loop(lambda i: i < 3, lambda i: (fails(), i)[1], (0,))
        elif under == "py_func":
            ll.py_func(lambda t: fails(), [a], ll.TensorSpec((2, 3)))
        else:
            with ll.init_scope():
                fails()

    staged = ll.function(deep)
    outer = ll.function(lambda a: (staged(a),))
    for run in (deep, staged, outer):
        functions = () if under == "py_func" else (staged, outer)  # that one fails when the graph runs
        with clean(*functions), pytest.raises(ShapeError, match=r"add: shapes \(2, 3\) and \(4, 5\)") as caught:
            run(one)
        assert line_of(fails, 1) in str(caught.value)


def test_runtime_failures_name_the_way_to_the_op(clean: Clean) -> None:
    @ll.function
    def inner(a: Any, i: Any) -> Any:
        return ll.take(a, i, axis=0)

    @ll.function
    def outer(a: Any, i: Any) -> Any:
        return ll.cond(ll.sum(a) > 0, lambda: inner(a, i), lambda: a)

    good = outer(v3, ll.constant([1, 2, 0]))
    assert good.tolist() == [1.0, 1.0, 1.0]
    with clean(inner, outer), pytest.raises(RunError, match="out of bounds") as caught:
        outer(v3, ll.constant([7, 8, 9]))
    message = str(caught.value)
    assert "take(f32[3], i32[3]) of inner failed: IndexError" in message
    assert line_of(inner.python_function, 2) in message
    assert line_of(outer.python_function, 2) in message


# --- Symbolic tensors


def test_an_if_on_a_symbolic_tensor_names_the_line_and_the_way_out(clean: Clean) -> None:
    def choose(a: Any) -> Any:
        bigger = a > 0
        if bigger:
            return a
        return -a

    f = ll.function(choose)
    with clean(f), pytest.raises(SymbolicValueError, match=r"^bool\(\) \(as in `if`") as caught:
        f(one)
    message = str(caught.value)
    assert f"({line_of(choose, 2)}: if bigger:)" in message
    assert f"the result of greater, bool[] ({line_of(choose, 1)}: bigger = a > 0)" in message
    assert "ll.cond(pred, true_fn, false_fn)" in message
    assert choose(one).item() == 1.0


Leak = Callable[[Any, dict[str, Any]], Any]
LEAKS: dict[str, Leak] = {}
"""Ways to let a tensor out of its trace: bodies of staged functions, which put it into a dictionary."""


def leaking(body: Leak) -> Leak:
    LEAKS[body.__name__] = body
    return body


@leaking
def in_a_list(a: Any, out: dict[str, Any]) -> Any:
    out.setdefault("all", []).append(a * 2)
    out["leak"] = out["all"][0]
    return a


@leaking
def in_an_attribute(a: Any, out: dict[str, Any]) -> Any:
    class Holder:
        pass

    out["holder"] = Holder()
    out["holder"].leak = out["leak"] = a * 2
    return a


@leaking
def in_a_global(a: Any, out: dict[str, Any]) -> Any:
    global _leaked
    _leaked = out["leak"] = a * 2
    return a


@leaking
def by_an_exception(a: Any, out: dict[str, Any]) -> Any:
    try:
        raise KeyError(a * 2)
    except KeyError as error:
        out["leak"] = error.args[0]
    return a


@leaking
def by_a_generator(a: Any, out: dict[str, Any]) -> Any:
    def numbers() -> Iterator[Any]:
        yield a
        yield a * 2

    generator = numbers()
    doubled = [next(generator), next(generator)]
    out["leak"] = doubled[1]
    return a


@leaking
def by_a_default_argument(a: Any, out: dict[str, Any]) -> Any:
    def later(leak: Any = a * 2) -> Any:
        return leak

    out["leak"] = later.__defaults__[0]  # type: ignore[index]  # it has one
    return later()


@leaking
def from_a_loop_body(a: Any, out: dict[str, Any]) -> Any:
    def body(i: Any) -> Any:
        out["leak"] = i * 2
        return (i + 1,)

    return ll.while_loop(lambda i: i < 3, body, (a,))[0]


@leaking
def from_a_branch(a: Any, out: dict[str, Any]) -> Any:
    def branch() -> Any:
        out["leak"] = a * 2
        return a

    return ll.cond(a > 0, branch, lambda: a)


@leaking
def from_a_nested_function(a: Any, out: dict[str, Any]) -> Any:
    @ll.function
    def inner(b: Any) -> Any:
        out["leak"] = b * 2
        return b

    return inner(a)


_leaked: Any = None
USES: dict[str, Callable[[Any], Any]] = {
    "op": lambda t: t + 1,
    "reflected op": lambda t: 1 + t,
    "beside a tensor": lambda t: one + t,
    "numpy": lambda t: t.numpy(),
    "bool": lambda t: bool(t) or 1,
    "index": lambda t: t[None],
    "method": lambda t: t.sum(),
    "assign": lambda t: ll.Variable(0.0).assign(t),
    "variable": lambda t: ll.Variable(t).name,
    "another trace": lambda t: ll.function(lambda a: a + t)(one),
    "returned from another trace": lambda t: ll.function(lambda a: t)(one),
    "argument": ll.function(lambda a: a),
    "moved": lambda t: t.to("cpu:0"),
    "predicate": lambda t: ll.cond(t > 0, lambda: one, lambda: one),
}


@pytest.mark.parametrize("use", list(USES))
@pytest.mark.parametrize("leak", list(LEAKS))
def test_a_leaked_tensor_names_its_function_and_the_line_that_made_it(leak: str, use: str, clean: Clean) -> None:
    body, out = LEAKS[leak], {}
    f = ll.function(lambda a: body(a, out), name="leaky")
    f(one)
    with clean(f), pytest.raises(LeakedTensorError, match="a symbolic tensor leaked out of the function") as caught:
        USES[use](out["leak"])
    message = str(caught.value)
    assert re.search(r"the function '(leaky|body|true_fn|inner)', whose trace has ended", message)
    assert re.search(r"the result of multiply, f32\[\] \(test_bad_input.py line \d+: .*\* 2", message)
    assert "It has no value outside (test_bad_input.py line" in message
    assert "ll.Variable" in message
    assert "leaked" not in repr(out["leak"])
    assert f(one).item() in (1.0, 3.0, 2.0)  # the function itself is none the worse


def test_a_leak_used_in_the_same_function_after_its_block(clean: Clean) -> None:
    def uses(a: Any) -> Any:
        kept: list[Any] = []

        def body(i: Any) -> Any:
            kept.append(i * 2)
            return (i + 1,)

        return ll.while_loop(lambda i: i < 3, body, (a,))[0] + kept[0]

    f = ll.function(uses)
    with clean(f), pytest.raises(LeakedTensorError, match="out of the function 'body', whose trace has ended"):
        f(one)


def test_another_thread_cannot_use_a_tensor_of_a_trace(clean: Clean) -> None:
    found: list[BaseException] = []

    @ll.function
    def f(a: Any) -> Any:
        def work() -> None:
            try:
                a + 1
            except LimelightError as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return a

    with clean():
        f(one)
    assert isinstance(found[0], SymbolicValueError)
    assert "the argument `a`, f32[] belongs to the trace of 'f'" in str(found[0])


# --- Variables


def test_a_variable_on_every_call_is_refused_kept_or_not(clean: Clean) -> None:
    kept: list[Any] = []

    def thrown_away(a: Any) -> Any:
        return a * ll.Variable(1.0)

    def keeps(a: Any) -> Any:
        kept.append(ll.Variable(1.0))
        return a * kept[-1]

    for body in (thrown_away, keeps):
        f = ll.function(body)
        outer = ll.function(lambda a, f=f: f(a) + 1)
        for run in (f, outer, f):
            with clean(f, outer), pytest.raises(StateCreationError, match="creates a variable") as caught:
                run(one)
            assert line_of(body, 1) in str(caught.value)
            assert "if self.w is None" in str(caught.value)


def test_a_variable_on_a_later_call_is_refused_before_damage(clean: Clean) -> None:
    made: dict[Any, Any] = {}

    def body(a: Any) -> Any:
        if a.shape not in made:
            made[a.shape] = ll.Variable(2.0)
        return a * made[a.shape]

    f = ll.function(body)
    f(one)
    with clean(f), pytest.raises(StateCreationError, match="on a call other than its first") as caught:
        f(v3)
    assert f"{line_of(body, 2)}: made[a.shape] = ll.Variable(2.0)" in str(caught.value)
    assert list(made) == [()]
    assert f(one).item() == 2.0


def test_a_dead_variable_is_named(clean: Clean) -> None:
    held = [ll.Variable(3.0, name="weights")]
    f = ll.function(lambda a: a * held[0])
    f(one)
    held.clear()
    with clean(f), pytest.raises(DeadVariableError, match="'weights', which has been deleted") as caught:
        f(one)
    assert "test_bad_input.py line" in str(caught.value)


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_what_does_not_fit_a_variable_is_not_assigned(staged: bool, clean: Clean) -> None:
    v, i = ll.Variable([1.0, 2.0]), ll.Variable(1)
    mistakes: list[tuple[Callable[..., Any], type[Exception], str]] = [
        (lambda: v.assign(v3), ShapeError, r"assign: .*\(3,\) does not fit .*\(2,\)"),
        (lambda: v.assign_add(m23), ShapeError, r"\(2, 3\)"),
        (lambda: v.assign(i2), DTypeError, r"a int32 value does not fit a float32 variable; write ll\.astype"),
        (lambda: v.assign(np.zeros(2)), DTypeError, "float64"),
        (lambda: i.assign(0.5), DTypeError, "would lose information as int32"),
        (lambda: i.assign_sub(2**31), DTypeError, "2147483648 does not fit into int32"),
        (lambda: v.assign(None), DTypeError, "cannot make a tensor"),
    ]
    for write, error, message in mistakes:
        run = ll.function(write) if staged else write
        with clean(), pytest.raises(error, match=message) as caught:
            run()
        assert line_of(write) in str(caught.value)
    assert v.numpy().tolist() == [1.0, 2.0]
    assert i.numpy() == 1


# --- Devices


def test_unknown_and_malformed_devices_inside_a_trace(clean: Clean) -> None:
    for name, message in (
        ("gpu:7", "does not exist here"),
        ("cpu::1", "is not a device name"),
        (7, "which is a string"),
    ):

        def body(a: Any, name: Any = name) -> Any:
            with ll.device("cpu:0"), ll.device(name):
                return a + 1

        f = ll.function(body)
        for run in (f, body):
            with clean(f), pytest.raises(DeviceError, match=message) as caught:
                run(one)
            assert line_of(body, 1) in str(caught.value)


def test_device_scopes_left_out_of_order_inside_a_trace(clean: Clean) -> None:
    def body(a: Any) -> Any:
        outer, inner = ll.device("cpu:0"), ll.device(None)
        outer.__enter__()
        inner.__enter__()
        try:
            outer.__exit__(None, None, None)
        finally:
            inner.__exit__(None, None, None)
        return a

    for run in (body, ll.function(body)):
        with clean(), pytest.raises(DeviceError, match="reverse order of entering"):
            run(one)


# --- Calls


class NoHash:
    __hash__ = None  # type: ignore[assignment]  # that is the point
    __slots__ = ()


UNKEYABLE: dict[str, tuple[Any, type[Exception], str]] = {
    "set": ({1, 2}, SignatureError, r"argument `a`: a set cannot be part of a cache key.*tuple or list"),
    "frozenset": (frozenset([1]), SignatureError, "a frozenset cannot be part of a cache key"),
    "weakref": (weakref.ref(m23), SignatureError, "a ReferenceType cannot be part of a cache key"),
    "bytearray": (bytearray(b"a"), SignatureError, "a bytearray cannot be part of a cache key"),
    "object": (object(), SignatureError, "a value of type object can be keyed neither by value nor by weak reference"),
    "no weak references": (NoHash(), SignatureError, "type NoHash can be keyed neither"),
    "nested": ({"k": [1, {2}]}, SignatureError, r"argument `a\[\"k\"\]\[1\]`: a set cannot"),
    "array of strings": (np.array(["a"]), DTypeError, "argument `a`: dtype.*is not a dtype of limelight"),
    "array of objects": (np.array([None]), DTypeError, "argument `a`: .*is not a dtype"),
    "spec": (ll.TensorSpec((2,)), SignatureError, "argument `a`: a TensorSpec has no value to run on"),
}


@pytest.mark.parametrize("case", list(UNKEYABLE))
def test_arguments_that_cannot_be_keyed_are_named(case: str, clean: Clean) -> None:
    value, error, message = UNKEYABLE[case]
    f = ll.function(lambda a: one + 1)
    for call in (lambda: f(value), lambda: f(a=value), ll.function(lambda: (f(value),))):
        with clean(f), pytest.raises(error, match=message) as caught:
            call()
        assert isinstance(caught.value, TypeError)
        assert "test_bad_input.py line" in str(caught.value)
    assert f.trace_count == 0


def test_wrong_arity_reads_as_in_python_and_traces_nothing(clean: Clean) -> None:
    @ll.function
    def f(a: Any, b: Any = 1, *, c: Any) -> Any:
        return a

    for args, kwargs, message in (
        ((), {"c": 1}, "missing a required argument: 'a'"),
        ((one,), {}, "missing a required argument: 'c'"),
        ((1, 2, 3), {"c": 1}, "too many positional arguments"),
        ((1,), {"c": 1, "d": 2}, "got an unexpected keyword argument 'd'"),
        ((1,), {"a": 1, "c": 2}, "multiple values for argument 'a'"),
    ):
        with clean(f), pytest.raises(TypeError, match=rf"^f\(\) {message}"):
            f(*args, **kwargs)
    assert f.trace_count == 0
    with clean(), pytest.raises(ArgumentError, match="needs something callable, got int"):
        ll.function(3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ll.ones((2, 4)), r"argument `a` must be .*\(None, 3\).* got TensorSpec\(\(2, 4\)"),
        (ll.ones((3,)), r"argument `a` must be .*\(None, 3\)"),
        (ll.ones((2, 3), dtype="int32"), "argument `a` must be"),
        (np.ones((2, 3)), "argument `a` must be .*float64"),
        ("text", "argument `a` must be .* got str"),
        (None, "argument `a` must be"),
        ({"b": 1}, "argument `a` must be"),
    ],
)
def test_an_input_signature_is_enforced_without_tracing(value: Any, message: str, clean: Clean) -> None:
    f = ll.function(lambda a: a + 1, input_signature=[ll.TensorSpec((None, 3), "float32")])
    with clean(f), pytest.raises(SignatureError, match=message) as caught:
        f(value)
    assert "test_bad_input.py line" in str(caught.value)
    assert f.trace_count == 0
    assert f(ll.ones((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (ll.TensorSpec(()), "must be a list or tuple"),
        ([3], "holds a int"),
        ([None], "holds a NoneType"),
        ("ab", "list or tuple"),
    ],
)
def test_input_signatures_hold_specs(signature: Any, message: str, clean: Clean) -> None:
    with clean(), pytest.raises(SignatureError, match=message):
        ll.function(lambda a: a, input_signature=signature)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda a: np.ones(3), "returns a ndarray at `result`"),
        (lambda a: {"k": [a, np.float32(1)]}, r"returns a float32 at `result\[\"k\"\]\[1\]`"),
        (lambda a: (a, "text"), r"returns a str at `result\[1\]`"),
        (lambda a: object(), "returns a object at `result`"),
        (lambda a: (t for t in [a]), "returns a generator at `result`"),
        (lambda a: {1, 2}, "returns a set at `result`"),
    ],
)
def test_what_a_graph_cannot_return_is_named_by_its_place(
    result: Callable[..., Any], message: str, clean: Clean
) -> None:
    f = ll.function(result)
    with clean(f), pytest.raises(SignatureError, match=message) as caught:
        f(one)
    assert "test_bad_input.py line" in str(caught.value)
    assert len(f.trace_cache) == 0


# --- Control flow


FLOW = [
    Mistake(
        lambda a: ll.cond(a > 0, lambda: a, lambda: ll.astype(a, "int32")),
        (one,),
        ControlFlowError,
        "output 0 is f32.*i32",
    ),
    Mistake(lambda a: ll.cond(a > 0, lambda: (a, a), lambda: a), (one,), ControlFlowError, "different structures"),
    Mistake(lambda a: ll.cond(a > 0, lambda: None, lambda: a), (one,), ControlFlowError, "different structures"),
    Mistake(
        lambda a: ll.cond(a > 0, lambda: a, lambda: ll.ones((2,))),
        (one,),
        ControlFlowError,
        "dtypes and ranks must agree",
    ),
]
FLOW_ALSO_EAGERLY = [
    Mistake(
        lambda a: ll.cond(a, lambda: a, lambda: a), (one,), ControlFlowError, r"a boolean with one element, got f32\[\]"
    ),
    Mistake(lambda a: ll.cond(a > 0, lambda: a, lambda: a), (v3,), ControlFlowError, r"one element, got bool\[3\]"),
    Mistake(lambda a: ll.cond(a > 0, a, a), (one,), ArgumentError, "true_fn must be a function, got"),
    Mistake(lambda a: ll.while_loop(lambda i: i < 3, a, (a,)), (one,), ArgumentError, "body must be a function"),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i, a), (one,), ControlFlowError, "must be a tuple or list"
    ),
    Mistake(lambda a: ll.while_loop(lambda i: i, lambda i: i, (a,)), (one,), ControlFlowError, "one boolean, got f32"),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: (i, i), (a,)),
        (one,),
        ControlFlowError,
        r"structure \(\*,\) on entry and \(\(\*, \*\),\)",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, j: i < 3, lambda i, j: None, (a, a)), (one,), ControlFlowError, "got NoneType"
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i["x"] < 3, lambda i: {"y": i["x"]}, ({"x": a},)),
        (one,),
        ControlFlowError,
        r"structure \(\{x: \*\},\) on entry and",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: ll.astype(i, "float64"), (a,)),
        (one,),
        ControlFlowError,
        r"`loop_vars\[0\]` is f32\[\] on entry and f64\[\] after one iteration",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, ll.stack([j, j])), (a, a)),
        (one,),
        ControlFlowError,
        r"`loop_vars\[1\]` is f32\[\] on entry and f32\[2\] after one iteration",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i + 1, (a,), maximum_iterations=-1),
        (one,),
        ArgumentError,
        "maximum_iterations must be a number from 0 on, or None, got -1",
    ),
    Mistake(
        lambda a: ll.while_loop(lambda i: i < 3, lambda i: i + 1, (a,), shape_invariants=[(), ()]),
        (one,),
        ControlFlowError,
        "2 shape_invariants for 1 loop variables",
    ),
]


@pytest.mark.parametrize("mistake", FLOW + FLOW_ALSO_EAGERLY, ids=lambda m: re.sub(r"\W+", " ", m.message)[:30].strip())
def test_control_flow_that_does_not_add_up(mistake: Mistake, clean: Clean) -> None:
    f = ll.function(mistake.make)
    for run in (f, mistake.make) if mistake in FLOW_ALSO_EAGERLY else (f,):
        with clean(f), pytest.raises(mistake.error, match=mistake.message) as caught:
            run(*mistake.given)
        assert line_of(mistake.make) in str(caught.value)


# --- Tapes


def test_tapes_used_out_of_order(clean: Clean) -> None:
    with clean():
        tape = ll.GradientTape()
        with tape:
            tape.watch(one)
            y = one * one
            with pytest.raises(TapeError, match="recording already"), tape:
                pass
        tape.gradient(y, one)
        with pytest.raises(TapeError, match="persistent=True") as caught:
            tape.gradient(y, one)
        assert "test_bad_input.py line" in str(caught.value)
        with pytest.raises(ArgumentError, match="unconnected_gradients must be"):
            tape.gradient(y, one, unconnected_gradients="maybe")


@pytest.mark.parametrize("ending", ["close", "delete", "finish", "throw"])
@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_a_generator_suspended_in_a_tape_block(ending: str, staged: bool, clean: Clean) -> None:
    def recording(x: Any) -> Iterator[Any]:
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            yield tape, x * x
        yield None

    def run(x: Any) -> Any:
        generator = recording(x)
        tape, y = next(generator)
        z = y * x  # recorded: the block is open, if suspended
        if ending == "close":
            generator.close()
        elif ending == "finish":
            next(generator)
        elif ending == "throw":
            with contextlib.suppress(KeyError):
                generator.throw(KeyError("thrown in"))
        del generator
        assert not tape.active
        after = z * x  # not recorded
        return tape.gradient(z, x), ll.constant(0.0) if tape.gradient(after, x) is None else after

    with clean():
        found = (ll.function(run) if staged else run)(ll.constant(2.0))
    assert [t.item() for t in found] == [12.0, 0.0]


def test_a_tape_entered_in_a_trace_by_a_generator_that_outlives_it(clean: Clean) -> None:
    kept: list[Any] = []

    def recording(x: Any) -> Iterator[Any]:
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            yield y
            yield tape.gradient(y, x)

    @ll.function
    def f(x: Any) -> Any:
        kept.append(recording(x))
        return next(kept[0])

    with clean():
        assert f(ll.constant(3.0)).item() == 9.0
        assert (one + one).item() == 2.0
        with pytest.raises(LeakedTensorError):
            next(kept[0])
    with clean():
        f.clear_cache()
        kept.clear()
        f(ll.constant(3.0))
        kept.pop().close()


# --- Exceptions and interrupts, in the middle of everything


def _raiser(error: BaseException) -> Callable[..., Any]:
    def fail(*args: Any) -> Any:
        raise error

    return fail


ERRORS = [KeyboardInterrupt(), ZeroDivisionError("z"), SystemExit(1), StopIteration(), GeneratorExit(), MemoryError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_exceptions_in_the_middle_of_a_trace(error: BaseException, clean: Clean) -> None:
    fail = [True]

    def body(a: Any) -> Any:
        with ll.device("cpu:0"), ll.GradientTape() as tape:
            tape.watch(a)
            b = ll.cond(a > 0, lambda: a * 2, lambda: a)
            if fail[0]:
                raise error
        return tape.gradient(b, a)

    f = ll.function(body)
    outer = ll.function(lambda a: ll.while_loop(lambda i: i < 2, f, (a,))[0])
    for run in (f, outer, f):
        with clean(f, outer), pytest.raises(type(error)) as caught:
            run(one)
        assert caught.value is error
    fail[0] = False
    assert f(one).item() == 2.0
    assert outer(one).item() == 2.0


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("where", ["forward", "backward", "second order"])
def test_exceptions_in_the_middle_of_a_run(error: BaseException, where: str, clean: Clean) -> None:
    fail = [False]

    def kernel(xp: Any, x: Any) -> Any:
        if fail[0]:
            raise error
        return x * 1

    broken = entry(Op("broken", inputs="x", infer=lambda x: x, kernel=kernel, vjp={"x": lambda g: broken(g) * 1}))
    f = ll.function(lambda a: broken(a) * a)

    def use(g: Callable[..., Any]) -> Any:
        with ll.GradientTape() as outer:
            outer.watch(one)
            with ll.GradientTape() as tape:
                tape.watch(one)
                fail[0] = where == "forward"
                y = g(one)
            fail[0] = where == "backward"
            dy = tape.gradient(y, one)
        fail[0] = where == "second order"
        return outer.gradient(dy, one)

    assert use(f).item() == 2.0
    for g in (f, f.python_function):
        expected = RunError if isinstance(error, Exception) else type(error)
        with clean(f), pytest.raises(expected) as caught:
            use(g)
        assert caught.value is error or caught.value.__cause__ is error
        fail[0] = False
        assert use(g).item() == 2.0
    assert f.trace_count == 1


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_exceptions_in_a_gradient_rule(error: BaseException, clean: Clean) -> None:
    fail = [True]

    def rule(g: Any) -> Any:
        if fail[0]:
            raise error
        return g * 3

    ruled = entry(Op("ruled", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x * 3, vjp={"x": rule}))

    def slope(g: Callable[..., Any]) -> Any:
        with ll.GradientTape() as tape:
            tape.watch(one)
            y = g(one)
        return tape.gradient(y, one)

    for g in (ruled, ll.function(ruled), ll.function(lambda a: slope(ruled) * a)):
        fail[0] = True
        with clean(), pytest.raises(type(error)) as caught:
            slope(g)
        assert caught.value is error
        fail[0] = False
        assert slope(g).item() == 3.0


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_exceptions_in_a_py_func(error: BaseException, clean: Clean) -> None:
    calls = [0]

    def sometimes(t: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            raise error
        return t * 2

    f = ll.function(lambda a: ll.while_loop(lambda i: i < 100, lambda i: ll.py_func(sometimes, [i], scalar), (a,))[0])

    def slope() -> Any:
        with ll.GradientTape() as tape:
            tape.watch(one)
            y = f(one)
        return tape.gradient(y, one)

    with clean(), pytest.raises(type(error)) as caught:
        slope()
    assert caught.value is error
    assert slope().item() == 128.0
    assert f.trace_count == 1


@pytest.mark.parametrize("what", ["eager", "staged", "tape", "loop", "python"])
def test_a_real_interrupt_in_the_middle_of_work(what: str, clean: Clean) -> None:
    """Control-C, as a shell sends it: at whatever instruction the engine is just executing."""
    a = ll.ones((200,))
    step = ll.function(lambda t: ll.tanh(t * 2) + t)
    loop = ll.function(lambda t: ll.while_loop(lambda i, u: i < 10**9, lambda i, u: (i + 1, ll.tanh(u)), (0, t))[1])
    step(a)
    loop.get_concrete_function(a)

    def work() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if what == "eager":
                ll.tanh(a * 2) + a
            elif what == "staged":
                step(a)
            elif what == "loop":
                loop(a)
            elif what == "python":
                ll.function(lambda t: ll.tanh(t * 2))(a)
            else:
                with ll.GradientTape() as tape:
                    tape.watch(a)
                    y = ll.sum(step(a))
                tape.gradient(y, a)

    with clean(step, loop), pytest.raises(KeyboardInterrupt):
        timer = threading.Timer(0.2, _thread.interrupt_main)
        timer.start()
        try:
            work()
        finally:
            timer.cancel()
    assert step(a).shape == (200,)


def test_broken_listeners_break_nothing(clean: Clean) -> None:
    with clean():
        subscription = ll.events.listen(_raiser(ValueError("a broken view")), ll.events.OpRan, ll.events.Traced)
        with pytest.warns(RuntimeWarning, match="a broken view"):
            assert ll.function(lambda a: a + 1)(one).item() == 2.0
        assert (one + one).item() == 2.0
        subscription.close()
    gc.collect()
    assert dispatch.active == []
