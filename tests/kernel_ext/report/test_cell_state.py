"""The annotated cell says what each run changes in place, and what of objects it compares."""

from __future__ import annotations

import pytest


@pytest.fixture
def ran(run):
    run("%load_ext limelight")
    run("import limelight as ll\nclass Cfg:\n    pass\ncfg = Cfg()\ncfg.rate, cfg.t = 0.5, ll.ones(2)")
    run('history, d, x = [], {"w": ll.ones(2), "n": 1}, ll.ones(2)')
    run(
        "%%stage -o ran\ny = x * cfg.rate + cfg.t\nn = len(history)\ncfg.t = y\nhistory.append(y)\n"
        'd["w"] = d["w"] * 0.5\nd["n"] += 1'
    )
    return run("ran").value


def test_lines_say_what_they_write_back_and_what_is_compared(ran):
    assert {line.number: line.remarks for line in ran.lines if line.remarks} == {
        2: ("≈ compared at each run: `cfg.rate`, `cfg.t`",),
        4: ("↩ written back at each run: `cfg.t`",),
        5: ("↩ written back at each run: `history`",),
        6: ("↩ written back at each run: `d['w']`",),
        7: ("↩ written back at each run: `d['n']`",),
    }


def test_a_line_without_ops_that_is_made_again_is_no_trace_time_line(ran):
    assert [line.mark for line in ran.lines][1:] == [
        "trace-time only", "written back", "written back", "staged", "written back",
    ]  # fmt: skip


def test_both_forms_show_it(ran):
    static = ran.static()
    assert "  5 ↩ written back     history.append(y)\n      ↩ written back at each run: `history`" in static.text
    assert "↩ written back" in static.html
    assert "≈ compared at each run: `cfg.rate`, `cfg.t`" in static.html
    assert "no op of the graph: a change in place, which each run makes again" in static.html
