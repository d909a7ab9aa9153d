"""What messages about converted code say of the user's names: before and after, here and there, and what to write."""

# ruff: noqa: SIM108  # the statements are what is tested

import dataclasses
import functools

import pytest

import limelight as ll
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)


def int_or_float(x):
    total = 1
    if x > 0:
        total = ll.constant(2)
    else:
        total = x * 2
    return total


def flag_or_count(x):
    if x > 0:
        ok = True
    else:
        ok = 0
    return ok


def function_or_function(x):
    if x > 0:
        f = abs
    else:
        f = lambda v: v  # noqa: E731
    return f(x)


def skipped_by_continue(x):
    y = 0
    for v in ll.stack([x, -x]):
        if v > 1:
            continue
        y = v * 2
    return y


def none_at_the_end(x):
    for v in ll.stack([x, -x]):
        if v > 2:
            return v
    return None


def changes_after_a_return(x):
    seen = []
    if x > 0:
        return x
    seen.append(x)
    return seen[0]


def best_so_far(x):
    best = None
    while x > 0:
        if best is None or x < best:
            best = x
        x = x - 1
    return best


class Plain:
    def __init__(self, v):
        self.v = v


def object_after_object(x):
    p = Plain(x)
    while p.v < 10:
        p = Plain(p.v * 2)
    return p.v


MESSAGES = {
    int_or_float: r"`total` is i32\[\] in the `if` branch \(.*: total = ll.constant\(2\)\) and f32\[\] in the `else` "
    r"branch .*: write `total = ll.astype\(total, ll.float32\)` in the `if` branch$",
    flag_or_count: r"`ok` is bool\[\] .* i32\[\] .*: write `ok = ll.astype\(ok, ll.int32\)` in the `if` branch$",
    function_or_function: r"`f` is a builtin.* and a function .*: call it on both sides, and choose among the results",
    skipped_by_continue: r"`y` is f32\[\] without an earlier `continue` \(.*y = v \* 2\) and i32\[\] with it; .* write "
    r"`y = ll.astype\(y, ll.float32\)` before it$",
    none_at_the_end: r"the value returned is None at the later `return` \(.*return None\) and f32\[\] at an earlier "
    r"one; .*choose among tensors, as ll.zeros\(\(\), dtype=ll.float32\)",
    changes_after_a_return: r"`seen` is \[\] in the `if` branch and \[\*\] after it",
    best_so_far: r"`best` is None on entry of this `while` loop and f32\[\] .*begin with a tensor, as ll.zeros\(\(\),",
    object_after_object: r"`p` is a Plain object on entry .* and another Plain after one .*make the class a dataclass",
}


@pytest.mark.parametrize("f", MESSAGES, ids=lambda f: f.__name__)
def test_names_what_it_is_before_and_after_and_what_to_write(f):
    with pytest.raises(ControlFlowError, match=MESSAGES[f]) as caught:
        staged(f)(ll.constant(2.0))
    assert "test_messages.py line" in str(caught.value)


def test_the_advice_works():
    def int_or_float(x):
        if x > 0:
            total = ll.constant(2)
            total = ll.astype(total, ll.float32)
        else:
            total = x * 2
        return total

    @dataclasses.dataclass
    class Point:
        v: ll.Tensor

    def doubled(x):
        p = Point(x)
        while p.v < 10:
            p = Point(p.v * 2)
        return p.v

    assert [staged(int_or_float)(ll.constant(x)).item() for x in (1.0, -1.0)] == [2.0, -2.0]
    assert staged(doubled)(ll.constant(3.0)).item() == 12.0


def test_zeros_of_both_signs_are_two_values():
    def f(x):
        if x > 0:
            y = 0.0
        else:
            y = -0.0
        return y

    assert [str(staged(f)(ll.constant(x)).item()) for x in (1.0, -1.0)] == ["0.0", "-0.0"]


class Sized(Plain):
    """What Python itself calls is staged where it is decorated."""

    def __init__(self, v):
        super().__init__(v if v > 0 else -v)
        self.kind = 1 if v > 2 else 0

    @property
    @ll.function(autograph=True)
    def rest(self):
        return self.v if self.v < 3 else 3.0

    @ll.function(autograph=True)
    def __add__(self, other):
        if other > 0:
            return self.v + other
        return self.v


class Undecorated(Plain):
    @property
    def rest(self):
        return self.v if self.v < 3 else 3.0

    def __add__(self, other):
        return self.v if other > 0 else -self.v


def test_objects_are_made_and_used_by_converted_code():
    def f(x):
        s = Sized(x)
        return s.v, s.kind, s.rest, s + x

    for x in (1.0, -4.0):
        expected = f(ll.constant(x))
        found = staged(f)(ll.constant(x))
        assert [float(v) for v in found] == [float(v) for v in expected]
    with pytest.raises(TypeError, match=r"^Sized.__init__\(\) missing 1 required positional argument: 'v'$"):
        staged(lambda x: Sized() or x)(ll.constant(1.0))  # type: ignore[call-arg]  # the mistake


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: Undecorated(x).rest, "or it is a property.*below @property"),
        (lambda x: Undecorated(x) + x, r"`__add__` asks .*: Python itself calls it.*decorate it with @ll.function"),
    ],
)
def test_what_python_itself_calls_says_so(f, message):
    with pytest.raises(ControlFlowError, match=message):
        staged(f)(ll.constant(1.0))


def test_what_converted_code_asks_for_is_not_to_be_had_by_autograph():
    with pytest.raises(ll.errors.SymbolicValueError, match=r"int\(\) of a symbolic tensor") as caught:
        staged(lambda x: [1, 2][int(x)] + x)(ll.constant(1))
    assert "autograph=True" not in str(caught.value)
    assert "ll.py_func(fn, inputs, output_specs)" in str(caught.value)
    with pytest.raises(ll.errors.SymbolicValueError, match=r"let ll.function\(autograph=True\) rewrite"):
        ll.function(lambda x: [1, 2][int(x)] + x)(ll.constant(1))


def test_what_python_raises_in_a_block_that_it_might_not_have_come_to_has_a_note():
    sizes = {"a": 1}

    def f(x):
        if x > 0:
            x = x * sizes["b"]
        return x

    with pytest.raises(KeyError) as caught:
        staged(f)(ll.constant(-1.0))
    assert caught.value.__notes__ == [
        "while this `if` was traced: a tensor decides it, so its code runs then, whatever it says"
    ]
    with pytest.raises(KeyError) as plain:
        staged(lambda x: x * sizes["b"])(ll.constant(1.0))
    assert not hasattr(plain.value, "__notes__")


def writes_until(n, stop):
    ta = ll.TensorArray(ll.float32, n)
    for i in ll.arange(n):
        if i == stop:
            break
        ta = ta.write(i, ll.ones(2))
    return ta.stack()


def writes_but(n, left_out):
    ta = ll.TensorArray(ll.int32, n)
    for i in ll.arange(n):
        if i == left_out:
            continue
        ta = ta.write(i, i)
    return ta.stack()


@pytest.mark.parametrize(
    ("f", "made"),
    [(writes_until, r"ll.float32, n, element_shape=\(2,\)"), (writes_but, r"ll.int32, n, element_shape=\(\)")],
)
def test_an_array_whose_first_write_may_not_come_is_to_say_its_shape(f, made):
    with pytest.raises(ControlFlowError, match=made):
        staged(f)(ll.constant(3), ll.constant(1))
