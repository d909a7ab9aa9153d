"""The fold of the devices view."""

from __future__ import annotations

import pytest

from limelight import events
from limelight.core.device_counts import Tally
from limelight.user_code.source_line import Source
from limelight_widgets.folds.devices import SAMPLES, DevicesFold, History

CPU, CPU1 = "CPU:0", "CPU:1"
FULL = "/job:localhost/task:0/device:"
LINE = Source("cell.py", 4, "f")


def allocated(nbytes, device=CPU, at=0.0):
    return events.Allocated(device, nbytes, 1, time=at)


def freed(nbytes, device=CPU, at=0.0):
    return events.Freed(device, nbytes, 1, time=at)


def test_live_bytes_peak_and_ops_of_each_device():
    fold = DevicesFold([(CPU, FULL + CPU, 100, 150), (CPU1, FULL + CPU1, 0, 0)])
    for event in [allocated(80), freed(30), allocated(8, CPU1), freed(8, CPU1)]:
        assert fold.apply(event)
    fold.apply(events.OpRan("add", CPU, ("f32[2]",), ("f32[2]",), 8, 0.25, LINE))
    fold.apply(events.OpRan("call", CPU, ("f32[2]",), ("f32[2]",), 8, 0.0, LINE))
    assert fold.state()["devices"][0]["calls"] == 1, "a staged call is no op, and is many"
    first, second = fold.state()["devices"]
    assert (first["name"], first["live"], first["peak"], first["ops"], first["seconds"]) == ("CPU:0", 150, 180, 1, 0.25)
    assert (second["name"], second["live"], second["peak"]) == ("CPU:1", 0, 8)


def test_totals_follow_every_event_exactly():
    fold = DevicesFold([(CPU, FULL + CPU, 0, 0)])
    live = peak = 0
    for step in range(200):
        nbytes = (step * 37) % 101
        fold.apply(allocated(nbytes, at=step / 100) if step % 3 else freed(min(nbytes, live), at=step / 100))
        live += nbytes if step % 3 else -min(nbytes, live)
        peak = max(peak, live)
        (device,) = fold.state()["devices"]
        assert (device["live"], device["peak"]) == (live, peak)


def test_the_devices_own_account_wins():
    fold = DevicesFold([(CPU, FULL + CPU, 10, 10)])
    _, mark = fold.since(0)
    fold.reconcile(CPU, FULL + CPU, 10, 10, 1.0)
    assert fold.since(mark) == ({}, mark)
    fold.reconcile(CPU, FULL + CPU, 70, 90, 1.0)
    (device,) = fold.since(mark)[0]["devices"]
    assert (device["live"], device["peak"]) == (70, 90)
    fold.reconcile(CPU, FULL + CPU, 20, 90, 1.2)
    assert list(fold.state()["devices"][0]["history"])[-4:] == [90, 70, 70, 70], "the peak was between two looks"


def test_equal_copies_are_counted_together_newest_first():
    fold = DevicesFold([])
    other = Source("cell.py", 9, "f")
    for source, nbytes in [(LINE, 40), (other, 8), (LINE, 40)]:
        fold.apply(events.Copied(CPU, CPU1, nbytes, "operand of add", source))
    state = fold.state()
    assert (state["copied"], state["copied_bytes"]) == (3, 88)
    assert [(c["from"], c["to"], c["count"], c["nbytes"], c["line"][1]) for c in state["copies"]] == [
        ("CPU:0", "CPU:1", 2, 80, 4),
        ("CPU:0", "CPU:1", 1, 8, 9),
    ]


def test_history_is_bounded_and_keeps_the_peak():
    history = History(0)
    for step in range(10_000):
        history.add(step * 0.05, 1_000 if step == 4_321 else 10)
    values = history.values()
    assert len(values) <= SAMPLES
    assert max(values) == 1_000
    assert values[-1] == 10
    assert history.seconds == pytest.approx(500, rel=0.05)


def test_a_quiet_time_keeps_the_last_value():
    history = History(0)
    history.add(0.0, 5)
    history.add(1.0, 7)
    assert list(history.values()) == [5.0] * 20 + [7.0]


def test_copies_that_were_missed_are_taken_from_the_engines_list_once():
    made = [events.Copied("CPU:0", "CPU:1", 4, ".to()", None, "f32[1]", 0.1, time=float(i)) for i in range(3)]
    fold = DevicesFold([], made[:1])
    fold.apply(made[1])
    fold.take_copies(made)
    fold.take_copies(made)
    assert fold.state()["copied"] == 3


def test_the_note_says_since_when_ops_are_counted():
    fold = DevicesFold([("CPU:0", "CPU:0", 0, 0)])
    assert "ops, calls: not counted while no view is open." in fold.state()["note"]
    fold.take(Tally())
    assert "ops, calls: those since this view was opened." in fold.state()["note"]
