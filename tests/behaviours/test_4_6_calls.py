"""Section 4.6, `function`: specs, methods, callables, signatures and the cache (behaviours 141 to 148)."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, SignatureError


@pytest.fixture(autouse=True)
def _quiet():
    """Many of these tests retrace on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


x = ll.constant([1.0, 2.0])


# 141


def test_141_specs_stand_for_tensors():
    f = ll.function(lambda v, n: v * n)
    entry = f.get_concrete_function(ll.TensorSpec((2,), "float32"), 2)
    assert entry is f.get_concrete_function(ll.TensorSpec((2,), "float32"), 2)
    assert entry is f.get_concrete_function(x, 2)
    assert f(x, 2).tolist() == [2.0, 4.0]
    assert f.trace_count == 1
    assert entry.hits == 1
    assert entry(x).tolist() == [2.0, 4.0]


def test_141_dtypes_ranges_and_types_are_plain_values():
    f = ll.function(lambda v, dtype, steps, kind: ll.astype(v, dtype) * kind(len(steps)))
    for _ in range(2):
        assert f(x, ll.float64, range(3), float).tolist() == [3.0, 6.0]
        assert f(x, np.dtype("float64"), range(0, 3, 1), float).dtype == ll.float64
    assert f.trace_count == 1
    f(x, ll.float64, range(4), float)
    assert f.trace_count == 2


# 142


class Model:
    """A staged method."""

    def __init__(self, scale):
        self.scale = ll.Variable(scale)

    @ll.function
    def step(self, v):
        return v * self.scale


def test_142_each_instance_has_its_own_cache():
    one, other = Model(2.0), Model(3.0)
    for _ in range(3):
        assert one.step(x).tolist() == [2.0, 4.0]
    assert (one.step.trace_count, other.step.trace_count) == (1, 0)
    assert other.step(x).tolist() == [3.0, 6.0]
    assert one.step == one.step
    assert Model.step(one, x).tolist() == [2.0, 4.0]


def test_142_an_instance_can_go_and_takes_its_traces():
    model = Model(2.0)
    model.step(x)
    gone = weakref.ref(model), weakref.ref(model.step.__limelight_function__)
    del model
    assert [reference() for reference in gone] == [None, None]


def test_142_a_method_keeps_its_instance_alive_as_pythons_do():
    assert Model(3.0).step(x).tolist() == [3.0, 6.0]
    steps = [Model(scale).step for scale in (3.0, 4.0)]
    assert [step(x).tolist() for step in steps] == [[3.0, 6.0], [4.0, 8.0]]
    assert [step.trace_count for step in steps] == [1, 1]


def test_142_the_class_clears_all():
    models = [Model(1.0), Model(2.0)]
    for model in models:
        model.step(x)
    Model.step.clear_cache()
    assert [len(model.step.trace_cache) for model in models] == [0, 0]
    models[0].step(x)
    assert models[0].step.trace_count == 2


def test_142_methods_as_arguments_are_equal_though_never_identical():
    f = ll.function(lambda v, method: method(v))
    model = Model(2.0)

    class Plain:
        def double(self, v):
            return v * 2.0

    plain = Plain()
    for _ in range(3):
        f(x, plain.double)
        f(x, model.step)
    assert f.trace_count == 2


# 143


def test_143_callables_of_all_sorts():
    def add(a, b=1.0):
        """Adds."""
        return a + b

    class Caller:
        def __call__(self, v):
            return v * 3.0

    staged = ll.function(add)
    assert ll.function(functools.partial(add, b=5.0))(x).tolist() == [6.0, 7.0]
    assert ll.function(functools.partial(add, x))(x).tolist() == [2.0, 4.0]
    assert ll.function(Caller())(x).tolist() == [3.0, 6.0]
    assert ll.function(np.maximum)(x, 1.5).tolist() == [1.5, 2.0]
    with pytest.raises(ArgumentError, match=r"the parameters of dict, which is built in, .* lambda x: dict"):
        ll.function(dict)
    assert ll.function(staged)(x).tolist() == [2.0, 3.0]
    assert (staged.__name__, staged.__doc__, staged.python_function) == ("add", "Adds.", add)
    assert inspect.signature(staged) == inspect.signature(add)


@pytest.mark.parametrize(("args", "kwargs", "words"), [
    ((), {}, "missing 1 required positional argument: 'a'"),
    ((1, 2, 3), {}, "takes from 1 to 2 positional arguments but 3 were given"),
    ((1,), {"c": 2}, "got an unexpected keyword argument 'c'"),
    ((1,), {"a": 2}, "got multiple values for argument 'a'"),
])  # fmt: skip
def test_143_wrong_calls_raise_as_in_python_and_trace_nothing(args, kwargs, words):
    def add(a, b=1.0):
        return a + b

    f = ll.function(add)
    with pytest.raises(TypeError, match=rf"<locals>.add\(\) {words}$") as caught:
        f(*args, **kwargs)
    with pytest.raises(TypeError) as pythons:
        add(*args, **kwargs)
    assert str(caught.value) == str(pythons.value)
    assert f.trace_count == 0


def test_143_what_cannot_be_called_is_refused():
    with pytest.raises(ValueError, match="needs something callable, got int"):
        ll.function(3)


# 144


def test_144_one_graph_serves_all_shapes():
    seen = []

    @ll.function(input_signature=[ll.TensorSpec((None, 2), "float32")])
    def f(v):
        seen.append(v.shape)
        return v * 2.0

    for rows in (3, 1, 0, 7):
        assert f(ll.ones((rows, 2))).shape == (rows, 2)
    assert f([[1, 2]]).tolist() == [[2.0, 4.0]]
    assert f(np.ones((2, 2), "float32")).shape == (2, 2)
    assert f.trace_count == 1
    assert seen == [(None, 2)]
    assert f.trace_cache[0].signature == "v: f32[?,2]"


@pytest.mark.parametrize("bad", [ll.ones((2, 3)), ll.ones((2,)), np.ones((2, 2)), 1.0, [[1j, 2j]]])
def test_144_what_does_not_fit_is_refused_without_a_trace(bad):
    f = ll.function(lambda v: v, input_signature=[ll.TensorSpec((None, 2), "float32")], name="f")
    with pytest.raises(SignatureError, match=r"f: argument `v` must be TensorSpec\(\(None, 2\), float32\) .*, got "):
        f(bad)
    assert f.trace_count == 0


def test_144_nests_of_specs_and_a_gradient_of_any_size():
    spec = ll.TensorSpec((None,), "float32")
    f = ll.function(lambda pair: pair["a"] * pair["b"], input_signature=[{"a": spec, "b": spec}])
    for n in (2, 3):
        v = ll.ones((n,)) * 3.0
        with ll.GradientTape() as tape:
            tape.watch(v)
            y = f({"a": v, "b": ll.ones((n,)) * 2.0})
        assert tape.gradient(y, v).tolist() == [2.0] * n
    assert f.trace_count == 1
    with pytest.raises(SignatureError, match=r"`pair` must have the structure \{a: \*, b: \*\}, got \{a: \*\}"):
        f({"a": x})


# 145


@pytest.mark.parametrize(("given", "words"), [
    (ll.TensorSpec((2,)), "must be a list or tuple .* got TensorSpec"),
    (3, "must be a list or tuple .* got int"),
    ([3], "holds a int; it may hold ll.TensorSpec only"),
    ([ll.TensorSpec((2,)), [None]], "holds a NoneType"),
    ([ll.TensorSpec((2,))] * 3, "3 specs .* 2 arguments"),
])  # fmt: skip
def test_145_a_signature_is_checked_when_it_is_given(given, words):
    def f(a, b=1):
        return a

    with pytest.raises(SignatureError, match=words):
        ll.function(f, input_signature=given)


def test_145_arguments_with_defaults_may_be_left_out():
    f = ll.function(lambda a, b=2.0: a * b, input_signature=[ll.TensorSpec((None,), "float32")])
    assert f(x).tolist() == f(x, 2.0).tolist() == [2.0, 4.0]
    assert f.trace_count == 1


@pytest.mark.parametrize(("call", "message"), [
    (lambda f: f(lambda a, b=2.0: a * b, x, 3.0), "`b` has no spec in the input_signature, so it must be left"),
    (lambda f: f(lambda a, **b: a, x, b=2.0), "`b` has no spec in the input_signature, so it must be left"),
    (lambda f: f(lambda a, b: a * b, x, 3.0), "`b` has neither a spec in the input_signature nor a default"),
    (lambda f: f(lambda a, b: a * b, x, x), "`b` has neither a spec"),
    (lambda f: f(lambda a, b: a * b, x), "`b` has neither a spec"),
    (lambda f: f(lambda a, *, b: a * b, x, b=2.0), "`b` has neither a spec"),
    (lambda f: f(lambda a, *, b: a * b, x), "`b` has neither a spec"),
])  # fmt: skip
def test_145_other_arguments_need_a_spec(call, message):
    def stage_and_call(fn, *args, **kwargs):
        return ll.function(fn, input_signature=[ll.TensorSpec((None,), "float32")])(*args, **kwargs)

    with pytest.raises(SignatureError, match=message):
        call(stage_and_call)


def test_145_more_arguments_need_more_specs():
    f = ll.function(lambda *xs: xs[0], input_signature=[ll.TensorSpec((None,), "float32")] * 2)
    assert f(x, x).tolist() == [1.0, 2.0]
    with pytest.raises(SignatureError, match=r"`xs\[2\]` has no spec"):
        f(x, x, x)


# 146


def test_146_the_second_shape_is_generalised():
    seen = []

    @ll.function(reduce_retracing=True)
    def f(v, n=1):
        seen.append(v.shape)
        return v * n

    for rows in (2, 3, 4, 5):
        assert f(ll.ones((rows, 2))).shape == (rows, 2)
    assert seen == [(2, 2), (None, 2)]
    f(ll.ones((2, 2)))
    assert [entry.hits for entry in f.trace_cache] == [1, 2]  # the exact one is preferred
    f(ll.ones((6, 2)), 2)
    f(ll.ones((6, 2, 2)))
    assert seen[2:] == [(6, 2), (6, 2, 2)]


def test_146_nested_arguments_and_methods_are_generalised_too():
    class Model:
        @ll.function(reduce_retracing=True)
        def step(self, batch):
            return batch["x"] * 2.0

    model = Model()
    for rows in (2, 3, 4, 5):
        assert model.step({"x": ll.ones((rows,))}).shape == (rows,)
    assert model.step.trace_count == 2


# 147: see also tests/engine/explain/retracing/test_retracing_warning.py


def test_147_retracing_brings_a_warning_with_the_reason():
    f = ll.function(lambda v, epoch: v, name="train")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for epoch in range(20):
            f(x, epoch / 2)
    assert len(caught) == 2
    assert "argument `epoch` 1.5 -> 2.0" in str(caught[0].message)
    assert "Fix: call with f(x, ll.constant(epoch / 2))" in str(caught[0].message)


# 148


def test_148_the_cache_can_be_looked_into():
    w = ll.Variable([1.0, 1.0], name="w")
    big = ll.ones((100,))
    f = ll.function(lambda v, n: v * w * n + ll.sum(big))
    f(x, 2.0)
    f(x, 2.0)
    f(x, 3.0)
    first, second = f.trace_cache
    assert (f.trace_count, len(f.trace_cache)) == (2, 2)
    assert (first.signature, second.signature) == ("v: f32[2], n: 2.0", "v: f32[2], n: 3.0")
    assert (first.hits, second.hits) == (1, 0)
    assert first.captures == (w, big)
    assert first.nbytes >= 400
    assert first.serial < second.serial
    assert first.trace_seconds > 0
    assert first.device is None
    assert f.trace_cache[1] is second


def test_148_clearing_forgets_all_and_is_safe_in_the_middle_of_a_call():
    def body(v):
        f.clear_cache()
        return v * 2.0

    f = ll.function(body)
    for _ in range(3):
        assert f(x).tolist() == [2.0, 4.0]
    assert f.trace_count == 1  # cleared while it traced, then entered
    f.clear_cache()
    assert len(f.trace_cache) == 0
    f(x)
    assert f.trace_count == 2


def test_148_indexes_stay_unique_when_entries_go():
    f = ll.function(lambda v, g: g(v))
    kept = [lambda v: v, lambda v: v + 1.0]
    f(x, kept[0])
    f(x, kept[1])
    f(x, lambda v: v + 2.0)
    f(x, lambda v: v + 3.0)
    f(x, lambda v: v + 4.0)
    indexes = [entry.index for entry in f.trace_cache]
    assert len(set(indexes)) == len(indexes) == 3


def test_148_a_bound_evicts_the_trace_not_used_for_longest_and_says_so():
    f = ll.function(lambda v: v, cache_size=2)
    one, two, three = (ll.ones((n,)) for n in (1, 2, 3))
    for v in (one, two, one, three):
        f(v)
    assert [entry.signature for entry in f.trace_cache] == ["v: f32[1]", "v: f32[3]"]
    assert (f.explain(one).hit, f.explain(two).hit) == (True, False)
    f(two)
    assert "its trace #2" in f.trace_cache[-1].reason
    assert "was evicted, since the cache holds 2 traces at most" in f.trace_cache[-1].reason
    assert f.trace_count == 4


def test_148_two_traces_that_create_state_are_one_entry():
    held = []

    @ll.function(cache_size=1, max_traces=1)
    def f(v):
        if not held:
            held.append(ll.Variable(2.0))
        return v * held[0]

    f(x)
    f(x)
    assert (f.trace_count, len(f.trace_cache), f.trace_cache[0].hits) == (2, 1, 1)
    with pytest.raises(ll.errors.TraceBudgetError, match="`f` has its 1 trace"):
        f(ll.ones((7,)))
