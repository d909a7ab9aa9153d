"""Section 4.6, `function`: captures, leaks, composition, state creation (behaviours 149 to 155)."""

from __future__ import annotations

import gc
import warnings

import pytest

import limelight as ll
from limelight.errors import LeakedTensorError, StateCreationError


@pytest.fixture(autouse=True)
def _quiet():
    """Many of these tests retrace on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


x = ll.constant([1.0, 2.0])


def ops(graph):
    return [node.op for node in graph.nodes]


# 149


def test_149_listing_7():
    v = ll.Variable(0.0)

    @ll.function
    def mutate():
        v.assign_add(1.0)
        return v.read_value()

    mutate()
    assert float(v.read_value()) == 1.0
    v.assign_add(1.0)
    assert float(v.read_value()) == 2.0
    mutate()
    assert float(v.read_value()) == 3.0
    assert mutate.trace_count == 1


def test_149_through_attributes_lists_and_nested_functions():
    class Holder:
        pass

    holder = Holder()
    holder.v, several = ll.Variable(1.0), [ll.Variable(10.0)]
    inner = ll.function(lambda: holder.v + several[0])
    outer = ll.function(lambda: inner() * 2.0)
    assert outer().item() == 22.0
    holder.v.assign(2.0)
    several[0].assign(20.0)
    assert (outer().item(), inner().item()) == (44.0, 22.0)
    assert (outer.trace_count, inner.trace_count) == (1, 1)


# 150


def test_150_tensors_are_captured_as_silent_inputs():
    big = ll.ones((1000,)) * 3.0
    f = ll.function(lambda v: ll.sum(big) + v + ll.sum(big))
    assert f(1.0 * x).tolist() == [6001.0, 6002.0]
    (entry,) = f.trace_cache
    assert entry.captures == (big,)
    assert len(entry.graph.inputs) == 2
    assert sum(node.params[0].array.nbytes for node in entry.graph.nodes if node.op == "constant") < 100


def test_150_rebinding_the_name_is_not_seen():
    scale = ll.constant(2.0)

    def body(v):
        return v * scale

    f = ll.function(body)
    assert f(x).tolist() == [2.0, 4.0]
    scale = ll.constant(5.0)
    assert f(x).tolist() == [2.0, 4.0]
    assert body(x).tolist() == [5.0, 10.0]
    f.clear_cache()
    assert f(x).tolist() == [5.0, 10.0]


def test_150_a_returned_capture_keeps_its_value():
    held = ll.constant([5.0])
    f = ll.function(lambda: (held, held + 1.0))
    same, more = f()
    assert (same.tolist(), more.tolist()) == ([5.0], [6.0])
    f()
    assert same.tolist() == [5.0]


# 151


def leaked_from(how):
    """A symbolic tensor that got out of the trace of a function named `leaky`."""
    out = []

    def leaky(v):
        how(v * 2.0, out)  # the line that made it
        return v

    ll.function(leaky)(x)
    return out[0]


def _through_an_exception(v, out):
    try:
        raise ValueError(v)
    except ValueError as error:
        out.append(error.args[0])


def _through_a_generator(v, out):
    generator = (v + i for i in range(3))
    next(generator)
    out.append(next(generator))


def _through_a_default(v, out):
    def later(w=v):
        return w

    out.append(later())


WAYS = {
    "list": lambda v, out: out.append(v),
    "exception": _through_an_exception,
    "generator": _through_a_generator,
    "default": _through_a_default,
}


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.slow  # looks through all objects of the process
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_151_leaks_are_caught_wherever_they_are_used(how):
    leaked = leaked_from(how)
    staged = ll.function(lambda v: v + leaked)
    uses = [lambda: leaked + 1.0, leaked.numpy, leaked.__bool__, lambda: staged(x)]
    for use in uses:
        with pytest.raises(LeakedTensorError) as caught:
            use()
        message = str(caught.value)
        assert "leaked out of the function 'leaky'" in message
        assert "f32[2]" in message
        assert "made at" in message or "test_4_6_graphs.py line" in message
        assert "ll.Variable" in message
    assert len(staged.trace_cache) == 0


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_151_the_line_that_made_it_is_named():
    with pytest.raises(LeakedTensorError, match=r"how\(v \* 2.0, out\)  # the line that made it"):
        leaked_from(WAYS["list"]).item()


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_151_a_leak_may_be_looked_at():
    leaked = leaked_from(WAYS["list"])
    assert (leaked.shape, leaked.dtype) == ((2,), ll.float32)
    assert "leaky" in repr(leaked)


def test_151_a_leak_out_of_a_loop_body():
    out = []

    def body(i):
        out.append(i)
        return i + 1

    f = ll.function(lambda n: ll.while_loop(lambda i: i < n, body, [ll.constant(0)]))
    f(ll.constant(3))
    with pytest.raises(LeakedTensorError):
        out[0] + 1


def test_151_an_inner_trace_may_use_the_tensors_of_the_outer_one():
    @ll.function
    def outer(v):
        doubled = v * 2.0
        inner = ll.function(lambda w: w + doubled)
        return inner(v)

    assert outer(x).tolist() == [3.0, 6.0]


# 152


def test_152_a_call_is_one_node_with_the_graph_of_the_inner_function():
    traces = []

    @ll.function
    def inner(v):
        traces.append("inner")
        return v * 2.0

    outer = ll.function(lambda v: inner(inner(v)) + 1.0)
    assert outer(x).tolist() == [5.0, 9.0]
    assert inner(x).tolist() == [2.0, 4.0]
    assert traces == ["inner"]
    (entry,) = outer.trace_cache
    calls = [node for node in entry.graph.nodes if node.op == "call"]
    assert len(calls) == 2
    assert all(node.params[0].graph is inner.trace_cache[0].graph for node in calls)


def test_152_inner_captures_become_outer_captures():
    v, held = ll.Variable(3.0), ll.constant(4.0)
    inner = ll.function(lambda w: w * v + held)
    outer = ll.function(lambda w: inner(w) * 2.0)
    assert outer(ll.constant(1.0)).item() == 14.0
    assert set(map(id, outer.trace_cache[0].captures)) == {id(v), id(held)}
    v.assign(5.0)
    assert outer(ll.constant(1.0)).item() == 18.0


def test_152_unknown_sizes_get_an_entry_of_their_own():
    inner = ll.function(lambda w: w * 2.0)
    outer = ll.function(inner, input_signature=[ll.TensorSpec((None,), "float32")])
    inner(x)
    assert outer(ll.ones((3,))).tolist() == [2.0] * 3
    assert [entry.signature for entry in inner.trace_cache] == ["w: f32[2]", "w: f32[?]"]
    assert outer.trace_cache[0].graph.outputs[0].spec.shape == (None,)


def test_152_shapes_are_inferred_through_a_call():
    inner = ll.function(lambda w: ll.reshape(w, (4, 1)))
    seen = []

    @ll.function
    def outer(w):
        y = inner(w)
        seen.append(y.shape)
        return y

    outer(ll.ones((2, 2)))
    assert seen == [(4, 1)]


# 153


class Counter:
    """Makes its state on the first call."""

    def __init__(self):
        self.v = None
        self.created = 0

    @ll.function
    def step(self, by):
        if self.v is None:
            self.v = ll.Variable(10.0)
            self.created += 1
        self.v.assign_add(by)
        return self.v.read_value()


def test_153_state_is_made_once_and_the_function_traced_twice():
    counter = Counter()
    assert counter.step(1.0).item() == 11.0
    assert counter.step.trace_count == 2
    assert len(counter.step.trace_cache) == 1
    assert counter.step(1.0).item() == 12.0
    assert (counter.step.trace_count, counter.created) == (2, 1)


def test_153_the_initial_value_is_not_in_the_graph():
    made = []

    @ll.function
    def f(v):
        if not made:
            made.append(ll.Variable(ll.exp(ll.constant([1.0, 2.0]))))
        return v * made[0]

    f(x)
    assert "exp" not in ops(f.trace_cache[0].graph)
    assert f.trace_cache[0].captures == (made[0],)


def test_153_after_clearing_and_resetting_state_it_happens_again():
    counter = Counter()
    counter.step(1.0)
    counter.v = None
    counter.step.clear_cache()
    assert counter.step(2.0).item() == 12.0
    assert (counter.step.trace_count, counter.created) == (4, 2)


# 154


def test_154_a_variable_on_every_call_is_refused_kept_or_not():
    kept = []
    for keep in (kept.append, lambda v: None):

        @ll.function
        def f(v, keep=keep):
            made = ll.Variable(1.0)
            keep(made)
            return v * made

        with pytest.raises(StateCreationError, match=r"f creates a variable each time .*made = ll.Variable\(1.0\)"):
            f(x)
        assert len(f.trace_cache) == 0


def test_154_a_variable_on_a_later_call_is_refused_before_damage():
    made = {}

    @ll.function
    def f(v):
        if v.shape not in made:
            made[v.shape] = ll.Variable(1.0)
        return v * made[v.shape]

    assert f(x).tolist() == [1.0, 2.0]
    with pytest.raises(StateCreationError, match=r"on a call other than its first .*made\[v.shape\] = .*if self.w is"):
        f(ll.ones((3,)))
    assert len(f.trace_cache) == 1
    assert f(x).tolist() == [1.0, 2.0]


# 155


@pytest.mark.parametrize(("initial", "wanted"), [
    (lambda v: 2.0, 2.0),
    (lambda v: lambda: ll.constant(3.0), 3.0),
    (lambda v: ll.constant(2.0) * 3.0, 6.0),
    (lambda v: ll.sum(v) * 2.0, 6.0),
], ids=["constant", "callable", "computed", "argument"])  # fmt: skip
def test_155_initial_values(initial, wanted):
    made = []

    @ll.function
    def f(v):
        if not made:
            made.append(ll.Variable(initial(v)))
        return made[0] + 0.0

    assert f(x).item() == wanted
    assert f(x * 100.0).item() == wanted
    assert made[0].numpy() == wanted


def test_155_a_value_set_elsewhere_first_is_kept():
    made = []

    @ll.function
    def f():
        if not made:
            made.append(ll.Variable(1.0))
            with ll.init_scope():
                made[0].assign(7.0)
        return made[0].read_value()

    assert f().item() == 7.0


def test_155_an_inner_function_creates_when_first_called_from_an_outer_one():
    counter = Counter()
    outer = ll.function(lambda by: counter.step(by) * 2.0)
    assert outer(ll.constant(1.0)).item() == 22.0
    assert outer(ll.constant(1.0)).item() == 24.0
    assert counter.step(ll.constant(1.0)).item() == 13.0
    assert counter.created == 1
    gc.collect()
    assert outer(ll.constant(1.0)).item() == 28.0
