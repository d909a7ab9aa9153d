"""Calls that cannot be: arguments, signatures, results, variables, devices; and nothing left behind."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.core import op
from limelight.errors import (
    ArgumentError,
    DeadVariableError,
    DeviceError,
    DTypeError,
    ShapeError,
    SignatureError,
    StateCreationError,
    SymbolicValueError,
)

Clean = Any  # the fixture of conftest.py

pytestmark = pytest.mark.usefixtures("retraces_are_meant")

m23 = ll.ones((2, 3))
v3, i2 = ll.ones((3,)), ll.constant([1, 2])
one = ll.constant(1.0)
scalar = ll.TensorSpec((), "float32")


def line_of(f: Callable[..., Any], offset: int = 0) -> str:
    """How errors name a line of a function of this file: by default its first."""
    return f"test_bad_calls.py line {f.__code__.co_firstlineno + offset}"


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


def test_computing_an_initial_value_has_no_effect_of_its_own() -> None:
    counter, made, called = ll.Variable(0.0), [], []

    @ll.function
    def f(a: Any) -> Any:
        counter.assign_add(1.0)
        ll.py_func(lambda t: called.append(t.item()), [a], None)
        if not made:
            made.append(ll.Variable(a * 2 + ll.random.uniform(())))
        return a * made[0]

    f(ll.constant(3.0))
    assert 6.0 <= made[0].numpy() < 7.0
    assert (counter.numpy(), called) == (1.0, [3.0])
    f(ll.constant(4.0))
    assert (counter.numpy(), called) == (2.0, [3.0, 4.0])


def test_initial_values_that_depend_on_effects_are_refused(clean: Clean) -> None:
    state = ll.Variable(1.0)

    def after_a_write(a: Any) -> Any:
        state.assign_add(a)
        return ll.Variable(a + state)

    def of_a_write(a: Any) -> Any:
        return ll.Variable(state.assign_add(a) * 2)

    def of_python(a: Any) -> Any:
        return ll.Variable(ll.py_func(lambda t: t, [a], scalar))

    for body in (after_a_write, of_a_write, of_python):
        f = ll.function(body)
        with clean(f), pytest.raises(SymbolicValueError, match="the initial value of a variable") as caught:
            f(one)
        assert "test_bad_calls.py line" in str(caught.value)
    assert state.numpy() == 1.0


def test_a_dead_variable_is_named(clean: Clean) -> None:
    held = [ll.Variable(3.0, name="weights")]
    f = ll.function(lambda a: a * held[0])
    f(one)
    held.clear()
    with clean(f), pytest.raises(DeadVariableError, match="'weights', which has been deleted") as caught:
        f(one)
    assert "test_bad_calls.py line" in str(caught.value)


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_what_does_not_fit_a_variable_is_not_assigned(staged: bool, clean: Clean) -> None:
    v, i, flag = ll.Variable([1.0, 2.0]), ll.Variable(1), ll.Variable(True)
    mistakes: list[tuple[Callable[..., Any], type[Exception], str]] = [
        (lambda: v.assign(v3), ShapeError, r"assign: .*\(3,\) does not fit .*\(2,\)"),
        (lambda: v.assign_add(m23), ShapeError, r"\(2, 3\)"),
        (lambda: flag.assign_sub(True), DTypeError, r"a bool variable is no number; write v\.assign\("),
        (lambda: v.assign(i2), DTypeError, r"a value of int32 does not fit a variable of float32; write ll\.astype"),
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


UNKEYABLE: dict[str, tuple[Any, type[Exception], str]] = {
    "set": ({1, 2}, SignatureError, r"argument `a`: a set cannot be part of a cache key.*tuple or list"),
    "frozenset": (frozenset([1]), SignatureError, "a frozenset cannot be part of a cache key"),
    "weakref": (weakref.ref(m23), SignatureError, "a ReferenceType cannot be part of a cache key"),
    "bytearray": (bytearray(b"a"), SignatureError, "a bytearray cannot be part of a cache key"),
    "iterator": (iter([1]), SignatureError, r"an iterator \(list_iterator\) cannot .*f\(next\(iterator\)\)"),
    "items": ({}.items(), SignatureError, "a dict_items cannot be part of a cache key"),
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
        assert "test_bad_calls.py line" in str(caught.value)
    assert f.trace_count == 0


@pytest.mark.parametrize(
    "default", [one * 5, ll.Variable(5.0), [ll.Variable(5.0)], (one * 5,), 5.0], ids=lambda d: type(d).__name__
)
def test_defaults_count_on_every_call(default: Any) -> None:
    f = ll.function(lambda a, b=default: a + (b[0] if isinstance(b, list | tuple) else b))
    assert [f(one).item() for _ in range(3)] == [6.0] * 3
    assert f(one, default).item() == f(a=one).item() == 6.0
    assert f.trace_count == 1


def test_a_default_that_is_changed_is_seen() -> None:
    sizes = [1, 2]
    f = ll.function(lambda a, sizes=sizes: a * len(sizes))
    assert [f(one).item(), f(one).item()] == [2.0, 2.0]
    sizes.append(3)
    assert [f(one).item(), f(one).item()] == [3.0, 3.0]


def test_numbers_given_for_specs_are_tensors_on_every_call() -> None:
    f = ll.function(lambda a: a + 1, input_signature=[scalar])
    assert [f(3).item(), f(3).item(), f(3).item(), f(one).item(), f(2.5).item()] == [4.0, 4.0, 4.0, 2.0, 3.5]


def test_wrong_arity_reads_as_in_python_and_traces_nothing(clean: Clean) -> None:
    @ll.function
    def f(a: Any, b: Any = 1, *, c: Any) -> Any:
        return a

    for args, kwargs, message in (
        ((), {"c": 1}, "missing 1 required positional argument: 'a'"),
        ((one,), {}, "missing 1 required keyword-only argument: 'c'"),
        (
            (1, 2, 3),
            {"c": 1},
            r"takes from 1 to 2 positional arguments but 3 positional arguments \(and 1 keyword-only .*\) were given",
        ),
        ((1,), {"c": 1, "d": 2}, "got an unexpected keyword argument 'd'"),
        ((1,), {"a": 1, "c": 2}, "got multiple values for argument 'a'"),
    ):
        with clean(f), pytest.raises(TypeError, match=rf"<locals>.f\(\) {message}$"):
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
    assert "test_bad_calls.py line" in str(caught.value)
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
        (lambda a: {"k": [a, np.array(1)]}, r"returns a ndarray at `result\[\"k\"\]\[1\]`"),
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
    assert "test_bad_calls.py line" in str(caught.value)
    assert len(f.trace_cache) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jit_compile": "banana"}, "jit_compile must be True, False or None, got 'banana'"),
        ({"autograph": 1}, "autograph must be True, False or None, got 1"),
    ],
)
def test_options_of_other_values_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        ll.function(**options)(lambda x: x)


def test_options_that_ask_for_nothing_are_accepted():
    f = ll.function(autograph=None, jit_compile=False)(lambda x: x + 1)
    assert f(ll.constant(1)).item() == 2


def test_functions_of_numpy_that_take_any_array_take_tensors():
    x = ll.constant([[1.0, 2.0]])
    assert np.allclose(x, [[1, 2]])
    assert np.concatenate([x, np.ones((1, 2))]).tolist() == [[1, 2], [1, 1]]
    assert np.linalg.norm(x) == pytest.approx(5**0.5)
    assert np.shape(x) == (1, 2)
    with pytest.raises(SymbolicValueError, match=r"write ll\.allclose"):
        ll.function(lambda t: np.allclose(t, t))(x)


def test_an_op_may_be_defined_again_by_its_own_module_only():
    def defined(module):
        scope = {"__name__": module, "defop": op.defop}
        exec("op = defop('made_twice', inputs='x', infer=None, kernel=None, why_no_gradient='a test')", scope)
        return scope["op"]

    try:
        first = defined("one")
        assert op.get("made_twice") is first
        second = defined("one")
        assert op.get("made_twice") is second
        with pytest.raises(ArgumentError, match="op made_twice: one has defined an op of this name"):
            defined("another")
        assert op.get("made_twice") is second
    finally:
        op._ops.pop("made_twice")
        op._homes.pop("made_twice")
