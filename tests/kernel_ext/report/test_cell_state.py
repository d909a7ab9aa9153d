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
    assert "≈ compared at each run: <code>cfg.rate</code>, <code>cfg.t</code>" in static.html
    assert "no op of the graph: a change in place, which each run makes again" in static.html


def test_lines_above_the_refused_one_that_ran_without_an_op_are_marked(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.ones(2)")
    shown = run("%%stage --text half\nq = x * 2.0\nprint('hello')\nr = q.numpy()\nprint('never')", fails=True).text
    rows = {row.split()[0]: row for row in shown.splitlines() if row.strip()}
    assert "● staged" in rows["2"]
    assert "○ trace-time only print('hello')" in " ".join(rows["3"].split())
    assert rows["5"].split() == ["5", "print('never')"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("y = x * 2.0\narr.sort()", 3),
        ("y = x * 2.0\nz = [1,\n     next(it)]", 4),
        ("y = x * 2.0\nif ll.sum(x) > 1.0:\n    y = x", 3),
        ("y = x * 2.0\nhelper(x)\nz = y", 3),
        ("left = iter([x])\ny = x * 2.0", 2),
    ],
)
def test_the_line_that_was_refused_is_marked(run, text, line):
    run("%load_ext limelight")
    run("import limelight as ll\nimport numpy as np\nx, arr, it = ll.ones(2), np.array([2.0, 1.0]), iter([1])")
    run("def helper(x):\n    return x.item()")
    shown = run(f"%%stage --text\n{text}", fails=True).text
    assert [row.split()[0] for row in shown.splitlines() if "⊘ refused" in row] == [str(line)]
    assert "the notebook is as it was before this run" in shown
    assert run("'y' in dir(), arr[0], next(it)").value == (False, 2.0, 1)
    assert not run(f"%%stage -q\n{text}", fails=True).shown
    run("it = iter([1])")
    assert "⊘ refused" in run(f"%%stage --static\n{text}", fails=True).shown[0].data["text/html"]
    assert "refused" not in run(f"%%stage --text\n{text}\nx @ ll.ones((3, 3))".replace(text, "y = x"), fails=True).text
