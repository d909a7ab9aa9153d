"""Walks over the objects that Python's collector follows meet half-made ones and dead proxies."""

import weakref

import pytest

import limelight as ll
from limelight.core import heap
from limelight.core.storage import Storage
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.explain.without_effects import restored


class Gone:
    """Dies while a proxy of it lives."""


@pytest.fixture
def half_made():
    """What users leave behind: a traceback keeps the objects whose constructors raised."""
    errors = []
    for made in (
        lambda: ll.Tensor(3),
        lambda: ll.Variable([1.0, 2.0], shape=(3,)),
        lambda: ll.lookup.HashTable("string", "float32", default_value="no number"),
    ):
        with pytest.raises(Exception) as caught:
            made()
        errors.append(caught.value)
    gone = Gone()
    names = {"proxy": weakref.proxy(gone), "shelf": [weakref.proxy(gone)]}
    del gone
    return errors, names


def test_half_made_objects_are_passed_over(half_made):
    errors, _ = half_made
    assert any(type(x) is Variable and not hasattr(x, "name") for x in _locals_of(errors[1]))
    v = ll.Variable(2.0)
    alive = list(heap.living({Variable: "_data"}))
    assert any(x is v for x in alive)
    assert all(x.name for x in alive)


def _locals_of(error):
    tb = error.__traceback__
    while tb is not None:
        yield from tb.tb_frame.f_locals.values()
        tb = tb.tb_next


def test_classes_without_slots_are_asked_by_their_attributes():
    class Kind:
        def __init__(self, fail):
            self.first = 1
            if fail:
                raise ValueError
            self.last = 2

    whole = Kind(fail=False)
    with pytest.raises(ValueError):
        Kind(fail=True)
    assert list(heap.living({Kind: "last"})) == [whole]


def test_subclasses_and_their_subclasses_are_found():
    class Counter(Variable):
        pass

    class Twice(Counter):
        pass

    made = [Counter(1.0), Twice(2.0)]
    found = list(heap.living({Variable: "_data"}))
    assert all(any(x is v for x in found) for v in made)


def test_a_tuple_that_is_being_made_meanwhile_is_not_held():
    def items():
        walk = heap.living({Tensor: "_uid"})
        yield next(walk)
        yield from range(50)  # more than `tuple` has room for at first
        yield next(walk)

    kept = [ll.constant(1.0), ll.constant(2.0)]
    assert len(tuple(items())) == 52
    assert kept


def test_what_walks_over_the_heap_works_beside_them(half_made):
    _, names = half_made
    f = ll.function(lambda x: x + 1.0)
    x = f(ll.constant(1.0))
    scope = {"x": x, **names}
    found = ll.explain.live_tensors(scope=scope, top=10_000)
    assert any("x" in one.names for one in found.records)
    assert not ll.explain.leaks(f).records
    assert ll.memory_info("CPU:0").current > 0
    v = ll.Variable(1.0)
    with restored():
        v.assign(5.0)
    assert v.numpy() == 1.0
    assert any(x is v._data for x in heap.living({Storage: "uid", Tensor: "_uid"}))
