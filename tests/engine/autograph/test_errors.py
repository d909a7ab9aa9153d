"""What cannot be converted says why, at its line, and what to write instead."""

# ruff: noqa: SIM108, RET503, PERF402, F821, F841  # the statements are what is tested

import functools
import linecache
import operator

import pytest

import limelight as ll
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)
HERE = "test_errors.py"
SEEN = []


def line_of(f, text):
    """The number of the line in `f` that holds `text`."""
    code = getattr(f, "__func__", f).__code__
    lines = linecache.getlines(code.co_filename)
    return next(i + 1 for i in range(code.co_firstlineno, len(lines)) if text in lines[i])


def dtypes_differ(x):
    y = x
    if x > 0:
        y = ll.astype(x, ll.int32)
    return y


def ranks_differ(x):
    if x > 0:
        y = ll.zeros((2,))
    else:
        y = x
    return y


def structures_differ(x):
    if x > 0:
        y = (x, x)
    else:
        y = x
    return y


def none_or_not(x):
    y = None
    if x > 0:
        y = x
    return y


def rank_grows(x):
    h = ll.ones((1,))
    while ll.sum(h) < x:
        h = ll.stack([h, h])
    return h


def dtype_changes(x):
    n = ll.constant(1)
    while x < 10:
        x = x * 2
        n = ll.astype(n, ll.float32) * 1.5
    return n


def list_grows(x):
    out = []
    for row in ll.stack([x, x]):
        out = [*out, row]
    return out


def string_changes(x):
    s = "a"
    while x < 10:
        x = x * 2
        s = s + "b"
    return x


def read_before_it_is_assigned(x):
    for row in ll.stack([x, x]):
        x = x + last
        last = row
    return x


def returns_sometimes(xs):
    for x in ll.stack([xs, xs]):
        if x > 5:
            return x
    xs = -xs


def returns_two_kinds(x):
    if x > 0:
        return x, x
    return x


def appends(x):
    out = []
    for row in ll.stack([x, x]):
        out.append(row)
    return out


def appends_to_a_global(x):
    if x > 0:
        SEEN.append(x)
    return x


def assigns_an_item(x):
    best = {}
    if x > 0:
        best["x"] = x
    return x


def tries(x):
    try:
        if x > 0:
            x = -x
    except Exception:  # noqa: BLE001  # it would catch the error about itself
        x = x * 100
    return x


def raises(x):
    if x < 100:
        raise ValueError("too small")
    return x


def a_vector(x):
    if ll.stack([x, x]) > 0:
        x = -x
    return x


def generator(x):
    if x > 0:
        yield x


def uses_a_generator(x):
    return [*generator(x)]


def walrus(x):
    while (y := x * 2) < 10:
        x = y
    return x


def matches(x):
    match bool(x > 0):
        case True:
            return x
    return -x


def steps_by_a_tensor(x):
    for i in range(0, 10, ll.astype(x, ll.int32)):
        x = x + i
    return x


def zips_a_list(x):
    several = ll.stack([x, -x])
    for a, b in zip(several[several > 0], [1, 2], strict=False):
        x = x + a * b
    return x


def conditional(x):
    return ll.zeros((2,)) if ll.sum(x) > 0 else x


def sorts(x):
    return sorted([x, -x])


CASES = {
    dtypes_differ: ("int32", r"`y` is i32\[\] in the `if` branch \(.*and f32\[\] in the `else` branch.*ll.astype"),
    ranks_differ: ("zeros", r"`y` is f32\[2\] in the `if` branch .*and f32\[\] in the `else`.*ll.reshape or ll.broad"),
    structures_differ: (
        "(x, x)",
        r"`y` is \(\*, \*\) in the `if` branch .* and f32\[\] in the .*one structure on both",
    ),
    none_or_not: (
        "y = x",
        r"`y` is f32\[\] in the `if` branch .* and None in the `else` branch.*`has_y = False` before",
    ),
    rank_grows: ("stack", r"`h` is f32\[1\] on entry of this `while` loop and f32\[2,1\] after .*give it one rank"),
    dtype_changes: (
        "1.5",
        r"`n` is i32\[\] on entry .* and f32\[\] after one iteration.*begin with ll.astype\(n, ll.fl",
    ),
    list_grows: ("*out", r"`out` is \[\] on entry of this `for` loop and \[\*\] after .*ll.scan or ll.map_fn"),
    string_changes: ('"b"', r"`s` is 'a' on entry of this `while` loop and 'ab' after .*only tensors and numbers"),
    read_before_it_is_assigned: ("+ last", r"`last` may have no value.*reads it before the loop assigns it"),
    returns_sometimes: ("for x", r"returns_sometimes returns a value only where a tensor says so.*Write a `return`"),
    returns_two_kinds: (
        "x, x",
        r"the value returned is \(\*, \*\) in the `if` branch .*and f32\[\] after it",
    ),
    appends: (
        "append",
        r"`out` is \[\] on entry of this `for` loop and \[\*\] aft.*`out = ll.TensorArray\(ll.float32, size\)` before "
        r"the loop.*`out = out.write\(i, row\)` in it.*`out.stack\(\)` after it; or .*ll.scan or ll.map_fn",
    ),
    appends_to_a_global: ("append", r"\.append\(\) changes a list in this `if`"),
    assigns_an_item: ('["x"]', r"`best` is {x: \*} in the `if` branch .*and {} in the `else` .*one structure on both"),
    tries: ("if x", r"an `if` that a tensor decides stands inside `try \.\.\. except`.*Move the `try` around"),
    raises: ("raise ", r"`raise` in a block that a tensor decides .*while tracing, whatever.*Write `assert condition"),
    a_vector: (
        "stack",
        r"the condition of this `if` must be one value, got bool\[2\]; write ll.all\(x\) or ll.any\(x\)",
    ),
    uses_a_generator: ("if x", r"`generator` asks a tensor .*could not be converted: it is a generator \(`yield`\)"),
    walrus: ("while", r"`walrus` asks a tensor .*could not be converted: it assigns with := .*on a line of its own"),
    matches: ("bool", r"`matches` asks a tensor .*could not be converted: it has a `match` statement; write if and"),
    steps_by_a_tensor: ("range", r"range\(\) with a step that is a tensor.*write a while loop"),
    zips_a_list: ("zip", r"zip\(\) of a list and of tensors whose number .*make it a tensor with ll.stack or ll.con"),
    conditional: (
        "else",
        r"the value is f32\[2\] before `if` and f32\[\] after .*if ll.sum\(x\) > 0 else \.\.\.`.*ll.reshape",
    ),
}


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_says_why_and_where(f):
    text, message = CASES[f]
    g = staged(f)
    with pytest.raises(ControlFlowError, match=message) as caught:
        g(ll.constant(2.0))
    where = generator if f is uses_a_generator else f
    assert f"{HERE} line {line_of(where, text)}" in str(caught.value)
    assert len(g.trace_cache) == 0
    assert SEEN == []


def test_attributes_of_objects_that_outlive_the_block():
    class Model:
        calls = 0

        def step(self, x):
            if x > 0:
                self.calls = self.calls + 1
            return x

        def made_inside(self, x):
            if x > 0:
                other = Model()
                other.calls = x
                x = other.calls * 2
            return x

    model = Model()
    with pytest.raises(ControlFlowError, match=r"`self.calls` is assigned in this `if` .*\.assign"):
        staged(model.step)(ll.constant(1.0))
    assert model.calls == 0
    assert staged(model.made_inside)(ll.constant(2.0)).item() == 4.0


def test_without_source_only_decisions_are_refused():
    space = {}
    exec("def double(x):\n    return 2 * x\ndef positive(x):\n    return x if x > 0 else -x", space)
    assert staged(space["double"])(ll.constant(2.0)).item() == 4.0
    with pytest.raises(ControlFlowError, match=r"`positive` asks a tensor .*the source .*is not available"):
        staged(space["positive"])(ll.constant(2.0))


def test_library_code_is_left_alone_and_named():
    from statistics import median

    with pytest.raises(ControlFlowError, match=r"a function of a library, asks a tensor for a decision .*ll.py_func"):
        staged(lambda x: median([x, -x]))(ll.constant(1.0))


def test_code_that_converted_code_did_not_call():
    with pytest.raises(ControlFlowError, match=r"was not converted, since converted code did not call it: a library"):
        staged(lambda x: operator.call(conditional, x))(ll.constant(1.0))


def test_python_decisions_do_all_of_it():
    """What is refused on tensors is plain Python on values."""

    def f(x, n):
        out, best = [], {}
        for i in range(n):
            try:
                if i > 1:
                    raise ValueError(i)
                out.append(x * i)
            except ValueError:
                best["last"] = i
        return out, best["last"]

    out, last = staged(f)(ll.constant(2.0), 3)
    assert [x.item() for x in out] == [0.0, 2.0]
    assert last.item() == 2


def test_an_error_leaves_the_cache_as_it_was():
    def f(x, bad):
        if x > 0 and bad:
            y = (x, x)
        else:
            y = x
        return y

    g = staged(f)
    with pytest.raises(ControlFlowError):
        g(ll.constant(1.0), True)
    assert len(g.trace_cache) == 0
    assert g(1.0, False).item() == 1.0


def counts_against_floats(x):
    i = 0
    while i < x.sum():
        i += 1
    return i


def test_an_int_that_a_loop_makes_a_tensor_is_named_where_it_no_longer_mixes():
    with pytest.raises(ll.errors.DTypeError, match="i32") as caught:
        staged(counts_against_floats)(ll.ones((3, 2)))
    for words in ("`i` was a Python int", "this `while` loop", "Begin with `i = 0.0`", "line "):
        assert words in str(caught.value)


def test_iteration_without_autograph_over_an_unknown_number_of_rows_names_what_can():
    @ll.function(input_signature=[ll.TensorSpec((None, 2))])
    def rows(x):
        return [row for row in x]  # noqa: C416  # the iteration is what is tested

    with pytest.raises(ll.errors.ShapeError, match="autograph=True") as caught:
        rows(ll.ones((3, 2)))
    for words in ("f32[?,2]", "ll.map_fn", "ll.scan"):
        assert words in str(caught.value)
    assert "len()" not in str(caught.value)


def appends_within_finally(x):
    seen, y = [], x
    try:
        while y < 10:
            y = y * 2
            seen.append(y)
    finally:
        y = y + 1
    return y


def test_a_finally_of_the_users_does_not_hide_the_error():
    with pytest.raises(ControlFlowError, match=r"`seen` is \[\] on entry of this `while` loop"):
        staged(appends_within_finally)(ll.constant(1.0))
