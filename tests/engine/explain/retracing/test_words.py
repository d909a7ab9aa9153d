"""What a sentence says of a trace is true: of sizes that are open, of keywords, of other objects, of loops."""

from __future__ import annotations

import functools

import pytest

import limelight as ll
from limelight.explain.retracing.causes import Cause

pytestmark = pytest.mark.usefixtures("retraces_are_meant")
x = ll.ones((2, 3))


def newest(f):
    return ll.explain.retrace(f).records[-1]


def only(f):
    """The one differing part of the newest trace."""
    (difference,) = newest(f).differences
    return difference


def test_a_function_that_is_staged_in_a_loop_names_the_numbers_it_would_keep():
    for rate in (0.1, 0.2, 0.3):
        f = ll.function(lambda v: v * rate)  # noqa: B023
        f(x)
    assert "call that one; a trace keeps the first value of `rate`: make an argument of what changes." in str(newest(f))


@pytest.mark.parametrize("partial", [True, False])
def test_partial_functions_and_methods_of_one_object_are_known_when_they_are_staged_anew(partial):
    class Net:
        def step(self, v, rate=2.0):
            return v * rate

    net = Net()
    for rate in (0.1, 0.2, 0.3):
        f = ll.function(functools.partial(net.step, rate=rate) if partial else net.step)
        f(x)
    assert newest(f).cause is Cause.REMADE
    assert str(newest(f)).startswith("`step` traced at ")
    assert "was staged and traced 2 times before" in str(newest(f))


def test_an_open_size_is_no_difference():
    f = ll.function(lambda v, n: v, reduce_retracing=True)
    for rows in (2, 3):
        f(ll.ones((rows, 4)), "a")
    f(ll.ones((5, 4)), "b")
    assert only(f)[:3] == ("n", "'a'", "'b'")
    assert "trace #2" in str(newest(f))


def test_any_number_of_arguments_and_keywords_are_counted_without_the_named_ones():
    f = ll.function(lambda v, name="a", *rest, flag=False, **more: v)
    f(x)
    f(x, "a", x, x)
    assert only(f)[:3] == ("rest", "0 values", "2 values")
    f(x, other=2.0)
    assert only(f)[:3] == ("more", "keys {}", 'keys {"other"}')


def test_a_variable_elsewhere_and_of_another_spec():
    ll.config.set_virtual_devices(CPU=2)
    f = ll.function(lambda a, b: a)
    v = ll.Variable(1.0)
    f(v, v)
    with ll.device("CPU:1"):
        w = ll.Variable(1.0)
    f(w, w)
    assert newest(f).differences[0][:3] == ("a", "var f32[]", "var f32[] on CPU:1")
    f(v, ll.Variable([1.0]))
    assert newest(f).differences[0][:5] == (
        "b", "var f32[]", "var f32[1]", "variable", "the same variable as `a` -> a variable of its own"
    )  # fmt: skip


def test_a_def_in_a_loop_is_a_new_function_object_and_no_cell_that_ran_again():
    f = ll.function(lambda v, g: g(v))
    names = {"f": f, "x": x}
    code = "for i in range(2):\n    def g(v): return v\n    f(x, g)"
    exec(compile(code, "loop.py", "exec"), names)
    assert newest(f).differences[0].cause == "new function object"
    exec(compile(code, "loop.py", "exec"), names)
    assert [miss.differences[0].cause for miss in ll.explain.retrace(f).records[2:]] == [
        "redefined function",
        "new function object",
    ]


@pytest.mark.parametrize("called", ["owner.f", 'shelf["f"]', 'shelf["more"][0]', "owner.shelf.f"])
def test_the_call_is_mended_by_whatever_name_it_is_made(program, called):
    p = program(f"""
        import types
        f = ll.function(lambda v, n: v * n)
        owner, shelf = types.SimpleNamespace(f=f), {{"f": f, "more": [f]}}
        owner.shelf = owner
        for n in (1.0, 2.0):
            {called}(2.0, n)
    """)
    assert p.miss.fix == f"{called}(2.0, ll.constant(n))"


@pytest.mark.parametrize(
    ("staged", "shown"),
    [
        ("ll.function(loss)", "ll.function(loss, "),
        ("ll.function(lambda v: v)", "ll.function(fn, "),
        ("ll.function(functools.partial(loss, scale=2.0))", "ll.function(fn, "),
        ("ll.function(ll.nn.Dense(2))", "ll.function(fn, "),
        ("Net().step", "@ll.function("),
    ],
)
def test_a_signature_is_shown_where_the_function_is_staged(program, staged, shown):
    p = program(f"""
        import functools
        def loss(v, scale=1.0):
            return v * scale
        class Net:
            @ll.function
            def step(self, v):
                return v
        f = {staged}
        for n in (4, 4, 2):
            f(ll.ones((n, 3)))
    """)
    assert p.miss.fix == f'{shown}input_signature=[ll.TensorSpec((None, 3), "float32")])'


@pytest.mark.parametrize("kind", [str, lambda text: text.encode()])
def test_long_texts_say_where_they_differ(kind):
    f = ll.function(lambda v, text: v)
    for end in ("one", "two", ""):
        f(x, kind("the same words " * 10 + end))
    first, second = ll.explain.retrace(f).records[1:]
    mark = "b" if kind is not str else ""
    assert first.differences[0].detail == f"from character 150 on: {mark}'one' -> {mark}'two'"
    assert second.differences[0].detail.endswith("-> its end")


def test_a_call_that_is_mended_in_another_device_scope_is_shown_once(program):
    ll.config.set_virtual_devices(CPU=2)
    p = program("""
        @ll.function
        def f(v, rate):
            return v * rate
        for device, rate in (("CPU:0", 0.1), ("CPU:1", 0.2)):
            with ll.device(device):
                f(2.0, rate)
    """)
    assert p.miss.fix == 'with ll.device("CPU:0"): f(2.0, ll.constant(rate))'
    assert "leaves" not in str(p.miss)
    assert program(p.mended()).f.trace_count == 1


def test_of_traces_that_are_as_close_the_one_of_this_line_is_told():
    f = ll.function(lambda v, n: v * n)
    for _ in range(3):
        f(x, 0.1)
    for n in (0.1, 0.2, 0.3):
        f(x, n)
    assert only(f)[1:3] == ("0.2", "0.3")
