from __future__ import annotations

import gc
import json
import weakref

import pytest

from limelight import events
from limelight.user_code.source_line import Source
from limelight_widgets import wire
from limelight_widgets.folds import CacheFold, DevicesFold, TapeFold
from limelight_widgets.folds.devices import SAMPLES, History
from limelight_widgets.folds.tape import MOST_ROWS

CPU, CPU1 = "CPU:0", "CPU:1"
FULL = "/job:localhost/task:0/device:"
LINE = Source("cell.py", 4, "f")

# --- trace caches


def miss(entry, reason="shape", function_id=7, name="step"):
    return events.CacheMiss(name, function_id, entry, reason, LINE)


def test_entries_come_with_their_reason_and_their_hits(staged):
    fold = CacheFold((staged,), only=True)
    assert "step has no traces yet" in fold.state()["empty"]
    for event in [miss(0, "first call"), events.Traced("step", 7, 0, 12, 0.04), *[events.CacheHit("step", 7, 0)] * 3]:
        assert fold.apply(event)
    unknown = CacheFold()
    for event in [miss(0, "first call"), events.Traced("step", 7, 0, 12, 0.04), *[events.CacheHit("step", 7, 0)] * 3]:
        unknown.apply(event)
    (function,) = unknown.state()["functions"]
    (entry,) = function["entries"]
    assert (entry["reason"], entry["hits"], entry["seconds"], entry["nodes"]) == ("first call", 3, 0.04, 12)
    assert entry["line"] == ["cell.py", 4, ""]
    assert function["hits"] == 3
    assert unknown.state()["newest"] == [7, 0]


def test_a_known_function_is_asked_itself(staged, network):
    entry = staged.add(network, hits=5)
    fold = CacheFold((staged,), only=True)
    (shown,) = fold.state()["functions"][0]["entries"]
    assert shown["signature"] == "f32[2,3]"
    assert (shown["device"], shown["tier"], shown["nbytes"], shown["nodes"]) == ("CPU:0", "plan", 24, 5)
    entry.hits = 9
    fold.apply(events.CacheHit("step", 7, 0))
    assert fold.state()["functions"][0]["hits"] == 9


def test_the_arrows_of_a_reason_do_not_stand_alone_on_a_line(staged, network):
    staged.add(network, reason="x: f32[2] -> f32[3]")
    fold = CacheFold((staged,), only=True)
    fold.apply(miss(1, "y: 1 -> 2"))
    shown = [entry["reason"] for entry in fold.state()["functions"][0]["entries"]]
    assert shown == ["x: f32[2]\u00a0→\u00a0f32[3]", "y: 1\u00a0→\u00a02"]


def test_a_trace_in_the_making_is_shown(staged, network):
    fold = CacheFold((staged,), only=True)
    fold.apply(miss(0, "first call"))
    (entry,) = fold.state()["functions"][0]["entries"]
    assert (entry["state"], entry["reason"]) == ("tracing", "first call")
    staged.add(network)
    fold.apply(events.Traced("step", 7, 0, 5, 0.01))
    (entry,) = fold.state()["functions"][0]["entries"]
    assert (entry["state"], entry["nodes"]) == ("ready", 5)


def test_cleared_entries_go_and_their_numbers_are_used_again(staged, network):
    staged.add(network, reason="old")
    fold = CacheFold((staged,), only=True)
    staged.trace_cache.clear()
    staged.add(network, reason="new")
    fold.catch_up()
    assert [entry["reason"] for entry in fold.state()["functions"][0]["entries"]] == ["new"]


def test_a_cleared_cache_is_shown_as_such(staged, network):
    staged.add(network)
    fold = CacheFold((staged,), only=True)
    fold.apply(miss(0))
    staged.trace_cache.clear()
    assert fold.apply(events.CacheCleared("step", 7, 1))
    state = fold.state()
    assert (state["functions"][0]["entries"], state["newest"]) == ([], None)
    assert "step has forgotten its traces" in state["empty"]
    assert not CacheFold().apply(events.CacheCleared("step", 7, 1))


def test_one_functions_view_ignores_others(staged):
    fold = CacheFold((staged,), only=True)
    assert not fold.apply(miss(0, function_id=8))
    assert CacheFold((staged,)).apply(miss(0, function_id=8, name="other"))


def test_only_the_newest_of_many_entries_travel(staged):
    fold = CacheFold()
    for entry in range(700):
        fold.apply(miss(entry))
    (function,) = fold.state()["functions"]
    assert len(function["entries"]) == 500
    assert function["entries"][-1]["index"] == 699
    assert function["hidden"] == 200


def test_nothing_new_is_nothing_to_send(staged):
    fold = CacheFold((staged,), only=True)
    state, mark = fold.since(0)
    assert state["kind"] == "trace_cache"
    assert fold.since(mark) == ({}, mark)


def test_a_cache_fold_keeps_no_function_alive(network):
    class Staged:
        name, id, trace_cache = "f", 3, ()

    function = Staged()
    ref = weakref.ref(function)
    fold = CacheFold((function,), only=True)
    del function
    gc.collect()
    assert ref() is None
    assert fold.state()["functions"][0]["name"] == "f"


# --- tapes


def recorded(index, op="tanh", saved=40, tape_id=3):
    return events.Recorded(tape_id, index, op, ("f32[10]",), ("f32[10]",), saved, "x̄ = ȳ (1 - y²)", LINE)


def test_rows_with_totals(fake_tape):
    tape = fake_tape(8)
    fold = TapeFold(tape)
    assert fold.apply(recorded(1, "exp", saved=32))
    state = fold.state()
    assert json.loads(json.dumps(state)) == state
    assert state["rows"][0] == [0, "tanh", ["cell.py", 4, ""], ["f32[10]"], ["f32[10]"], 8, "x̄ = ȳ (1 - y²)"]
    assert [row[1] for row in state["rows"]] == ["tanh", "exp"]
    assert (state["entries"], state["saved"], state["released"]) == (2, 40, False)


def test_only_added_rows_are_sent(fake_tape):
    tape = fake_tape()
    fold = TapeFold(tape)
    _, mark = fold.since(0)
    for index in range(3):
        fold.apply(recorded(index))
    update, mark = fold.since(mark)
    assert (update["from"], len(update["rows"])) == (0, 3)
    assert fold.since(mark)[0] == {}
    fold.apply(recorded(3))
    update, _ = fold.since(mark)
    assert (update["from"], len(update["rows"]), update["entries"]) == (3, 1, 4)


def test_a_released_tape_says_so_and_starts_anew_when_it_records_again(fake_tape):
    tape = fake_tape(40, 40)
    fold = TapeFold(tape)
    _, mark = fold.since(0)
    fold.apply(events.TapeReleased(3, 2, 80))
    update, mark = fold.since(mark)
    assert update["released"]
    assert update["rows"] == []
    fold.apply(recorded(0))
    update, _ = fold.since(mark)
    assert (update["from"], len(update["rows"]), update["entries"], update["released"]) == (0, 1, 1, False)


def test_other_tapes_are_ignored_and_entries_are_not_counted_twice(fake_tape):
    tape = fake_tape(40, 40)
    fold = TapeFold(tape)
    assert not fold.apply(recorded(1))
    assert not fold.apply(recorded(2, tape_id=4))
    assert not fold.apply(events.TapeReleased(4, 1, 1))
    tape.entries.append(fake_tape(1, 1, 1).entries[2])
    fold.catch_up()
    assert fold.state()["entries"] == 3


def test_totals_count_on_when_rows_do_not(fake_tape):
    tape = fake_tape()
    fold = TapeFold(tape)
    for index in range(MOST_ROWS + 5):
        fold.apply(recorded(index, saved=2))
    state = fold.state()
    assert len(state["rows"]) == MOST_ROWS
    assert (state["entries"], state["hidden"], state["saved"]) == (MOST_ROWS + 5, 5, 2 * MOST_ROWS + 10)


def test_an_empty_tape_says_what_to_do(fake_tape):
    tape = fake_tape()
    assert "with limelight.GradientTape() as tape" in TapeFold(tape).state()["empty"]


def test_a_used_tape_says_that_it_has_answered(fake_tape):
    tape = fake_tape()
    fold = TapeFold(tape)
    tape.used = True
    for shown in (fold, TapeFold(tape)):
        assert "has answered" in shown.state()["empty"]
        assert "persistent=True" in shown.state()["empty"]


# --- devices


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


# --- the wire


def test_states_survive_the_wire():
    fold = DevicesFold([(CPU, FULL + CPU, 10, 10)])
    parts = wire.pack(fold.state())
    assert len(parts) == 2
    assert wire.unpack(parts)["devices"][0]["history"] == [10.0]
    assert wire.unpack(wire.pack({"name": "</script>\u202e", "n": None})) == {"name": "</script>\u202e", "n": None}


def test_a_state_holds_nothing_else():
    with pytest.raises(TypeError, match="not a object"):
        wire.pack({"tensor": object()})
