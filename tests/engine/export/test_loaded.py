"""What was loaded, as an object: its copies, its variables, and the arguments that it takes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections import namedtuple

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, ExportError, SignatureError

X = ll.ones((1, 3))
Pair = namedtuple("Pair", "x y")
Trio = namedtuple("Pair", "x y z")  # its name is the same, its fields are not


@dataclasses.dataclass
class Point:
    x: object
    y: object


@pytest.fixture
def again(tmp_path):
    """Saves and loads."""
    return lambda target, *signatures: ll.load(ll.save(target, tmp_path / "f.ll", list(signatures)))


@pytest.fixture
def loaded(again):
    class Net(ll.Module):
        def __init__(self):
            self.layers = [ll.nn.Flatten(), ll.nn.Dense(2)]
            self.scale = ll.Variable(2.0)
            self.pair = [ll.Variable(1.0), ll.Variable(1.0)]

        def call(self, x):
            return self.layers[1](x) * self.scale * self.pair[0] * self.pair[1]

        @ll.function(input_signature=[])
        def doubled(self):
            return self.scale * 2.0

    return again(Net(), ll.TensorSpec((None, 3)))


class TestCopies:
    def test_a_deep_copy_stands_alone(self, loaded):
        copied = copy.deepcopy(loaded)
        before = copied(X).tolist()
        loaded.scale.assign(0.0)
        assert loaded(X).tolist() == [[0.0, 0.0]]
        assert copied(X).tolist() == before
        assert copied.doubled().item() == 4.0
        copied.scale.assign(0.0)
        assert (copied(X).tolist(), copied.doubled().item()) == ([[0.0, 0.0]], 0.0)
        with ll.GradientTape() as tape:
            total = ll.sum(copied(X))
        assert None not in tape.gradient(total, copied.trainable_variables)
        assert [p for p, _ in copied.named_variables()] == [p for p, _ in loaded.named_variables()]

    def test_so_does_one_of_a_function_with_its_generator(self, again):
        v, mine = ll.Variable(1.0), ll.random.Generator(3)

        @ll.function
        def f():
            v.assign_add(1.0)
            return v.read_value(), mine.normal(())

        f()
        one = again(f)
        two = copy.deepcopy(one)
        assert [x.item() for x in one()] == [x.item() for x in two()]
        assert copy.copy(one) is one
        assert one.variables[0] is not two.variables[0]

    def test_one_in_a_module_of_the_users_goes_with_it(self, again):
        holder = ll.Module()
        holder.inner = again(ll.nn.Sequential(ll.nn.Dense(2)), ll.TensorSpec((None, 3)))
        copied = copy.deepcopy(holder)
        for v in copied.variables:
            v.assign(ll.zeros(v.shape))
        assert copied.inner(X).tolist() == [[0, 0]]
        assert holder.inner(X).tolist() != [[0, 0]]

    def test_methods_and_attributes_of_a_module_that_was_not_loaded(self):
        class Net(ll.Module):
            def __init__(self):
                self.v = ll.Variable(2.0)
                self.attribute = ll.function(self.body)

            def body(self):
                return self.v * 1.0

            @ll.function
            def method(self):
                return self.v * 1.0

        net = Net()
        net.attribute(), net.method()
        copied = copy.deepcopy(net)
        net.v.assign(7.0)
        assert (copied.attribute().item(), copied.method().item()) == (2.0, 2.0)

    def test_pickle_names_ll_save(self, loaded):
        for thing in (loaded, loaded.doubled):
            with pytest.raises(ArgumentError, match=r"is not pickled: write ll.save\(loaded, path\)"):
                pickle.dumps(thing)


@pytest.mark.parametrize(
    "replace",
    [
        lambda m: setattr(m, "scale", ll.Variable(0.0)),
        lambda m: delattr(m, "scale"),
        lambda m: setattr(m.layers[1], "kernel", ll.Variable(0.0)),
        lambda m: setattr(m, "layers", []),
        lambda m: setattr(m, "call", lambda x: x),
        lambda m: setattr(m, "functions", {}),
        lambda m: m.layers.update({1: ll.nn.Dense(2)}),
        lambda m: m.layers.pop(1),
        lambda m: m.pair.__setitem__(0, ll.Variable(0.0)),
        lambda m: m.pair.append(ll.Variable(0.0)),
    ],
)
def test_what_the_traces_use_cannot_be_replaced(loaded, replace):
    before = loaded(X).tolist()
    for one in (loaded, copy.deepcopy(loaded)):
        with pytest.raises(ArgumentError, match=r"cannot be (replaced|changed): its traces"):
            replace(one)
        assert one(X).tolist() == before
    loaded.scale = loaded.scale
    loaded.note = "its own"
    loaded.note = "another"


class TestArguments:
    def test_named_tuples_are_known_by_name_and_fields(self, again):
        number = ll.TensorSpec(())
        f = again(lambda p, q=None: p.x - p.y, (Pair(number, number),), (Pair(number, number), {"a": [Pair(1, 2)]}))
        three, one = ll.constant(3.0), ll.constant(1.0)
        assert f(Pair(three, one)).item() == 2
        assert f(Pair(3, 1.0)).item() == 2
        assert f(Pair(three, one), {"a": [Pair(1, 2)]}).item() == 2
        for other in (Trio(three, one, one), (three, one), Point(three, one)):
            with pytest.raises(SignatureError):
                f(other)

    def test_so_are_dataclasses(self, again):
        f = again(lambda p: p.x - p.y[0], (Point(ll.TensorSpec(()), [ll.TensorSpec(())]),))
        assert f(Point(ll.constant(3.0), [ll.constant(1.0)])).item() == 2
        assert f(Point(3, [1])).item() == 2
        with pytest.raises(SignatureError, match=r"p\.x"):
            f(Pair(ll.constant(3.0), [ll.constant(1.0)]))

    @pytest.mark.parametrize(
        ("given", "twice"),
        [(27, 54.0), (1.5, 3.0), (True, 2.0), ([1.0, 2], [2.0, 4.0]), (np.ones(2, np.float32), [2.0, 2.0])],
    )
    def test_numbers_lists_and_arrays_that_fit(self, again, given, twice):
        f = again(lambda x: x * 2, ll.TensorSpec(()), ll.TensorSpec((None,)))
        assert f(given).tolist() == twice
        assert f(ll.Variable(ll.constant(given, ll.float32))).tolist() == twice
        assert ll.function(lambda: f(given))().tolist() == twice

    def test_a_number_goes_to_the_trace_of_its_own_dtype_first(self, again):
        f = again(lambda x: x * 2, ll.TensorSpec(()), ll.TensorSpec((), ll.constant(1).dtype))
        assert f(27).dtype == ll.constant(27).dtype
        assert f(2.5).item() == 5.0

    @pytest.mark.parametrize(
        ("given", "hint"),
        [
            (np.ones(2), r'write x.astype\("float32"\)'),
            (ll.ones(2, dtype="float64"), r'write ll.astype\(x, "float32"\)'),
            (np.ones((2, 2)), r"x: f64\[2,2\]\); those"),
            ("text", r"x: 'text'\); those"),
            (1j, r"x: 1j\); those"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_what_to_write(self, again, given, hint):
        f = again(lambda x: x * 2, ll.TensorSpec(()), ll.TensorSpec((None,)))
        with pytest.raises(SignatureError, match=hint):
            f(given)

    def test_keywords_and_plain_values_beside_them(self, again):
        g = ll.function(lambda x, *rest, how="sum", **more: getattr(ll, how)(x) + more["y"])
        g(ll.ones(2), how="max", y=ll.constant(1.0))
        f = again(g)
        assert f([1.0, 4.0], how="max", y=2).item() == 6.0
        with pytest.raises(SignatureError, match="how: 'sum'"):
            f([1.0, 4.0], y=2)


def test_a_name_that_is_too_long(tmp_path):
    path = tmp_path / ("x" * 300)
    with pytest.raises(ExportError, match="cannot be written: its name is too long"):
        ll.save(lambda x: x, path, ll.TensorSpec(()))
    with pytest.raises(ExportError, match="cannot be read"):
        ll.load(path)
    with pytest.raises(ll.errors.CheckpointError, match="cannot be written: its name is too long"):
        ll.Checkpoint(v=ll.Variable(1.0)).write(path)
    with pytest.raises(ll.errors.CheckpointError, match="cannot be read"):
        ll.Checkpoint(v=ll.Variable(1.0)).restore(path)
    net = ll.nn.Dense(1)
    net(ll.ones((1, 1)))
    with pytest.raises(ll.errors.CheckpointError, match="cannot be written: its name is too long"):
        ll.nn.save_weights(net, path)


def test_a_checkpoint_refuses_it_with_what_reads_it(tmp_path):
    path = ll.save(lambda x: x, tmp_path / "f.ll", ll.TensorSpec(()))
    with pytest.raises(ll.errors.CheckpointError, match=r"it has functions that ll.save wrote, and ll.load\(path\)"):
        ll.Checkpoint(v=ll.Variable(1.0)).restore(path)
    assert inspect.signature(ll.load(path)).parameters.keys() == {"x"}
