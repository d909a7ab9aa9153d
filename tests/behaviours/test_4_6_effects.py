"""Section 4.6, `function`: effects, recursion, threads, lifetimes, outputs (behaviours 156 to 165)."""

from __future__ import annotations

import gc
import pickle
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight.errors import DeadVariableError, SignatureError


@pytest.fixture(autouse=True)
def _quiet():
    """Many of these tests retrace on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


x = ll.constant([1.0, 2.0])


# 156


def test_156_reads_and_writes_keep_their_order():
    v = ll.Variable(1.0)

    @ll.function
    def f():
        before = v.read_value()
        v.assign(before * 10.0)
        between = v + 0.0
        v.assign_add(1.0)
        v.assign(v * 2.0)
        return before, between, v.read_value()

    for _ in range(30):
        v.assign(1.0)
        assert [r.item() for r in f()] == [1.0, 10.0, 22.0]
        assert v.numpy() == 22.0


def test_156_the_graph_says_what_must_wait_for_what():
    v, w = ll.Variable(1.0), ll.Variable(1.0)

    @ll.function
    def f():
        first = v.read_value()
        second = v.read_value()
        other = w.read_value()
        v.assign(first + second + other)
        third = v.read_value()
        v.assign_add(third)

    f()
    graph = f.trace_cache[0].graph
    effects = [node for node in graph.nodes if node.op in ("read_variable", "assign", "assign_add")]
    places = {node: i for i, node in enumerate(effects)}
    assert [(node.op, sorted(places[one] for one in node.after)) for node in effects] == [
        ("read_variable", []),
        ("read_variable", []),  # reads may change places with one another
        ("read_variable", []),  # and other variables do not matter
        ("assign", [0, 1]),
        ("read_variable", [3]),
        ("assign_add", [3, 4]),
    ]


def test_156_a_returned_read_keeps_its_value():
    v = ll.Variable([1.0, 2.0])

    @ll.function
    def f():
        before = v.read_value()
        v.assign_add([1.0, 1.0])
        return before

    first = f()
    second = f()
    assert (first.tolist(), second.tolist()) == ([1.0, 2.0], [2.0, 3.0])


def test_156_effects_inside_are_ordered_with_those_outside():
    v = ll.Variable(1.0)

    @ll.function
    def double():
        v.assign(v * 2.0)

    def body(i):
        v.assign_add(1.0)
        return i + 1

    @ll.function
    def f(flag):
        v.assign(3.0)
        double()  # 6
        ll.cond(flag, lambda: v.assign_add(10.0) + 0.0, lambda: v.assign_sub(1.0) + 0.0)  # 16 or 5
        seen = v.read_value()
        ll.while_loop(lambda i: i < 3, body, [ll.constant(0)])  # 19 or 8
        double()
        return seen, v.read_value()

    for flag, wanted in ((True, [16.0, 38.0]), (False, [5.0, 16.0])):
        for _ in range(5):
            assert [r.item() for r in f(ll.constant(flag))] == wanted


def test_156_the_last_write_always_runs():
    v, w = ll.Variable(0.0), ll.Variable(0.0)

    @ll.function
    def f(value):
        v.assign(value)
        w.assign(value * 2.0)
        return value

    f(ll.constant(4.0))
    assert (v.numpy(), w.numpy()) == (4.0, 8.0)


# 157


def test_157_a_function_that_returns_nothing_still_acts():
    v, seen = ll.Variable(0.0), []

    @ll.function
    def f(by):
        v.assign_add(by)
        ll.py_func(lambda value: seen.append(float(value)), [by], [])

    for n in (1.0, 2.0, 3.0):
        assert f(ll.constant(n)) is None
    assert v.numpy() == 6.0
    assert seen == [1.0, 2.0, 3.0]


# 158


def test_158_one_variable_twice():
    v = ll.Variable([[1.0, 2.0], [3.0, 4.0]])
    for body, grad in ((lambda: ll.sum(v + v), np.full((2, 2), 2.0)), (lambda: ll.sum(v @ v), None)):
        f = ll.function(body)
        with ll.GradientTape() as tape:
            y = f()
        staged = tape.gradient(y, v).numpy()
        with ll.GradientTape() as tape:
            y = body()
        assert np.array_equal(staged, tape.gradient(y, v).numpy())
        assert grad is None or np.array_equal(staged, grad)
        assert f.trace_cache[0].captures == (v,)


# 159


def test_159_recursion_on_numbers_ends():
    @ll.function
    def power(v, n):
        return v if n == 1 else v * power(v, n - 1)

    assert power(x, 4).tolist() == [1.0, 16.0]
    assert len(power.trace_cache) == 4
    power(x, 3)
    assert power.trace_count == 4


def test_159_mutual_recursion():
    even = ll.function(lambda n: ll.constant(True) if n == 0 else odd(n - 1))
    odd = ll.function(lambda n: ll.constant(False) if n == 0 else even(n - 1))
    assert [even(n).item() for n in range(5)] == [True, False, True, False, True]


def test_159_recursion_on_tensors_is_an_error_that_helps():
    @ll.function
    def f(v):
        return v + f(v - 1.0)

    with pytest.raises(RecursionError, match=r"f calls itself .* for ever \(.*f\(v - 1.0\)\)\..*ll.while_loop"):
        f(x)
    assert len(f.trace_cache) == 0
    g = ll.function(lambda v: v * 2.0)
    assert g(x).tolist() == [2.0, 4.0]


# 160


def in_threads(count, call):
    """Runs call(i) in `count` threads that start together; raises what any of them raised."""
    gate, failures = threading.Barrier(count), []

    def run(i):
        try:
            gate.wait()
            call(i)
        except Exception as error:  # noqa: BLE001  # told to the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_160_a_hundred_threads_on_a_cold_function_trace_once():
    def slowly(v):
        time.sleep(0.01)
        return v * 2.0 + 1.0

    f = ll.function(slowly)
    results = {}
    in_threads(100, lambda i: results.update({i: f(ll.constant([float(i)])).item()}))
    assert results == {i: 2.0 * i + 1.0 for i in range(100)}
    assert f.trace_count == len(f.trace_cache) == 1


def test_160_stateful_calls_are_atomic_for_each_op():
    v = ll.Variable(0.0)

    @ll.function
    def f():
        v.assign_add(1.0)

    f()
    in_threads(20, lambda i: [f() for _ in range(50)])
    assert v.numpy() == 1001.0


def test_160_functions_that_trace_each_other_from_two_threads():
    a = ll.function(lambda n: ll.constant(1.0) if n == 0 else b(n - 1) + 1.0)
    b = ll.function(lambda n: ll.constant(2.0) if n == 0 else a(n - 1) + 1.0)
    results = {}
    in_threads(8, lambda i: results.update({i: (a if i % 2 else b)(5).item()}))
    assert [results[i] for i in range(8)] == [6.0, 7.0] * 4
    assert (a.trace_count, b.trace_count) == (6, 6)


# 161


def using(v, held=ll.ones(())):  # noqa: B008  # a tensor
    """A function that closes over a variable and a tensor."""
    return ll.function(lambda w: w * v + ll.sum(held), name="f")


def test_161_deleting_a_function_frees_all_by_reference_counts():
    gc.disable()
    try:
        held = ll.ones((10,))
        v = ll.Variable(1.0)
        f = using(v, held)
        f(x)
        f(x)
        references = [weakref.ref(f), weakref.ref(f.trace_cache[0]), weakref.ref(f.trace_cache[0].graph)]
        del f
        assert [r() for r in references] == [None] * 3
        references = [weakref.ref(held), weakref.ref(v)]
        del held, v
        assert [r() for r in references] == [None] * 2
    finally:
        gc.enable()


def test_161_a_pair_for_gradients_goes_too():
    gc.disable()
    try:
        f = ll.function(lambda w: ll.sum(w * w))
        with ll.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert tape.gradient(y, x).tolist() == [2.0, 4.0]
        reference = weakref.ref(f.trace_cache[0].graph)
        del f, tape, y
        assert reference() is None
    finally:
        gc.enable()


def test_161_a_concrete_function_outlives_its_parent():
    f = ll.function(lambda v: v * 2.0)
    concrete = f.get_concrete_function(x)
    del f
    assert concrete(x).tolist() == [2.0, 4.0]


def test_161_a_graph_does_not_keep_variables_alive():
    v = ll.Variable(1.0, name="weight")
    holder = [v]
    f = ll.function(lambda w: w * holder[0], name="f")
    f(x)
    holder.clear()
    del v
    with pytest.raises(DeadVariableError, match="f uses the variable 'weight', which has been deleted; keep a ref"):
        f(x)


# 162, 163


def test_162_a_variable_stands_for_its_value_and_nothing_for_a_variable():
    v = ll.Variable([3.0, 4.0])
    f = ll.function(lambda a, b: a * b, name="f")
    assert f.get_concrete_function(x, x)(x, v).tolist() == [3.0, 8.0]
    concrete = f.get_concrete_function(x, v)
    v.assign([1.0, 1.0])
    assert concrete(x, v).tolist() == [1.0, 2.0]
    for bad, shown in ((x, r"f32\[2\]"), (ll.Variable(1.0), r"var f32\[\]"), (None, "NoneType")):
        with pytest.raises(SignatureError, match=rf"f: argument `b` must be var f32\[2\], got {shown}"):
            concrete(x, bad)


def test_162_concrete_functions_check_what_they_are_given():
    f = ll.function(lambda v, n, pair: v * n + pair[0] * pair[1], name="f")
    concrete = f.get_concrete_function(x, 2.0, (x, x))
    assert concrete(x, x, x).tolist() == [3.0, 8.0]
    with pytest.raises(SignatureError, match=r"f takes 3 tensors .*got 2"):
        concrete(x, x)
    with pytest.raises(SignatureError, match=r"f: argument `pair\[1\]` must be f32\[2\], got f32\[3\]"):
        concrete(x, x, ll.ones((3,)))


def test_163_signatures_are_readable():
    f = ll.function(lambda v, /, mode, *rest, w, on=True: v, name="f")
    f(x, "relu", {"a": 1}, w=ll.Variable(1.0))
    assert f.trace_cache[0].signature == "v: f32[2], mode: 'relu', rest[0][\"a\"]: 1, on: True, w: var f32[] #0"
    assert repr(f.trace_cache[0]) == f"<f({f.trace_cache[0].signature}): 0 nodes, 0 hits>"
    assert repr(f) == "<limelight function f: 1 trace>"


# 164


def test_164_a_generator_is_returned_as_it_is():
    own = ll.random.Generator(3)
    f = ll.function(lambda g, v: {"g": g, "closed": own, "drawn": g.uniform() + v, "none": None}, name="f")
    g = ll.random.Generator(3)
    results = [f(g, 0.0) for _ in range(2)]
    assert all(result["g"] is g and result["closed"] is own and result["none"] is None for result in results)
    again = ll.random.Generator(3)
    assert [result["drawn"].item() for result in results] == [again.uniform().item() for _ in range(2)]
    assert f.trace_cache[0].returns == "{closed: generator, drawn: f32[], g: generator, none: None}"

    @ll.function
    def outer(v):
        return f(g, v)["g"].uniform() + v

    assert 0.0 <= outer(0.0).item() < 1.0

    class Model:
        noise = None

        @ll.function
        def draw(self):
            if self.noise is None:
                self.noise = ll.random.Generator(5)
            return self.noise, self.noise.uniform()

    model = Model()
    assert all(model.draw()[0] is model.noise for _ in range(2))
    with pytest.raises(ll.errors.StateCreationError, match="creates a generator each time"):
        ll.function(lambda: ll.random.Generator(5))()


def test_164_outputs_of_all_sorts():
    held = ll.constant([7.0])

    @ll.function
    def f(v):
        y = v * 2.0
        return {"none": None, "number": 3, "flag": True, "half": 0.5, "held": held, "pair": (y, y), "in": v, "v": w}

    w = ll.Variable(5.0)
    for _ in range(2):
        out = f(x)
        assert out["none"] is None
        assert (out["number"].item(), out["number"].dtype) == (3, ll.int32)
        assert (out["flag"].item(), out["half"].dtype) == (True, ll.float32)
        assert (out["held"].tolist(), out["in"].tolist(), out["v"].item()) == ([7.0], [1.0, 2.0], 5.0)
        assert [y.tolist() for y in out["pair"]] == [[2.0, 4.0]] * 2


BAD = [(np.ones(2), "ndarray"), ("text", "str"), (object(), "object"), ({1}, "set")]


@pytest.mark.parametrize(("bad", "kind"), BAD)
def test_164_what_a_graph_cannot_return_is_refused_with_its_place(bad, kind):
    f = ll.function(lambda v: (v, {"extra": [bad]}), name="f")
    with pytest.raises(SignatureError, match=rf'f returns a {kind} at `result\[1\]\["extra"\]\[0\]`; .*ll.constant'):
        f(x)
    assert len(f.trace_cache) == 0


# 165


def total(v):
    return ll.sum(v)


@ll.function(reduce_retracing=True, name="doubled")
def at_module_level(v):
    return v * 2.0


def test_165_functions_are_pickled_by_reference_with_their_options():
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level
    staged = ll.function(total, reduce_retracing=True, name="again")
    again = pickle.loads(pickle.dumps(staged))
    assert again.python_function is total
    assert again.name == "again"
    for n in (2, 3, 4):
        assert again(ll.ones((n,))).item() == n
    assert (again.trace_count, staged.trace_count) == (2, 0)
