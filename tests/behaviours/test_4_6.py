"""Section 4.6, `function`: what a call is keyed by (behaviours 133 to 140)."""

from __future__ import annotations

import collections
import dataclasses
import warnings
import weakref

import numpy as np
import pytest

import limelight as ll
from limelight.errors import SignatureError


@pytest.fixture(autouse=True)
def _quiet():
    """Many of these tests retrace on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ll.errors.RetracingWarning)
        yield


x = ll.constant([1.0, 2.0])


def values(tree):
    return [leaf.tolist() if isinstance(leaf, ll.Tensor) else leaf for leaf in tree]


# 133


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float32", "complex64", "bfloat16"])
def test_133_tensors_are_keyed_by_dtype_and_shape_alone(dtype):
    f = ll.function(lambda v: v)
    for value in (0, 1, 0):
        f(ll.astype(ll.constant([value, 1]), dtype))
    assert f.trace_count == 1


def test_133_each_dtype_and_each_shape_is_a_trace():
    f = ll.function(lambda v: v)
    kinds = [((12, 1), "float32"), ((1, 21), "float32"), ((121,), "float32"), ((2,), "complex64"), ((2,), "complex128")]
    for _ in range(2):
        for shape, dtype in kinds:
            assert f(ll.zeros(shape, dtype=dtype)).shape == shape
    assert f.trace_count == len(f.trace_cache) == 5
    assert [entry.hits for entry in f.trace_cache] == [1] * 5


# 134


def test_134_python_values_make_different_graphs():
    @ll.function
    def lossy(v, training=False):
        return v * 2.0 if training else v

    assert lossy(x, training=True).tolist() == [2.0, 4.0]
    assert lossy(x).tolist() == [1.0, 2.0]
    assert lossy(x, True).tolist() == [2.0, 4.0]
    assert lossy.trace_count == 2
    assert [len(e.graph.nodes) for e in lossy.trace_cache] == [2, 0]


def test_134_one_and_one_point_zero_and_true_differ():
    f = ll.function(lambda n: n * 1)
    results = [f(n) for n in (1, 1.0, True, 1, 1.0, True)]
    assert [r.dtype.name for r in results] == ["int32", "float32", "int32"] * 2
    assert f.trace_count == 3


def test_134_equal_values_hit_however_they_came_about():
    f = ll.function(lambda v, mode: v)
    for n in range(3):
        f(x, "".join(["re", "lu"]))
        f(x, 10**20)
        f(x, 0.1 + n * 0.0)
    assert f.trace_count == 3


def test_134_nan_does_not_retrace_for_ever_and_zeros_have_signs():
    f = ll.function(lambda v, n: v * n)
    for _ in range(3):
        f(x, float("nan"))
    assert f.trace_count == 1
    assert np.signbit(f(x, -0.0).numpy()).all()
    assert not np.signbit(f(x, 0.0).numpy()).any()
    assert f.trace_count == 3


# 135


class Thing:
    """Has no value of its own; its instances are all equal for whoever asks them."""

    factor = 2.0

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


def test_135_other_objects_are_keyed_by_identity_not_by_equality():
    f = ll.function(lambda v, thing: v * thing.factor)
    one, other = Thing(), Thing()
    other.factor = 3.0
    assert f(x, one).tolist() == [2.0, 4.0]
    assert f(x, other).tolist() == [3.0, 6.0]
    assert f(x, one).tolist() == [2.0, 4.0]
    assert f.trace_count == 2


def test_135_objects_are_held_weakly_and_their_entries_go():
    f = ll.function(lambda v, thing: v)
    thing = Thing()
    f(x, thing)
    reference = weakref.ref(thing)
    del thing
    assert reference() is None
    f(x, keep := Thing())
    assert len(f.trace_cache) == 1
    assert f.trace_cache[0].key.parts[1].identity.ref() is keep


def test_135_a_reused_id_never_hits():
    f = ll.function(lambda v, thing: v * thing.factor)

    def call(factor):
        thing = Thing()
        thing.factor = factor
        return id(thing), f(x, thing).tolist()

    seen = [call(float(n)) for n in range(20)]
    assert len({i for i, _ in seen}) < 20  # CPython has used an id again
    assert [v for _, v in seen] == [[float(n), 2.0 * n] for n in range(20)]


def test_135_an_eq_that_raises_does_not_break_the_look_up():
    class Touchy:
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise RuntimeError("compare me not")

    f = ll.function(lambda v, t: v)
    one, other = Touchy(), Touchy()
    for thing in (one, other, one):
        f(x, thing)
    assert f.trace_count == 2


def test_135_an_unhashable_object_is_keyed_by_identity_too():
    class Bag:
        __hash__ = None

        def __eq__(self, other):
            return True

    f = ll.function(lambda v, bag: v)
    one, other = Bag(), Bag()
    f(x, one)
    f(x, one)
    assert f.trace_count == 1
    f(x, other)
    assert f.trace_count == 2


# 136


@pytest.mark.parametrize(
    "bad",
    [{1, 2}, frozenset([1]), bytearray(b"ab"), memoryview(b"ab"), weakref.ref(Thing), (n for n in range(3))],
)
def test_136_what_cannot_be_keyed_is_refused_by_name(bad):
    f = ll.function(lambda v, options: v, name="f")
    with pytest.raises(TypeError, match=r'f: argument `options\["which"\]`: a \w+ can.*(pass|close over)') as caught:
        f(x, {"which": bad})
    assert isinstance(caught.value, SignatureError)
    assert type(bad).__name__ in str(caught.value)
    assert f.trace_count == 0


def test_136_an_object_without_weak_references_is_keyed_by_identity_and_kept():
    class Slim:
        __slots__ = ("n",)

        def __init__(self, n):
            self.n = n

        def method(self):
            return self.n

    f = ll.function(lambda v, thing: v * (thing() if callable(thing) else thing.n), name="f")
    two, three = Slim(2.0), Slim(3.0)
    for _ in range(2):
        assert [f(x, thing).tolist()[0] for thing in (two, three, two.method)] == [2.0, 3.0, 2.0]
    assert f.trace_count == 3
    assert "thing: = Slim object  (by identity, kept alive)" in f.trace_cache[0].full_signature
    kept = id(two)
    del two
    assert id(f.trace_cache[0].key.parts[1].identity.target()) == kept  # so no other object can take its place
    assert f(x, Slim(5.0)).tolist()[0] == 5.0
    f.clear_cache()
    assert [part for ghost in f.trace_cache.history.ghosts for part in ghost.objects if part.keeps_alive] == []


# 137


def test_137_arrays_are_tensors():
    f = ll.function(lambda v, *, scale: v * scale)
    array = np.ones((2,), "float32")
    assert f(array, scale=np.float32(2.0)).tolist() == [2.0, 2.0]
    array[0] = 5.0
    assert f(array, scale=np.float32(3.0)).tolist() == [15.0, 3.0]
    assert f(ll.constant(array), scale=ll.constant(1.0)).tolist() == [5.0, 1.0]
    assert f.trace_count == 1


def test_137_subclasses_and_zero_dimensions():
    class Marked(np.ndarray):
        pass

    f = ll.function(lambda v: v + 1.0)
    assert f(np.zeros((2,), "float32").view(Marked)).tolist() == [1.0, 1.0]
    assert f(np.zeros((2,), "float32")).tolist() == [1.0, 1.0]
    assert f.trace_count == 1
    assert f(np.array(2.0, "float32")).item() == 3.0
    assert f(np.float32(4.0)).item() == 5.0
    assert f.trace_count == 2


def test_137_an_array_changed_after_the_call_does_not_change_the_result():
    f = ll.function(lambda v: (v, v * 1.0))
    array = np.ones((2,), "float32")
    same, product = f(array)
    array[:] = 9.0
    assert values((same, product)) == [[1.0, 1.0], [1.0, 1.0]]


# 138


def test_138_binding_is_canonical():
    f = ll.function(lambda a, b=2: a * 10 + b)
    for args, kwargs in [((1, 2), {}), ((), {"a": 1, "b": 2}), ((), {"b": 2, "a": 1}), ((1,), {"b": 2}), ((1,), {})]:
        assert f(*args, **kwargs).item() == 12
    assert f.trace_count == 1


def test_138_keywords_have_no_order_and_are_no_dictionary():
    def either(a, *rest, **options):
        return a + sum([*options.values(), *(value for one in rest for value in one.values())])

    f = ll.function(either)
    assert f(1, x=2, y=3).item() == 6
    assert f(1, y=3, x=2).item() == 6
    assert f.trace_count == 1
    assert f(1, {"x": 2, "y": 3}).item() == 6
    assert f.trace_count == 2
    g = ll.function(lambda *args, **options: len(args) * 10 + len(options))
    assert (g((1,), {"x": 2}).item(), g(1, x=2).item()) == (20, 11)


def test_138_keyword_only_and_default_tensors():
    @ll.function
    def f(*parts, scale, shift=ll.constant(1.0)):  # noqa: B008  # a default that is a tensor is the point
        return sum(parts) * scale + shift

    assert f(ll.constant(1.0), ll.constant(2.0), scale=2.0).item() == 7.0
    assert f(ll.constant(1.0), ll.constant(2.0), shift=ll.constant(5.0), scale=2.0).item() == 11.0
    assert f.trace_count == 1


# 139

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    """Two values."""

    left: object
    right: object


def test_139_structure_is_part_of_the_key():
    f = ll.function(lambda tree: 1.0)
    trees = [[[x], x, x], [[x, x], x], ([x, x], x), {"a": x, "b": x}, {"a": x, "c": x}, Point(x, x), Pair(x, x), (x, x)]
    for tree in [*trees, *trees]:
        f(tree)
    assert f.trace_count == len(trees)


def test_139_the_order_of_a_dictionary_does_not_matter():
    f = ll.function(lambda tree: tree["a"] - tree["b"])
    assert f({"a": x, "b": 2.0 * x}).tolist() == [-1.0, -2.0]
    assert f({"b": 2.0 * x, "a": x}).tolist() == [-1.0, -2.0]
    assert f.trace_count == 1
    for ordered in (collections.OrderedDict(b=2.0 * x, a=x), collections.OrderedDict(a=x, b=2.0 * x)):
        assert f(ordered).tolist() == [-1.0, -2.0]
    assert f.trace_count == 2  # it arrives as what it is, and its order is no part of that


def test_139_structures_come_in_and_go_out():
    f = ll.function(lambda point, pair: (Point(pair.left, point.x), Pair(point.y, {"n": [pair.right]})))
    point, pair = f(Point(1.0 * x, 2.0 * x), Pair(3.0 * x, 4.0 * x))
    assert values(point) == [[3.0, 6.0], [1.0, 2.0]]
    assert type(point) is Point
    assert (type(pair), pair.left.tolist(), pair.right["n"][0].tolist()) == (Pair, [2.0, 4.0], [4.0, 8.0])


def test_139_plain_fields_of_a_structure_are_keyed():
    f = ll.function(lambda pair: pair.left * pair.right)
    assert [f(Pair(x, n)).tolist()[0] for n in (2, 3, 2)] == [2.0, 3.0, 2.0]
    assert f.trace_count == 2


# 140


def test_140_variables_are_keyed_by_type_and_aliasing():
    f = ll.function(lambda a, b, c: a + 10.0 * b + 100.0 * c)
    v, w, u = (ll.Variable(n) for n in (1.0, 2.0, 3.0))
    assert f(v, w, u).item() == 321.0
    assert f(u, w, v).item() == 123.0
    assert f.trace_count == 1
    assert f(v, v, u).item() == 311.0
    assert f.trace_count == 2
    assert f(w, w, u).item() == 322.0
    assert f.trace_count == 2


def test_140_gradients_with_an_aliased_variable():
    f = ll.function(lambda a, b: a * b)
    v, w = ll.Variable(3.0), ll.Variable(4.0)
    for pair, wanted in (((v, w), [4.0, 3.0]), ((v, v), [6.0, 6.0])):
        with ll.GradientTape() as tape:
            y = f(*pair)
        assert [g.item() for g in tape.gradient(y, list(pair))] == wanted


def test_140_an_aliased_variable_is_assigned_once():
    @ll.function
    def f(a, b):
        a.assign_add(1.0)
        return b.read_value()

    v, w = ll.Variable(1.0), ll.Variable(10.0)
    assert (f(v, w).item(), f(v, v).item(), f(w, w).item()) == (10.0, 3.0, 11.0)
