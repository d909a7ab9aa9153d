"""Periods in sequences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from limelight_widgets.folds import periods
from limelight_widgets.folds.periods import Run, runs


def several(run: Run) -> bool:
    return run.count > 1


def test_a_loop_is_one_run_whatever_its_body():
    for body in ("a", "ab", "aab", "abcab", "aabaac"):
        longest = max(runs(body * 40, lambda run, body=body: run.period >= len(body)), key=lambda run: run.count)
        assert (longest.period, longest.count) == (len(body), 40)


def test_what_is_not_worth_it_is_passed_over():
    assert runs("aabbcc", lambda run: run.count > 2) == []


def test_a_run_begins_where_it_is_told_to():
    (run,) = runs("cabcabcabc", several, lambda at, _period: "cabcabcabc"[at])
    assert run == Run(1, 3, 3)


@given(st.text("abc", max_size=60))
@example("aab" * 5 + "b" + "ab" * 5)
def test_runs_are_repeats_and_do_not_overlap(text):
    found = runs(text, several)
    for run in found:
        pattern = text[run.start : run.start + run.period]
        assert text[run.start : run.stop] == pattern * run.count
    assert all(one.stop <= other.start for one, other in pairwise(found))


@given(st.text("abc", max_size=60), st.sampled_from([0, 2, 9]))
@example("aab" * 5 + "b" + "ab" * 5, 2)
def test_a_look_at_all_positions_at_once_passes_over_no_run(text, least):
    def worth(run: Run) -> bool:
        return run.count * run.period >= least

    never_twice = range(periods._LONG)  # which makes it so long that it pays
    assert runs([*text, *never_twice], worth) == runs(text, worth)
    shortest = runs(
        [*text, *never_twice], worth, shortest=lambda _, period: period * np.maximum(2, -(-least // period))
    )
    assert shortest == runs(text, worth)


class Counted(str):
    """A symbol that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_time_is_linear():
    def comparisons(count):
        texts = [
            "a" * count,
            "ab" * (count // 2),
            ("a" * 20 + "b") * (count // 21),
            "abcd" * (count // 8) + "a" * count,
        ]
        Counted.compared = 0
        for text in texts:
            runs([Counted(symbol + "!") for symbol in text], several)
        return Counted.compared

    assert comparisons(8_000) < 9 * comparisons(1_000)
