"""Section 4.6, `function`: all goes by reference counts alone (behaviours 26 and 161), also after errors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import limelight as ll


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def fails(*_: Any) -> Any:
    raise ZeroDivisionError


@ll.custom_gradient
def squared(a: Any) -> Any:
    return a * a, lambda g: g * 2 * a


def with_state() -> Callable[[Any], Any]:
    made: list[Any] = []

    def body(a: Any) -> Any:
        if not made:
            made.append(ll.Variable([1.0, 2.0, 3.0]))
        return ll.sum(a * made[0])

    return body


def converted(a: Any) -> Any:
    while ll.sum(a) < 100:
        if ll.sum(a) > 0:
            a = a * 2
        for row in a:
            a = a + row
    return ll.sum(a)


def nested() -> Callable[[Any], Any]:
    inner = ll.function(lambda a: a * a)
    return lambda a: ll.sum(inner(inner(a)))


def loop(body: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda a: ll.sum(ll.while_loop(lambda i, b: i < 3, body, (ll.constant(0), a))[1])


spec = ll.TensorSpec((3,))
BODIES: dict[str, Any] = {
    "plain": lambda a: ll.sum(ll.sin(a)),
    "cond": lambda a: ll.sum(ll.cond(ll.sum(a) > 0, lambda: a * a, lambda: a)),
    "switch": lambda a: ll.sum(ll.switch(ll.constant(1), [lambda: a, lambda: a * a])),
    "while_loop": lambda a: loop(lambda i, b: (i + 1, b * a))(a),
    "scan": lambda a: ll.scan(lambda c, b: (c * b, c), ll.constant(1.0), a)[0],
    "map_fn": lambda a: ll.sum(ll.map_fn(lambda b: b * b, a)),
    "py_func": lambda a: ll.sum(ll.py_func(lambda b: b * b, [a], spec)),
    "custom_gradient": lambda a: ll.sum(squared(a)),
    "recompute_grad": lambda a: ll.sum(ll.recompute_grad(lambda b: ll.sin(b) * b)(a)),
    "hessian": lambda a: ll.sum(ll.hessian(lambda b: ll.sum(b * b * b))(a)),
    "vectorize": lambda a: ll.sum(ll.vectorize(lambda b: b * b)(a)),
    "nested": nested(),
    "state": with_state(),
    "autograph": converted,
    "raises": fails,
    "raises in a branch": lambda a: ll.cond(ll.sum(a) > 0, fails, lambda: a),
    "raises in a loop": loop(fails),
    "raises at run time": lambda a: ll.sum(ll.py_func(fails, [a], spec)),
    "a kernel raises": lambda a: ll.sum(ll.linalg.cholesky(ll.expand_dims(a, axis=0) * ll.eye(3) - 9.0)),
}


def differentiated_twice(f: Any, z: Any) -> list[Any]:
    """Runs `f` under two tapes, and returns weak references to all that was made."""
    made: list[Any] = [f, z]
    try:
        f(z)
        with ll.GradientTape(persistent=True) as outer:
            outer.watch(z)
            with ll.GradientTape() as inner:
                inner.watch(z)
                y = f(z)
            g = inner.gradient(y, z)
        made += [outer, inner, y, g]
        if g is not None:
            made.append(outer.gradient(g, z))
    except (ZeroDivisionError, ll.errors.LinAlgError):
        pass
    made += [part for entry in f.trace_cache for part in (entry, entry.graph, entry.function)]
    return [weakref.ref(x) for x in made if x is not None]


@pytest.mark.slow  # collects garbage in each of its many cases
@pytest.mark.filterwarnings("ignore:gradient.. of a persistent tape")
@pytest.mark.parametrize("name", list(BODIES))
def test_161_functions_graphs_tapes_and_tensors_die_at_once(name: str) -> None:
    f = ll.function(BODIES[name], autograph=name == "autograph")
    z = ll.constant([1.0, 2.0, 3.0])
    references = differentiated_twice(f, z)
    assert len(references) >= 2
    del f, z
    left = [reference() for reference in references]
    assert [type(x).__name__ for x in left if x is not None] == []


def test_161_explanations_keep_nothing() -> None:
    f, z = ll.function(lambda a: a * 2), ll.ones((3,))
    f(z)
    f(ll.ones((4,)))
    for told in (ll.explain.retrace(f), ll.explain.baked(f), ll.explain.side_effects(f), f.explain(ll.ones((5,)))):
        assert str(told)
    references = [weakref.ref(x) for x in (f, z, f.trace_cache[0], f.trace_cache[0].graph)]
    del f, z, told
    assert [reference() for reference in references] == [None] * 4


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_161_a_leak_that_was_told_keeps_nothing() -> None:
    kept: list[Any] = []
    f = ll.function(lambda a: [kept.append(a * 2), a][1])
    f(ll.ones(()))
    with pytest.raises(ll.errors.LeakedTensorError, match=r"kept as kept\[0\]") as caught:
        kept[0] + 1
    del caught
    references = [weakref.ref(kept[0]), weakref.ref(f)]
    kept.clear()
    del f
    assert [reference() for reference in references] == [None] * 2


def test_026_tensors_die_after_errors() -> None:
    z = ll.ones((3,))
    with pytest.raises(ll.errors.ShapeError), ll.GradientTape() as tape:
        tape.watch(z)
        y = z * z
        z + ll.ones((4,))
    references = [weakref.ref(x) for x in (tape, y, z)]
    del tape, y, z
    assert [reference() for reference in references] == [None] * 3


@pytest.mark.slow  # collects garbage
def test_161_tracing_leaves_nothing_to_collect() -> None:
    f = ll.function(lambda a: ll.cond(ll.sum(a) > 0, lambda: a * a, lambda: a))
    f(ll.ones((3,)))
    gc.collect()
    g = ll.function(lambda a: ll.cond(ll.sum(a) > 0, lambda: a * a, lambda: a))
    g(ll.ones((3,)))
    assert np.array_equal(g(ll.ones((3,))), [1.0, 1.0, 1.0])
    assert gc.collect() == 0
