"""The fold of the tape view."""

from __future__ import annotations

import json

import pytest

from limelight import events
from limelight.user_code.source_line import Source
from limelight_widgets.folds.tape import TapeFold

LINE = Source("cell.py", 4, "f")


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


def test_totals_count_on_when_rows_do_not(fake_tape, monkeypatch):
    most = 50
    monkeypatch.setattr("limelight_widgets.folds.tape.MOST_ROWS", most)
    fold = TapeFold(fake_tape())
    for index in range(most + 4):
        fold.apply(recorded(index, saved=2))
    _, mark = fold.since(0)
    fold.apply(recorded(most + 4, saved=2))
    update, mark = fold.since(mark)
    assert (update["entries"], update["hidden"], update["rows"]) == (most + 5, 5, [])
    assert fold.since(mark) == ({}, mark)
    state = fold.state()
    assert len(state["rows"]) == most
    assert (state["entries"], state["hidden"], state["saved"]) == (most + 5, 5, 2 * most + 10)


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


@pytest.mark.parametrize("other", [[8], [8, 8, 8]])
def test_a_tape_that_was_entered_again_unseen_has_other_records(fake_tape, other):
    tape = fake_tape(40, 32)
    fold = TapeFold(tape)
    tape.entries[:] = fake_tape(*other).entries
    _, mark = fold.since(0)
    fold.catch_up()
    update, _ = fold.since(mark)
    assert (update["from"], [row[5] for row in update["rows"]], update["saved"]) == (0, other, sum(other))


def test_a_tape_that_answered_unseen_has_let_go(fake_tape):
    tape = fake_tape(40)
    fold = TapeFold(tape)
    assert not fold.state()["released"]
    tape.entries.clear()
    fold.catch_up()
    assert fold.state()["released"]


def test_a_tape_of_more_records_than_are_listed_that_is_entered_again_is_news(fake_tape, monkeypatch):
    monkeypatch.setattr("limelight_widgets.folds.tape.MOST_ROWS", 5)
    fold = TapeFold(fake_tape())
    for index in range(9):
        fold.apply(recorded(index, saved=2))
    _, mark = fold.since(0)
    fold._begin_anew()
    for index in range(2):
        fold.apply(recorded(index, saved=2))
    update, _ = fold.since(mark)
    assert (update["entries"], update["from"], len(update["rows"])) == (2, 0, 2)
