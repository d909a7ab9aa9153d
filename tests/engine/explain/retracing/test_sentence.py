"""The other causes of a trace, which have no fix as code, and what an explanation says as a whole."""

from __future__ import annotations

import gc
import warnings

import pytest

import limelight as ll
from limelight.explain.retracing.causes import Cause


@pytest.fixture(autouse=True)
def _quiet():
    """Retracing is what these tests do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


def newest(f):
    return ll.explain.retrace(f).records[-1]


def only(f):
    """The one differing part of the newest trace."""
    (difference,) = newest(f).differences
    return difference


def constantly(*_, **__):
    return 1.0


x = ll.ones((2,))


# The sentence


def test_the_sentence_has_its_parts_in_order(program):
    p = program("""
        @ll.function
        def f(batch):
            return batch["x"] * 2.0
        for rows in [32] * 400 + [17]:
            f({"x": ll.ones((rows, 784))})
    """)
    cost = f"{p.miss.seconds * 1e3:.0f} ms" if p.miss.seconds >= 0.01 else f"{p.miss.seconds * 1e3:.1f} ms"
    file = p.miss.where.split()[0]
    assert str(p.miss) == (
        f'`f` traced again at {file} line 5: argument `batch["x"]` f32[32,784] -> f32[17,784] (axis 0: 32 -> 17). '
        f"Closest: trace #1 ({file} line 5, used 400 times). Cost {cost}. "
        'Fix: @ll.function(input_signature=[{"x": ll.TensorSpec((None, 784), "float32")}])'
    )
    assert p.f.trace_cache[1].reason == str(p.miss)


def test_a_first_trace_says_so():
    f = ll.function(lambda v: v + 1.0, name="f")
    f(x)
    record = newest(f)
    assert record.cause is Cause.FIRST
    assert str(record).startswith("`f` traced at test_sentence.py line ")
    assert ": first call. Cost " in str(record)
    assert record.differences == ()
    assert record.fix == ""


def test_all_differing_parts_are_listed_and_three_are_spelled_out():
    f = ll.function(constantly)
    f(x, 1, "a", None, (1, 2))
    f(ll.ones((3,)), 2, "b", x, [1, 2])
    record = newest(f)
    assert [d.path for d in record.differences] == ["_[0]", "_[1]", "_[2]", "_[3]", "_[4]"]
    assert [d.cause for d in record.differences] == [
        "shape", "Python number", "Python value", "type of value", "container",
    ]  # fmt: skip
    assert "`_[2]` 'a' -> 'b', and 2 more." in str(record)
    assert record.cause is Cause.CONTAINER  # the greatest of them


def test_a_trace_within_a_trace_names_the_outer_function():
    inner = ll.function(lambda v: v * 2.0, name="inner")
    outer = ll.function(lambda v: inner(v) + 1.0, name="outer")
    outer(x)
    outer(ll.ones((3,)))
    assert newest(inner).inside == "outer"
    assert "`inner` traced again at test_sentence.py line " in str(newest(inner))
    assert " while tracing `outer`: argument `v` f32[2] -> f32[3]" in str(newest(inner))


def test_a_function_that_creates_variables_says_why_it_ran_twice():
    kept = []

    @ll.function
    def f(v):
        if not kept:
            kept.extend([ll.Variable(1.0), ll.Variable(2.0)])
        return v * kept[0] + kept[1]

    f(x)
    assert f.trace_count == 2
    assert len(f.trace_cache) == len(ll.explain.retrace(f).records) == 1
    assert "first call. Its Python code ran twice, since it created 2 variables. Cost" in str(newest(f))


# Causes without a fix in code


@pytest.mark.parametrize(
    ("before", "after", "shown", "cause"),
    [
        ("relu", "tanh", ("'relu'", "'tanh'"), "Python value"),
        (True, False, ("True", "False"), "Python value"),
        (None, 1, ("None", "1"), "type of value"),
        (None, x, ("None", "f32[2]"), "type of value"),
        (b"a", b"b", ("b'a'", "b'b'"), "Python value"),
        (-1, -2, ("-1", "-2"), "Python number"),  # which hash alike
        (0.0, -0.0, ("0.0", "-0.0"), "Python number"),
        (x, {"x": x}, ("f32[2]", "dict of 1"), "container"),
        ([x], [x, x], ("1 value", "2 values"), "number of values"),
        ({"x": x, "y": x}, {"x": x}, ('keys {"x", "y"}', 'keys {"x"}'), "dictionary keys"),
        ({"x": x, 1: x}, {"x": x, 2: x}, ('keys {1, "x"}', 'keys {2, "x"}'), "dictionary keys"),
    ],
)
def test_a_python_value_or_container(before, after, shown, cause):
    f = ll.function(lambda v, other: v)
    f(x, before)
    f(x, after)
    assert only(f)[:4] == ("other", *shown, cause)


def test_a_change_below_a_container_that_changes_too():
    f = ll.function(lambda tree: tree["x"])
    f({"x": ll.ones((2,)), "y": {"z": [1, x]}})
    f({"x": ll.ones((3,)), "y": {"z": [2, x, x]}})
    assert [(d.path, d.before, d.after) for d in newest(f).differences] == [
        ('tree["x"]', "f32[2]", "f32[3]"),
        ('tree["y"]["z"]', "2 values", "3 values"),
        ('tree["y"]["z"][0]', "1", "2"),
    ]


def test_a_change_within_a_list_that_is_a_tuple_now():
    f = ll.function(lambda pair: pair[0])
    f([x, 1])
    f((ll.ones((3,)), 1))
    assert [(d.path, d.cause) for d in newest(f).differences] == [("pair", "container"), ("pair[0]", "shape")]


def test_the_number_of_arguments():
    f = ll.function(constantly)
    f(x)
    f(x, x)
    assert only(f)[:4] == ("_", "1 value", "2 values", "number of values")


def test_the_names_of_keywords():
    f = ll.function(constantly)
    f(a=1)
    f(a=1, b=1)
    assert only(f)[:5] == ("__", 'keys {"a"}', 'keys {"a", "b"}', "dictionary keys", 'with "b"')
    assert only(f).fix == ""


def test_a_tuple_and_a_dictionary_are_not_arguments_and_keywords():
    f = ll.function(constantly)
    f((1,), {"b": 2})
    f(1, b=2)
    assert f.trace_count == 2


def test_a_redefined_helper_says_so(program):
    p = program("""
        @ll.function
        def f(v, helper):
            return helper(v)
        def double(v):
            return v + v
        f(ll.ones((2,)), double)
        def double(v):
            return v * 2.0
        f(ll.ones((2,)), double)
    """)
    (difference,) = p.miss.differences
    assert difference.cause == "redefined function"
    assert (difference.path, difference.before, difference.after) == (
        "helper", "function double (deleted)", "function double",
    )  # fmt: skip
    assert "(defined again: the same name, another object)" in str(p.miss)
    assert "Its definition ran again" in str(p.miss)


def test_another_function_is_no_redefinition():
    f = ll.function(lambda v, g: g(v))
    f(x, ll.tanh)
    f(x, ll.exp)
    assert only(f)[:4] == ("g", "function tanh", "function exp", "another object")


def test_a_function_defined_within_a_function():
    f = ll.function(lambda v, g: g(v))

    def call():
        def inner(v):
            return v + 1.0

        f(x, inner)

    call()
    call()
    assert only(f).cause == "new function object"
    assert "Define the function once, outside the loop" in str(newest(f))


def test_the_method_of_another_instance():
    class Layer:
        def apply(self, v):
            return v * 2.0

    f = ll.function(lambda v, apply: apply(v))
    one, other = Layer(), Layer()
    f(x, one.apply)
    f(x, one.apply)
    assert f.trace_count == 1
    f(x, other.apply)
    assert only(f).cause == "another object"
    assert only(f).detail == "another instance"


def test_a_new_object_where_a_deleted_one_was():
    class Config:
        pass

    f = ll.function(lambda v, config: v)
    config = Config()
    f(x, config)
    del config
    gc.collect()
    f(x, Config())
    assert only(f)[1:4] == ("Config object (deleted)", "Config object", "deleted object")
    assert "(the former one has been deleted)" in str(newest(f))


def test_the_spec_of_a_variable():
    f = ll.function(lambda v: v * 2.0)
    f(ll.Variable(ll.ones((2,))))
    f(ll.Variable(ll.ones((3,))))
    assert only(f)[:4] == ("v", "var f32[2]", "var f32[3]", "variable")
    f(ll.Variable(ll.ones((2,)), trainable=False))
    assert only(f).after == "frozen var f32[2]"


def test_the_aliasing_of_variables():
    f = ll.function(lambda a, b, c: a + b + c)
    v, w, u = (ll.Variable(1.0) for _ in range(3))
    f(v, w, u)
    f(v, v, u)
    assert only(f)[:4] == ("b", "a variable of its own", "the same variable as `a`", "aliasing of variables")
    f(w, w, v)
    assert f.trace_count == 2
    f(v, u, v)
    assert only(f)[:3] == ("c", "a variable of its own", "the same variable as `a`")  # closest is (v, w, u) again


# Causes that concern the call as a whole


def test_a_cleared_cache_says_which_trace_it_had():
    f = ll.function(lambda v: v, name="f")
    f(x)
    f(x)
    f.clear_cache()
    f(x)
    assert newest(f).cause is Cause.CLEARED
    assert "the cache was cleared; it held trace #1 (test_sentence.py line " in str(newest(f))
    assert ", used 2 times) for these arguments. Cost" in str(newest(f))


def test_a_cleared_trace_is_remembered_when_others_have_been_made():
    f = ll.function(lambda v: v, name="f")
    f(x)
    f.clear_cache()
    f(ll.ones((3,)))
    f(x)
    assert "the cache was cleared; it held trace #1 (test_sentence.py line " in str(newest(f))
    f(ll.ones((4,)))
    assert newest(f).cause is Cause.SHAPE


def test_a_cleared_cache_may_not_have_had_the_trace():
    f = ll.function(lambda v, n: v)
    f(x, -1)
    f.clear_cache()
    f(x, -2)
    assert "the cache was cleared; no trace in it was for these arguments." in str(newest(f))


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_a_trace_whose_capture_has_ended():
    held = []
    inner = ll.function(lambda w: w + held[-1], name="inner")

    @ll.function
    def outer(v):
        held.append(v)
        return inner(x)

    outer(x)
    outer(ll.ones((3, 2)))
    record = newest(inner)
    assert record.cause is Cause.STALE
    assert "captured a tensor of an enclosing function whose trace has ended" in str(record)
    assert "Pass the tensor of the enclosing function as an argument." in str(record)


def test_a_staged_function_that_is_made_anew(program):
    p = program("""
        for i in range(3):
            f = ll.function(lambda v: v + 1.0)
            f(ll.ones((2,)))
    """)
    assert p.miss.cause is Cause.REMADE
    assert "first call of a newly staged function; its definition (" in str(p.miss)
    assert " line 2) was staged and traced 2 times before." in str(p.miss)
    assert "Stage the function once, before the loop" in str(p.miss)


def test_each_instance_of_a_class_has_a_first_call():
    class Model:
        @ll.function
        def step(self, v):
            return v * 2.0

    models = [Model() for _ in range(3)]
    for model in models:
        model.step(x)
    assert [newest(model.step).cause for model in models] == [Cause.FIRST] * 3
    assert "first call for this Model object, since each has traces of its own" in str(newest(models[2].step))
    assert str(newest(models[2].step)).count("before") == 1  # and no word of a loop, while all of them live
    assert len(ll.explain.retrace(Model.step).records) == 3


def test_relaxed_shapes_are_told_as_they_came():
    f = ll.function(lambda v: v * 2.0, reduce_retracing=True)
    for n in (2, 3, 4):
        f(ll.ones((n,)))
    assert f.trace_count == 2
    assert only(f)[1:3] == ("f32[2]", "f32[3]")
    f(ll.ones((2, 2)))
    assert only(f).cause == "rank"
    assert only(f).before == "f32[?]"
