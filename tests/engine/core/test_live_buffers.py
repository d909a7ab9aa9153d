"""Births less deaths of buffers are what lives, at every event; plans say what their temporaries need."""

from __future__ import annotations

import gc
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import limelight as ll
from limelight import events
from limelight.core.collector import collector_paused
from limelight.executors import base as executors

MAKERS = {
    "constant": lambda x, w: ll.constant(np.ones((4, 5), "float32")),
    "add": lambda x, w: x + x,
    "view": lambda x, w: ll.reshape(x, (5, 4)),
    "transpose": lambda x, w: x.T,
    "same": lambda x, w: ll.reshape(x, x.shape),
    "part": lambda x, w: x[0],
    "read": lambda x, w: w.read() if hasattr(w, "read") else w + 0.0,
    "sum": lambda x, w: ll.sum(x),
    "assigned": lambda x, w: w.assign(ll.ones((4, 5))),
    "updated": lambda x, w: w.assign_add(ll.ones((4, 5))),
    "staged": lambda x, w: staged(w),
    "number": lambda x, w: ll.constant(3.0),
}


@ll.function
def staged(w):
    w.assign(ll.tanh(w) * 2.0)
    return w + 1.0, ll.reshape(w, (20,))


class Count:
    """Bytes alive, from births and deaths alone."""

    def __init__(self) -> None:
        self.live = ll.memory_info().current

    def __call__(self, event):
        self.live += event.nbytes if isinstance(event, events.Allocated) else -event.nbytes


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(MAKERS)), max_size=10), st.lists(st.integers(0, 9), max_size=6))
def test_births_less_deaths_are_the_bytes_alive(names, dropped):
    old = ll.ones((4, 5))  # it lived before anybody listened
    w = ll.Variable(ll.ones((4, 5)))
    staged(w)
    kept = [old]
    del old
    with collector_paused(), events.listen(count := Count(), events.Allocated, events.Freed):
        for name in names:
            matrix = next((x for x in reversed(kept) if isinstance(x, ll.Tensor) and x.shape == (4, 5)), None)
            kept.append(MAKERS[name](w + 0.0 if matrix is None else matrix, w))
            del matrix
            assert count.live == ll.memory_info().current
        for index in dropped:
            if index < len(kept):
                kept[index] = None
                assert count.live == ll.memory_info().current
        del kept
        assert count.live == ll.memory_info().current


def test_a_buffer_is_born_at_the_users_line():
    seen = []
    with events.listen(seen.append, events.Allocated):
        x = ll.ones((8, 8))
    assert [event.nbytes for event in seen] == [256]
    assert seen[0].source.file == __file__
    del x


def test_nothing_is_kept_when_nobody_listens():
    from limelight.core import live_buffers

    with events.listen(print, events.Freed, events.Allocated):
        kept = ll.ones((3,))
        assert live_buffers._live
    assert not live_buffers._live
    del kept


@ll.function
def layers(x):
    hidden = ll.tanh(x @ x)
    return inner(hidden) * x


@ll.function
def inner(h):
    wide = ll.exp(h) + h * h
    return wide @ h


@ll.function
def views(x):
    part = ll.reshape(x * 2.0, (x.shape[1], x.shape[0])).T
    return part + x, ll.sum(part)


@pytest.mark.parametrize("function", [layers, inner, views], ids=lambda f: f.name)
def test_what_a_plan_says_it_needs_is_what_the_allocator_counts(function):
    x = ll.ones((512, 512))
    with executors.chosen.override("plan"):  # tables keep their memory from one run to the next
        function.clear_cache()
        function(x)
    seen = []
    with events.listen(seen.append, events.OpRan):
        function(x)
    (call,) = seen
    gc.collect()
    tracemalloc.start()
    try:
        function(x)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert call.exact
    assert call.most == pytest.approx(used, abs=50_000)  # what sums buffer inside, and Python's own objects


def test_memory_is_told_while_bfloat16_lives():
    x = ll.ones((256, 256)).astype("bfloat16")
    assert ll.memory_info("cpu:0").current >= x.nbytes == 256 * 256 * 2
