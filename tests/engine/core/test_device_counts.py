"""What a tally counts is what events tell, at a fraction of their price; nothing is counted where nobody asks."""

from __future__ import annotations

import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import limelight as ll
from limelight import events
from limelight.core import device_counts, dispatch
from limelight.core.collector import collector_paused
from limelight.memory import drop_tally, keep_tally

MAKERS = {
    "constant": lambda x, w: ll.constant(np.ones((4, 5), "float32")),
    "add": lambda x, w: x + x,
    "scalar": lambda x, w: x * 2.0,
    "view": lambda x, w: ll.reshape(x, (5, 4)),
    "sum": lambda x, w: ll.sum(x),
    "several": lambda x, w: ll.split(x, 2)[0],
    "assigned": lambda x, w: w.assign(ll.ones((4, 5))),
    "staged": lambda x, w: staged(w),
    "recorded": lambda x, w: recorded(w),
}


@ll.function
def staged(w):
    return ll.tanh(w) * 2.0 + 1.0


def recorded(w):
    with ll.GradientTape() as tape:
        y = ll.sum(ll.tanh(w + 0.0))
    return tape.gradient(y, w)


class Told:
    """The same from events."""

    def __init__(self) -> None:
        self.live = self.peak = ll.memory_info().current
        self.ops = self.calls = 0

    def __call__(self, event):
        if isinstance(event, events.OpRan):
            self.ops += event.op not in {"call", "call_forward"}
            self.calls += event.op in {"call", "call_forward"}
            self.peak = max(self.peak, self.live + event.most)
        else:
            self.live += event.nbytes if isinstance(event, events.Allocated) else -event.nbytes
            self.peak = max(self.peak, self.live)


def programs():
    return st.lists(st.sampled_from(sorted(MAKERS)), max_size=8)


def run(names, kept, w):
    for name in names:
        matrix = next((x for x in reversed(kept) if isinstance(x, ll.Tensor) and x.shape == (4, 5)), None)
        kept.append(MAKERS[name](w + 0.0 if matrix is None else matrix, w))


@settings(max_examples=20, deadline=None)
@given(programs(), st.integers(0, 4))
def test_a_tally_counts_what_events_tell(names, dropped):
    w = ll.Variable(ll.ones((4, 5)))
    staged(w)
    kept = [ll.ones((4, 5))]
    with collector_paused():  # what others have left would be gone between the one look and the other
        tally = keep_tally()
        told = Told()
        try:
            with events.listen(told, events.OpRan, events.Allocated, events.Freed):
                run(names, kept, w)
                del kept[: min(dropped, len(kept))]
                counts, live = tally.take()["CPU:0"]
        finally:
            drop_tally(tally)
    assert (counts.ops, counts.calls, live, counts.peak) == (told.ops, told.calls, told.live, told.peak)


@settings(max_examples=20, deadline=None)
@given(programs())
def test_without_a_listener_the_bytes_alive_are_the_allocators(names):
    w = ll.Variable(ll.ones((4, 5)))
    kept = [ll.ones((4, 5))]
    with collector_paused():
        tally = keep_tally()
        try:
            run(names, kept, w)
            assert tally.take()["CPU:0"][1] == ll.memory_info().current
            kept.clear()
            assert tally.take()["CPU:0"][1] == ll.memory_info().current
        finally:
            drop_tally(tally)


def test_two_tallies_are_apart_and_begin_anew_when_taken():
    first, x = keep_tally(), ll.ones((3,))
    second = keep_tally()
    y = x + x
    assert second.take()["CPU:0"][0].ops == 1
    drop_tally(second)
    assert first.take()["CPU:0"][0].ops >= 1
    assert first.take()["CPU:0"][0].ops == 0
    assert events.wanted(events.Freed) is False
    drop_tally(first)
    del y


@pytest.mark.usefixtures("no_garbage")
def test_a_listener_that_goes_leaves_the_counts_alone():
    tally = keep_tally()
    with events.listen(lambda event: None, events.Allocated, events.Freed):
        x = ll.ones((100,))
    assert tally.take()["CPU:0"][1] == ll.memory_info().current
    del x
    assert tally.take()["CPU:0"][1] == ll.memory_info().current
    drop_tally(tally)


def test_nothing_is_left_when_nobody_asks():
    drop_tally(keep_tally())
    assert not dispatch.active
    assert not dispatch.scopes
    assert not device_counts.kept
    assert not device_counts.live


def test_a_peak_begun_anew_is_still_told_to_who_counted_it():
    tally = keep_tally()
    try:
        before = ll.memory_info().current
        ll.ones((1000,)) + ll.ones((1000,))
        assert ll.memory_info().peak >= before + 12_000
        assert ll.memory_info(reset_peak=True).peak < before + 4_000
        assert tally.take()["CPU:0"][0].peak >= before + 12_000
        assert ll.memory_info().peak < before + 4_000
        ll.ones((1000,)) + ll.ones((1000,))
    finally:
        drop_tally(tally)
    assert ll.memory_info().peak >= before + 12_000, "counted until it was dropped"


def python_calls(work) -> list[str]:
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return [name for name in calls if name != "<lambda>"]


def test_an_op_that_is_counted_makes_no_record_and_looks_for_no_line():
    """An event for each op took ten times as long."""
    a, b = ll.ones((4,)), ll.ones((4,))
    tally = keep_tally()
    with events.listen(lambda event: None, events.Recorded):  # as a dashboard's view of tapes does: no tape is open
        calls = python_calls(lambda: a + b)
    drop_tally(tally)
    assert len(calls) <= 16, calls
    assert not {"user_line", "emit", "__init__", "_report", "heal"} & set(calls)


def test_a_staged_call_that_is_counted_takes_its_shortcut():
    """It made a key and was dispatched as an op, 26 µs instead of 3; a tape's listener without a tape is no reason."""
    x = ll.ones((4, 5))
    twice = ll.function(lambda x: x + x)
    twice(x), twice(x)
    bare = python_calls(lambda: twice(x))
    tally = keep_tally()
    try:
        with events.listen(lambda event: None, events.Recorded):
            twice(x)  # its plan's peak is found once
            tally.take()
            counted = python_calls(lambda: twice(x))
            ran = tally.take()["CPU:0"][0]
            with ll.GradientTape() as tape:
                tape.watch(x)
                y = twice(x)
            assert tape.gradient(y, x) is not None
    finally:
        drop_tally(tally)
    assert not {"process", "apply", "emit", "_call"} & set(counted), counted
    assert len(counted) <= len(bare) + 10, (bare, counted)
    assert (ran.calls, ran.ops) == (1, 0)
    assert ran.peak >= x.nbytes
