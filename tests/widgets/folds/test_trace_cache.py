"""The fold of the trace-cache view."""

from __future__ import annotations

import gc
import re
import weakref

import pytest

import limelight as ll
from limelight import events
from limelight.user_code.source_line import Source
from limelight_widgets.folds.trace_cache import MOST_GONE, CacheFold

LINE = Source("cell.py", 4, "f")


def miss(entry, reason="shape", function_id=-7, name="step"):
    return events.CacheMiss(name, function_id, entry, reason, LINE)


def test_entries_come_with_their_reason_and_their_hits(staged):
    fold = CacheFold((staged,), only=True)
    assert "step has no traces yet" in fold.state()["empty"]
    for event in [miss(0, "first call"), events.Traced("step", -7, 0, 12, 0.04), *[events.CacheHit("step", -7, 0)] * 3]:
        assert fold.apply(event)
    unknown, gone = CacheFold(), 10**9  # the id of no function that is alive
    said = [miss(0, "first call", gone), events.Traced("step", gone, 0, 12, 0.04)]
    for event in [*said, *[events.CacheHit("step", gone, 0)] * 3]:
        unknown.apply(event)
    (function,) = unknown.state()["functions"]
    (entry,) = function["entries"]
    assert (entry["reason"], entry["hits"], entry["seconds"], entry["nodes"]) == ("first call", 3, 0.04, 12)
    assert entry["line"] == ["cell.py", 4, ""]
    assert function["hits"] == 3
    assert unknown.state()["newest"] == [gone, 0]


def test_a_known_function_is_asked_itself(staged, network):
    entry = staged.add(network, hits=5)
    fold = CacheFold((staged,), only=True)
    (shown,) = fold.state()["functions"][0]["entries"]
    assert shown["signature"] == "f32[2,3]"
    assert (shown["device"], shown["tier"], shown["nbytes"], shown["nodes"]) == ("CPU:0", "plan", 24, 5)
    entry.hits = 9
    fold.apply(events.CacheHit("step", -7, 0))
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
    fold.apply(events.Traced("step", -7, 0, 5, 0.01))
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
    assert fold.apply(events.CacheCleared("step", -7, 1))
    state = fold.state()
    assert (state["functions"][0]["entries"], state["newest"]) == ([], None)
    assert "step has forgotten its traces" in state["empty"]
    assert not CacheFold().apply(events.CacheCleared("step", -7, 1))


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


def test_a_function_in_each_round_of_a_loop_is_shown_for_a_while():
    fold = CacheFold()
    kept = ll.function(lambda x: x + 1.0, name="kept")
    kept(ll.ones(()))
    fold.catch_up()
    _, mark = fold.since(0)
    for function_id in range(10**9, 10**9 + 3 * MOST_GONE):
        fold.apply(miss(0, "first call", function_id, f"f{function_id}"))
    ids = {function["id"] for function in fold.state()["functions"]}
    assert {kept.id, *range(10**9 + 2 * MOST_GONE, 10**9 + 3 * MOST_GONE)} <= ids
    assert sum(one >= 10**9 for one in ids) <= MOST_GONE + 1
    assert set(fold.since(mark)[0]["order"]) == ids
    assert {one for one, _ in fold._changed} <= ids, "nothing else is left of those that are shown no more"


def test_hits_are_seen_by_looking_at_the_counters_not_by_events(staged, network):
    """An event for each call cost a loop of 10,000 calls a second 3%."""
    entry = staged.add(network, hits=5)
    fold = CacheFold((staged,), only=True)
    fold.look()
    _, mark = fold.since(0)
    fold.look()
    assert fold.since(mark)[0] == {}
    entry.hits = 9
    fold.look()
    assert fold.since(mark)[0]["functions"][0]["hits"] == 9
    assert events.CacheHit not in CacheFold.kinds


def test_how_far_a_function_is_compiled_is_seen_without_a_call(staged, network):
    entry = staged.add(network)
    fold = CacheFold((staged,), only=True)
    said = []
    for tier, progress in [
        ("plan", ""),
        ("plan", "compiling…"),
        ("xla", "compiled: 2.1 times as fast"),
        ("plan", "kept on plan: results differ"),
    ]:
        entry.tier, entry.tier_progress = tier, progress
        fold.look()
        said.append(fold.state()["functions"][0]["entries"][0]["tier"])
    assert said == ["plan", "plan, compiling…", "xla, compiled: 2.1 times as fast", "kept on plan: results differ"]


def test_a_function_whose_only_trace_failed_has_nothing_to_forget():
    def fails(x):
        raise ValueError("on purpose")

    function = ll.function(fails)
    with pytest.raises(ValueError, match="on purpose"):
        function(ll.ones(2))
    assert "fails has no traces yet" in CacheFold((function,), only=True).state()["empty"]


def test_an_update_has_the_entries_that_changed(staged, network):
    entries = [staged.add(network) for _ in range(30)]
    others = [ll.function(lambda x: x + 1.0, name=f"other {n}") for n in range(3)]
    for other in others:
        other(ll.ones(2))
    fold = CacheFold((staged, *others))
    _, mark = fold.since(0)
    entries[4].hits = 9
    fold.look()
    change, later = fold.since(mark)
    assert change["order"] == [staged.id, *[other.id for other in others]]
    (function,) = change["functions"]
    assert (function["id"], function["hits"]) == (staged.id, 9)
    assert [one["hits"] for one in function["entries"] if isinstance(one, dict)] == [9]
    assert [one for one in function["entries"] if not isinstance(one, dict)] == [n for n in range(30) if n != 4]
    others[1](ll.ones(3))
    fold.apply(events.Traced("other 1", others[1].id, 1, 1, 0.1))
    change, _ = fold.since(later)
    assert [(one["id"], [type(entry) for entry in one["entries"]]) for one in change["functions"]] == [
        (others[1].id, [int, dict])
    ]
    assert [len(one["entries"]) for one in fold.state()["functions"]] == [30, 1, 2, 1]
    assert all(isinstance(entry, dict) for one in fold.state()["functions"] for entry in one["entries"])


def test_an_entry_that_has_gone_is_a_change(staged, network):
    staged.add(network)
    fold = CacheFold((staged,), only=True)
    _, mark = fold.since(0)
    staged.trace_cache.clear()
    fold.apply(events.CacheCleared("step", staged.id, 1))
    assert [one["entries"] for one in fold.since(mark)[0]["functions"]] == [[]]


def test_when_an_entry_was_used_is_known_of_what_was_seen(staged, network, monkeypatch):
    entry = staged.add(network, hits=5)
    fold = CacheFold((staged,), only=True)

    def used():
        return fold.state()["functions"][0]["entries"][0]["used"]

    assert (used(), fold.state()["pace"]) == (None, [])
    for second, hits in ((1000.5, 7), (1000.9, 8), (1002.0, 12)):
        monkeypatch.setattr("time.time", lambda now=second: now)
        entry.hits = hits
        fold.look()
        assert used() == second
    assert fold.state()["pace"][-4:] == [0, 3, 0, 4]
    assert len(fold.state()["pace"]) == 60
    entry.hits = 40
    fold.catch_up()
    assert used() is None, "some time since it was last looked at"
    assert sum(fold.state()["pace"]) == 7


def test_the_same_answer_to_a_second_question_is_news(staged, network):
    fold = CacheFold((staged,), only=True)
    answers = []
    for _ in range(2):
        fold.answer({"call": "f(x)", "hit": True})
        answers.append(fold.state()["what_if"])
    assert answers[0] != answers[1]
    assert {one["call"] for one in answers} == {"f(x)"}


def test_an_update_tells_functions_of_one_name_apart_where_that_has_changed():
    make = lambda by: ll.function(lambda x: x * by, name="twin")  # noqa: E731  # all of one line
    functions = [make(by) for by in (1.0, 2.0)]
    for function in functions:
        function(ll.ones(2))
    fold = CacheFold((functions[0],))
    _, mark = fold.since(0)
    fold.catch_up()
    update, mark = fold.since(mark)
    first, second = (update["places"][str(function.id)] for function in functions)
    assert re.fullmatch(r" \(test_trace_cache\.py:\d+\)", first)
    assert second == first.replace(")", ", no. 2)")
    functions[0](ll.ones(3))
    fold.look()
    fold.catch_up()
    update, mark = fold.since(mark)
    assert "places" not in update
    places = fold.state()["places"]
    assert [places[str(function.id)] for function in functions] == [first, second]
